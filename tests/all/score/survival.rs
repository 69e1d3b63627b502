//! What counts as survival, and what does not, on sessions made by hand and by chance.

use epitome::history::{Call, History, Kind, Message, Meta, Opaque, Output, Part, Role, Text};
use epitome::score::baselines::Baseline;
use epitome::score::{self, Class, Score, synthetic};

fn count(message: &Message) -> u64 {
    message
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(it) => it.size().bytes,
            Part::Call(it) => it.input.size().bytes,
            Part::Output(it) => it.text.size().bytes,
            Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => 0,
        })
        .sum::<u64>()
        / 4
        + 4
}

fn user(text: &str) -> Message {
    Message::text(Role::User, Kind::Said, text)
}

fn assistant(text: &str) -> Message {
    Message::text(Role::Assistant, Kind::Said, text)
}

fn tool(id: &str, name: &str, input: &str, answer: &str, failed: bool) -> [Message; 2] {
    let call =
        Call { id: id.into(), name: name.into(), input: input.into(), freeform: false, signature: None };
    let output = Output { failed, ..Output::new(id, answer) };
    [
        Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)]),
        Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)]),
    ]
}

fn history(messages: Vec<Message>) -> History {
    History::new(messages, Meta { cwd: Some("/home/ann/shop".into()), ..Meta::default() })
}

/// A small session with a fact of every class, and three messages of tail.
fn source() -> History {
    let mut out = vec![user(
        "Add rate limiting to the login route of the shop API.\nNever log customer passwords in clear text.\n\
         The limiter must answer with status 429 after ten attempts.",
    )];
    out.extend(tool("a", "Read", r#"{"file_path":"/home/ann/shop/src/login.rs"}"#, "1→fn login() {}", false));
    out.extend(tool(
        "b",
        "Edit",
        r#"{"file_path":"/home/ann/shop/src/login.rs","old_string":"a","new_string":"b"}"#,
        "The file has been updated",
        false,
    ));
    out.extend(tool(
        "c",
        "Write",
        r#"{"file_path":"/home/ann/shop/src/limit.rs"}"#,
        "File created successfully",
        false,
    ));
    out.extend(tool(
        "d",
        "Edit",
        r#"{"file_path":"/home/ann/shop/src/main.rs"}"#,
        "<tool_use_error>String to replace not found in file.</tool_use_error>",
        true,
    ));
    out.extend(tool(
        "e",
        "Bash",
        r#"{"command":"cd /home/ann/shop && cargo test limiter 2>&1 | tail -20"}"#,
        "Exit code 101\nerror[E0599]: no method named `drain` found for struct `Bucket`",
        true,
    ));
    out.extend(tool("f", "Bash", r#"{"command":"cargo build"}"#, "Finished dev profile", false));
    out.extend(tool(
        "g",
        "TodoWrite",
        r#"{"todos":[{"content":"Write the limiter","status":"completed"},{"content":"Document the retry header","status":"pending"}]}"#,
        "Todos updated",
        false,
    ));
    out.push(assistant(
        "The sliding window approach didn't work because the clock is not monotonic.\n\
         Where should the counters live?\n\n1. In Redis with a TTL\n2. In process memory",
    ));
    out.push(user("1"));
    out.extend(tool("h", "Bash", r#"{"command":"git commit -m limiter"}"#, "[main 4be81f2] limiter", false));
    out.push(user("now write the changelog entry for the limiter please"));
    out.push(assistant("On it."));
    out.push(user("thanks, carry on with the changelog"));
    history(out)
}

const TAIL: usize = 3;

fn with_summary(summary: &str) -> History {
    let source = source();
    let mut messages = vec![Message::text(Role::User, Kind::Summary, summary)];
    messages.extend(source.messages()[source.messages().len() - TAIL..].iter().cloned());
    history(messages)
}

fn scored(summary: &str) -> Score {
    score::score(&source(), &with_summary(summary), &|_| false, &count)
}

fn kept(score: &Score) -> String {
    let line = |(class, tally): (&Class, &score::Tally)| {
        format!("{} {}/{}", class.letter(), tally.kept, tally.found)
    };
    score.classes.iter().map(line).collect::<Vec<_>>().join(", ")
}

const GOOD: &str = "## Goal\nAdd rate limiting to the login route of the shop API.\n\n\
    ## User constraints\n- Never log customer passwords in clear text.\n- The limiter must answer with status 429 after ten attempts.\n\n\
    ## Files\nModified files:\n- src/login.rs\nNew:\n- src/limit.rs\n\n\
    ## Commands\n- `cargo test limiter`: failed, exit code 101\n- `cargo build`: ok\n- `git commit -m limiter` ✓ (4be81f2)\n\n\
    ## Open errors\n- error[E0599]: no method named `drain` found for struct `Bucket`\n\n\
    ## Next\n- [ ] Document the retry header\n\n\
    ## Decisions\n- Where should the counters live? In Redis with a TTL\n\
    - The sliding window approach didn't work because the clock is not monotonic.\n";

#[test]
fn an_answer_that_stands_in_another_question_contradicts_nothing() {
    let ask = |id: &str, question: &str, answer: &str| {
        let input = format!(
            r#"{{"questions":[{{"question":"{question}","options":[{{"label":"More questions"}},{{"label":"{answer}"}}]}}]}}"#
        );
        let output =
            format!("User has answered your questions: \"{question}\"=\"{answer}\". You can now continue.");
        tool(id, "AskUserQuestion", &input, &output, false)
    };
    let mut messages = vec![user("Plan the shop with me.")];
    messages.extend(ask("a", "More questions about prices, or shall we go on?", "More questions"));
    messages.extend(ask("b", "More questions about prices, or shall we go on?", "Next area"));
    messages.extend(ask("c", "More questions about stock, or are we done?", "Done, write it"));
    messages.push(assistant("It is planned."));
    let source = history(messages);
    let summary = |line: &str| {
        let text = format!(
            "## Decisions\n- asked: More questions about stock, or are we done? → \"Done, write it\"\n{line}"
        );
        let compacted =
            history(vec![Message::text(Role::User, Kind::Summary, text), assistant("It is planned.")]);
        score::score(&source, &compacted, &|_| false, &count).contradictions.len()
    };
    assert_eq!(summary(""), 0);
    assert_eq!(summary("- asked: More questions about prices, or shall we go on? → \"More questions\"\n"), 1);
}

#[test]
fn the_words_that_a_command_searches_for_claim_nothing() {
    let unsupported = |line: &str| scored(&format!("{GOOD}\n## Builds\n- {line}\n")).unsupported.len();
    assert_eq!(unsupported("`make app | grep 'all tests pass'` → ran"), unsupported("`make app` → ran"));
    assert!(unsupported("All tests pass, and `make app` ran") > unsupported("`make app` ran"));
}

#[test]
fn a_good_summary_keeps_everything() {
    let score = scored(GOOD);
    insta::assert_snapshot!(kept(&score), @"U 2/2, D 1/1, F 2/2, X 3/3, E 1/1, P 1/1, G 1/1, T 1/1, I 1/1");
    assert_eq!(score.kept, Some(1.0));
    assert_eq!((score.contradictions.len(), score.unsupported.len()), (0, 0), "{score:#?}");
    assert_eq!(score.tail_messages, TAIL);
    assert_eq!((score.last_request.found, score.last_request.kept), (1, 1));
}

#[test]
fn the_tail_earns_nothing() {
    let source = source();
    let all = source.messages();
    let score = score::score(&source, &history(all[all.len() - TAIL..].to_vec()), &|_| false, &count);
    assert_eq!(score.kept, Some(0.0));
    assert!(score.classes.values().all(|it| it.kept == 0));
    let same = score::score(&source, &source, &|_| false, &count);
    assert_eq!((same.kept, same.classes.len()), (None, 0));
}

#[test]
fn facts_survive_only_in_usable_form() {
    for (what, from, to, class) in [
        (
            "a path without its operation",
            "Modified files:\n- src/login.rs\n",
            "- src/login.rs\n",
            Class::File,
        ),
        ("a file name without its path", "- src/login.rs", "- login.rs", Class::File),
        ("a command without its outcome", "`cargo build`: ok", "`cargo build`", Class::Command),
        ("another command that starts alike", "`cargo build`: ok", "`cargo build-extra`: ok", Class::Command),
        (
            "half a rule",
            "Never log customer passwords in clear text",
            "Never log customer data",
            Class::UserRule,
        ),
        (
            "a rule that nobody said is one",
            "## User constraints\n- Never log customer passwords in clear text.\n",
            "## Notes\n- Never log customer passwords in clear text.\n\n## User constraints\n",
            Class::UserRule,
        ),
        ("an item without its state", "## Next\n- [ ] Document", "## Remarks\nDocument", Class::OpenItem),
        (
            "a choice without its question",
            "Where should the counters live? In Redis with a TTL",
            "In Redis",
            Class::Decision,
        ),
        ("a hash that is cut too short", "4be81f2", "4be81f", Class::Identifier),
    ] {
        assert!(GOOD.contains(from), "{what}");
        let score = scored(&GOOD.replace(from, to));
        let tally = score.classes[&class];
        assert_eq!(tally.kept + 1, tally.found, "{what}: {:#?}", score.lost);
        assert_eq!(score.lost.len(), 1, "{what}: {:#?}", score.lost);
    }
}

#[test]
fn what_is_turned_around_is_a_contradiction() {
    for (from, to, class) in [
        (
            "- Never log customer passwords in clear text.",
            "- Always log customer passwords in clear text.",
            Class::UserRule,
        ),
        ("The limiter must answer", "The limiter must not answer", Class::UserRule),
        ("`cargo build`: ok", "`cargo build`: failed", Class::Command),
        ("failed, exit code 101", "passed", Class::Command),
        ("Modified files:\n- src/login.rs", "Deleted files:\n- src/login.rs", Class::File),
        ("- [ ] Document the retry header", "- [x] Document the retry header", Class::OpenItem),
        ("## Open errors", "## Fixed errors", Class::Error),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let score = scored(&GOOD.replace(from, to));
        let classes: Vec<Class> = score.contradictions.iter().map(|it| it.class).collect();
        assert_eq!(classes, [class], "{to}: {:#?}", score.contradictions);
        let tally = score.classes[&class];
        assert_eq!(tally.kept + 1, tally.found, "{to}: {:#?}", score.lost);
    }
}

#[test]
fn quoted_rules_are_rules() {
    let bare = "- Never log customer passwords in clear text.\n";
    for row in [
        "- \"Never log customer passwords in clear text.\" (#1)\n",
        "- The user said: \"Never log customer passwords in clear text.\"\n",
        "> Never log customer passwords in clear text.\n",
        "- 「Never log customer passwords in clear text.」\n",
        "1. **Never log customer passwords in clear text** [1]\n",
        "\n## Goal\n- \"Add rate limiting. Never log customer passwords in clear text.\"\n\n## User constraints\n",
    ] {
        let score = scored(&GOOD.replace(bare, row));
        assert_eq!(score.classes[&Class::UserRule].kept, 2, "{row}: {:#?}", score.lost);
        assert!(score.unsupported.is_empty() && score.contradictions.is_empty(), "{row}");
    }
}

#[test]
fn nobody_may_make_things_up() {
    for (line, claim) in [
        ("- Edited src/payment/stripe.rs", score::Claim::Path),
        ("- `cargo publish --dry-run`: ok", score::Claim::Command),
        ("- Committed as 99aa8b7c", score::Claim::Hash),
        ("- The user said \"please drop the whole database now\"", score::Claim::Quote),
        ("All tests pass.", score::Claim::Success),
    ] {
        let score = scored(&format!("{GOOD}\n{line}\n"));
        let claims: Vec<_> = score.unsupported.iter().map(|it| it.claim).collect();
        assert_eq!(claims, [claim], "{line}: {:#?}", score.unsupported);
    }
    for line in [
        "- The user said \"carry on with the changelog\"",
        "- A thread where a user wrote \"the second relay drops every packet\"",
        "- Read /home/ann/shop/src/login.rs and src/main.rs",
        "- Tests do not pass yet.",
        "- `cargo test limi…` and src/logi… and `git commit -m lim...`",
        "- See and/or the client/server split, e.g. in Node.js",
    ] {
        let score = scored(&format!("{GOOD}\n{line}\n"));
        assert!(score.unsupported.is_empty(), "{line}: {:#?}", score.unsupported);
    }
}

#[test]
fn what_a_sealed_compaction_replaced_supports_a_claim() {
    let run = r#"{"command":"cat NOTES.md","workdir":"/home/ann/shop/docs"}"#;
    let replaced = tool("r", "shell_command", run, "Read the meter first.", false);
    let sealed = Opaque { api: "codex".into(), kind: "compaction".into(), raw: Text::new("{}") };
    let mut sealed = Message::new(Role::Assistant, Kind::Summary, vec![Part::Opaque(sealed)]);
    let scored = |sealed: Message| {
        let source = history(vec![user("Mend the pump."), sealed, user("go on")]);
        let summary = "Read docs/NOTES.md, then edited docs/VALVE.md";
        let compacted = history(vec![Message::text(Role::User, Kind::Summary, summary), user("go on")]);
        let score = score::score(&source, &compacted, &|_| false, &count);
        score.unsupported.into_iter().map(|it| it.text).collect::<Vec<_>>()
    };
    assert_eq!(scored(sealed.clone()), ["docs/NOTES.md", "docs/VALVE.md"]);
    sealed.replaced = Some(replaced.into());
    assert_eq!(scored(sealed), ["docs/VALVE.md"]);
}

#[test]
fn a_prompt_that_stands_word_for_word_says_all_that_it_said() {
    let list: String = (1..12).map(|it| format!("{it}. Pump\n\nWhich valve?\n")).collect();
    let prompt = user(&format!("Find out how each pump works, and never open a valve.\n{list}"));
    let source = history(vec![prompt.clone(), assistant("I look."), user("go on")]);
    let summary = Message::text(Role::User, Kind::Summary, "Nothing is known.");
    let kept = |messages: Vec<Message>| score::score(&source, &history(messages), &|_| false, &count).kept;
    assert_eq!(kept(vec![summary.clone(), prompt, user("go on")]), Some(1.0));
    assert_eq!(kept(vec![summary, user("go on")]), Some(0.0));
}

#[test]
fn other_words_for_operations() {
    for (row, kept) in [
        ("- edited `src/login.rs`, created `src/limit.rs`", 2),
        ("- `src/login.rs` (edited), `src/limit.rs` (new)", 2),
        ("- `src/login.rs`: edited, `src/limit.rs`: created", 2),
        ("MODIFIED:\n- src/login.rs\n- src/main.rs\nADDED:\n- src/limit.rs", 2),
        ("### 修改的文件\n- src/login.rs\n### 新增\n- src/limit.rs", 2),
        ("変更したファイル:\n- src/login.rs\n作成:\n- src/limit.rs", 2),
        ("M src/login.rs\nA src/limit.rs", 2),
        ("| src/login.rs | updated |\n| src/limit.rs | added |", 2),
        ("- edited /home/ann/shop/src/login.rs and wrote ~/shop/src/limit.rs", 2),
        ("- src/login.rs\n- src/limit.rs", 0),
        ("- still to edit: src/login.rs", 0),
        ("- did not edit src/login.rs", 0),
    ] {
        let score = scored(row);
        assert_eq!(score.classes[&Class::File].kept, kept, "{row}: {:#?}", score.lost);
        assert!(score.contradictions.is_empty(), "{row}: {:#?}", score.contradictions);
    }
}

#[test]
fn somebodys_words_are_no_statement() {
    for line in [
        "- The user asked: \"delete src/login.rs when the move is over\"",
        "- The user asked: “delete src/login.rs when the move is over”",
    ] {
        let score = scored(&format!("{GOOD}\n{line}\n"));
        assert!(score.contradictions.is_empty(), "{line}: {:#?}", score.contradictions);
    }
    let told = scored(&format!("{GOOD}\n- Deleted src/login.rs when the move was over\n"));
    assert_eq!(told.contradictions.len(), 1, "{:#?}", told.contradictions);
}

#[test]
fn a_root_named_once_holds_for_all_that_follow() {
    for (row, kept) in [
        ("- edited in /home/ann/shop: src/login.rs\n- created in /home/ann/shop: src/limit.rs", 2),
        ("- edited in /home/ann/other: src/main.rs, login.rs", 0),
    ] {
        let score = scored(row);
        assert_eq!(score.classes[&Class::File].kept, kept, "{row}: {:#?}", score.lost);
    }
}

#[test]
fn whether_an_error_is_told_to_be_settled() {
    let bare = "- error[E0599]: no method named `drain` found for struct `Bucket`";
    for (behind, contradicts) in [
        (" (5 passed, 1 failed)", false),
        (" → unresolved", false),
        (": not found → unresolved", false),
        (" → resolved", true),
        (", fixed since", true),
    ] {
        let score =
            scored(&GOOD.replace(&format!("## Open errors\n{bare}"), &format!("## Errors\n{bare}{behind}")));
        let found = score.contradictions.iter().any(|it| it.class == Class::Error);
        assert_eq!(found, contradicts, "{behind}: {:#?}", score.contradictions);
    }
}

#[test]
fn other_words_for_outcomes() {
    for (row, kept) in [
        ("✗ `cargo test limiter` ✓ `cargo build` ✓ `git commit -m limiter`", 3),
        (
            "- `cargo test limiter` → exit 101\n- `cargo build` → exit 0\n- `git commit -m limiter`: success",
            3,
        ),
        (
            "Failed commands:\n- cargo test limiter\nCommands that passed:\n- cargo build\n- git commit -m limiter",
            3,
        ),
        ("### 失败\n- `cargo test limiter`\n### 成功\n- `cargo build`\n- `git commit -m limiter`", 3),
        ("- cargo build first failed twice, then passed", 1),
        ("- cargo build: no errors; cargo test limiter: 2 failed", 2),
        ("- cargo test limiter, cargo build, git commit -m limiter", 0),
        // What a command goes on with inside its quotes is no other command, and a heading of several things no outcome.
        (
            "## Commands and errors\n- `cargo test limiter 2>&1 | tail -5` → failed\n- `cargo build | head` → ok\n- `git commit -m limiter` → ok",
            3,
        ),
        ("## Commands and errors\n- `cargo test limiter`\n- `cargo build`", 0),
    ] {
        let score = scored(row);
        assert_eq!(score.classes[&Class::Command].kept, kept, "{row}: {:#?}", score.lost);
        assert!(score.contradictions.is_empty(), "{row}: {:#?}", score.contradictions);
    }
}

/// What a summary says against a session of these commands, each with its answer.
fn against(commands: &[(&str, &str)], said: &[&str], summary: &str) -> (Vec<String>, Vec<String>) {
    let mut messages = vec![user("Make the check pass.")];
    for (at, (command, answer)) in commands.iter().enumerate() {
        let input = serde_json::json!({ "command": command }).to_string();
        messages.extend(tool(&format!("c{at}"), "Bash", &input, answer, answer.starts_with("Exit code")));
    }
    messages.extend(said.iter().map(|it| assistant(it)));
    messages.push(user("go on"));
    let compacted = history(vec![Message::text(Role::User, Kind::Summary, summary), user("go on")]);
    let score = score::score(&history(messages), &compacted, &|_| false, &count);
    let contradicted = score.contradictions.into_iter().map(|it| it.expected).collect();
    (contradicted, score.unsupported.into_iter().map(|it| it.text).collect())
}

#[test]
fn what_is_true_is_no_contradiction() {
    let long = "python3 tools/generate_worklist.py --profile all --cwd /home/ann/shop --runtime-check delegation_available=true";
    let colours = "\u{1b}[96msrc/a.ts\u{1b}[0m:\u{1b}[93m29\u{1b}[0m:\u{1b}[93m39\u{1b}[0m - \u{1b}[91merror\u{1b}[0m\u{1b}[90m TS2345: \u{1b}[0mno";
    for (commands, said, summary) in [
        // A chain that failed says nothing of its links.
        (
            vec![
                ("./run.sh stage", "fine"),
                ("git add a && ./run.sh stage && ./run.sh stop", "Exit code 127\nno such file"),
            ],
            vec![],
            "- `git add a && ./run.sh stage && ./run.sh stop` → failed, exit 127",
        ),
        // Of two commands that begin alike, how one of them ended.
        (
            vec![
                (&*format!("{long} --first one --second two"), "fine"),
                (&*format!("{long} --third three"), "Exit code 2\nerror: no third"),
            ],
            vec![],
            &*format!("- `{long} --first` … → ok\n- `{long} --third` … → failed"),
        ),
        // What the user asked for.
        (
            vec![("docker compose config -q", "Exit code 1\nno such service")],
            vec![],
            "## Rules\n- \"Test: `docker compose config -q` must exit 0\"",
        ),
        (
            vec![(
                "git add todos/done/a.md && git rm --cached todos/pending/a.md 2>/dev/null; git commit -m \"$(cat <<'EOF'\nEOF\n)\"",
                "[main d17fb47] chore: close",
            )],
            vec![],
            "- `git add todos/done/a.md && git rm --cached todos/pending/a.md 2>/dev/null; git commit -m \"$(cat <<'EOF'` … (Commit todo move to done) → ok",
        ),
        // Colours, warnings, a task runner, Codex's head.
        (
            vec![("npx tsc --pretty | head -5", colours)],
            vec![],
            "- `npx tsc --pretty` → failed: src/a.ts:29:39 - error TS2345: no",
        ),
        (
            vec![(
                "npx oxlint .",
                "a.ts:1:2: warning eslint(no-unused-vars): 'error' is caught but never used",
            )],
            vec![],
            "- `npx oxlint .` → ok",
        ),
        (
            vec![(
                "go vet . | tail && go test ./... | tail && lint | tail",
                "FAIL\nFAIL\tx/a\t0.7s\nok  \tx/b\t0.1s\nFAIL\n1 issue",
            )],
            vec![],
            "- `go vet . | tail && go test ./... | tail && lint | tail` → failed",
        ),
        (
            vec![("go test ./a | tail; go test ./a | tail", "FAIL\tx/a\t0.7s\nok  \tx/a\t0.1s")],
            vec![],
            "- `go test ./a | tail; go test ./a | tail` → ok",
        ),
        (
            vec![(
                "cp a /tmp/a && python3 - <<'PY'\nPY\ngo test ./a | grep FAIL; cp /tmp/a a && go test ./a | tail -2",
                "--- FAIL: TestEnd (0.00s)\n  Error: Not equal:\nFAIL\nFAIL\tx/a\t0.1s\nFAIL\nok  \tx/a\t1.3s",
            )],
            vec![],
            "- `cp a /tmp/a && python3 - <<'PY'` … → ok",
        ),
        (
            vec![("docker compose config -q", "<tool_use_error>Sibling tool call errored</tool_use_error>")],
            vec![],
            "- `docker compose config -q` → not run",
        ),
        (
            vec![("mise run check; tail x", "[lint] bad\n[lint] ERROR task failed")],
            vec![],
            "- `mise run check; tail x` → failed",
        ),
        (
            vec![(
                "dir=\"/tmp/x\"; python3 list.py",
                "Script completed\nOutput:\nTraceback (most recent call last):\nTypeError: no",
            )],
            vec![],
            "- `dir=\"/tmp/x\"; python3 list.py` → failed: TypeError: no",
        ),
        (
            vec![(
                "npx eslint src/a.ts | tail -3; echo done",
                "3:1 error no\n\n✖ 4 problems (3 errors, 1 warning)\n\ndone",
            )],
            vec![],
            "- `npx eslint src/a.ts | tail -3; echo done` → failed, 3 errors",
        ),
        // Totals of test runners, and filters whose end says nothing of what they filter.
        (
            vec![("node --test pump.test.js | grep -E \"^. (pass|fail)\"", "ℹ pass 3\nℹ fail 1")],
            vec![],
            "- `node --test pump.test.js | grep -E \"^. (pass|fail)\"` → failed, 3 passed, 1 failed",
        ),
        (
            vec![(
                "pytest --collect-only -q | tail -9",
                "ERROR a_test.py\nno tests collected, 2 errors in 0.2s",
            )],
            vec![],
            "- `pytest --collect-only -q` → failed, 2 errors",
        ),
        (
            vec![(
                "npx oxlint a.ts 2>&1 | tail -3; git diff",
                "\nFound 0 warnings and 5 errors.\na.ts | 2 +-",
            )],
            vec![],
            "- `npx oxlint a.ts 2>&1 | tail -3; git diff` → failed, 5 errors",
        ),
        (
            vec![("npx prettier --check a.ts | tail -1", "[warn] Code style issues found in 5 files.")],
            vec![],
            "- `npx prettier --check a.ts` → failed",
        ),
        (
            vec![("npx tsc a.ts | head -5", "error TS5112: tsconfig.json is present.")],
            vec![],
            "- `npx tsc a.ts` → failed: error TS5112: tsconfig.json is present.",
        ),
        (
            vec![("pytest -q | grep -E \"Error|assert\" | head -3", ">  assert 500 == 204")],
            vec![],
            "- `pytest -q | grep -E \"Error|assert\"` → failed: assert 500 == 204",
        ),
        // What the agent said in its own words.
        (
            vec![("cat src/a.rs", "fn a() {}")],
            vec!["The logic is in `src/a.rs`. Here is why: deleted lines of src/a.rs are not counted."],
            "- The logic is in `src/a.rs`. Here is why: deleted lines of src/a.rs are not counted.",
        ),
        // Line breaks that the session's file escapes twice, and the value of a field.
        (
            vec![("node -e \"console.log(keys.join('\\n'), 1)\"", "a")],
            vec![],
            "- `node -e \"console.log(keys.join('\\n'), 1)\"` → ok\n- {\"risk\":\"low\",\"why\":\"It is what the user asked for, no more\"}",
        ),
    ] {
        let (contradicted, unsupported) = against(&commands, &said, summary);
        assert_eq!(
            (contradicted.len(), unsupported.len()),
            (0, 0),
            "{summary}: {contradicted:?} {unsupported:?}"
        );
    }
    for (commands, summary) in [
        (vec![("./run.sh stage", "fine")], "- `./run.sh stage` → failed"),
        (vec![("cd /tmp && ./run.sh stage", "fine")], "- `cd /tmp && ./run.sh stage` → failed"),
        (vec![("mise run check; tail x", "[lint] ERROR task failed")], "- `mise run check; tail x` → ok"),
        (vec![("npx oxlint a.ts | tail", "Found 2 warnings and 0 errors.")], "- `npx oxlint a.ts` → failed"),
        (vec![("node --test a.js | tail", "# pass 3\n# fail 0")], "- `node --test a.js` → failed, 1 failed"),
    ] {
        assert_eq!(against(&commands, &[], summary).0.len(), 1, "{summary}");
    }
}

#[test]
fn what_a_transcript_shows_nobody_says() {
    let parts = [
        "Assess the action.\n",
        ">>> TRANSCRIPT START\n",
        "[1] tool exec result: error: failed to push to https://example.org/a/b/pull/71\n",
        "[2] user: Never touch src/old.rs.\n",
        ">>> TRANSCRIPT END\nAnswer with port 8417.",
    ];
    let shown =
        Message::new(Role::User, Kind::Said, parts.iter().map(|it| Part::Text((*it).into())).collect());
    let facts: Vec<String> =
        score::probes(&history(vec![shown, assistant("Done.")])).iter().map(|it| it.text()).collect();
    let said = |what: &str| facts.iter().any(|it| it.contains(what));
    assert!(!said("pull/71") && !said("failed to push") && !said("src/old.rs"), "{facts:?}");
    assert!(said("8417"), "{facts:?}");
}

#[test]
fn a_heap_of_keywords_earns_nothing() {
    let planted = synthetic::planted(7, 12);
    let mut words: Vec<String> = planted
        .probes
        .iter()
        .flat_map(|it| it.text().split_whitespace().map(str::to_string).collect::<Vec<_>>())
        .filter(|it| !it.contains(".rs"))
        .collect();
    words.sort();
    let heap = words.join(" ");
    let compacted = history(vec![
        Message::text(Role::User, Kind::Summary, format!("User constraints: {heap}")),
        user("go on"),
    ]);
    let mut source = planted.history.clone().into_messages();
    source.push(user("go on"));
    let score = score::score_probes(&history(source), &planted.probes, &compacted, &|_| false, &count);
    for class in [Class::UserRule, Class::File, Class::Command, Class::Error, Class::Decision] {
        assert_eq!(score.classes[&class].kept, 0, "{class:?}: {}", kept(&score));
    }
}

#[test]
fn planted_facts_are_all_found() {
    for seed in 0..5 {
        let planted = synthetic::planted(seed, 30);
        let found = score::probes(&planted.history);
        for probe in &planted.probes {
            assert!(
                found.contains(probe),
                "seed {seed}: {probe:?}\n{:#?}",
                found.iter().filter(|it| it.class == probe.class).take(4).collect::<Vec<_>>()
            );
        }
    }
    assert_eq!(synthetic::planted(3, 5), synthetic::planted(3, 5));
}

#[test]
fn baselines_on_planted_facts() {
    let planted = synthetic::planted(11, 60);
    let total: u64 = planted.history.messages().iter().map(count).sum();
    let mut table = String::new();
    for share in [10, 20] {
        for baseline in Baseline::ALL {
            let compacted = baseline.compact(&planted.history, total * share / 100, &count);
            let score =
                score::score_probes(&planted.history, &planted.probes, &compacted, &|_| false, &count);
            assert!(score.tokens.after <= total * share / 100);
            table.push_str(&format!(
                "{share}% {}: {:.2} ({})\n",
                baseline.name(),
                score.kept.unwrap_or(-1.0),
                kept(&score)
            ));
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn what_a_handle_brings_back_is_recoverable() {
    let score = score::score(&source(), &with_summary("## Notes\nNothing."), &|message| message == 0, &count);
    let u = score.classes[&Class::UserRule];
    assert_eq!((u.kept, u.recoverable, u.lost), (0, 2, 0));
    assert_eq!(score.classes[&Class::File].recoverable, 0);
    assert!(score.kept_or_recoverable > score.kept);
}

#[test]
fn the_shape_is_stable() {
    let score = scored(&GOOD.replace("`cargo build`: ok", "`cargo build`: failed"));
    insta::assert_json_snapshot!(score);
}

#[test]
fn hostile_sessions() {
    // Only images.
    let media = || {
        Part::Media(epitome::history::Media {
            kind: epitome::history::MediaKind::Image,
            mime: "image/png".into(),
            data: "AAAA".into(),
            size: None,
        })
    };
    let images = history((0..5).map(|_| Message::new(Role::User, Kind::Said, vec![media()])).collect());
    assert!(score::probes(&images).is_empty());
    assert_eq!(score::score(&images, &history(vec![]), &|_| false, &count).kept, None);
    // Logs full of orders are no orders.
    let log = "```\nnever must always don't\n```\n\
        2026-01-01 10:00:00 ERROR you must never do this\n> always use tabs\n\"must\": \"not\",\n[worker] must restart, never retry\n\
        at never::must (src/a.rs:3)\n<output>\nAlways run as root.\n</output>";
    let found = score::probes(&history(vec![user(log)]));
    assert!(found.iter().all(|it| it.class != Class::UserRule), "{found:#?}");
    // Three thousand rules, a long summary.
    let rules: String =
        (0..3_000).map(|it| format!("- Never touch the table number {it} in the warehouse.\n")).collect();
    let source = history(vec![user(&rules), assistant("ok"), user("go on with it all please")]);
    let compacted = history(vec![
        Message::text(Role::User, Kind::Summary, format!("## User constraints\n{rules}")),
        user("go on with it all please"),
    ]);
    let score = score::score(&source, &compacted, &|_| false, &count);
    assert_eq!((score.classes[&Class::UserRule].found, score.classes[&Class::UserRule].kept), (3_000, 3_000));
    // The later order counts.
    let orders =
        history(vec![user("Always use tabs for indentation."), user("Never use tabs for indentation.")]);
    let found: Vec<String> =
        score::probes(&orders).iter().filter(|it| it.class == Class::UserRule).map(|it| it.text()).collect();
    assert_eq!(found, ["Never use tabs for indentation."]);
    // A summary of a summary of a summary still gives its rules.
    let mut text = "## User constraints\n- Never force-push to the release branch.".to_string();
    for _ in 0..3 {
        text = format!("This session goes on.\n\n## Earlier summary\n{text}");
    }
    let found = score::probes(&history(vec![
        Message::text(Role::User, Kind::Summary, text),
        user("continue with the release"),
    ]));
    assert_eq!(found.iter().filter(|it| it.class == Class::UserRule).count(), 1, "{found:#?}");
}

/// Fragments that break parsers: quotes, marks, half tags, paths, cues, dense script, characters that change length
/// when their case does.
fn hostile() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let fragment = prop_oneof![
        "[ -~]{0,12}",
        "\\PC{0,6}",
        proptest::sample::select(vec![
            "\n",
            "```\n",
            "\"",
            "`",
            "「",
            "」",
            "“",
            "İ",
            "ẞ",
            "no ",
            "No",
            "never ",
            "don't ",
            "不要",
            "こと",
            "な\u{3099}",
            "1. ",
            "A) ",
            "- [ ] ",
            "> ",
            "## User rules\n",
            "<a>",
            "</a>",
            "http://",
            "https://é",
            "/w/é b.rs",
            "`cargo test é`: ok ",
            "error[E1]: é",
            "a.rs:1:2: é!!",
            "…",
            "edited ",
            "0xé",
            "\u{1b}[31m",
            "instead of ",
            "user said \"",
            "#é",
            "localhost:",
            "port ",
            "\u{1b}",
            "yes ",
            "?",
            "~/",
            "./",
            "\\",
        ])
        .prop_map(str::to_string),
    ];
    proptest::collection::vec(fragment, 0..24).prop_map(|it| it.concat())
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(300))]
    #[test]
    fn any_text_can_be_scored(texts in proptest::collection::vec(hostile(), 1..6), summary in hostile()) {
        let mut messages = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            messages.push(user(text));
            let input = serde_json::json!({ "command": text, "file_path": text }).to_string();
            let name = ["Bash", "Edit", "AskUserQuestion", "TodoWrite"][number % 4];
            messages.extend(tool(&number.to_string(), name, &input, text, number % 2 == 1));
            messages.push(assistant(text));
        }
        let source = history(messages);
        let compacted = history(vec![Message::text(Role::User, Kind::Summary, summary.as_str()), user("and on")]);
        let score = score::score(&source, &compacted, &|_| false, &count);
        for tally in score.classes.values() {
            proptest::prop_assert_eq!(tally.found, tally.kept + tally.recoverable + tally.lost);
        }
        proptest::prop_assert!(score.kept.is_none_or(|it| (0.0..=1.0).contains(&it)));
        proptest::prop_assert_eq!(score::score(&source, &source, &|_| false, &count).kept, None);
        // What is carried over word for word says nothing new.
        let mut carried = source.messages().to_vec();
        carried.push(user("and on"));
        let score = score::score(&source, &history(carried), &|_| false, &count);
        proptest::prop_assert!(score.contradictions.is_empty() && score.unsupported.is_empty());
    }
}
