//! The layout of the summary: which lines have room, and where they stand.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::line::{self, SummaryLine};
use super::priority::{self, LineKind, Tier};
use super::select::patterns;
use super::style::LineStyle;
use super::{Candidate, OfflineRequest};
use crate::facts::{self, Detail, Fact, FileOp, Topic, Voice};
use crate::profile::{Section, SummaryShape};
use history::History;

/// Percent of the room that a last request quoted whole may take: files and the plan need some, too.
const MAX_WHOLE_PERCENT: u64 = 70;

/// Whether a rule is part of a prompt.
pub(super) fn contains_rule(prompt: &Fact, rule: &Fact) -> bool {
    rule.message == prompt.message && prompt.text.contains(rule.text.as_str())
}

/// Whether the line of a prompt contains a rule that is part of the prompt.
fn quotes(line: &SummaryLine, prompt: &Fact, rule: &Fact) -> bool {
    contains_rule(prompt, rule) && line.text.contains(&facts::flat(&rule.text))
}

/// Whether the line of the last request contains a path.
fn is_quoted(items: &[Candidate], path: &str) -> bool {
    let last = items.iter().filter(|it| it.kind == LineKind::Last);
    last.filter_map(|it| it.now.as_ref()).any(|(line, _)| line.text.contains(path))
}

/// How outdated a line may be, in the order in which lines are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Age {
    Current,
    /// Found by the model in this turn, before it changed or ran something.
    BeforeWork,
    /// Reported by the model in an earlier turn.
    EarlierTurn,
    /// Told only by an earlier summary.
    EarlierSummary,
}

impl Age {
    /// The label before such lines. `facts` skips it when it reads them back.
    fn label(self) -> &'static str {
        match self {
            Self::Current => "",
            Self::BeforeWork => "Findings before later work (may be outdated):\n",
            Self::EarlierTurn => "Reports of earlier turns (may be outdated):\n",
            Self::EarlierSummary => "From an earlier summary:\n",
        }
    }
}

/// Maximum bytes of a line that lists commands: the label in front, which holds for all, must stay near.
const MAX_COMMANDS_LINE: usize = 240;

/// A list as lines of at most `bytes`, each with at least one piece.
fn listed<'a>(pieces: &'a [Cow<'a, str>], bytes: usize) -> Vec<&'a [Cow<'a, str>]> {
    let (mut out, mut from, mut length) = (Vec::new(), 0, 0_usize);
    for (at, piece) in pieces.iter().enumerate() {
        if at > from && length.saturating_add(piece.len()) > bytes {
            out.push(&pieces[from..at]);
            (from, length) = (at, 0);
        }
        length += piece.len() + ", ".len();
    }
    out.push(&pieces[from..]);
    out
}

/// Joins names, each with the number of its message behind it. Of neighbours of the same message, only the last one has
/// it: `a.rs, b.rs [#3], c.rs [#5]`.
fn join_names(pieces: &[Cow<str>]) -> String {
    let of = |it: &str| it[without_ref(it).len()..].to_owned();
    let shared = |at: usize| pieces.get(at + 1).is_some_and(|next| of(next) == of(&pieces[at]));
    let names = pieces.iter().enumerate();
    names.map(|(at, it)| if shared(at) { without_ref(it) } else { it }).collect::<Vec<_>>().join(", ")
}

/// A line or piece without the number of its message at its end, ` [#3]`.
fn without_ref(text: &str) -> &str {
    text.rsplit_once(" [#").filter(|it| it.1.ends_with(']')).map_or(text, |it| it.0)
}

/// The section, label and group of lines that are joined.
type Label = (usize, String, String);

/// Minimum characters of a request: less says nothing.
const MIN_REQUEST_CHARS: usize = 40;

/// Maximum characters of a prompt that also stays behind the summary.
const MAX_KEPT_PROMPT: usize = 300;

/// Maximum characters of a goal whose message is behind the summary.
const MAX_TAIL_GOAL: usize = 200;

/// What has been admitted so far.
#[derive(Default)]
struct Admitted {
    /// Indexes of the items, in the order of admission.
    order: Vec<usize>,
    /// Tokens spent by kind of line.
    spent: HashMap<LineKind, u64>,
    /// Sections whose title is counted.
    open: HashSet<usize>,
    /// The message of the last piece with each label.
    labels: HashMap<Label, usize>,
    /// Ages whose label is counted.
    ages: HashSet<(usize, Topic, Age)>,
}

pub(super) struct Layout<'a, 'c> {
    pub(super) ask: &'a OfflineRequest<'a>,
    pub(super) style: LineStyle<'a>,
    /// Number of user messages to quote.
    pub(super) quoted: usize,
    /// Tokens by text: the same text is often measured twice, and counting is the most expensive step here.
    pub(super) costs: HashMap<String, u64>,
    pub(super) count: &'c dyn Fn(&str) -> u64,
    pub(super) used: u64,
}

impl Layout<'_, '_> {
    fn age(&self, fact: &Fact) -> Age {
        match (fact.voice(), fact.topic) {
            (_, Topic::Replies) if self.style.requests.is_some() => Age::Current,
            (
                Voice::Summary,
                Topic::Done | Topic::Findings | Topic::Replies | Topic::Tried | Topic::Untested,
            ) => Age::EarlierSummary,
            (Voice::Model, Topic::Replies) => Age::EarlierTurn,
            (Voice::Model, Topic::Findings | Topic::Untested)
                if self.style.last_work.is_some_and(|it| it > fact.message) =>
            {
                Age::BeforeWork
            }
            _ => Age::Current,
        }
    }

    pub(super) fn measure(&mut self, text: &str) -> u64 {
        if let Some(known) = self.costs.get(text) {
            return *known;
        }
        let cost = (self.count)(text);
        self.costs.insert(text.into(), cost);
        cost
    }

    /// Admits lines tier by tier; returns their indexes in the order of admission.
    pub(super) fn fill(&mut self, items: &mut [Candidate], history: &History) -> Vec<usize> {
        debug_assert!(self.ask.region.end <= history.messages().len());
        let mut admitted = Admitted::default();
        let mut by_kind = self.by_kind(items);
        self.admit_whole(items, &mut by_kind, &mut admitted);
        // What a sealed compaction replaced is mostly over: its details get the room that is left.
        let sealed = history.messages().iter().rposition(|it| it.replaced.is_some());
        let tiers = || priority::tiers_of(self.ask.style, self.ask.budget_for_shares.is_some());
        for (late, tier) in tiers().map(|it| (false, it)).chain(tiers().map(|it| (true, it))) {
            for &number in by_kind.get(&tier.kind).into_iter().flatten() {
                let item = &items[number];
                let is_late = sealed == Some(item.fact.message) && tier.kind.is_detail();
                let is_told = tier.kind == LineKind::Asked && is_quoted(items, &item.fact.text)
                    || super::is_in_line_of_message(item, items.iter(), self.ask);
                if is_late == late && !is_told {
                    self.admit(number, items, tier, &mut admitted);
                }
                if matches!(tier.kind, LineKind::Goal | LineKind::Last) {
                    self.drop_contained(items, &mut admitted);
                }
            }
        }
        admitted.order
    }

    /// Removes directives that a longer line now contains, and frees their room.
    fn drop_contained(&mut self, items: &mut [Candidate], admitted: &mut Admitted) {
        let told = |it: &usize| super::is_in_line_of_message(&items[*it], items.iter(), self.ask);
        let told: Vec<usize> = admitted.order.iter().copied().filter(told).collect();
        admitted.order.retain(|it| !told.contains(it));
        for number in told {
            let cost = items[number].now.take().map_or(0, |it| it.1);
            self.used -= cost;
            *admitted.spent.entry(items[number].kind).or_default() -= cost;
        }
    }

    /// The indexes of the items by kind, most important first.
    fn by_kind(&self, items: &[Candidate]) -> HashMap<LineKind, Vec<usize>> {
        let mut by_kind: HashMap<LineKind, Vec<usize>> = HashMap::new();
        for (number, item) in items.iter().enumerate() {
            by_kind.entry(item.kind).or_default().push(number);
        }
        let first_files = patterns(&self.ask.spec.first_files);
        let first = |fact: &Fact| {
            let at = first_files.iter().position(|it| it.is_match(&fact.text));
            at.filter(|_| fact.topic == Topic::Files).unwrap_or(usize::MAX)
        };
        for numbers in by_kind.values_mut() {
            numbers.sort_by_cached_key(|it| {
                let fact = items[*it].fact;
                (!items[*it].focused, first(fact), priority::rank(fact))
            });
        }
        by_kind
    }

    /// Admits a request that must be quoted whole, if there is one; rules in it need no lines of their own.
    fn admit_whole(
        &mut self,
        items: &mut [Candidate],
        by_kind: &mut HashMap<LineKind, Vec<usize>>,
        admitted: &mut Admitted,
    ) {
        let Some((number, line, cost)) = self.whole(items) else { return };
        let fact = items[number].fact;
        for kind in [LineKind::Rule, LineKind::Directive] {
            if let Some(orders) = by_kind.get_mut(&kind) {
                orders.retain(|it| !quotes(&line, fact, items[*it].fact));
            }
        }
        let title = self.title(items[number].section);
        let cost = cost + self.measure(&title);
        self.used += cost;
        admitted.spent.insert(items[number].kind, cost);
        admitted.open.insert(items[number].section);
        admitted.order.push(number);
        items[number].now = Some((line, cost));
    }

    /// Admits or lengthens the line of an item if there is room.
    fn admit(&mut self, number: usize, items: &mut [Candidate], tier: &Tier, admitted: &mut Admitted) {
        let item = &items[number];
        let cap = self.ask.budget_for_shares.unwrap_or(0).max(self.ask.max_tokens) * tier.share / 100;
        let age = (item.section, item.topic, self.age(item.fact));
        let mut around = 0;
        if !admitted.open.contains(&item.section) {
            around += self.measure(&self.title(item.section));
        }
        if age.2 != Age::Current && !admitted.ages.contains(&age) {
            around += self.measure(age.2.label());
        }
        let before = item.now.as_ref().map_or(0, |it| it.1);
        let kind = admitted.spent.entry(tier.kind).or_default();
        let room = (self.ask.max_tokens + before).saturating_sub(self.used);
        let room = room.min((cap + before).saturating_sub(*kind)).saturating_sub(around);
        // Only the first line of a kind is cut: others would take the room that it may still grow into.
        let cuts = tier.cut_to_fit && *kind == before;
        let Some((line, label, cost)) = self.line_within(item, tier.chars, cuts, room, &admitted.labels)
        else {
            return;
        };
        let cost = cost + around;
        self.used = self.used + cost - before;
        *kind = *kind + cost - before;
        admitted.open.insert(item.section);
        admitted.ages.insert(age);
        let message = item.fact.message;
        admitted.labels.extend(label.map(|it| (it, message)));
        // Beside its file, a symbol needs no label.
        let names = super::section_of(&self.ask.spec.sections, Topic::Identifiers);
        if let Some((names, file)) = names.zip(file_with_symbols(item.fact)) {
            admitted.labels.insert((names, line::symbols_in(file), String::new()), message);
        }
        if before == 0 {
            admitted.order.push(number);
        }
        items[number].now = Some((line, cost));
    }

    /// The line of an item with at most `chars` characters of its text, if it is longer than the current one
    /// and costs at most `room`. `cuts`: shortens the text until it fits.
    fn line_within(
        &mut self,
        item: &Candidate,
        mut chars: usize,
        cuts: bool,
        room: u64,
        labels: &HashMap<Label, usize>,
    ) -> Option<(SummaryLine, Option<Label>, u64)> {
        if self.ask.stays(item.fact) && item.fact.voice() == Voice::User {
            chars = chars.min(MAX_KEPT_PROMPT);
        }
        if item.fact.message >= self.ask.region.end && item.fact.topic == Topic::Goal {
            chars = chars.min(MAX_TAIL_GOAL);
        }
        loop {
            let line = line::line(item.fact, item.ended, chars, &self.style);
            // A line only ever grows.
            if item.now.as_ref().is_some_and(|it| it.0.text.len() >= line.text.len()) {
                return None;
            }
            let label = line.label.clone().map(|it| (item.section, it, line.group.clone()));
            let joins = label.as_ref().and_then(|it| labels.get(it));
            // In other lists, pieces of the same message may not be neighbours.
            let shares_ref = item.topic == Topic::Identifiers && joins == Some(&item.fact.message);
            let piece = if shares_ref { without_ref(&line.text) } else { &line.text };
            let cost = self.cost(piece, line.label.as_deref(), joins.is_some());
            if cost <= room {
                return Some((line, label, cost));
            }
            // Shortens in proportion to the cost, by an eighth at least.
            let length = chars.min(item.fact.text.chars().count());
            chars = (length * room as usize / cost as usize).min(length - length / 8);
            if !cuts || chars < MIN_REQUEST_CHARS {
                return None;
            }
        }
    }

    /// The last request, if it fits whole but not beside separate lines for the rules in it.
    fn whole(&mut self, items: &[Candidate]) -> Option<(usize, SummaryLine, u64)> {
        let room = self.ask.max_tokens.saturating_sub(self.used) * MAX_WHOLE_PERCENT / 100;
        let asked = |it: &Candidate| {
            it.kind == LineKind::Last && it.fact.voice() == Voice::User && !self.ask.stays(it.fact)
        };
        let number = items.iter().rposition(asked)?;
        let fact = items[number].fact;
        let line = line::line(fact, None, usize::MAX, &self.style);
        let cost = self.cost(&line.text, line.label.as_deref(), false);
        if cost > room {
            return None;
        }
        let rules: Vec<&Fact> = items
            .iter()
            .filter(|it| {
                matches!(it.kind, LineKind::Rule | LineKind::Directive) && quotes(&line, fact, it.fact)
            })
            .map(|it| it.fact)
            .collect();
        let apart = rules.iter().map(|it| {
            let line = line::line(it, None, 450, &self.style);
            self.cost(&line.text, line.label.as_deref(), false)
        });
        let apart: u64 = apart.sum();
        (apart > 0 && cost + apart > room).then_some((number, line, cost))
    }

    /// Tokens of a line, or of its piece of a line with a label. `joins`: that line is there already.
    fn cost(&mut self, text: &str, label: Option<&str>, joins: bool) -> u64 {
        let text = match label {
            None => format!("- {text}\n"),
            Some(_) if joins => format!(", {text}"),
            Some(label) => format!("- {label}: {text}\n"),
        };
        self.measure(&escaped(&text, self.ask.spec.shape))
    }

    fn title(&self, section: usize) -> String {
        let title = self.ask.spec.sections.get(section).map_or("", |it| it.title.as_str());
        self.ask.spec.shape.section(title, "")
    }

    pub(super) fn render(&self, items: &[&Candidate], header: bool, pins: usize) -> String {
        let spec = self.ask.spec;
        let mut out = String::new();
        if header && let Some(header) = self.ask.header {
            out.push_str(header);
            out.push('\n');
        }
        let root = spec.root.as_deref().filter(|_| spec.shape == SummaryShape::Xml);
        if let Some(root) = root {
            out.push_str(&format!("<{root}>\n"));
        }
        for pin in self.ask.pins.iter().take(pins) {
            out.push_str(&escaped(&format!("- pinned: {pin}\n"), spec.shape));
        }
        let symbols = symbols_by_file(items);
        for (number, section) in spec.sections.iter().enumerate() {
            let lines = self.section(items, &symbols, number, section);
            if lines.is_empty() && (!spec.keep_empty || items.is_empty()) {
                continue;
            }
            let body = if lines.is_empty() { "(none)\n".to_string() } else { escaped(&lines, spec.shape) };
            out.push_str(&spec.shape.section(&section.title, &body));
        }
        if let Some(root) = root {
            out.push_str(&format!("</{root}>\n"));
        }
        out.trim().to_string()
    }

    /// The lines of a section, topic by topic; lines with the same label and group are joined.
    fn section(
        &self,
        items: &[&Candidate],
        symbols: &HashMap<&str, Vec<&str>>,
        number: usize,
        section: &Section,
    ) -> String {
        let mut out = String::new();
        let mut steps = 0;
        for topic in &section.holds {
            let mine = items.iter().filter(|it| it.section == number && it.topic == *topic);
            let mine = mine.filter(|it| file_of_symbol(it.fact).is_none_or(|it| !symbols.contains_key(it)));
            let mut joined: BTreeMap<(usize, String, &str), Vec<Cow<str>>> = BTreeMap::new();
            let mut labels: Vec<&str> = Vec::new();
            let mut sorted: Vec<_> =
                mine.filter_map(|it| it.now.as_ref().map(|now| (it.fact, &now.0))).collect();
            if *topic == Topic::Files {
                sorted.sort_by(|a, b| {
                    (file_op(a.0), a.0.text.as_str()).cmp(&(file_op(b.0), b.0.text.as_str()))
                });
            }
            sorted.sort_by_key(|it| (it.0.topic == Topic::Unconfirmed, self.age(it.0)));
            if *topic == Topic::Commands {
                // Stable: checks and deliveries first, read-only commands last, each in run order.
                sorted.sort_by_cached_key(|it| {
                    (LineKind::of(it.0) == LineKind::Look, !facts::checks_or_delivers(&it.0.text))
                });
            }
            if *topic == Topic::Goal {
                // The current goal comes before answered ones.
                sorted.sort_by_key(|it| self.style.previous_answer > Some(it.0.message));
            }
            if *topic == Topic::Errors {
                sorted.sort_by_key(|it| LineKind::of(it.0) == LineKind::Mended);
            }
            let mut age = Age::Current;
            for (fact, line) in sorted {
                if self.age(fact) != std::mem::replace(&mut age, self.age(fact)) {
                    out.push_str(age.label());
                }
                match &line.label {
                    None if section.numbered
                        && matches!(topic, Topic::Done | Topic::Active | Topic::Open) =>
                    {
                        steps += 1;
                        out.push_str(&format!("{steps}. {}\n", line.text));
                    }
                    None => out.push_str(&format!("- {}\n", line.text)),
                    Some(label) => {
                        let at = labels.iter().position(|it| it == label).unwrap_or_else(|| {
                            labels.push(label);
                            labels.len() - 1
                        });
                        let symbols = file_with_symbols(fact).and_then(|it| symbols.get(it));
                        let text = symbols.map_or(Cow::Borrowed(line.text.as_str()), |it| {
                            format!("{} ({})", line.text, it.join(", ")).into()
                        });
                        joined.entry((at, label.clone(), &line.group)).or_default().push(text);
                    }
                }
            }
            for ((_, label, _), pieces) in joined {
                let commands = *topic == Topic::Commands && label != facts::COMMITS;
                for pieces in listed(&pieces, if commands { MAX_COMMANDS_LINE } else { usize::MAX }) {
                    let names = matches!(topic, Topic::Files | Topic::Identifiers);
                    let pieces = if names { join_names(pieces) } else { pieces.join(", ") };
                    out.push_str(&format!("- {label}: {pieces}\n"));
                }
            }
        }
        let quoted = items.iter().filter(|it| it.section == number && it.kind == LineKind::Quoted).count();
        if section.every && quoted < self.quoted && !items.is_empty() {
            let missing = self.quoted - quoted;
            out.push_str(&format!(
                "- omitted for lack of space: {missing} messages (find them with recall)\n"
            ));
        }
        out
    }
}

fn file_op(fact: &Fact) -> Option<FileOp> {
    if let Detail::File { op, .. } = fact.detail { Some(op) } else { None }
}

/// The symbols that have a line, by their file, if that has a line, too.
fn symbols_by_file<'i>(items: &[&'i Candidate]) -> HashMap<&'i str, Vec<&'i str>> {
    let files = items.iter().filter_map(|it| file_with_symbols(it.fact));
    let mut out: HashMap<&str, Vec<&str>> = files.map(|it| (it, Vec::new())).collect();
    for item in items {
        let file = file_of_symbol(item.fact).and_then(|it| out.get_mut(it));
        if let Some((symbols, now)) = file.zip(item.now.as_ref()) {
            symbols.push(&now.0.text);
        }
    }
    out.retain(|_, it| !it.is_empty());
    out
}

fn file_of_symbol(fact: &Fact) -> Option<&str> {
    if let Detail::Symbol { file, .. } = &fact.detail { file.as_deref() } else { None }
}

/// The path of a file whose line may list its symbols. Files of listings have one line for all.
fn file_with_symbols(fact: &Fact) -> Option<&str> {
    match &fact.detail {
        Detail::File { op: FileOp::Listed, .. } => None,
        Detail::File { to, .. } => Some(to.as_deref().unwrap_or(&fact.text)),
        _ => None,
    }
}

fn escaped(text: &str, shape: SummaryShape) -> String {
    match shape {
        SummaryShape::Markdown | SummaryShape::Plain => text.into(),
        SummaryShape::Xml => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
    }
}
