use super::*;

fn shown(text: &str, failed: bool) -> String {
    let output = Output { failed, ..Output::new("c", text) };
    let it = read(&output, "", false);
    format!("{:?} {:?} {} | {}", it.ok, it.exit, it.result.unwrap_or_default(), it.error.unwrap_or_default())
}

#[test]
fn reads_what_runners_print() {
    for (text, failed, expected) in [
        ("", false, "None None  | "),
        ("Exit code 1\nerror: no such thing\nmore", true, "Some(false) Some(1)  | error: no such thing"),
        ("Wall time: 1s\nProcess exited with code 0\nOutput:\nfine", false, "Some(true) Some(0)  | "),
        (
            "test result: ok. 3 passed; 0 failed;\ntest result: FAILED. 4 passed; 1 failed;",
            false,
            "Some(false) None 7 passed, 1 failed | test result: ok. 3 passed; 0 failed;",
        ),
        (
            " Tests  2 failed | 6 passed (8)\n",
            false,
            "Some(false) None 2 failed, 6 passed | Tests 2 failed | 6 passed (8)",
        ),
        (
            "[main 1a2b3c4] fix: error: x\n 1 file changed",
            false,
            "Some(true) None committed 1a2b3c4 on main | ",
        ),
        (
            "[main 1a2b3c4] one\n 1 file changed\n[main 2b3c4d5] two",
            false,
            "Some(true) None committed 1a2b3c4, 2b3c4d5 on main | ",
        ),
        (
            "Exit code 2\n✓ Switched to one\nsh run.sh\nmake: *** [Makefile:3: check] Error 1",
            true,
            "Some(false) Some(2)  | make: *** [Makefile:3: check] Error 1",
        ),
        ("Exit code 2\n✓ Switched to one\nno luck", true, "Some(false) Some(2)  | no luck"),
        (
            "Exit code 2\n____ ERROR collecting tests/test_a.py ____\nE   ModuleNotFoundError: No module named 'a'",
            true,
            "Some(false) Some(2)  | E ModuleNotFoundError: No module named 'a'",
        ),
        (
            "failed in sandbox LinuxSeccomp with execution error: sandbox denied exec error, exit code: 1, stdout: , stderr: \
             bash: line 9: warning: here-document at line 1 delimited by end-of-file (wanted `END')\nno such hunk: x",
            true,
            "Some(false) Some(1)  | no such hunk: x",
        ),
        (
            "Exit code 1\n[dotenv@17.3.1] injecting env (1) from .env -- tip: paint it\nThe key is too short",
            true,
            "Some(false) Some(1)  | The key is too short",
        ),
        (
            "failed in sandbox: # ./...\nx.go: open /a: permission denied",
            true,
            "Some(false) None  | x.go: open /a: permission denied",
        ),
        (
            "Exit code 1\nStarting checks...\n--- Results ---\nErrors found in a.md:\n  - no title",
            true,
            "Some(false) Some(1)  | Errors found in a.md:",
        ),
        ("✓ Created issue: ab-12", false, "None None created ab-12 | "),
        (
            "test a::b ... FAILED\n\n---- a::b ----\nthread 'a::b' panicked at src/a.rs:8:9:\nassertion failed: x",
            true,
            "Some(false) None  | thread 'a::b' panicked at src/a.rs:8:9: assertion failed: x",
        ),
        (
            "# pass 2\n# fail 0\n# skipped 1\n# todo 3\n",
            false,
            "Some(true) None 2 passed, 0 failed, 1 skipped, 3 todo | ",
        ),
        ("0 issues.", false, "None None 0 issues | "),
        (
            "Exit code 1\nERROR: no extensions\n  3 passing (2s)\n  1 failing\n\n  1) Gauge\n       shows the level:\n\n      AssertionError: Expected values to be equal:\n\n4 !== 2\n",
            true,
            "Some(false) Some(1) 3 passing, 1 failing | Gauge shows the level: AssertionError: Expected values to be equal: 4 !== 2",
        ),
        ("Exit code 1\n\nExit code:   SIGABRT\n", true, "Some(false) Some(1)  | Exit code: SIGABRT"),
        (
            "Exit code 1\nLint.........Failed\n  ./a.json format ━━━━━\n\n    × Formatter would have printed this",
            true,
            "Some(false) Some(1)  | ./a.json format: × Formatter would have printed this",
        ),
        (
            "node:internal:6\n\nError [ERR_NO_SUCH]: Package a is none\n  at x",
            false,
            "Some(false) None  | Error [ERR_NO_SUCH]: Package a is none",
        ),
        (
            "npm error code ENEEDAUTH\nnpm error need auth You must log in\nnpm error more",
            false,
            "Some(false) None  | npm error code ENEEDAUTH: need auth You must log in",
        ),
        (
            "TypeError: a.b is no function\n      at x (t.ts:3:1)\n(fail) adds two numbers [0.2ms]\n 0 pass\n 1 fail",
            true,
            "Some(false) None 1 fail | (fail) adds two numbers [0.2ms]: TypeError: a.b is no function",
        ),
        (
            "=== RUN TestA\n--- FAIL: TestA (0.00s)\n    a_test.go:7: want 1, got 2\nFAIL",
            true,
            "Some(false) None  | --- FAIL: TestA (0.00s): a_test.go:7: want 1, got 2",
        ),
        (
            "2026-08-11 11:59:41.009102-0500 Pump[36297:2632961] [Connection] Unable to get a proxy, error: Error Domain=X\nPump.swift:7: Fatal error: Index out of range",
            true,
            "Some(false) None  | Pump.swift:7: Fatal error: Index out of range",
        ),
        (
            "?   \tx/a\t[no test files]\nok  \tx/b\t0.1s\nunknown flag: --force",
            true,
            "Some(false) None  | unknown flag: --force",
        ),
        (
            "error: 1 hook did not pass\nsrc/a.ts(3,1): error TS2304: Cannot find name 'b'.",
            true,
            "Some(false) None  | src/a.ts(3,1): error TS2304: Cannot find name 'b'.",
        ),
        (
            " ! [rejected] main -> main (non-fast-forward)\nerror: failed to push some refs to 'x'",
            true,
            "Some(false) None  | ! [rejected] main -> main (non-fast-forward)",
        ),
        (
            "at src/a.json format ━━━━━\n\n  × Formatter would have printed this",
            true,
            "Some(false) None  | src/a.json format: × Formatter would have printed this",
        ),
        (
            "bash: line 2: foo: command not found\nException ignored while flushing sys.stdout:\nBrokenPipeError: [Errno 32] Broken pipe",
            true,
            "Some(false) None  | bash: line 2: foo: command not found",
        ),
        (
            "bash: foo: command not found\nexit status 127",
            false,
            "Some(false) Some(127)  | bash: foo: command not found",
        ),
    ] {
        assert_eq!(shown(text, failed), expected, "{text}");
    }
}

#[test]
fn tells_what_was_counted_and_when_nothing_was_checked() {
    for (command, text, exit, expected) in [
        ("gauge check | grep dial | wc -l", "18\n", 0, "Some(true) Some(0) 18"),
        ("gauge check | grep -ic dial", "0", 1, "None Some(1) 0"),
        ("gauge check | grep -A 3 failure | head -9", "a failure\n  dial", 0, "None None "),
        ("git rev-list --count main", "7", 0, "Some(true) Some(0) 7"),
        ("gauge check | grep -c dial; ls", "18\na.rs", 0, "Some(true) Some(0) "),
        ("gauge print", "18", 0, "Some(true) Some(0) "),
        ("gauge check | tail -3", "768 issues found", 0, "None None 768 issues"),
        ("gauge check; echo rc=$?", "768 issues found\nrc=0", 0, "Some(true) Some(0) 768 issues"),
        ("gauge check", "768 issues found", 0, "Some(true) Some(0) 768 issues"),
        ("gauge check | tail -3", "0 issues found", 0, "Some(true) None 0 issues"),
        ("prose a.mdx", "✔ 0 errors, 0 warnings in 0 files.", 0, "Some(true) Some(0) checked nothing"),
        (
            "npx markdownlint-cli2 **/*.md",
            "Linting: 49 files\nSummary: 0 issues in 0 files",
            0,
            "Some(true) Some(0) 0 issues",
        ),
        (
            "cargo test | tail -4",
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n",
            0,
            "Some(true) None checked nothing",
        ),
        (
            "cargo test | tail -3",
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n",
            0,
            "Some(true) None ",
        ),
        ("timeout 5 pump serve", "pumps\n", 124, "Some(false) Some(124) "),
        (
            "pump serve",
            "command timed out after 19127 milliseconds\n",
            124,
            "None None stopped by its timeout",
        ),
        (
            "lint --fix && pytest",
            "Found 1 error (1 fixed, 0 remaining).\n3 passed in 0.1s",
            0,
            "Some(true) Some(0) 3 passed",
        ),
        (
            "xcodebuild test 2>&1 | tail -3",
            "◇ Test run started.\n✔ Test run with 7 tests in 2 suites passed after 1.2 seconds.\n** TEST SUCCEEDED **",
            0,
            "Some(true) None 7 passed",
        ),
        (
            "xcodebuild test 2>&1 | tail -3",
            "✘ Test run with 7 tests failed after 1.2 seconds with 1 issue.\n** TEST FAILED **",
            0,
            "Some(false) None 1 issue",
        ),
        ("prose a.md", "✔ 0 errors, 0 warnings in 1 file.", 0, "Some(true) Some(0) 0 errors"),
        ("go test ./a -run No", "ok  \tx/a\t0.1s [no tests to run]", 0, "Some(true) Some(0) checked nothing"),
        ("go test ./...", "ok  \tx/a\t0.1s\nok  \tx/b\t0.1s [no tests to run]", 0, "Some(true) Some(0) "),
        (
            "go test ./... -run One",
            "testing: warning: no tests to run\n--- FAIL: TestOne (0.00s)\nFAIL",
            1,
            "Some(false) Some(1) ",
        ),
        (
            "cargo test none",
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out",
            0,
            "Some(true) Some(0) checked nothing",
        ),
        (
            "cargo test",
            "running 1 test\ntest result: ok. 1 passed; 0 failed\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed",
            0,
            "Some(true) Some(0) 1 passed, 0 failed",
        ),
    ] {
        let it = read(&Output { exit: Some(exit), ..Output::new("c", text) }, command, true);
        let shown = format!("{:?} {:?} {}", it.ok, it.exit, it.result.unwrap_or_default());
        assert_eq!(shown, expected, "{command}: {text}");
    }
}

#[test]
fn believes_the_exit_code_before_the_text() {
    let ok = |command: &str, text: &str, exit: Option<i32>, reports: bool| {
        let output = Output { exit, ..Output::new("c", text) };
        read(&output, command, reports).ok
    };
    for (command, text, exit, reports, expected) in [
        ("make", "all is well", Some(254), true, Some(false)),
        ("make && grep -c valve a.md", "all is well\n0", Some(1), true, None),
        ("make && grep -c valve a.md", "a.c:3:1: error: no valve", Some(1), true, Some(false)),
        ("make && make test", "all is well", Some(1), true, Some(false)),
        ("robocopy a b *.pb /NJH", "b\\a.pb", Some(1), true, Some(true)),
        ("robocopy a b *.pb /NJH", "ERROR 5 (0x00000005)", Some(8), true, Some(false)),
        (
            "pip3 install valve | tail -2",
            "note: You can override this.\nhint: See PEP 668 for the detailed specification.",
            None,
            true,
            Some(false),
        ),
        ("echo N | npx create-valve lid", "✔ Oil it? … No / Yes\n? Paint it? » No / Yes", None, true, None),
        ("echo N | npx create-valve lid", "✔ Oil it? … No / Yes\nSuccess!", None, true, Some(true)),
        ("lsof -i :3000", "aborted by user after 31.2s", None, true, None),
        ("xcodebuild build | tail -2", "Available destinations:\n{ platform:iOS }", None, true, None),
        ("npx create-valve lid", "? Paint it? › No / Yes", None, true, None),
        ("cat log", "? Paint it? › No / Yes", None, true, Some(true)),
        ("make", "Wall time: 31.2 seconds\naborted by user", None, true, None),
        ("xcodebuild -scheme lid | xcbeautify", "Build Succeeded", None, true, Some(true)),
        ("xcodebuild -list | head -3", "Schemes: lid", None, true, Some(true)),
        ("xcodebuild build | tail -2", "\n** BUILD SUCCEEDED **", None, true, Some(true)),
        ("gh pr checks 3 | cat", "lint\tpass\t3s\ntest\tfail\t1m", None, true, Some(false)),
        ("valve", "{\"error\": \"pressure is required\"}", None, true, None),
        ("valve", "{\"error\": null, \"pressure\": 3}", None, true, Some(true)),
        (
            "dotnet build | tail -4",
            "C:\\repo\\Valve.cs(2,3): error CS0103: 'lid' adı geçerli bağlamda yok\n    1 Hata",
            None,
            true,
            Some(false),
        ),
        (
            "node - <<'EOF'",
            "Command: /bin/zsh -lc \"node - <<'EOF'\n1\n2\n3\n4\n5\n6\nEOF\"\nChunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nall is well",
            None,
            true,
            Some(false),
        ),
        (
            "nx lint a | tail",
            "a: gauge not found\n NX   Running target lint for project a failed",
            Some(0),
            true,
            Some(false),
        ),
        (
            "node lint.mjs | tail",
            "Files: 1\n❌ Some linting checks failed. See above.",
            Some(0),
            true,
            Some(false),
        ),
        ("node lint.mjs | tail", "lint [path]\n\nMissing required argument: path", None, true, Some(false)),
        (
            "ssh -T git@github.com",
            "Hi me! You've successfully authenticated, but there is no shell.",
            Some(1),
            true,
            None,
        ),
        (
            "python a.py | tail",
            "python: can't open file 'a.py': [Errno 2] No such file or directory",
            None,
            true,
            Some(false),
        ),
        ("python a.py | tail", "PASS no id -> raised AppError: none\nall three pass", None, true, Some(true)),
        (
            "docker exec a pkill b; echo stopped",
            "OCI runtime exec failed: no pkill\nstopped",
            None,
            true,
            Some(false),
        ),
        (
            "docker compose up -d q; sleep 9; docker exec q curl -s x",
            "Error response from daemon: Bind for 0.0.0.0:6881 failed: port is already allocated\n{}",
            Some(0),
            true,
            None,
        ),
        (
            "godot --headless 2>&1 | grep -E 'ERROR|WARN'",
            "SCRIPT ERROR: Parse Error: a\nok",
            Some(0),
            true,
            None,
        ),
        ("./game 2>&1 | grep -i error", "Error: no such member", Some(0), true, None),
        ("./game 2>&1 | grep -v error", "started", Some(0), true, Some(true)),
        ("./ci.sh", "0 of 10 checks failed", Some(0), true, Some(true)),
        (
            "ssh -T git@github.com; ssh prod run",
            "Hi me! You've successfully authenticated.\nrun: disk full",
            Some(1),
            true,
            Some(false),
        ),
        (
            "npm start | tail",
            "warn: Missing required parameter foo, using 1\nstarted",
            None,
            true,
            Some(true),
        ),
        ("lsof -i :1; lsof -i :2", "COMMAND PID\nnode 4", Some(1), true, None),
        ("make test | tail -30", "11 passed in 0.2s\nmake: *** [test] Error 1", Some(0), false, Some(false)),
        (
            "npx markdownlint-cli2 a.md | tail",
            "a.md:3:1 error MD033/no-inline-html Inline HTML",
            Some(0),
            false,
            Some(false),
        ),
        ("rg -n '<<<<<<<|>>>>>>>' a.md", "", Some(1), false, None),
        ("make test | grep -E '^(✗|fail)' | head", "", None, true, None),
        ("npx tsc | grep 'error TS' | head", "", None, true, Some(true)),
        ("./run.sh", "PASS=35 FAIL=0", Some(0), true, Some(true)),
        ("git show", "a1b2c3d Mend the 3 fail screens", Some(0), true, Some(true)),
        ("node x.js | tail", "{ \"n\": 2, \"fail\": 1 }", Some(0), true, Some(true)),
        ("npm test | tail -3", "Tests: 2 failed, 6 passed, 8 total", Some(0), true, Some(false)),
        ("npm test | tail -3", "Tests: 2 failed, 6 passed, 8 total", None, true, Some(false)),
        (
            "go test ./a | tail; go test ./a | tail",
            "--- FAIL: TestA (0.00s)\nFAIL\tx/a\t0.1s\nFAIL\n---\nok  \tx/a\t0.2s",
            Some(0),
            true,
            Some(true),
        ),
        (
            "go test ./... | tail; go test ./a | tail",
            "--- FAIL: TestB (0.00s)\nFAIL\tx/b\t0.1s\nFAIL\tx/a\t0.1s\nFAIL\nok  \tx/a\t0.2s",
            Some(0),
            true,
            Some(false),
        ),
        ("npx tsc 2>&1 | head -20", "a.ts(1,2): error TS2344: no", Some(0), true, Some(false)),
        (
            "go test ./a 2>&1 | head -30",
            "# x/a\na_test.go:3:1: undefined: fmt\nFAIL\tx/a [build failed]\nFAIL",
            None,
            true,
            Some(false),
        ),
        (
            "go build -o b ./cmd/... | head; ls cmd",
            "go: cannot write multiple packages to b\na",
            None,
            true,
            Some(false),
        ),
        ("timeout 3 ./run | tail", "zsh: command not found: timeout", None, true, Some(false)),
        ("timeout 3 ./run | tail", "(eval):1: command not found: timeout", None, true, Some(false)),
        (
            "go test ./... | tail -8 && cd web && node --test | tail -6",
            "/usr/bin/bash: line 1: go: command not found\n# pass 50\n# fail 0",
            None,
            true,
            None,
        ),
        ("cd a && ls; gauge --version | head -1", "a.rs\nzsh:1: command not found: gauge", None, true, None),
        ("gauge || ./gauge.sh | tail", "zsh: command not found: gauge\nfine", None, true, Some(true)),
        ("gauge --version || true", "zsh: command not found: gauge", Some(0), true, None),
        ("gauge --version || true", "bash: line 1: gauge: command not found", Some(0), true, None),
        ("head notes; ls", "zsh: command not found: gauge\nnotes", None, true, None),
        (
            "go vet ./... | tail -3 && go test ./... | tail && lint run | tail -5",
            "FAIL\nFAIL\tx/a\t0.7s\nok  \tx/b\t(cached)\nFAIL\n1 issues:\n* x: 1",
            None,
            true,
            Some(false),
        ),
        (
            "go build ./... && go test ./a | grep -v '^ok' | head; echo DONE",
            "# x/a\na.go:45:2: \"x/net/http\" imported as nethttp and not used\nDONE",
            None,
            true,
            Some(false),
        ),
        ("npm i a | tail", "Need to install a.\nOk to proceed? (y/N) ", None, true, None),
        ("npx check | tail -3", "\u{1b}[?25l◆  Continue?\n● Yes / ○ No", Some(0), true, None),
        ("npm i a | tail", "Proceed? (Y/n) y\nadded 1 package", None, true, Some(true)),
        ("apt install a | tail", "Do you want to continue? [Y/n] Y", None, true, Some(true)),
        ("make test | tail", "Tests: 2 failed, 6 passed\nSend a report? [Y/n]", None, true, Some(false)),
        (
            "python run.py | tail -1",
            "skipped: 'x' did not match any file(s) known to git",
            None,
            true,
            Some(true),
        ),
        ("node report.js | tail", "5 failed:\nnames\nall of them passed again", None, true, Some(true)),
        (
            "git commit -- a.rs -m x | tail -1",
            "error: pathspec '-m' did not match any file(s) known to git",
            None,
            true,
            Some(false),
        ),
        ("lint run | tail", "a.go:3:1: unwrapped (wrapcheck)\n1 issues:\n* wrapcheck: 1", None, true, None),
        ("pytest -q", "Command blocked by PreToolUse hook: guard: use rtk pytest", None, true, Some(false)),
        (
            "go build ./... ; go vet ./... | head",
            "# x/a\nvet: ./a.go:7:2: undefined: dial",
            None,
            true,
            Some(false),
        ),
        (
            "go vet ./... 2>&1 | head -4",
            "# x/a\nvet.exe: a\\b_test.go:59:17: cannot use tmpl (variable of type string) as Trusted",
            Some(0),
            true,
            Some(false),
        ),
        ("nl a.rs | sed -n 1p", "nl: a.rs: No such file or directory", None, true, Some(false)),
        ("npx tsc 2>&1 | head -20", "", Some(0), true, Some(true)),
        ("mise run lint | head", "a.go:38:16: thrice\n[lint] ERROR task failed", None, true, Some(false)),
        ("npm test; echo \"exit code: $?\"", "exit code: 3", Some(0), true, Some(false)),
        ("cat notes", "it ends with exit code 3 then", None, true, Some(true)),
        ("npm test || true", "done", Some(0), true, None),
        ("npm test || echo no", "Tests: 1 failed, 6 passed, 7 total", Some(0), true, Some(false)),
        ("npm test; true", "Tests: 6 passed, 6 total", Some(0), true, Some(true)),
        ("npm test; echo \"web-tests exit=$?\"", "web-tests exit=3", Some(0), true, Some(false)),
        ("npm test || true; echo rc=$?", "rc=0", Some(0), true, Some(true)),
        (
            "git push | tail -2",
            "husky - pre-push failed\nerror: failed to push some refs to 'x'",
            Some(0),
            true,
            Some(false),
        ),
        (
            "gh pr create --fill",
            "error: failed to push some refs to 'x'\nhttps://example.org/a/b/pull/7",
            Some(0),
            true,
            Some(true),
        ),
        ("git log x 2>&1 | head -3", "fatal: ambiguous argument 'x'", None, true, Some(false)),
        ("gauge run", "RESULT: FAIL  (1/2, mean: 50%)", Some(0), true, None),
        ("gauge run | tail -3", "RESULT: FAIL  (1/2, mean: 50%)", Some(0), true, Some(false)),
        ("gauge run", "RESULT: PASS  (2/2)", Some(0), true, Some(true)),
        ("gauge get x | head -8", "Error: not_found\n\n  no such dial", None, true, Some(false)),
        (
            "gauge lint; echo EXIT:$?",
            "Process exited with code 0\nOutput:\nno dial\nEXIT:1",
            Some(0),
            true,
            Some(false),
        ),
        ("echo a | gauge", "error creating /tmp/a (Operation not permitted)", Some(0), true, Some(false)),
        (
            "gauge get x | sed s/a/b/",
            "(no output)\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>",
            None,
            true,
            None,
        ),
        (
            "npx prettier --check . | tail -2",
            "[warn] Code style issues found in 5 files.",
            Some(0),
            true,
            Some(false),
        ),
        ("npx tsx -e 'x' 2>&1 | tail -3", "  warnings: []\n}\n\nNode.js v25.8.2", None, true, Some(false)),
        (
            "prettier --check . || prettier --write .",
            "[warn] Code style issues found in 5 files.\na.ts 20ms",
            Some(0),
            true,
            Some(true),
        ),
        ("./doctor.sh | tail -3", "npm v10.1.0\nNode.js v22.1.0", None, true, Some(true)),
        ("git log | head -3", "Error: messages name the dial", None, true, None),
        ("mix credo | tail -3", "3 funs, found 1 warning, 3 refactoring opportunities.", Some(0), true, None),
        // Two programs are compared, which need not both succeed.
        ("old a; echo exit=$?; new a; echo exit=$?", "exit=0 size=7\nexit=9", None, true, None),
        ("old a; echo exit=$?; new a; echo exit=$?", "exit=9\nexit=9 size=", None, true, Some(false)),
        ("make lint; echo rc=$?; make test; echo rc=$?", "rc=0\nrc=2", None, true, Some(false)),
        // The same tests run again, after a file was put back.
        (
            "go test ./a | grep FAIL; cp b a; go test ./a | tail -1",
            "--- FAIL: TestA (0.1s)\nFAIL\nok  \tx/a\t0.2s",
            None,
            true,
            Some(true),
        ),
        (
            "go test ./a | grep FAIL; cp b a; go test ./b | tail -1",
            "--- FAIL: TestA (0.1s)\nFAIL\nok  \tx/b\t0.2s",
            None,
            true,
            Some(false),
        ),
        (
            "vitest run || vitest run",
            "Tests  1 failed | 9 passed (10)\n\nTests  10 passed (10)",
            Some(0),
            true,
            Some(true),
        ),
        // Two packages, of which one failed.
        (
            "npm test --workspaces | grep Tests",
            "Tests  1 failed | 9 passed (10)\nTests  10 passed (10)",
            Some(0),
            true,
            Some(false),
        ),
        (
            "go test ./a && git diff --stat",
            "Script completed\nOutput:\n\nok  \tx/a\t0.2s",
            None,
            true,
            Some(true),
        ),
        ("go test ./a | grep ok", "Script completed\nOutput:\n\nok  \tx/a\t0.2s", None, true, None),
        ("submit x", "Wrong flag!", None, false, None),
        ("x", "Wrong flag!", None, true, Some(true)),
    ] {
        assert_eq!(ok(command, text, exit, reports), expected, "{command}: {text}");
    }
    // A page that quotes an error.
    let page = format!("{}TypeError: no valve", "valve ".repeat(1_000));
    assert_eq!(ok("browse a.html | head -9", &page, None, true), Some(true));
}

#[test]
fn an_exit_code_of_another_program_hides_no_failure() {
    let of = |command: &str, text: &str| {
        let it = read(&Output::new("c", text), command, true);
        (it.ok, it.error.unwrap_or_default())
    };
    let run = "* main Deploy · 12\n\nJOBS\n* pump\n\nX main Deploy · 12\n\nJOBS\nX pump in 3s (ID 9)\n  ✓ Build\n  X Look at the pump\n";
    assert_eq!(of("gh run watch 12", run), (Some(false), "X Look at the pump".into()));
    let passed = run.replace("X main", "✓ main");
    assert_eq!(of("gh run watch 12", &passed).0, Some(true));
    assert_eq!(of("cat notes; gh run watch 12", &format!("X valve · 4\n{passed}")).0, None);
    let crash = "Traceback (most recent call last):\n  File \"a.py\", line 1\nTypeError: no such pump\nwc: list: open: No such file or directory\n";
    assert_eq!(
        of("d=\"out\"; python3 a.py --out $d/list; wc -l list; sed -n 1,9p list", crash),
        (Some(false), "TypeError: no such pump".into())
    );
    assert_eq!(of("cat crash.log; wc -l list", crash).0, None);
    assert_eq!(
        of("dart run pump:make 2>&1 | tail -5 || make pump", "Could not find package `pump`").0,
        Some(false)
    );
}
