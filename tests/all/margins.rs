//! How far the estimated context is from what the provider reports next, per agent and model family, and how often the
//! claimed margin held. The reports are held back: the counter sees the session as it was before the response that
//! carries them. Prints one table per half of the corpus; the halves are split by repository, so that what was tuned
//! on one can be read off the other.
//!
//! `cargo test --test all margins:: -- --ignored --nocapture`

use std::collections::BTreeMap;

use epitome::history::{History, Message};
use epitome::tokens::{TokenCounter, Tokenizer};

use crate::corpus;
use crate::predicted_growth::{AGENTS, histories, reports};

/// Errors as shares of the reported context, each with the margin that was claimed, as a share too.
#[derive(Default)]
struct Row {
    sessions: usize,
    at_last: Vec<f64>,
    at_any: Vec<(f64, f64)>,
    next: Vec<(f64, f64)>,
    tenth: Vec<(f64, f64)>,
    unreported: Vec<(f64, f64)>,
}

#[test]
#[ignore = "a measurement of the corpus, minutes long"]
fn context_is_within_its_margin() {
    let Some(corpus) = corpus::corpus_for("context_is_within_its_margin") else { return };
    let mut rows: BTreeMap<(&str, &str, String), Row> = BTreeMap::new();
    for (agent, read, boundary) in AGENTS {
        for (file, history) in histories(&corpus.join(agent), read, boundary) {
            let family = family(history.meta.model.as_deref().unwrap_or("unknown"));
            let half = half(&file);
            for key in
                [(half, agent, family), (half, agent, "all".to_owned()), (half, "all", "all".to_owned())]
            {
                rows.entry(key).or_default().measure(&history);
            }
        }
    }
    println!(
        "half    agent       family             n |last| worst | any <=10 % |   1 step  <=5 % <=10 % margin | 10 steps  <=5 % <=10 % margin | no report margin"
    );
    for ((half, agent, family), row) in &rows {
        let within = |of: &[(f64, f64)], most: f64| share(of, |it| it.0 <= most);
        let held = |of: &[(f64, f64)]| share(of, |it| it.0 <= it.1);
        let [one, ten] = [&row.next, &row.tenth].map(|it| {
            format!("{:>9} {:>6} {:>6} {:>6}", it.len(), within(it, 0.05), within(it, 0.1), held(it))
        });
        let worst = row.at_last.iter().copied().fold(0.0, f64::max);
        println!(
            "{half:7} {agent:11} {family:16} {:>3} {:>5.1}% {:>4.0}% | {:>10} | {one} | {ten} | {:>9} {:>6}",
            row.sessions,
            median(&row.at_last) * 100.0,
            worst * 100.0,
            within(&row.at_any, 0.1),
            row.unreported.len(),
            held(&row.unreported),
        );
    }
    let held: Vec<(f64, f64)> = rows
        .iter()
        .filter(|((half, agent, _), _)| *half == "held" && *agent == "all")
        .flat_map(|(_, row)| row.next.iter().chain(&row.tenth).copied())
        .collect();
    let kept = held.iter().filter(|it| it.0 <= it.1).count();
    assert!(kept * 100 >= held.len() * 95, "the claimed margin held in {kept} of {} cases", held.len());
}

impl Row {
    fn measure(&mut self, history: &History) {
        let messages = history.messages();
        let reports = reports(messages);
        let Some(&(last, _, sent)) = reports.last() else { return };
        self.sessions += 1;
        let counter = TokenCounter::new(history, Tokenizer::Auto, None);
        self.at_last.push(error(context(&counter, &messages[..last]), sent));
        for (k, &(from, index, sent)) in reports.iter().enumerate() {
            let cut = without_reports(history, index + 1, Some(index));
            let counter = TokenCounter::new(&cut, Tokenizer::Auto, None);
            let found = error(context(&counter, &cut.messages()[..from]), sent);
            self.at_any.push((found, counter.method().margin_percent / 100.0));
            for (back, errors) in [(1, &mut self.next), (10, &mut self.tenth)] {
                let Some(&(_, known, _)) = k.checked_sub(back).and_then(|it| reports.get(it)) else {
                    continue;
                };
                let before = without_reports(history, from, Some(known));
                let counter = TokenCounter::new(&before, Tokenizer::Auto, None);
                errors.push((
                    error(context(&counter, before.messages()), sent),
                    counter.method().margin_percent / 100.0,
                ));
            }
        }
        let (first, _, sent_first) = reports[0];
        if sent > sent_first && last > first {
            let bare = without_reports(history, messages.len(), None);
            let counter = TokenCounter::new(&bare, Tokenizer::Auto, None);
            let grown: u64 = counter.messages(&bare.messages()[first..last]).iter().sum();
            self.unreported.push((error(grown, sent - sent_first), counter.method().margin_percent / 100.0));
        }
    }
}

/// The first messages, with no report after message `known`.
pub(crate) fn without_reports(history: &History, end: usize, known: Option<usize>) -> History {
    let strip = |(index, it): (usize, &Message)| {
        let usage = it.usage.filter(|_| known.is_some_and(|known| index <= known));
        Message { usage, ..it.clone() }
    };
    History::new(history.messages()[..end].iter().enumerate().map(strip).collect(), history.meta.clone())
}

pub(crate) fn context(counter: &TokenCounter, messages: &[Message]) -> u64 {
    (counter.overhead() + counter.messages(messages).iter().sum::<u64>()).saturating_sub(counter.hidden())
}

fn error(found: u64, reported: u64) -> f64 {
    found.abs_diff(reported) as f64 / reported as f64
}

/// A model without its provider, its date and its patch version.
pub(crate) fn family(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model);
    name.trim_end_matches(|it: char| it.is_ascii_digit() && name.len() > 20)
        .trim_end_matches('-')
        .chars()
        .take(16)
        .collect()
}

/// Which half a file is of: by the repository it comes from.
pub(crate) fn half(file: &str) -> &'static str {
    let repository = file.split("--").next().unwrap_or(file);
    let hash =
        repository.bytes().fold(0x811c_9dc5_u32, |hash, it| (hash ^ u32::from(it)).wrapping_mul(0x0100_0193));
    if (hash >> 9) % 2 == 0 { "tuned" } else { "held" }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// In percent, as text; a dash where there is nothing.
fn share(of: &[(f64, f64)], such: impl Fn(&&(f64, f64)) -> bool) -> String {
    if of.is_empty() {
        return "-".to_owned();
    }
    format!("{:.1}", of.iter().filter(such).count() as f64 * 100.0 / of.len() as f64)
}
