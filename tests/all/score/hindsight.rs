//! What an agent used after a cut, and what compactions of the part before it still hold.

use epitome::engine::{self, Ask, CompactionWay, Engine, SessionCut};
use epitome::history::{History, Kind, Message, Role};
use epitome::report::scorecard::{HindsightResult, HindsightRow};
use epitome::score::baselines::Baseline;
use epitome::score::{UsedKind, hindsight, used_later};
use epitome::sessions::{self, MemorySource};

use crate::corpus;

/// Messages of the Anthropic API, from calls with their outputs.
fn history(calls: &[(&str, serde_json::Value, &str)]) -> History {
    let mut messages = vec![serde_json::json!({"role": "user", "content": "Mend the loader."})];
    for (number, (tool, input, output)) in calls.iter().enumerate() {
        let id = format!("t{number}");
        messages.push(serde_json::json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": tool, "input": input}]}));
        messages.push(serde_json::json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": output}]}));
    }
    let text = serde_json::Value::from(messages).to_string();
    sessions::read(&MemorySource::new("made.json", text), None).unwrap().history
}

#[test]
fn what_is_used_from_memory_counts_and_what_is_shown_again_does_not() {
    let bash = |command: &str| serde_json::json!({ "command": command });
    let read = |path: &str| serde_json::json!({ "file_path": path });
    let source = history(&[
        ("Read", read("src/lib.rs"), "fn load_config() {}\nfn write_cache() {}\n"),
        (
            "Bash",
            bash("rg -n timeout_ms"),
            "src/deep/other.rs:3:let timeout_ms = 5;\nsrc/shown.rs:9:timeout_ms\n",
        ),
        ("Bash", bash("cargo test --workspace"), "error[E0308]: mismatched types in loader\nexit code 101"),
        ("Bash", bash("git log -1 origin/main"), "commit 1a2b3c4d5e\n.cfg/app.toml\nmy docs/plan/a.md"),
        // From here on it is the second part.
        ("Bash", bash("ls src"), "src/shown.rs"),
        ("Read", read("src/shown.rs"), "fn write_cache() {}"),
        // Whoever edits a file reads what it holds.
        (
            "Edit",
            serde_json::json!({"file_path": "src/lib.rs", "old_string": "a", "new_string": "load_config()"}),
            "ok",
        ),
        (
            "Write",
            serde_json::json!({"file_path": "src/new.rs", "content": "load_config(); write_cache()"}),
            "ok",
        ),
        ("Bash", bash("git diff origin/main main..HEAD"), ""),
        ("Read", read("src/deep/other.rs"), "let timeout_ms = 5;"),
        ("Read", read("src/never.rs"), "nothing"),
        ("Bash", bash("cargo test --workspace"), "ok"),
        ("Bash", bash("git show 1a2b3c4d5e"), "ok"),
        ("Read", read(".cfg/app.toml"), "x"),
    ]);
    let cut = 9;
    let used = used_later(&source, cut);
    let found: Vec<(UsedKind, &str)> = used.iter().map(|it| (it.kind, it.text.as_str())).collect();
    assert_eq!(
        found,
        [
            (UsedKind::Path, "src/lib.rs"),
            (UsedKind::Symbol, "load_config"),
            (UsedKind::Path, "src/deep/other.rs"),
            (UsedKind::Command, "cargo test --workspace"),
            (UsedKind::Value, "1a2b3c4d5e"),
            (UsedKind::Path, ".cfg/app.toml"),
        ]
    );
    let first = History::new(source.messages()[..cut].to_vec(), source.meta.clone());
    assert_eq!(hindsight(&used, &first).share(), Some(1.0));
    assert_eq!(hindsight(&used, &History::default()).share(), Some(0.0));
    let told = |text: &str| {
        let summary = Message::text(Role::User, Kind::Summary, text);
        let it = hindsight(&used, &History::new(vec![summary], source.meta.clone()));
        it.missing.into_iter().map(|it| it.text).collect::<Vec<_>>()
    };
    assert_eq!(
        told(
            "read in src: lib.rs\n`cargo test --workspace` → failed\nload_config is slow; see other.rs, /w/.cfg/app.toml, commit 1a2b3c4"
        ),
        Vec::<String>::new()
    );
    assert_eq!(
        told("load_configs, `cargo test`, src/deep, 1a2b3c5"),
        found.iter().map(|it| it.1).collect::<Vec<_>>()
    );
    assert_eq!(used_later(&source, source.messages().len()), []);
}

#[test]
fn a_path_of_a_router_is_a_path() {
    let read = |path: &str| serde_json::json!({ "file_path": path });
    let named =
        "app/[shop]/[id].tsx(8,3): error TS2769 in [it](app/(tabs)/index.tsx), see app/(tabs)/[page].";
    let mut calls = vec![("Bash", serde_json::json!({ "command": "npx tsc" }), named)];
    calls.extend(
        ["app/[shop]/[id].tsx", "app/(tabs)/index.tsx", "app/(tabs)/[page]"].map(|it| ("Read", read(it), "")),
    );
    let used = used_later(&history(&calls), 3);
    let paths: Vec<&str> =
        used.iter().filter(|it| it.kind == UsedKind::Path).map(|it| it.text.as_str()).collect();
    assert_eq!(paths, ["app/[shop]/[id].tsx", "app/(tabs)/index.tsx", "app/(tabs)/[page]"]);
}

/// The repositories that the summary was tuned on; the others are looked at only to be measured.
fn is_tuned(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    ["cli", "agentv", "git-ai", "pi-mono"].contains(&name.split("--").next().unwrap_or(name))
}

/// Names of the sessions with their cuts.
fn all_cuts(engine: &Engine, ask: &Ask, folder: &std::path::Path) -> Vec<(String, SessionCut)> {
    let mut out = Vec::new();
    for name in super::corpus::names(folder) {
        let bytes = std::fs::read(folder.join(&name)).unwrap();
        let Some(session) = super::corpus::read(folder, &name) else { continue };
        let cuts = engine::cuts(engine, &name, &session, &bytes, ask);
        out.extend(cuts.into_iter().filter(|it| it.subject.tokens >= 6_000).map(|it| (name.clone(), it)));
    }
    out
}

/// What is reached today, a little below: it may rise, not fall. Beside the agents' own compactions it is printed only.
#[test]
fn what_was_used_later_is_kept() {
    let Some(folder) = corpus::corpus_for("what_was_used_later_is_kept") else { return };
    let engine = super::card::engine();
    let ask = Ask::new(epitome::profiles::built_in("epitome").unwrap());
    let cuts = all_cuts(&engine, &ask, &folder);
    let row = |tuned: bool, way: CompactionWay, percent: Option<u64>| {
        let mine = cuts.iter().filter(|it| is_tuned(&it.0) == tuned);
        let size = |cut: &engine::SessionCut| percent.map(|it| cut.subject.tokens * it / 100);
        let looks: Vec<HindsightResult> =
            mine.filter_map(|it| engine::evaluate_way(&engine, &it.1, &ask, way, size(&it.1))).collect();
        let row = HindsightRow { way: way.name(&ask), percent, looks };
        let kinds: Vec<String> = UsedKind::ALL
            .iter()
            .map(|it| format!("{} {:.2}", it.name(), row.kind(*it).unwrap_or(f64::NAN)))
            .collect();
        eprintln!(
            "{} {:<13} at {percent:?}: {} cuts, median {:.3}, p10 {:.3}; {}",
            if tuned { "tuned" } else { "held out" },
            row.way,
            row.looks.len(),
            row.kept(0.5).unwrap_or(f64::NAN),
            row.kept(0.1).unwrap_or(f64::NAN),
            kinds.join(", ")
        );
        row
    };
    let others = [Baseline::Masking, Baseline::KeepLast].map(CompactionWay::Baseline);
    let others: Vec<CompactionWay> = others.into_iter().chain([CompactionWay::Ledger]).collect();
    for (percent, least) in [(5, 0.8), (10, 0.9)] {
        // A half has few cuts, where one thing used later moves the median by a tenth: ways are compared over both.
        let mean = |way: CompactionWay| {
            let rows = [true, false].map(|tuned| row(tuned, way, Some(percent)));
            if way == CompactionWay::Profile {
                for median in rows.iter().filter_map(|it| it.kept(0.5)) {
                    assert!(median >= least, "at {percent} %: {median}");
                }
            }
            let kept: Vec<f64> =
                rows.iter().flat_map(|it| &it.looks).filter_map(|it| it.hindsight.share()).collect();
            kept.iter().sum::<f64>() / kept.len().max(1) as f64
        };
        let ours = mean(CompactionWay::Profile);
        for other in &others {
            let kept = mean(*other);
            assert!(ours >= kept, "at {percent} %: {ours}, {} {kept}", other.name(&ask));
        }
    }
    for tuned in [true, false] {
        row(tuned, CompactionWay::Profile, None);
    }
    let (mut own, mut ours) = (Vec::new(), Vec::new());
    for (name, cut) in &cuts {
        let Some(native) = engine::evaluate_way(&engine, cut, &ask, CompactionWay::Native, None) else {
            continue;
        };
        let Some(same) =
            engine::evaluate_way(&engine, cut, &ask, CompactionWay::Profile, Some(native.tokens))
        else {
            continue;
        };
        let share = |it: &HindsightResult| it.hindsight.share().unwrap_or(1.0);
        eprintln!(
            "{name}, {}: {} tokens, its own {:.2}, ours {:.2}",
            cut.at,
            native.tokens,
            share(&native),
            share(&same)
        );
        own.push(share(&native));
        ours.push(share(&same));
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(1.0)
    };
    eprintln!("beside the agents' own: median {:.3} and {:.3}", median(own), median(ours));
}
