//! The table of BENCHMARKS.md: every path that has a target, ours beside what it is held against, in one run.
//!
//! `cargo bench --bench table [-- WORDS]`: only rows that contain one of the words. Fails if a row misses its target.
//! What others are needed for a row is installed by `just bench-peers`; a row without them is skipped and says so.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program for people, of which a failure is the result"
)]

mod inside;
mod peers;
mod sessions;
mod whole;

use std::path::PathBuf;
use std::process::ExitCode;

/// What a row is held to.
#[derive(Clone, Copy)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
    /// Only told.
    None,
}

/// A row of the table.
pub struct Row {
    pub path: String,
    pub ours: String,
    pub peer: String,
    /// What was found of what the target is about, or why nothing was.
    pub found: Result<f64, String>,
    pub unit: &'static str,
    pub target: Target,
}

impl Row {
    fn state(&self) -> &'static str {
        match (&self.found, self.target) {
            (Err(_), _) => "skipped",
            (Ok(_), Target::None) => "",
            (Ok(it), Target::AtLeast(least)) if *it >= least => "met",
            (Ok(it), Target::AtMost(most)) if *it <= most => "met",
            (Ok(_), Target::AtLeast(_) | Target::AtMost(_)) => "MISSED",
        }
    }

    fn line(&self) -> String {
        let target = match self.target {
            Target::AtLeast(it) => format!("≥ {it}{}", self.unit),
            Target::AtMost(it) => format!("≤ {it}{}", self.unit),
            Target::None => String::new(),
        };
        let found = match &self.found {
            Ok(it) => format!("{}{}", figure(*it), self.unit),
            Err(why) => why.clone(),
        };
        format!("| {} | {} | {} | {found} | {target} | {} |", self.path, self.ours, self.peer, self.state())
    }
}

/// Three digits that mean something.
pub fn figure(it: f64) -> String {
    match it.abs() {
        it if it >= 100.0 => format!("{it:.0}"),
        it if it >= 10.0 => format!("{it:.1}"),
        _ => format!("{it:.2}"),
    }
}

/// Where what is made up and installed for the benchmarks lies.
pub fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target")).join("bench-peers")
}

/// The least and the middle one of some times.
#[derive(Clone, Copy)]
pub struct Times {
    pub least: f64,
    pub middle: f64,
}

impl Times {
    pub fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self { least: times[0], middle: times[times.len() / 2] }
    }

    /// Milliseconds: the least, and the middle one in brackets.
    pub fn shown(self) -> String {
        format!("{} ms ({})", figure(self.least * 1e3), figure(self.middle * 1e3))
    }
}

pub fn time(run: &mut impl FnMut()) -> f64 {
    let begun = std::time::Instant::now();
    run();
    begun.elapsed().as_secs_f64()
}

type Group = (&'static str, fn() -> Vec<Row>);

const GROUPS: [Group; 11] = [
    ("raw text", inside::raw_text),
    ("split point", inside::split_point),
    ("exact", inside::exact),
    ("hostile", inside::hostile),
    ("re-count", inside::recount),
    ("estimate 200 MB", whole::estimates),
    ("live part", whole::live_part),
    ("compact", whole::compact),
    ("at size", whole::at_size),
    ("start", whole::start),
    ("growth", inside::growth),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    if let [child, file] = arguments.as_slice()
        && child == "--count"
    {
        inside::count_alone(file);
        return ExitCode::SUCCESS;
    }
    if let [child, pass, size] = arguments.as_slice()
        && child == "--pass"
    {
        inside::one_pass(pass, size);
        return ExitCode::SUCCESS;
    }
    println!("{}\n", machine());
    println!("Least of some rounds, the middle one in brackets. Pairs run in turn.\n");
    println!("| path | ours | beside it | found | target | |\n|---|---|---|---|---|---|");
    let mut missed = 0;
    for (name, rows) in GROUPS {
        if !arguments.is_empty() && !arguments.iter().any(|it| name.contains(it.as_str())) {
            continue;
        }
        for row in rows() {
            missed += usize::from(row.state() == "MISSED");
            println!("{}", row.line());
        }
    }
    println!("\n{missed} missed");
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The machine, and the versions of what is compared.
fn machine() -> String {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = text("/proc/cpuinfo");
    let cpu = cpu.lines().find_map(|it| it.strip_prefix("model name")).unwrap_or("an unknown processor");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = text("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default().to_owned();
    format!(
        "{} × {}, load {load} at the start; Node {}, Python {}, tiktoken-rs 0.12.1, bpe-openai 0.3.2, Gemini CLI 0.61.0",
        cores,
        cpu.trim_start_matches(['\t', ':', ' ']),
        peers::version("node"),
        peers::version("python3"),
    )
}
