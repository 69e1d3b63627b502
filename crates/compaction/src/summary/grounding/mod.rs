//! Corrects a summary by the ledger: facts that it must hold and does not are added word for word, and
//! sentences without a source are removed and counted. Pure.

pub mod claims;
pub mod lexicon;

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{ClaimPlace, Detail, Fact, Ledger, Polarity, Topic, flat};
use crate::profile::{Section, SummaryShape, SummarySpec, SummaryStyle};
use crate::summary::check::Parsed;
use crate::summary::offline;
use crate::summary::request::SummaryRequest;
use claims::{NEAR, Sources, Unfounded, agrees, negations, paths};
use lexicon::{keys, overlap, sentences, share};

fn holds(spec: &SummarySpec, section: usize) -> &[Topic] {
    spec.sections.get(section).map_or(&[], |it| &it.holds)
}

/// A usable summary, and what was changed to make it so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroundedSummary {
    pub text: String,
    /// Facts that were added word for word.
    pub added: usize,
    /// Sentences that were removed: why, and their text.
    pub removed: Vec<(Unfounded, String)>,
    /// Misspelled paths that were corrected: before, after.
    pub renamed: Vec<(String, String)>,
    /// Lines that were cut to fit the length.
    pub cut: usize,
}

impl GroundedSummary {
    /// The changes, as warnings.
    pub fn notes(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.added > 0 {
            out.push(format!("the model left out {} facts; they were added word for word", self.added));
        }
        let mut why: BTreeMap<Unfounded, usize> = BTreeMap::new();
        for (it, _) in &self.removed {
            *why.entry(*it).or_default() += 1;
        }
        out.extend(
            why.iter()
                .map(|(it, count)| format!("{count} sentences of the model were removed as {}", it.name())),
        );
        if let Some((from, to)) = self.renamed.first() {
            out.push(format!("{} misspelt paths were put right, such as {from} → {to}", self.renamed.len()));
        }
        if self.cut > 0 {
            out.push(format!("{} lines were cut, the least important first, to keep the length", self.cut));
        }
        out
    }
}

/// Title of the section with the added facts.
const ADDED: &str = "Facts checked against the session";

/// Percent of the budget that the added facts may take.
const ADDED_SHARE: u64 = 50;

/// Corrects a summary. Added facts count toward its maximum of tokens.
pub fn mend(mut parsed: Parsed, request: &SummaryRequest<'_>) -> GroundedSummary {
    let sources = Sources::new(request.history, request.ledger);
    let mut out = GroundedSummary::default();
    for (number, body) in &mut parsed.sections {
        *body = founded(body, ClaimPlace::of(holds(request.spec, *number)), &sources, &mut out);
    }
    parsed.sections.retain(|it| !it.1.trim().is_empty() || request.spec.keep_empty);
    let missing = missing(&parsed, request);
    out.added = missing.facts.len();
    let facts = added(&missing, request);
    let room = request.max_tokens.saturating_sub((request.count)(&facts));
    out.cut = shorten(&mut parsed, request, room);
    out.text = joined(&parsed.render(request.spec), &facts, request.spec);
    out
}

/// A section's body without the sentences that have no source.
fn founded(body: &str, place: ClaimPlace, sources: &Sources<'_>, out: &mut GroundedSummary) -> String {
    let mut lines = Vec::new();
    let mut code = false;
    for line in body.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        // A code block is a quotation: orders may hide there, but its lines are not judged as rules or tasks.
        let place = if code { ClaimPlace::Report } else { place };
        let mut line = line.to_owned();
        let whole = line.clone();
        for path in paths(&whole).into_iter().chain(sources.bare_paths(&whole)) {
            if sources.has(path) {
                continue;
            }
            match sources.nearest_path(path) {
                Some(right) => {
                    line = line.replace(path, right);
                    out.renamed.push((path.to_owned(), right.to_owned()));
                }
                None => {
                    out.removed.push((Unfounded::Path, line.trim().to_owned()));
                    line.clear();
                    break;
                }
            }
        }
        for sentence in sentences(&line.clone()) {
            if let Some(why) = sources.unfounded(sentence, place) {
                out.removed.push((why, sentence.to_owned()));
                line = line.replacen(sentence, "", 1);
            }
        }
        if line.chars().any(char::is_alphanumeric) || line.trim_start().starts_with("```") {
            lines.push(line.trim_end().to_owned());
        }
    }
    lines.join("\n")
}

struct Sentence<'a> {
    text: &'a str,
    keys: BTreeSet<String>,
}

/// The protected facts that the summary does not state.
fn missing(parsed: &Parsed, request: &SummaryRequest<'_>) -> Ledger {
    let whole: String = parsed
        .sections
        .iter()
        .map(|it| it.1.as_str())
        .chain(request.pins.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join("\n");
    let flat = folded(&whole);
    let mut lines: Vec<Sentence<'_>> = Vec::new();
    for it in whole.lines() {
        let mut add = |text| lines.push(Sentence { text, keys: keys(text) });
        add(it);
        let parts = sentences(it);
        if parts.len() > 1 {
            parts.into_iter().for_each(add);
        }
    }
    let asked: BTreeSet<String> = parsed
        .sections
        .iter()
        .filter(|it| {
            holds(request.spec, it.0).iter().any(|it| {
                matches!(
                    it,
                    Topic::Last
                        | Topic::Goal
                        | Topic::Requests
                        | Topic::UserMessages
                        | Topic::Open
                        | Topic::Active
                        | Topic::Current
                )
            })
        })
        .flat_map(|it| keys(&it.1))
        .collect();
    let within = request.ledger.facts.iter().filter(|it| request.region.contains(&it.message));
    let facts = within.filter(|it| protected(it) && !is_stated(it, &lines, &asked, &flat)).cloned().collect();
    Ledger { facts, directory: request.ledger.directory.clone(), ..Ledger::default() }
}

/// Whether no summary may omit a fact.
pub fn protected(fact: &Fact) -> bool {
    match fact.topic {
        Topic::Constraints | Topic::Directives | Topic::Last | Topic::Active | Topic::Open => true,
        Topic::Decisions => !matches!(fact.detail, Detail::Choice { superseded: Some(_), .. }),
        Topic::Files => matches!(fact.detail, Detail::File { op, .. } if op.changes()),
        _ => false,
    }
}

fn folded(text: &str) -> String {
    flat(text).to_lowercase()
}

fn is_stated(fact: &Fact, lines: &[Sentence<'_>], asked: &BTreeSet<String>, whole: &str) -> bool {
    if whole.contains(&folded(&fact.text)) && fact.topic != Topic::Files {
        return true;
    }
    let mine = keys(&fact.text);
    if mine.is_empty() && fact.topic != Topic::Files && fact.topic != Topic::Decisions {
        return true;
    }
    let near = |least: f64, like: &dyn Fn(&Sentence<'_>) -> bool| {
        lines.iter().any(|it| overlap(&mine, &it.keys) >= least && like(it))
    };
    match (&fact.detail, fact.topic) {
        (_, Topic::Files) => {
            let name = fact.text.rsplit('/').next().unwrap_or(&fact.text).to_lowercase();
            whole.match_indices(&name).any(|(at, _)| {
                let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
                !whole[..at].ends_with(part) && !whole[at + name.len()..].starts_with(part)
            })
        }
        // A line that states a rule and one that breaks it share all words but the negation.
        (Detail::Rule(Polarity::Forbid), _) => near(NEAR, &|line| {
            agrees(&fact.text, line.text) && (negations(line.text) > 0 || negations(&fact.text) == 0)
        }),
        (_, Topic::Constraints | Topic::Directives) => near(NEAR, &|line| agrees(&fact.text, line.text)),
        (Detail::Choice { asked, means, .. }, _) => {
            let about = |text: &Option<String>| text.as_deref().map(keys).unwrap_or_default();
            let all: BTreeSet<String> =
                [mine.clone(), about(means), about(asked)].into_iter().flatten().collect();
            let means = about(means);
            lines.iter().any(|it| {
                (mine.len() > 1 && share(&mine, &it.keys) >= 0.4)
                    || (means.len() > 1 && share(&means, &it.keys) >= 0.4)
                    || share(&all, &it.keys) >= 0.34
                    || (it.keys.len() > 2 && share(&it.keys, &all) >= 0.6)
            })
        }
        (_, Topic::Last) => share(&mine, asked) >= 0.5 || mine.intersection(asked).count() >= 6,
        (_, _) => near(NEAR, &|_| true),
    }
}

/// The added facts as a section, in the words and order of the offline summary.
fn added(missing: &Ledger, request: &SummaryRequest<'_>) -> String {
    if missing.facts.is_empty() {
        return String::new();
    }
    let holds =
        vec![Topic::Constraints, Topic::Decisions, Topic::Last, Topic::Active, Topic::Open, Topic::Files];
    let title = match request.spec.shape {
        SummaryShape::Xml => "checked_facts".to_owned(),
        SummaryShape::Markdown | SummaryShape::Plain => ADDED.to_owned(),
    };
    let spec = SummarySpec {
        sections: vec![Section { title, holds, ..Section::default() }],
        root: None,
        keep_empty: false,
        ..request.spec.clone()
    };
    let ask = offline::OfflineRequest {
        region: request.region.clone(),
        cleared: &[],
        kept: &[],
        spec: &spec,
        max_tokens: request.max_tokens.saturating_mul(ADDED_SHARE) / 100,
        budget_for_shares: None,
        style: SummaryStyle::Detailed,
        focus: None,
        pins: &[],
        header: None,
    };
    offline::write(request.history, missing, &ask, request.count)
}

/// Sections with a lower rank are cut later.
fn rank(holds: &[Topic]) -> usize {
    holds.iter().map(|it| it.row().rank).min().unwrap_or(usize::MAX)
}

/// Cuts lines from the end of the least important section until everything fits; returns how many.
fn shorten(parsed: &mut Parsed, request: &SummaryRequest<'_>, room: u64) -> usize {
    let mut over = (request.count)(&parsed.render(request.spec)).saturating_sub(room);
    let mut cut = 0;
    while over > 0 {
        let Some(at) = (0..parsed.sections.len())
            .max_by_key(|at| (rank(holds(request.spec, parsed.sections[*at].0)), *at))
        else {
            break;
        };
        let body = &mut parsed.sections[at].1;
        // Cuts until the sum of the lines is enough, then counts the whole again.
        while over > 0 && !body.trim().is_empty() {
            let kept = body.trim_end().rsplit_once('\n').map_or(0, |it| it.0.len());
            over = over.saturating_sub((request.count)(&body[kept..]).max(1));
            body.truncate(kept);
            cut += 1;
        }
        if body.trim().is_empty() {
            parsed.sections.remove(at);
        }
        over = (request.count)(&parsed.render(request.spec)).saturating_sub(room);
    }
    cut
}

/// The summary and the added facts, within the root element if there is one.
fn joined(summary: &str, facts: &str, spec: &SummarySpec) -> String {
    let text = [summary, facts].into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("\n\n");
    match spec.root.as_deref().filter(|_| spec.shape == SummaryShape::Xml) {
        Some(root) => format!("<{root}>\n{text}\n</{root}>"),
        None => text,
    }
}
