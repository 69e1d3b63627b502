//! What the ledger says is true now, against what a person found who read the sessions to their end.
//!
//! `tests/labels/now/NAME.toml`, a session each: `open` and `rules` rows are message, hash of the text, and whether a
//! person agrees: that the item is open at the end, that the rule is an order of the user which binds beyond one act; it counts
//! as found under what was asked for in the task, too.
//! `goal` and `last` are the messages that ask for what is pursued at the end, and for something last. No text of a
//! session is in them. Half of the repositories were looked at while the rules were written, the others only after.

use std::collections::BTreeMap;
use std::path::Path;

use epitome::compaction::facts::{self, Detail, Fact, Ledger, Topic, Voice};
use epitome::history::tools::{self, Meaning};
use epitome::history::{History, Message, Part};
use serde::Deserialize;

use crate::corpus;

#[derive(Deserialize)]
struct Labels {
    session: String,
    goal: Vec<usize>,
    last: usize,
    #[serde(default)]
    open: Vec<(usize, String, bool)>,
    #[serde(default)]
    rules: Vec<(usize, String, bool)>,
}

fn hash(text: &str) -> String {
    let flat: Vec<&str> = text.split_whitespace().collect();
    format!("{:08x}", twox_hash::XxHash3_64::oneshot(flat.join(" ").as_bytes()) as u32)
}

/// The repository that a session is of: its name up to `--`.
fn repository(session: &str) -> &str {
    let name = session.rsplit('/').next().unwrap_or(session);
    name.split("--").next().unwrap_or(name)
}

fn labels() -> Vec<Labels> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/labels/now");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    files.iter().map(|it| toml::from_str(&std::fs::read_to_string(it).unwrap()).unwrap()).collect()
}

/// Told and right, told, right and told at all, right.
#[derive(Default)]
struct Row {
    told: usize,
    right: usize,
    found: usize,
    wanted: usize,
    unjudged: usize,
}

impl Row {
    fn judge<'a>(
        &mut self,
        session: &str,
        told: impl Iterator<Item = &'a Fact>,
        also: impl Iterator<Item = &'a Fact>,
        judged: &[(usize, String, bool)],
    ) {
        let known = |it: &Fact| judged.iter().find(|known| known.1 == hash(&it.text));
        let told: Vec<&Fact> = told.collect();
        for fact in &told {
            match known(fact) {
                Some(known) => {
                    self.told += 1;
                    self.right += usize::from(known.2);
                    if !known.2 {
                        eprintln!("{session} #{}: wrong: {}", fact.message, fact.text);
                    }
                }
                None => self.unjudged += 1,
            }
        }
        let all: Vec<String> = told.into_iter().chain(also).map(|it| hash(&it.text)).collect();
        for wanted in judged.iter().filter(|it| it.2) {
            self.wanted += 1;
            if all.contains(&wanted.1) {
                self.found += 1;
            } else {
                eprintln!("{session} #{}: not told: {}", wanted.0, wanted.1);
            }
        }
    }
}

/// The message that asks for what is pursued now, as the summary has it.
fn pursued(history: &History, ledger: &Ledger) -> Option<usize> {
    let goal = ledger.about(Topic::Goal).next()?.message;
    let answered = facts::last_answered(history).is_some_and(|it| it > goal);
    if answered { last(ledger) } else { Some(goal) }
}

/// The last request that says something.
fn last(ledger: &Ledger) -> Option<usize> {
    let asks =
        |it: &&Fact| it.topic == Topic::Requests || it.topic == Topic::Last && it.voice() == Voice::User;
    ledger.facts.iter().filter(asks).map(|it| it.message).max()
}

fn steps(ledger: &Ledger) -> impl Iterator<Item = &Fact> {
    ledger.about(Topic::Active).chain(ledger.about(Topic::Open))
}

#[test]
fn what_is_told_as_true_now_is() {
    let Some(folder) = corpus::corpus_for("what_is_told_as_true_now_is") else { return };
    let mut rows: BTreeMap<(&str, bool), Row> = BTreeMap::new();
    let mut sessions = 0;
    for label in labels() {
        let Some(session) = super::corpus::read(&folder, &label.session) else { continue };
        let (history, ledger) = (&session.history, facts::read(&session.history));
        sessions += 1;
        let seen = ["cli", "agentv", "git-ai", "pi-mono"].contains(&repository(&label.session));
        let open = rows.entry(("open", seen)).or_default();
        open.judge(&label.session, steps(&ledger), ledger.about(Topic::Unconfirmed), &label.open);
        let rules = rows.entry(("rules", seen)).or_default();
        rules.judge(
            &label.session,
            ledger.about(Topic::Constraints),
            ledger.about(Topic::Directives),
            &label.rules,
        );
        for (what, told, wanted) in [
            ("goal", pursued(history, &ledger), label.goal.as_slice()),
            ("last", last(&ledger), std::slice::from_ref(&label.last)),
        ] {
            let row = rows.entry((what, seen)).or_default();
            let right = told.is_some_and(|it| wanted.contains(&it));
            if !right {
                eprintln!("{what}: {} says {told:?}, not {wanted:?}", label.session);
            }
            row.told += 1;
            row.wanted += 1;
            row.right += usize::from(right);
            row.found += usize::from(right);
        }
    }
    eprintln!(
        "{sessions} sessions\npart   read before  told right precision  wanted found recall  not judged"
    );
    for ((part, seen), it) in &rows {
        let share = |a: usize, b: usize| a as f64 / b.max(1) as f64;
        eprintln!(
            "{part:6} {seen:11} {:5} {:5} {:9.3} {:7} {:5} {:6.3} {:11}",
            it.told,
            it.right,
            share(it.right, it.told),
            it.wanted,
            it.found,
            share(it.found, it.wanted),
            it.unjudged
        );
    }
    for part in ["open", "rules", "goal", "last"] {
        let both = rows.iter().filter(|it| it.0.0 == part).map(|it| it.1);
        let sum = |of: fn(&Row) -> usize| both.clone().map(of).sum::<usize>();
        let (right, told) = (sum(|it| it.right), sum(|it| it.told));
        let (found, wanted) = (sum(|it| it.found), sum(|it| it.wanted));
        assert!(right * 100 >= told * 95, "{part}: {right} of {told} right");
        let least = if part == "open" { 90 } else { 95 };
        assert!(found * 100 >= wanted * least, "{part}: {found} of {wanted} found");
    }
}

/// The exit code that the agent reports beside or in an output: OpenCode in a field, Codex in its head, Claude Code in the
/// first line of one that failed.
fn reported(output: &epitome::history::Output) -> Option<i32> {
    let text = output.text.as_str();
    let head = text.lines().take(5).take_while(|it| !it.starts_with("Output:"));
    let said = head.filter_map(|it| {
        it.strip_prefix("Process exited with code ")
            .or(it.strip_prefix("Exit code: "))
            .or_else(|| it.strip_prefix("Exit code ").filter(|_| output.failed))
    });
    output.exit.or_else(|| said.filter_map(|it| it.trim().parse().ok()).next())
}

/// A code of 0 beside a pipe or `||` is that of the last program, so the ledger need not believe it.
#[test]
fn outcomes_agree_with_reported_exit_codes() {
    let Some(folder) = corpus::corpus_for("outcomes_agree_with_reported_exit_codes") else { return };
    let (mut agree, mut all) = (0, 0);
    let (mut agree_hidden, mut all_hidden) = (0, 0);
    for name in super::corpus::names(&folder) {
        let Some(session) = super::corpus::read(&folder, &name) else { continue };
        let ledger = facts::read(&session.history);
        for (number, message) in session.history.messages().iter().enumerate() {
            // One call, so that its output is the only one that the fact can be of.
            let mut outputs = message.parts.iter().filter_map(|it| match it {
                Part::Output(it) => Some(it),
                _ => None,
            });
            let (Some(output), None) = (outputs.next(), outputs.next()) else { continue };
            let Some(code) = reported(output).filter(|_| !output.cleared) else { continue };
            let before = &session.history.messages()[..number];
            let call = before.iter().rev().take(4).flat_map(Message::calls).find(|it| it.id == output.id);
            if call.is_none_or(|it| tools::meaning(&it.name) != Meaning::Run) {
                continue;
            }
            for fact in ledger.facts.iter().filter(|it| it.message == number) {
                let Detail::Command { outcome, read_only } = &fact.detail else { continue };
                assert!(
                    code == 0 || outcome.ok != Some(true),
                    "{name} {number}: ok beside {code}: {}",
                    fact.text
                );
                // A search that finds nothing is no failure, nor does it find.
                let same = outcome.ok == Some(code == 0) || *read_only && code == 1 && outcome.ok.is_none();
                let counts = match code == 0 && fact.text.contains('|') {
                    true => (&mut agree_hidden, &mut all_hidden),
                    false => (&mut agree, &mut all),
                };
                *counts.0 += usize::from(same);
                *counts.1 += 1;
                if !same {
                    eprintln!("{name} {number}: {:?} beside {code}: {}", outcome.ok, fact.text);
                }
            }
        }
    }
    eprintln!("{agree} of {all} outcomes agree, and {agree_hidden} of {all_hidden} with a pipe or `||`");
    assert!(all > 300 && agree * 1000 >= all * 995, "{agree} of {all}");
}

/// Prints what is to be judged, with text, for whoever labels a session: `EPITOME_CORPUS_WHOLE=1 LABEL=NAME cargo test --test all now::print --
/// --ignored --nocapture`.
#[test]
#[ignore = "for labelling by hand"]
fn print() {
    let Some(folder) = corpus::corpus_for("print") else { return };
    #[allow(clippy::disallowed_methods)]
    let wanted = std::env::var("LABEL").unwrap_or_default();
    for name in
        super::corpus::names(&folder).iter().filter(|it| wanted.split(',').any(|part| it.contains(part)))
    {
        let Some(session) = super::corpus::read(&folder, name) else { continue };
        let ledger = facts::read(&session.history);
        eprintln!(
            "session = {name:?}\ngoal = [{:?}]\nlast = {:?}",
            pursued(&session.history, &ledger),
            last(&ledger)
        );
        for fact in ledger.about(Topic::Requests) {
            eprintln!("# asked {} {:?}", fact.message, fact.text.chars().take(300).collect::<String>());
        }
        for fact in steps(&ledger)
            .chain(ledger.about(Topic::Unconfirmed))
            .chain(ledger.about(Topic::Constraints))
            .chain(ledger.about(Topic::Directives))
        {
            let text: String = fact.text.chars().take(240).collect();
            eprintln!("{:?} [{}, \"{}\", true], # {text:?}", fact.topic, fact.message, hash(&fact.text));
        }
    }
}
