//! What the user typed in a message, without what clients put around it.
//! All results are slices of the text, so that quotes are verbatim.

use super::has_marker;

/// Elements that clients insert in a user message.
const INJECTED: [&str; 20] = [
    "system-reminder",
    "ide_opened_file",
    "ide_selection",
    "command-name",
    "command-message",
    "command-contents",
    "local-command-stdout",
    "local-command-caveat",
    "environment_context",
    "environment_details",
    "user_instructions",
    "task-notification",
    "ci-monitor-event",
    "teammate-message",
    "agent-message",
    "cross-session-message",
    "subagent_notification",
    "turn_aborted",
    "skill",
    "oai-mem-citation",
];

/// Markers between which Codex shows its reviewing model another session, one text for each entry. The
/// entries of that session's user count as the user's words.
const TRANSCRIPTS: [[&str; 2]; 2] = [
    [">>> TRANSCRIPT START\n", ">>> TRANSCRIPT END\n"],
    [">>> TRANSCRIPT DELTA START\n", ">>> TRANSCRIPT DELTA END\n"],
];

/// Markers between which Gemini CLI quotes the files that a prompt names; the second may be missing.
const REFERENCED: [&str; 2] = ["--- Content from referenced files ---", "--- End of content ---"];

/// How the last lines of Spec Kit's templates begin, and their commands.
const TEMPLATE_ENDS: [(&str, &str); 6] = [
    ("Do not create a new template; always operate on", "/speckit.constitution"),
    ("- \"Redis cache hit rate above 80%\"", "/speckit.specify"),
    ("Context for prioritization: ", "/speckit.clarify"),
    ("- ERROR on gate failures", "/speckit.plan"),
    ("- **Final Phase**: ", "/speckit.tasks"),
    ("Note: This command assumes a complete task breakdown", "/speckit.implement"),
];

/// What the user typed behind a command of Spec Kit, around which Codex sends the command's template, and the template.
fn spec_kit(text: &str) -> Option<(&str, &str)> {
    let block =
        behind_ide(text).trim_start().strip_prefix("## User Input")?.trim_start().strip_prefix("```text")?;
    let (typed, template) = block.split_once("\n```")?;
    let is_template = template.trim_start().starts_with("You **MUST** consider the user input");
    // Codex's editor extension does not fill in the template: what was typed follows it.
    let follows = || {
        let end = TEMPLATE_ENDS.iter().filter_map(|it| template.rfind(it.0)).max();
        let listed =
            || template.rmatch_indices('\n').find(|it| has_marker(template[it.0 + 1..].trim_start()));
        let rest = &template[end.or_else(|| Some(listed()?.0 + 1)).unwrap_or(template.len())..];
        rest.split_once('\n').map_or("", |it| it.1)
    };
    let typed = if typed.trim() == "$ARGUMENTS" { follows() } else { typed };
    is_template.then(|| (typed.trim(), template))
}

/// The request, before which Codex's editor extension puts the editor's state.
fn behind_ide(text: &str) -> &str {
    text.split_once("## My request for Codex:\n").map_or(text, |it| it.1)
}

/// The command of Spec Kit whose template a text is, and whether nothing was typed behind it.
pub(in crate::facts) fn spec_kit_command(text: &str) -> Option<(&'static str, bool)> {
    let (typed, template) = spec_kit(text)?;
    let known = TEMPLATE_ENDS.iter().find(|it| template.contains(it.0));
    Some((known.map_or("/speckit", |it| it.1), typed.is_empty() && known.is_some()))
}

/// What the user typed behind a command of Spec Kit; of a command without arguments, the template's first sentence.
fn spec_kit_request(text: &str) -> Option<&str> {
    let (typed, template) = spec_kit(text)?;
    let first = || {
        let (_, body) = template.split_once("\n## ")?.1.split_once('\n')?;
        let line = body.trim_start().lines().next()?;
        let is_number = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
        let line = line.split_once(". ").filter(|it| is_number(it.0)).map_or(line, |it| it.1);
        line.split(". ").next()
    };
    if typed.is_empty() { first() } else { Some(typed) }
}

/// Of the template that OpenCode sends for `/init`, the first sentence, which says what is asked, and what the user typed
/// behind the command; any other text as it is.
fn of_opencode_init(text: &str) -> Vec<&str> {
    const FIRST: &str = "Create or update `AGENTS.md` for this repository.";
    let parts = || {
        let template = text.trim_start().strip_prefix(FIRST)?;
        let (_, rest) = template.split_once("User-provided focus or constraints (honor these):")?;
        let typed = rest.split_once("## How to investigate")?.0.trim();
        Some([&text.trim_start()[..FIRST.len()], typed])
    };
    parts().map_or(vec![text], |it| it.into_iter().filter(|it| !it.is_empty()).collect())
}

/// What the user wrote in the texts of a message: without injected elements, and of a transcript only the
/// user's entries.
pub(in crate::facts) fn user_text<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    // Claude Code wraps the arguments of a slash command in an element.
    let request = |it: &'a str| {
        let typed =
            it.trim_start().starts_with("<command-").then(|| it.split_once("<command-args>")).flatten();
        typed.and_then(|it| it.1.split_once("</command-args>")).map_or(behind_ide(it), |it| it.0)
    };
    let mut referenced = false;
    let typed = |it: &&'a str| {
        let begins = it.trim() == REFERENCED[0];
        let ends = it.trim() == REFERENCED[1];
        let within = referenced || begins;
        referenced = within && !ends;
        !within && !is_mark_of_image(it)
    };
    let texts = texts.filter(typed).flat_map(without_references);
    let request = |it: &'a str| spec_kit_request(it).unwrap_or_else(|| request(it));
    let texts: Vec<&str> = texts
        .flat_map(assigned)
        .flat_map(of_opencode_init)
        .map(unquoted)
        .map(request)
        .map(without_header)
        .map(task_of_pi)
        .collect();
    let mut out = Vec::new();
    for [start, end] in TRANSCRIPTS {
        let from = texts.iter().enumerate().find_map(|(at, it)| Some((at, it.find(start)?)));
        // The last end marker: the transcript may contain one itself.
        let to = texts.iter().enumerate().rev().find_map(|(at, it)| Some((at, it.rfind(end)? + end.len())));
        if let (Some(from), Some(to)) = (from, to)
            && from < to
        {
            texts[..from.0].iter().for_each(|it| without_elements(it, &mut out));
            without_elements(&texts[from.0][..from.1], &mut out);
            let mut by_user = false;
            for text in texts.get(from.0 + 1..to.0).unwrap_or_default() {
                let entry = text.trim_start().strip_prefix('[').and_then(|it| it.split_once("] "));
                let entry = entry.filter(|(number, _)| number.bytes().all(|it| it.is_ascii_digit()));
                let said = entry.map(|(_, said)| said.strip_prefix("user: "));
                by_user = said.map_or(by_user, |it| it.is_some());
                if by_user {
                    without_elements(said.flatten().unwrap_or(text), &mut out);
                }
            }
            without_elements(&texts[to.0][to.1..], &mut out);
            texts[to.0 + 1..].iter().for_each(|it| without_elements(it, &mut out));
            return out;
        }
    }
    texts.iter().for_each(|it| without_elements(it, &mut out));
    out
}

/// Whether a text is only the tag of an image beside it (Codex).
fn is_mark_of_image(text: &str) -> bool {
    let text = text.trim();
    text == "</image>" || text.starts_with("<image name=") && text.ends_with('>') && !text.contains('\n')
}

/// A prompt without the quotes that `opencode run` puts around an argument with spaces, escaping those
/// inside.
fn unquoted(text: &str) -> &str {
    let inner = text.trim().strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let is_escaped = |it: &str| it.match_indices('"').all(|(at, _)| it[..at].ends_with('\\'));
    inner.filter(|it| it.contains(' ') && is_escaped(it)).unwrap_or(text)
}

/// The name of a slash command that Claude Code sends as elements, with its slash.
pub(in crate::facts) fn slash_command(text: &str) -> Option<&str> {
    let command = Some(text).filter(|it| it.trim_start().starts_with("<command-"))?;
    Some(command.split_once("<command-name>")?.1.split_once("</command-name>")?.0.trim())
}

/// Whether a line is the name of a slash command and nothing else.
pub(crate) fn is_slash_command(line: &str) -> bool {
    line.strip_prefix('/').is_some_and(|it| !it.is_empty() && !it.contains([' ', '/', '"']))
}

/// A text without the files that older versions of Gemini CLI quote in it.
fn without_references(text: &str) -> Vec<&str> {
    let Some((before, rest)) = text.split_once(REFERENCED[0]) else { return vec![text] };
    let after = rest.rsplit_once(REFERENCED[1]).map_or("", |it| it.1);
    [before, after].into_iter().filter(|it| !it.trim().is_empty()).collect()
}

/// The requests in messages from the lead of a Claude Code agent team; any other text as it is.
fn assigned<'a>(text: &'a str) -> Vec<&'a str> {
    const FROM_LEAD: &str = "<teammate-message teammate_id=\"team-lead\"";
    if !text.trim_start().starts_with(FROM_LEAD) {
        return vec![text];
    }
    let body = |it: &'a str| {
        let body = it.split_once('>')?.1.split("</teammate-message>").next()?.trim();
        if !body.starts_with('{') {
            return Some(body);
        }
        let task = body.strip_prefix(r#"{"type":"task_assignment""#)?.split_once(r#""subject":""#)?.1;
        Some(task.split_once(r#"",""#).map_or(task, |it| it.0))
    };
    text.split(FROM_LEAD).skip(1).filter_map(body).collect()
}

/// The task in a message from another Codex agent, without its header. Empty for other such messages: reports
/// are not the user's words. Any other text as it is.
fn without_header(text: &str) -> &str {
    let Some(header) = text.trim_start().strip_prefix("Message Type: ") else { return text };
    let task = header.starts_with("NEW_TASK").then(|| header.split_once("\nPayload:"));
    task.flatten().map_or("", |it| it.1)
}

/// The task that pi-subagents gives a forked or resumed session, without what it puts around it; its note on the number
/// of calls asks for nothing. Any other text as it is.
fn task_of_pi(text: &str) -> &str {
    const BEGINS: [(&str, &str); 2] = [
        ("You are a delegated subagent running from a fork of the parent session.", "\nTask:\n"),
        ("You are reviving a previous subagent conversation.", "\nFollow-up:\n"),
    ];
    if text.starts_with("Tool budget soft limit reached after ") {
        return "";
    }
    let task = BEGINS.iter().find_map(|(begins, task)| {
        let (before, rest) = text.split_once(begins)?;
        let (_, task) = rest.split_once(task)?;
        (before.is_empty() || before.starts_with("Task: ")).then_some(task)
    });
    task.map_or(text, |it| it.split_once("\n## Acceptance Contract\n").map_or(it, |it| it.0).trim())
}

fn without_elements<'a>(mut rest: &'a str, out: &mut Vec<&'a str>) {
    let mut from = 0;
    while let Some(found) = rest[from..].find('<') {
        let at = from + found;
        let tag = &rest[at + 1..];
        let name =
            INJECTED.iter().find(|it| tag.starts_with(**it) && tag[it.len()..].starts_with(['>', ' ', '\n']));
        match name {
            Some(name) => {
                out.push(&rest[..at]);
                let end =
                    tag.find(&format!("</{name}>")).map_or(rest.len(), |it| at + 1 + it + name.len() + 3);
                rest = &rest[end..];
                from = 0;
            }
            None => from = at + 1,
        }
    }
    out.push(rest);
    out.retain(|it| !it.trim().is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_injected_or_is_evidence_is_not_the_users_own() {
        for (text, expected) in [
            ("a\n<system-reminder>never</system-reminder>\nb", vec!["a\n", "\nb"]),
            ("## Open tabs: x\n## My request for Codex:\nfix it", vec!["fix it"]),
            (
                "\n## User Input\n\n```text\ndo T012\n```\n\nYou **MUST** consider the user input before proceeding.\n\n## Outline",
                vec!["do T012"],
            ),
            (
                "## User Input\n\n```text\n\n```\n\nYou **MUST** consider the user input.\n\n## Goal\n\nFind gaps in the pump. It MUST run alone.\n",
                vec!["Find gaps in the pump"],
            ),
            (
                "## User Input\n\n```text\n\n```\n\nYou **MUST** consider the user input.\n\n## Outline\n\n1. **Setup**: Run `a.sh`. Then b.\n",
                vec!["**Setup**: Run `a.sh`"],
            ),
            (
                "## My request for Codex:\n## User Input\n\n```text\n$ARGUMENTS\n```\n\nYou **MUST** consider the user input.\n\n## Key rules\n\n- ERROR on gate failures or so\nadd a valve\n\n- and a lid\n",
                vec!["add a valve\n\n- and a lid"],
            ),
            (
                "## User Input\n\n```text\n$ARGUMENTS\n```\n\nYou **MUST** consider the user input.\n\n## Goal\n\nFind gaps. It MUST run alone.\n\n- a\nT016\n",
                vec!["T016"],
            ),
            (
                "## User Input\n\n```text\n$ARGUMENTS\n```\n\nYou **MUST** consider the user input.\n\n## Goal\n\nFind gaps. It MUST run alone.\n\n- a\n",
                vec!["Find gaps"],
            ),
            (
                "## User Input\r\n\r\n```text\r\nadd it\r\n```\r\n\r\nYou **MUST** consider the user input.\r\n",
                vec!["add it"],
            ),
            (
                "Create or update `AGENTS.md` for this repository.\n\nUser-provided focus or constraints (honor these):\nthe pump\n\n## How to investigate\n",
                vec!["Create or update `AGENTS.md` for this repository.", "the pump"],
            ),
            (
                "Create or update `AGENTS.md` for this repository.\n\nUser-provided focus or constraints (honor these):\n\n\n## How to investigate\n",
                vec!["Create or update `AGENTS.md` for this repository."],
            ),
            ("\"# Task\nSay \\\"done\\\" at the end.\"", vec!["# Task\nSay \\\"done\\\" at the end."]),
            ("\"not found\" and \"no such file\"", vec!["\"not found\" and \"no such file\""]),
            (
                "Assess this:\n>>> TRANSCRIPT DELTA START\n[1] user: never push\n>>> TRANSCRIPT DELTA END\nThe request:",
                vec!["Assess this:\n", "The request:"],
            ),
            (
                "Assess:¶>>> TRANSCRIPT START\n¶[1] user: never push\n¶[2] tool result: x\n>>> TRANSCRIPT END\n¶y\n¶>>> TRANSCRIPT END\n¶The request:",
                vec!["Assess:", "never push\n", "The request:"],
            ),
            (
                "Message Type: NEW_TASK\nTask name: /root/a\nSender: /root\nPayload:\nread it",
                vec!["\nread it"],
            ),
            ("Message Type: FINAL_ANSWER\nSender: /root/a\nPayload:\nit must go", vec![]),
            (
                "Task: [Read from: /tmp/w/plan.md]\n\nYou are a delegated subagent running from a fork of the parent session. Your sole job is the task below.\n\nTask:\nmend it\n\n## Acceptance Contract\nlevel: attested",
                vec!["mend it"],
            ),
            (">>> TRANSCRIPT START\nno end", vec![">>> TRANSCRIPT START\nno end"]),
        ] {
            assert_eq!(user_text(text.split('¶')), expected, "{text}");
        }
    }

    #[test]
    fn leaves_out_what_clients_inject() {
        assert_eq!(user_text(["a<system-reminder>never</system-reminder>b < c"].into_iter()), ["a", "b < c"]);
        assert_eq!(user_text(["<system-reminder>unclosed"].into_iter()), Vec::<&str>::new());
        let quoted = [
            "Look at @a",
            "\n--- Content from referenced files ---",
            "never",
            "\n--- End of content ---",
            "b",
        ];
        assert_eq!(user_text(quoted.into_iter()), ["Look at @a", "b"]);
        assert_eq!(user_text(["<image name=[Image #1]>", "</image>", "a"].into_iter()), ["a"]);
    }
}
