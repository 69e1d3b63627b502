//! Codex: which user messages stay, how they are cut, how the history is rebuilt (seed 001; reference 1.4, 1.5, 1.7).

use epitome::compaction::profile::{Keep, Pass, Profile};
use epitome::history::{Kind, Message, Part, Role};
use epitome::tokens::middle;

use super::{Dice, differences, rounds, same, texts};
use crate::vectors::{Wish, call, history, model, plan, profile, result};

/// Where a cut may fall: not inside of a character.
fn down(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn up(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// `truncate_middle_with_token_budget`, the current one: the marker comes on top.
fn by_tokens(text: &str, tokens: usize) -> String {
    let bytes = tokens * 4;
    if text.is_empty() || (tokens > 0 && text.len() <= bytes) {
        return text.to_owned();
    }
    let (left, right) = (bytes / 2, bytes - bytes / 2);
    let start = down(text, left.min(text.len()));
    let end = up(text, text.len() - right.min(text.len())).max(start);
    format!("{}…{} tokens truncated…{}", &text[..start], (text.len() - bytes).div_ceil(4), &text[end..])
}

/// `truncate_middle` of 0.46: the marker counts, a line break behind it does not; line breaks are preferred.
fn by_lines(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let all = text.len().div_ceil(4);
    let marker = |tokens: usize| format!("…{tokens} tokens truncated…");
    if bytes == 0 {
        return marker(all);
    }
    let ends = |room: usize| {
        let (left, right) = (room / 2, room - room / 2);
        let start = match text.get(..left).and_then(|it| it.rfind('\n')) {
            Some(at) => at + 1,
            None => down(text, left),
        };
        let tail = text.len() - right;
        let end = match text.get(tail..).and_then(|it| it.find('\n')) {
            Some(at) => tail + at + 1,
            None => up(text, tail),
        };
        (start, end.max(start))
    };
    let mut tokens = all;
    for _ in 0..5 {
        let Some(room) = bytes.checked_sub(marker(tokens).len()).filter(|it| *it > 0) else {
            return marker(all);
        };
        let (start, end) = ends(room);
        let gone = (end - start).div_ceil(4);
        if gone == tokens {
            break;
        }
        tokens = gone;
    }
    let Some(room) = bytes.checked_sub(marker(tokens).len()).filter(|it| *it > 0) else { return marker(all) };
    let (start, end) = ends(room);
    format!("{}{}\n{}", &text[..start], marker(tokens), &text[end..])
}

/// The article's: half from each end, and its marker on top.
fn by_mark(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let start = down(text, bytes / 2);
    let end = up(text, text.len() - (bytes - bytes / 2)).max(start);
    format!("{}... [tokens truncated] ...{}", &text[..start], &text[end..])
}

#[test]
fn cuts() {
    differences("codex cuts", rounds(), |dice| {
        let chars = dice.length(0, 200);
        let text = dice.text(chars);
        let budget = dice.length(0, 80);
        same(
            &format!("{text:?} to {budget} tokens"),
            &middle::by_tokens(&text, budget),
            &by_tokens(&text, budget),
        )?;
        same(
            &format!("{text:?} to {budget} bytes"),
            &middle::within_bytes(&text, budget).0,
            &by_lines(&text, budget),
        )
    });
}

#[derive(Debug, Clone)]
enum Item {
    User(Vec<String>),
    Model(String),
    Tool,
}

const PREFIX: &str = "Another language model started to solve this problem";

fn session(dice: &mut Dice) -> Vec<Item> {
    let mut out = Vec::new();
    for _ in 0..dice.length(1, 12) {
        let chars = dice.length(1, 60);
        let text = dice.text(chars);
        out.push(match dice.of(0, 9) {
            0..=3 => Item::User(vec![text]),
            4 => Item::User(vec![text, "and more".to_owned()]),
            5 => {
                let (open, close) = dice.one(&[
                    ("<environment_context>", "</environment_context>"),
                    ("<ENVIRONMENT_CONTEXT>", "</Environment_Context>"),
                    ("<user_instructions>", "</user_instructions>"),
                    ("# AGENTS.md instructions", "</INSTRUCTIONS>"),
                    ("<turn_aborted>", "</turn_aborted>"),
                    ("<user_shell_command>", "</user_shell_command>"),
                ]);
                match dice.of(0, 3) {
                    // Opened and not closed, or closed and not opened: somebody's words.
                    0 => Item::User(vec![format!("{open}{text}.")]),
                    1 => Item::User(vec![format!("see {open}{text}{close}")]),
                    _ => Item::User(vec![format!(" {open}{text}{close}\n")]),
                }
            }
            6 => Item::User(vec![format!("{PREFIX} and so on\n{text}")]),
            7 => Item::Tool,
            _ => Item::Model(text),
        });
    }
    // Nothing to summarise is another case.
    out.push(Item::Model("so it is".to_owned()));
    out
}

fn ours(session: &[Item]) -> Vec<Message> {
    let mut out = Vec::new();
    for (at, item) in session.iter().enumerate() {
        match item {
            Item::User(texts) => {
                let parts = texts.iter().map(|it| Part::Text(it.as_str().into())).collect();
                out.push(Message::new(Role::User, Kind::Said, parts));
            }
            Item::Model(text) => out.push(model(text)),
            Item::Tool => {
                out.extend([call(&at.to_string(), "shell"), result(&at.to_string(), "some output")])
            }
        }
    }
    out
}

fn fenced(text: &str, fences: &[(&str, &str)]) -> bool {
    let text = text.trim().to_ascii_lowercase();
    fences.iter().any(|(open, close)| {
        text.starts_with(&open.to_ascii_lowercase()) && text.ends_with(&close.to_ascii_lowercase())
    })
}

fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// `collect_user_messages` and `build_compacted_history` since November 2025.
fn now(session: &[Item], budget: usize) -> Vec<String> {
    let fences = [
        ("<environment_context>", "</environment_context>"),
        ("# AGENTS.md instructions", "</INSTRUCTIONS>"),
        ("<turn_aborted>", "</turn_aborted>"),
        ("<user_shell_command>", "</user_shell_command>"),
    ];
    let users = session.iter().filter_map(|it| if let Item::User(texts) = it { Some(texts) } else { None });
    let users: Vec<String> = users
        .filter(|texts| !texts.iter().any(|it| fenced(it, &fences)))
        .map(|texts| texts.concat())
        .filter(|it| !it.starts_with(PREFIX))
        .collect();
    let (mut left, mut kept) = (budget, Vec::new());
    for text in users.iter().rev() {
        if left == 0 {
            break;
        }
        if tokens(text) <= left {
            left -= tokens(text);
            kept.push(text.clone());
        } else {
            kept.push(by_tokens(text, left));
            break;
        }
    }
    kept.reverse();
    kept
}

/// The same in 0.46: all in one text.
fn then(session: &[Item], bytes: usize, cut: fn(&str, usize) -> String) -> String {
    let fences = [
        ("<environment_context>", "</environment_context>"),
        ("<user_instructions>", "</user_instructions>"),
    ];
    let users = session.iter().filter_map(|it| if let Item::User(texts) = it { Some(texts) } else { None });
    let users: Vec<String> = users.map(|it| it.join("\n")).filter(|it| !fenced(it, &fences)).collect();
    let text = users.join("\n\n");
    match users.is_empty() {
        true => "(none)".to_owned(),
        false => cut(&text, bytes),
    }
}

fn small(name: &str, tokens: u64) -> Profile {
    let mut profile = profile(name);
    for pass in &mut profile.passes {
        if let Pass::Summarize(step) = pass
            && let Keep::UserMessages(rule) = &mut step.keep
        {
            assert_eq!(rule.tokens, 20_000);
            rule.tokens = tokens;
        }
    }
    profile
}

#[test]
fn rebuilds() {
    for budget in [0, 5, 20, 60] {
        let profile = small("codex@0.169", budget);
        let mut cut = 0;
        differences(&format!("codex@0.169, {budget} tokens of user messages"), rounds() / 4, |dice| {
            let session = session(dice);
            let history = history(ours(&session));
            let plan = plan(&profile, &history, Wish::default());
            let mut found = texts(&history, &plan);
            let summary = found.pop().unwrap_or_default();
            let theirs = now(&session, budget as usize);
            cut += u64::from(theirs.iter().any(|it| it.contains("tokens truncated…")));
            same(&format!("{session:?}"), &found, &theirs)?;
            same(
                "the summary comes last, behind its prefix",
                &(summary.starts_with(PREFIX), summary.ends_with("\nS")),
                &(true, true),
            )
        });
        assert!(cut > rounds() / 60 || budget == 0, "{cut} are cut");
    }
    for (name, cut) in [("codex", by_mark as fn(&str, usize) -> String), ("codex@0.46", by_lines)] {
        for budget in [12, 30, 100] {
            let profile = small(name, budget);
            let mut short = 0;
            differences(&format!("{name}, {budget} tokens of user messages"), rounds() / 3, |dice| {
                let session = session(dice);
                let history = history(ours(&session));
                let plan = plan(&profile, &history, Wish::default());
                let theirs = then(&session, budget as usize * 4, cut);
                short += u64::from(theirs.contains("tokens truncated"));
                let found = texts(&history, &plan);
                same(&format!("{session:?}: messages"), &found.len(), &1)?;
                let said = found[0].contains(&format!("\n\n{theirs}\n\n"));
                same(&format!("{session:?}: {:?} holds {theirs:?}", found[0]), &said, &true)
            });
            assert!(short > rounds() / 60 && short < rounds() / 3, "{short} are cut");
        }
    }
}
