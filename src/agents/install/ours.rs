//! How we recognize files and hook commands of ours.

use std::path::Path;

/// Occurs near the start of each of our files, so that another file of the same name is not taken for ours.
const MARK: &str = "epitome";

/// The text with this program's path in place of the placeholder.
pub fn fill_program_path(text: &str, program: &Path) -> String {
    let program = serde_json::to_string(&program.display().to_string()).unwrap_or_default();
    text.replace("\"@EPITOME@\"", &program)
}

/// Whether the file at one of our paths is ours.
pub fn is_our_file(text: &str) -> bool {
    text.get(..400.min(text.len())).unwrap_or(text).to_lowercase().contains(MARK)
        || text.contains("\"./seat.ts\"")
}

pub fn command(program: &Path) -> String {
    format!("{} hook", crate::agents::write_back::shell::quoted(&program.to_string_lossy()))
}

/// Whether a hook's command runs epitome, whatever path it was installed at.
pub(super) fn is_our_command(command: &str) -> bool {
    (command.ends_with(" hook") || command.contains(" seat gemini-cli")) && command.contains("epitome")
}
