//! Claude Code: its thresholds, the budget of a batch of results, micro-compaction by time (seed 002, deep dive;
//! reference 3.1 and 3.3).

use epitome::compact::{Limits, Moment};
use epitome::history::{Call, Kind, Message, Part, Role};
use epitome::profile::{Pass, Profile, Replace, Select};

use super::{Dice, ROUNDS, differences, due, replaced, same};
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
    differences("claude-code threshold", ROUNDS, |dice| {
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
        let limits = Limits { window: Some(window), output: Some(answer), ..Limits::default() };
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

/// After 60 minutes without a word: all but the five newest results of these tools.
fn micro(batches: &mut [Batch], idle_minutes: i64) {
    if idle_minutes < 60 {
        return;
    }
    let mut all: Vec<&mut String> =
        batches.iter_mut().flatten().filter(|it| COMPACTABLE.contains(&it.0)).map(|it| &mut it.1).collect();
    let old = all.len().saturating_sub(5);
    for text in &mut all[..old] {
        **text = CLEARED.to_owned();
    }
}

fn small() -> Profile {
    let mut profile = profile(NAME);
    // The other two go by numbers that are ours, stated where they stand.
    profile.passes.retain(|it| match it {
        Pass::Outputs(step) => step.above == 0 && !matches!(step.select, Select::Beyond(_)),
        Pass::Snip(_) | Pass::Collapse(_) | Pass::Summarize(_) => false,
    });
    let [Pass::Outputs(budget), Pass::Outputs(micro)] = &mut profile.passes[..] else { panic!() };
    assert_eq!(
        (&budget.select, &micro.select, micro.idle_minutes),
        (&Select::EachBatch(200_000), &Select::AllButLast(5), 60)
    );
    budget.select = Select::EachBatch(BATCH as u64);
    let Replace::Ends(ends) = &mut budget.replace else { panic!() };
    assert_eq!(ends.chars, 2_000);
    ends.chars = PREVIEW;
    profile
}

#[test]
fn clears() {
    let profile = small();
    let mut seen = [0; 3];
    differences("claude-code budget and micro-compaction", ROUNDS, |dice: &mut Dice| {
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
        micro(&mut theirs, idle);
        seen[0] += u64::from(theirs.iter().flatten().any(|it| it.1 == CLEARED));
        seen[1] += u64::from(theirs.iter().flatten().any(|it| it.1.starts_with("<persisted")));
        seen[2] += u64::from(theirs == batches);
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
    assert!(seen.iter().all(|it| *it > 100), "cleared, persisted, untouched: {seen:?}");
}
