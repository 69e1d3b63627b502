//! Claude Code: its thresholds, the budget of a batch of results, micro-compaction by time, by count and by size (seed
//! 002, deep dive; reference 3.1 and 3.3; the numbers by count and size as the profile states them).

use epitome::compaction::plan::{ModelLimits, Moment};
use epitome::compaction::profile::{Pass, Profile, Replace, Select};
use epitome::history::{Call, Kind, Message, Part, Role};

use super::{Dice, differences, due, replaced, rounds, same};
use crate::vectors::{Wish, history, model, output, plan, profile, results, user};

const NAME: &str = "claude-code";

/// effective = window - min(largest answer, 20,000); threshold = effective - 13,000, which a percentage can only lower.
fn threshold(window: u64, answer: u64, percent: Option<u64>) -> u64 {
    let effective = window - answer.min(20_000);
    let own = effective - 13_000;
    percent.map_or(own, |it| own.min(effective * it / 100))
}

#[test]
fn thresholds() {
    differences("claude-code threshold", rounds(), |dice| {
        let window = dice.one(&[100_000, 200_000, 500_000, 1_000_000]);
        let answer = dice.one(&[8_192, 20_000, 32_000, 64_000]);
        let percent = dice.one(&[None, Some(9), Some(50), Some(80), Some(95), Some(100)]);
        let failures = dice.one(&[0, 2, 3, 4]);
        let off = dice.once_in(8);
        let profile = profile(NAME).honouring(&|key| match key {
            "env:CLAUDE_AUTOCOMPACT_PCT_OVERRIDE" => percent.map(|it| it.to_string().into()),
            "env:DISABLE_AUTO_COMPACT" => off.then(|| "1".into()),
            _ => None,
        });
        let at = threshold(window, answer, percent);
        let tokens = at + dice.of(0, 4) - 2;
        let limits = ModelLimits { window: Some(window), output: Some(answer), ..ModelLimits::default() };
        let moment = Moment { failures, ..Moment::default() };
        let ours = due(&profile, vec![user("u"), model("a")], tokens, &limits, &moment);
        let theirs = !off && failures < 3 && tokens >= at;
        same(
            &format!("{tokens} of {window}, {answer} out, {percent:?} %, {failures} failures, off: {off}"),
            &ours,
            &theirs,
        )
    });
}

const BATCH: usize = 2_000;
const PREVIEW: usize = 50;
/// By count: above so many results, if more tokens than this are gained.
const COUNT: usize = 12;
const COUNT_GAIN: u64 = 800;
/// By size: beyond the newest so many tokens, if more tokens than this are gained.
const SIZE: u64 = 700;
const SIZE_GAIN: u64 = 300;
/// The newest results that clearing by time and by count leave alone.
const NEWEST: usize = 5;
const CLEARED: &str = "[Old tool result content cleared]";
const COMPACTABLE: [&str; 8] = ["Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write"];

/// A batch of results: tool and text of each.
type Batch = Vec<(&'static str, String)>;

/// Every batch above its budget: the largest is persisted, until the rest fits.
fn budget(batches: &mut [Batch]) {
    for batch in batches {
        let chars = |it: &str| it.encode_utf16().count();
        let mut order: Vec<usize> = (0..batch.len()).collect();
        order.sort_by_key(|it| std::cmp::Reverse(chars(&batch[*it].1)));
        for at in order {
            if batch.iter().map(|it| chars(&it.1)).sum::<usize>() <= BATCH {
                break;
            }
            let preview: String = batch[at].1.chars().take(PREVIEW).collect();
            batch[at].1 = format!(
                "<persisted-output>\nOutput too large. Full output: epitome recall 0000000000\nPreview:\n{preview}\n</persisted-output>"
            );
        }
    }
}

/// The results that may be cleared, oldest first.
fn clearable(batches: &mut [Batch]) -> Vec<&mut String> {
    let of_these = |it: &&mut (&'static str, String)| COMPACTABLE.contains(&it.0);
    batches.iter_mut().flatten().filter(of_these).map(|it| &mut it.1).collect()
}

/// UTF-16 units / 4, rounded half up.
fn tokens(text: &str) -> u64 {
    (text.encode_utf16().count() as u64 + 2) / 4
}

/// Clears these if more tokens than `least` are gained.
fn clear(results: &mut [&mut String], least: Option<u64>) {
    let gain: u64 = results.iter().map(|it| tokens(it)).sum();
    if least.is_none_or(|least| gain > least) {
        results.iter_mut().for_each(|it| CLEARED.clone_into(it));
    }
}

/// After 60 minutes without a word: all but the five newest results of these tools.
fn micro_by_time(batches: &mut [Batch], idle_minutes: i64) {
    if idle_minutes < 60 {
        return;
    }
    let mut all = clearable(batches);
    let old = all.len().saturating_sub(NEWEST);
    clear(&mut all[..old], None);
}

/// Above a number of results: all but the five newest.
fn micro_by_count(batches: &mut [Batch]) {
    let mut all = clearable(batches);
    all.retain(|it| *it != CLEARED);
    if all.len() > COUNT {
        let old = all.len() - NEWEST;
        clear(&mut all[..old], Some(COUNT_GAIN));
    }
}

/// The result in which the newest so many tokens are passed, and all older ones.
fn micro_by_size(batches: &mut [Batch]) {
    let mut all = clearable(batches);
    all.retain(|it| *it != CLEARED);
    let mut newer = 0;
    let kept = all.iter().rev().take_while(|it| {
        newer += tokens(it);
        newer <= SIZE
    });
    let old = all.len() - kept.count();
    clear(&mut all[..old], Some(SIZE_GAIN));
}

fn small() -> Profile {
    let mut profile = profile(NAME);
    profile.passes.retain(|it| matches!(it, Pass::Outputs(_)));
    let [Pass::Outputs(budget), Pass::Outputs(time), Pass::Outputs(count), Pass::Outputs(size)] =
        &mut profile.passes[..]
    else {
        panic!()
    };
    assert_eq!(budget.select, Select::EachBatch(200_000));
    budget.select = Select::EachBatch(BATCH as u64);
    let Replace::Ends(ends) = &mut budget.replace else { panic!() };
    assert_eq!(ends.chars, 2_000);
    ends.chars = PREVIEW;
    assert_eq!((&time.select, time.idle_minutes), (&Select::AllButLast(NEWEST), 60));
    assert_eq!((&count.select, count.above, count.minimum), (&Select::AllButLast(NEWEST), 100, 20_000));
    (count.above, count.minimum) = (COUNT, COUNT_GAIN);
    assert_eq!((&size.select, size.minimum), (&Select::Beyond(40_000), 20_000));
    (size.select, size.minimum) = (Select::Beyond(SIZE), SIZE_GAIN);
    profile
}

#[test]
fn clears() {
    let profile = small();
    let mut seen = [0; 5];
    differences("claude-code budget and micro-compaction", rounds(), |dice: &mut Dice| {
        let batches: Vec<Batch> = (0..dice.length(1, 8))
            .map(|_| {
                (0..dice.length(1, 5))
                    .map(|_| {
                        let tool = dice.one(&["Read", "Bash", "Grep", "Edit", "Task", "mcp__db__query"]);
                        // Longer than what would stand in its place.
                        let chars = dice.length(200, 1_200);
                        (tool, dice.text(chars))
                    })
                    .collect()
            })
            .collect();
        let idle = dice.one(&[0, 59, 60, 600]);
        let mut messages = vec![user("go")];
        for (at, batch) in batches.iter().enumerate() {
            let id = |part: usize| format!("{at}.{part}");
            let calls = batch.iter().enumerate().map(|(part, (tool, _))| {
                let (id, name) = (id(part).into(), (*tool).into());
                Part::Call(Call { id, name, input: "{}".into(), freeform: false, signature: None })
            });
            messages.push(Message::new(Role::Assistant, Kind::Said, calls.collect()));
            messages
                .push(results(batch.iter().enumerate().map(|(part, it)| output(&id(part), &it.1)).collect()));
        }
        messages.push(model("so it is"));
        const NOW: i64 = 1_700_000_000_000;
        for message in &mut messages {
            message.at = Some(NOW - idle * 60_000);
        }
        let moment = Moment { now: NOW, ..Moment::default() };
        let plan = plan(&profile, &history(messages), Wish { moment, ..Wish::default() });
        let mut theirs = batches.clone();
        budget(&mut theirs);
        let mut clears = |it: usize, step: &dyn Fn(&mut [Batch]), theirs: &mut Vec<Batch>| {
            let before = theirs.clone();
            step(theirs);
            seen[it] += u64::from(*theirs != before);
        };
        clears(0, &|it| micro_by_time(it, idle), &mut theirs);
        clears(1, &|it| micro_by_count(it), &mut theirs);
        clears(2, &|it| micro_by_size(it), &mut theirs);
        seen[3] += u64::from(theirs.iter().flatten().any(|it| it.1.starts_with("<persisted")));
        seen[4] += u64::from(theirs == batches);
        let found = replaced(&plan);
        for (at, batch) in batches.iter().enumerate() {
            for (part, (tool, text)) in batch.iter().enumerate() {
                let ours = found.get(&(2 + 2 * at, part)).map_or(text.as_str(), String::as_str);
                same(
                    &format!("{tool} {at}.{part} after {idle} minutes"),
                    &ours,
                    &theirs[at][part].1.as_str(),
                )?;
            }
        }
        Ok(())
    });
    println!("cleared by time, count, size; persisted; untouched: {seen:?}");
    assert!(
        seen.iter().all(|it| *it > rounds() / 30),
        "cleared by time, count, size; persisted; untouched: {seen:?}"
    );
}
