//! The main job, from the command line, on the examples and on every session of the corpus.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::corpus;

const APIS: [&str; 4] = ["anthropic", "openai-chat", "openai-responses", "gemini"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn examples() -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> =
        std::fs::read_dir(root().join("examples/sessions")).unwrap().map(|it| it.unwrap().path()).collect();
    out.retain(|it| it.extension().is_some_and(|it| it != "py"));
    out.sort();
    out
}

/// Runs the binary with a state of its own and nothing else of the environment.
fn epitome(home: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_epitome"))
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .args(arguments)
        .output()
        .unwrap()
}

fn json(output: &Output, what: &str) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{what}: {error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Compacts a session to 20 % for some APIs; what was wrong, and the reasons of no-ops.
fn compact_for(
    apis: &[&str],
    home: &Path,
    session: &Path,
    wrong: &mut Vec<String>,
    noops: &mut BTreeMap<String, String>,
) {
    let name = session.file_name().unwrap().to_string_lossy().into_owned();
    let path = session.to_str().unwrap();
    let estimate = epitome(home, &["estimate", path, "--json"]);
    if !estimate.status.success() {
        wrong.push(format!("{name}: estimate: {}", String::from_utf8_lossy(&estimate.stderr)));
        return;
    }
    for api in apis {
        let out = home.join("out.json");
        let arguments =
            ["compact", path, "--budget", "20%", "--as", api, "--out", out.to_str().unwrap(), "--json"];
        let output = epitome(home, &arguments);
        if !output.status.success() {
            wrong.push(format!("{name} as {api}: {}", String::from_utf8_lossy(&output.stderr)));
            continue;
        }
        let answer = json(&output, &name);
        let (before, after) =
            (answer["tokens_before"].as_u64().unwrap(), answer["tokens_after"].as_u64().unwrap());
        match answer["status"].as_str().unwrap() {
            "noop" if before < 2_000 || answer["reason_code"] == "budget_too_small" => {
                noops.insert(name.clone(), format!("{before} tokens: {}", answer["reason"]));
            }
            "compacted" => {
                let valid = answer["valid_for"].as_array().unwrap().iter().any(|it| it == api);
                let written: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
                if after * 5 > before || !valid || written.as_array().is_none_or(Vec::is_empty) {
                    wrong.push(format!(
                        "{name} as {api}: {before} → {after} tokens, valid for {}",
                        answer["valid_for"]
                    ));
                }
            }
            other => wrong.push(format!("{name} as {api}: {other}: {}", answer["reason"])),
        }
    }
}

#[test]
fn every_example_is_compacted_for_every_api() {
    let home = tempfile::tempdir().unwrap();
    let (mut wrong, mut noops) = (Vec::new(), BTreeMap::new());
    for session in examples() {
        compact_for(&APIS, home.path(), &session, &mut wrong, &mut noops);
    }
    assert_eq!((wrong, noops), (Vec::new(), BTreeMap::new()));
}

#[test]
fn every_session_of_the_corpus_is_compacted() {
    let home = tempfile::tempdir().unwrap();
    let (mut wrong, mut noops) = (Vec::new(), BTreeMap::new());
    let test = "every_session_of_the_corpus_is_compacted";
    let sessions = corpus::of_corpus(test, &corpus::KINDS);
    for session in &sessions {
        // An API in turn, by the name, whatever others are there; the examples above are written for each.
        let turn =
            session.file_name().map_or(0, |it| it.as_encoded_bytes().iter().map(|it| usize::from(*it)).sum());
        let apis = if corpus::whole() { &APIS[..] } else { &APIS[turn % APIS.len()..][..1] };
        compact_for(apis, home.path(), session, &mut wrong, &mut noops);
    }
    for (name, why) in &noops {
        println!("no-op: {name}: {why}");
    }
    println!("{} sessions, {} no-ops", sessions.len(), noops.len());
    assert_eq!(wrong, Vec::<String>::new());
    // Beyond sessions below 2,000 tokens, at most six may have pinned facts and a last request over the budget.
    let over = noops.values().filter(|it| !it.contains("below 2000")).count();
    assert!(over <= 6, "{noops:?}");
}

#[test]
fn what_is_printed_can_be_got_back() {
    let home = tempfile::tempdir().unwrap();
    for session in examples() {
        let path = session.to_str().unwrap();
        let out = home.path().join("compacted.json");
        let arguments = [
            "compact",
            path,
            "--budget",
            "20%",
            "--as",
            "anthropic",
            "--out",
            out.to_str().unwrap(),
            "--json",
        ];
        let answer = json(&epitome(home.path(), &arguments), path);
        let restored = home.path().join("restored");
        let handle = answer["handle"].as_str().unwrap();
        let output = epitome(home.path(), &["restore", handle, "--out", restored.to_str().unwrap()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(std::fs::read(&restored).unwrap(), std::fs::read(&session).unwrap(), "{path}");
        for it in answer["pruned"].as_array().unwrap() {
            let output = epitome(home.path(), &["recall", it["handle"].as_str().unwrap()]);
            assert!(output.status.success() && !output.stdout.is_empty(), "{path}: {it}");
        }
    }
}

#[test]
fn the_same_input_gives_the_same_bytes_anywhere() {
    let session = root().join("examples/sessions/codex.jsonl");
    let run = |home: &Path, cwd: &Path, more: &[(&str, &str)]| {
        let out = home.join("out.jsonl");
        let mut command = Command::new(env!("CARGO_BIN_EXE_epitome"));
        command.env_clear().env("HOME", home).current_dir(cwd);
        command.envs(more.iter().copied());
        let arguments = ["compact", session.to_str().unwrap(), "--budget", "20%", "--json"];
        let output = command.args(arguments).args(["--out", out.to_str().unwrap()]).output().unwrap();
        let mut answer = json(&output, "compact");
        answer["output"] = Value::Null;
        (answer.to_string(), std::fs::read(&out).unwrap())
    };
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = run(one.path(), one.path(), &[("TZ", "UTC"), ("LANG", "C")]);
    let second = run(other.path(), &root(), &[("TZ", "Asia/Tokyo"), ("LC_ALL", "de_DE.UTF-8")]);
    let store_full = run(one.path(), one.path(), &[("TZ", "America/New_York")]);
    assert_eq!(first, second);
    assert_eq!(first, store_full);
}

#[test]
fn bad_input_is_said_and_nothing_hangs() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = home.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let folder = home.path().to_str().unwrap().to_owned();
    let empty = file("empty", b"");
    let text = file("text", b"just some words\n");
    let one = file("one.json", br#"[{"role":"user","content":"hello"}]"#);
    let nothing = file("nothing.json", b"[]");
    for (arguments, code, says) in [
        (vec!["estimate", "/no/such/file.jsonl"], 2, "no such file"),
        (vec!["estimate", folder.as_str()], 2, "found a directory"),
        (vec!["estimate", "/dev/zero"], 2, "found a pipe, socket or device"),
        (vec!["estimate", empty.as_str()], 2, "the file is empty"),
        (vec!["estimate", text.as_str()], 2, "just som"),
        (vec!["estimate", text.as_str(), "--format", "codex"], 2, "expected"),
        (vec!["estimate", text.as_str(), "--format", "word"], 2, "found \"word\""),
        (vec!["compact", one.as_str(), "--profile", "nobody"], 2, "found \"nobody\""),
        (vec!["compact", one.as_str(), "--budget", "0"], 2, "found \"0\""),
        (vec!["compact", one.as_str(), "--budget", "many"], 2, "found \"many\""),
        (vec!["compact", one.as_str(), "--as", "pi"], 2, "found \"pi\""),
        (vec!["compact", one.as_str(), "--tokenizer", "runes"], 2, "found \"runes\""),
        (vec!["compact", one.as_str(), "--now", "soon"], 2, "found \"soon\""),
        (vec!["compact", one.as_str(), "--min-kept", "7"], 2, "expected a share"),
        (vec!["compact", one.as_str(), "--budget", "200%"], 2, "at most 100%"),
        (vec!["compact", one.as_str(), "--budget", "-5"], 2, "above 0%"),
        (vec!["compact", one.as_str(), "--keep", "0%"], 2, "above 0%"),
        (vec!["compact", one.as_str(), "--style", "loud"], 2, "brief, detailed, technical"),
        (vec!["compact", one.as_str(), "--summarizer", "me"], 2, "expected offline, host"),
        (vec!["compact", one.as_str(), "--base-url", "http://x"], 2, "--summarizer"),
        (vec!["compact", one.as_str(), "--apply", "--out", "x"], 2, "cannot be used with"),
        (vec!["compact", one.as_str(), "--edit", "--summarizer", "host"], 2, "--answer"),
        (vec!["compact", one.as_str(), "--next", "soon"], 2, "expected tokens or a file"),
        (vec!["compact", "--handle", "y"], 2, "--answer"),
        (vec!["estimate", one.as_str(), "--window", "0"], 2, "200k"),
        (vec!["estimate", one.as_str(), "--window", "-1"], 2, "200k"),
        (vec!["estimate", one.as_str(), "--method", "guess"], 2, "expected auto, provider"),
        (vec!["estimate", "11111111"], 2, "`epitome sessions`"),
        (vec!["estimate"], 2, "which session?"),
        (vec!["sessions", "--agent", "nobody"], 2, "claude-code, codex, gemini-cli, opencode"),
        (vec!["apply", "0000000000"], 2, "0000000000"),
        (vec!["apply"], 2, "<HANDLE>"),
        (vec!["undo"], 2, "expected a compaction of this directory"),
        (vec!["restore", "y99"], 2, "10 characters"),
        (vec!["recall", "--range", "x", "0000000000"], 2, ""),
        (vec!["score", one.as_str()], 2, "SESSION COMPACTED"),
        (vec!["handoff", one.as_str()], 2, "--goal"),
        (vec!["profiles", "nobody"], 2, "found \"nobody\""),
        (vec!["schema", "nobody"], 2, "expected a command"),
        (vec!["install", "nobody"], 2, "claude-code, codex, gemini-cli"),
        (vec!["memory", "show", "1"], 2, "10 characters"),
        (vec!["watch", one.as_str(), "--every", "0"], 2, "--every"),
        (vec!["compacts"], 2, "'compact'"),
        (vec!["compact", one.as_str()], 0, ""),
        (vec!["estimate", nothing.as_str(), "--json"], 0, ""),
        (vec!["split", nothing.as_str(), "--json"], 0, ""),
        (vec!["prune", nothing.as_str(), "--json"], 0, ""),
        (vec!["compact", nothing.as_str(), "--json"], 0, ""),
    ] {
        let output = epitome(home.path(), &arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

/// The gate rejects a compaction that loses too much, says what would be lost and which budget keeps it; that budget
/// then passes.
#[test]
fn opencodes_settings_give_the_window_of_a_model() {
    let home = tempfile::tempdir().unwrap();
    let session = root().join("examples/sessions/opencode.json");
    let window = || {
        let output = crate::apply::epitome(home.path(), &["estimate", session.to_str().unwrap(), "--json"]);
        json(&output, "estimate")["window"].clone()
    };
    let settings = |file: &Path, context: u64| {
        let models = serde_json::json!({"claude-opus-5-5": {"limit": {"context": context}}, "other": {"limit": {"context": 7}}});
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, serde_json::json!({"provider": {"mine": {"models": models}}}).to_string())
            .unwrap();
    };
    let by_table = window();
    settings(&home.path().join(".config/opencode/opencode.json"), 64_000);
    assert_eq!((by_table != 64_000, window()), (true, 64_000.into()));
    settings(&home.path().join("opencode.json"), 32_000);
    assert_eq!(window(), 32_000, "the project's settings win");
    std::fs::write(home.path().join("opencode.json"), "{\"provider\": [1").unwrap();
    assert_eq!(window(), 64_000);
}

#[test]
fn the_gate_names_a_budget_that_passes() {
    let home = tempfile::tempdir().unwrap();
    let mut rejected = 0;
    for session in ["claude-code.jsonl", "opencode.json", "gemini.json"] {
        let path = root().join("examples/sessions").join(session).display().to_string();
        for least in ["0.9", "F=1,X=1", "U=1,0.8"] {
            let run = |budget: &str| {
                let out = home.path().join("out");
                let out = out.display().to_string();
                let arguments = [
                    "compact",
                    &path,
                    "--budget",
                    budget,
                    "--min-kept",
                    least,
                    "--as",
                    "anthropic",
                    "--out",
                    &out,
                    "--json",
                ];
                let output = epitome(home.path(), &arguments);
                let written = std::fs::remove_file(&out).is_ok();
                (output.status.code().unwrap(), json(&output, &path), written)
            };
            let (code, answer, written) = run("3%");
            if answer["reason_code"] != "lost_too_much" {
                continue;
            }
            rejected += 1;
            let what = format!("{path} {least}: {answer:#}");
            assert_eq!((code, written, &answer["status"]), (1, false, &Value::from("rejected")), "{what}");
            let lost = answer["lost"].as_array().unwrap();
            assert!(
                !lost.is_empty() && lost.iter().all(|it| !it["text"].as_str().unwrap().is_empty()),
                "{what}"
            );
            if !least.contains("0.") {
                let classes = ["file operations", "commands"];
                assert!(lost.iter().all(|it| classes.contains(&it["class"].as_str().unwrap())), "{what}");
            }
            let budget =
                answer["budget_needed"].as_u64().unwrap_or_else(|| panic!("no budget: {what}")).to_string();
            assert!(
                answer["reason"].as_str().unwrap().contains(&format!("--budget {budget} would keep it")),
                "{what}"
            );
            let (code, answer, written) = run(&budget);
            assert_eq!((code, written), (0, true), "{path} {least} at {budget}: {answer:#}");
        }
    }
    assert!(rejected >= 3, "only {rejected} were rejected");
}

#[test]
#[cfg(unix)]
fn a_reader_that_has_seen_enough_is_no_error() {
    let home = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    // The output is longer than any pipe holds, and nobody reads it.
    let command =
        "{ for n in 1 2 3 4 5 6 7 8 9; do \"$0\" completions bash || echo failed >&2; done; } | head -c 1";
    shell.args(["-c", command, env!("CARGO_BIN_EXE_epitome")]).env_clear();
    let output = shell.env("HOME", home.path()).env("PATH", "/usr/bin:/bin").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
