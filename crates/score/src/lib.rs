//! What survived a compaction: facts taken from the source alone, and looked for in the compacted history.
//!
//! This crate cannot see `compaction`, so that neither can flatter the other. Its results are lexical: an
//! upper bound of what a model will use. A fact counts as kept only in usable form, in one line: a path with
//! what was done to it, a command with how it ended, a rule with its polarity. Keeping the tail verbatim is
//! no merit, so only facts that were established before it are scored.

pub mod baselines;
// rustfmt would put one word on a line, which makes word lists unreadable.
#[rustfmt::skip]
mod cues;
mod hindsight;
mod kept;
mod own_words;
mod probe;
#[rustfmt::skip]
mod program_words;
mod source;
pub mod synthetic;
mod text;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

pub use hindsight::{Hindsight, UseTally, Used, UsedKind, hindsight, used_later};
pub use kept::support::{Claim, Unsupported};
pub use kept::survive::Contradiction;
pub use kept::truth::{StatementTally, Truth, truth};
pub use probe::{Class, Fact, FileOp, Outcome, Polarity, Probe};

use history::replaced;
use history::tools::code_mode;
use history::{History, Message, Part};

/// Version of the extraction and survival rules. Scores of different versions cannot be compared.
pub const VERSION: u32 = 32;

/// Facts of a history, by class, then by where they were established. Messages that a sealed compaction
/// replaced decide what is true, but facts that only they establish are left out: the sealed text cannot be
/// checked for them.
pub fn probes(source: &History) -> Vec<Probe> {
    let replaced = replaced::expanded(source);
    let whole = &*scripts_expanded(replaced.as_ref().map_or(source, |it| &it.0));
    let mut out = spoken(whole);
    out.extend(source::done::probes(whole));
    out.extend(source::idents::probes(whole));
    if let Some((_, origins)) = &replaced {
        let is_sealed = |it: &usize| source.messages()[*it].replaced.is_some();
        out.retain_mut(|probe| {
            probe.messages.iter_mut().for_each(|it| *it = origins[*it]);
            probe.messages.sort_unstable();
            probe.messages.dedup();
            if let Fact::Error { resolved: Some(message), .. } = &mut probe.fact {
                *message = origins[*message];
            }
            !probe.messages.iter().all(is_sealed)
        });
    }
    out.sort_by_key(|it| (it.class, it.message()));
    out
}

/// The history with the messages that a sealed compaction replaced, and with the calls that scripts made.
fn whole(history: &History) -> Cow<'_, History> {
    match replaced::expanded(history) {
        Some((it, _)) => Cow::Owned(scripts_expanded(&it).into_owned()),
        None => scripts_expanded(history),
    }
}

/// The history with the calls that scripts made in place of the scripts.
fn scripts_expanded(history: &History) -> Cow<'_, History> {
    code_mode::expanded(history).map_or(Cow::Borrowed(history), Cow::Owned)
}

/// Facts of one class, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// Facts of the source that were established before the verbatim tail.
    pub found: usize,
    /// Of these, those that are still there in usable form.
    pub kept: usize,
    /// Those that are not, but of which a handle restores a message that establishes them.
    pub recoverable: usize,
    pub lost: usize,
}

impl Tally {
    /// Share kept; `None` if there was nothing to keep.
    pub fn share(&self) -> Option<f64> {
        (self.found > 0).then(|| self.kept as f64 / self.found as f64)
    }

    fn count(&mut self, fate: Fate) {
        self.found += 1;
        match fate {
            Fate::Kept => self.kept += 1,
            Fate::Recoverable => self.recoverable += 1,
            Fate::Lost => self.lost += 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Recoverable,
    Lost,
}

/// A fact that was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    pub class: Class,
    /// The fact in one line.
    pub text: String,
    /// Indexes of the source messages that establish it.
    pub messages: Vec<usize>,
    /// Whether a handle restores one of these messages.
    pub recoverable: bool,
}

/// Tokens by the caller's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tokens {
    pub before: u64,
    /// Of the compacted history.
    pub after: u64,
    /// Of the verbatim tail, in both.
    pub tail: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    pub version: u32,
    /// Weighted share of the facts kept, over the classes that have any; `None` if none were evicted.
    pub kept: Option<f64>,
    /// The same with recoverable facts counted half. Never merged into `kept`.
    pub kept_or_recoverable: Option<f64>,
    /// `kept`, multiplied by the share of facts that are not contradicted.
    pub kept_less_contradicted: Option<f64>,
    /// Facts of the evicted region by class; classes without any are left out.
    pub classes: BTreeMap<Class, Tally>,
    /// Last request and open question. Unlike in `classes`, those in the tail count as kept.
    pub last_request: Tally,
    pub tail_messages: usize,
    /// Messages before and after.
    pub messages: (usize, usize),
    pub tokens: Tokens,
    /// Facts that were not kept, heaviest class first.
    pub lost: Vec<Loss>,
    /// Statements that contradict the source.
    pub contradictions: Vec<Contradiction>,
    /// Statements without support in the source.
    pub unsupported: Vec<Unsupported>,
}

/// Scores `compacted` against `source`. `recoverable` says whether a handle restores a source message byte
/// for byte; `count` gives the tokens of a message. Linear in both histories, except for facts that repeat.
///
/// ```
/// use history::{History, Kind, Message, Meta, Role};
///
/// let prompt = |text: &str| Message::text(Role::User, Kind::Said, text);
/// let source = History::new(vec![prompt("Never touch src/main.rs."), prompt("Go on.")], Meta::default());
/// let compacted = History::new(vec![prompt("Go on.")], Meta::default());
/// let score = score::score(&source, &compacted, &|_| false, &|it| it.plain().len() as u64);
/// assert!(score.kept.is_some_and(|it| it < 1.0));
/// assert!(score.lost.iter().any(|it| it.text.contains("src/main.rs")));
/// ```
pub fn score(
    source: &History,
    compacted: &History,
    recoverable: &dyn Fn(usize) -> bool,
    count: &dyn Fn(&Message) -> u64,
) -> Score {
    score_probes(source, &probes(source), compacted, recoverable, count)
}

/// Scores with facts that are already known: [`probes`] of `source`, or planted ones.
pub fn score_probes(
    source: &History,
    probes: &[Probe],
    compacted: &History,
    recoverable: &dyn Fn(usize) -> bool,
    count: &dyn Fn(&Message) -> u64,
) -> Score {
    let (replacement, split) = replacement(source, compacted);
    let expanded = whole(source);
    let lookup = kept::survive::Lookup::new(&expanded, probes, &replacement, split);
    // A prompt that was copied word for word says all that it said, over however many lines.
    let is_copied = |probe: &Probe| {
        let copied = |it: &Message| it.is_prompt() && replacement.messages().iter().any(|to| same(it, to));
        matches!(probe.fact, Fact::Words { .. } | Fact::Rule { .. })
            && probe.messages.iter().any(|it| copied(&source.messages()[*it]))
    };

    let mut classes: BTreeMap<Class, Tally> = BTreeMap::new();
    let mut last_request = Tally::default();
    let mut lost = Vec::new();
    let mut contradictions = Vec::new();
    for probe in probes {
        let in_tail = probe.message() >= split;
        if in_tail {
            if probe.class == Class::LastRequest {
                last_request.count(Fate::Kept);
            }
            continue;
        }
        let fate = if lookup.finds(probe, &mut contradictions) || is_copied(probe) {
            Fate::Kept
        } else if probe.messages.iter().any(|it| recoverable(*it)) {
            Fate::Recoverable
        } else {
            Fate::Lost
        };
        classes.entry(probe.class).or_default().count(fate);
        if probe.class == Class::LastRequest {
            last_request.count(fate);
        }
        if fate != Fate::Kept {
            lost.push(Loss {
                class: probe.class,
                text: probe.text(),
                messages: probe.messages.clone(),
                recoverable: fate == Fate::Recoverable,
            });
        }
    }
    let contradictions = kept::survive::distinct(contradictions, &expanded);
    // Facts that a sealed compaction replaced are not asked for, but support statements about them.
    let is_sealed = source.messages().iter().any(|it| it.replaced.is_some());
    let sealed = if is_sealed { source::done::probes(&expanded) } else { Vec::new() };
    let weighted = |share: &dyn Fn(&Tally) -> f64| weighted(&classes, share);
    let kept = weighted(&|it| it.kept as f64 / it.found as f64);
    let evicted_probes: usize = classes.values().map(|it| it.found).sum();
    let contradicted = contradictions.len() as f64 / evicted_probes.max(1) as f64;
    let sum = |messages: &[Message]| messages.iter().map(count).sum::<u64>();
    Score {
        version: VERSION,
        kept,
        kept_or_recoverable: weighted(&|it| (it.kept as f64 + it.recoverable as f64 / 2.0) / it.found as f64),
        kept_less_contradicted: kept.map(|it| it * (1.0 - contradicted).max(0.0)),
        classes,
        last_request,
        tail_messages: source.messages().len() - split,
        messages: (source.messages().len(), compacted.messages().len()),
        tokens: Tokens {
            before: sum(source.messages()),
            after: sum(compacted.messages()),
            tail: sum(&source.messages()[split..]),
        },
        lost,
        unsupported: kept::support::unsupported(&expanded, probes.iter().chain(&sealed), &lookup.index),
        contradictions,
    }
}

fn weighted(classes: &BTreeMap<Class, Tally>, share: &dyn Fn(&Tally) -> f64) -> Option<f64> {
    let weights: f64 = classes.keys().map(|it| it.weight()).sum();
    let sum: f64 = classes.iter().map(|(class, tally)| class.weight() * share(tally)).sum();
    (weights > 0.0).then(|| sum / weights)
}

/// What a compacted history has in place of the messages before its verbatim tail, and how many source
/// messages those are.
fn replacement(source: &History, compacted: &History) -> (History, usize) {
    let tail = tail(source.messages(), compacted.messages());
    let rest = compacted.messages()[..compacted.messages().len() - tail].to_vec();
    let rest = scripts_expanded(&History::new(rest, source.meta.clone())).into_owned();
    (rest, source.messages().len() - tail)
}

/// How many messages at the end are equal in both. Reasoning is ignored: APIs drop it by themselves.
fn tail(source: &[Message], compacted: &[Message]) -> usize {
    source.iter().rev().zip(compacted.iter().rev()).take_while(|(a, b)| same(a, b)).count()
}

fn same(a: &Message, b: &Message) -> bool {
    let parts =
        |message: &'_ Message| message.parts.iter().filter(|it| !matches!(it, Part::Reasoning(_))).count();
    let told = |it: &&Part| !matches!(it, Part::Reasoning(_));
    a.role == b.role
        && parts(a) == parts(b)
        && a.parts.iter().filter(told).zip(b.parts.iter().filter(told)).all(|(a, b)| match (a, b) {
            (Part::Text(a), Part::Text(b)) => a.same(b),
            (Part::Call(a), Part::Call(b)) => a.name == b.name && a.input.same(&b.input),
            (Part::Output(a), Part::Output(b)) => a.text.same(&b.text) && a.media == b.media,
            (Part::Media(a), Part::Media(b)) => a == b,
            (Part::Opaque(a), Part::Opaque(b)) => a == b,
            _ => false,
        })
}

/// Facts of what user and model said, in the order of the history.
fn spoken(source: &History) -> Vec<Probe> {
    let mut out = source::rules::probes(source);
    let known: Vec<String> = out.iter().map(Probe::text).collect();
    source::decisions::probes(source, &known, &mut out);
    source::said::given_up(source, &mut out);
    source::said::ends(source, &mut out);
    out
}
