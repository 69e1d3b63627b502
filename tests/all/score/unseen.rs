//! Sessions unlike those of the corpus, made by hand: what was planted in them must be told by the offline summary, in
//! one line and in usable form, and what must not be told is not. Checked by plain search, without our scorer.
//!
//! A case is a session as in `tests/cases/facts`, then `-----`, then one expectation a line: class, then what must stand
//! together in one line, parts apart by ` | `, alternatives in a part by `|`; `never` before it: no line holds all.
//! `@pad N` puts N reads of files full of words there, `@blah N` so many words into a prompt.

use epitome::compaction::facts;
use epitome::history::{History, Message, Part};
use epitome::score::{self, Class};

/// Words that mean nothing, the same for the same seed.
fn words(seed: u64, count: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut out = String::new();
    for at in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let syllables = ["ba", "ko", "mir", "lun", "tes", "va", "pol", "gri", "ent", "sha"];
        for turn in 0..3 {
            out.push_str(syllables[(state >> (turn * 8)) as usize % 10]);
        }
        out.push(if at % 11 == 10 { '\n' } else { ' ' });
    }
    out
}

/// The session's text with its filling.
fn filled(text: &str) -> String {
    let mut out = String::new();
    let mut seed = 7;
    for line in text.lines().filter(|it| !it.starts_with("# ") || it.starts_with("# R")) {
        if let Some(count) = line.strip_prefix("@pad ").and_then(|it| it.parse::<u64>().ok()) {
            for _ in 0..count {
                seed += 1;
                out.push_str(&format!(
                    "@call Read pad{seed}\n{{\"file_path\":\"/repo/pad/part{seed}.txt\"}}\n@out pad{seed}\n{}\n",
                    words(seed, 150)
                ));
            }
        } else if let Some(count) = line.strip_prefix("@blah ").and_then(|it| it.parse().ok()) {
            seed += 1;
            out.push_str(&words(seed, count).replace(" \n", ".\n"));
            out.push('\n');
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

fn tokens(history: &History) -> u64 {
    let size = |part: &Part| match part {
        Part::Text(it) => it.size().bytes,
        Part::Call(it) => it.input.size().bytes,
        Part::Output(it) => it.text.size().bytes,
        Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => 0,
    };
    history.messages().iter().flat_map(|it: &Message| &it.parts).map(size).sum::<u64>() / 4
}

struct Expected<'a> {
    never: bool,
    class: &'a str,
    parts: Vec<&'a str>,
}

fn expectations(text: &str) -> Vec<Expected<'_>> {
    let lines = text.lines().filter(|it| !it.trim().is_empty());
    lines
        .map(|line| {
            let (never, rest) = line.strip_prefix("never ").map_or((false, line), |it| (true, it));
            let (class, rest) = rest.split_once(" | ").unwrap();
            Expected { never, class, parts: rest.split(" | ").collect() }
        })
        .collect()
}

/// Whether one line holds all parts.
fn told(page: &str, it: &Expected) -> bool {
    page.lines().any(|line| {
        let has = |part: &&str| line.contains(*part) || part.split('|').any(|one| line.contains(one));
        it.parts.iter().all(has)
    })
}

/// Of what a page must tell, how much it does, and all that is wrong with it.
fn check(page: &str, expected: &[Expected]) -> (usize, Vec<String>) {
    let mut wrong = Vec::new();
    let mut kept = 0;
    for it in expected {
        // Rules that nobody gave may stand where a log is quoted, not among the rules.
        let rules = page.split("## Rules").nth(1).and_then(|it| it.split("\n## ").next()).unwrap_or_default();
        let place = if it.class == "R" { rules } else { page };
        match (it.never, told(place, it)) {
            (false, true) => kept += 1,
            (true, false) => {}
            (false, false) => wrong.push(format!("lost {} {:?}", it.class, it.parts)),
            (true, true) => wrong.push(format!("told {} {:?}", it.class, it.parts)),
        }
    }
    (kept, wrong)
}

#[test]
fn planted_facts_are_told() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/unseen");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let (body, wanted) = text.split_once("\n-----\n").unwrap();
        let history = crate::facts::session(&filled(body));
        let ledger = facts::read(&history);
        let expected = expectations(wanted);
        let must = expected.iter().filter(|it| !it.never).count();
        for percent in [10, 20] {
            let budget = tokens(&history) * percent / 100;
            let page = crate::facts::summary(&history, &ledger, &crate::facts::spec(), budget, &[]);
            let (kept, wrong) = check(&page, &expected);
            eprintln!("{name} at {percent} % ({budget}): {kept} of {must}");
            for it in &wrong {
                eprintln!("    {it}");
            }
            if !wrong.is_empty() {
                eprintln!("{page}");
                all.push(format!("{name} at {percent} %: {wrong:#?}"));
            }
        }
        // Our scorer sees the same facts.
        let probes = score::probes(&history);
        let found = |class: Class| probes.iter().filter(|it| it.class == class).count();
        eprintln!("{name}: {:?}", Class::ALL.map(|it| (it.letter(), found(it))));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}
