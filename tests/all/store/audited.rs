//! Who did what with the archive, and when.

use std::path::{Path, PathBuf};

use epitome::history::secrets::Redactor;
use epitome::store::{AuditEntry, AuditVerb, Face, Retention, Scope, SearchExtent, Store, StoreAt};
use serde_json::{Value, json};

use super::fresh;
use super::program::{answer, claude, command, keep, said, store};
use crate::mcp::Web;

const ID: &str = "00000000-0000-4000-8000-00000000000a";

fn entry(owner: &str, at: i64, handle: &str) -> AuditEntry {
    AuditEntry {
        owner: owner.into(),
        at,
        verb: AuditVerb::Read,
        face: Face::Mcp,
        agent: Some("codex".into()),
        project: "/p".into(),
        session: None,
        handle: Some(handle.into()),
    }
}

pub(super) fn entries_are_of_their_owner_and_go_by_age() {
    let store = fresh(Redactor::default());
    for at in [10, 20, 30] {
        store.put_audit(&entry("me", at, &format!("h{at}"))).unwrap();
    }
    store.put_audit(&entry("you", 25, "other")).unwrap();
    assert_eq!(store.audit(Some("me"), None, 2).unwrap(), [entry("me", 30, "h30"), entry("me", 20, "h20")]);
    assert_eq!(store.audit(Some("me"), Some(30), 9).unwrap(), [entry("me", 30, "h30")]);
    assert_eq!(store.audit(Some("nobody"), None, 9).unwrap(), []);
    let everybody = store.audit(None, Some(25), 9).unwrap();
    assert_eq!(everybody, [entry("you", 25, "other"), entry("me", 30, "h30")]);
    let retention = Retention { before: Some(25), max_bytes: None, originals_only: true };
    assert_eq!(store.collect(&retention, 40, true).unwrap().expired, 2);
    assert_eq!(store.audit(Some("me"), None, 9).unwrap().len(), 3);
    assert_eq!(store.collect(&retention, 40, false).unwrap().expired, 2);
    assert_eq!(store.audit(Some("me"), None, 9).unwrap(), [entry("me", 30, "h30")]);
    assert_eq!(store.audit(Some("you"), None, 9).unwrap().len(), 1);
}

#[test]
fn entries_are_of_their_owner_and_go_by_age_in_sqlite() {
    entries_are_of_their_owner_and_go_by_age();
}

#[test]
fn the_oldest_entries_of_an_owner_give_way() {
    let store = fresh(Redactor::default());
    store.put_audit(&entry("you", 1, "other")).unwrap();
    for at in 0..10_003 {
        store.put_audit(&entry("me", at, "h")).unwrap();
    }
    let all = store.audit(Some("me"), None, u32::MAX).unwrap();
    assert_eq!((all.len(), all[0].at, all[9_999].at), (10_000, 10_002, 3));
    assert_eq!(store.audit(Some("you"), None, 9).unwrap().len(), 1);
}

#[test]
fn an_older_archive_gets_the_log() {
    let directory = tempfile::tempdir().unwrap();
    super::old::make(directory.path(), &super::old::originals());
    let store = Store::open(&StoreAt::Path(directory.path().into()), Redactor::default()).unwrap();
    assert_eq!(store.audit(Some("me"), None, 9).unwrap(), []);
    store.put_audit(&entry("me", 7, "h")).unwrap();
    super::old::assert_all_there(&store, &super::old::originals());
    assert_eq!(store.audit(Some("me"), None, 9).unwrap(), [entry("me", 7, "h")]);
}

/// What was done, as verb and way, the oldest first.
fn done(answer: &Value) -> Vec<(String, String)> {
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    answer["audit"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|it| (text(&it["verb"]), text(&it["face"])))
        .collect()
}

#[test]
fn every_verb_that_takes_from_the_archive_or_puts_into_it_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let home: PathBuf = std::fs::canonicalize(folder.path()).unwrap();
    let project = home.join("p");
    std::fs::create_dir(&project).unwrap();
    let secret = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let session = claude(ID, &project, 0..20, 60).replace("Go on with 3", secret);
    keep(&home, &project, "claude-code", ID, session.as_bytes());
    let run = |arguments: &[&str]| command(&home, &project, arguments).output().unwrap();
    let made = answer(&run(&["compact", ID, "--budget", "30%", "--apply", "--json"]));
    assert_eq!(made["status"], "compacted", "{made}");
    let handle = made["handle"].as_str().unwrap();
    // A look changes nothing and is not noted.
    run(&["compact", ID, "--budget", "30%"]);
    run(&["recall", "Go on"]);
    assert!(!said(&run(&["recall", handle])).is_empty());
    said(&run(&["restore", handle, "--out", "whole.jsonl"]));
    said(&run(&["undo"]));
    let file = home.join("s.epitome");
    said(&run(&["export", ID, "-o", file.to_str().unwrap()]));
    let listed = answer(&run(&["memory", "audit", "--json"]));
    let expected =
        ["compact", "read", "restore", "undo", "export"].map(|it| (it.to_owned(), "cli".to_owned()));
    assert_eq!(done(&listed), expected);
    let newest = &listed["audit"][0];
    assert_eq!((&newest["session"], &newest["project"]), (&json!(ID), &json!(project)), "{newest}");
    assert_eq!(listed["audit"][4]["handle"], handle);
    let read = &listed["audit"][3];
    assert_eq!((&read["verb"], &read["session"]), (&json!("read"), &json!(ID)), "{read}");
    assert!(!listed.to_string().contains(secret) && !listed.to_string().contains("Go on"));
    let shown = said(&run(&["memory", "audit", "--since", "1d", "--limit", "2"]));
    assert_eq!(
        (shown.lines().count(), shown.contains("export"), shown.contains("compact")),
        (3, true, false)
    );
    assert_eq!(done(&answer(&run(&["memory", "audit", "--since", "2999-01-01", "--json"]))), []);
    assert!(!run(&["memory", "audit", "--since", "whenever"]).status.success());
    // A store that another process holds: what is read is read, though it cannot be noted.
    let held = rusqlite::Connection::open(store(&home).join("epitome.db")).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let read = run(&["recall", handle]);
    held.execute_batch("ROLLBACK").unwrap();
    assert!(!said(&read).is_empty());
    assert!(String::from_utf8_lossy(&read.stderr).contains("read is not in the audit log"), "{read:?}");
    assert_eq!(done(&answer(&run(&["memory", "audit", "--json"]))), expected);
}

#[test]
fn what_a_server_stores_and_shows_is_noted_for_its_owner() {
    const ANNA: &str = "anna-0123456789abcdef";
    const BEN: &str = "ben-fedcba9876543210";
    let web = Web::start(|home, command| {
        let file = home.join("tokens");
        std::fs::write(&file, format!("anna:{ANNA}\nben:{BEN}\n")).unwrap();
        command.arg("--token-file").arg(file);
    });
    let folder = tempfile::tempdir().unwrap();
    let home: &Path = folder.path();
    keep(home, home, "claude-code", ID, claude(ID, home, 0..3, 20).as_bytes());
    answer(&command(home, home, &["sessions", "--keep", "--json"]).output().unwrap());
    let mut pushing = command(home, home, &["push", "--json"]);
    pushing
        .env("EPITOME_VAULT_URL", format!("http://127.0.0.1:{}", web.port))
        .env("EPITOME_VAULT_TOKEN", ANNA);
    assert_eq!(answer(&pushing.output().unwrap())["pushed"], 1);
    let mine = answer(&command(home, home, &["memory", "audit", "--json"]).output().unwrap());
    assert_eq!(done(&mine), [("push".to_owned(), "cli".to_owned())]);
    let archive = Store::open(&StoreAt::Path(store(web.home.path())), Redactor::default()).unwrap();
    let all = Scope { owner: "token:anna".into(), project: String::new() };
    let handle = archive.sessions(&all, &SearchExtent::All, 9).unwrap()[0].handle;
    let read = web.call(
        "recall",
        json!({"handle": handle.as_str()}),
        &[("authorization", &format!("Bearer {ANNA}"))],
    );
    assert!(read.to_string().contains("Go on"), "{read}");
    let noted = archive.audit(Some("token:anna"), None, 9).unwrap();
    let verbs: Vec<_> = noted.iter().map(|it| (it.verb, it.face, it.handle.as_deref())).collect();
    let handle = Some(handle.as_str());
    assert_eq!(verbs, [(AuditVerb::Read, Face::Server, handle), (AuditVerb::Store, Face::Server, handle)]);
    assert_eq!(archive.audit(Some("token:ben"), None, 9).unwrap(), []);
}
