//! Other people's tests of a server: the MCP Inspector, and the protocol's own conformance suite.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::Web;

/// A program of the kit of clients, or why the test is skipped.
fn kit(program: &str, test: &str) -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(|it| PathBuf::from(it).join(".cache/agent-clients"));
    let found = std::env::var_os("AGENT_CLIENTS_DIR")
        .map(PathBuf::from)
        .or(home)
        .map(|it| it.join("bin").join(program));
    let found = found.filter(|it| it.exists());
    if found.is_none() {
        eprintln!("SKIPPED: {test}: no {program} (install the kit of clients, or set AGENT_CLIENTS_DIR)");
    }
    found
}

#[test]
#[cfg(unix)]
fn the_inspector_finds_nothing() {
    let Some(inspector) = kit("mcp-inspector", "the_inspector_finds_nothing") else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inspector.sh");
    let output = Command::new(script).arg(env!("CARGO_BIN_EXE_epitome")).arg(inspector).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    eprintln!("{said}");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// The conformance suite: the kit's, or a newer one that `EPITOME_CONFORMANCE` names.
fn suite(test: &str) -> Option<PathBuf> {
    let other = std::env::var_os("EPITOME_CONFORMANCE").map(PathBuf::from);
    other.or_else(|| kit("conformance", test))
}

/// Runs the conformance suite; the scenarios with whether they passed.
fn scenarios(suite: &Path, url: &str) -> Vec<(String, bool)> {
    let run = |arguments: &[&str]| {
        let out = tempfile::tempdir().unwrap();
        let mut command = Command::new(suite);
        let output = command.arg("server").args(arguments).arg("-o").arg(out.path()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // From 0.2 on it knows what each revision requires; before, it knows only the older ones.
    let rounds = match run(&["--help"]).contains("--requirements") {
        true => vec![["--requirements", "2025-11-25"], ["--requirements", "2026-07-28"]],
        false => vec![["--suite", "all"]],
    };
    let mut all = Vec::new();
    for [how, which] in rounds {
        let said = run(&["--url", url, how, which]);
        let summary =
            said.split("=== SUMMARY ===").nth(1).unwrap_or_else(|| panic!("expected a summary: {said}"));
        all.extend(summary.lines().filter_map(|line| {
            let passed = line.starts_with('✓');
            let name = line.strip_prefix(['✓', '✗'])?.trim().split(':').next().unwrap_or_default();
            Some((format!("{which} {name}"), passed))
        }));
    }
    all
}

/// Whether a scenario is one of those whose names begin like that.
fn among(scenario: &str, names: &[&str]) -> bool {
    let name = scenario.split(' ').next_back().unwrap_or_default();
    names.iter().any(|it| name.starts_with(it))
}

/// What neither the server nor the example with the suite's own tools does, and why that is right by the specification.
const NOT_OFFERED: [(&str, &str); 1] =
    [("tasks-", "tasks are an extension, which a server offers or not (2026-07-28, extensions)")];

/// What the server as it is does not do, and why that is right by the specification.
const NOT_OURS: [(&str, &str); 9] = [
    ("logging-set-level", "logging is an optional capability, deprecated since 2026-07-28, and not offered"),
    ("resources-", "reads and watches resources of the suite; of ours, it reads the list"),
    ("tools-call-", "calls tools of the suite"),
    ("prompts-get-", "gets prompts of the suite"),
    ("elicitation-", "calls tools of the suite"),
    ("json-schema-2020-12", "reads the schema of a tool of the suite"),
    ("input-required-result-", "calls tools of the suite that ask back, which a server does if it needs to"),
    ("server-stateless", "some of its checks call diagnostic tools of the suite"),
    ("http-custom-header-", "needs a tool that mirrors an argument in a header, which a tool may do"),
];

#[test]
fn the_server_conforms() {
    let Some(suite) = suite("the_server_conforms") else { return };
    let web = Web::start(|_, _| {});
    let found = scenarios(&suite, &format!("http://127.0.0.1:{}/mcp", web.port));
    let (passed, failed): (Vec<_>, Vec<_>) = found.iter().partition(|it| it.1);
    eprintln!("conformance, the server as it is: {} of {} scenarios pass", passed.len(), found.len());
    for name in [
        "server-initialize",
        "ping",
        "completion-complete",
        "tools-list",
        "prompts-list",
        "resources-list",
        "server-sse-polling",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
    ] {
        assert!(passed.iter().any(|it| among(&it.0, &[name])), "{name}");
    }
    // What needs the suite's own tools, prompts and resources is tried by the next test, which has them.
    let expected: Vec<&str> = NOT_OURS.iter().chain(&NOT_OFFERED).map(|it| it.0).collect();
    let wrong: Vec<_> = failed.iter().filter(|it| !among(&it.0, &expected)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_transports_conform() {
    let Some(suite) = suite("the_transports_conform") else { return };
    // Examples are built along with the tests.
    let fixture =
        Path::new(env!("CARGO_BIN_EXE_epitome")).with_file_name("examples").join("conformance_server");
    if !fixture.exists() {
        eprintln!("SKIPPED: the_transports_conform: the example conformance_server is not built");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut server = Command::new(fixture)
        .arg("127.0.0.1:0")
        .env_clear()
        .env("HOME", home.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let _running = Running(server);
    let url = line.split_whitespace().last().unwrap();
    let found = scenarios(&suite, url);
    let (passed, failed): (Vec<_>, Vec<_>) = found.iter().partition(|it| it.1);
    eprintln!(
        "conformance, the suite's tools on our transports: {} of {} scenarios pass",
        passed.len(),
        found.len()
    );
    for (name, why) in NOT_OFFERED {
        let count = failed.iter().filter(|it| among(&it.0, &[name])).count();
        eprintln!("expected to fail: {count} {name}…: {why}");
    }
    let expected: Vec<&str> = NOT_OFFERED.iter().map(|it| it.0).collect();
    let wrong: Vec<_> = failed.iter().filter(|it| !among(&it.0, &expected)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(passed.len() >= 30);
}
