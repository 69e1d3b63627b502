//! Compacting many sessions in many ways, to see what each keeps. Nothing is archived or written.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use crate::config::profiles;
use crate::engine::compact::attempt::{AttemptRequest, HistoryFacts};
use crate::engine::score::hindsight::{self, CompactionWay, SIZES, SessionCut, WAYS};
use crate::engine::score::subject::{HANDLE, Subject, subject};
use crate::engine::{Amount, Ask, Engine, compact::attempt, input::measured, input::open};
use crate::report::scorecard::{
    Card, Chain, FactsRow, HindsightCard, HindsightResult, HindsightRow, Link, Trial,
};
use compaction::plan;
use history::error::{Error, ErrorKind, Result};
use history::{History, Message};
use score::{self, Probe, baselines::Baseline, synthetic};
use sessions::{self, Format, Session, validate};

/// Sessions with fewer tokens are too small to be worth compacting.
const SMALL: u64 = 6_000;
/// Sizes at which ways are compared, in percent of the tokens.
const PERCENTS: [u64; 3] = [5, 10, 20];
/// Compactions of a chain.
const CYCLES: usize = 5;

/// Scores all built-in profiles and the baselines on every session below a directory.
pub fn scorecard(engine: &Engine, directory: &Path, ask: &Ask, tell: &mut dyn FnMut(&str)) -> Result<Card> {
    let mut card = Card::default();
    let (mut subjects, mut looks) = (Vec::new(), Vec::new());
    for path in files(directory)? {
        let name = path.strip_prefix(directory).unwrap_or(&path).display().to_string();
        let name = name.replace('\\', "/");
        let Ok(opened) = open::open_path(&path, None) else {
            card.left_out += 1;
            continue;
        };
        let bytes = opened.source.whole()?;
        let cuts = hindsight::cuts(engine, &name, &opened.session, &bytes, ask);
        looks.extend(cuts.into_iter().filter(|it| it.subject.tokens >= SMALL).map(|it| (name.clone(), it)));
        let subject = subject(engine, name, opened.session, ask);
        if subject.tokens >= SMALL {
            subjects.push(subject);
        } else {
            card.left_out += 1;
        }
    }
    card.hindsight = hindsight_card(engine, ask, &looks);
    card.sessions = subjects.iter().map(|it| (it.name.clone(), it.tokens)).collect();
    let profiles = profiles::all_built_in()?;
    let planted: Vec<Subject> = (1..=8).map(|seed| planted(engine, seed, ask)).collect();
    let mut add = |way: &str, percent: u64, trial: &dyn Fn(&Subject) -> Trial| {
        for (rows, subjects) in [(&mut card.rows, &subjects), (&mut card.planted, &planted)] {
            let trials = subjects.iter().map(trial).collect();
            rows.push(FactsRow { way: way.to_owned(), percent: Some(percent), trials });
        }
    };
    for percent in PERCENTS {
        for profile in &profiles {
            tell(&format!("{} at {percent} %", profile.name));
            let ask = Ask { profile: profile.clone(), ..ask.clone() };
            add(&profile.name, percent, &|it| trial(engine, it, &ask, Some(percent)));
        }
        for way in Baseline::ALL {
            tell(&format!("{} at {percent} %", way.name()));
            add(way.name(), percent, &|it| baseline(engine, it, way, ask, percent));
        }
    }
    if let Some(profile) = profiles.first() {
        let ask = Ask { profile: profile.clone(), ..ask.clone() };
        let trials = subjects.iter().map(|it| trial(engine, it, &ask, None)).collect();
        card.rows.push(FactsRow { way: profile.name.clone(), percent: None, trials });
    }
    for percent in PERCENTS {
        for profile in &profiles {
            tell(&format!("{}, five times at {percent} %", profile.name));
            let ask = Ask { profile: profile.clone(), ..ask.clone() };
            let links = subjects.iter().filter_map(|it| chained(engine, it, &ask, percent)).collect();
            card.chains.push(Chain { way: profile.name.clone(), percent, links });
        }
    }
    Ok(card)
}

/// What each way keeps of what was used later, at all cuts; and what the profile keeps at the size of each of
/// the agents' own compactions.
fn hindsight_card(engine: &Engine, ask: &Ask, cuts: &[(String, SessionCut)]) -> HindsightCard {
    let named = |name: &str, cut: &SessionCut, it: HindsightResult| HindsightResult {
        session: format!("{name}, {}", cut.at),
        ..it
    };
    let mut out = HindsightCard::default();
    let own_size = std::iter::once((CompactionWay::Profile, None));
    let sized = SIZES.iter().flat_map(|percent| WAYS.map(|way| (way, Some(*percent))));
    for (way, percent) in sized.chain(own_size) {
        let looks = cuts.iter().filter_map(|(name, cut)| {
            let size = percent.map(|it| cut.subject.tokens * it / 100);
            hindsight::evaluate_way(engine, cut, ask, way, size).map(|it| named(name, cut, it))
        });
        out.rows.push(HindsightRow { way: way.name(ask), percent, looks: looks.collect() });
    }
    for (name, cut) in cuts {
        let native = hindsight::evaluate_way(engine, cut, ask, CompactionWay::Native, None);
        out.agents_own.extend(native.and_then(|native| {
            let size = Some(native.tokens);
            let ours = hindsight::evaluate_way(engine, cut, ask, CompactionWay::Profile, size)?;
            Some((named(name, cut, native), named(name, cut, ours)))
        }));
    }
    out
}

/// A made-up session of 40 turns with the facts that were planted in it.
pub fn planted(engine: &Engine, seed: u64, ask: &Ask) -> Subject {
    let it = synthetic::planted(seed, 40);
    let known = HistoryFacts { probes: OnceLock::from(it.probes), ..HistoryFacts::default() };
    let session = Session::of(Format::ANTHROPIC, it.history);
    Subject { known, ..subject(engine, format!("planted {seed}"), session, ask) }
}

/// Compacts a session to a percentage of its tokens, or to the profile's own size, and scores the outcome.
pub fn trial(engine: &Engine, subject: &Subject, ask: &Ask, percent: Option<u64>) -> Trial {
    let ask = percent.map_or_else(|| ask.clone(), |it| ask.with_budget(Amount::Share(it as f64 / 100.0)));
    let budget = percent.map_or(subject.tokens, |it| subject.tokens * it / 100);
    let refused = |why: String| Trial {
        session: subject.name.clone(),
        refused: Some(why),
        budget,
        tokens: (subject.tokens, subject.tokens),
        ..Trial::default()
    };
    let measured = measured::measure(engine, &subject.session, &ask);
    subject.known.read(measured.history, measured.history);
    let start = Instant::now();
    let plan = attempt::plan_for(engine, &measured, &ask);
    if !plan.act {
        let reason = engine.hinted(plan.reason.text, plan.reason.hint);
        return refused(reason);
    }
    let attempt = match attempt::apply_plan(&subject.request(engine, &measured, &ask), plan) {
        Ok(attempt) => attempt,
        Err(it) => return refused(it.text),
    };
    let millis = start.elapsed().as_secs_f64() * 1000.0;
    let format = subject.session.format;
    let (messages, _) = sessions::wire::messages_of(&attempt.outcome.history, Some(format), format.api());
    let invalid = validate::check(format.api(), &messages).len();
    let tokens = (subject.tokens, attempt.outcome.tokens);
    let truth = score::truth(measured.full_history(), &attempt.outcome.history);
    Trial { truth, tokens, budget, invalid, millis, ..Trial::of(&subject.name, &attempt.score) }
}

pub fn baseline(engine: &Engine, subject: &Subject, way: Baseline, ask: &Ask, percent: u64) -> Trial {
    let measured = measured::measure(engine, &subject.session, ask);
    let budget = subject.tokens * percent / 100;
    // Instructions in the system's role are overhead.
    let count = |it: &Message| if plan::counts(it) { measured.counter.message(it) } else { 0 };
    let start = Instant::now();
    let after = way.compact(measured.history, budget, &count);
    let millis = start.elapsed().as_secs_f64() * 1000.0;
    let probes = subject.known.probes(measured.history);
    let score = score::score_probes(measured.history, probes, &after, &|_| false, &count);
    // Not checked by `validate`: our own writers would mend calls and outputs first.
    let invalid = usize::from(after.messages().first().is_some_and(|it| it.outputs().next().is_some()));
    let tokens = (subject.tokens, score.tokens.after);
    Trial { tokens, budget, invalid, millis, ..Trial::of(&subject.name, &score) }
}

/// Five compactions in a row, each to `percent` of the whole session's tokens. `None` if the first part has
/// no facts, or the first compaction keeps none of them.
pub fn chained(engine: &Engine, subject: &Subject, ask: &Ask, percent: u64) -> Option<Link> {
    let source = &subject.session.history;
    let ask = ask.with_budget(Amount::Tokens(subject.tokens * percent / 100));
    let cuts: Vec<usize> =
        (0..=CYCLES).map(|it| source.cut_at_or_before(source.messages().len() * it / CYCLES)).collect();
    let first: Vec<Probe> =
        subject.known.probes(source).iter().filter(|it| it.message() < cuts[1]).cloned().collect();
    let measured = measured::measure(engine, &subject.session, &ask);
    let count = |it: &Message| measured.counter.message(it);
    let mut messages: Vec<Message> = Vec::new();
    let mut kept_first: Vec<Probe> = Vec::new();
    let mut share = None;
    for cycle in 0..CYCLES {
        messages.extend(source.messages()[cuts[cycle]..cuts[cycle + 1]].iter().cloned());
        let so_far = History::numbered(std::mem::take(&mut messages), source.meta.clone());
        let so_far = Session::of(subject.session.format, so_far);
        let measured = measured::measure(engine, &so_far, &ask);
        let (handle, facts) = (HANDLE, &HistoryFacts::default());
        let request = AttemptRequest { engine, measured: &measured, ask: &ask, handle, facts, written: None };
        let attempt = attempt::attempt(&request);
        messages = attempt.map_or_else(
            || measured.history.messages().to_vec(),
            |it| it.outcome.history.messages().to_vec(),
        );
        if cycle == 0 {
            let source = History::new(source.messages()[..cuts[1]].to_vec(), source.meta.clone());
            let after = History::new(messages.clone(), source.meta.clone());
            let score = score::score_probes(&source, &first, &after, &|_| false, &count);
            let lost: Vec<&str> = score.lost.iter().map(|it| it.text.as_str()).collect();
            kept_first = first.iter().filter(|it| !lost.contains(&it.text().as_str())).cloned().collect();
            share = score.kept;
        }
    }
    let after = History::new(messages, source.meta.clone());
    let last = score::score_probes(source, &kept_first, &after, &|_| false, &count);
    Some(Link { first: share?, left: last.kept? })
}

/// All files below a directory, sorted.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| {
            Error::new(ErrorKind::Input, "listing sessions").at_path(&folder).because(error)
        })?;
        for entry in entries.flatten() {
            let path = entry.path();
            // Links are not followed: they could lead in a circle.
            match entry.file_type() {
                Ok(it) if it.is_dir() => folders.push(path),
                Ok(it) if it.is_file() => out.push(path),
                Ok(_) | Err(_) => {}
            }
        }
    }
    out.sort();
    Ok(out)
}
