//! How we recognise what we put in place.

use std::path::Path;

/// What stands in the first lines of each file of ours, so that another's file of that name is not taken for one.
const MARK: &str = "epitome";

/// The file with this program's path in it.
pub fn with_program(text: &str, program: &Path) -> String {
    let program = serde_json::to_string(&program.display().to_string()).unwrap_or_default();
    text.replace("\"@EPITOME@\"", &program)
}

/// Whether a file that lies in the place of one of ours is one of ours.
pub fn is_our_file(text: &str) -> bool {
    text.get(..400.min(text.len())).unwrap_or(text).to_lowercase().contains(MARK)
        || text.contains("\"./seat.ts\"")
}

pub fn command(program: &Path) -> String {
    format!("{} hook", crate::agents::reach::quoted(&program.to_string_lossy()))
}

/// Whether a hook's command calls us, wherever we lie.
pub(super) fn is_our_command(command: &str) -> bool {
    (command.ends_with(" hook") || command.contains(" seat gemini-cli")) && command.contains("epitome")
}
