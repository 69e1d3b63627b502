//! Every command of ours that README and docs print, and that the program prints, run as printed.

use std::path::Path;
use std::process::{Command, Output};

use crate::apply::example;

/// A home with a project in it, of which Claude Code keeps a session.
fn project() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().canonicalize().unwrap().join("checkout");
    std::fs::create_dir(&project).unwrap();
    let slug: String = project
        .display()
        .to_string()
        .chars()
        .map(|it| if it.is_ascii_alphanumeric() { it } else { '-' })
        .collect();
    let sessions = home.path().join(".claude/projects").join(slug);
    std::fs::create_dir_all(&sessions).unwrap();
    let text = String::from_utf8(example("claude-code.jsonl")).unwrap();
    let text = text.replace("/home/ada/checkout", &project.display().to_string());
    std::fs::write(sessions.join("3d0c7a52-6f1e-4c58-9a41-0b8e5f2c7d10.jsonl"), text).unwrap();
    for agent in [".codex", ".gemini", ".config/opencode"] {
        std::fs::create_dir_all(home.path().join(agent)).unwrap();
    }
    // The example that README's first command names.
    std::fs::create_dir_all(project.join("examples/sessions")).unwrap();
    std::fs::write(project.join("examples/sessions/claude-code.jsonl"), example("claude-code.jsonl"))
        .unwrap();
    home
}

/// Runs a line through the shell, as a user does, with our program on the PATH.
fn shell(home: &Path, line: &str) -> Output {
    let bin = home.join("bin");
    if !bin.exists() {
        std::fs::create_dir(&bin).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_epitome"), bin.join("epitome")).unwrap();
    }
    Command::new("sh")
        .args(["-c", line])
        .env_clear()
        .env("HOME", home)
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .current_dir(home.canonicalize().unwrap().join("checkout"))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

fn done(home: &Path, line: &str) -> String {
    let output = shell(home, line);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{line}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The command in the last line of a preview.
fn last_command(text: &str) -> String {
    let line = text.lines().rev().find(|it| it.trim_start().starts_with("epitome ")).unwrap();
    line.split("  #").next().unwrap().trim().to_owned()
}

#[test]
#[cfg(unix)]
fn what_the_program_prints_runs() {
    let there = project();
    let home = there.path();
    done(home, &last_command(&done(home, "epitome")));
    let id = "3d0c7a52";
    let before = std::fs::read_dir(home.join(".claude/projects")).unwrap().count();
    assert_eq!(before, 1);
    for options in
        ["", "--budget 30%", "--budget 4k --profile codex --pin 'port 7431' --focus \"the user's tests\""]
    {
        let shown = done(home, &format!("epitome compact {id} {options}"));
        let summary = |it: &str| it.split("────").nth(2).unwrap_or_default().to_owned();
        let apply = last_command(&shown);
        assert!(apply.starts_with("epitome apply "), "{apply}");
        let applied = done(home, &apply);
        assert_eq!(summary(&applied), summary(&shown), "{options}: what was shown is what was installed");
        let undo = applied.lines().find_map(|it| it.strip_prefix("undo     ")).unwrap().to_owned();
        assert!(done(home, &undo).contains("resume"), "{undo}");
    }
    // What cannot be applied to is written to a file.
    let shown = done(home, "epitome compact examples/sessions/claude-code.jsonl --budget 25%");
    done(home, &last_command(&shown));
    assert!(home.join("checkout/claude-code.compacted.jsonl").exists());
    // Without an archive the command stands as it was typed.
    let shown =
        done(home, "EPITOME_STORE=none epitome compact examples/sessions/claude-code.jsonl --budget 25%");
    assert!(last_command(&shown).starts_with("epitome compact examples/"), "{shown}");
    done(home, &last_command(&shown));
}

/// Another process that writes holds the store for up to 30 s; a preview does without, and prints a command that needs no
/// handle.
#[test]
#[cfg(unix)]
fn a_preview_does_not_wait_for_a_store_that_is_held() {
    let there = project();
    let home = there.path().to_owned();
    done(&home, "epitome memory add 'makes the store'");
    let other = rusqlite::Connection::open(home.join(".local/share/epitome/epitome.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (tell, wait) = std::sync::mpsc::channel();
    let place = home.clone();
    std::thread::spawn(move || tell.send(shell(&place, "epitome compact 3d0c7a52 --budget 30%")));
    let output = wait.recv_timeout(std::time::Duration::from_secs(20)).expect("it waits for the store");
    other.execute_batch("ROLLBACK").unwrap();
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("## Goal"), "{text}{said}");
    assert!(said.contains("could not be saved") && said.contains("locked by another process"), "{said}");
    let command = last_command(&text);
    assert_eq!(command, "epitome compact 3d0c7a52 --budget 30% --apply");
    assert!(done(&home, &command).contains("resume"));
}

#[test]
#[cfg(unix)]
fn a_preview_is_installed_only_while_it_is_true() {
    let there = project();
    let home = there.path();
    let apply = last_command(&done(home, "epitome compact 3d0c7a52 --budget 30%"));
    let folder = std::fs::read_dir(home.join(".claude/projects")).unwrap().next().unwrap().unwrap().path();
    let path = folder.join("3d0c7a52-6f1e-4c58-9a41-0b8e5f2c7d10.jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    let last: serde_json::Value = text
        .lines()
        .rev()
        .find_map(|it| {
            let row: serde_json::Value = serde_json::from_str(it).unwrap();
            row["message"].is_object().then_some(row)
        })
        .unwrap();
    let mut row = last.clone();
    row["type"] = "user".into();
    row["uuid"] = "00000000-0000-4000-8000-0000000000aa".into();
    row["parentUuid"] = last["uuid"].clone();
    row["message"] = serde_json::json!({"role": "user", "content": "And one thing more."});
    text.push_str(&format!("{row}\n"));
    std::fs::write(&path, &text).unwrap();
    let output = shell(home, &apply);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("previewed") && said.contains("epitome compact"), "{said}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing was written");
    let output = shell(home, "epitome apply zzzzzzzzzz");
    assert_ne!(output.status.code(), Some(0));
}

/// The exit code of a check says whether the profile would compact.
#[test]
#[cfg(unix)]
fn the_exit_code_says_whether_a_session_is_due() {
    let there = project();
    let session = "examples/sessions/claude-code.jsonl";
    for (window, due) in [("1m", false), ("30k", true)] {
        let check = shell(there.path(), &format!("epitome estimate {session} --window {window} --check"));
        let text = String::from_utf8_lossy(&check.stdout).into_owned();
        assert_eq!(check.status.code(), Some(i32::from(due)), "{window}: {text}");
        assert!(text.contains(if due { "epitome: due: " } else { "epitome: not yet due: " }), "{text}");
    }
}

/// Lines of `sh` blocks that call us.
fn blocks(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for block in text.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap();
        out.extend(
            block
                .lines()
                .filter(|it| it.starts_with("epitome ") || *it == "epitome")
                .map(|it| it.split("  #").next().unwrap().trim().to_owned()),
        );
    }
    out
}

#[test]
#[cfg(unix)]
fn what_readme_and_docs_print_runs() {
    let there = project();
    let home = there.path();
    let memory = done(home, "epitome memory add 'The cache is keyed by path' --json");
    let memory: serde_json::Value = serde_json::from_str(&memory).unwrap();
    let memory = memory["memory"]["id"].as_str().unwrap().to_owned();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut ran = 0;
    for page in [
        "README.md",
        "docs/configuration.md",
        "docs/privacy.md",
        "docs/clients.md",
        "docs/gateway.md",
        "docs/cost.md",
        "docs/why.md",
        "docs/security.md",
        "docs/archive.md",
    ] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        for line in blocks(&text).iter().filter(|it| !it.contains(" serve ")) {
            done(home, &line.replace("HANDLE", &memory));
            ran += 1;
        }
    }
    assert!(ran >= 5, "{ran} commands");
    // The table of commands: each in its shortest form.
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    for row in readme.lines().filter(|it| it.starts_with("| `epitome")) {
        let command = row.trim_start_matches("| `").split('`').next().unwrap();
        let name = command.split(' ').take(2).collect::<Vec<_>>().join(" ");
        assert!(shell(home, &format!("{name} --help")).status.success(), "{row}");
    }
}

/// Every rule of docs/security.md names tests, and they are there.
#[test]
fn what_the_security_page_states_a_test_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut code, mut open) = (String::new(), vec![root.join("src/interfaces/mcp"), root.join("tests/all")]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                code.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let page = std::fs::read_to_string(root.join("docs/security.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|it| it.starts_with("| ") && !it.contains("rule |")).collect();
    assert!(rows.len() >= 8, "{rows:?}");
    for row in rows {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "{row}");
        for name in names {
            assert!(code.contains(&format!("fn {name}()")), "{name} is no test");
        }
    }
}
