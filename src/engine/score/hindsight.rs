//! Hindsight: how much of what an agent used after a cut survives in a compaction of the part before it.

use crate::answers::{HindsightAnswer, HindsightCut, HindsightKind, HindsightWay};
use crate::engine::score::subject::{Subject, subject};
use crate::engine::{Amount, Ask, Engine, Opened, compact::attempt, input::measured, session_info};
use crate::report::scorecard::HindsightResult;
use compaction::facts::Fact;
use compaction::plan;
use history::{History, Kind, Message};
use score::Used;
use score::baselines::{Baseline, beside_the_newest};
use sessions::{MemorySource, Session};

/// Where a session is cut, in percent of its messages.
const CUT: usize = 60;
/// Budgets that are compared, in percent of the first part's tokens.
pub(crate) const SIZES: [u64; 2] = [5, 10];

/// A session cut in two, with what its second part used of the first.
pub struct SessionCut {
    /// Where the cut is: `60 %`, `own compaction 1`.
    pub at: String,
    pub subject: Subject,
    pub used: Vec<Used>,
    /// What the agent's own compaction made of the part before.
    native: Option<History>,
}

/// A way to compact the part before a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionWay {
    Profile,
    Baseline(Baseline),
    /// One line for each fact, in the order of the session, beside the newest messages.
    Ledger,
    /// The agent's own compaction at the time.
    Native,
}

impl CompactionWay {
    /// Its name in tables.
    pub fn name(self, ask: &Ask) -> String {
        match self {
            Self::Profile => ask.profile.name.clone(),
            Self::Baseline(it) => it.name().to_owned(),
            Self::Ledger => "plain ledger".to_owned(),
            Self::Native => "the agent's own".to_owned(),
        }
    }
}

/// The cuts of a session: at 60 % of its messages, and at each compaction of its agent's own that its file
/// still records. Cuts after which nothing of the first part was used are left out.
pub fn cuts(engine: &Engine, name: &str, read: &Session, bytes: &[u8], ask: &Ask) -> Vec<SessionCut> {
    let history = &read.history;
    let at = history.cut_at_or_before(history.messages().len() * CUT / 100);
    let cut = |at: String, before: History, used: Vec<Used>, native: Option<History>| {
        let before = Session::of(read.format, before);
        SessionCut { subject: subject(engine, at.clone(), before, ask), at, used, native }
    };
    let first = part(history, 0..at);
    let mut out = vec![cut(format!("{CUT} %"), first, score::used_later(history, at), None)];
    for (number, (before, after)) in own_compactions(name, bytes).into_iter().enumerate() {
        let Some(end) = end_of_summary(&before, &after) else { continue };
        let later = &after.messages()[end..];
        let both = before.messages().iter().chain(later).cloned().collect();
        let used = score::used_later(&History::new(both, before.meta.clone()), before.messages().len());
        let native = Some(part(&after, 0..end));
        out.push(cut(format!("own compaction {}", number + 1), before, used, native));
    }
    out.retain(|it| !it.used.is_empty());
    out
}

fn part(history: &History, range: std::ops::Range<usize>) -> History {
    History::numbered(history.messages()[range].to_vec(), history.meta.clone())
}

/// The histories before and after each compaction in a line-based session; the second extends to the next
/// compaction. A compaction's line is found by bisection: the first with which the session has one compaction
/// more.
fn own_compactions(name: &str, bytes: &[u8]) -> Vec<(History, History)> {
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', bytes).map(|it| it + 1).collect();
    let read = |lines: usize| {
        let end = lines.checked_sub(1).and_then(|it| ends.get(it)).copied().unwrap_or(0);
        sessions::read(&MemorySource::new(name, &bytes[..end]), None).ok()
    };
    let known = |lines: usize| read(lines).map_or(0, |it| it.past.len());
    let mut places = Vec::new();
    for number in 1..=known(ends.len()) {
        let (mut without, mut with) = (0, ends.len());
        while without + 1 < with {
            let middle = without.midpoint(with);
            *if known(middle) >= number { &mut with } else { &mut without } = middle;
        }
        places.push(with - 1);
    }
    let history = |lines: usize| read(lines).map(|it| it.history);
    let until = places.iter().skip(1).copied().chain([ends.len()]);
    places.iter().zip(until).filter_map(|(at, until)| Some((history(*at)?, history(until)?))).collect()
}

/// How many messages at the start of a compacted history the compaction made or kept. `None` if there is no
/// readable summary or no message after them.
fn end_of_summary(before: &History, after: &History) -> Option<usize> {
    let messages = after.messages();
    let summary = messages.iter().rposition(|it| it.kind == Kind::Summary && !it.plain().is_empty())?;
    let behind = &messages[summary + 1..];
    let same = |a: &Message, b: &Message| a.role == b.role && a.parts == b.parts;
    let ends = |count: &usize| {
        let kept = before.messages().len().checked_sub(*count).map(|from| &before.messages()[from..]);
        kept.is_some_and(|kept| kept.iter().zip(behind).all(|(a, b)| same(a, b)))
    };
    let kept = (0..=behind.len()).rev().find(ends).unwrap_or(0);
    let put = behind[kept..].iter().take_while(|it| it.kind != Kind::Said).count();
    let end = summary + 1 + kept + put;
    (end < messages.len() && !before.messages().is_empty()).then_some(end)
}

/// Compacts the part before a cut in one way, and scores what that still holds of what was used later. `size`
/// in tokens; `None` for the way's own. Returns `None` if the way gives no result.
pub fn evaluate_way(
    engine: &Engine,
    cut: &SessionCut,
    ask: &Ask,
    way: CompactionWay,
    size: Option<u64>,
) -> Option<HindsightResult> {
    let ask = size.map_or_else(|| ask.clone(), |it| ask.with_budget(Amount::Tokens(it)));
    let measured = measured::measure(engine, &cut.subject.session, &ask);
    let count = |it: &Message| if plan::counts(it) { measured.counter.message(it) } else { 0 };
    let after = match way {
        CompactionWay::Profile => {
            attempt::attempt(&cut.subject.request(engine, &measured, &ask))?.outcome.history
        }
        CompactionWay::Baseline(it) => it.compact(measured.history, size?, &count),
        CompactionWay::Ledger => {
            let facts = &cut.subject.known.ledger(measured.history).facts;
            let line = |it: &Fact| format!("- {}", compaction::facts::flat(&it.text));
            let lines = |from: usize| facts.iter().filter(|it| it.message < from).map(line).collect();
            beside_the_newest(measured.history, size?, &count, lines)
        }
        CompactionWay::Native => cut.native.clone()?,
    };
    let tokens = after.messages().iter().map(count).sum();
    Some(HindsightResult {
        session: cut.subject.name.clone(),
        tokens,
        hindsight: score::hindsight(&cut.used, &after),
    })
}

/// What each way would have kept of what the session used later, at each of its cuts.
pub fn hindsight(engine: &Engine, opened: &Opened, ask: &Ask) -> HindsightAnswer {
    let bytes = opened.source.whole().unwrap_or_default();
    let name = opened.path.as_ref().map(|it| it.display().to_string()).unwrap_or_default();
    let cuts = cuts(engine, &name, &opened.session, &bytes, ask);
    let info = |cut: &SessionCut| {
        let mut ways = Vec::new();
        let mut add = |way: CompactionWay, size: &str, found: Option<HindsightResult>| {
            ways.extend(found.map(|it| way_answer(way.name(ask), size.to_owned(), it)));
        };
        add(CompactionWay::Profile, "own size", evaluate_way(engine, cut, ask, CompactionWay::Profile, None));
        if let Some(native) = evaluate_way(engine, cut, ask, CompactionWay::Native, None) {
            let same = evaluate_way(engine, cut, ask, CompactionWay::Profile, Some(native.tokens));
            add(CompactionWay::Native, "own size", Some(native));
            add(CompactionWay::Profile, "the same size", same);
        }
        for percent in SIZES {
            let size = cut.subject.tokens * percent / 100;
            for way in WAYS {
                add(way, &format!("{percent} %"), evaluate_way(engine, cut, ask, way, Some(size)));
            }
        }
        HindsightCut {
            at: cut.at.clone(),
            messages: cut.subject.session.history.messages().len(),
            tokens: cut.subject.tokens,
            used: cut.used.len(),
            ways,
        }
    };
    HindsightAnswer { session: session_info(opened), cuts: cuts.iter().map(info).collect() }
}

/// The ways that are compared at each size.
pub(crate) const WAYS: [CompactionWay; 4] = [
    CompactionWay::Profile,
    CompactionWay::Ledger,
    CompactionWay::Baseline(Baseline::Masking),
    CompactionWay::Baseline(Baseline::KeepLast),
];

fn way_answer(way: String, size: String, it: HindsightResult) -> HindsightWay {
    let kinds = it.hindsight.kinds.iter();
    HindsightWay {
        way,
        size,
        tokens: it.tokens,
        kept: it.hindsight.share(),
        kinds: kinds
            .map(|(kind, it)| (kind.name().to_owned(), HindsightKind { used: it.used, kept: it.kept }))
            .collect(),
        missing: it.hindsight.missing.into_iter().map(|it| it.text).collect(),
    }
}
