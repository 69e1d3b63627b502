//! Reads `src/` and fails when a layer is crossed.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
            out.push(path);
        }
    }
}

/// Every source file but tests: its path below `src/`, and its lines up to its tests.
fn files() -> Vec<(String, Vec<String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    sources(&root, &mut paths);
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().take_while(|it| *it != "#[cfg(test)]").map(str::to_owned).collect();
        (path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/"), lines)
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
                    out.push(format!("src/{file}:{}: {word}", number + 1));
                }
            }
        }
    }
    out
}

const PURE: [&str; 34] = [
    "cost/",
    "cores.rs",
    "error.rs",
    "history.rs",
    "json.rs",
    "tokens/",
    "tools.rs",
    "facts/",
    "score/",
    "profile/",
    "compact/",
    "format/",
    "secrets.rs",
    "scorecard.rs",
    "report/",
    "summarizer/offline",
    "summarizer/anthropic.rs",
    "summarizer/check.rs",
    "summarizer/claims.rs",
    "summarizer/failure.rs",
    "summarizer/gemini.rs",
    "summarizer/ground.rs",
    "summarizer/language.rs",
    "summarizer/model.rs",
    "summarizer/openai.rs",
    "summarizer/price.rs",
    "summarizer/prompt.rs",
    "summarizer/render.rs",
    "summarizer/sse.rs",
    "summarizer/talk",
    "summarizer/words.rs",
    "terminal.rs",
    "verbatim.rs",
    "wide.rs",
];

fn is_pure(file: &str) -> bool {
    PURE.iter().any(|it| file.starts_with(it))
}

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
    assert_eq!(found(is_pure, &effects), Vec::<String>::new());
}

#[test]
fn neighbours_do_not_know_each_other() {
    let pairs: [(&str, &[&str]); 10] = [
        (
            "compact/",
            &["crate::format", "crate::facts", "crate::score", "crate::summarizer", "crate::engine"],
        ),
        ("format/", &["crate::compact", "crate::facts", "crate::score", "crate::profile", "crate::engine"]),
        ("facts/", &["crate::score", "crate::compact", "crate::format", "crate::engine", "crate::profile"]),
        (
            "score/",
            &[
                "crate::facts",
                "crate::compact",
                "crate::summarizer",
                "crate::format",
                "crate::profile",
                "crate::engine",
            ],
        ),
        (
            "tokens/",
            &[
                "crate::facts",
                "crate::score",
                "crate::compact",
                "crate::format",
                "crate::profile",
                "crate::engine",
            ],
        ),
        ("wide.rs", &["crate::"]),
        (
            "history.rs",
            &[
                "crate::error",
                "crate::json",
                "crate::tokens",
                "crate::tools",
                "crate::facts",
                "crate::score",
                "crate::profile",
                "crate::compact",
                "crate::format",
                "crate::summarizer",
                "crate::engine",
            ],
        ),
        ("profile/", &["crate::compact", "crate::format", "crate::engine", "crate::score"]),
        ("tools.rs", &["crate::facts", "crate::score", "crate::compact", "crate::format", "crate::engine"]),
        ("summarizer/offline", &["crate::score", "crate::compact", "crate::format", "crate::engine"]),
    ];
    for (folder, others) in pairs {
        assert_eq!(found(|it| it.starts_with(folder), others), Vec::<String>::new(), "{folder}");
    }
}

#[test]
fn libraries_stay_in_their_place() {
    let places: [(&str, &[&str]); 5] = [
        // What asks and what passes on; nothing else opens a connection by itself.
        ("reqwest", &["summarizer/"]),
        ("hyper_rustls", &["gateway/proxy.rs"]),
        ("hyper_util::client", &["gateway/proxy.rs"]),
        ("rmcp", &["mcp/"]),
        ("rusqlite", &["store/", "agents/opencode"]),
    ];
    for (library, folders) in places {
        let outside = |it: &str| !folders.iter().any(|folder| it.starts_with(folder));
        assert_eq!(found(outside, &[&format!("{library}::")]), Vec::<String>::new(), "{library}");
    }
}

#[test]
fn the_core_names_no_agent() {
    let allowed = ["format/", "agents/", "tools", "tokens/", "cli/", "mcp/", "config.rs"];
    let outside =
        |it: &str| !allowed.iter().any(|folder| it.starts_with(folder)) && it != "profile/built_in.rs";
    let names = [
        "\"claude-code\"",
        "\"codex\"",
        "\"gemini-cli\"",
        "\"opencode\"",
        "\"supermemory\"",
        "\"learn-claude-code\"",
    ];
    assert_eq!(found(outside, &names), Vec::<String>::new());
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
            change.find_iter(&code).map(|it| format!("src/{file}:{}: {}", line(it.start()), it.as_str())),
        );
    }
    assert_eq!(changes, Vec::<String>::new(), "json::set sets a field, get_mut reaches it");
}
