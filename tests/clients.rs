//! The real Codex, Claude Code, Gemini CLI and OpenCode, offline, against a scripted model: the flows of the kit that
//! `EPITOME_CLIENTS` names (else `../shared/clients`), and those of `tests/clients/more.py`. Skipped, with the reason, where
//! the kit or its clients are not installed, or a network namespace cannot be made.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test may stop"
)]

#[path = "clients/goals.rs"]
mod goals;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The program: long runs name a copy that no build replaces under them.
static EPITOME: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
    std::env::var("EPITOME_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_epitome").to_owned())
});

/// The summary as it begins.
const SUMMARY: &str = "Earlier conversation compacted";

/// Claude Code 2.1.328 speaks MCP 2026-07-28 with a server that does, which has no handshake: the kit's check of the old
/// one cannot pass. That the client is connected, calls the tool and sees its result are checks of their own.
const OLD_HANDSHAKE: &str = "FAIL  the server is connected (initialize, tools/list on the wire)";

/// Where Node keeps what it compiled: Gemini CLI is 20 MB of JavaScript, and a process a prompt.
const NODE_CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/node-cache");

struct Kit {
    folder: PathBuf,
    work: tempfile::TempDir,
}

impl Kit {
    fn find(test: &str, client: &str) -> Option<Self> {
        let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/clients");
        let folder = std::env::var_os("EPITOME_CLIENTS").map_or_else(beside, PathBuf::from);
        let skip = |why: String| -> Option<Self> {
            eprintln!("SKIPPED: {test}: {why}");
            None
        };
        if !folder.join("clients.sh").is_file() {
            return skip(format!("no kit in {} (set EPITOME_CLIENTS)", folder.display()));
        }
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let installed =
            std::env::var_os("AGENT_CLIENTS_DIR").map_or(home.join(".cache/agent-clients"), PathBuf::from);
        if !installed.join("bin").join(client).exists() {
            return skip(format!("{client} is not in {} (run the kit's install.sh)", installed.display()));
        }
        let namespace = Command::new(folder.join("lib/netns.sh")).arg("true").output();
        if !namespace.is_ok_and(|it| it.status.success()) {
            return skip("a network namespace cannot be made here".to_owned());
        }
        Some(Self { folder, work: tempfile::tempdir().unwrap() })
    }

    fn run(&self, what: &str, mut command: Command, failed: &mut Vec<String>) {
        let started = Instant::now();
        let output = command
            .env("AGENT_CLIENTS_WORK", self.work.path())
            .env("NODE_COMPILE_CACHE", NODE_CACHE)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONPATH", self.folder.join("lib"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let wrong: Vec<&str> =
            said.lines().filter(|it| it.starts_with("FAIL") && *it != OLD_HANDSHAKE).collect();
        let verdict = said.lines().find(|it| it.starts_with("==")).unwrap_or("== it did not run");
        eprintln!("{verdict} ({what}, {} s)", started.elapsed().as_secs());
        let ran = said.lines().any(|it| it.starts_with("PASS"));
        if !wrong.is_empty() || !ran || output.status.code() == Some(2) {
            failed.push(format!(
                "{what}: {}\n{said}{}",
                wrong.join("; "),
                String::from_utf8_lossy(&output.stderr)
            ));
        }
    }

    /// A flow of the kit.
    fn flow(&self, client: &str, flow: &str, env: &[(&str, &str)], server: bool, failed: &mut Vec<String>) {
        let mut command = Command::new(self.folder.join("clients.sh"));
        command.args([client, flow]).envs(env.iter().copied());
        if client == "claude" {
            // On a busy machine it asks the model before its servers are connected.
            command.args(["--env", "MCP_CONNECTION_NONBLOCKING=false"]);
        }
        if client == "gemini" {
            // It starts itself a second time for more memory than these sessions need; `install` leaves it so.
            command.args(["--env", "GEMINI_CLI_NO_RELAUNCH=true", "--env"]);
            command.arg(format!("NODE_COMPILE_CACHE={NODE_CACHE}"));
        }
        if server {
            command.args(["--", &EPITOME, "serve", "--stdio"]);
        }
        self.run(&format!("{client} {flow}"), command, failed);
    }

    /// Scenes of ours of compaction in the running client.
    fn seated(&self, client: &str, program: &str, scenes: &[&str], failed: &mut Vec<String>) {
        let mut command = Command::new(self.folder.join("lib/netns.sh"));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/seated.py");
        command.arg("python3").arg(script).args([client, program]).args(scenes);
        self.run(&format!("{client} {}", scenes.join(",")), command, failed);
    }

    /// A flow of ours, by the default profile or another one.
    fn more(&self, client: &str, flow: &str, program: &str, profile: Option<&str>, failed: &mut Vec<String>) {
        let mut command = Command::new(self.folder.join("lib/netns.sh"));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/more.py");
        command.arg("python3").arg(script).args([client, flow, program]).args(profile);
        self.run(&format!("{client} {flow} {program} {}", profile.unwrap_or_default()), command, failed);
    }
}

/// Whether all flows are played with every client, also in variants that have found nothing since: `just clients`.
fn whole() -> bool {
    std::env::var_os("EPITOME_CLIENTS_WHOLE").is_some()
}

/// Whether this client plays what is the same for every client: Codex, which starts fastest, and the others in
/// `just clients`.
fn plays_all(client: &str, flows: &str) -> bool {
    let plays = client == "codex" || whole();
    if !plays {
        eprintln!(
            "SKIPPED: clients, {client}: {flows}: other clients play them here, this one in `just clients`"
        );
    }
    plays
}

fn all(client: &str, profile: &str) {
    let Some(kit) = Kit::find(&format!("clients, {client}"), client) else { return };
    let mut failed = Vec::new();
    let hook = format!("{} hook", *EPITOME);
    let compact = |options: &str| format!("{} compact '@SESSION@' --budget 900 --apply {options}", *EPITOME);
    // The session that calls, found by itself.
    let compacts = [
        ("TOOL", "summarize_history"),
        ("ARGS", r#"{"budget":"900","to":"session"}"#),
        ("NEW_ID", r#""session_id": ?\\?"([^"\\]+)"#),
        ("WANT", SUMMARY),
    ];
    kit.flow(client, "compacts", &compacts, true, &mut failed);
    // Codex undoes a compaction by our profile, and resumes one by its own below; the others undo one by their own.
    let by = (client != "codex").then_some(profile);
    kit.more(client, "undo", &EPITOME, by, &mut failed);
    if client != "opencode" || plays_all(client, "install") {
        // OpenCode takes longest, and its `seat` below installs, too.
        kit.more(client, "install", &EPITOME, None, &mut failed);
    }
    if plays_all(client, "resume, mcp, hooks, remind, prune, cli, nested, limit, carry, move, kill") {
        let own = compact(&format!("--profile {profile}"));
        kit.flow(client, "resume", &[("COMPACTOR", &own), ("WANT", "notes|compacted")], false, &mut failed);
        let mcp = [("TOOL", "estimate_tokens"), ("ARGS", r#"{"text":"hello"}"#), ("WANT", "tokens")];
        kit.flow(client, "mcp", &mcp, true, &mut failed);
        // What is said, and that it reaches the model, is checked by `install`, where the hooks stand as users have them.
        let env = [("HOOK_CMD", hook.as_str()), ("HOOK_WANT", "-"), ("HOOK_PRE_WANT", "-")];
        kit.flow(client, "hooks", &env, false, &mut failed);
        kit.flow(client, "cli", &[], true, &mut failed);
        // OpenCode's plugin has no moment of each turn at which anything could be said.
        let remind = (client != "opencode").then_some("remind");
        for flow in remind.into_iter().chain(["prune", "nested", "limit", "carry", "move", "kill"]) {
            kit.more(client, flow, &EPITOME, None, &mut failed);
        }
    }
    if whole() {
        // What `undo` does first.
        kit.flow(client, "resume", &[("COMPACTOR", &compact("")), ("WANT", SUMMARY)], false, &mut failed);
        let by_other = (client == "codex").then_some(profile);
        kit.more(client, "undo", &EPITOME, by_other, &mut failed);
        for flow in ["nested", "limit"] {
            kit.more(client, flow, &EPITOME, Some(profile), &mut failed);
        }
        // That the limit stops a client that nobody compacts.
        kit.more(client, "limit", "control", None, &mut failed);
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// A client compacts by us, as `install` leaves it: by hand, in mid-turn, five times in a row, when our program fails or
/// hangs, in a sub-agent, and when the model refuses a request as too long; and the compaction is undone.
fn seat(client: &str, agent: &str) {
    let Some(kit) = Kit::find(&format!("seat, {client}"), client) else { return };
    // The flow replaces the program for a while: each has its own.
    let folder = tempfile::tempdir().unwrap();
    let [program, hanging] = ["epitome", "hanging"].map(|name| {
        let program = folder.path().join(name).join("epitome");
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::copy(&*EPITOME, &program).unwrap();
        program.display().to_string()
    });
    let flow = |program: &str, scenes: &str, failed: &mut Vec<String>| {
        let setup = format!("{program} install {agent}");
        let suffix = format!("-{}", scenes.replace(',', "-"));
        let env = [
            ("SETUP", setup.as_str()),
            ("PROGRAM", program),
            ("WANT", SUMMARY),
            ("MANUAL", "/epitome:compact"),
            // The kit's 60 s are for a machine of its own; here several clients run at once.
            ("SEAT_WAIT", "150"),
            ("SCENES", scenes),
            ("RUN_SUFFIX", &suffix),
        ];
        kit.flow(client, "seat", &env, false, failed);
    };
    // Claude Code plays all; the others, what differs from client to client.
    let all = client == "claude" || whole();
    if !all {
        eprintln!(
            "SKIPPED: seat, {client}: five, subagent, missing: Claude Code plays them here, this one in `just clients`"
        );
    }
    let scenes: &[&str] = match (client, all) {
        ("gemini", true) => &["undo", "missing"],
        ("gemini", false) => &["undo"],
        ("claude", _) => &["undo", "subagent", "overflow", "missing", "threshold"],
        (_, true) => &["undo", "subagent", "overflow", "missing"],
        (_, false) => &["undo", "overflow"],
    };
    let turns = if all { "manual,auto,five,exit" } else { "manual,auto,exit" };
    let failed = std::thread::scope(|scope| {
        // Minutes of waiting for our time limits, in which the other scenes are played. OpenCode does not wait idly.
        let hangs = (client != "opencode" || plays_all(client, "hang")).then(|| {
            scope.spawn(|| {
                let mut failed = Vec::new();
                flow(&hanging, "hang", &mut failed);
                failed
            })
        });
        let mut failed = Vec::new();
        flow(&program, turns, &mut failed);
        kit.seated(client, &program, scenes, &mut failed);
        failed.extend(hangs.into_iter().flat_map(|it| it.join().unwrap()));
        failed
    });
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// Codex through the gateway: its own provider, and the built-in one with remote compaction.
#[test]
fn codex_compacts_by_us() {
    let Some(kit) = Kit::find("seat, codex", "codex") else { return };
    let mut failed = Vec::new();
    // The flow replaces the program for a while, but not in the gateway that runs.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("epitome");
    std::fs::copy(&*EPITOME, &program).unwrap();
    let program = program.display().to_string();
    let gateway = format!("{program} serve --http 127.0.0.1:@PORT@ --upstream @UPSTREAM@");
    for remote in [false, true] {
        let mut command = Command::new(kit.folder.join("clients.sh"));
        command.args(["codex", "seat"]).args(remote.then_some("--remote"));
        command.env("GATEWAY", &gateway).env("PROGRAM", &program).env("WANT", SUMMARY);
        kit.run(&format!("codex seat, remote: {remote}"), command, &mut failed);
        let client = if remote { "codex-remote" } else { "codex" };
        let scenes: &[&str] =
            if remote && !whole() { &["undo", "overflow"] } else { &["undo", "overflow", "passes"] };
        kit.seated(client, &program, scenes, &mut failed);
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// The kit's Codex flows, with the gateway between Codex and the model: nothing but compaction is another byte.
#[test]
fn codex_passes_through_the_gateway() {
    let Some(kit) = Kit::find("gateway, codex", "codex") else { return };
    let mut failed = Vec::new();
    let mut command = Command::new(kit.folder.join("lib/netns.sh"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/through.py");
    command.arg("python3").arg(script).arg(&*EPITOME);
    kit.run("codex through the gateway", command, &mut failed);
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn claude_code_compacts_by_us() {
    seat("claude", "claude-code");
}

#[test]
fn opencode_compacts_by_us() {
    seat("opencode", "opencode");
}

#[test]
fn gemini_cli_compacts_by_us() {
    seat("gemini", "gemini-cli");
}

/// pi, from the folder that `EPITOME_PI` names or `npm install --prefix target/pi @mariozechner/pi-coding-agent@0.73.1` made.
#[test]
fn pi_compacts_by_us() {
    let Some(kit) = Kit::find("seat, pi", "node22") else { return };
    let target = Path::new(&*EPITOME).ancestors().find(|it| it.ends_with("target"));
    let installed = std::env::var_os("EPITOME_PI").map(PathBuf::from).or(target.map(|it| it.join("pi")));
    let Some(installed) =
        installed.filter(|it| it.join("node_modules/@mariozechner/pi-coding-agent/dist/cli.js").is_file())
    else {
        eprintln!("SKIPPED: seat, pi: pi is not installed (npm install --prefix target/pi, or EPITOME_PI)");
        return;
    };
    let mut failed = Vec::new();
    let mut command = Command::new(kit.folder.join("lib/netns.sh"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/pi.py");
    command.arg("python3").arg(script).arg(&*EPITOME).arg(installed);
    kit.run("pi seat", command, &mut failed);
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// The client's own check of what `install` puts there: a change of that early API is seen here first.
#[test]
fn claude_code_accepts_our_plugin() {
    let Some(_kit) = Kit::find("plugin, claude", "claude") else { return };
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".claude")).unwrap();
    let run = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("HOME", home.path())
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("XDG_DATA_HOME");
        command.output().unwrap()
    };
    assert!(run(Path::new(&*EPITOME), &["install", "claude-code"]).status.success());
    let user = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let installed =
        std::env::var_os("AGENT_CLIENTS_DIR").map_or(user.join(".cache/agent-clients"), PathBuf::from);
    let plugin = home.path().join(".claude/skills/epitome").display().to_string();
    let found = run(&installed.join("bin/claude"), &["plugin", "validate", &plugin]);
    let said = String::from_utf8_lossy(&found.stdout);
    assert!(found.status.success() && said.contains("hooks/seat.ts"), "{said}");
}

#[test]
fn codex() {
    all("codex", "codex");
}

#[test]
fn claude_code() {
    all("claude", "claude-code");
}

#[test]
fn gemini_cli() {
    all("gemini", "gemini-cli");
}

#[test]
fn opencode() {
    all("opencode", "opencode");
}
