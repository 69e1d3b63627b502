//! What comes first when space is short, as data: a list of tiers, filled from the top until the budget is
//! used up. A tier says which lines are written, how long they may get, and the share of the budget that all
//! lines of their kind may have at that point. A later tier lengthens what an earlier one cut.

use crate::facts::{self, Detail, Fact, FileOp, Name, Outcome, Polarity, Topic, Voice};
use crate::profile::SummaryStyle;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum LineKind {
    /// Where, and in which mode, the agent works.
    Directory,
    Last,
    Rule,
    /// Orders for the current task.
    Directive,
    Skill,
    Decision,
    Approved,
    Goal,
    /// Earlier requests that were answered.
    Answered,
    /// Such a goal, if the current request does not follow it up.
    Finished,
    /// Files that were changed.
    Changed,
    /// Files that were only read.
    Read,
    /// Files that the last request names.
    Asked,
    /// Files that a search found, or an earlier summary names.
    Found,
    /// Files of a listing that nothing was done with.
    Listed,
    /// Open and running steps of the plan.
    Step,
    /// Steps of which nothing shows whether they are done.
    Unconfirmed,
    Done,
    /// Errors that still stand.
    Broken,
    /// What a check reports in files that were not changed since.
    Diagnostics,
    /// Resolved errors.
    Mended,
    /// Commands with effects, and their outcome.
    Command,
    /// Commands that change nothing, or only prepare others.
    Look,
    Current,
    /// What the user said along the way.
    Said,
    /// The same, in a section that quotes every message.
    Quoted,
    Name,
    /// Functions and types that were written or named.
    Symbol,
    /// Symbols of which only the definition was read.
    Defined,
    Tried,
    Untested,
    Setup,
    Finding,
    /// Replies before the newest: later work tells more.
    OldReply,
}

impl LineKind {
    /// Which kind of line a fact becomes.
    pub(super) fn of(fact: &Fact) -> Self {
        match fact.topic {
            Topic::Directory | Topic::Mode => Self::Directory,
            Topic::Last => Self::Last,
            Topic::Constraints => Self::Rule,
            Topic::Directives => Self::Directive,
            Topic::Skills => Self::Skill,
            Topic::Decisions => Self::Decision,
            Topic::Approved => Self::Approved,
            Topic::Goal => Self::Goal,
            Topic::Requests | Topic::UserMessages => Self::Said,
            Topic::Files => match fact.detail {
                Detail::File { op: FileOp::Read | FileOp::ReadAfterEdit, .. } => Self::Read,
                Detail::File { op: FileOp::Mentioned, .. } => Self::Found,
                Detail::File { op: FileOp::Listed, .. } => Self::Listed,
                _ => Self::Changed,
            },
            Topic::Setup => Self::Setup,
            Topic::Commands => match &fact.detail {
                Detail::Command { read_only: true, .. } => Self::Look,
                Detail::Command { outcome: Outcome { ok: Some(true), .. }, .. }
                    if facts::only_prepares(&fact.text) =>
                {
                    Self::Look
                }
                _ => Self::Command,
            },
            Topic::Errors => match fact.detail {
                Detail::Error { resolved: None, .. } => Self::Broken,
                Detail::Diagnostics { .. } => Self::Diagnostics,
                _ => Self::Mended,
            },
            Topic::Tried => Self::Tried,
            Topic::Untested => Self::Untested,
            Topic::Done => Self::Done,
            Topic::Active | Topic::Open => Self::Step,
            Topic::Unconfirmed => Self::Unconfirmed,
            Topic::Current => Self::Current,
            Topic::Identifiers => match fact.detail {
                Detail::Symbol { used: true, .. } => Self::Symbol,
                Detail::Symbol { used: false, .. } => Self::Defined,
                _ => Self::Name,
            },
            Topic::Findings | Topic::Replies => Self::Finding,
        }
    }

    /// Whether it tells how the work went, rather than what was wanted or where it stands.
    pub(super) fn is_detail(self) -> bool {
        matches!(
            self,
            Self::Read
                | Self::Asked
                | Self::Found
                | Self::Listed
                | Self::Broken
                | Self::Diagnostics
                | Self::Mended
                | Self::Command
                | Self::Look
                | Self::Name
                | Self::Symbol
                | Self::Defined
                | Self::Tried
                | Self::Untested
                | Self::Setup
                | Self::Finding
                | Self::OldReply
        )
    }
}

/// A tier: lines of `kind` up to `chars` characters of text each, together at most `share` percent of the budget.
pub(super) struct Tier {
    pub(super) kind: LineKind,
    pub(super) chars: usize,
    pub(super) share: u64,
    /// Whether a line that does not fit is cut further instead of left out.
    pub(super) cut_to_fit: bool,
}

const fn tier(kind: LineKind, chars: usize, share: u64) -> Tier {
    Tier { kind, chars, share, cut_to_fit: false }
}

const fn cut_to_fit(kind: LineKind, chars: usize, share: u64) -> Tier {
    Tier { kind, chars, share, cut_to_fit: true }
}

/// The first tiers of every style: some of each kind, so that none starves the others.
const PINNED: &[Tier] = &[
    // However little room there is, the last request and the goal have a line.
    cut_to_fit(LineKind::Last, 120, 70),
    cut_to_fit(LineKind::Goal, 120, 60),
    tier(LineKind::Directory, 300, 100),
    tier(LineKind::Quoted, 160, 35),
    tier(LineKind::Quoted, 600, 45),
    tier(LineKind::Last, 500, 30),
    tier(LineKind::Rule, 220, 25),
    tier(LineKind::Directive, 220, 20),
    tier(LineKind::Decision, 200, 20),
    cut_to_fit(LineKind::Last, 500, 20),
    tier(LineKind::Goal, 400, 25),
    tier(LineKind::Answered, 400, 25),
    tier(LineKind::Finished, 400, 25),
    tier(LineKind::Broken, 160, 12),
    tier(LineKind::Step, 200, 15),
    tier(LineKind::Changed, 200, 25),
    tier(LineKind::Command, 100, 15),
    tier(LineKind::Skill, 160, 5),
    tier(LineKind::Name, 120, 5),
    tier(LineKind::Rule, 220, 35),
    tier(LineKind::Directive, 220, 30),
    tier(LineKind::Decision, 200, 35),
    tier(LineKind::Changed, 200, 40),
    tier(LineKind::Step, 200, 35),
    tier(LineKind::Broken, 160, 25),
    tier(LineKind::Unconfirmed, 160, 10),
];

/// What the work is about, before binding lines take most of the room. Not in a brief summary.
const WORK: &[Tier] = &[tier(LineKind::Read, 200, 12), tier(LineKind::Symbol, 80, 8)];

/// More of what binds.
const BINDING: &[Tier] = &[
    tier(LineKind::Rule, 450, 60),
    tier(LineKind::Decision, 300, 50),
    tier(LineKind::Directive, 220, 55),
    tier(LineKind::Current, 240, 10),
    tier(LineKind::Approved, 450, 12),
    tier(LineKind::Last, 4_000, 55),
    cut_to_fit(LineKind::Last, 4_000, 33),
    tier(LineKind::Directive, 450, 60),
    tier(LineKind::Asked, 200, 15),
    tier(LineKind::Quoted, 9_000, 60),
];

/// The remaining lines of a brief summary.
const BRIEF: &[Tier] =
    &[tier(LineKind::Command, 100, 25), tier(LineKind::Current, 200, 15), tier(LineKind::Name, 120, 10)];

const DETAILED: &[Tier] = &[
    tier(LineKind::Said, 140, 22),
    tier(LineKind::Skill, 450, 10),
    tier(LineKind::Diagnostics, 120, 8),
    tier(LineKind::Symbol, 80, 12),
    tier(LineKind::Read, 200, 15),
    tier(LineKind::Command, 110, 30),
    tier(LineKind::Current, 240, 15),
    tier(LineKind::Said, 140, 35),
    tier(LineKind::Read, 200, 35),
    tier(LineKind::Name, 120, 18),
    tier(LineKind::Tried, 200, 15),
    tier(LineKind::Unconfirmed, 240, 20),
    tier(LineKind::Mended, 140, 20),
    tier(LineKind::Done, 300, 20),
    tier(LineKind::Decision, 600, 40),
    tier(LineKind::Approved, 1_500, 20),
    tier(LineKind::Approved, 6_000, 30),
    tier(LineKind::Said, 500, 60),
    tier(LineKind::Goal, 1_500, 55),
    tier(LineKind::Answered, 1_500, 55),
    tier(LineKind::Finished, 1_500, 55),
    tier(LineKind::Command, 260, 60),
    tier(LineKind::Symbol, 80, 6),
    tier(LineKind::Untested, 200, 12),
    tier(LineKind::Broken, 300, 40),
    tier(LineKind::Diagnostics, 900, 20),
    tier(LineKind::Setup, 160, 10),
    tier(LineKind::Current, 700, 25),
    tier(LineKind::Finding, 200, 30),
    tier(LineKind::Step, 900, 20),
    tier(LineKind::Unconfirmed, 900, 20),
    tier(LineKind::Goal, 9_000, 80),
    tier(LineKind::Answered, 9_000, 80),
    tier(LineKind::Last, 9_000, 90),
    tier(LineKind::Mended, 300, 50),
    // The requirements of a finished task often hold for the next one.
    tier(LineKind::Finished, 6_000, 45),
    tier(LineKind::Said, 2_500, 90),
    tier(LineKind::Name, 300, 100),
    tier(LineKind::Symbol, 80, 100),
    tier(LineKind::Read, 200, 100),
    tier(LineKind::Found, 200, 12),
    tier(LineKind::Defined, 80, 4),
    tier(LineKind::Finding, 500, 100),
];

/// Files, commands, errors and identifiers first.
const TECHNICAL: &[Tier] = &[
    tier(LineKind::Skill, 450, 10),
    tier(LineKind::Command, 260, 50),
    tier(LineKind::Diagnostics, 900, 20),
    tier(LineKind::Read, 200, 40),
    tier(LineKind::Found, 200, 10),
    tier(LineKind::Name, 160, 30),
    tier(LineKind::Mended, 300, 40),
    tier(LineKind::Tried, 300, 30),
    tier(LineKind::Symbol, 80, 30),
    tier(LineKind::Untested, 300, 20),
    tier(LineKind::Setup, 300, 20),
    tier(LineKind::Current, 700, 30),
    tier(LineKind::Finding, 400, 40),
    tier(LineKind::Done, 200, 30),
    tier(LineKind::Said, 300, 60),
    tier(LineKind::Decision, 600, 60),
    tier(LineKind::Approved, 6_000, 60),
    tier(LineKind::Goal, 9_000, 80),
    tier(LineKind::Answered, 9_000, 80),
    tier(LineKind::Finished, 1_500, 80),
    tier(LineKind::Last, 9_000, 90),
    tier(LineKind::Said, 2_500, 100),
    tier(LineKind::Look, 160, 10),
];

/// Fills the room that is left over with facts to look things up in.
const REST: &[Tier] = &[
    tier(LineKind::Changed, 200, 100),
    tier(LineKind::Command, 110, 100),
    tier(LineKind::Read, 200, 100),
    tier(LineKind::Mended, 140, 100),
    tier(LineKind::Symbol, 80, 100),
    tier(LineKind::Asked, 200, 100),
    tier(LineKind::Found, 200, 100),
    tier(LineKind::Defined, 80, 40),
    tier(LineKind::OldReply, 200, 5),
    tier(LineKind::Listed, 200, 8),
    tier(LineKind::Finding, facts::LONG_CHARS, 40),
];

/// The tiers of a style, from the top. `rest`: whether room that is left over is filled with [`REST`].
pub(super) fn tiers_of(style: SummaryStyle, rest: bool) -> impl Iterator<Item = &'static Tier> {
    let (work, of_style, rest): (_, _, &[Tier]) = match style {
        SummaryStyle::Brief => (&[][..], BRIEF, &[]),
        SummaryStyle::Detailed => (WORK, DETAILED, if rest { REST } else { &[] }),
        SummaryStyle::Technical => (WORK, TECHNICAL, if rest { REST } else { &[] }),
    };
    PINNED.iter().chain(work).chain(BINDING).chain(of_style).chain(rest)
}

/// Sort key within a kind when not all lines fit: first prohibitions, the user's words, commands that failed
/// or have a result; then the newest.
pub(super) fn rank(fact: &Fact) -> (bool, std::cmp::Reverse<usize>) {
    let later = match &fact.detail {
        Detail::Rule(polarity) => *polarity != Polarity::Forbid,
        Detail::Command { outcome, .. } => outcome.ok != Some(false) && outcome.result.is_none(),
        Detail::Error { of, similar, excused, .. } => {
            let idle = of.as_deref().is_some_and(facts::is_read_only) || facts::is_misfit(&fact.text);
            idle || similar.is_some() || excused.is_some()
        }
        // There are many of these, and each is told where it is used.
        Detail::Name(kind) => matches!(kind, Name::Colour | Name::Setting),
        // A symbol without its file says little.
        Detail::Symbol { file, .. } => file.is_none(),
        Detail::None | Detail::File { .. } | Detail::Choice { .. } | Detail::Diagnostics { .. } => {
            // Earlier summaries of others state rules among their findings.
            let binds = fact.voice() == Voice::Summary && facts::is_rule(&fact.text);
            fact.voice() != Voice::User && fact.topic != Topic::Last && !binds
        }
    };
    (later, std::cmp::Reverse(fact.message))
}
