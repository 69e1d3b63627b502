//! The index of mechanisms: every number, status, prompt section, hook and knob of each seed has a case, a test or a
//! stated deviation.

use std::collections::BTreeSet;
use std::path::Path;

use epitome::compaction::profile::Profile;
use epitome::profiles::prompt;

use super::{Rows, profile, row};

/// What the index names beside the cases of the other files.
pub(crate) fn rows() -> Rows {
    let mut out = Rows::new();
    let titles = |name: &str| -> Vec<String> {
        let profile: Profile = profile(name);
        profile.summarize().unwrap().summary.sections.iter().map(|it| it.title.clone()).collect()
    };
    row(&mut out, "opencode.summary.sections", move || {
        // S 000, compaction.txt: six things to focus on.
        assert_eq!(
            titles("opencode"),
            [
                "What was done",
                "What is being worked on",
                "Files",
                "What comes next",
                "Requests, constraints, preferences",
                "Decisions and why",
            ]
        );
    });
    row(&mut out, "codex.summary.sections", move || {
        // S 001, prompt.md: what is done and remains, TODOs with path and line, tests, bugs and quirks and setup.
        let expected =
            ["Done", "Remaining", "TODO with path and line", "Needs tests", "Open bugs and quirks", "Setup"];
        assert_eq!(titles("codex"), expected);
    });
    row(&mut out, "codex.summary.plan", || {
        let ask = prompt("codex/ask.md");
        assert!(ask.contains("update_plan") && ask.contains("word for word"), "{ask}");
    });
    row(&mut out, "codex.summary.share", || {
        let share = profile("codex").trigger.share.unwrap();
        assert!((0.7..=0.8).contains(&share));
    });
    row(&mut out, "learn.summary.sections", move || {
        // S 002: current goals, important findings, modified files, remaining work, user constraints.
        let expected =
            ["Current goal", "Findings and decisions", "Files", "Remaining work", "User constraints"];
        assert_eq!(titles("learn-claude-code"), expected);
    });
    row(&mut out, "claude.summary.most", || {
        assert_eq!(profile("claude-code").summarize().unwrap().summary.max_tokens, 20_000);
    });
    row(&mut out, "claude.constant.retries", || {
        assert_eq!(profile("claude-code").summarize().unwrap().prompts.retries, Some(2));
    });
    row(&mut out, "supermemory.summary.most", || {
        assert_eq!(profile("supermemory").summarize().unwrap().summary.max_tokens, 2_000);
    });
    row(&mut out, "supermemory.prompt.injection", || {
        let ask = prompt("supermemory/ask.md");
        assert!(ask.starts_with("[COMPACTION CONTEXT INJECTION]\n"), "{ask}");
        for number in 1..=5 {
            assert!(ask.contains(&format!("\n## {number}. ")), "{ask}");
        }
    });
    row(&mut out, "gemini.failure.not-again", || {
        for name in ["gemini-cli", "gemini-cli@0.20", "gemini-cli@0.61"] {
            assert!(profile(name).summarize().unwrap().not_after_failure, "{name}");
        }
    });
    row(&mut out, "opencode.switch.autocompact", || {
        let off = profile("opencode")
            .honouring(&|key| (key == "env:OPENCODE_DISABLE_AUTOCOMPACT").then(|| "1".into()));
        assert!(off.trigger.off && !profile("opencode").trigger.off);
    });
    out
}

/// Why one thing that should hold a mechanism does not.
fn missing(held_by: &str, cases: &BTreeSet<&str>) -> Option<String> {
    let (kind, rest) = held_by.split_once(' ').unwrap_or((held_by, ""));
    match kind {
        "case" => {
            let gone: Vec<&str> = rest.split(' ').filter(|it| !cases.contains(it)).collect();
            (rest.is_empty() || !gone.is_empty()).then(|| format!("no case {}", gone.join(" ")))
        }
        "test" => {
            let (file, name) = rest.split_once(' ').unwrap_or((rest, ""));
            let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
            let is_there = text.is_ok_and(|it| !name.is_empty() && it.contains(&format!("fn {name}(")));
            (!is_there).then(|| format!("no test {name} in {file}"))
        }
        "stated" => {
            let Some((name, words)) = rest.split_once(": ") else {
                return Some(format!("what is stated? {rest}"));
            };
            let says = |it: Profile| it.deviations.iter().any(|it| it.contains(words));
            let is_stated = epitome::profiles::built_in(name).is_ok_and(says);
            (!is_stated).then(|| format!("{name} does not state {words:?}"))
        }
        "outside:" => rest.is_empty().then(|| "outside, and nobody says why".to_owned()),
        _ => Some(format!("{held_by:?} is nothing that could hold it")),
    }
}

#[test]
fn every_mechanism_of_the_seeds_is_held_by_something() {
    // Without those that say themselves that no profile does it.
    let index = include_str!("index.txt").lines().filter_map(|it| it.split_once(" | "));
    let cases: BTreeSet<&str> =
        index.filter(|it| !it.1.starts_with("outside: ")).map(|it| it.0.trim()).collect();
    let (mut failures, mut system) = (Vec::new(), "");
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for line in include_str!("mechanisms.txt").lines().filter(|it| !it.is_empty() && !it.starts_with('#')) {
        if let Some(name) = line.strip_prefix("@ ") {
            system = name;
            continue;
        }
        let (what, held) = line.split_once(" | ").unwrap_or_else(|| panic!("{line}"));
        *counts.entry(system).or_default() += 1;
        for it in held.split("; ") {
            failures.extend(missing(it.trim(), &cases).map(|why| format!("{system}, {what}: {why}")));
        }
    }
    println!("{counts:?}");
    assert_eq!(counts.len(), 6);
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}
