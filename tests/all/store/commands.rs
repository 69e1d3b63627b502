//! `recall`, `restore`, `memory`, `sessions` and `epitome` alone, as a user types them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::program::{answer, claude, command, epitome, keep, output, refused, said};

/// A home whose project `p` has a session that was compacted in place; its handle, and what was cut.
struct Home {
    folder: tempfile::TempDir,
    project: PathBuf,
    session: PathBuf,
}

fn home() -> Home {
    let folder = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(folder.path()).unwrap();
    let project = root.join("p");
    std::fs::create_dir_all(&project).unwrap();
    let session = keep(
        &root,
        &project,
        "claude-code",
        "session-one",
        claude("session-one", &project, 0..12, 120).as_bytes(),
    );
    Home { folder, project, session }
}

impl Home {
    fn path(&self) -> PathBuf {
        std::fs::canonicalize(self.folder.path()).unwrap()
    }

    fn here(&self, arguments: &[&str]) -> std::process::Output {
        command(&self.path(), &self.project, arguments).output().unwrap()
    }

    fn prune(&self) -> Value {
        let session = self.session.to_str().unwrap();
        let done = answer(&self.here(&["prune", session, "--protect", "4000", "--apply", "--json"]));
        assert_eq!(done["status"], "pruned", "{done}");
        done
    }
}

fn columns_align(text: &str) {
    let starts = |line: &str, what: &str| line.find(what);
    let mut lines = text.lines();
    let head = lines.next().unwrap();
    let at = starts(head, "tokens").unwrap_or_else(|| panic!("{text}"));
    for line in lines.take_while(|it| !it.is_empty() && !it.starts_with("read one") && !it.starts_with('…'))
    {
        let before = line.as_bytes()[at - 1];
        assert_eq!(before, b' ', "{text}");
    }
}

#[test]
fn what_a_summary_replaced_is_found_and_read_message_by_message() {
    let home = home();
    let session = home.session.to_str().unwrap();
    // A word of the third output, which no summary holds.
    let whole = std::fs::read_to_string(&home.session).unwrap();
    let word = whole.split("fn ").nth(300).and_then(|it| it.split('(').next()).unwrap().to_owned();
    let before = said(&home.here(&["recall", &word]));
    assert!(before.contains("no archived text"), "{before}");
    let done = answer(&home.here(&["compact", session, "--budget", "2000", "--apply", "--json"]));
    assert_eq!(done["status"], "compacted", "{done}");
    assert!(!done["summary"].as_str().unwrap().contains(&word));
    let found = answer(&home.here(&["recall", &word, "--json"]));
    let hits = found["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 1, "{found}");
    assert_eq!(hits[0]["handle"], done["handle"], "{found}");
    let (handle, range) = (hits[0]["handle"].as_str().unwrap(), hits[0]["range"].as_str().unwrap());
    let read = said(&home.here(&["recall", handle, "--range", range]));
    assert!(read.starts_with("[output of ") && read.contains(&word), "{read}");
    let cut = answer(&home.here(&["recall", handle, "--range", "m0-", "--limit", "200", "--json"]));
    assert!(cut["next"].as_str().unwrap().starts_with('m'), "{cut}");
    let past = refused(&home.here(&["recall", handle, "--range", "m9999"]));
    assert!(past.contains("expected messages from m0 to m"), "{past}");
}

#[test]
fn the_undo_that_is_printed_undoes_just_that() {
    let home = home();
    let other = home.path().join("q");
    std::fs::create_dir_all(&other).unwrap();
    let text = claude("session-two", &other, 0..12, 120);
    let second = keep(&home.path(), &other, "claude-code", "session-two", text.as_bytes());
    home.prune();
    let first = std::fs::read(&home.session).unwrap();
    // From the first one's directory: `last` would be the first one.
    let shown = said(&home.here(&["prune", second.to_str().unwrap(), "--protect", "4000", "--apply"]));
    assert_ne!(std::fs::read_to_string(&second).unwrap(), text);
    let undo = shown.lines().find_map(|it| it.strip_prefix("undo")).unwrap().trim();
    let arguments: Vec<&str> = undo.split_whitespace().skip(1).collect();
    said(&home.here(&arguments));
    assert_eq!(std::fs::read_to_string(&second).unwrap(), text);
    assert_eq!(std::fs::read(&home.session).unwrap(), first);
}

#[test]
fn recall_alone_lists_the_newest_handles() {
    let home = home();
    assert!(said(&home.here(&["recall"])).contains("no tool output"));
    let done = home.prune();
    let pruned = done["pruned"].as_array().unwrap();
    let listed = said(&home.here(&["recall", "--limit", "3"]));
    columns_align(&listed);
    assert_eq!(listed.lines().count(), 1 + 3 + 2, "{listed}");
    assert!(listed.contains("output of Read in message") && listed.contains("session-one"), "{listed}");
    assert!(listed.contains("… more with --offset 3"), "{listed}");
    // Every page together names each handle once.
    let (mut seen, mut offset) = (Vec::new(), Some(0));
    while let Some(at) = offset {
        let page = answer(&home.here(&["recall", "--limit", "3", "--offset", &at.to_string(), "--json"]));
        seen.extend(
            page["hits"].as_array().unwrap().iter().map(|it| it["handle"].as_str().unwrap().to_owned()),
        );
        offset = page["next"].as_u64();
    }
    let mut expected: Vec<_> = pruned.iter().map(|it| it["handle"].as_str().unwrap().to_owned()).collect();
    seen.sort_unstable();
    expected.sort_unstable();
    assert_eq!(seen, expected);
    // By the session's name from anywhere, and of a session that is not known.
    let elsewhere = answer(&epitome(&home.path(), &["recall", "--session", "session-one", "--json"]));
    assert_eq!(elsewhere["hits"].as_array().unwrap().len(), expected.len().min(10));
    assert!(said(&home.here(&["recall", "--session", "nobody"])).contains("no tool output"));
}

#[test]
fn recall_reads_whole_parts_and_matching_lines() {
    let home = home();
    let done = home.prune();
    let it = &done["pruned"][0];
    let handle = it["handle"].as_str().unwrap();
    let number: usize = it["call_id"].as_str().unwrap()[1..].parse().unwrap();
    let original = output(number, 120);
    assert!(home.here(&["recall", handle]).stdout == original.as_bytes());
    let lines: Vec<&str> = original.lines().collect();
    assert_eq!(
        said(&home.here(&["recall", handle, "--range", "3-4"])),
        format!("{}\n{}\n", lines[2], lines[3])
    );
    assert_eq!(said(&home.here(&["recall", handle, "--range", "b0-5"])), format!("{}\n", &original[..5]));
    let found = said(&home.here(&["recall", handle, "--range", "/^7: /±1"]));
    assert_eq!(found, format!("7-{}\n8:{}\n9-{}\n", lines[6], lines[7], lines[8]));
    let some = said(&home.here(&["recall", handle, "--limit", "200"]));
    assert!(some.lines().last().unwrap().starts_with("… continue with --range "), "{some}");
    assert!(said(&home.here(&["recall", handle, "--range", "9999-"])).contains("is empty"));
    for (range, why) in [("x", "expected lines"), ("/(/", "expected lines"), ("9-3", "expected lines")] {
        assert!(refused(&home.here(&["recall", handle, "--range", range])).contains(why));
    }
    assert!(refused(&home.here(&["recall", "some words", "--range", "1-2"])).contains("expected a handle"));
    assert!(refused(&home.here(&["recall", "?!"])).contains("a word in it"));
    assert!(refused(&home.here(&["restore", "0000000000"])).contains("expected a handle"));
}

#[test]
fn recall_searches_and_pages() {
    let home = home();
    home.prune();
    let found = said(&home.here(&["recall", "item_", "é", "--limit", "2"]));
    assert!(found.contains("  line ") && found.contains("… more with --offset 2"), "{found}");
    let next = answer(&home.here(&["recall", "é", "--limit", "2", "--offset", "2", "--json"]));
    assert_eq!((next["scope"].as_str(), next["hits"].as_array().unwrap().len()), (Some("project"), 2));
    // Elsewhere nothing is near, so everything is searched, and it says so.
    let far = said(&epitome(&home.path(), &["recall", "é"]));
    assert!(far.starts_with("nothing in this project contains these words; elsewhere:\n"), "{far}");
    assert!(far.contains(home.project.to_str().unwrap()), "{far}");
    assert!(said(&epitome(&home.path(), &["recall", "é", "--scope", "project"])).contains("--scope all"));
    assert!(said(&home.here(&["recall", "nowhere_to_be_found"])).contains("no archived text"));
}

#[test]
fn a_handle_of_another_project_is_refused_to_an_agent() {
    let home = home();
    let done = home.prune();
    let handle = done["pruned"][0]["handle"].as_str().unwrap();
    let (other, below) = (home.path().join("q"), home.project.join("below"));
    [&other, &below].into_iter().for_each(|it| std::fs::create_dir_all(it).unwrap());
    let run = |cwd: &Path, inside: bool, scope: &[&str]| {
        let arguments: Vec<&str> = ["recall", handle].into_iter().chain(scope.iter().copied()).collect();
        let mut command = command(&home.path(), cwd, &arguments);
        if inside {
            command.env("CLAUDECODE", "1");
        }
        command.output().unwrap()
    };
    for (cwd, inside, scope) in [
        (&home.project, true, &[][..]),
        (&below, true, &[]),
        (&other, false, &[]),
        (&other, true, &["--scope", "all"]),
    ] {
        assert!(run(cwd, inside, scope).status.success(), "{cwd:?} {inside} {scope:?}");
    }
    for (inside, scope) in [(true, &[][..]), (false, &["--scope", "project"])] {
        let why = refused(&run(&other, inside, scope));
        assert!(why.contains("expected a handle of this project") && why.contains("--scope all"), "{why}");
    }
}

#[test]
fn what_was_typed_into_an_agent_is_found() {
    let home = home();
    let log = home.path().join(".codex/history.jsonl");
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    let lines =
        "{\"session_id\":\"thread-1\",\"ts\":1767225600,\"text\":\"rename the frobnicator\"}\nbroken\n";
    std::fs::write(&log, lines).unwrap();
    let found = said(&home.here(&["recall", "frobnicator"]));
    assert!(found.contains("you typed") && found.contains("codex · 2026-01-01 00:00 · thread-1"), "{found}");
    assert!(found.contains("rename the frobnicator"), "{found}");
    let found = answer(&home.here(&["recall", "frobnicator", "--json"]));
    assert_eq!(found["typed"][0]["session"], "thread-1");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), lines, "only read");
}

#[test]
fn restore_says_what_it_needs_and_a_handle_is_a_session() {
    let home = home();
    let done = home.prune();
    let original = claude("session-one", &home.project, 0..12, 120);
    let handle = done["handle"].as_str().unwrap();
    assert!(refused(&home.here(&["restore", handle])).contains("--out FILE"));
    assert!(said(&home.here(&["restore", handle, "--out", "-"])) == original);
    // The original is compacted again, otherwise.
    let again = answer(&home.here(&[
        "compact",
        handle,
        "--budget",
        "20%",
        "--profile",
        "codex",
        "--out",
        "x",
        "--json",
    ]));
    assert_eq!(again["status"], "compacted", "{again}");
    assert_eq!(again["tokens_before"], done["tokens_before"]);
    assert!(refused(&home.here(&["restore", "abcdefgh12"])).contains("unknown handle"));
    let last = said(&home.here(&["restore", "last", "--out", "y"]));
    assert!(last.contains("bytes written to y"), "{last}");
    assert!(std::fs::read(home.project.join("y")).unwrap() == original.as_bytes());
    let nothing = refused(&epitome(&home.path(), &["restore", "last"]));
    assert!(nothing.contains("expected a compaction of this directory"), "{nothing}");
}

#[test]
fn sessions_and_the_program_alone_say_what_there_is() {
    let home = home();
    let empty = tempfile::tempdir().unwrap();
    assert!(said(&epitome(empty.path(), &["sessions"])).contains("epitome doctor  # no readable sessions"));
    assert!(said(&epitome(empty.path(), &[])).contains("epitome sessions"));
    let done = home.prune();
    let sessions = said(&home.here(&["sessions"]));
    let lines: Vec<&str> = sessions.lines().collect();
    assert!(lines[0].starts_with("agent"), "{sessions}");
    assert!(lines[1].contains("session-one") && lines[1].contains("Look at everything"), "{sessions}");
    assert!(lines[2].contains("↺") && lines[2].contains("applied"), "{sessions}");
    // The handle that is shown is one to restore by.
    let shown = lines[2].split_whitespace().find(|it| it.len() == 10 && !it.contains('-')).unwrap();
    assert!(said(&home.here(&["restore", shown, "--apply"])).contains("restored"), "{sessions} {done}");
    let alone = said(&home.here(&[]));
    assert!(alone.contains("session-one") && alone.contains("epitome "), "{alone}");
    let alone = answer(&home.here(&["--json"]));
    assert_eq!(alone["sessions"][0]["id"], "session-one", "{alone}");
    // The same list, of all directories.
    let everywhere = answer(&home.here(&["sessions", "--json"]));
    assert_eq!(everywhere, alone);
}

#[test]
fn memories_are_added_found_exported_and_imported() {
    let home = home();
    assert!(said(&home.here(&["memory", "list"])).contains("epitome memory add"));
    said(&home.here(&["memory", "add", "Use", "tabs.", "--pin"]));
    said(&home.here(&["memory", "add", "use TABS", "--tag", "style"]));
    said(&home.here(&["memory", "add", "--scope", "user", "--type", "preference", "Answers: short"]));
    let all = answer(&home.here(&["memory", "list", "--json"]));
    assert_eq!(all["memories"].as_array().unwrap().len(), 3);
    let one = answer(&home.here(&["memory", "list", "--scope", "project", "--limit", "1", "--json"]));
    assert_eq!(one["memories"][0]["content"], "use TABS");
    assert!(one["memories"][0]["id"].is_string());
    assert_eq!(
        (one["memories"][0]["type"].as_str(), one["memories"][0]["scope"].as_str()),
        (Some("learned-pattern"), Some("project"))
    );
    assert_eq!(said(&home.here(&["memory", "search", "tabs"])).lines().count(), 2);
    assert!(
        said(&home.here(&["memory", "search", "tabs", "--scope", "user"])).contains("no memory contains")
    );
    let of_type = |verb: &[&str]| said(&home.here(&[&["memory"], verb, &["--type", "preference"]].concat()));
    assert!(of_type(&["search", "tabs"]).contains("no memory contains"));
    assert!(of_type(&["search", "short"]).contains("Answers: short"));
    let limited = said(&home.here(&["memory", "export", "--limit", "1"]));
    assert_eq!(limited.matches("\"content\"").count(), 1, "{limited}");
    for (verb, option) in [("tidy", "--type"), ("gc", "--scope"), ("audit", "--type"), ("show", "--limit")] {
        assert!(
            refused(&home.here(&["memory", verb, option, "1"])).contains("unexpected argument"),
            "{verb}"
        );
    }
    let of_user = said(&home.here(&["memory", "tidy", "--scope", "user", "--dry-run"]));
    assert!(of_user.contains("no duplicate memories"), "{of_user}");
    let would = said(&home.here(&["memory", "tidy", "--dry-run"]));
    assert!(would.contains("would be merged into") && would.contains("same words"), "{would}");
    assert_eq!(answer(&home.here(&["memory", "list", "--json"]))["memories"].as_array().unwrap().len(), 3);
    said(&home.here(&["memory", "tidy"]));
    assert!(said(&home.here(&["memory", "tidy"])).contains("no duplicate memories"));

    let exported = said(&home.here(&["memory", "export", "--markdown"]));
    let file = home.project.join("memories.md");
    std::fs::write(
        &file,
        format!(
            "{exported}\n# House rules\n\n- Never push to main\n  without a review\n\nBuild with `just`.\n"
        ),
    )
    .unwrap();
    let other = tempfile::tempdir().unwrap();
    let imported = said(&epitome(other.path(), &["memory", "import", file.to_str().unwrap()]));
    assert!(imported.starts_with("4 imported"), "{imported}");
    let there = answer(&epitome(other.path(), &["memory", "list", "--json"]));
    let found: Vec<&str> =
        there["memories"].as_array().unwrap().iter().map(|it| it["content"].as_str().unwrap()).collect();
    for text in ["use TABS", "Answers: short", "Never push to main\nwithout a review", "Build with `just`."] {
        assert!(found.contains(&text), "{text}: {found:?}");
    }
    let handle = one["memories"][0]["id"].as_str().unwrap();
    assert_eq!(said(&home.here(&["memory", "forget", handle])), "forgotten\n");
    assert!(refused(&home.here(&["memory", "show", handle])).contains("unknown handle"));
    assert!(
        refused(&home.here(&["memory", "add", "<private>all of it</private>"])).contains("fully private")
    );
    for arguments in [&["--before", "soon"][..], &["--max-bytes", "many"]] {
        let arguments: Vec<&str> = ["memory", "gc"].into_iter().chain(arguments.iter().copied()).collect();
        assert!(refused(&home.here(&arguments)).contains("expected"));
    }
}

#[test]
fn pinned_rules_are_in_every_summary_and_patterns_of_the_user_in_none() {
    let home = home();
    let config = home.path().join(".config/epitome/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[store]\nprivate = [\"internal-[0-9]+\"]\n").unwrap();
    said(&home.here(&["memory", "add", "--pin", "Deploy only on Tuesdays, ask internal-42"]));
    let session = home.session.to_str().unwrap();
    for profile in ["epitome", "codex", "supermemory"] {
        let done =
            answer(&home.here(&["compact", session, "--budget", "12%", "--profile", profile, "--json"]));
        let summary = done["summary"].as_str().unwrap_or_default();
        assert_eq!(
            summary.matches("Deploy only on Tuesdays, ask [REDACTED]").count(),
            1,
            "{profile}: {done}"
        );
    }
    std::fs::write(&config, "[store]\nprivate = [\"(\"]\n").unwrap();
    assert!(refused(&home.here(&["memory", "list"])).contains("expected a regular expression"));
}

#[test]
fn the_summary_of_a_session_is_remembered_for_its_project() {
    let home = home();
    let session = home.session.to_str().unwrap();
    let done = answer(&home.here(&[
        "compact",
        session,
        "--budget",
        "30%",
        "--profile",
        "supermemory",
        "--out",
        "x",
        "--json",
    ]));
    assert_eq!(done["status"], "compacted", "{done}");
    let list = answer(&home.here(&["memory", "list", "--scope", "project", "--limit", "1", "--json"]));
    let it = &list["memories"][0];
    assert!(it["content"].as_str().unwrap().starts_with("[Session Summary]"), "{it}");
    assert_eq!((it["type"].as_str(), it["scope"].as_str()), (Some("conversation"), Some("project")));
    assert!(it["id"].is_string());
}

#[test]
fn nothing_kept_nothing_replaced() {
    let home = home();
    let session = home.session.to_str().unwrap();
    let before = std::fs::read(&home.session).unwrap();
    let run = |arguments: &[&str]| {
        command(&home.path(), &home.project, arguments).env("EPITOME_PERSISTENCE", "none").output().unwrap()
    };
    let why = refused(&run(&["prune", session, "--protect", "4000", "--apply"]));
    assert!(why.contains("persistence = \"none\""), "{why}");
    assert!(std::fs::read(&home.session).unwrap() == before);
    let done = answer(&run(&["compact", session, "--budget", "30%", "--out", "x", "--json"]));
    assert!(done["warnings"].to_string().contains("cannot be restored"), "{done}");
    assert!(!home.path().join(".local/share/epitome/epitome.db").exists());
    // --store says where, whatever was configured.
    let kept = home.project.join("kept here");
    let done = answer(&run(&[
        "compact",
        session,
        "--budget",
        "30%",
        "--out",
        "x",
        "--json",
        "--store",
        kept.to_str().unwrap(),
    ]));
    let handle = done["handle"].as_str().unwrap();
    assert!(run(&["restore", handle, "--out", "-", "--store", kept.to_str().unwrap()]).stdout == before);
}
