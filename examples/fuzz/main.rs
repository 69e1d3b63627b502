//! Runs mutated sessions of every format through the whole program: no panic, nothing invalid, nothing slow.
//!
//!     just fuzz              # 10,000 cases, seed 1
//!     just fuzz 1000000 7    # number of cases, and another seed
//!
//! A finding is printed with its number; `just fuzz 1 SEED FORMAT NUMBER` writes that case to standard output.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a program for developers"
)]

mod case;
mod mutate;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use case::{Bench, Seen};
use epitome::sessions::Format;
use mutate::{Document, Random};

/// Records or messages of a base session.
const RECORDS: usize = 14;
/// Maximum CPU time of a case of up to 1 MB; of a larger one, for each megabyte.
const SLOW: Duration = Duration::from_secs(2);

/// Every format with its example session.
const FORMATS: [(Format, &str); 11] = [
    (Format::CLAUDE_CODE, "claude-code.jsonl"),
    (Format::CODEX, "codex.jsonl"),
    (Format::GEMINI_CLI, "gemini-cli.jsonl"),
    (Format::OPENCODE, "opencode.json"),
    (Format::PI, "pi.jsonl"),
    (Format::QWEN_CODE, "qwen-code.jsonl"),
    (Format::SWE_AGENT, "swe-agent.traj"),
    (Format::ANTHROPIC, "anthropic.json"),
    (Format::OPENAI_CHAT, "openai-chat.json"),
    (Format::OPENAI_RESPONSES, "openai-responses.json"),
    (Format::GEMINI, "gemini.json"),
];

fn case_of(document: &Document, seed: u64, number: u64) -> Vec<u8> {
    document.mutated(&mut Random(seed.wrapping_mul(0x1000_0000_01B3) ^ number))
}

/// CPU time of this thread, so that other load on the machine makes no case slow; wall-clock time where the system does
/// not report it.
fn running_time(begun: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = told.split_whitespace().next().and_then(|it| it.parse().ok());
    nanoseconds.map_or_else(|| begun.elapsed(), Duration::from_nanos)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, unsaid: u64| words.get(at).map_or(Ok(unsaid), |it| it.parse());
    let (cases, seed) = (number(0, 10_000)?, number(1, 1)?);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sessions");
    let documents: Vec<(Format, Document)> = FORMATS
        .iter()
        .map(|(format, name)| {
            Ok((*format, Document::small(&std::fs::read_to_string(folder.join(name))?, RECORDS)))
        })
        .collect::<std::io::Result<_>>()?;
    if let Some(name) = words.get(2) {
        let found = documents.iter().find(|it| it.0.name() == name).ok_or("which format?")?;
        return Ok(std::io::stdout().write_all(&case_of(&found.1, seed, number(3, 0)?))?);
    }
    // A panic is a finding, reported like the others.
    std::panic::set_hook(Box::new(|_| {}));
    let mut bench = Bench::new()?;
    let (mut tally, mut finds): (BTreeMap<&str, [u64; 4]>, BTreeMap<String, (u64, u64)>) = Default::default();
    let (start, mut slowest) = (Instant::now(), Duration::ZERO);
    for case in 0..cases {
        // Its archive is in memory and holds every case.
        if case % 500 == 499 {
            bench = Bench::new()?;
        }
        let (format, document) = &documents[(case % documents.len() as u64) as usize];
        let bytes = case_of(document, seed, case);
        let begun = running_time(start);
        let seen = bench.run(*format, &bytes, case / documents.len() as u64);
        let took = running_time(start).saturating_sub(begun);
        slowest = slowest.max(took);
        let late = took > SLOW.mul_f64(1f64.max(bytes.len() as f64 / 1e6));
        let count = tally.entry(format.name()).or_default();
        count[0] += 1;
        let find = match seen {
            Ok(_) if late => Some(format!("slow: {} ms", took.as_millis())),
            Ok(Seen::Unread) => None,
            Ok(Seen::Written(written)) => {
                count[1] += 1;
                count[2] += written as u64;
                None
            }
            Err(what) => Some(what),
        };
        if let Some(what) = find {
            count[3] += 1;
            // Findings that differ only in numbers are the same.
            let kind: String = what.chars().filter(|it| !it.is_ascii_digit()).take(160).collect();
            let known = finds.entry(format!("{} {kind}", format.name())).or_insert((0, case));
            known.0 += 1;
            if known.0 == 1 {
                println!("case {case} {}: {}", format.name(), what.chars().take(400).collect::<String>());
            }
        }
        if (case + 1) % 100_000 == 0 {
            println!("{} cases, {} kinds of finds", case + 1, finds.len());
        }
    }
    println!("{:<18}{:>10}{:>10}{:>10}{:>8}", "format", "cases", "read", "written", "finds");
    for (name, [cases, read, written, finds]) in &tally {
        println!("{name:<18}{cases:>10}{read:>10}{written:>10}{finds:>8}");
    }
    for (kind, (count, first)) in &finds {
        println!("{count:>8} × {kind} (first: case {first})");
    }
    let kilobytes = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        kilobytes.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap_or(" not known").trim().to_owned();
    println!("slowest case {} ms, memory at most {peak}", slowest.as_millis());
    if finds.is_empty() { Ok(()) } else { Err(format!("{} kinds of finds", finds.len()).into()) }
}
