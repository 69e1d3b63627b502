//! Where a profile would cut.

use std::ops::Range;

use crate::answers::{Alternative, RangeFate, RangeInfo, Side, SplitAnswer};
use crate::engine::{Ask, Engine, Opened, input::measured, input::request, session_info, words};
use compaction::plan::{self, Op, Segment};

/// Where `ask.profile` would cut, why, and where else it could be cut.
pub fn split(engine: &Engine, opened: &Opened, ask: &Ask) -> SplitAnswer {
    let measured = measured::measure(engine, &opened.session, ask);
    let messages = measured.history.messages();
    let sizes: Vec<u64> =
        messages.iter().map(|it| if plan::counts(it) { measured.counter.message(it) } else { 0 }).collect();
    let found = request::with_request(engine, &measured, ask, |request, moment| {
        plan::find_split(measured.history, &measured.counter, &request, moment)
    });
    let mut kept = vec![!found.plan.act; messages.len()];
    for item in &found.plan.layout {
        if let Segment::Old(index) = item {
            kept[*index] = true;
        }
    }
    let summarized = found.plan.ops.iter().find_map(|op| {
        if let Op::Summarize { from, to, why, .. } = op { Some((*from..*to, why)) } else { None }
    });
    let side = |which: bool| Side {
        messages: kept.iter().filter(|it| **it == which).count(),
        tokens: kept.iter().zip(&sizes).filter(|(it, _)| **it == which).map(|(_, size)| size).sum(),
    };
    let alternative = |split: &usize| Alternative {
        split: *split,
        compacted_tokens: sizes[..*split].iter().sum(),
        what: messages.get(*split).map(|it| words(&it.plain(), 60)).unwrap_or_default(),
    };
    SplitAnswer {
        session: session_info(opened),
        profile: ask.profile.name.clone(),
        split: found.split,
        split_id: found.split.and_then(|it| Some(messages.get(it)?.id.as_deref()?.to_owned())),
        compacted: side(false),
        kept: side(true),
        ranges: ranges(&kept, summarized.as_ref().map(|it| &it.0)),
        boundary: found.boundary.to_owned(),
        reason_code: found.plan.reason.code.to_owned(),
        reason: match summarized {
            Some((_, why)) => why.clone(),
            None => engine.hinted(found.plan.reason.text.clone(), found.plan.reason.hint),
        },
        alternatives: found.alternatives.iter().map(alternative).collect(),
    }
}

/// What becomes of the messages, as ranges with the same fate.
fn ranges(kept: &[bool], summarized: Option<&Range<usize>>) -> Vec<RangeInfo> {
    let mut ranges: Vec<RangeInfo> = Vec::new();
    for (index, kept) in kept.iter().enumerate() {
        let fate = match kept {
            true => RangeFate::Kept,
            false if summarized.is_some_and(|it| it.contains(&index)) => RangeFate::Summarized,
            false => RangeFate::Dropped,
        };
        match ranges.last_mut() {
            Some(last) if last.fate == fate => last.to = index + 1,
            _ => ranges.push(RangeInfo { from: index, to: index + 1, fate }),
        }
    }
    ranges
}
