//! Rules that end with the request they were given for.

use crate::facts::talk::replies::is_request;
use crate::facts::text::clip;
use crate::facts::text::rule::for_one_request;
use crate::facts::{Fact, Topic, Voice};
use history::{History, Message};

/// Drops rules that were given for one request, once the user has made another.
pub(in crate::facts) fn drop_expired_rules(history: &History, facts: &mut Vec<Fact>) {
    let Some(newest) = history.messages().iter().rposition(is_request) else { return };
    let messages = history.messages();
    let old_rule = |it: &Fact| {
        let rule = matches!(it.topic, Topic::Constraints | Topic::Directives);
        rule && it.voice() == Voice::User && it.message < newest
    };
    let of_client = |it: &Fact| messages.get(it.message).is_some_and(|prompt| is_of_client_text(it, prompt));
    facts.retain(|it| !(old_rule(it) && (for_one_request(&it.text) || of_client(it))));
}

/// Whether a rule is part of the text that the client put in the place of a slash command: of a skill, or of OpenCode's
/// `/init` outside of what the user typed behind it.
fn is_of_client_text(rule: &Fact, prompt: &Message) -> bool {
    /// Characters at the beginning of a skill in which it says what it is.
    const HEAD: usize = 400;
    let text = prompt.plain();
    let head = clip(&text, HEAD).0.to_lowercase();
    if head.starts_with("# ") && head.contains("\nuse this skill ") {
        return true;
    }
    let Some((begin, _)) = text.split_once("\n## How to investigate") else { return false };
    let typed = begin.split_once("(honor these):").map_or("", |it| it.1);
    head.starts_with("create or update `agents.md` for this repository") && !typed.contains(&*rule.text)
}
