//! Whether what is told as current is true: open steps, commands with how they ended, the user's rules.
//!
//! Steps and outcomes are compared with tool calls alone, rules with what the user said.

use foldhash::HashSet;
use serde::Serialize;

use super::index::{Index, Line, Origin};
use super::phrases::squeezed;
use super::survive::Lookup;
use crate::probe::{Class, Fact, Probe};
use crate::source::commands::is_cut;
use crate::source::done;
use crate::source::rules::{dequoted, names_rules};
use crate::source::said;
use crate::text::{Shape, content, tokens};
use crate::{probes, replacement, whole};
use history::{History, Kind};

/// Statements of one kind, and how many of them are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct StatementTally {
    pub told: usize,
    pub right: usize,
}

impl StatementTally {
    /// Share that is right, if any was told.
    pub fn share(&self) -> Option<f64> {
        (self.told > 0).then(|| self.right as f64 / self.told as f64)
    }

    pub(crate) fn count(&mut self, right: bool) {
        self.told += 1;
        self.right += usize::from(right);
    }
}

/// What a compacted history tells as true.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Truth {
    /// Steps told as open; wrong if the session's plan had them done at its end.
    pub open: StatementTally,
    /// Commands told with how they ended, if their exit code was reported.
    pub outcomes: StatementTally,
    /// Lines under a heading for rules; right if they are the user's own words.
    pub rules: StatementTally,
    /// The lines that are not right.
    pub wrong: Vec<String>,
}

/// Compares what a compacted history tells with its source. Costs as much as finding all facts.
pub fn truth(source: &History, compacted: &History) -> Truth {
    let (replacement, split) = replacement(source, compacted);
    let evicted = History::new(source.messages()[..split].to_vec(), source.meta.clone());
    let all = probes(&evicted);
    let source = &*whole(source);
    let lookup = Lookup::new(source, &all, &replacement, split);
    let mut out = Truth::default();
    open(source, &lookup, &mut out);
    for probe in &all {
        outcome(probe, &lookup, &mut out);
    }
    rules(source, &lookup.index, &mut out);
    out
}

fn tells(line: &Line) -> bool {
    line.fresh && line.origin == Origin::Text && matches!(line.shape, Shape::Item | Shape::Prose)
}

fn open(source: &History, lookup: &Lookup<'_>, out: &mut Truth) {
    /// Beginnings of lines that tell a step as open.
    const MARKS: [&str; 8] =
        ["open:", "doing:", "todo:", "pending:", "in progress:", "in_progress:", "[ ]", "[in_progress]"];
    let over: Vec<Vec<String>> = done::finished(source).iter().map(|it| content(it)).collect();
    for line in lookup.index.lines.iter().filter(|it| tells(it)) {
        let lower = line.text.trim_start_matches(['-', '*', ' ']).to_lowercase();
        if !MARKS.iter().any(|it| lower.starts_with(it)) {
            continue;
        }
        let words: HashSet<String> = tokens(&line.text).into_iter().collect();
        let says = |it: &&Vec<String>| {
            let own = it.iter().filter(|it| words.contains(*it)).count();
            it.len() > 1 && own == it.len()
        };
        let right = !over.iter().any(|it| says(&it));
        out.open.count(right);
        out.wrong.extend((!right).then(|| line.text.clone()));
    }
}

fn outcome(probe: &Probe, lookup: &Lookup<'_>, out: &mut Truth) {
    let Fact::Command { command, outcome, .. } = &probe.fact else { return };
    // A cut key may be another command's, too.
    if probe.class != Class::Command || outcome.exit.is_none() || is_cut(command) {
        return;
    }
    // If there were several runs, each line may tell another one.
    let told: Vec<_> = lookup.endings_told(command).filter(|it| it.0.fresh && !it.0.of_user).collect();
    for (line, said) in &told {
        let right = said.ok == outcome.ok || told.iter().any(|it| it.1.ok == outcome.ok);
        out.outcomes.count(right);
        out.wrong.extend((!right).then(|| line.text.clone()));
    }
}

fn rules(source: &History, index: &Index, out: &mut Truth) {
    /// Minimum letters of a piece that identifies whose words it is.
    const LEAST: usize = 8;
    let theirs = source.messages().iter().filter(|it| said::is_prompt(it) || it.kind == Kind::Summary);
    let mut theirs: Vec<String> =
        theirs.map(|it| it.texts().map(|it| squeezed(it.as_str())).collect()).collect();
    theirs.extend(said::answers_to_tools(source).map(|it| squeezed(it.text.as_str())));
    for line in index.lines.iter().filter(|it| tells(it)) {
        if line.shape != Shape::Item || !index.labels(line).any(names_rules) {
            continue;
        }
        // The summary added the message's number.
        let text = line.text.rsplit_once(" [#").map_or(line.text.as_str(), |it| it.0);
        let plain = dequoted(text);
        let pieces = plain.split('…').map(squeezed).filter(|it| it.chars().count() >= LEAST);
        let said =
            pieces.clone().count() > 0 && pieces.clone().all(|it| theirs.iter().any(|all| all.contains(&it)));
        out.rules.count(said);
        out.wrong.extend((!said).then(|| line.text.clone()));
    }
}
