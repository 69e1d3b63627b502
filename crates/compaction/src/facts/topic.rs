//! The topics of facts, and how each stage treats the facts of a topic.

use serde::{Deserialize, Serialize};

/// Declares the topics, one row each: a new topic needs a row here and code that extracts it.
macro_rules! topics {
    ($($(#[$doc:meta])* $topic:ident { $($row:tt)* })*) => {
        /// What a fact is about. Profiles name topics to say what a section of their summary holds.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Topic {
            $($(#[$doc])* $topic,)*
        }

        impl Topic {
            pub(crate) const fn row(self) -> TopicRow {
                match self {
                    $(Self::$topic => TopicRow { $($row)* },)*
                }
            }
        }
    };
}

topics! {
    /// What the session is for: the first request, and what replaced it.
    Goal {
        asked: "what the work is for, in the user's words",
        mark: None,
        lines: LineKind::Quoted,
        place: ClaimPlace::Tasks,
        rank: 3,
    }
    /// Standing orders, prohibitions, preferences of the user; verbatim.
    Constraints {
        asked: "every standing order, prohibition and preference of the user, word for word",
        mark: None,
        lines: LineKind::Quoted,
        place: ClaimPlace::Rules,
        rank: 0,
    }
    /// Orders of the user for the task at hand, which do not bind what comes after it; verbatim.
    Directives {
        asked: "what the user asked for in this task alone, word for word",
        mark: None,
        lines: LineKind::Quoted,
        place: ClaimPlace::Rules,
        rank: 0,
    }
    /// Skills that were loaded; their instructions go with their message.
    Skills {
        asked: "skills that were loaded, with their paths and what they forbid",
        mark: None,
        lines: LineKind::Prose,
        place: ClaimPlace::Report,
        rank: 2,
    }
    /// What the user asked for along the way.
    Requests {
        asked: "what the user asked for along the way",
        mark: None,
        lines: LineKind::Quoted,
        place: ClaimPlace::Rules,
        rank: 8,
    }
    /// Every word the user wrote, in order, shortened where long.
    UserMessages {
        asked: "what the user wrote, in order",
        mark: None,
        lines: LineKind::Quoted,
        place: ClaimPlace::Rules,
        rank: 8,
    }
    /// What the model said in earlier turns, as of then.
    Replies {
        asked: "what was replied to each of these",
        mark: None,
        lines: LineKind::Prose,
        place: ClaimPlace::Report,
        rank: 11,
    }
    /// What was settled, and what that replaced.
    Decisions {
        asked: "what was decided and why, and what it replaced",
        mark: None,
        lines: LineKind::Quoted,
        place: ClaimPlace::Tasks,
        rank: 2,
    }
    /// The plan or proposal of the model that the user approved, until it is carried out.
    Approved {
        asked: "the plan that the user approved, with all its details, until it is carried out",
        mark: None,
        lines: LineKind::Prose,
        place: ClaimPlace::Tasks,
        rank: 5,
    }
    /// Path and what was last done to it.
    Files {
        asked: "paths that were created, changed or deleted, and what was done to each",
        mark: None,
        lines: LineKind::File,
        place: ClaimPlace::Report,
        rank: 5,
    }
    Directory {
        asked: "the working directory",
        mark: None,
        lines: LineKind::Prose,
        place: ClaimPlace::Report,
        rank: 9,
    }
    /// How to build, test, run; conventions.
    Setup {
        asked: "how to build, test and run",
        mark: None,
        lines: LineKind::Command,
        place: ClaimPlace::Report,
        rank: 9,
    }
    Commands {
        asked: "commands that mattered, with their results",
        mark: None,
        lines: LineKind::Command,
        place: ClaimPlace::Report,
        rank: 9,
    }
    /// Errors and whether they were resolved.
    Errors {
        asked: "errors, and whether each was resolved",
        mark: None,
        lines: LineKind::Command,
        place: ClaimPlace::Report,
        rank: 6,
    }
    /// Approaches given up, and why.
    Tried {
        asked: "what was tried and given up, and why",
        mark: None,
        lines: LineKind::Prose,
        place: ClaimPlace::Report,
        rank: 7,
    }
    /// Code said to need tests.
    Untested {
        asked: "code that still wants a test",
        mark: None,
        lines: LineKind::Prose,
        place: ClaimPlace::Report,
        rank: 6,
    }
    /// Plan items that are done.
    Done {
        asked: "what is finished",
        mark: Some("done"),
        lines: LineKind::Step,
        place: ClaimPlace::Report,
        rank: 7,
    }
    /// Plan items being worked on.
    Active {
        asked: "what is being worked on",
        mark: Some("doing"),
        lines: LineKind::Step,
        place: ClaimPlace::Tasks,
        rank: 4,
    }
    /// Plan items still open.
    Open {
        asked: "steps that are still open",
        mark: Some("open"),
        lines: LineKind::Step,
        place: ClaimPlace::Tasks,
        rank: 4,
    }
    /// Open by an earlier summary or a plan that was left; not confirmed since.
    Unconfirmed {
        asked: "steps that an earlier summary or plan left open and that nothing since shows done or still open",
        mark: Some("not confirmed"),
        lines: LineKind::Step,
        place: ClaimPlace::Tasks,
        rank: 4,
    }
    /// What was last being done, word for word where possible.
    Current {
        asked: "what was being done last, precisely",
        mark: None,
        lines: LineKind::Prose,
        place: ClaimPlace::Tasks,
        rank: 1,
    }
    /// The latest request and the unanswered question.
    Last {
        asked: "the user's last request and any question still unanswered",
        mark: None,
        lines: LineKind::Quoted,
        place: ClaimPlace::Tasks,
        rank: 1,
    }
    /// A mode in which the agent may not work as it likes, if the session ends in one.
    Mode {
        // A model that summarizes the messages cannot see the mode.
        asked: "",
        mark: Some("mode"),
        lines: LineKind::Prose,
        place: ClaimPlace::Tasks,
        rank: 0,
    }
    /// URLs, versions, hashes, ports, symbols in use.
    Identifiers {
        asked: "URLs, hashes, versions, ports and names that will be needed",
        mark: None,
        lines: LineKind::Name,
        place: ClaimPlace::Report,
        rank: 10,
    }
    /// What the model found out and said, in this turn or by an earlier summary.
    Findings {
        asked: "what was found out",
        mark: None,
        lines: LineKind::Prose,
        place: ClaimPlace::Report,
        rank: 11,
    }
}

impl Topic {
    /// Whether its facts are statements of the model.
    pub(in crate::facts) fn is_statement(self) -> bool {
        matches!(self, Self::Findings | Self::Replies)
    }

    /// Whether its facts are steps that are not done.
    pub(in crate::facts) fn is_open_step(self) -> bool {
        matches!(self, Self::Open | Self::Active | Self::Unconfirmed)
    }
}

/// How the lines of a section are read back from an earlier summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::facts) enum LineKind {
    /// Words of the user, where they stand in quotation marks.
    Quoted,
    /// A step of the plan.
    Step,
    File,
    Command,
    Name,
    Prose,
}

/// The kind of section that a sentence stands in, which decides whose words must support it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimPlace {
    /// Among the user's rules.
    Rules,
    /// Among what is to be done or was decided.
    Tasks,
    Report,
}

impl ClaimPlace {
    /// The strictest place among the topics that a section holds.
    pub fn of(holds: &[Topic]) -> Self {
        holds.iter().map(|it| it.row().place).min().unwrap_or(Self::Report)
    }
}

/// What the stages do with the facts of a topic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TopicRow {
    /// What a model is asked to write in a section that holds the topic.
    pub(crate) asked: &'static str,
    /// Prefix of the topic's lines.
    pub(crate) mark: Option<&'static str>,
    pub(in crate::facts) lines: LineKind,
    pub(crate) place: ClaimPlace,
    /// If a model's summary is too long, the sections with the highest rank are cut first.
    pub(crate) rank: usize,
}
