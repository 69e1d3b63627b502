//! Sessions sent to a server: each once, as they are, whenever it is there.

use std::path::{Path, PathBuf};

use super::program::{answer, claude, command, keep, refused, store};
use crate::mcp::Web;
use epitome::history::secrets::Redactor;
use epitome::store::{Scope, SearchExtent, Store, StoreAt};
use serde_json::{Value, json};

const ANNA: &str = "anna-0123456789abcdef";
const BEN: &str = "ben-fedcba9876543210";

/// A server for two, on its own archive.
fn server() -> Web {
    Web::start(|home, command| {
        let file = home.join("tokens");
        std::fs::write(&file, format!("anna:{ANNA}\nben:{BEN}\n")).unwrap();
        command.arg("--token-file").arg(file);
    })
}

fn home() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let home = std::fs::canonicalize(folder.path()).unwrap();
    (folder, home)
}

fn id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

fn archived(home: &Path, numbers: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    let of = |it: u32| claude(&id(it), home, it as usize..it as usize + 3, 20).into_bytes();
    let sessions: Vec<Vec<u8>> = numbers.clone().map(of).collect();
    for (number, session) in numbers.zip(&sessions) {
        keep(home, home, "claude-code", &id(number), session);
    }
    assert_eq!(answer(&run(home, None, &["sessions", "--keep", "--json"]))["failed"], json!([]));
    sessions
}

/// The program, told where the server is.
fn run(home: &Path, server: Option<(u16, &str)>, arguments: &[&str]) -> std::process::Output {
    let mut command = command(home, home, arguments);
    if let Some((port, token)) = server {
        command
            .env("EPITOME_VAULT_URL", format!("http://127.0.0.1:{port}"))
            .env("EPITOME_VAULT_TOKEN", token);
    }
    command.output().unwrap()
}

fn push(home: &Path, server: &Web, arguments: &[&str]) -> Value {
    answer(&run(home, Some((server.port, ANNA)), &[&["push", "--json"], arguments].concat()))
}

/// What the server has of an owner.
fn there(server: &Web, owner: &str) -> Vec<(String, String, Vec<u8>)> {
    let archive = Store::open(&StoreAt::Path(store(server.home.path())), Redactor::default()).unwrap();
    let owner = format!("token:{owner}");
    let everything = Scope { owner: owner.clone(), project: String::new() };
    let found = archive.sessions(&everything, &SearchExtent::All, 100).unwrap();
    let mut out: Vec<_> = found
        .into_iter()
        .map(|it| {
            let scope = Scope { owner: owner.clone(), project: it.project.clone() };
            let bytes = archive.restore(&scope, it.handle.as_str()).unwrap();
            (it.session.unwrap(), it.project, bytes)
        })
        .collect();
    out.sort();
    out
}

#[test]
fn each_session_arrives_once_and_as_it_is() {
    let (web, (_folder, home)) = (server(), home());
    let sessions = archived(&home, 1..4);
    let pushed = push(&home, &web, &[]);
    assert_eq!((&pushed["pushed"], &pushed["waiting"]), (&json!(3), &json!(0)), "{pushed}");
    let project = home.display().to_string();
    let expected: Vec<_> =
        (1..4).zip(&sessions).map(|(it, bytes)| (id(it), project.clone(), bytes.clone())).collect();
    assert_eq!(there(&web, "anna"), expected);
    assert_eq!(there(&web, "ben"), []);
    // Nothing is sent again, and by name once more is still once.
    assert_eq!(push(&home, &web, &[])["pushed"], 0);
    assert_eq!(push(&home, &web, &[&id(2)])["pushed"], 1);
    assert_eq!(there(&web, "anna"), expected);
    let why = refused(&run(&home, Some((web.port, ANNA)), &["push", "nothing-of-that-name"]));
    assert!(why.contains("expected the id of an archived session"), "{why}");
    // What was pushed is found with the token that pushed it, and with no other.
    let hits = |token: &str| {
        let token = format!("Bearer {token}");
        let arguments = json!({"query": "item", "scope": "all"});
        let answer = web.call("recall", arguments, &[("Authorization", &token)]);
        answer["structuredContent"]["hits"].as_array().map_or(0, Vec::len)
    };
    assert!(hits(ANNA) > 0);
    assert_eq!(hits(BEN), 0);
}

#[test]
fn what_grew_is_sent_again_and_what_the_hooks_archive_goes_by_itself() {
    let (web, (_folder, home)) = (server(), home());
    let sessions = archived(&home, 1..2);
    assert_eq!(push(&home, &web, &[])["pushed"], 1);
    let grown = [&sessions[0][..], b"{\"type\":\"queue-operation\"}\n"].concat();
    keep(&home, &home, "claude-code", &id(1), &grown);
    // As the hooks run it.
    let kept = run(&home, Some((web.port, ANNA)), &["sessions", "--keep", "--quiet"]);
    assert!(kept.status.success(), "{}", String::from_utf8_lossy(&kept.stderr));
    let there = there(&web, "anna");
    assert_eq!(there.len(), 2);
    assert!(there.iter().any(|it| it.2 == grown));
    assert_eq!(push(&home, &web, &[])["pushed"], 0);
}

#[test]
fn while_the_server_is_away_nothing_is_lost() {
    let (_folder, home) = home();
    archived(&home, 1..4);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let away = run(&home, Some((nobody, ANNA)), &["push", "--json"]);
    assert_eq!(away.status.code(), Some(1));
    let away = answer(&away);
    assert_eq!((&away["pushed"], &away["waiting"]), (&json!(0), &json!(3)), "{away}");
    assert!(away["away"].as_str().unwrap().contains("stays in the archive"), "{away}");
    // Archiving goes on meanwhile.
    let kept = run(&home, Some((nobody, ANNA)), &["sessions", "--keep", "--quiet"]);
    assert!(kept.status.success(), "{}", String::from_utf8_lossy(&kept.stderr));
    let web = server();
    let stranger = run(&home, Some((web.port, "nobody-0123456789abcdef")), &["push", "--json"]);
    assert!(answer(&stranger)["away"].as_str().unwrap().contains("a token that the server knows"));
    assert_eq!(push(&home, &web, &[])["pushed"], 3);
    assert_eq!(there(&web, "anna").len(), 3);
}

#[test]
fn a_session_that_is_too_large_is_named_and_one_that_nobody_can_read_is_stored() {
    let (web, (_folder, home)) = (server(), home());
    archived(&home, 1..2);
    let padding = format!("{{\"type\":\"queue-operation\",\"x\":\"{}\"}}\n", "x".repeat(64 << 20));
    let large = [claude(&id(2), &home, 0..1, 1), padding].concat();
    keep(&home, &home, "claude-code", &id(2), large.as_bytes());
    run(&home, None, &["sessions", "--keep", "--json"]);
    let pushed = push(&home, &web, &[]);
    let refused = pushed["refused"].as_array().cloned().unwrap_or_default();
    assert_eq!((&pushed["pushed"], refused.len()), (&json!(1), 1), "{pushed}");
    assert!(refused[0].as_str().unwrap().contains("the server takes 64 MB"), "{pushed}");
    assert_eq!(there(&web, "anna").len(), 1);
    // It is not tried again until it changes.
    assert_eq!(push(&home, &web, &[])["refused"], Value::Null);
    let token = format!("Bearer {ANNA}");
    let put =
        |path: &str| web.request("PUT", path, &[("Authorization", &token)], b"\xff\xfe no session\n").status;
    assert_eq!(put("/sessions"), 422);
    assert_eq!(put("/sessions?session=s&project=/p&at=1"), 201);
    assert_eq!(there(&web, "anna").len(), 2);
}

#[test]
fn mistakes_in_the_configuration_say_what_to_write() {
    let (_folder, home) = home();
    let why = refused(&run(&home, None, &["push"]));
    assert!(why.contains("[vault]") && why.contains("EPITOME_VAULT_URL"), "{why}");
    for (url, says) in [
        ("vault.example.org", "an address such as https://"),
        ("http://vault.example.org", "https://, since"),
    ] {
        let mut command = command(&home, &home, &["push"]);
        let why = refused(&command.env("EPITOME_VAULT_URL", url).output().unwrap());
        assert!(why.contains(says), "{url}: {why}");
    }
    let config = home.join(".config/epitome");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "[vault]\nurl = \"https://x\"\ntoken-file = \"/nowhere\"\n")
        .unwrap();
    let why = refused(&run(&home, None, &["push"]));
    assert!(why.contains("vault.token-file: expected a file with a token"), "{why}");
}

/// What docs/team.md shows: the commands are there, the server takes the container's arguments, the configuration parses.
#[test]
fn what_the_page_for_teams_shows_is_there() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/team.md")).unwrap();
    let (_folder, home) = home();
    let helps = |arguments: &[&str]| {
        let output = run(&home, None, &[arguments, &["--help"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let mut commands = 0;
    for line in page.lines().filter_map(|it| it.strip_prefix("epitome ")) {
        let line = line.split('#').next().unwrap();
        helps(&line.split_whitespace().collect::<Vec<_>>());
        commands += 1;
    }
    let container = page.lines().find_map(|it| it.trim().strip_prefix("command: [ \"serve\"")).unwrap();
    let arguments: Vec<String> = serde_json::from_str(&format!("[\"serve\"{container}")).unwrap();
    helps(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(commands >= 3, "{commands}");
    let toml = page.split("```toml").nth(1).unwrap().split("```").next().unwrap();
    let token = home.join("token");
    std::fs::write(&token, ANNA).unwrap();
    let toml = toml.replace("/home/anna/.config/epitome/vault-token", token.to_str().unwrap());
    let config = home.join(".config/epitome");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), toml).unwrap();
    let pushed = answer(&run(&home, None, &["push", "--json"]));
    assert_eq!(pushed["pushed"], 0, "{pushed}");
}

#[cfg(not(feature = "team"))]
#[test]
fn a_build_without_postgresql_says_how_to_get_one() {
    let (_folder, home) = home();
    let why = refused(&run(&home, None, &["--store", "postgres://me:secret@db/x", "memory", "list"]));
    assert!(why.contains("--features team") && !why.contains("secret"), "{why}");
    assert!(!home.join("postgres:").exists());
}
