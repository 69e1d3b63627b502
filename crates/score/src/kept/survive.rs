//! Whether a fact is still there in usable form: in one line, with what makes it a fact.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::index::{Index, Line, Origin};
use super::phrases::{
    StatedOutcome, agrees, contrast, find_bounded, find_path, ops_in, ops_in_line, outcome_in, squeezed,
    status_in, turned_around,
};
use crate::cues;
use crate::probe::{Class, Fact, FileOp, Outcome, Polarity, Probe};
use crate::source::commands::{is_cut, without_setup};
use crate::source::done;
use crate::source::idents::is_hash;
use crate::source::rules::{dequoted, polarity};
use crate::text::{Shape, clip, content, ending, tokens};
use history::{History, Message, Part, Text};

/// A statement of the compacted history that the source contradicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// The kind of fact.
    pub class: Class,
    /// What the source says.
    pub expected: String,
    /// The line that says otherwise.
    pub line: String,
    /// Index of its message in the compacted history.
    pub message: usize,
    /// The words of the line that say so, if the source may have the same words.
    #[serde(skip)]
    pub(crate) words: Option<String>,
}

/// Maximum number of lines reported against one fact.
const AGAINST: usize = 8;

/// What the lines say about one fact.
#[derive(Default)]
struct Finding<'s> {
    kept: bool,
    /// The lines that say otherwise, with their words that do so if the source may have the same.
    against: Vec<(&'s Line, Option<&'s str>)>,
}

impl From<bool> for Finding<'_> {
    fn from(kept: bool) -> Self {
        Self { kept, against: Vec::new() }
    }
}

/// The compacted history, prepared for looking up facts.
pub(crate) struct Lookup<'a> {
    pub(crate) index: Index,
    /// Index of the first source message in the verbatim tail.
    pub(crate) split: usize,
    carried_over: CarriedOver,
    source: SourceContext<'a>,
    /// For each sentence of the index.
    read: Vec<OnceCell<SentenceMeaning>>,
    /// For each line of the index, its tokens and those of its labels.
    words: Vec<OnceCell<foldhash::HashSet<String>>>,
}

/// What a sentence says, whichever fact is looked for in it.
struct SentenceMeaning {
    /// The polarity of the sentence or of the labels above it.
    said: Option<Polarity>,
    /// The two things that it sets against each other.
    contrast: Option<(String, String)>,
}

/// Facts that the calls and outputs that were carried over still prove.
#[derive(Default)]
struct CarriedOver {
    files: HashMap<String, FileOp>,
    commands: HashMap<String, Outcome>,
    errors: HashMap<String, bool>,
    plan: HashSet<String>,
}

/// What the source calls things, and what its user said.
struct SourceContext<'a> {
    cwd: String,
    /// All commands, sorted, so that the longer ones that begin with a command follow it.
    commands: Vec<&'a str>,
    /// Sentences that the user really said.
    user: HashSet<String>,
}

impl<'a> Lookup<'a> {
    /// `replacement`: what is in place of the messages before `split`.
    pub(crate) fn new(source: &History, probes: &'a [Probe], replacement: &History, split: usize) -> Self {
        let known = source.messages().iter().flat_map(Message::texts).map(Text::as_str).collect();
        let index = Index::new(replacement.messages(), &known, probes.len());
        let mut carried_over = CarriedOver::default();
        for probe in done::probes(replacement) {
            match probe.fact {
                Fact::File { path, op, .. } => {
                    carried_over.files.insert(path, op);
                }
                Fact::Command { command, outcome, .. } => {
                    carried_over.commands.insert(command, outcome);
                }
                Fact::Error { signature, resolved, .. } => {
                    carried_over.errors.insert(signature, resolved.is_some());
                }
                Fact::Plan { item } => {
                    carried_over.plan.insert(item);
                }
                _ => {}
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
        let user = crate::source::said::sentences_of_the_user(source);
        let read = index.sentences.iter().map(|_| OnceCell::new()).collect();
        let words = index.lines.iter().map(|_| OnceCell::new()).collect();
        Self { index, split, carried_over, source: SourceContext { cwd, commands, user }, read, words }
    }

    /// Whether `probe` survives; contradictions are added to `against`.
    pub(crate) fn finds(&self, probe: &Probe, against: &mut Vec<Contradiction>) -> bool {
        let finding = match &probe.fact {
            Fact::Rule { text, polarity } => self.rule(text, Some(*polarity), 0.9, true),
            Fact::Tried { text } => self.rule(text, None, 0.8, false),
            Fact::Decision { question: None, choice, .. } => self.rule(choice, None, 0.8, false),
            Fact::Decision { question: Some(question), choice, superseded } => {
                self.answer(question, choice, superseded)
            }
            Fact::Words { text } => {
                let share = if probe.class == Class::Goal { 0.8 } else { 0.95 };
                self.index.stretch_with(&content(text), share).into()
            }
            Fact::File { path, op, done } => self.file(path, *op, done),
            Fact::Command { command, outcome, commit } => {
                let mut finding = self.command(command, outcome);
                let listed = |hash: &String| self.index.lines.iter().any(|it| lists_commit(it, hash));
                if commit.as_ref().is_some_and(listed) {
                    // A line that says that it failed is about an earlier run.
                    finding = Finding { kept: true, ..Finding::default() };
                }
                finding
            }
            Fact::Error { signature, resolved, unknown } => self.error(signature, *resolved, *unknown),
            Fact::Plan { item } => self.plan(item),
            Fact::Identifier { key, value } => self.identifier(key.as_deref(), value).into(),
        };
        against.extend(finding.against.into_iter().take(AGAINST).map(|(line, words)| Contradiction {
            words: words.map(str::to_owned),
            class: probe.class,
            expected: probe.text(),
            line: clip(&line.text, 300).to_string(),
            message: line.message,
        }));
        finding.kept
    }

    fn rule(&self, text: &str, wanted: Option<Polarity>, share: f64, of_user: bool) -> Finding<'_> {
        let needle = content(text);
        let mut finding = Finding::default();
        let own = wanted.or_else(|| polarity(text));
        let contrast = contrast(text);
        for at in self.index.sentences_with(&needle, share) {
            let (line, sentence) = &self.index.sentences[at];
            let line = &self.index.lines[*line];
            let SentenceMeaning { said, contrast: other } = self.read(at);
            let turned = contrast.as_ref().zip(other.as_ref()).is_some_and(|(a, b)| turned_around(a, b))
                || matches!(
                    (own, *said),
                    (Some(Polarity::Require), Some(Polarity::Forbid))
                        | (Some(Polarity::Forbid), Some(Polarity::Require))
                );
            if turned {
                if line.fresh && needle.len() >= 3 && !self.source.user.contains(sentence) {
                    finding.against.push((line, Some(sentence)));
                }
            } else if (line.of_user || !of_user) && (said.is_some() || own != Some(Polarity::Forbid)) {
                finding.kept = true;
            }
        }
        finding
    }

    /// What a sentence says, parsed once for all facts that are looked for in it.
    fn read(&self, at: usize) -> &SentenceMeaning {
        self.read[at].get_or_init(|| {
            let (line, sentence) = &self.index.sentences[at];
            let line = &self.index.lines[*line];
            let said = polarity(sentence)
                .or_else(|| polarity(&dequoted(sentence)))
                .or_else(|| self.index.labels(line).find_map(polarity));
            SentenceMeaning { said, contrast: contrast(sentence) }
        })
    }

    fn words(&self, line: usize) -> &foldhash::HashSet<String> {
        self.words[line].get_or_init(|| {
            let it = &self.index.lines[line];
            tokens(&it.text).into_iter().chain(self.index.labels(it).flat_map(tokens)).collect()
        })
    }

    fn answer(&self, question: &str, choice: &str, superseded: &[String]) -> Finding<'_> {
        let asked: HashSet<String> = content(question).into_iter().collect();
        let find = |choice: &str| -> Vec<&Line> {
            let needle = content(choice);
            let long = needle.len() >= 6;
            let rest: Vec<&String> = asked.iter().filter(|it| !needle.contains(it)).collect();
            let about = |line: usize| {
                let here = self.words(line);
                rest.iter().filter(|it| here.contains(**it)).count() * 2 >= rest.len()
            };
            let of_text = |it: &usize| self.index.lines[*it].origin == Origin::Text;
            let lines = self.index.lines_with(&needle, 0.8).filter(of_text);
            lines.filter(|it| long || about(*it)).map(|it| &self.index.lines[it]).collect()
        };
        let found = find(choice);
        // The words of a choice may also stand in the question of another line.
        let gives = |line: &Line, choice: &str| {
            line.text.split_once('→').is_none_or(|(_, answer)| {
                let (needle, answer) = (content(choice), content(answer));
                needle.iter().filter(|it| answer.contains(it)).count() * 5 >= needle.len() * 4
            })
        };
        let is_wrong = |line: &Line, choice: &str| {
            let lower = line.text.to_lowercase();
            let right = found.iter().any(|it| std::ptr::eq(*it, line));
            line.fresh && !right && gives(line, choice) && !cues::PAST.iter().any(|it| lower.contains(it))
        };
        let mut against = Vec::new();
        for choice in superseded {
            against.extend(find(choice).into_iter().filter(|it| is_wrong(it, choice)).map(|it| (it, None)));
        }
        Finding { kept: !found.is_empty(), against }
    }

    fn file(&self, path: &str, op: FileOp, done: &[FileOp]) -> Finding<'_> {
        /// Beginnings of lines whose words for operations are about a call, a symbol or a commit subject.
        const OTHER: [&str; 3] = ["refused:", "symbols", "git: commits"];
        let fine: Vec<FileOp> = match op {
            FileOp::Edited | FileOp::Created => {
                let changes = done.iter().filter(|it| matches!(it, FileOp::Edited | FileOp::Created));
                changes.copied().chain([op]).collect()
            }
            // More than reading can only come from git's lists.
            FileOp::Read => done.to_vec(),
            FileOp::Deleted => vec![op],
        };
        let mut kept = self.carried_over.files.get(path).is_some_and(|it| fine.contains(it));
        let aliases = self.aliases(path);
        // What is planned does not tell what was done.
        let planned = |it: &Line| self.index.labels(it).any(|it| it.to_lowercase().contains("approved plan"));
        let mut wrong = Vec::new();
        for line in self.index.around(path) {
            if line.origin != Origin::Text {
                continue;
            }
            let mut names = aliases.iter().map(String::as_str).chain(below_root(&line.text, path));
            let Some((from, to)) = names.find_map(|it| find_path(&line.text, it)) else { continue };
            let mut said = ops_in_line(&line.text, from, to);
            if said.is_empty() {
                said = self.index.labels(line).map(ops_in).find(|it| !it.is_empty()).unwrap_or_default();
            }
            if said.is_empty() {
                continue;
            }
            if said.iter().any(|it| fine.contains(it)) {
                kept = true;
            } else if line.fresh
                && !quoted(&line.text, from)
                && !planned(line)
                && !OTHER.iter().any(|it| line.text.trim_start_matches("- ").starts_with(it))
            {
                // Contradicted only if it was never done, or if the last operation undid it. A true but older
                // statement is merely not enough.
                let never = !said.iter().any(|it| done.contains(it));
                let gone = op == FileOp::Deleted && !said.contains(&FileOp::Read);
                if never || gone {
                    let words = (!gone).then(|| sentence_at(&line.text, from, to));
                    wrong.push((line, said.contains(&FileOp::Deleted), words));
                }
            }
        }
        kept = kept || op == FileOp::Deleted && self.lists_deleted_folder(path);
        let wrong = wrong.into_iter().filter(|(_, deletes, _)| !kept || *deletes);
        Finding { kept, against: wrong.map(|(line, _, words)| (line, words)).collect() }
    }

    /// Whether a list of deleted files names a folder that the file was in.
    fn lists_deleted_folder(&self, path: &str) -> bool {
        let lists = |it: &&Line| it.text.trim_start_matches("- ").starts_with("deleted: ");
        let named = |folder: &str| {
            self.index
                .around(folder)
                .iter()
                .filter(|it| lists(it))
                .any(|it| find_path(&it.text, folder).is_some())
        };
        path.match_indices('/').filter(|it| it.0 > 0).any(|it| named(&path[..it.0]))
    }

    fn aliases(&self, path: &str) -> Vec<String> {
        let mut out = vec![path.to_string()];
        let absolute = path.starts_with(['/', '~']) || path.get(1..3) == Some(":/");
        if !absolute && !self.source.cwd.is_empty() {
            out.push(format!("{}/{path}", self.source.cwd.trim_end_matches('/')));
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

    fn command(&self, command: &str, outcome: &Outcome) -> Finding<'_> {
        let same = |it: &Outcome| {
            it.ok == outcome.ok && it.failed.or(outcome.failed) == outcome.failed.or(it.failed)
        };
        let told: Vec<_> = self.endings_told(command).collect();
        let kept = self.carried_over.commands.get(command).is_some_and(same)
            || told.iter().any(|(_, said)| agrees(said, outcome));
        // A failure that was resolved is that of an earlier run.
        let earlier = |line: &Line| outcome.ok && line.text.contains(" resolved");
        // What the user asked for is no outcome: "`make` must exit 0".
        let quotes = |line: &Line| line.of_user || line.text.starts_with('"');
        let wrong =
            told.into_iter().filter(|(line, _)| !kept && line.fresh && !earlier(line) && !quotes(line));
        Finding { kept, against: wrong.map(|(line, _)| (line, None)).collect() }
    }

    /// The lines that say how a command ended.
    pub(crate) fn endings_told(&self, command: &str) -> impl Iterator<Item = (&Line, StatedOutcome)> {
        let texts = self.index.around(command).into_iter().filter(|it| it.origin == Origin::Text);
        texts.filter_map(move |line| {
            let (from, to) = self.find_command(&line.text, command)?;
            let after = self.until_next_command(behind_its_quotes(&line.text, from, to));
            // An earlier sentence is about something else.
            let before = ending(&line.text[..from], 240);
            let before = before.rsplit_once(". ").map_or(before, |it| it.1);
            let said = outcome_in(after)
                .or_else(|| outcome_in(before))
                .or_else(|| self.index.labels(line).filter(|it| !lists(it)).find_map(outcome_in));
            Some((line, said?))
        })
    }

    /// What follows a command in its line, up to the next command: up to a backtick or, after a comma or
    /// semicolon, a word with which some command begins.
    fn until_next_command<'t>(&self, after: &'t str) -> &'t str {
        let text = after.trim_start_matches('`');
        let quoted = text.find('`').unwrap_or(text.len());
        let listed = text.match_indices([',', ';']).map(|it| it.0).find(|at| {
            let next = text[at + 1..].split_whitespace().next().unwrap_or_default();
            let from = self.source.commands.partition_point(|it| *it < next);
            !next.is_empty()
                && self.source.commands.get(from).is_some_and(|it| it.split(' ').next() == Some(next))
        });
        let cut = &text[..quoted.min(listed.unwrap_or(text.len()))];
        // A mark right before the next command belongs to that one.
        let marks = ['✓', '✔', '✅', '✗', '✘', '❌', ' '];
        if cut.len() < text.len() { cut.trim_end_matches(marks) } else { cut }
    }

    /// Where a line contains `command`, whole or cut by an ellipsis after 40 characters, and not as the
    /// beginning of another command.
    fn find_command(&self, line: &str, command: &str) -> Option<(usize, usize)> {
        let longer: Vec<&str> = {
            let from = self.source.commands.partition_point(|it| *it <= command);
            self.source.commands[from..]
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
            bounded(before)
                && (bounded(after) || is_cut(command))
                && !is_link(&line[..*at])
                && !longer.iter().any(|it| rest.starts_with(it) || is_shortened(rest, command, it))
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

    fn error(&self, signature: &str, resolved: Option<usize>, unknown: bool) -> Finding<'_> {
        let mut kept = self.carried_over.errors.get(signature).is_some_and(|it| *it == resolved.is_some());
        let mut against = Vec::new();
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
                        against.push((line, None));
                    }
                }
                (Some(_), Some(true)) | (None, Some(false) | None) => kept = true,
                (Some(_), Some(false) | None) | (None, Some(true)) => {}
            }
        }
        Finding { kept, against }
    }

    fn plan(&self, item: &str) -> Finding<'_> {
        let mut kept = self.carried_over.plan.contains(item);
        let mut against = Vec::new();
        let needle = content(item);
        let own: HashSet<String> = tokens(item).into_iter().collect();
        for at in self.index.sentences_with(&needle, 0.8) {
            let line = &self.index.lines[self.index.sentences[at].0];
            match self.status(line, &own) {
                // Once a line says that it is open, later lines do not contradict it.
                Some(false) => {
                    kept = true;
                    break;
                }
                Some(true) if line.fresh && !kept => against.push((line, None)),
                Some(true) | None => {}
            }
        }
        Finding { kept, against }
    }

    /// Whether a line, or the labels above it, say that something is settled or still open. `own`: words of
    /// the thing itself.
    fn status(&self, line: &Line, own: &HashSet<String>) -> Option<bool> {
        // Words inside a command do not tell the status.
        let said = line.text.split('`').step_by(2).collect::<Vec<_>>().join("` `");
        status_in(&said, own).or_else(|| self.index.labels(line).find_map(|it| status_in(it, own)))
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
                // Git's abbreviated hash.
                (7..value.len()).any(|len| {
                    self.index.around(&value[..len]).iter().any(|it| find_bounded(&it.text, &value[..len]))
                })
            }
    }
}

/// Whether the text up to the closing backtick is an abbreviation of `longer` rather than of `command`.
fn is_shortened(text: &str, command: &str, longer: &str) -> bool {
    let quoted = text.split('`').next().unwrap_or_default().trim_end();
    command.len() < quoted.len() && quoted.len() < text.len() && longer.starts_with(quoted)
}

/// The path as written in a line that names a directory above it once: `edited in /w/x: src/a.rs`.
fn below_root<'p>(line: &str, path: &'p str) -> Option<&'p str> {
    let (_, rest) = line.split_once(" in /")?;
    let root = rest.split_once(": ")?.0;
    path.strip_prefix('/')?.strip_prefix(root)?.strip_prefix('/')
}

/// Whether the text at `at` is quoted: a quotation does not state what was done.
fn quoted(line: &str, at: usize) -> bool {
    line[..at].contains('"') && line[at..].contains('"')
        || line[..at].contains('“') && line[at..].contains('”')
}

/// The line from `to` on; if the command at `from..to` continues in its code span, from the span's end on.
fn behind_its_quotes(line: &str, from: usize, to: usize) -> &str {
    let rest = &line[to..];
    let open = line[..from].matches('`').count() % 2 == 1;
    match rest.find('`') {
        Some(at) if open => &rest[at..],
        Some(_) | None => rest,
    }
}

/// Whether the command after `before` is a later one of a chain in a code span: how the chain ended does not
/// tell how it ended.
fn is_link(before: &str) -> bool {
    let open = before.matches('`').count() % 2 == 1;
    let chain = before.rsplit('`').next().unwrap_or_default();
    open && !without_setup(chain).trim().is_empty()
}

/// The sentence around `from..to` of a line.
fn sentence_at(line: &str, from: usize, to: usize) -> &str {
    let ends = [". ", "; "];
    let start = ends.iter().filter_map(|it| line[..from].rfind(it)).max().map_or(0, |it| it + 2);
    let end = ends.iter().filter_map(|it| line[to..].find(it)).min().map_or(line.len(), |it| to + it);
    &line[start..end]
}

/// Whether a line says that the commit `hash` was made: as git does, or in a list of commits.
fn lists_commit(line: &Line, hash: &str) -> bool {
    line.text.contains(hash) && (line.text.starts_with('[') || line.text.contains("commit"))
}

/// Whether a heading names several things, as "Commands and errors", so that it tells no outcome of one.
fn lists(heading: &str) -> bool {
    heading.contains([',', '&', '/']) || tokens(heading).iter().any(|it| it == "and" || it == "or")
}

/// Each contradiction once, in order, without those in the source's own words: the source cannot contradict
/// these, only our reading of it.
pub(crate) fn distinct(all: Vec<Contradiction>, source: &History) -> Vec<Contradiction> {
    let mut seen = HashSet::new();
    all.into_iter()
        .filter(|it| seen.insert((it.message, it.line.clone(), it.expected.clone())))
        .filter(|it| !it.words.as_deref().is_some_and(|words| is_quoted(words, source)))
        .collect()
}

/// Whether somebody said a sentence word for word, or each piece of it if its middle was cut.
fn is_quoted(sentence: &str, source: &History) -> bool {
    /// Minimum bytes of a piece that identifies whose words it is.
    const LEAST: usize = 12;
    let pieces: Vec<String> = sentence.split('…').map(squeezed).filter(|it| it.len() >= LEAST).collect();
    let said = |piece: &String| {
        let texts = source.messages().iter().flat_map(|it| &it.parts);
        texts
            .filter_map(|it| if let Part::Text(it) = it { Some(it.as_str()) } else { None })
            .any(|it| squeezed(it).contains(piece))
    };
    !pieces.is_empty() && pieces.iter().all(said)
}

/// Whether a line is worth judging as a statement: new text that is not a label.
pub(crate) fn states(line: &Line) -> bool {
    line.fresh && line.origin == Origin::Text && line.shape != Shape::Label
}
