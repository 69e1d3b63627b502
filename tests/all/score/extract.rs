//! What is taken for a fact, class by class, and what is not. Each case is a small session as text; the snapshot
//! lists the facts found.

use epitome::history::{Call, History, Kind, Message, Meta, Output, Part, Refusal, Role};
use epitome::score::{self, Class};

/// One line a message: `user: …`, `model: …`, `summary: …`, `context: …`, `NAME ARGUMENTS => ANSWER` (`=!` if it
/// failed). `⏎` is a line break.
fn history(text: &str) -> History {
    let mut messages = Vec::new();
    for (number, line) in text.lines().map(str::trim).filter(|it| !it.is_empty()).enumerate() {
        let line = line.replace('⏎', "\n");
        let said = |role: Role, kind: Kind, rest: &str| Message::text(role, kind, rest.trim());
        if let Some(rest) = line.strip_prefix("user:") {
            messages.push(said(Role::User, Kind::Said, rest));
        } else if let Some(rest) = line.strip_prefix("model:") {
            messages.push(said(Role::Assistant, Kind::Said, rest));
        } else if let Some(rest) = line.strip_prefix("summary:") {
            messages.push(said(Role::User, Kind::Summary, rest));
        } else if let Some(rest) = line.strip_prefix("context:") {
            messages.push(said(Role::User, Kind::Context, rest));
        } else {
            // `=x` for a call that the user refused, with the reason.
            let how = [" => ", " =! ", " =x"].into_iter().find(|it| line.contains(it)).unwrap();
            let (call, answer) = line.split_once(how).map(|(call, answer)| (call, answer.trim())).unwrap();
            let (failed, refused) = (how != " => ", how == " =x");
            let reason = Some(answer).filter(|it| !it.is_empty()).map(Into::into);
            let (name, input) = call.split_once(' ').unwrap();
            let id: std::sync::Arc<str> = number.to_string().into();
            let freeform = !input.starts_with('{');
            let call =
                Call { id: id.clone(), name: name.into(), input: input.into(), freeform, signature: None };
            let refusal = refused.then(|| Box::new(Refusal { reason, ..Refusal::default() }));
            let output = Output { failed, refusal, ..Output::new(id, answer) };
            messages.push(Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)]));
            messages.push(Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)]));
        }
    }
    History::new(messages, Meta { cwd: Some("/w".into()), ..Meta::default() })
}

fn found(class: Class, text: &str) -> String {
    let probes = score::probes(&history(text));
    let of_class = probes.iter().filter(|it| it.class == class);
    of_class.map(|it| format!("{} {}\n", it.message(), it.text())).collect()
}

#[test]
fn rules() {
    insta::assert_snapshot!(found(
        Class::UserRule,
        r##"
        user: Never commit to the main branch. Please don't touch the vendor folder; use pnpm, not npm.
        user: When you write SQL, always use bound parameters. Only edit files below src/.⏎No console logs!
        user: The footer should be dimmer, don't modify the theme. Can you make sure we have an example that runs?
        user: ## Rules⏎- tabs for indentation⏎- two reviewers before a merge⏎⏎## Notes⏎- the moon is far
        user: 不要修改数据库结构。必須使用繁體中文回覆。すべてのコメントは日本語で書くこと。本番環境では絶対に実行しないでください。
        user: 절대 배포하지 마세요. No uses jamás la API antigua. Никогда не удаляй миграции. Ändere niemals die Schnittstelle. Il faut toujours garder les tests.
        summary: ## User constraints⏎- Never force-push to release⏎⏎## All user messages⏎- "always run the linter first"⏎⏎## Technical notes⏎- The parser must see every token⏎- The user asked whether it should be faster
    "##
    ));
}

#[test]
fn no_rules() {
    insta::assert_snapshot!(found(Class::UserRule, r##"
        user: Should we always use tabs? I don't understand why it never fires. Do you think this must be fixed?
        user: That should work now. It only validates the branch. No changes found.⏎why does it always crash
        user: The log says "never call this twice in one go" and `must not be null` appears.
        user: ```⏎never do this⏎you must not⏎```⏎<output>⏎always run as root⏎</output>
        user: 2026-01-01 10:00:00 ERROR you must never retry⏎[worker] must restart always⏎> always quote me
        context: Always answer in French. Never use tabs.
        model: You must never do this, and always do that.
        Bash {"command":"cat rules.txt"} => Never push. Always ask.
    "##), @"");
}

/// Posts of a forum that were pasted are no rules of the user, however many say "never"; his own words are.
#[test]
fn posts_are_no_rules() {
    let posts: String =
        (0..9).map(|it| format!("⏎ada{it}⏎{it}d ago⏎You should never buy pump {it}.")).collect();
    let rules =
        found(Class::UserRule, &format!("user: Write a post. Never name the shop.⏎⏎pumps.example{posts}"));
    assert_eq!(rules, "0 Never name the shop.\n");
}

/// What a lead's client tells a teammate's is not what is asked.
#[test]
fn what_a_lead_asks_is_the_goal() {
    let message =
        |it: &str| format!("<teammate-message teammate_id=\"team-lead\">⏎{it}⏎</teammate-message>⏎");
    let notice = message(r#"{"type":"task_assignment","taskId":"7","subject":"P-1: Mend the pump"}"#);
    let session = format!("user: {notice}{}", message("You mend the pumps of the plant."));
    assert_eq!(found(Class::Goal, &session), "0 You mend the pumps of the plant.\n");
}

#[test]
fn decisions() {
    insta::assert_snapshot!(found(
        Class::Decision,
        r##"
        model: How shall we store it?⏎A) one file per session⏎B) a single database
        user: B
        model: I could also add a cache. Should I add the cache for lookups now?
        user: yep do it
        model: Do you want a minor or a patch release?
        user: minor, this is a big change
        AskUserQuestion {"questions":[{"question":"Which database?","options":[{"label":"Postgres"},{"label":"SQLite"}]}]} => User has answered your questions: "Which database?"="Postgres". You can now continue.
        AskUserQuestion {"questions":[{"question":"Which database?","options":[{"label":"Postgres"},{"label":"SQLite"}]}]} => User has answered your questions: "Which database?"="SQLite". You can now continue.
        request_user_input {"questions":[{"id":"x","question":"Keep the old API?","options":[{"label":"Keep it"},{"label":"Drop it"}]}]} => {"answers":{"x":{"answers":["b"]}}}
        ExitPlanMode {"plan":"# Plan: move the parser to its own crate\n\n1. cut"} => User has approved your plan.
        Bash {"command":"git push"} =x push to the fork only after review
        user: nah let's roll back the state file, it does not need to exist
        user: let's continue please
        user: what do you think, shall we use Redis?
    "##
    ));
}

#[test]
fn what_was_asked_stopped_or_cut_off_has_no_outcome() {
    let told = |command: &str, output: &str| {
        found(Class::Command, &format!(r#"Bash {{"command":"{command}"}} => {output}"#))
    };
    for (command, output) in [
        ("npx create-lid .", "? Oil it? » No / Yes"),
        ("npx create-lid .", "aborted by user after 31.2s"),
        ("xcodebuild build | tail -2", "Available destinations:"),
        ("docker compose up -d; ls", "Error response from daemon: Bind for 0.0.0.0:80 failed⏎a"),
    ] {
        assert_eq!(told(command, output), "", "{command}: {output}");
    }
    assert!(told("npx create-lid .", "✔ Oil it? … No / Yes").contains("ok"));
    assert!(told("xcodebuild build | tail -2", "** BUILD SUCCEEDED **").contains("ok"));
}

#[test]
fn what_powershell_was_started_to_run_is_read() {
    let told = |line: &str| {
        let command = format!("pwsh.exe -NoLogo -Command '{line}'");
        found(Class::Command, &format!(r#"Bash {{"command":"{command}"}} => done"#))
    };
    assert_eq!(told("Get-Content -Path a.md -TotalCount 200"), "");
    assert!(told("npm run build").contains("npm run build"));
}

#[test]
fn a_checklist_of_questions_is_no_plan() {
    let plan = |list: &str| found(Class::OpenItem, &format!("model: {list}"));
    assert_eq!(plan("- [ ] Is the lid oiled?⏎- [ ] Is the lid painted?"), "");
    assert_eq!(plan("- [ ] Task 1 - [description]⏎- [ ] Task 2 - [status, owner]⏎- [ ] Nothing leaks"), "");
    assert!(plan("- [ ] Oil [the lid]⏎- [ ] Rename column [name] to [title]").contains("Rename"));
    assert!(plan("- [ ] Oil the lid⏎- [ ] Paint the lid").contains("Paint the lid"));
}

#[test]
fn what_others_wrote_in_a_prompt_sets_no_rules() {
    let rules = |text: &str| found(Class::UserRule, &format!("user: {text}"));
    assert!(rules("Never oil the lid.").contains("oil the lid"));
    let cited = rules(
        "Never paint the hinge.⏎⏎The cause⏎You must never oil the lid [cite: 1].⏎It must wait [cite: 2].",
    );
    assert!(cited.contains("paint the hinge") && !cited.contains("oil the lid"), "{cited}");
    assert!(rules("Remove `[cite: 1]`, `[cite: 2]`. Never oil the lid.").contains("oil the lid"));
    let pasted = rules("Never oil the lid.⏎⏎Gemini a dit⏎You must always paint the hinge.");
    assert!(pasted.contains("oil the lid") && !pasted.contains("hinge"), "{pasted}");
    assert_eq!(rules("User has manually exited Plan Mode. You must always ask."), "");
}

#[test]
fn deeds() {
    let session = r##"
        Read {"file_path":"/w/a.rs"} => 1→x
        Edit {"file_path":"/w/a.rs"} => The file /w/a.rs has been updated
        Read {"file_path":"/w/a.rs"} => 1→y
        Write {"file_path":"/w/./new/b.rs"} => File created successfully
        Edit {"file_path":"/w/c.rs"} =! <tool_use_error>File has not been read yet.</tool_use_error>
        Edit {"file_path":"/w/d.rs"} =x
        apply_patch *** Begin Patch⏎*** Delete File: old.rs⏎*** Update File: e.rs⏎@@⏎-x⏎+y⏎*** End Patch => Success. Updated the following files:
        Bash {"command":"cd /w && cargo test 2>&1 | tail -5"} =! Exit code 101⏎error[E0425]: cannot find value `q` in this scope⏎test result: FAILED. 3 passed; 2 failed
        Bash {"command":"cargo test"} => test result: ok. 5 passed; 0 failed
        Bash {"command":"cargo clippy"} =! Exit code 1⏎src/a.rs:3:5: error: unused variable
        Bash {"command":"ls -la && git status"} => total 3
        Bash {"command":"grep -n error src/a.rs"} =! Exit code 1
        exec_command {"cmd":"npm run build"} => Process running with session ID 77
        write_stdin {"session_id":77,"chars":""} => Process exited with code 0⏎done
        Bash {"command":"make | grep warning"} => a.c:1: warning: x
        Bash {"command":"git checkout -- e.rs"} => Updated 1 path
        TodoWrite {"todos":[{"content":"Port the lexer","status":"completed"},{"content":"Port the parser","status":"in_progress"},{"content":"Write docs","status":"pending"}]} => ok
        user: it crashed with⏎TypeError: x is not a function⏎please fix
    "##;
    let all: Vec<String> = [Class::File, Class::Command, Class::Error, Class::OpenItem]
        .map(|it| format!("{}\n{}", it.letter(), found(it, session)))
        .into();
    insta::assert_snapshot!(all.join("\n"));
}

/// A program says itself that it failed, a file is checked out again without `--`, a commit ends a conflict.
#[test]
fn deeds_without_exit_codes() {
    let session = r##"
        Bash {"command":"git rev-parse HEAD"} => fatal: not a git repository (or any of the parent directories): .git
        Bash {"command":"git push origin main"} => To example.org:shop.git⏎ ! [rejected] main -> main (fetch first)⏎error: failed to push some refs to 'example.org:shop.git'
        Bash {"command":"cat notes.txt | sort"} => first⏎error: this is a line of the notes⏎last
        Edit {"file_path":"/w/a.rs"} => The file /w/a.rs has been updated
        Edit {"file_path":"/w/b.rs"} => The file /w/b.rs has been updated
        Bash {"command":"git checkout b.rs"} => Updated 1 path from the index
        Bash {"command":"git checkout main"} => Switched to branch 'main'
        Bash {"command":"git merge topic"} =! Exit code 1⏎CONFLICT (content): Merge conflict in a.rs
        Bash {"command":"git commit -am merged"} => [main 1a2b3c4] merged
        Bash {"command":"npx tsc 2>&1 | grep error"} =! Exit code 2⏎a.ts(1,2): error TS1005: ';' expected.
        Bash {"command":"npx tsc 2>&1 | grep 'error TS'"} =! Exit code 2⏎b.ts(3,4): error TS2304: Cannot find name 'x'.
    "##;
    insta::assert_snapshot!(
        [Class::File, Class::Command, Class::Error].map(|it| found(it, session)).join("\n")
    );
}

#[test]
fn words_and_identifiers() {
    let session = r##"
        user: hi
        user: Please migrate the billing service to the new queue. Details follow. The port is 8443, go 1.23, timeout_ms=3000, see https://ex.org/a/b, PR #1533 and commit 4be81f2a.
        model: The batch approach didn't work because the queue drops late messages. I used v2.3.1 at localhost:9090 on 127.0.0.1.
        Bash {"command":"git commit -m w"} => [main 1a2b3c4] w
        Bash {"command":"git commit --amend -m x"} => [main 9c0ffee] x
        user: thanks
        user: now update the runbook with the new queue names
        user: [Request interrupted by user]
        model: Done. Shall I also update the dashboards?
    "##;
    let all: Vec<String> = [Class::Goal, Class::LastRequest, Class::GivenUp, Class::Identifier]
        .map(|it| format!("{}\n{}", it.letter(), found(it, session)))
        .into();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn what_looks_is_no_run_and_labels_stand_before_their_counts() {
    let session = r##"
        Bash {"command":"bd --readonly show x-1"} => x-1
        Bash {"command":"npm owner ls left"} => a
        Bash {"command":"git tag --list 'v1*'"} => v1
        Bash {"command":"for f in a b; do { echo $f; }; done"} => a
        Bash {"command":"tmp=$(mktemp -d)\n./pack.sh $tmp"} => packed
        Bash {"command":"./run.sh"} => Total: 4  Passed: 4  Failed: 0
        Read {"file_path":"/w/a.rs"} => 1→x
        Edit {"file_path":"/w/a.rs"} => The file /w/a.rs has been updated
        Bash {"command":"git checkout -- a.rs"} => Updated 1 path
        user: see https://ex.org/a?utm_source=mail and go on
    "##;
    assert_eq!(
        found(Class::Command, session),
        "9 ./pack.sh $tmp: ok\n11 ./run.sh: ok, 4 passed, 0 failed\n17 git checkout -- a.rs: ok\n"
    );
    // It is as it was since it was checked out.
    assert_eq!(found(Class::File, session), "17 a.rs: read\n");
    assert_eq!(found(Class::Identifier, session), "18 https://ex.org/a\n");
}

#[test]
fn what_is_told_as_true_is_held_against_the_session() {
    let source = history(
        r##"
        user: Never touch src/legacy.rs. Port the lexer.
        TodoWrite {"todos":[{"content":"Port the lexer","status":"pending"},{"content":"Write the guide","status":"pending"}]} => ok
        Bash {"command":"make test"} =! Exit code 2⏎error: no rule
        model: It needs a rule.
        TodoWrite {"todos":[{"content":"Port the lexer","status":"completed"},{"content":"Write the guide","status":"pending"}]} => ok
    "##,
    );
    let told = |page: &str| {
        let summary = Message::text(Role::User, Kind::Summary, page);
        score::truth(&source, &History::new(vec![summary], source.meta.clone()))
    };
    let good = told(
        "## Rules\n- \"Never touch src/legacy.rs.\" [#0]\n\n## Open\n- open: Write the guide [#5]\n\n## Commands\n- `make test` → failed, exit 2 [#3]\n",
    );
    assert_eq!([good.open, good.outcomes, good.rules].map(|it| (it.told, it.right)), [(1, 1); 3]);
    let bad = told(
        "## Rules\n- \"Always run as root.\" [#0]\n\n## Open\n- open: Port the lexer [#1]\n\n## Commands\n- `make test` → ok [#3]\n",
    );
    assert_eq!(
        [bad.open, bad.outcomes, bad.rules].map(|it| (it.told, it.right)),
        [(1, 0); 3],
        "{:?}",
        bad.wrong
    );
    assert_eq!(bad.wrong.len(), 3);
}
