//! How each agent records that the user refused a call: in a form that no tool can print, beside its mark
//! that the call failed. The text of any other output is never taken for a refusal.

use history::Refusal;

/// Claude Code 1.0 to 2.1: prefixes of the result of a refused call.
pub(super) const CLAUDE_CODE: [&str; 2] = [
    "The user doesn't want to proceed with this tool use.",
    "The user doesn't want to take this action right now.",
];

/// Claude Code 2.0 to 2.1: prefixes of the result of a call that the settings forbid or that nobody could be
/// asked about, each with a substring of the rest.
const CLAUDE_CODE_SETTINGS: [(&str, &str); 3] = [
    ("Permission to use ", " has been denied"),
    ("Permission for this action ", " denied"),
    ("Claude requested permissions to ", ", but you haven't granted it yet"),
];

/// Claude Code: the text before the user's reason, whose end has two wordings.
const REJECTED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file \
    edit, the new_string was NOT written to the file). ";
const REASON: [&str; 2] = [
    "To tell you how to proceed, the user said:\n",
    "The user provided the following reason for the rejection:",
];

/// Claude Code: what it adds after a reason, and its own text instead of one if the user answers questions
/// with a question.
const NOT_THE_REASON: [&str; 2] =
    ["\n\nNote: The user's next message may contain", "The user wants to clarify these questions."];

/// Codex: the prefix of the output of a call that its reviewer denied, and a substring of the rest.
const CODEX_REVIEWER: (&str, &str) =
    ("exec_command failed", "This action was rejected due to unacceptable risk");

/// Codex: the reviewer itself failed, so nobody denied the call.
const CODEX_NO_REVIEW: &str = "Automatic approval review failed";

/// Codex: the whole output of a call that the user denied. Outputs of its shell and of MCP tools begin with a header.
const CODEX: [&str; 2] = ["exec command rejected by user", "patch rejected by user"];

/// Gemini CLI: the whole error of a call with the status `cancelled`; it wraps the errors of MCP tools.
const GEMINI_CLI: [&str; 2] = [
    "[Operation Cancelled] Reason: User denied execution.",
    "[Operation Cancelled] Reason: User cancelled the operation.",
];

/// OpenCode 0.5 to 1.18: the whole error of a refused call without a reason; the next is the prefix of one
/// with it.
const OPENCODE: [&str; 2] = [
    "The user rejected permission to use this specific tool call.",
    "The user rejected permission to use this specific tool call. You may try again with different parameters.",
];
const OPENCODE_REASON: &str =
    "The user rejected permission to use this specific tool call with the following feedback: ";

const OPENCODE_SETTINGS: &str =
    "The user has specified a rule which prevents you from using this specific tool call.";

/// OpenCode's own tools. A session holds errors of MCP tools as their server wrote them, so a refusal of one
/// could not be told from a server that claims one.
const OPENCODE_TOOLS: [&str; 16] = [
    "apply_patch",
    "bash",
    "codesearch",
    "edit",
    "glob",
    "grep",
    "list",
    "lsp",
    "multiedit",
    "patch",
    "read",
    "skill",
    "task",
    "todowrite",
    "webfetch",
    "write",
];

const BY_SETTINGS: Refusal = Refusal { reason: None, by_settings: true };

/// Whether a failed Claude Code result (or its beginning) says that the settings forbid the call.
fn is_forbidden(text: &str) -> bool {
    CLAUDE_CODE_SETTINGS.iter().any(|it| text.strip_prefix(it.0).is_some_and(|rest| rest.contains(it.1)))
}

/// The refusal that the text of a failed Claude Code result states.
pub(super) fn claude_code(text: &str) -> Option<Refusal> {
    if is_forbidden(text) {
        return Some(BY_SETTINGS);
    }
    if !CLAUDE_CODE.iter().any(|it| text.starts_with(it)) {
        return None;
    }
    let rest = text.strip_prefix(REJECTED).unwrap_or_default();
    let reason = REASON.iter().find_map(|it| rest.strip_prefix(it));
    let reason = reason.map(|it| it.split(NOT_THE_REASON[0]).next().unwrap_or(it));
    Some(Refusal {
        reason: reason.filter(|it| !it.trim_start().starts_with(NOT_THE_REASON[1])).and_then(words),
        by_settings: false,
    })
}

/// Whether Claude Code's `toolUseResult`, as raw JSON, is a refusal: a string that begins like one.
pub(super) fn is_shown(json: &str) -> bool {
    json.starts_with("\"User rejected tool use")
        || json
            .strip_prefix("\"Error: ")
            .is_some_and(|json| is_forbidden(json) || CLAUDE_CODE.iter().any(|it| json.starts_with(it)))
}

/// The refusal that a Codex output states.
pub(super) fn codex(text: &str) -> Option<Refusal> {
    let reviewed = text.starts_with(CODEX_REVIEWER.0)
        && text.contains(CODEX_REVIEWER.1)
        && !text.contains(CODEX_NO_REVIEW);
    reviewed.then_some(BY_SETTINGS).or_else(|| CODEX.contains(&text).then(Refusal::default))
}

/// The refusal that the error of a Gemini CLI call with the status `cancelled` states.
pub(super) fn gemini_cli(text: &str) -> Option<Refusal> {
    GEMINI_CLI.contains(&text).then(Refusal::default)
}

/// The refusal that the error of an OpenCode call states.
pub(super) fn opencode(tool: &str, text: &str) -> Option<Refusal> {
    if !OPENCODE_TOOLS.contains(&tool) {
        return None;
    }
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    match text.strip_prefix(OPENCODE_REASON) {
        Some(reason) => Some(Refusal { reason: words(reason), by_settings: false }),
        None if text.starts_with(OPENCODE_SETTINGS) => Some(BY_SETTINGS),
        None => OPENCODE.contains(&text).then(Refusal::default),
    }
}

fn words(text: &str) -> Option<Box<str>> {
    Some(text.trim()).filter(|it| !it.is_empty()).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_reason_is_known_in_both_wordings() {
        for head in REASON {
            let text = format!(
                "{REJECTED}{head} keep the old one\n\nNote: The user's next message may contain more"
            );
            let reason = claude_code(&text).and_then(|it| it.reason);
            assert_eq!(reason.as_deref(), Some("keep the old one"), "{text}");
        }
    }

    #[test]
    fn a_reviewer_of_codex_that_failed_denied_nothing() {
        let rejected = |reason: &str| {
            let rejected = "This action was rejected due to unacceptable risk";
            format!(
                "exec_command failed for `make`: CreateProcess {{ message: \"Rejected(\\\"{rejected}.\\nReason: {reason}\\\")\" }}"
            )
        };
        assert_eq!(codex(&rejected("it deletes the plant")), Some(BY_SETTINGS));
        assert_eq!(codex(&rejected("Automatic approval review failed: {}")), None);
    }
}
