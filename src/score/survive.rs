//! Whether a fact is still there in a form one can use: in one line, with what makes it a fact.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::cues;
use super::done::{self, counts};
use super::idents::is_hash;
use super::index::{Index, Line, Origin};
use super::probe::{Class, Fact, FileOp, Outcome, Polarity, Probe};
use super::said::polarity;
use super::text::{Shape, clip, content, fold, is_dense, tokens, words};
use crate::history::History;

/// Something that the compacted history says and the source contradicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// The kind of fact.
    pub class: Class,
    /// What the source says.
    pub expected: String,
    /// The line that says otherwise.
    pub line: String,
    /// Number of its message in the compacted history.
    pub message: usize,
}

/// What there is to look in.
pub(super) struct Scene<'a> {
    pub(super) index: Index,
    /// Number of the first source message that stands in the verbatim tail.
    pub(super) split: usize,
    kept: Kept,
    names: Names<'a>,
}

/// What calls and outputs that were carried over still prove.
#[derive(Default)]
struct Kept {
    files: HashMap<String, FileOp>,
    commands: HashMap<String, Outcome>,
    errors: HashMap<String, bool>,
    plan: HashSet<String>,
}

/// Other names of things, by which a line may call them.
struct Names<'a> {
    cwd: String,
    /// All commands, sorted: a longer one is not its prefix.
    commands: Vec<&'a str>,
    /// Sentences that the user did say.
    user: HashSet<String>,
}

impl<'a> Scene<'a> {
    /// `evicted`: the compacted messages before the verbatim tail.
    pub(super) fn new(
        source: &History,
        probes: &'a [Probe],
        index: Index,
        evicted: History,
        split: usize,
    ) -> Self {
        let mut kept = Kept::default();
        for probe in done::probes(&evicted) {
            match probe.fact {
                Fact::File { path, op, .. } => drop(kept.files.insert(path, op)),
                Fact::Command { command, outcome } => drop(kept.commands.insert(command, outcome)),
                Fact::Error { signature, resolved, .. } => {
                    drop(kept.errors.insert(signature, resolved.is_some()))
                }
                Fact::Plan { item } => drop(kept.plan.insert(item)),
                Fact::Rule { .. }
                | Fact::Decision { .. }
                | Fact::Identifier { .. }
                | Fact::Tried { .. }
                | Fact::Words { .. } => {}
            }
        }
        let mut commands: Vec<&str> = probes
            .iter()
            .filter_map(|it| {
                if let Fact::Command { command, .. } = &it.fact { Some(command.as_str()) } else { None }
            })
            .collect();
        commands.sort_unstable();
        let cwd = source.meta.cwd.as_deref().unwrap_or_default().replace('\\', "/");
        let user = super::said::sentences_of_the_user(source);
        Self { index, split, kept, names: Names { cwd, commands, user } }
    }

    /// Whether `probe` survives; what speaks against it is added to `against`.
    pub(super) fn finds(&self, probe: &Probe, against: &mut Vec<Contradiction>) -> bool {
        let mut says = |line: &Line| {
            against.push(Contradiction {
                class: probe.class,
                expected: probe.text(),
                line: clip(&line.text, 300).to_string(),
                message: line.message,
            });
        };
        match &probe.fact {
            Fact::Rule { text, polarity } => self.rule(text, Some(*polarity), 0.9, true, &mut says),
            Fact::Tried { text } => self.rule(text, None, 0.8, false, &mut says),
            Fact::Decision { question: None, choice, .. } => self.rule(choice, None, 0.8, false, &mut says),
            Fact::Decision { question: Some(question), choice, superseded } => {
                self.answer(question, choice, superseded, &mut says)
            }
            Fact::Words { text } => {
                let share = if probe.class == Class::G { 0.8 } else { 0.95 };
                self.index.stretch_with(&content(text), share)
            }
            Fact::File { path, op, done } => self.file(path, *op, done, &mut says),
            Fact::Command { command, outcome } => self.command(command, outcome, &mut says),
            Fact::Error { signature, resolved, unknown } => {
                self.error(signature, *resolved, *unknown, &mut says)
            }
            Fact::Plan { item } => self.plan(item, &mut says),
            Fact::Identifier { key, value } => self.identifier(key.as_deref(), value),
        }
    }

    fn rule(
        &self,
        text: &str,
        wanted: Option<Polarity>,
        share: f64,
        of_user: bool,
        says: &mut dyn FnMut(&Line),
    ) -> bool {
        let needle = content(text);
        let mut kept = false;
        let own = wanted.or_else(|| polarity(text));
        for at in self.index.sentences_with(&needle, share) {
            let (line, sentence) = &self.index.sentences[at];
            let line = &self.index.lines[*line];
            let said = polarity(sentence).or_else(|| self.index.labels(line).find_map(polarity));
            let turned = turned_around(text, sentence)
                || matches!(
                    (own, said),
                    (Some(Polarity::Require), Some(Polarity::Forbid))
                        | (Some(Polarity::Forbid), Some(Polarity::Require))
                );
            if turned {
                if line.fresh && needle.len() >= 3 && !self.names.user.contains(sentence) {
                    says(line);
                }
            } else if (line.of_user || !of_user) && (said.is_some() || own != Some(Polarity::Forbid)) {
                kept = true;
            }
        }
        kept
    }

    fn answer(
        &self,
        question: &str,
        choice: &str,
        superseded: &[String],
        says: &mut dyn FnMut(&Line),
    ) -> bool {
        let asked: HashSet<String> = content(question).into_iter().collect();
        let about = |line: &Line, choice: &[String]| {
            let here: HashSet<String> = tokens(&line.text).into_iter().collect();
            let near: HashSet<String> = self.index.labels(line).flat_map(tokens).collect();
            let rest: Vec<&String> = asked.iter().filter(|it| !choice.contains(it)).collect();
            rest.iter().filter(|it| here.contains(**it) || near.contains(**it)).count() * 2 >= rest.len()
        };
        let find = |choice: &str| -> Vec<&Line> {
            let needle = content(choice);
            let long = needle.len() >= 6;
            let lines = self.index.lines_with(&needle, 0.8).into_iter().map(|it| &self.index.lines[it]);
            lines.filter(|it| it.origin == Origin::Text && (long || about(it, &needle))).collect()
        };
        let found = find(choice);
        for old in superseded {
            for line in find(old) {
                let lower = line.text.to_lowercase();
                let past = [
                    "supersed",
                    "instead",
                    "no longer",
                    "rejected",
                    "earlier",
                    "first",
                    "before",
                    "取代",
                    "旧",
                    "以前",
                ];
                let right = found.iter().any(|it| std::ptr::eq(*it, line));
                if line.fresh && !right && !past.iter().any(|it| lower.contains(it)) {
                    says(line);
                }
            }
        }
        !found.is_empty()
    }

    fn file(&self, path: &str, op: FileOp, done: &[FileOp], says: &mut dyn FnMut(&Line)) -> bool {
        let mut fine = vec![op];
        if matches!(op, FileOp::Edited | FileOp::Created) {
            fine.extend(done.iter().filter(|it| matches!(it, FileOp::Edited | FileOp::Created)));
        }
        let mut kept = self.kept.files.get(path).is_some_and(|it| fine.contains(it));
        let aliases = self.aliases(path);
        let mut wrong = Vec::new();
        for line in self.index.around(path) {
            if line.origin != Origin::Text {
                continue;
            }
            let Some((from, to)) = aliases.iter().find_map(|it| find_path(&line.text, it)) else { continue };
            let mut said = ops_in_line(&line.text, from, to);
            if said.is_empty() {
                said = self
                    .index
                    .labels(line)
                    .map(|it| ops_in(it))
                    .find(|it| !it.is_empty())
                    .unwrap_or_default();
            }
            if said.is_empty() {
                continue;
            }
            if said.iter().any(|it| fine.contains(it)) {
                kept = true;
            } else if line.fresh {
                // Never done at all, or turned around by what was done last. A true but older statement is only
                // not enough.
                let never = !said.iter().any(|it| done.contains(it));
                let gone = op == FileOp::Deleted && !said.contains(&FileOp::Read);
                if never || gone {
                    wrong.push((line, said.contains(&FileOp::Deleted)));
                }
            }
        }
        for (line, deletes) in wrong {
            if !kept || deletes {
                says(line);
            }
        }
        kept
    }

    fn aliases(&self, path: &str) -> Vec<String> {
        let mut out = vec![path.to_string()];
        let absolute = path.starts_with(['/', '~']) || path.get(1..3) == Some(":/");
        if !absolute && !self.names.cwd.is_empty() {
            out.push(format!("{}/{path}", self.names.cwd.trim_end_matches('/')));
        }
        for whole in out.clone() {
            for home in ["/home/", "/Users/"] {
                if let Some((_, rest)) = whole.strip_prefix(home).and_then(|it| it.split_once('/')) {
                    out.push(format!("~/{rest}"));
                }
            }
        }
        out
    }

    fn command(&self, command: &str, outcome: &Outcome, says: &mut dyn FnMut(&Line)) -> bool {
        let same = |it: &Outcome| {
            it.ok == outcome.ok && it.failed.or(outcome.failed) == outcome.failed.or(it.failed)
        };
        let mut kept = self.kept.commands.get(command).is_some_and(same);
        let mut wrong = Vec::new();
        for line in self.index.around(command) {
            if line.origin != Origin::Text {
                continue;
            }
            let Some((from, to)) = self.find_command(&line.text, command) else { continue };
            let said = outcome_in(&line.text[to..])
                .or_else(|| outcome_in(&line.text[..from]))
                .or_else(|| self.index.labels(line).find_map(outcome_in));
            match said {
                Some(said) if agrees(&said, outcome) => kept = true,
                Some(_) if line.fresh => wrong.push(line),
                Some(_) | None => {}
            }
        }
        if !kept {
            wrong.into_iter().for_each(says);
        }
        kept
    }

    /// Where `command` stands in a line, whole or cut by an ellipsis after 40 characters, and not as the beginning of
    /// another command.
    fn find_command(&self, line: &str, command: &str) -> Option<(usize, usize)> {
        let longer: Vec<&str> = {
            let from = self.names.commands.partition_point(|it| *it <= command);
            self.names.commands[from..]
                .iter()
                .take_while(|it| it.starts_with(command))
                .take(64)
                .copied()
                .collect()
        };
        let whole = line.match_indices(command).find(|(at, _)| {
            let before = line[..*at].chars().next_back();
            let after = line[*at + command.len()..].chars().next();
            let bounded =
                |it: Option<char>| it.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '/')));
            let rest = &line[*at..];
            bounded(before) && bounded(after) && !longer.iter().any(|it| rest.starts_with(it))
        });
        if let Some((at, _)) = whole {
            return Some((at, at + command.len()));
        }
        let start = clip(command, 40);
        if start.len() == command.len() {
            return None;
        }
        let at = line.find(start)?;
        let shared = line[at..].char_indices().zip(command.chars()).take_while(|((_, a), b)| a == b).last();
        let end = shared.map(|((it, c), _)| at + it + c.len_utf8())?;
        let rest = line[end..].trim_start();
        (rest.starts_with('…') || rest.starts_with("...")).then_some((at, end))
    }

    fn error(
        &self,
        signature: &str,
        resolved: Option<usize>,
        unknown: bool,
        says: &mut dyn FnMut(&Line),
    ) -> bool {
        let mut kept = self.kept.errors.get(signature).is_some_and(|it| *it == resolved.is_some());
        let needle = tokens(signature);
        let own: HashSet<String> = needle.iter().cloned().collect();
        for at in self.index.lines_with(&needle, 0.9) {
            let line = &self.index.lines[at];
            if line.origin == Origin::Call {
                continue;
            }
            let settled = self.status(line, &own);
            let late = resolved.is_some_and(|it| it >= self.split);
            match (resolved, settled) {
                _ if unknown || late => kept = true,
                (None, Some(true)) | (Some(_), Some(false)) if line.fresh => {
                    let strict = ["unresolved", "unfixed", "still", "open"];
                    let loud = tokens(&line.text)
                        .iter()
                        .any(|it| strict.contains(&it.as_str()) && !own.contains(it));
                    if settled == Some(true) || loud {
                        says(line);
                    }
                }
                (Some(_), Some(true)) | (None, Some(false) | None) => kept = true,
                (Some(_), Some(false) | None) | (None, Some(true)) => {}
            }
        }
        kept
    }

    fn plan(&self, item: &str, says: &mut dyn FnMut(&Line)) -> bool {
        let mut kept = self.kept.plan.contains(item);
        let needle = content(item);
        let own: HashSet<String> = tokens(item).into_iter().collect();
        for at in self.index.sentences_with(&needle, 0.8) {
            let line = &self.index.lines[self.index.sentences[at].0];
            match self.status(line, &own) {
                Some(false) => kept = true,
                Some(true) if line.fresh && !kept => says(line),
                Some(true) | None => {}
            }
        }
        kept
    }

    /// Whether a line, or the labels above it, say that something is settled or still open. `own` are words of the
    /// thing itself.
    fn status(&self, line: &Line, own: &HashSet<String>) -> Option<bool> {
        status_in(&line.text, own).or_else(|| self.index.labels(line).find_map(|it| status_in(it, own)))
    }

    fn identifier(&self, key: Option<&str>, value: &str) -> bool {
        let hash = is_hash(value);
        let lines = self.index.around(value);
        let whole = lines.iter().any(|line| {
            find_bounded(&line.text, value)
                && key.is_none_or(|key| line.text.to_lowercase().contains(&key.to_lowercase()))
        });
        whole
            || hash && value.len() > 7 && {
                // Git's short form of a hash.
                (7..value.len()).any(|len| {
                    self.index.around(&value[..len]).iter().any(|it| find_bounded(&it.text, &value[..len]))
                })
            }
    }
}

fn find_bounded(line: &str, value: &str) -> bool {
    line.match_indices(value).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + value.len()..].chars().next();
        let bounded = |it: Option<char>| it.is_none_or(|c| !(c.is_alphanumeric() || c == '_') || is_dense(c));
        bounded(before) && bounded(after)
    })
}

/// Where a path stands in a line as a whole path.
fn find_path(line: &str, path: &str) -> Option<(usize, usize)> {
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

/// Operations that a stretch of text names, without those it denies or only intends.
fn ops_in(text: &str) -> Vec<FileOp> {
    let all = words(text);
    let mut out = Vec::new();
    for (at, word) in all.iter().enumerate() {
        let word_text = fold(word.text);
        if word.dense {
            for (cue, ops) in cues::FILE_WORDS.iter().filter(|it| word.text.contains(it.0)) {
                if cue.contains(is_dense) {
                    out.extend(ops.iter().copied());
                }
            }
            continue;
        }
        let Some((_, ops)) = cues::FILE_WORDS.iter().find(|it| it.0 == word_text) else { continue };
        let denied =
            all[at.saturating_sub(3)..at].iter().any(|it| cues::NEGATORS.contains(&fold(it.text).as_str()));
        if !denied {
            out.extend(ops.iter().copied());
        }
    }
    out
}

/// What a line says was done to the path that stands at `from..to`. With several paths in it, the words before the
/// first path decide whether operations precede or follow the paths they speak of.
fn ops_in_line(line: &str, from: usize, to: usize) -> Vec<FileOp> {
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

/// Whether a word can be a path: it has a slash inside, or ends like a file.
pub(super) fn looks_like_path(word: &str) -> bool {
    let ending = word.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && (1..=5).contains(&ending.len())
            && ending.chars().all(|c| c.is_ascii_alphanumeric())
            && ending.starts_with(|c: char| c.is_ascii_alphabetic())
    });
    !word.contains("://") && (word.trim_matches('/').contains('/') || ending)
}

/// What a text says of how a command ended.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    ok: bool,
    passed: Option<u64>,
    failed: Option<u64>,
    exit: Option<i64>,
}

fn outcome_in(text: &str) -> Option<Told> {
    // What is said of this command ends where the next one is named.
    let text = clip(text, 240);
    let lower = text.to_lowercase();
    let (passed, failed) = counts(&lower);
    let exit = ["exit code ", "exit status ", "exit ", "code "].iter().find_map(|it| {
        let rest = lower.split_once(it)?.1;
        rest.chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect::<String>().parse::<i64>().ok()
    });
    let all = words(&lower);
    // The last word that judges counts: "failed twice, then passed".
    let mut last = None;
    for (at, word) in all.iter().enumerate() {
        let good = cues::WENT_WELL.contains(&word.text);
        let bad = cues::WENT_WRONG.contains(&word.text);
        if good || bad {
            let denied = all[at.saturating_sub(2)..at].iter().any(|it| cues::NEGATORS.contains(&it.text));
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
    Some(Told { ok, passed, failed, exit })
}

fn agrees(told: &Told, outcome: &Outcome) -> bool {
    let same = |told: Option<u64>, known: Option<u64>| told.is_none() || known.is_none() || told == known;
    told.ok == outcome.ok
        && same(told.passed, outcome.passed)
        && same(told.failed, outcome.failed)
        && (told.exit.is_none()
            || outcome.exit.is_none()
            || told.exit == outcome.exit
            || outcome.exit == Some(0) && !outcome.ok)
}

fn status_in(text: &str, own: &HashSet<String>) -> Option<bool> {
    let lower = text.to_lowercase();
    let all = words(&lower);
    let mut out = None;
    for (at, word) in all.iter().enumerate() {
        if own.contains(word.text) {
            continue;
        }
        let denied = all[at.saturating_sub(2)..at].iter().any(|it| cues::NEGATORS.contains(&it.text));
        if cues::SETTLED.contains(&word.text) {
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

/// Whether two sentences set the same two things against each other the other way round.
fn turned_around(text: &str, sentence: &str) -> bool {
    let pair = |text: &str| -> Option<(String, String)> {
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
    };
    match (pair(text), pair(sentence)) {
        (Some((a, b)), Some((c, d))) => a == d && b == c && a != b,
        _ => false,
    }
}

/// Contradictions once each, in order.
pub(super) fn distinct(all: Vec<Contradiction>) -> Vec<Contradiction> {
    let mut seen: BTreeMap<(usize, String, String), ()> = BTreeMap::new();
    all.into_iter()
        .filter(|it| seen.insert((it.message, it.line.clone(), it.expected.clone()), ()).is_none())
        .collect()
}

/// Whether a line is worth judging as a statement: not code, not a label.
pub(super) fn states(line: &Line) -> bool {
    line.fresh && line.origin == Origin::Text && line.shape != Shape::Label
}
