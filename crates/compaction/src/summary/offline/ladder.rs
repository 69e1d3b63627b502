//! What comes first when space is short, as data: a list of rungs, climbed from the top until the budget is used up.
//! A rung says which lines are written, how long they may get, and how much of the budget all lines of their kind may
//! have by then. A later rung lengthens what an earlier one cut.

use crate::facts::{Deed, Detail, Fact, Name, Polarity, Topic, Voice};
use crate::profile::Style;

/// A kind of line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Directory,
    Last,
    Rule,
    /// Orders for the task at hand.
    Directive,
    Decision,
    Goal,
    /// Files that were changed.
    Changed,
    /// Files that were only read.
    Read,
    /// Open and running steps of the plan.
    Step,
    /// Steps that nothing confirms.
    Unconfirmed,
    Done,
    /// Errors that still stand.
    Broken,
    /// Errors that are over.
    Mended,
    /// Commands that did something, with their outcome.
    Command,
    /// Commands that only looked.
    Look,
    Current,
    /// What the user said along the way.
    Said,
    /// The same where a section quotes every message.
    Quoted,
    Name,
    /// Functions and types that were written.
    Symbol,
    Tried,
    Untested,
    Setup,
    Finding,
}

impl Kind {
    /// Which kind of line a fact becomes.
    pub(super) fn of(fact: &Fact) -> Self {
        match fact.topic {
            Topic::Directory => Self::Directory,
            Topic::Last => Self::Last,
            Topic::Constraints => Self::Rule,
            Topic::Directives => Self::Directive,
            Topic::Decisions => Self::Decision,
            Topic::Goal => Self::Goal,
            Topic::Requests | Topic::UserMessages => Self::Said,
            Topic::Files => match fact.detail {
                Detail::File { deed: Deed::Read | Deed::Reread | Deed::Noted, .. } => Self::Read,
                _ => Self::Changed,
            },
            Topic::Setup => Self::Setup,
            Topic::Commands => match fact.detail {
                Detail::Command { looked: true, .. } => Self::Look,
                _ => Self::Command,
            },
            Topic::Errors => match fact.detail {
                Detail::Error { resolved: None, .. } => Self::Broken,
                _ => Self::Mended,
            },
            Topic::Tried => Self::Tried,
            Topic::Untested => Self::Untested,
            Topic::Done => Self::Done,
            // What the model says is left to do is worth less than a step of the plan.
            Topic::Active | Topic::Open => Self::Step,
            Topic::Unconfirmed => Self::Unconfirmed,
            Topic::Current => Self::Current,
            Topic::Identifiers => match fact.detail {
                Detail::Name(Name::Symbol) => Self::Symbol,
                _ => Self::Name,
            },
            Topic::Findings => Self::Finding,
        }
    }
}

/// A rung: lines of `kind` up to `chars` characters of text each, together at most `share` percent of the budget.
pub(super) struct Rung {
    pub(super) kind: Kind,
    pub(super) chars: usize,
    pub(super) share: u64,
}

const fn rung(kind: Kind, chars: usize, share: u64) -> Rung {
    Rung { kind, chars, share }
}

/// What no style does without: first some of everything, so that none starves the others, then more of what binds.
const PINNED: &[Rung] = &[
    rung(Kind::Directory, 300, 100),
    rung(Kind::Quoted, 160, 35),
    rung(Kind::Quoted, 600, 45),
    rung(Kind::Last, 500, 30),
    rung(Kind::Rule, 220, 25),
    rung(Kind::Directive, 220, 12),
    rung(Kind::Decision, 200, 20),
    rung(Kind::Goal, 400, 25),
    rung(Kind::Broken, 160, 12),
    rung(Kind::Step, 200, 15),
    rung(Kind::Changed, 200, 25),
    rung(Kind::Command, 100, 15),
    rung(Kind::Name, 120, 5),
    rung(Kind::Current, 240, 10),
    rung(Kind::Rule, 220, 35),
    rung(Kind::Decision, 200, 35),
    rung(Kind::Changed, 200, 40),
    rung(Kind::Step, 200, 35),
    rung(Kind::Broken, 160, 25),
    rung(Kind::Unconfirmed, 160, 10),
    rung(Kind::Rule, 450, 60),
    rung(Kind::Decision, 300, 50),
    rung(Kind::Last, 4_000, 55),
    rung(Kind::Directive, 220, 30),
    rung(Kind::Directive, 450, 50),
    rung(Kind::Quoted, 9_000, 60),
];

/// One line for the rest.
const BRIEF: &[Rung] =
    &[rung(Kind::Command, 100, 25), rung(Kind::Current, 200, 15), rung(Kind::Name, 120, 10)];

const DETAILED: &[Rung] = &[
    rung(Kind::Said, 140, 22),
    rung(Kind::Command, 110, 30),
    rung(Kind::Current, 240, 15),
    rung(Kind::Said, 140, 35),
    rung(Kind::Read, 200, 35),
    rung(Kind::Name, 120, 18),
    rung(Kind::Tried, 200, 15),
    rung(Kind::Unconfirmed, 240, 20),
    rung(Kind::Mended, 140, 20),
    rung(Kind::Done, 160, 20),
    rung(Kind::Decision, 600, 40),
    rung(Kind::Said, 500, 60),
    rung(Kind::Goal, 1_500, 55),
    rung(Kind::Command, 260, 60),
    rung(Kind::Symbol, 80, 12),
    rung(Kind::Untested, 200, 12),
    rung(Kind::Broken, 300, 40),
    rung(Kind::Setup, 160, 10),
    rung(Kind::Current, 700, 25),
    rung(Kind::Finding, 200, 30),
    rung(Kind::Goal, 9_000, 80),
    rung(Kind::Last, 9_000, 90),
    rung(Kind::Said, 2_500, 90),
    rung(Kind::Mended, 300, 50),
    rung(Kind::Name, 300, 100),
    rung(Kind::Symbol, 80, 100),
    rung(Kind::Read, 200, 100),
    rung(Kind::Finding, 500, 100),
    rung(Kind::Look, 90, 4),
];

/// Files, commands, errors and identifiers first.
const TECHNICAL: &[Rung] = &[
    rung(Kind::Command, 260, 50),
    rung(Kind::Read, 200, 40),
    rung(Kind::Name, 160, 30),
    rung(Kind::Mended, 300, 40),
    rung(Kind::Tried, 300, 30),
    rung(Kind::Symbol, 80, 30),
    rung(Kind::Untested, 300, 20),
    rung(Kind::Setup, 300, 20),
    rung(Kind::Current, 700, 30),
    rung(Kind::Finding, 400, 40),
    rung(Kind::Done, 200, 30),
    rung(Kind::Said, 300, 60),
    rung(Kind::Decision, 600, 60),
    rung(Kind::Goal, 9_000, 80),
    rung(Kind::Last, 9_000, 90),
    rung(Kind::Said, 2_500, 100),
    rung(Kind::Look, 160, 10),
];

/// The rungs of a style, from the top.
pub(super) fn ladder(style: Style) -> impl Iterator<Item = &'static Rung> {
    PINNED.iter().chain(match style {
        Style::Brief => BRIEF,
        Style::Detailed => DETAILED,
        Style::Technical => TECHNICAL,
    })
}

/// Among lines of a kind, which comes first when not all fit: prohibitions, the words of the user, commands that failed
/// or have a result; then the newest.
pub(super) fn rank(fact: &Fact) -> (bool, std::cmp::Reverse<usize>) {
    let later = match &fact.detail {
        Detail::Rule(polarity) => *polarity != Polarity::Forbid,
        Detail::Command { outcome, .. } => outcome.ok != Some(false) && outcome.result.is_none(),
        Detail::Error { similar, .. } => similar.is_some(),
        Detail::None | Detail::File { .. } | Detail::Choice { .. } | Detail::Name(_) => {
            fact.voice() != Voice::User && fact.topic != Topic::Last
        }
    };
    (later, std::cmp::Reverse(fact.message))
}
