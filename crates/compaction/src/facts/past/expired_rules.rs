//! Rules that end with the request they were given for.

use super::superseded::is_request;
use crate::facts::talk::orders::for_one_request;
use crate::facts::text::clip;
use crate::facts::{Fact, Topic, Voice};
use history::{History, Message};

/// The first characters of a prompt, in lower case, in which it says what it is.
fn head(message: &Message) -> String {
    const HEAD: usize = 400;
    clip(&message.plain(), HEAD).0.to_lowercase()
}

/// Whether a rule is part of the text that the client put in the place of a slash command: of a skill, or of `/init`
/// outside of what the user typed behind it.
fn is_of_client_text(rule: &Fact, prompt: &Message) -> bool {
    // How the `/init` commands of OpenCode, Claude Code and Codex begin.
    const INIT: [&str; 4] = [
        "create or update `agents.md` for this repository",
        "please analyze this codebase and create an agents.md",
        "please analyze this codebase and create a claude.md",
        "generate a file named agents.md that serves as a contributor guide",
    ];
    let head = head(prompt);
    if head.starts_with("# ") && head.contains("\nuse this skill ") {
        return true;
    }
    let text = prompt.plain();
    let typed = text.split_once("(honor these):").map_or("", |it| it.1);
    let typed = typed.split_once("\n## How to investigate").map_or(typed, |it| it.0);
    INIT.iter().any(|it| head.trim_start().starts_with(it)) && !typed.contains(&*rule.text)
}

/// Drops rules that were given for one request, once the user has made another. Rules within the steps of a procedure
/// were asked for in its task.
pub(in crate::facts) fn drop_expired_rules(history: &History, facts: &mut Vec<Fact>) {
    let Some(newest) = history.messages().iter().rposition(is_request) else { return };
    let messages = history.messages();
    let old_rule = |it: &Fact| {
        let rule = matches!(it.topic, Topic::Constraints | Topic::Directives);
        rule && it.voice() == Voice::User && it.message < newest
    };
    let of_client = |it: &Fact| messages.get(it.message).is_some_and(|prompt| is_of_client_text(it, prompt));
    facts.retain(|it| !(old_rule(it) && (for_one_request(&it.text) || of_client(it))));
    let of_steps =
        |it: &Fact| messages.get(it.message).is_some_and(|it| head(it).contains("follow these steps"));
    for fact in facts.iter_mut().filter(|it| old_rule(it) && of_steps(it)) {
        fact.topic = Topic::Directives;
    }
}
