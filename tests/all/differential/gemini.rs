//! Gemini CLI: the estimates, the split with every branch, 0.61's truncation and masking (seeds 000 and 003; reference
//! 2.3, 2.5, 2.6, 2.8). The model works on the contents' JSON, as the program does.

use epitome::compaction::plan::{ModelLimits, Moment};
use epitome::compaction::profile::{Pass, Profile, Replace, Select};
use epitome::sessions::Format;
use epitome::tokens::{TokenCounter, Tokenizer};
use serde_json::{Value, json};

use super::{Dice, differences, due, replaced, rounds, same};
use crate::vectors::{Wish, plan, profile, read, user};

fn utf16(text: &str) -> u64 {
    text.encode_utf16().count() as u64
}

fn parts(content: &Value) -> &[Value] {
    content["parts"].as_array().map_or(&[], Vec::as_slice)
}

fn has(content: &Value, key: &str) -> bool {
    parts(content).iter().any(|it| it.get(key).is_some())
}

/// Contents as the program has them: prompts, answers, calls with responses; ids now and then. It may begin and end
/// anywhere.
fn contents(dice: &mut Dice, length: usize, longest: usize) -> Vec<Value> {
    let mut out = Vec::new();
    let mut number = 0;
    if dice.once_in(8) {
        out.push(json!({"role": "model", "parts": [{"text": "hello"}]}));
    }
    while out.len() < length {
        let chars = dice.length(1, longest / 4 + 1);
        match dice.of(0, 5) {
            0 | 1 => out.push(json!({"role": "user", "parts": [{"text": dice.text(chars)}]})),
            2 => out.push(json!({"role": "model", "parts": [{"text": dice.text(chars)}]})),
            _ => {
                let many = dice.length(1, 2);
                let with_id = dice.once_in(2);
                let (mut calls, mut answers) = (Vec::new(), Vec::new());
                for _ in 0..many {
                    number += 1;
                    let name = dice.one(&["read_file", "run_shell_command", "grep", "ask_user"]);
                    // A length that is neither masked for the tag's sake nor at the edge of 500 characters.
                    let chars = if dice.once_in(2) {
                        dice.length(1, 300)
                    } else {
                        dice.length(900, longest.max(901))
                    };
                    // Nor one that its placeholder would make longer: that is a stated deviation.
                    let chars = if (SHOWN..SHOWN + 300).contains(&chars) { SHOWN + 300 } else { chars };
                    let (mut call, mut answer) = (
                        json!({"name": name, "args": {"n": number}}),
                        json!({"name": name, "response": {"output": dice.text(chars)}}),
                    );
                    if with_id {
                        let id = format!("{name}-17{number:010}-{}", dice.of(0, 9));
                        call = json!({"id": id, "name": name, "args": {"n": number}});
                        answer = json!({"id": id, "name": name, "response": answer["response"]});
                    }
                    calls.push(json!({"functionCall": call}));
                    answers.push(json!({"functionResponse": answer}));
                }
                out.push(json!({"role": "model", "parts": calls}));
                // The last call may wait.
                if out.len() < length || !dice.once_in(3) {
                    out.push(json!({"role": "user", "parts": answers}));
                }
            }
        }
    }
    out
}

/// `findCompressSplitPoint`.
fn split(contents: &[Value], fraction: f64) -> usize {
    let sizes: Vec<u64> = contents.iter().map(|it| utf16(&it.to_string())).collect();
    let target = sizes.iter().sum::<u64>() as f64 * fraction;
    let (mut last, mut seen) = (0, 0);
    for (at, content) in contents.iter().enumerate() {
        if content["role"] == "user" && !has(content, "functionResponse") {
            if seen as f64 >= target {
                return at;
            }
            last = at;
        }
        seen += sizes[at];
    }
    match contents.last() {
        Some(it) if it["role"] == "model" && !has(it, "functionCall") => contents.len(),
        _ => last,
    }
}

/// Tokens of text: December 2025 by code points, 0.61 by UTF-16 units.
fn text_tokens(text: &str, new: bool) -> f64 {
    let ascii = text.chars().filter(char::is_ascii).count() as f64;
    if new {
        let units = utf16(text) as f64;
        if units > 100_000.0 { units / 4.0 } else { ascii * 0.25 + (units - ascii) * 1.5 }
    } else {
        ascii * 0.25 + (text.chars().count() as f64 - ascii) * 1.3
    }
}

fn part_tokens(part: &Value, new: bool) -> f64 {
    if let Some(text) = part["text"].as_str() {
        return text_tokens(text, new);
    }
    match part.get("functionResponse").filter(|_| new) {
        Some(it) => {
            let name = utf16(it["name"].as_str().unwrap_or_default()) as f64;
            name / 4.0 + utf16(&it["response"].to_string()) as f64 / 4.0
        }
        None => utf16(&part.to_string()) as f64 / 4.0,
    }
}

/// `estimateTokenCountSync`: the sum is rounded down. Sums of tenths are not exact in binary.
fn tokens(parts: &[Value], new: bool) -> u64 {
    (parts.iter().map(|it| part_tokens(it, new)).sum::<f64>() + 1e-6).floor() as u64
}

#[test]
fn estimates() {
    for (name, new) in [("gemini-cli", false), ("gemini-cli@0.20", false), ("gemini-cli@0.61", true)] {
        let estimator = profile(name).estimator.unwrap();
        differences(&format!("{name} estimate"), rounds(), |dice| {
            let length = dice.length(1, 6);
            let contents = contents(dice, length, 1_000);
            let json = Value::Array(contents.clone()).to_string();
            let history = read(&json, Format::GEMINI);
            let counter = TokenCounter::new(&history, Tokenizer::Fixed(estimator), Some(0));
            let ours: Vec<u64> = history.messages().iter().map(|it| counter.message(it)).collect();
            let theirs: Vec<u64> = contents.iter().map(|it| tokens(parts(it), new)).collect();
            same(&json, &ours, &theirs)
        });
    }
}

#[test]
fn splits() {
    for name in ["gemini-cli", "gemini-cli@0.20"] {
        let profile = profile(name);
        let mut cuts = [0; 3];
        differences(&format!("{name} split"), rounds(), |dice| {
            let length = dice.length(1, 16);
            let contents = contents(dice, length, 1_500);
            let json = Value::Array(contents.clone()).to_string();
            let history = read(&json, Format::GEMINI);
            let plan = plan(&profile, &history, Wish::default());
            let theirs = split(&contents, 0.7);
            cuts[if theirs == 0 { 0 } else { 1 + usize::from(theirs == contents.len()) }] += 1;
            // 0 is NOOP.
            same(&json, &(plan.act, plan.split.unwrap_or(0)), &(theirs > 0, theirs))?;
            let kept = contents.len() - theirs;
            same(&json, &plan.layout.len(), &if theirs > 0 { 2 + kept } else { contents.len() })
        });
        assert!(cuts.iter().all(|it| *it > rounds() / 60), "nothing, some, all: {cuts:?}");
    }
}

#[test]
fn triggers() {
    for (name, ends) in [("gemini-cli", 0), ("gemini-cli@0.20", 1), ("gemini-cli@0.61", 2)] {
        let profile = profile(name);
        differences(&format!("{name} trigger"), rounds(), |dice| {
            let limit = dice.one(&[1_048_576, 2_097_152, 256_000, 32_000]);
            let tokens =
                limit / 2 + dice.of(0, 4) - 2 + if dice.once_in(3) { dice.of(0, limit / 2) } else { 0 };
            let left = limit.saturating_sub(tokens);
            let next = dice.one(&[
                None,
                Some(left * 95 / 100 - 2),
                Some(left * 95 / 100 + 2),
                Some(left + 1),
                Some(10),
            ]);
            let limits =
                ModelLimits { window: Some(limit), window_given: true, next, ..ModelLimits::default() };
            let ours = due(&profile, vec![user("u")], tokens, &limits, &Moment::default());
            let large = next.map(|it| it as f64 > left as f64 * 0.95);
            let full = tokens * 2 >= limit;
            let theirs = match ends {
                // The notes: only if the request takes more than 95 % of what is left, and then at half of the limit.
                0 => large.unwrap_or(true) && full,
                // The program of that day: such a request ends the turn before.
                1 => !large.unwrap_or(false) && full,
                _ => full,
            };
            same(&format!("{tokens} of {limit}, next {next:?}"), &ours, &theirs)
        });
    }
}

// ── 0.61: truncation, split, masking, each a fiftieth of its size ──

const BUDGET: u64 = 1_000;
const SHOWN: usize = 1_600;
const PROTECTED: u64 = 1_000;
const PRUNABLE: u64 = 600;
const PATH: &str = "epitome recall 0000000000";

fn small() -> Profile {
    let mut profile = profile("gemini-cli@0.61");
    let Pass::Outputs(truncate) = &mut profile.passes[0] else { panic!() };
    assert_eq!(truncate.select, Select::Unfit(50_000));
    truncate.select = Select::Unfit(BUDGET);
    let Replace::Ends(ends) = &mut truncate.replace else { panic!() };
    assert_eq!((ends.chars, ends.head), (40_000, 0.2));
    ends.chars = SHOWN;
    let Pass::Outputs(mask) = &mut profile.passes[2] else { panic!() };
    assert_eq!((&mask.select, mask.minimum), (&Select::Beyond(50_000), 29_999));
    (mask.select, mask.minimum) = (Select::Beyond(PROTECTED), PRUNABLE - 1);
    profile
}

fn thousands(number: usize) -> String {
    if number >= 1_000 { format!("{},{:03}", number / 1_000, number % 1_000) } else { number.to_string() }
}

/// `formatTruncatedToolOutput`; what is no longer than what would be shown stays.
fn truncated(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= SHOWN {
        return text.to_owned();
    }
    let head = SHOWN / 5;
    let (first, last): (String, String) =
        (chars[..head].iter().collect(), chars[chars.len() - (SHOWN - head)..].iter().collect());
    format!(
        "Output too large. Showing first {} and last {} characters. For full output see: {PATH}\n{first}\n\n... [{} characters omitted] ...\n\n{last}",
        thousands(head),
        thousands(SHOWN - head),
        thousands(chars.len() - SHOWN)
    )
}

fn set_output(part: &mut Value, text: &str) {
    part["functionResponse"]["response"] = json!({"output": text});
}

fn output(part: &Value) -> Option<&str> {
    part.get("functionResponse")?["response"]["output"].as_str()
}

/// `truncateHistoryToBudget`.
fn truncate(contents: &mut [Value]) {
    let mut sum = 0;
    for content in contents.iter_mut().rev() {
        for part in content["parts"].as_array_mut().unwrap().iter_mut().rev() {
            let Some(text) = output(part).map(str::to_owned) else { continue };
            let cost = |text: &str| (text_tokens(text, true) + 1e-6).floor() as u64;
            if sum + cost(&text) > BUDGET {
                let short = truncated(&text);
                sum += cost(&short);
                set_output(part, &short);
            } else {
                sum += cost(&text);
            }
        }
    }
}

/// Tool output masking: what becomes of each response, from the last but one content on.
fn mask(contents: &mut [Value]) {
    const EXEMPT: [&str; 4] = ["activate_skill", "ask_user", "enter_plan_mode", "exit_plan_mode"];
    let (mut sum, mut prunable, mut found) = (0, 0, Vec::new());
    let last = contents.len().saturating_sub(1);
    for (at, content) in contents[..last].iter().enumerate().rev() {
        for (number, part) in parts(content).iter().enumerate().rev() {
            let Some(text) = output(part) else { continue };
            let exempt = EXEMPT.contains(&part["functionResponse"]["name"].as_str().unwrap());
            if exempt || text.contains("<tool_output_masked") {
                continue;
            }
            let cost = tokens(std::slice::from_ref(part), true);
            sum += cost;
            if sum > PROTECTED {
                prunable += cost;
                found.push((at, number));
            }
        }
    }
    if prunable < PRUNABLE {
        return;
    }
    for (at, number) in found {
        let part = &mut contents[at]["parts"][number];
        // The preview takes some 600 characters: lengths near that are not rolled. A shell's output has ten lines from
        // each end; which lengths those have is up to the dice, so only few lines are rolled there.
        if utf16(output(part).unwrap()) > 850 {
            set_output(part, "<tool_output_masked>");
        }
    }
}

#[test]
fn truncates_splits_and_masks() {
    let profile = small();
    let mut seen = [0; 4];
    differences("gemini-cli@0.61 truncation, split and masking", rounds(), |dice| {
        let length = dice.length(4, 22);
        let mut contents = contents(dice, length, 5_000);
        // Lines of a shell's output are another rule, with a case of its own.
        for part in contents.iter_mut().flat_map(|it| it["parts"].as_array_mut().unwrap()) {
            for key in ["functionCall", "functionResponse"] {
                if part.get(key).is_some_and(|it| it["name"] == "run_shell_command") {
                    part[key]["name"] = json!("glob");
                }
            }
        }
        let json = Value::Array(contents.clone()).to_string();
        let history = read(&json, Format::GEMINI);
        let plan = plan(&profile, &history, Wish::default());
        truncate(&mut contents);
        let cut = split(&contents, 0.7);
        seen[0] += u64::from(cut == 0);
        same(&json, &(plan.act, plan.split.unwrap_or(0)), &(cut > 0, cut))?;
        if cut == 0 {
            return Ok(());
        }
        let ack = [
            json!({"role": "user", "parts": [{"text": "S"}]}),
            json!({"role": "model", "parts": [{"text": "Got it."}]}),
        ];
        let mut after = [&ack, &contents[cut..]].concat();
        mask(&mut after);
        let mut theirs = Vec::new();
        for (at, content) in after[2..].iter().enumerate() {
            for (number, part) in parts(content).iter().enumerate() {
                let Some(text) = output(part) else { continue };
                let kind = if text.starts_with("<tool_output_masked>") {
                    "masked"
                } else if text.starts_with("Output too large") {
                    "truncated"
                } else {
                    "whole"
                };
                theirs.push(((cut + at, number), kind));
            }
        }
        let found = replaced(&plan);
        let ours: Vec<((usize, usize), &str)> = theirs
            .iter()
            .map(|(place, _)| {
                let kind = match found.get(place) {
                    Some(it) if it.starts_with("<tool_output_masked>") => "masked",
                    Some(it) if it.starts_with("Output too large") => "truncated",
                    Some(_) => "something else",
                    None => "whole",
                };
                (*place, kind)
            })
            .collect();
        seen[1] += u64::from(theirs.iter().any(|it| it.1 == "masked"));
        seen[2] += u64::from(theirs.iter().any(|it| it.1 == "truncated"));
        seen[3] += u64::from(theirs.iter().any(|it| it.1 == "whole"));
        same(&json, &ours, &theirs)
    });
    assert!(seen.iter().all(|it| *it > rounds() / 100), "no cut, masked, truncated, whole: {seen:?}");
}
