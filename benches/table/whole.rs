//! Whole processes, from spawn to exit, with everything printed.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::sessions::{Agent, pictures, repeat, write};
use super::{Row, Target, Times, folder, peers};

const MB: usize = 1_000_000;

fn session(agent: Agent, bytes: usize, live: usize) -> PathBuf {
    let name = match agent {
        Agent::Claude => "claude",
        Agent::Codex => "codex",
        Agent::Gemini => "gemini",
    };
    let path = folder().join("sessions").join(format!("{name}-{}-{}.jsonl", bytes / MB, live / MB));
    write(&path, agent, bytes, live);
    path
}

/// An empty home.
fn home() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn estimate(path: &Path, home: &Path) -> Command {
    peers::ours(&["estimate", path.to_str().unwrap()], home)
}

/// Seconds of both, in turn, after a round that does not count.
fn in_turn(
    rounds: usize,
    mut a: impl FnMut() -> Command,
    mut b: impl FnMut() -> Command,
) -> Result<(Times, Times), String> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let (a, b) = (peers::run(&mut a())?.0, peers::run(&mut b())?.0);
        if round > 0 {
            first.push(a);
            second.push(b);
        }
    }
    Ok((Times::of(first), Times::of(second)))
}

fn row(
    path: &str,
    times: Result<(Times, Times), String>,
    target: Target,
    ratio: impl Fn(Times, Times) -> f64,
) -> Row {
    let (ours, peer, found) = match times {
        Ok((a, b)) => (a.shown(), b.shown(), Ok(ratio(a, b))),
        Err(why) => (String::new(), String::new(), Err(why)),
    };
    Row { path: path.to_owned(), ours, peer, found, unit: " ×", target }
}

fn estimate_rows(agent: Agent, name: &str) -> Vec<Row> {
    let (path, home) = (session(agent, 200 * MB, 200 * MB), home());
    let ours = || estimate(&path, home.path());
    let script = |with: &'static str, name: &'static str| {
        let path = path.clone();
        move || {
            let mut it = Command::new(with);
            it.arg(peers::script(name)).arg(&path);
            it
        }
    };
    let faster = |a: Times, b: Times| b.least / a.least;
    let mut out = vec![
        row(
            &format!("estimate, 200 MB {name}: a Node script that only parses"),
            // Held to a target on machines whose rounds differ by a fifth.
            in_turn(9, ours, script("node", "parse.mjs")),
            Target::AtLeast(5.0),
            faster,
        ),
        row(
            &format!("estimate, 200 MB {name}: a Python script that only parses"),
            in_turn(2, ours, script("python3", "parse.py")),
            Target::None,
            faster,
        ),
    ];
    let jq = || {
        let mut it = Command::new("jq");
        it.arg("-c").arg("empty").arg(&path);
        it
    };
    out.push(row(
        &format!("estimate, 200 MB {name}: jq that only parses"),
        in_turn(1, ours, jq),
        Target::None,
        faster,
    ));
    out.push(Row {
        path: format!("estimate, 200 MB {name}: peak memory"),
        ours: String::new(),
        peer: String::new(),
        found: peers::peak(&ours()),
        unit: " MB",
        target: Target::AtMost(64.0),
    });
    out
}

pub fn estimates() -> Vec<Row> {
    let agents = [(Agent::Claude, "Claude Code"), (Agent::Codex, "Codex"), (Agent::Gemini, "Gemini CLI")];
    agents.into_iter().flat_map(|(agent, name)| estimate_rows(agent, name)).collect()
}

pub fn live_part() -> Vec<Row> {
    let agents = [(Agent::Claude, "Claude Code"), (Agent::Codex, "Codex"), (Agent::Gemini, "Gemini CLI")];
    let one = |(agent, name)| {
        let home = home();
        let (large, small) = (session(agent, 200 * MB, 2 * MB), session(agent, 2 * MB, 2 * MB));
        let times = in_turn(9, || estimate(&large, home.path()), || estimate(&small, home.path()));
        let path = format!("estimate, 200 MB {name} of which 2 MB are live: a file of 2 MB");
        row(&path, times, Target::AtMost(3.0), |a, b| a.least / b.least)
    };
    agents.into_iter().map(one).collect()
}

pub fn compact() -> Vec<Row> {
    let path = session(Agent::Claude, 4 * MB, 4 * MB);
    let path = path.to_str().unwrap();
    // A new home for each, so that nothing is remembered from the one before.
    let fresh = |arguments: &[&str]| {
        let home = home().keep();
        peers::ours(arguments, &home)
    };
    let compact = || fresh(&["compact", path]);
    let exact = || fresh(&["estimate", "--tokenizer", "o200k", path]);
    let auto = || fresh(&["compact", "--tokenizer", "o200k", path]);
    let times = in_turn(7, compact, exact);
    let alone = times.as_ref().map(|it| it.0.least * 1e3).map_err(Clone::clone);
    vec![
        Row {
            path: "compact offline, 4 MB".into(),
            ours: String::new(),
            peer: String::new(),
            found: alone,
            unit: " ms",
            target: Target::AtMost(150.0),
        },
        row("compact offline, 4 MB: estimate exact", times, Target::AtMost(3.0), |a, b| a.least / b.least),
        row(
            "compact offline counted exactly, 4 MB: estimate exact",
            in_turn(5, auto, exact),
            Target::AtMost(3.0),
            |a, b| a.least / b.least,
        ),
    ]
}

/// The largest session of the corpus for an agent, repeated to 200 MB.
fn real(agent: &str) -> Result<PathBuf, String> {
    let folder_of = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus").join(agent);
    let found = std::fs::read_dir(&folder_of).map_err(|_| "no corpus".to_owned())?;
    let sessions = found.filter_map(|it| Some((it.as_ref().ok()?.metadata().ok()?.len(), it.ok()?.path())));
    let (_, largest) = sessions.max().ok_or("no session")?;
    let path = folder().join("sessions").join(format!("real-{agent}-200.jsonl"));
    repeat(&path, &largest, 200 * MB);
    Ok(path)
}

/// Real sessions repeated, and a gigabyte of one picture: what `compact` takes beside a script that only parses.
pub fn at_size() -> Vec<Row> {
    let peak = |path: String, arguments: &[&str], most: f64| Row {
        path,
        ours: String::new(),
        peer: String::new(),
        found: peers::peak(&peers::ours(arguments, &home().keep())),
        unit: " MB",
        target: Target::AtMost(most),
    };
    let mut out = Vec::new();
    for agent in ["claude-code", "codex"] {
        let name = format!("compact, a real {agent} session repeated to 200 MB");
        let path = real(agent);
        let times = path.clone().and_then(|path| {
            let ours = || peers::ours(&["compact", path.to_str().unwrap()], &home().keep());
            let node = || {
                let mut it = Command::new("node");
                it.arg(peers::script("parse.mjs")).arg(&path);
                it
            };
            in_turn(3, ours, node)
        });
        let script = format!("{name}: a Node script that only parses");
        out.push(row(&script, times, Target::AtMost(2.5), |a, b| a.least / b.least));
        if let Ok(path) = path {
            out.push(peak(format!("{name}: peak memory"), &["compact", path.to_str().unwrap()], 300.0));
        }
    }
    for (name, compactions) in [("live", None), ("in forty compactions", Some(40))] {
        let path = folder().join("sessions").join(format!("pictures-{}.jsonl", compactions.unwrap_or(0)));
        pictures(&path, 1_000 * MB, compactions);
        for command in ["estimate", "compact"] {
            let what = format!("{command}, 1 GB Codex, one picture again and again, {name}: peak memory");
            out.push(peak(what, &[command, path.to_str().unwrap()], 200.0));
        }
    }
    out
}

/// What a process costs that does nothing.
pub fn start() -> Vec<Row> {
    let home = home();
    let ours = || peers::ours(&["--version"], home.path());
    let node = || {
        let mut it = Command::new("node");
        it.args(["-e", "0"]);
        it
    };
    vec![row("start of the process: Node's", in_turn(9, ours, node), Target::None, |a, b| b.least / a.least)]
}
