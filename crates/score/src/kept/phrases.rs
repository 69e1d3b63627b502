//! What lines say: where they have a path or value, what was done to it, how a command ended, whether
//! something is settled. Judged by nearby words, without grammar.

use std::collections::HashSet;

use crate::cues;
use crate::probe::{FileOp, Outcome};
use crate::source::outcome::counts;
use crate::text::{clip, content, ending, fold, is_dense, words};

/// Whether a line contains a value that is not part of a longer word.
pub(crate) fn find_bounded(line: &str, value: &str) -> bool {
    line.match_indices(value).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + value.len()..].chars().next();
        let bounded = |it: Option<char>| it.is_none_or(|c| !(c.is_alphanumeric() || c == '_') || is_dense(c));
        bounded(before) && bounded(after)
    })
}

/// Where a line contains a path that is not part of a longer one.
pub(crate) fn find_path(line: &str, path: &str) -> Option<(usize, usize)> {
    line.match_indices(path).find_map(|(at, _)| {
        let before = line[..at].strip_suffix("./").unwrap_or(&line[..at]).chars().next_back();
        let mut after = line[at + path.len()..].chars();
        let next = after.next();
        let part = |c: char| (c.is_alphanumeric() && !is_dense(c)) || matches!(c, '_' | '-' | '/' | '\\');
        let ends = match next {
            Some('.') => after.next().is_none_or(|c| !c.is_alphanumeric()),
            other => other.is_none_or(|c| !part(c)),
        };
        (before.is_none_or(|c| !part(c) && c != '.' && c != '~') && ends).then_some((at, at + path.len()))
    })
}

/// Operations that a text names, without those that it denies or only intends.
pub(crate) fn ops_in(text: &str) -> Vec<FileOp> {
    let all = words(text);
    let mut out = Vec::new();
    for (at, word) in all.iter().enumerate() {
        let word_text = fold(word.text);
        if word.dense {
            for (ops, cues) in cues::FILE_WORDS {
                let found = cues.iter().filter(|it| it.contains(is_dense) && word.text.contains(**it));
                out.extend(found.flat_map(|_| *ops));
            }
            continue;
        }
        let Some((ops, _)) = cues::FILE_WORDS.iter().find(|it| it.1.contains(&word_text.as_str())) else {
            continue;
        };
        let denied =
            all[at.saturating_sub(3)..at].iter().any(|it| cues::NEGATORS.contains(&fold(it.text).as_str()));
        if !denied {
            out.extend(ops.iter().copied());
        }
    }
    out
}

/// What a line says was done to the path at `from..to`. If it has several paths, the words before the first
/// one decide whether operations precede or follow their paths.
pub(crate) fn ops_in_line(line: &str, from: usize, to: usize) -> Vec<FileOp> {
    // `M src/a.rs`, as git writes it.
    let letter = line.split_whitespace().next().unwrap_or_default();
    let named = match letter {
        "M" => Some(FileOp::Edited),
        "A" => Some(FileOp::Created),
        "D" => Some(FileOp::Deleted),
        _ => None,
    };
    if let Some(op) = named.filter(|_| line[letter.len()..].trim_start().starts_with(&line[from..to])) {
        return vec![op];
    }
    // A line that is pages long is judged by the text around the path.
    let start = from - ending(&line[..from], 4_000).len();
    let (line, from, to) = (clip(&line[start..], 8_000), from - start, to - start);
    let others: Vec<(usize, usize)> = words(line)
        .iter()
        .filter(|it| {
            looks_like_path(it.text)
                && !(from..to).contains(&it.at)
                && !(it.at..it.at + it.text.len()).contains(&from)
        })
        .map(|it| (it.at, it.at + it.text.len()))
        .collect();
    if others.is_empty() {
        let mut out = ops_in(&line[..from]);
        out.extend(ops_in(&line[to..]));
        return out;
    }
    let first = others.iter().map(|it| it.0).chain([from]).min().unwrap_or(from);
    let precede = !ops_in(&line[..first]).is_empty();
    let mut places = others;
    places.push((from, to));
    places.sort_unstable();
    let own = places.iter().position(|it| *it == (from, to)).unwrap_or_default();
    let gap = |after: usize| -> &str {
        let start = places[after].1;
        let end = places.get(after + 1).map_or(line.len(), |it| it.0);
        line.get(start..end).unwrap_or_default()
    };
    let aside = |text: &str| -> (String, String) {
        match text.trim_start().strip_prefix('(').and_then(|it| it.split_once(')')) {
            Some((inside, rest)) => (inside.to_string(), rest.to_string()),
            None => (String::new(), text.to_string()),
        }
    };
    let mut out = Vec::new();
    if precede {
        // The nearest operation before it.
        let mut at = own;
        loop {
            let text = if at == 0 { line[..places[0].0].to_string() } else { aside(gap(at - 1)).1 };
            let found = ops_in(&text);
            if !found.is_empty() || at == 0 {
                out = found;
                break;
            }
            at -= 1;
        }
        out.extend(ops_in(&aside(gap(own)).0));
    } else {
        for at in own..places.len() {
            out = ops_in(gap(at));
            if !out.is_empty() {
                break;
            }
        }
    }
    out
}

/// Whether a word can be a path: it has a slash inside, or a file extension.
pub(crate) fn looks_like_path(word: &str) -> bool {
    if !word.bytes().any(|it| matches!(it, b'.' | b'/')) {
        return false;
    }
    let ending = word.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && (1..=5).contains(&ending.len())
            && ending.chars().all(|c| c.is_ascii_alphanumeric())
            && ending.starts_with(|c: char| c.is_ascii_alphabetic())
    });
    !word.contains("://") && (word.trim_matches('/').contains('/') || ending)
}

/// What a text says about how a command ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StatedOutcome {
    pub(crate) ok: bool,
    passed: Option<u64>,
    failed: Option<u64>,
    exit: Option<i64>,
}

/// How the command before a text ended, according to the text.
pub(crate) fn outcome_in(text: &str) -> Option<StatedOutcome> {
    // Text further on may be about another command.
    let text = clip(text, 240);
    let lower = text.to_lowercase();
    let (passed, failed) = counts(&lower);
    let exit = ["exit code ", "exit status ", "exit ", "code "].iter().find_map(|it| {
        let rest = lower.split_once(it)?.1;
        rest.chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect::<String>().parse::<i64>().ok()
    });
    let all = words(&lower);
    // The last judging word counts: "failed twice, then passed".
    let mut last = None;
    for (at, word) in all.iter().enumerate() {
        let good = cues::WENT_WELL.contains(&word.text);
        let bad = cues::WENT_WRONG.contains(&word.text);
        if good || bad {
            // Not by a word before an arrow: "(test what to do) → ok".
            let mut near =
                all[at.saturating_sub(2)..at].iter().filter(|it| !lower[it.at..word.at].contains('→'));
            let denied = near.any(|it| cues::NEGATORS.contains(&it.text));
            let counted =
                at.checked_sub(1).is_some_and(|it| all[it].text.parse::<u64>().is_ok_and(|it| it > 0));
            // "3 passed, 1 failed" is judged by its failures.
            if !(good && counted && failed.is_some_and(|it| it > 0)) {
                last = Some(good != denied);
            }
        }
    }
    let last_sign = |signs: &[&str]| signs.iter().filter_map(|it| text.rfind(it)).max();
    let signs = match (last_sign(cues::WENT_WELL_ANYWHERE), last_sign(cues::WENT_WRONG_ANYWHERE)) {
        (None, None) => None,
        (good, bad) => Some(good > bad),
    };
    let counted = failed.map(|it| it == 0).or(passed.map(|_| true));
    let ok = exit.map(|it| it == 0).or(counted.filter(|it| !it)).or(signs).or(last).or(counted)?;
    Some(StatedOutcome { ok, passed, failed, exit })
}

/// Whether a told outcome fits the known one; numbers may be left out, but must be right.
pub(crate) fn agrees(told: &StatedOutcome, outcome: &Outcome) -> bool {
    let same = |told: Option<u64>, known: Option<u64>| told.is_none() || known.is_none() || told == known;
    told.ok == outcome.ok
        && same(told.passed, outcome.passed)
        && same(told.failed, outcome.failed)
        && (told.exit.is_none()
            || outcome.exit.is_none()
            || told.exit == outcome.exit
            || outcome.exit == Some(0) && !outcome.ok)
}

/// Whether a text says that something is settled or still open; the thing's own words (`own`) do not count.
pub(crate) fn status_in(text: &str, own: &HashSet<String>) -> Option<bool> {
    let lower = text.to_lowercase();
    let all = words(&lower);
    let mut out = None;
    for (at, word) in all.iter().enumerate() {
        if own.contains(word.text) {
            continue;
        }
        // "not found → unresolved": a negation before an arrow or a stop does not reach behind it.
        let apart = |from: usize| lower[from..word.at].contains(['→', ':', ';', '.', '=']);
        let denied =
            all[at.saturating_sub(2)..at].iter().any(|it| cues::NEGATORS.contains(&it.text) && !apart(it.at));
        // "5 passed, 1 failed" is a count and settles nothing.
        let counts = at.checked_sub(1).is_some_and(|it| all[it].text.parse::<u64>().is_ok());
        if cues::SETTLED.contains(&word.text) && !counts {
            out = Some(!denied);
        } else if cues::STILL_OPEN.contains(&word.text) && out.is_none() {
            out = Some(denied && word.text != "next");
        }
    }
    if cues::STILL_OPEN_ANYWHERE.iter().any(|it| text.contains(it)) {
        return Some(false);
    }
    if cues::SETTLED_ANYWHERE.iter().any(|it| text.contains(it)) {
        return Some(true);
    }
    out
}

/// The two things that a sentence sets against each other.
pub(crate) fn contrast(text: &str) -> Option<(String, String)> {
    let lower = text.to_lowercase();
    let (at, cue) = cues::CONTRAST.iter().find_map(|it| {
        let mut hits = lower.match_indices(it);
        hits.find(|(at, _)| {
            it.contains(is_dense)
                || lower[..*at].ends_with([' ', ',']) && lower[*at + it.len()..].starts_with(' ')
        })
    })?;
    let left = content(&lower[..at]).pop()?;
    let right = content(&lower[at + cue.len()..]).into_iter().next()?;
    Some((left, right))
}

/// Whether two sentences set the same two things against each other, but the other way round.
pub(crate) fn turned_around(one: &(String, String), other: &(String, String)) -> bool {
    one.0 == other.1 && one.1 == other.0 && one.0 != one.1
}

/// The letters and digits of a text.
pub(super) fn squeezed(text: &str) -> String {
    text.chars().filter(|it| it.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_before_a_colon_counts_and_one_behind_it_too() {
        for text in ["failed, 5 passed, 1 failed: thread 'main' panicked", "passed: 5, failed: 1"] {
            let told = outcome_in(text).unwrap();
            assert_eq!((told.ok, told.passed, told.failed), (false, Some(5), Some(1)), "{text}");
        }
    }
}
