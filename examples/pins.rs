//! Hashes of the program's answers about every session of some folders, to check that a refactoring changes none.
//!
//!     just pins record    # before a change
//!     just pins           # after it: names every answer that differs
//!
//! Arguments: PROGRAM FILE record|compare FOLDER…; FILE holds one line per answer: its hash, then its command.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a program for developers"
)]

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// The value of `--now`, so that nothing depends on the clock.
const NOW: &str = "2026-11-23T00:00:00Z";
/// File extensions of sessions.
const KINDS: [&str; 3] = ["json", "jsonl", "traj"];

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [program, file, what, folders @ ..] = words.as_slice() else {
        return Err("expected PROGRAM FILE record|compare FOLDER…".into());
    };
    let mut sessions = Vec::new();
    for folder in folders {
        collect(Path::new(folder), &mut sessions)?;
    }
    sessions.sort();
    let profiles: Vec<serde_json::Value> = serde_json::from_slice(&run(program, &["profiles", "--json"])?.1)?;
    let profiles: Vec<&str> = profiles.iter().filter_map(|it| it["name"].as_str()).collect();
    let pins = pins(program, &sessions, &profiles)?;
    let text: String = pins.iter().map(|(command, hash)| format!("{hash} {command}\n")).collect();
    if what == "record" {
        println!("{} answers of {} sessions recorded in {file}", pins.len(), sessions.len());
        return Ok(std::fs::write(file, text)?);
    }
    let recorded = std::fs::read_to_string(file)?;
    let recorded: BTreeMap<&str, &str> =
        recorded.lines().filter_map(|it| it.split_once(' ')).map(|(hash, command)| (command, hash)).collect();
    let changed: Vec<&String> = pins
        .iter()
        .filter(|(command, hash)| recorded.get(command.as_str()) != Some(&hash.as_str()))
        .map(|it| it.0)
        .collect();
    let gone = recorded.keys().filter(|it| !pins.contains_key(**it)).count();
    changed.iter().for_each(|it| println!("differs: {it}"));
    println!("{} answers, {} differ, {gone} are not given any more", pins.len(), changed.len());
    if changed.is_empty() && gone == 0 { Ok(()) } else { Err("not the same answers".into()) }
}

fn collect(folder: &Path, out: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, out)?;
        } else if path.extension().is_some_and(|it| KINDS.iter().any(|kind| it == *kind)) {
            out.push(path);
        }
    }
    Ok(())
}

/// The hash of each command's answer, keyed by the command. Two threads process the sessions.
fn pins(program: &str, sessions: &[PathBuf], profiles: &[&str]) -> Result<BTreeMap<String, String>, Failure> {
    let (left, out) = (Mutex::new(sessions.iter().enumerate()), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        let work = || -> Result<(), Failure> {
            loop {
                let next = left.lock().unwrap().next();
                let Some((number, session)) = next else { return Ok(()) };
                let found = of_session(program, session, number, profiles)?;
                out.lock().unwrap().extend(found);
            }
        };
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|it| it.join().map_err(|_| "a worker panicked")?)
    })?;
    Ok(out.into_inner().unwrap())
}

fn of_session(
    program: &str,
    session: &Path,
    number: usize,
    profiles: &[&str],
) -> Result<Vec<(String, String)>, Failure> {
    let path = session.to_string_lossy().into_owned();
    let compacted = std::env::temp_dir().join(format!("pins-{number}"));
    let copy = compacted.to_string_lossy().into_owned();
    let mut out = Vec::new();
    let mut pin = |verb: &str, more: &[&str]| -> Result<Vec<u8>, Failure> {
        let mut words = vec![verb, &path, "--now", NOW];
        words.extend(more);
        let (code, answer) = run(program, &words)?;
        let mut hasher = twox_hash::XxHash3_64::new();
        hasher.write(&answer);
        out.push((
            format!("{verb} {path} {}", more.join(" ").replace(&copy, "COMPACTED")),
            format!("{code}:{:016x}", hasher.finish()),
        ));
        Ok(answer)
    };
    pin("estimate", &["--json"])?;
    pin("report", &["-o", "-"])?;
    for profile in profiles {
        pin("split", &["--json", "--profile", profile])?;
        pin("prune", &["--json", "--profile", profile])?;
        pin("compact", &["--json", "--profile", profile])?;
        std::fs::write(&compacted, pin("compact", &["-o", "-", "--profile", profile])?)?;
        pin("score", &[&copy, "--json", "--profile", profile])?;
    }
    Ok(std::fs::remove_file(&compacted).map(|()| out)?)
}

/// Exit code and standard output, independent of this machine's configuration.
fn run(program: &str, words: &[&str]) -> Result<(i32, Vec<u8>), Failure> {
    let home = std::env::temp_dir().join("pins-home");
    std::fs::create_dir_all(&home)?;
    let mut command = Command::new(program);
    command.args(words).env_clear().env("HOME", &home).env("EPITOME_STORE", "none");
    let answered = command.output()?;
    Ok((answered.status.code().unwrap_or(-1), answered.stdout))
}
