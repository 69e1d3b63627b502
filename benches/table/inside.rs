//! Functions, within this process; what is told of a cold count comes from a process of its own.

use std::hint::black_box;
use std::process::Command;

use epitome::compaction::facts;
use epitome::compaction::plan::{self, Cause, ModelLimits, Moment, PlanRequest};
use epitome::compaction::profile::{Profile, SummaryStyle};
use epitome::compaction::summary::offline;
use epitome::history::{History, Message, Part, TextSize};
use epitome::sessions::{self, Format, MemorySource};
use epitome::tokens::exact::{self, Encoding};
use epitome::tokens::{Estimator, TokenCounter, Tokenizer};
use serde_json::json;

use super::sessions::{self as made, Agent, Chance};
use super::{Row, Target, Times, figure, folder, peers, time};

const MB: usize = 1_000_000;

/// Reads a buffer as fast as one core can.
fn read_all(bytes: &[u8]) -> u64 {
    let mut lanes = [0u64; 16];
    let rows = bytes.chunks_exact(128);
    for row in rows {
        for (lane, word) in lanes.iter_mut().zip(row.chunks_exact(8)) {
            *lane = lane.wrapping_add(u64::from_le_bytes(word.try_into().unwrap()));
        }
    }
    lanes.iter().fold(0, |sum, it| sum.wrapping_add(*it))
}

fn rate(bytes: usize, seconds: f64) -> String {
    format!("{} GB/s", figure(bytes as f64 / seconds / 1e9))
}

pub fn raw_text() -> Vec<Row> {
    let texts = made::texts(3, 100 * MB);
    let all: String = texts.concat();
    let mut out = Vec::new();
    // By pieces of a megabyte, the middle one of which counts: what else the machine does then falls out.
    let middle = |run: &dyn Fn(&str)| {
        let mut times = Vec::new();
        let mut rest = all.as_str();
        while !rest.is_empty() {
            let end = (MB.min(rest.len())..).find(|it| rest.is_char_boundary(*it)).unwrap();
            let (piece, behind) = rest.split_at(end);
            times.push(time(&mut || run(black_box(piece))));
            rest = behind;
        }
        MB as f64 / Times::of(times).middle
    };
    let mut bandwidth = |path: &str, target: Target, run: &dyn Fn(&str)| {
        let reading = |it: &str| {
            black_box(read_all(it.as_bytes()));
        };
        let (mut ours, mut theirs) = (0f64, 0f64);
        for _ in 0..5 {
            ours = ours.max(middle(run));
            theirs = theirs.max(middle(&reading));
        }
        out.push(Row {
            path: path.to_owned(),
            ours: rate(1, 1.0 / ours),
            peer: rate(1, 1.0 / theirs),
            found: Ok(ours / theirs * 100.0),
            unit: " %",
            target,
        });
    };
    bandwidth("estimate of raw text: one core's reading of memory", Target::AtLeast(65.0), &|it| {
        black_box(Estimator::GeminiCli.text(it));
    });
    bandwidth("weight of raw text, with JSON's escapes: one core's reading", Target::None, &|it| {
        black_box(TextSize::of(it));
    });
    drop(all);

    // Parts that the peer does not shortcut (it divides the length by four from 100,000 characters on).
    let texts = made::texts(4, 20 * MB);
    let tokens: u64 = texts.iter().map(|it| Estimator::GeminiCli061.text(it)).sum();
    let file = folder().join("parts.txt");
    std::fs::write(&file, texts.join("\u{1e}")).unwrap();
    let mut ours = Vec::new();
    let answer = gemini("text", file.to_str().unwrap(), || {
        // As many rounds as the peer has.
        for _ in 0..5 {
            ours.push(time(&mut || {
                black_box(texts.iter().map(|it| Estimator::GeminiCli061.text(it)).sum::<u64>());
            }));
        }
    });
    out.push(match answer {
        Ok(lines) => {
            let (theirs, answer) = lines[0];
            assert_eq!(answer, tokens, "Gemini CLI's estimate and ours");
            let ours = Times::of(ours);
            Row {
                path: "estimate of raw text: Gemini CLI's function".into(),
                ours: ours.shown(),
                peer: format!("{} ms", figure(theirs)),
                found: Ok(theirs / 1e3 / ours.least),
                unit: " ×",
                target: Target::AtLeast(40.0),
            }
        }
        Err(why) => skipped("estimate of raw text: Gemini CLI's function", why),
    });
    out
}

fn skipped(path: &str, why: String) -> Row {
    Row {
        path: path.to_owned(),
        ours: String::new(),
        peer: String::new(),
        found: Err(why),
        unit: "",
        target: Target::None,
    }
}

/// Best milliseconds and answers of Gemini CLI's functions, `ours` in turn with it.
fn gemini(what: &str, file: &str, mut ours: impl FnMut()) -> Result<Vec<(f64, u64)>, String> {
    let core = peers::gemini()?;
    let mut best: Vec<(f64, u64)> = Vec::new();
    for _ in 0..3 {
        ours();
        let mut command = Command::new("node");
        command.arg(peers::script("gemini.mjs")).arg(&core).arg(what).arg(file);
        let (_, said) = peers::run(&mut command)?;
        let lines = said.lines().filter_map(|line| {
            let (ms, answer) = line.split_once(' ')?;
            Some((ms.parse().ok()?, answer.parse().ok()?))
        });
        for (at, (ms, answer)) in lines.enumerate() {
            match best.get_mut(at) {
                Some(it) => it.0 = it.0.min(ms),
                None => best.push((ms, answer)),
            }
        }
    }
    if best.is_empty() { Err("Gemini CLI's functions said nothing".to_owned()) } else { Ok(best) }
}

/// Contents of the Gemini API: prompts, calls with their responses, answers.
fn contents(messages: usize, bytes: usize) -> String {
    let mut chance = Chance::new(11);
    let mut out = Vec::new();
    while out.len() < messages {
        let name = "read_file";
        out.push(json!({"role": "user", "parts": [{"text": made::prose(&mut chance, 200)}]}));
        for _ in 0..4 {
            let size = bytes / messages * 2 + chance.below(800);
            let text = made::output(&mut chance, size);
            out.push(json!({"role": "model", "parts": [{"functionCall": {"name": name, "args": {"path": "src/main.rs"}}}]}));
            out.push(json!({"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"output": text}}}]}));
        }
        out.push(json!({"role": "model", "parts": [{"text": made::prose(&mut chance, 600)}]}));
    }
    out.truncate(messages);
    serde_json::to_string(&out).unwrap()
}

fn part_text(part: &Part) -> &str {
    match part {
        Part::Text(it) => it.as_str(),
        Part::Reasoning(it) => it.text.as_str(),
        Part::Call(it) => it.input.as_str(),
        Part::Output(it) => it.text.as_str(),
        Part::Media(_) => "",
        Part::Opaque(it) => it.raw.as_str(),
    }
}

pub fn split_point() -> Vec<Row> {
    let json = contents(10_000, 41 * MB);
    let file = folder().join("contents.json");
    std::fs::write(&file, &json).unwrap();
    let source = MemorySource::new("contents", json);
    let history = sessions::read(&source, Some(Format::GEMINI)).unwrap().history;
    let messages: Vec<&Message> = history.messages().iter().collect();
    assert_eq!(messages.len(), 10_000);
    // A text is weighed when it is read, on all cores; here that is done again, so that nothing is had for free.
    let some = messages.len().div_ceil(std::thread::available_parallelism().map_or(1, usize::from));
    let weigh = |with: fn(&str) -> TextSize| {
        std::thread::scope(|scope| {
            for messages in messages.chunks(some) {
                scope.spawn(move || {
                    let parts = messages.iter().flat_map(|it| &it.parts);
                    black_box(parts.map(|it| with(part_text(it)).utf16).sum::<u64>())
                });
            }
        });
    };
    let split = || {
        weigh(TextSize::of);
        let sizes: Vec<u64> = messages.iter().map(|it| plan::json_len(it)).collect();
        plan::share_split(&messages, &sizes, 0.7) as u64
    };
    let estimate = || {
        weigh(TextSize::plain);
        let counter = TokenCounter::new(&history, Tokenizer::Fixed(Estimator::GeminiCli061), Some(0));
        history.messages().iter().map(|it| counter.message(it)).sum::<u64>()
    };
    let (mut splits, mut estimates) = (Vec::new(), Vec::new());
    let lines = gemini("history", file.to_str().unwrap(), || {
        for _ in 0..5 {
            splits.push(time(&mut || {
                black_box(split());
            }));
            estimates.push(time(&mut || {
                black_box(estimate());
            }));
        }
    });
    let names = [
        "split point of 10,000 messages, 41 MB: Gemini CLI's function",
        "estimate of the same: Gemini CLI's",
    ];
    let lines = match lines {
        Ok(lines) => lines,
        Err(why) => return names.map(|it| skipped(it, why.clone())).into(),
    };
    let ours = [(Times::of(splits), split()), (Times::of(estimates), estimate())];
    let mut out = Vec::new();
    for ((name, (times, answer)), (ms, theirs)) in names.into_iter().zip(ours).zip(lines) {
        assert_eq!(answer, theirs, "{name}");
        out.push(Row {
            path: format!("{name} (same answer: {answer})"),
            ours: times.shown(),
            peer: format!("{} ms", figure(ms)),
            found: Ok(ms / 1e3 / times.least),
            unit: " ×",
            target: Target::AtLeast(20.0),
        });
    }
    out
}

/// `--count FILE`: counts once, in a process that has counted nothing, as `peers` does.
pub fn count_alone(file: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    let texts: Vec<&str> = text.split('\u{1e}').collect();
    let begun = std::time::Instant::now();
    black_box(exact::count(Encoding::O200k, "ready?"));
    let ready = begun.elapsed();
    let begun = std::time::Instant::now();
    let tokens: u64 = exact::counts(Encoding::O200k, &texts).into_iter().sum();
    println!("{} {} {tokens}", ready.as_secs_f64() * 1e3, begun.elapsed().as_secs_f64() * 1e3);
}

pub fn exact() -> Vec<Row> {
    let texts = made::texts(5, 16 * MB);
    let file = folder().join("texts.txt");
    std::fs::write(&file, texts.join("\u{1e}")).unwrap();
    let counters = match peers::counters() {
        Ok(found) => found,
        Err(why) => return vec![skipped("exact o200k count, cold: tiktoken-rs", why)],
    };
    let me = std::env::current_exe().unwrap();
    let once = |program: &std::path::Path, argument: &str| -> Result<(f64, f64, u64), String> {
        let (_, said) = peers::run(Command::new(program).arg(argument).arg(&file))?;
        let numbers: Vec<f64> = said.split_whitespace().filter_map(|it| it.parse().ok()).collect();
        Ok((numbers[0], numbers[1], numbers[2] as u64))
    };
    let mut out = Vec::new();
    for (peer, target) in [("tiktoken-rs", Target::AtLeast(4.0)), ("bpe-openai", Target::None)] {
        let (mut ours, mut theirs, mut ready) = (Vec::new(), Vec::new(), (f64::MAX, f64::MAX));
        for _ in 0..3 {
            let (a, b) = match (once(&me, "--count"), once(&counters, peer)) {
                (Ok(a), Ok(b)) => (a, b),
                (Err(why), _) | (_, Err(why)) => return vec![skipped("exact o200k count", why)],
            };
            assert_eq!(a.2, b.2, "tokens by {peer} and ours");
            ours.push(a.1 / 1e3);
            theirs.push(b.1 / 1e3);
            ready = (ready.0.min(a.0), ready.1.min(b.0));
        }
        let (ours, theirs) = (Times::of(ours), Times::of(theirs));
        let speed = |it: Times| format!("{} MB/s", figure(16.0 / it.least));
        out.push(Row {
            path: format!("exact o200k count of transcripts, cold: {peer}"),
            ours: speed(ours),
            peer: speed(theirs),
            found: Ok(theirs.least / ours.least),
            unit: " ×",
            target,
        });
        out.push(Row {
            path: format!("tables ready: {peer}"),
            ours: format!("{} ms", figure(ready.0)),
            peer: format!("{} ms", figure(ready.1)),
            found: Ok(ready.1 / ready.0),
            unit: " ×",
            target: Target::None,
        });
    }
    out
}

pub fn hostile() -> Vec<Row> {
    let mut chance = Chance::new(9);
    let mut random = |from: Vec<char>| {
        let mut text = String::with_capacity(MB + 4);
        while text.len() < MB {
            text.push(from[chance.below(from.len())]);
        }
        text
    };
    let texts = [
        ("one letter", "a".repeat(MB)),
        ("spaces", " ".repeat(MB)),
        ("spaces and a letter", format!("{}x", " ".repeat(MB))),
        ("line breaks", "\n".repeat(MB)),
        ("equal signs", "=".repeat(MB)),
        ("one kana", "あ".repeat(MB / 3)),
        ("letters", random(('a'..='z').collect())),
        ("base64", random(('a'..='z').chain('A'..='Z').chain('0'..='9').chain(['+', '/']).collect())),
        ("punctuation", random("!#$%&()*+,-./:;<=>?@[]^_{|}~".chars().collect())),
        ("Chinese", random(('一'..='龠').collect())),
        ("kana", random(('ぁ'..='ん').collect())),
        ("emoji", random(('😀'..='🙏').collect())),
    ];
    exact::count(Encoding::O200k, "ready?");
    let mut worst = ("", 0.0);
    for (name, text) in &texts {
        // A count is remembered, so each round has a text of its own.
        let times = (0..3).map(|round| {
            let text = format!("{round}{text}");
            time(&mut || {
                black_box(exact::count(Encoding::O200k, &text));
            })
        });
        let least = Times::of(times.collect()).least;
        if least > worst.1 {
            worst = (name, least);
        }
    }
    vec![Row {
        path: format!("exact count of 1 MB of the worst of {} hostile texts ({})", texts.len(), worst.0),
        ours: String::new(),
        peer: String::new(),
        found: Ok(worst.1 * 1e3),
        unit: " ms",
        target: Target::AtMost(300.0),
    }]
}

/// Counts every part of a history.
fn count_history(history: &History) -> u64 {
    let counter = TokenCounter::new(history, Tokenizer::Fixed(Estimator::O200k), Some(0));
    history.messages().iter().map(|it| counter.message(it)).sum()
}

pub fn recount() -> Vec<Row> {
    exact::count(Encoding::O200k, "ready?");
    let source = made(Agent::Codex, 8 * MB);
    // Each count is of a history just read, which remembers nothing itself.
    let count = |source: &MemorySource| {
        let history = sessions::read(source, None).unwrap().history;
        let mut tokens = 0;
        (time(&mut || tokens = count_history(&history)), tokens)
    };
    let (first, tokens) = count(&source);
    let again: Vec<(f64, u64)> = (0..5).map(|_| count(&source)).collect();
    assert!(again.iter().all(|it| it.1 == tokens));
    let again = Times::of(again.into_iter().map(|it| it.0).collect());
    // A turn more than what was counted; another one each time, which is counted for the first time.
    let grown = (0..5).map(|round| {
        let turn = made::turn(Agent::Codex, 30_000, 100 + round);
        count(&MemorySource::new("grown", [source.bytes_of(), turn].concat())).0
    });
    let grown = Times::of(grown.collect());
    let row = |path: &str, seconds: f64, target| Row {
        path: path.to_owned(),
        ours: format!("{} ms", figure(seconds * 1e3)),
        peer: format!("{} ms", figure(first * 1e3)),
        found: Ok(first / seconds),
        unit: " ×",
        target,
    };
    vec![
        row("re-count of an unchanged session, 8 MB: the cold count", again.least, Target::AtLeast(50.0)),
        row("count of the session grown by a turn: the cold count", grown.least, Target::AtLeast(50.0)),
    ]
}

/// Bytes of a source in memory.
trait Bytes {
    fn bytes_of(&self) -> Vec<u8>;
}

impl Bytes for MemorySource {
    fn bytes_of(&self) -> Vec<u8> {
        use epitome::sessions::Source as _;
        self.bytes(0..self.len()).unwrap()
    }
}

fn made(agent: Agent, bytes: usize) -> MemorySource {
    let path = folder().join("sessions").join(format!("made-{}-{bytes}.jsonl", agent as u8));
    made::write(&path, agent, bytes, bytes);
    MemorySource::new(path.display().to_string(), std::fs::read(path).unwrap())
}

const PROFILE: &str = "epitome";

fn plan(history: &History, counter: &TokenCounter, profile: &Profile, prune_only: bool) -> plan::Plan {
    let request = PlanRequest {
        prune_only,
        limits: ModelLimits { window: Some(200_000), ..ModelLimits::default() },
        ..PlanRequest::new(profile, &|_| "0000000000".to_owned())
    };
    let moment = Moment { now: 1_795_000_000_000, cause: Cause::Manual, last_run: None, failures: 0 };
    plan::plan(history, counter, &request, &moment)
}

fn offline_summary(history: &History, ledger: &facts::Ledger, profile: &Profile) -> String {
    let spec = profile.passes.iter().find_map(|it| match it {
        epitome::compaction::profile::Pass::Summarize(it) => Some(it.summary.clone()),
        _ => None,
    });
    let ask = offline::OfflineRequest {
        region: 0..history.messages().len(),
        cleared: &[],
        kept: &[],
        spec: &spec.unwrap(),
        max_tokens: 4_000,
        budget_for_shares: None,
        style: SummaryStyle::Detailed,
        focus: None,
        pins: &[],
        header: None,
    };
    offline::write(history, ledger, &ask, &|text| Estimator::Chars4.text(text))
}

/// The passes over a history, by name.
type Pass = (&'static str, fn(&MemorySource, &History));

const PASSES: [Pass; 7] = [
    ("read", |source, _| drop(black_box(sessions::read(source, None).unwrap()))),
    ("measure by reports", |_, history| {
        // A clone shares what was measured before; a fresh reading is what is told of.
        let counter = TokenCounter::new(history, Tokenizer::Auto, None);
        black_box(counter.messages(history.messages()));
    }),
    ("measure as Gemini CLI", |_, history| {
        let counter = TokenCounter::new(history, Tokenizer::Fixed(Estimator::GeminiCli061), None);
        black_box(counter.messages(history.messages()));
    }),
    ("prune", |_, history| {
        let counter = TokenCounter::new(history, Tokenizer::Fixed(Estimator::Chars4), None);
        black_box(plan(history, &counter, &epitome::profiles::built_in(PROFILE).unwrap(), true));
    }),
    ("plan", |_, history| {
        let counter = TokenCounter::new(history, Tokenizer::Fixed(Estimator::Chars4), None);
        black_box(plan(history, &counter, &epitome::profiles::built_in(PROFILE).unwrap(), false));
    }),
    ("ledger", |_, history| drop(black_box(facts::read(history)))),
    ("ledger and offline summary", |_, history| {
        let profile = epitome::profiles::built_in(PROFILE).unwrap();
        black_box(offline_summary(history, &facts::read(history), &profile));
    }),
];

/// `--pass NAME MB`: one pass over a session of so many megabytes, for counting instructions.
pub fn one_pass(name: &str, size: &str) {
    let source = made(Agent::Claude, size.parse::<usize>().unwrap() * MB);
    let history = sessions::read(&source, None).unwrap().history;
    for (pass, run) in PASSES {
        if pass == name {
            run(&source, &history);
        }
    }
}

/// More than caches hold.
const OTHERS: usize = 512 * MB;

pub fn growth() -> Vec<Row> {
    let mut out = Vec::new();
    // A process goes over a history once. Round after round, a small one would lie in the caches, and a large one would
    // be told to grow by what it costs to leave them: so something else is read before each round.
    let others = vec![1; OTHERS];
    let cold = |mut run: &dyn Fn()| {
        black_box(read_all(black_box(&others)));
        time(&mut run)
    };
    for (agent, name) in
        [(Agent::Claude, "Claude Code"), (Agent::Codex, "Codex"), (Agent::Gemini, "Gemini CLI")]
    {
        let sizes = [4 * MB, 40 * MB, 400 * MB].map(|bytes| {
            let source = made(agent, bytes);
            let history = sessions::read(&source, None).unwrap().history;
            (source, history)
        });
        // All formats are read; what comes after is the same for all.
        let passes = if agent == Agent::Claude { PASSES.len() } else { 1 };
        for (pass, run) in &PASSES[..passes] {
            let times: Vec<Times> = sizes
                .iter()
                .zip([9, 9, 5])
                .map(|((source, history), rounds)| {
                    Times::of((0..rounds).map(|_| cold(&|| run(source, history))).collect())
                })
                .collect();
            let steps = [times[1].least / times[0].least, times[2].least / times[1].least];
            let shown: Vec<String> = times.iter().map(|it| figure(it.least * 1e3)).collect();
            out.push(Row {
                path: format!("{pass}, {name}, 4 / 40 / 400 MB: time for ten times the history"),
                ours: format!("{} ms", shown.join(" / ")),
                peer: format!("{} ×, then {} ×", figure(steps[0]), figure(steps[1])),
                found: Ok(steps[0].max(steps[1])),
                unit: " ×",
                target: Target::AtMost(11.0),
            });
        }
    }
    out
}
