//! The index of the references: every vector and case row of the two, and what holds it. Where the references
//! themselves are found, their rows are counted and compared; where they are not, what the index names must still be
//! there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::corpus;

/// Rows of a reference that stand together.
#[derive(Default)]
struct Block {
    file: String,
    anchor: String,
    how: String,
    until: Option<String>,
    /// What a row is known by, and what holds it.
    rows: Vec<(String, String)>,
}

fn blocks() -> Vec<Block> {
    let mut out: Vec<Block> = Vec::new();
    for line in include_str!("references.txt").lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.trim_start_matches("@ ").split(" | ").collect();
        if line.starts_with("@ ") {
            let [file, anchor, how, rest @ ..] = fields.as_slice() else { panic!("{line}") };
            let until = rest.first().map(|it| (*it).to_owned());
            let [file, anchor, how] = [file, anchor, how].map(|it| (*it).to_owned());
            out.push(Block { file, anchor, how, until, rows: Vec::new() });
        } else {
            let (known_by, held_by) = line.rsplit_once(" | ").unwrap_or_else(|| panic!("{line}"));
            let block = out.last_mut().unwrap();
            block.rows.push((known_by.to_owned(), held_by.trim().to_owned()));
        }
    }
    out
}

/// The rows of a reference.
fn rows(text: &str, block: &Block) -> Vec<String> {
    let found = text.match_indices(&block.anchor).count();
    assert_eq!(found, 1, "{}: expected {:?} once", block.file, block.anchor);
    let at = text.find(&block.anchor).unwrap() + block.anchor.len();
    let rest = &text[at..];
    if block.how == "table" {
        let lines = rest.lines().skip(1).skip_while(|it| !it.starts_with('|'));
        return lines.take_while(|it| it.starts_with('|')).skip(2).map(str::to_owned).collect();
    }
    let line = rest.lines().next().unwrap();
    let line = block.until.as_ref().map_or(line, |until| &line[..line.find(until).unwrap()]);
    if block.how == "line" {
        return vec![line.to_owned()];
    }
    let (mut out, mut depth) = (vec![String::new()], 0);
    for it in line.chars() {
        match it {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth <= 0 && block.how.contains(it) {
            out.push(String::new());
        } else {
            out.last_mut().unwrap().push(it);
        }
    }
    out.into_iter().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
}

#[test]
fn every_row_of_the_references_is_held_by_something() {
    let index: BTreeSet<&str> =
        include_str!("index.txt").lines().filter_map(|it| Some(it.split_once(" | ")?.0)).collect();
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = corpus::corpus().join("..");
    let reference = |name: &str| {
        let rest = if name == "codex-gemini" { name } else { "opencode-claude-supermemory" };
        std::fs::read_to_string(shared.join(format!("reference/upstream-{rest}.md"))).ok()
    };
    let mut failures = Vec::new();
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut compared = 0;
    for block in blocks() {
        let count = counts.entry(if block.file == "codex-gemini" {
            "codex, gemini"
        } else {
            "opencode, claude, learn"
        });
        let count = count.or_default();
        for (known_by, held_by) in &block.rows {
            let place = format!("{} {:?}: {known_by}", block.file, block.anchor);
            if let Some(why) = held_by.strip_prefix("outside: ") {
                count[2] += 1;
                if why.is_empty() {
                    failures.push(format!("{place}: outside, and nobody says why"));
                }
            } else if let Some(test) = held_by.strip_prefix("test ") {
                count[1] += 1;
                let (file, name) = test.split_once(' ').unwrap();
                let text = std::fs::read_to_string(project.join(file)).unwrap_or_default();
                if !text.contains(&format!("fn {name}(")) {
                    failures.push(format!("{place}: no test {name} in {file}"));
                }
            } else {
                count[0] += 1;
                let missing = held_by.split(' ').filter(|it| !index.contains(it));
                failures.extend(missing.map(|it| format!("{place}: no case {it}")));
            }
        }
        let Some(text) = reference(&block.file) else { continue };
        let found = rows(&text, &block);
        compared += found.len();
        if found.len() != block.rows.len() {
            failures.push(format!(
                "{} {:?}: {} rows there, {} here: {found:#?}",
                block.file,
                block.anchor,
                found.len(),
                block.rows.len()
            ));
        }
        for (row, (known_by, _)) in found.iter().zip(&block.rows) {
            if !row.contains(known_by.as_str()) {
                failures
                    .push(format!("{} {:?}: expected {known_by:?}, found {row:?}", block.file, block.anchor));
            }
        }
    }
    for (name, [cases, tests, outside]) in counts {
        println!(
            "{name}: {} rows: {cases} by cases, {tests} by other tests, {outside} outside",
            cases + tests + outside
        );
    }
    if compared == 0 {
        eprintln!(
            "SKIPPED: every_row_of_the_references_is_held_by_something: no references; nothing was compared"
        );
    }
    println!("{compared} rows compared with the references");
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}
