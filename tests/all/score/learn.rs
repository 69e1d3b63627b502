//! Whether an order that is learned from what agents used later beats the one made by hand: which of two facts of a
//! kind is used again. A logistic regression, fitted on all repositories but one and measured on that one (`just learn`).
//!
//! It does not as a whole, so the summary keeps its order. Among the first third of the facts stand, mean of the
//! repositories left out, by hand | learned: of paths .61 | .63, commands .72 | .67, symbols .64 | .65, values .37 | .19.

use std::collections::{BTreeMap, HashMap};

use epitome::compaction::facts::{self, Detail, Fact, FileOp, Topic};
use epitome::history::{History, Part};
use epitome::score::{Used, UsedKind, used_later};

use crate::corpus;

/// Names of what is known of a fact, in the order of [`features`].
const FEATURES: [&str; 9] = [
    "constant",
    "age, in share of the messages",
    "messages that name it, logarithm",
    "named in the last tenth",
    "changed, failed or used",
    "made here, or with a result or file",
    "words shared with the goal",
    "words shared with the newest requests",
    "read and later changed",
];
type Features = [f64; FEATURES.len()];

/// A fact before a cut, what is known of it, and whether the agent used it after the cut.
struct Sample {
    known: Features,
    used: bool,
}

/// The facts of one kind before one cut, the newest last.
struct Choice {
    repository: String,
    kind: UsedKind,
    samples: Vec<Sample>,
}

fn kind_of(fact: &Fact) -> Option<UsedKind> {
    match (fact.topic, &fact.detail) {
        (Topic::Files, _) => Some(UsedKind::Path),
        (Topic::Commands, _) => Some(UsedKind::Command),
        (Topic::Identifiers, Detail::Symbol { .. }) => Some(UsedKind::Symbol),
        (Topic::Identifiers, _) => Some(UsedKind::Value),
        _ => None,
    }
}

fn was_used(fact: &str, kind: UsedKind, used: &[Used]) -> bool {
    let same = |it: &Used| match kind {
        UsedKind::Path => it.text == fact || fact.ends_with(&format!("/{}", it.text)),
        UsedKind::Command | UsedKind::Symbol | UsedKind::Value | UsedKind::Error => fact.contains(&it.text),
    };
    used.iter().any(|it| it.kind == kind && same(it))
}

/// All that a message shows and asks for.
fn shown(parts: &[Part]) -> String {
    let text = |it: &Part| match it {
        Part::Text(it) => it.as_str().to_owned(),
        Part::Output(it) => it.text.as_str().to_owned(),
        Part::Call(it) => it.input.as_str().to_owned(),
        Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => String::new(),
    };
    parts.iter().map(text).collect::<Vec<_>>().join("\n")
}

fn words(text: &str) -> Vec<String> {
    let split = text.split(|it: char| !it.is_alphanumeric()).filter(|it| it.len() > 3);
    split.map(str::to_lowercase).collect()
}

/// How many of the words of `text` stand in `others`, as a share.
fn shared(text: &str, others: &[String]) -> f64 {
    let mine = words(text);
    let both = mine.iter().filter(|it| others.contains(it)).count();
    if mine.is_empty() { 0.0 } else { both as f64 / mine.len() as f64 }
}

fn choices(name: &str, history: &History) -> Vec<Choice> {
    let at = history.cut_at_or_before(history.messages().len() * 60 / 100);
    let used = used_later(history, at);
    let first = History::new(history.messages()[..at].to_vec(), history.meta.clone());
    let ledger = facts::read(&first);
    let said: Vec<String> = first.messages().iter().map(|it| shown(&it.parts)).collect();
    let of = |topic: Topic| ledger.about(topic).flat_map(|it| words(&it.text)).collect::<Vec<_>>();
    let (goal, asked) = (of(Topic::Goal), of(Topic::Last));
    let mut out: BTreeMap<UsedKind, Vec<Sample>> = BTreeMap::new();
    for fact in &ledger.facts {
        let Some(kind) = kind_of(fact) else { continue };
        let text = fact.text.as_str();
        let needle = if kind == UsedKind::Path { text.rsplit('/').next().unwrap_or(text) } else { text };
        let named: Vec<usize> = (0..said.len()).filter(|it| said[*it].contains(needle)).collect();
        let flag = |it: bool| f64::from(u8::from(it));
        let (changed, made) = match &fact.detail {
            Detail::File { op, .. } => (
                !matches!(op, FileOp::Read | FileOp::Mentioned | FileOp::ReadAfterEdit),
                matches!(op, FileOp::Created | FileOp::CreatedThenEdited),
            ),
            Detail::Command { outcome, .. } => (outcome.ok == Some(false), outcome.result.is_some()),
            Detail::Symbol { file, used } => (*used, file.is_some()),
            _ => (false, false),
        };
        let known = [
            1.0,
            1.0 - fact.message as f64 / at.max(1) as f64,
            (1.0 + named.len() as f64).ln(),
            flag(named.last().is_some_and(|it| it * 10 >= at * 9)),
            flag(changed),
            flag(made),
            shared(text, &goal),
            shared(text, &asked),
            flag(changed && named.len() > 2),
        ];
        out.entry(kind).or_default().push(Sample { known, used: was_used(text, kind, &used) });
    }
    let repository = name.rsplit('/').next().unwrap_or(name);
    let repository = repository.split("--").next().unwrap_or(repository).to_owned();
    let choice = |(kind, samples)| Choice { repository: repository.clone(), kind, samples };
    let both = |it: &Choice| it.samples.iter().any(|it| it.used) && it.samples.iter().any(|it| !it.used);
    out.into_iter().map(choice).filter(both).collect()
}

fn sum(weights: &Features, known: &Features) -> f64 {
    weights.iter().zip(known).map(|(a, b)| a * b).sum()
}

/// Weights by gradient descent; each choice counts the same, however many facts it has.
fn fitted<'a>(choices: impl Iterator<Item = &'a Choice> + Clone) -> Features {
    const ROUNDS: usize = 2_000;
    const STEP: f64 = 1.0;
    let mut weights = [0.0; FEATURES.len()];
    let count = choices.clone().count().max(1) as f64;
    for _ in 0..ROUNDS {
        let mut slope = [0.0; FEATURES.len()];
        for choice in choices.clone() {
            for sample in &choice.samples {
                let told = 1.0 / (1.0 + (-sum(&weights, &sample.known)).exp());
                let off = f64::from(u8::from(sample.used)) - told;
                for (slope, known) in slope.iter_mut().zip(&sample.known) {
                    *slope += off * known / choice.samples.len() as f64;
                }
            }
        }
        for (weight, slope) in weights.iter_mut().zip(slope) {
            *weight += STEP * slope / count;
        }
    }
    weights
}

/// Of what was used later, the share among the first third in the order of `worth`.
fn found(choice: &Choice, worth: impl Fn(&Sample) -> f64) -> f64 {
    let mut order: Vec<&Sample> = choice.samples.iter().collect();
    order.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
    let third = &order[..order.len().div_ceil(3)];
    let all = order.iter().filter(|it| it.used).count();
    third.iter().filter(|it| it.used).count() as f64 / all as f64
}

/// As `summary::offline::priority` orders them: changed files, failed commands and those with a result, names that the
/// agent used and those with their file come before the rest; then the newest.
fn by_hand(kind: UsedKind, sample: &Sample) -> f64 {
    let (first, second) = (sample.known[4], sample.known[5]);
    let tier = match kind {
        UsedKind::Path => first,
        UsedKind::Command => first.max(second),
        UsedKind::Symbol => 2.0 * first + second,
        UsedKind::Value | UsedKind::Error => 0.0,
    };
    2.0 * tier - sample.known[1]
}

#[test]
#[ignore = "a measurement of the corpus, minutes long: just learn"]
fn a_learned_order_beside_the_one_made_by_hand() {
    let Some(folder) = corpus::corpus_for("a_learned_order_beside_the_one_made_by_hand") else { return };
    let mut all = Vec::new();
    for name in super::corpus::names(&folder) {
        let Some(session) = super::corpus::read(&folder, &name) else { continue };
        all.extend(choices(&name, &session.history));
    }
    println!(
        "{:16} {:34} {:>6} {:>8} {:>8} {:>8}",
        "kind", "repository left out", "cuts", "by hand", "newest", "learned"
    );
    for kind in [UsedKind::Path, UsedKind::Command, UsedKind::Symbol, UsedKind::Value] {
        let mine = || all.iter().filter(move |it| it.kind == kind);
        let mut repositories: Vec<&str> = mine().map(|it| it.repository.as_str()).collect();
        repositories.sort_unstable();
        repositories.dedup();
        let mut means: HashMap<&str, Vec<f64>> = HashMap::new();
        for out in &repositories {
            let weights = fitted(mine().filter(|it| it.repository != *out));
            let held = || mine().filter(|it| it.repository == *out);
            let count = held().count() as f64;
            let mut row = Vec::new();
            let ways: [(&str, &dyn Fn(&Sample) -> f64); 3] = [
                ("by hand", &|it| by_hand(kind, it)),
                ("newest", &|it| -it.known[1]),
                ("learned", &|it| sum(&weights, &it.known)),
            ];
            for (way, worth) in ways {
                let mean = held().map(|it| found(it, worth)).sum::<f64>() / count;
                means.entry(way).or_default().push(mean);
                row.push(format!("{mean:8.3}"));
            }
            println!("{:16} {out:34} {count:6} {}", kind.name(), row.join(" "));
        }
        for way in ["by hand", "newest", "learned"] {
            let of = &means[way];
            println!(
                "{:16} mean of repositories, {way}: {:.3}",
                kind.name(),
                of.iter().sum::<f64>() / of.len() as f64
            );
        }
        let weights = fitted(mine());
        for (name, weight) in FEATURES.iter().zip(weights) {
            println!("    {weight:7.2} {name}");
        }
    }
}
