//! Finds where a profile contradicts itself.

use super::{Budget, Keep, Pass, Profile, Replace, Select, Slot, Summarize, SummaryShape, TooLong, Turns};

pub(super) struct ProfileProblem {
    /// Line in the profile's text, if known.
    pub(super) line: Option<u64>,
    pub(super) what: String,
}

/// All contradictions of a profile, in the order of its text.
pub(super) fn problems(profile: &Profile, text: &str) -> Vec<ProfileProblem> {
    let mut out = Vec::new();
    trigger(profile, &mut |what| out.push(ProfileProblem { line: line_of(text, "[trigger]", 0), what }));
    if profile.passes.is_empty() {
        out.push(ProfileProblem { line: None, what: "pass: expected at least one, found none".to_owned() });
    }
    for (number, pass) in profile.passes.iter().enumerate() {
        let line = line_of(text, "[[pass]]", number);
        let place = match line {
            Some(line) => format!("pass {} (line {line})", number + 1),
            None => format!("pass {}", number + 1),
        };
        let mut say = |what: String| out.push(ProfileProblem { line, what: format!("{place}: {what}") });
        match pass {
            Pass::Outputs(step) => {
                if let Replace::Ends(ends) = &step.replace {
                    share("replace.ends.head", ends.head, &mut say);
                }
                if let Select::Beyond(protect) | Select::Unfit(protect) = step.select
                    && protect < step.minimum
                {
                    say(format!("protects {protect} tokens, fewer than the minimum of {}", step.minimum));
                }
            }
            Pass::Snip(step) => {
                if step.head + step.tail > step.above {
                    let kept = step.head + step.tail;
                    say(format!("keeps {kept} messages of histories above {}", step.above));
                }
            }
            Pass::Collapse(step) => {
                if !step.line.contains("{recall}") {
                    say("line: expected {recall}, without which a turn could not be undone".to_owned());
                }
            }
            Pass::Summarize(step) => summarize(profile, step, &mut say),
        }
    }
    out
}

fn trigger(profile: &Profile, say: &mut dyn FnMut(String)) {
    let trigger = &profile.trigger;
    if let Some(value) = trigger.share {
        share("trigger.share", value, say);
    }
    for (name, value) in [("tokens", trigger.tokens), ("chars", trigger.chars), ("window", trigger.window)] {
        if value == Some(0) {
            say(format!("trigger.{name}: expected more than 0, at which every history would be compacted"));
        }
    }
    if let Some(next) = trigger.next {
        share("trigger.next.share", next.share, say);
    }
    if let (Some(window), Some(reserve)) = (trigger.window, trigger.reserve_output)
        && reserve + trigger.buffer.unwrap_or(0) >= window
    {
        say(format!("trigger: keeps {reserve} tokens or more free of a window of {window}"));
    }
}

/// The layouts of a summarizing step, for any cause.
fn layouts(step: &Summarize) -> impl Iterator<Item = &Vec<Slot>> {
    [Some(&step.layout), step.layout_auto.as_ref(), step.layout_overflow.as_ref()].into_iter().flatten()
}

fn summarize(profile: &Profile, step: &Summarize, say: &mut dyn FnMut(String)) {
    for layout in layouts(step) {
        let summaries = layout.iter().filter(|it| **it == Slot::Summary).count();
        if summaries != 1 {
            say(format!("its layout: expected one place for the summary, found {summaries}"));
        }
    }
    if step.summary.sections.is_empty() {
        say("its summary has no sections".to_owned());
    }
    if step.summary.slice_minutes > 0 && step.summary.shape == SummaryShape::Xml {
        say("summary.slice-minutes: expected a shape with headings, found xml".to_owned());
    }
    if step.summary.max_tokens == 0 {
        say("summary.max-tokens: expected more than 0".to_owned());
    }
    if let TooLong::Rounds(rounds) = step.too_long {
        share("too-long.rounds.share", rounds.share, say);
    }
    let most = match &step.keep {
        Keep::ShareBehind(value) => {
            if !(0.0 < *value && *value < 1.0) {
                say(format!("keep.share-behind: expected a share above 0 and below 1, found {value}"));
            }
            0
        }
        Keep::Budget(budget) => {
            share("keep.budget.share", budget.share, say);
            share("keep.budget.summary", budget.summary, say);
            budget.maximum
        }
        Keep::Turns(turns) => {
            share("keep.turns.share", turns.share, say);
            turns.tokens.unwrap_or(turns.maximum)
        }
        Keep::UserMessages(kept) => {
            if kept.joined != step.before.contains("{user-messages}") {
                say("keep.user-messages.joined: expected {user-messages} in `before` with it, and none without".into());
            }
            kept.tokens
        }
        Keep::Nothing | Keep::Messages(_) => 0,
    };
    if let Keep::Budget(Budget { minimum, maximum, .. }) | Keep::Turns(Turns { minimum, maximum, .. }) =
        step.keep
        && minimum > maximum
    {
        say(format!("keeps at least {minimum} but at most {maximum} tokens"));
    }
    let room = [profile.trigger.tokens, profile.trigger.window, profile.trigger.window_at_most];
    if let Some(room) = room.into_iter().flatten().min()
        && most >= room
    {
        say(format!("keeps {most} tokens, more than the {room} at which it compacts"));
    }
}

fn share(what: &str, value: f64, say: &mut dyn FnMut(String)) {
    if !(0.0 < value && value <= 1.0) {
        say(format!("{what}: expected a share above 0 and up to 1, found {value}"));
    }
}

/// The 1-based line of the `number`-th line, counted from 0, that reads `head`.
fn line_of(text: &str, head: &str, number: usize) -> Option<u64> {
    let found = text.lines().enumerate().filter(|(_, line)| line.trim() == head).nth(number);
    found.map(|(at, _)| at as u64 + 1)
}

/// The 1-based line of the word that a parser's message names first in backticks. Where a profile extends
/// another, the parser reads the two merged, so its message has no position in this text.
pub(super) fn line_of_mistake(text: &str, message: &str) -> Option<u64> {
    let name = message.split('`').nth(1)?;
    let part = |it: char| it.is_alphanumeric() || matches!(it, '-' | '_');
    let is_word = |line: &str, at: usize| {
        let before = line[..at].chars().next_back();
        let after = line[at + name.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    };
    let holds = |line: &str| {
        let line = if line.trim_start().starts_with('#') { "" } else { line };
        !name.is_empty() && line.match_indices(name).any(|(at, _)| is_word(line, at))
    };
    let found = text.lines().position(holds)?;
    Some(found as u64 + 1)
}

#[cfg(test)]
mod tests {
    use crate::profile::Profile;

    const SUMMARY: &str =
        "layout = [\"summary\"]\n[pass.summary]\nsections = [{ title = \"a\", holds = [\"goal\"] }]\n";

    const CODEX: &str = include_str!("../../../../prompts/codex/profile.toml");

    fn mistake(text: &str) -> (String, Option<u64>) {
        let text = format!("name = \"x\"\nabout = \"\"\nfollows = \"\"\n{text}");
        let error = Profile::parse(&text, "x.toml", &[("codex", CODEX)]).unwrap_err();
        (error.to_string(), error.place().and_then(|it| it.line))
    }

    #[test]
    fn each_contradiction_has_its_place() {
        let pass = |fields: &str| format!("[[pass]]\ndo = \"summarize\"\n{fields}\n{SUMMARY}");
        let cases = [
            (format!("[trigger]\nshare = 0.0\n{}", pass("keep = \"nothing\"")), "trigger.share", 4),
            (format!("[trigger]\ntokens = 0\n{}", pass("keep = \"nothing\"")), "trigger.tokens", 4),
            (
                format!("[trigger]\nwindow = 30_000\nreserve-output = 32_000\n{}", pass("keep = \"nothing\"")),
                "keeps 32000 tokens or more free of a window of 30000",
                4,
            ),
            (
                "[trigger]\n[[pass]]\ndo = \"outputs\"\nselect = { beyond = 10 }\nminimum = 20\nreplace = { placeholder = \"\" }\n".to_owned(),
                "protects 10 tokens, fewer than the minimum of 20",
                5,
            ),
            (
                format!("[trigger]\ntokens = 1_000\n{}", pass("keep = { user-messages = { tokens = 2_000 } }")),
                "keeps 2000 tokens, more than the 1000 at which it compacts",
                6,
            ),
            (
                format!("[trigger]\n{}", pass("keep = { turns = { share = 0.1, minimum = 9, maximum = 8 } }")),
                "keeps at least 9 but at most 8",
                5,
            ),
            ("[trigger]\n[[pass]]\ndo = \"fold\"\n".to_owned(), "unknown variant `fold`", 6),
            ("extends = 3\n[trigger]\n".to_owned(), "extends: expected the name", 0),
            ("extends = \"nobody\"\n".to_owned(), "found \"nobody\"", 4),
            ("extends = \"codex\"\n[trigger]\nshares = 0.1\nshare = 0.2\n".to_owned(), "unknown field `shares`", 6),
            (
                "extends = \"codex\"\n[[pass]]\n# fold\ndo = \"fold\"\n".to_owned(),
                "unknown variant `fold`",
                7,
            ),
            ("extends = \"codex\"\n[trigger]\nshare = 1.5\n".to_owned(), "expected a share", 5),
        ];
        for (text, what, line) in cases {
            let (error, at) = mistake(&text);
            assert!(error.contains(what), "{error}");
            assert!(line == 0 || at == Some(line), "{error}: {at:?}");
        }
        let (error, _) = mistake("[trigger]\n");
        assert!(error.contains("pass"), "{error}");
    }

    #[test]
    fn a_circle_of_profiles_is_called_one() {
        let bases = [("a", "extends = \"b\""), ("b", "extends = \"a\"")];
        let error = Profile::parse("extends = \"a\"", "mine", &bases).unwrap_err().to_string();
        assert!(error.contains("found a cycle or a longer chain at \"a\""), "{error}");
    }
}
