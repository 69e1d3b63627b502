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

/// Runs the conformance suite; the scenarios with whether they passed.
fn scenarios(suite: &Path, url: &str) -> Vec<(String, bool)> {
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(suite)
        .args(["server", "--url", url, "--suite", "all", "-o"])
        .arg(out.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let summary =
        said.split("=== SUMMARY ===").nth(1).unwrap_or_else(|| panic!("expected a summary: {said}"));
    let scenario = |line: &str| {
        let passed = line.starts_with('✓');
        (passed || line.starts_with('✗')).then(|| {
            let name = line[3..].trim().split(':').next().unwrap_or_default();
            (name.to_owned(), passed)
        })
    };
    summary.lines().filter_map(scenario).collect()
}

/// What the server as it is does not do, and why that is right by the specification.
const NOT_OURS: [(&str, &str); 2] = [
    ("logging-set-level", "logging is not offered: an optional capability that 2026-07-28 deprecates"),
    ("resources-", "the suite reads and watches resources of its own"),
];

#[test]
fn the_server_conforms() {
    let Some(suite) = kit("conformance", "the_server_conforms") else { return };
    let web = Web::start(|_, _| {});
    let found = scenarios(&suite, &format!("http://127.0.0.1:{}/mcp", web.port));
    let passed: Vec<&str> = found.iter().filter(|it| it.1).map(|it| it.0.as_str()).collect();
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
        assert!(passed.contains(&name), "{name}");
    }
    // The rest needs the suite's own tools, prompts and resources; the next test has them.
    let fixtures = ["tools-call-", "prompts-get-", "elicitation-", "json-schema-2020-12"];
    for (name, _) in found.iter().filter(|it| !it.1) {
        let expected =
            fixtures.iter().chain(NOT_OURS.iter().map(|(name, _)| name)).any(|it| name.starts_with(it));
        assert!(expected, "{name} fails");
    }
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
    let Some(suite) = kit("conformance", "the_transports_conform") else { return };
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
    let failed: Vec<&str> = found.iter().filter(|it| !it.1).map(|it| it.0.as_str()).collect();
    eprintln!(
        "conformance, the suite's tools on our transports: {} of {} scenarios pass",
        found.len() - failed.len(),
        found.len()
    );
    assert_eq!(failed, Vec::<&str>::new());
    assert!(found.len() >= 30);
}
