//! Reads the source and fails when a layer is crossed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && !path.ends_with("tests") {
            sources(&path, out);
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
            out.push(path);
        }
    }
}

/// Every source file but tests: its path, and its lines up to its tests.
fn files() -> Vec<(String, Vec<String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    sources(&root.join("src"), &mut paths);
    for name in CRATES {
        sources(&root.join("crates").join(name).join("src"), &mut paths);
    }
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().take_while(|it| *it != "#[cfg(test)]").map(str::to_owned).collect();
        (path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/"), lines)
    };
    paths.into_iter().map(read).collect()
}

/// Lines of code, without comments, that hold one of the words; in files that `which` chooses.
fn found(which: impl Fn(&str) -> bool, words: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    for (file, lines) in files() {
        if !which(&file) {
            continue;
        }
        for (number, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in words {
                if code.contains(word) {
                    out.push(format!("{file}:{}: {word}", number + 1));
                }
            }
        }
    }
    out
}

const CRATES: [&str; 6] = ["history", "tokens", "sessions", "cost", "score", "compaction"];

/// What of the program itself has no effects; the crates have none at all.
const PURE: [&str; 4] = ["crates/", "src/config/profiles.rs", "src/report/", "src/interfaces/terminal.rs"];

#[test]
fn the_pure_half_has_no_effects() {
    let effects = [
        "tokio",
        "reqwest",
        "rmcp",
        "std::fs",
        "std::env",
        "SystemTime",
        "Instant::now",
        "rusqlite",
        "rand::",
    ];
    let is_pure = |file: &str| PURE.iter().any(|it| file.starts_with(it));
    assert_eq!(found(is_pure, &effects), Vec::<String>::new());
}

/// A sentence that a model reads too names no option of the command line: it carries a `Hint`.
#[test]
fn only_the_command_line_names_its_options() {
    let options =
        ["--out", "--window", "--format", "--scope", "--only", "--as ", "--next", "--budget", "--goal"];
    let below_it = ["crates/", "src/agents/", "src/engine/", "src/interfaces/mcp/", "src/store/"];
    let which = |file: &str| below_it.iter().any(|it| file.starts_with(it));
    assert_eq!(found(which, &options), Vec::<String>::new());
}

/// The compiler holds the order of the crates; here is the order, so that a new arrow is a decision.
#[test]
fn crates_depend_on_what_stands_below_them() {
    let below: [(&str, &[&str]); 6] = [
        ("history", &[]),
        ("tokens", &["history"]),
        ("sessions", &["history"]),
        ("cost", &["history", "sessions"]),
        ("score", &["history"]),
        ("compaction", &["history", "tokens"]),
    ];
    assert_eq!(below.map(|it| it.0), CRATES);
    let faces = ["clap", "tokio", "reqwest", "rmcp", "schemars", "rusqlite", "axum"];
    for (name, allowed) in below {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(name).join("Cargo.toml");
        let manifest: toml::Table = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let named: Vec<&String> = manifest["dependencies"].as_table().unwrap().keys().collect();
        for it in named {
            assert!(!faces.contains(&it.as_str()), "{name} depends on {it}");
            assert!(
                !CRATES.contains(&it.as_str()) || allowed.contains(&it.as_str()),
                "{name} depends on {it}"
            );
        }
    }
}

#[test]
fn neighbours_do_not_know_each_other() {
    let pairs: [(&str, &[&str]); 10] = [
        ("crates/compaction/src/plan/", &["crate::facts", "crate::summary"]),
        ("crates/compaction/src/facts/", &["crate::plan", "crate::profile", "crate::summary"]),
        // In `facts`: text ← work ← talk ← past.
        ("crates/compaction/src/facts/text/", &["facts::work", "facts::talk", "facts::past"]),
        ("crates/compaction/src/facts/work/", &["facts::talk", "facts::past"]),
        ("crates/compaction/src/facts/talk/", &["facts::past"]),
        // Agents' formats build on the APIs' messages.
        ("crates/sessions/src/wire/", &["crate::agents"]),
        ("crates/compaction/src/profile/", &["crate::plan", "crate::summary"]),
        ("crates/compaction/src/summary/", &["crate::plan"]),
        ("crates/history/src/simd.rs", &["crate::"]),
        (
            "crates/history/src/history/",
            &["crate::error", "crate::json", "crate::tools", "crate::secrets", "crate::verbatim"],
        ),
    ];
    for (folder, others) in pairs {
        assert_eq!(found(|it| it.starts_with(folder), others), Vec::<String>::new(), "{folder}");
    }
}

#[test]
fn libraries_stay_in_their_place() {
    let places: [(&str, &[&str]); 6] = [
        // What asks and what passes on; nothing else opens a connection by itself.
        ("reqwest", &["src/llm/", "src/engine/archive/server.rs"]),
        ("hyper_rustls", &["src/interfaces/gateway/proxy.rs"]),
        ("hyper_util::client", &["src/interfaces/gateway/proxy.rs"]),
        ("rmcp", &["src/interfaces/mcp/"]),
        ("rusqlite", &["src/store/", "src/agents/opencode"]),
        ("object_store", &["src/store/database/blobs.rs"]),
    ];
    for (library, folders) in places {
        let outside = |it: &str| !folders.iter().any(|folder| it.starts_with(folder));
        assert_eq!(found(outside, &[&format!("{library}::")]), Vec::<String>::new(), "{library}");
    }
}

/// What differs from agent to agent is asked of the agent; what differs from format to format, of the format.
#[test]
fn agents_and_formats_are_named_in_their_own_folders() {
    let allowed = [
        // Formats and agents themselves.
        "crates/sessions/",
        "src/agents/",
        // Tools, models and tokenizers have names too.
        "crates/history/src/tools",
        "crates/tokens/",
        // Profiles are named after the systems whose way they follow.
        "src/config/profiles.rs",
    ];
    let outside = |it: &str| !allowed.iter().any(|folder| it.starts_with(folder));
    let names = [
        "\"claude-code\"",
        "\"codex\"",
        "\"gemini-cli\"",
        "\"opencode\"",
        "\"pi\"",
        "\"qwen-code\"",
        "\"supermemory\"",
        "\"learn-claude-code\"",
        " Agent::",
        "(Agent::",
    ];
    assert_eq!(found(outside, &names), Vec::<String>::new());
    // The modules of agents are private. pi has no server and no sessions that we list: only installing knows it.
    let pi = |it: &str| outside(it) && it != "src/interfaces/cli/setup/install.rs";
    assert_eq!(found(pi, &["agents::pi", " pi::", "(pi::"]), Vec::<String>::new());
    // Sessions of an agent's own format are named only where what the gateway passes on is read.
    let formats = |it: &str| outside(it) && !it.starts_with("src/interfaces/gateway/");
    let native = ["CLAUDE_CODE", "CODEX", "GEMINI_CLI", "OPENCODE", "PI", "QWEN_CODE", "SWE_AGENT"];
    let native = native.map(|it| format!("Format::{it}"));
    assert_eq!(found(formats, &native.each_ref().map(String::as_str)), Vec::<String>::new());
}

/// Reading a field by index gives null where there is none; changing one so panics on whatever is no object.
#[test]
fn no_field_is_changed_by_index() {
    let change = regex::Regex::new(
        r#"(?:\w|\)|\])\s*\[(?:"[^"]*"|[a-z_.]*(?:key|name|field))\](?:\s*\[[^\]]*\])*\s*(?:=[^=>]|\.\s*(?:take\(|\w+_mut\())|&mut [\w.()]+\[""#,
    )
    .unwrap();
    for changing in [
        "part[\"state\"] = x;",
        "part[key] = x;",
        "it.data[\"a\"][\"b\"] =\n x;",
        "all[0][\"a\"].take()",
        "now[\"messages\"]\n    .as_array_mut()",
        "let state = &mut part[\"state\"];",
    ] {
        assert!(change.is_match(changing), "{changing}");
    }
    for reading in ["it[\"type\"] == \"x\"", "it[\"a\"].as_str()", "[\"a\"]", "matches!(it[\"a\"], x) => y"] {
        assert!(!change.is_match(reading), "{reading}");
    }
    let mut changes = Vec::new();
    for (file, lines) in files() {
        let code: Vec<&str> = lines.iter().map(|it| it.split("//").next().unwrap_or_default()).collect();
        let code = code.join("\n");
        let line = |at: usize| code[..at].matches('\n').count() + 1;
        changes.extend(
            change.find_iter(&code).map(|it| format!("{file}:{}: {}", line(it.start()), it.as_str())),
        );
    }
    assert_eq!(changes, Vec::<String>::new(), "json::set sets a field, get_mut reaches it");
}

/// The modules that a file names by `crate::` or `super::`, written out.
fn named(code: &str, module: &[String]) -> Vec<Vec<String>> {
    let uses = regex::Regex::new(r"(?m)^\s*(?:pub(?:\([a-z]+\))? )?use ((?:crate|super)\b[^;]*);").unwrap();
    let inline = regex::Regex::new(r"\b(?:crate|super)(?:::[a-z_0-9]+)+").unwrap();
    let mut paths = Vec::new();
    uses.captures_iter(code).for_each(|it| expand("", &it[1], &mut paths));
    paths.extend(inline.find_iter(&uses.replace_all(code, "")).map(|it| it.as_str().to_owned()));
    let absolute = |path: &String| {
        let mut at: Vec<String> = if path.starts_with("crate") { Vec::new() } else { module.to_vec() };
        for name in path.split("::").map(str::trim) {
            match name {
                "crate" => {}
                "super" => drop(at.pop()),
                _ => at.push(name.to_owned()),
            }
        }
        at
    };
    paths.iter().map(absolute).collect()
}

/// `a::{b, c::{d}}` as `a::b` and `a::c::d`.
fn expand(before: &str, tree: &str, out: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        out.push(format!("{before}{}", tree.trim()));
        return;
    };
    let inner = rest.rsplit_once('}').map_or(rest, |it| it.0);
    let (mut depth, mut from) = (0, 0);
    for (at, char) in inner.char_indices().chain([(inner.len(), ',')]) {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[from..at].trim().is_empty() {
                    expand(&format!("{before}{}", head.trim()), &inner[from..at], out);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
}

/// The module that a file below `src/` is.
fn module(file: &str) -> Vec<String> {
    let path = file.strip_suffix(".rs").unwrap();
    let path = path.strip_suffix("/mod").unwrap_or(path);
    path.split('/').filter(|it| !["lib", "main"].contains(it)).map(str::to_owned).collect()
}

#[test]
fn no_files_import_each_other_in_a_loop() {
    assert_eq!(
        named("use crate::a::{b, c::{d, E}};\nlet x = super::super::f::g();", &["m".into(), "n".into()]),
        [&["a", "b"][..], &["a", "c", "d"], &["a", "c", "E"], &["f", "g"]],
    );
    let mut arrows: BTreeMap<(String, Vec<String>), BTreeSet<Vec<String>>> = BTreeMap::new();
    let sources: Vec<(String, Vec<String>, String)> = files()
        .into_iter()
        .filter_map(|(file, lines)| {
            let (house, file) = file.split_once("src/")?;
            let code: Vec<&str> = lines.iter().map(|it| it.split("//").next().unwrap_or_default()).collect();
            Some((house.to_owned(), module(file), code.join("\n")))
        })
        .collect();
    let known: BTreeSet<(&str, &[String])> = sources.iter().map(|it| (&*it.0, &*it.1)).collect();
    for (house, module, code) in &sources {
        let to = named(code, module).into_iter().filter_map(|path| {
            let found = (1..=path.len()).rev().map(|len| &path[..len]);
            let found = found.into_iter().find(|it| known.contains(&(house, it)))?;
            // What a module names of those that it is in is theirs to hand on.
            (!module.starts_with(found)).then(|| found.to_vec())
        });
        arrows.insert((house.clone(), module.clone()), to.collect());
    }
    assert!(arrows.values().map(BTreeSet::len).sum::<usize>() > 300);
    // Whoever imports nobody that is left is in no loop.
    loop {
        let left: BTreeSet<_> = arrows.keys().cloned().collect();
        arrows.retain(|(house, _), to| to.iter().any(|it| left.contains(&(house.clone(), it.clone()))));
        if arrows.len() == left.len() {
            break;
        }
    }
    let loops: Vec<_> = arrows.iter().map(|((house, it), _)| format!("{house}{}", it.join("::"))).collect();
    assert_eq!(loops, Vec::<String>::new(), "files that import each other, and those that import these");
}

#[test]
fn functions_and_files_are_no_longer_than_one_reads() {
    const FUNCTION: usize = 80;
    const FILE: usize = 600;
    let mut long = Vec::new();
    for (file, lines) in files() {
        if lines.len() > FILE {
            long.push(format!("{file}: {} lines", lines.len()));
        }
        // A function ends at the first closing brace that stands as far left as it begins.
        let mut open: Option<(usize, String)> = None;
        for (number, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            let indent = &line[..line.len() - code.len()];
            let begins =
                code.split(['(', '<']).next().is_some_and(|it| it.contains("fn ")) && !code.starts_with("//");
            if begins && open.is_none() {
                open = Some((number, format!("{indent}}}")));
            }
            if open.as_ref().is_some_and(|it| *line == it.1 || it.0 == number && line.ends_with([';', '}'])) {
                let (from, _) = open.take().unwrap();
                if number - from >= FUNCTION {
                    long.push(format!("{file}:{}: {} lines", from + 1, number - from + 1));
                }
            }
        }
        assert!(open.is_none(), "{file}: a function does not end");
    }
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn folders_hold_no_more_names_than_one_overlooks() {
    const NAMES: usize = 12;
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, _) in files() {
        let mut rest = file.as_str();
        while let Some((folder, name)) = rest.rsplit_once('/') {
            names.entry(folder.to_owned()).or_default().insert(name.to_owned());
            rest = folder;
        }
    }
    let full: Vec<String> = names
        .iter()
        .filter(|(folder, names)| folder.contains("src") && names.len() > NAMES)
        .map(|(folder, names)| format!("{folder}: {} names", names.len()))
        .collect();
    assert!(full.is_empty(), "{full:#?}");
}
