//! The ledger: what a history says that must not be lost, read without a model. Each fact knows its message.
//!
//! Shares no extraction code with `score`, which checks it; both read tool calls through `tools`.
//!
//! What a person said is only ever taken from messages that a person wrote ([`Kind::Said`]), from the agent's own record
//! of a refusal or an answer, and from earlier summaries: see `voice`. Client context and tool output never become
//! somebody's words.
//!
//! [`Kind::Said`]: history::Kind::Said

mod good_moment;
mod past;
mod plan;
mod talk;
pub(crate) mod text;
pub(crate) mod topic;
mod voice;
mod work;

pub use good_moment::pause;
use history::History;
use history::parallel;
use history::tools::code_mode;
use history::verbatim;
pub(crate) use past::ANSWERED;
pub use past::superseded::last_answered;
pub use talk::last_step;

pub use text::flat;
pub use topic::{ClaimPlace, Topic};
pub use voice::{AttributedText, Voice};
pub use work::command::{checks_or_delivers, is_read_only};
pub use work::outcome::Outcome;

/// Which way a rule points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polarity {
    Forbid,
    Require,
    Prefer,
}

/// What was last done to a file. Reading does not count once it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileOp {
    /// Made in this session.
    Created,
    /// Made in this session, then changed.
    CreatedThenEdited,
    /// Was there and was written anew as a whole.
    Written,
    Edited,
    Renamed,
    Deleted,
    /// Its changes were thrown away: it is as it was.
    Restored,
    /// Changed before an earlier compaction, as its summary says; only read since.
    ReadAfterEdit,
    Read,
    /// Found by a search, or named in an earlier summary which does not say what was done to it.
    Mentioned,
}

impl FileOp {
    /// Whether the file is another since.
    pub(crate) fn changes(self) -> bool {
        match self {
            Self::Created
            | Self::CreatedThenEdited
            | Self::Written
            | Self::Edited
            | Self::Renamed
            | Self::Deleted => true,
            Self::Restored | Self::ReadAfterEdit | Self::Read | Self::Mentioned => false,
        }
    }
}

/// What kind of name an identifier is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    Url,
    /// A commit or other hash.
    Hash,
    /// An issue, ticket or pull request.
    Ticket,
    Branch,
    /// A version with what it is of.
    Version,
    Port,
    /// A session or object id.
    Id,
    /// A setting: `KEY=value`, `key: 5`.
    Setting,
    /// `#1a2b3c`.
    Colour,
}

/// What a fact says beyond its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    None,
    /// The text is a rule.
    Rule(Polarity),
    /// The text is a path.
    File {
        /// What was last done to it.
        op: FileOp,
        /// Where it went, if it was moved.
        to: Option<String>,
    },
    /// The text is a command.
    Command {
        /// What came of its last run.
        outcome: Outcome,
        /// It only looked at things.
        read_only: bool,
    },
    /// The text is the line that says what went wrong.
    Error {
        /// The command, or tool and path, that it came from.
        of: Option<String>,
        /// The message in which the same succeeded later.
        resolved: Option<usize>,
        /// The message in which something of the same kind succeeded later: it may be gone.
        similar: Option<usize>,
    },
    /// The text is what the user said to a question or proposal.
    Choice {
        asked: Option<String>,
        /// What the answer stands for, such as the text of option B; or what was refused.
        means: Option<String>,
        /// It was a no.
        refused: bool,
        /// The message in which it was replaced.
        superseded: Option<usize>,
    },
    /// The text is an identifier.
    Name(Name),
    /// The text is a function or type that was written, found or spoken of.
    Symbol {
        /// Where it is defined, if that was seen.
        file: Option<String>,
        /// The agent wrote it or named it; of others it only read the definition.
        used: bool,
    },
}

/// Something that must not be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is about.
    pub topic: Topic,
    /// Number in the history of the message it stands in; for a state, the message that last changed it.
    pub message: usize,
    /// The words, path, command or name, and whose it is.
    pub text: AttributedText,
    /// What else is known.
    pub detail: Detail,
}

/// The facts of a history, by message, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    /// In the order of their messages.
    pub facts: Vec<Fact>,
    /// The working directory, where the history tells it.
    pub directory: Option<String>,
}

impl Fact {
    /// Whose words the text is.
    pub fn voice(&self) -> Voice {
        self.text.voice()
    }
}

impl Ledger {
    /// The facts about a topic, in order.
    pub fn about(&self, topic: Topic) -> impl Iterator<Item = &Fact> {
        self.facts.iter().filter(move |it| it.topic == topic)
    }
}

/// Whether a text lays out a plan: its first words announce one.
pub fn is_plan(text: &str) -> bool {
    /// So many characters may stand before the colon or the first step.
    const LEAD: usize = 80;
    let lead: String = text.chars().take(LEAD).collect::<String>().to_lowercase();
    let lead = lead.split([':', '：', '\n']).next().filter(|it| it.len() < lead.len()).unwrap_or_default();
    let words = lead.split(|it: char| !it.is_alphanumeric());
    words.clone().any(|it| it == "plan")
        || lead.contains("next steps")
        || ["計画", "计划", "計劃"].iter().any(|it| lead.contains(it))
}

/// Makes ready what [`read`] needs the first time in a process: most of what it takes for a short history.
pub fn prepare() {
    std::sync::LazyLock::force(&text::cues::CUES);
}

/// Reads a history. Linear in its text; the same history gives the same ledger.
pub fn read(history: &History) -> Ledger {
    let Some((history, origins)) = verbatim::expanded(history) else { return read_messages(history) };
    let mut ledger = read_messages(&history);
    let origin = |it: &mut usize| *it = origins.get(*it).copied().unwrap_or(*it);
    for fact in &mut ledger.facts {
        origin(&mut fact.message);
        match &mut fact.detail {
            Detail::Error { resolved, similar, .. } => {
                [resolved, similar].into_iter().flatten().for_each(origin);
            }
            Detail::Choice { superseded, .. } => superseded.iter_mut().for_each(origin),
            Detail::None
            | Detail::Rule(_)
            | Detail::File { .. }
            | Detail::Command { .. }
            | Detail::Name(_)
            | Detail::Symbol { .. } => {}
        }
    }
    ledger
}

fn read_messages(history: &History) -> Ledger {
    let expanded = code_mode::expanded(history);
    let history = expanded.as_ref().unwrap_or(history);
    let mut facts = Vec::new();
    let directory = work::paths::directory(history);
    past::read(history, directory.as_deref(), &mut facts);
    let goal = facts.iter().any(|it| it.topic == Topic::Goal);
    // What was said and what was done are found by different words.
    let (said, names) = parallel::join(
        || talk::read(history, goal),
        || {
            work::read(history, directory.as_deref(), &mut facts);
            let changed = plan::read(history, &mut facts);
            past::superseded::drop_superseded(history, &changed, &mut facts);
            work::identifiers::read(history, directory.as_deref())
        },
    );
    facts.extend(said);
    facts.extend(names);
    past::superseded::drop_refused_steps(&mut facts);
    past::superseded::settle_steps(history, &mut facts);
    past::present::drop_outdated(history, &mut facts);
    past::superseded::drop_expired_rules(history, &mut facts);
    past::superseded::replace_answered_goal(history, &mut facts);
    Ledger { facts: deduplicated(facts), directory }
}

/// Brings the facts in order and drops what a later one says again: of a file, a command or a name the newest stands,
/// of words the first.
fn deduplicated(mut facts: Vec<Fact>) -> Vec<Fact> {
    use std::collections::HashMap;
    // Stable: within a message, the order in which they were found.
    facts.sort_by_key(|it| it.message);
    let mut seen: HashMap<(Topic, String), usize> = HashMap::new();
    let mut keep = vec![true; facts.len()];
    for index in 0..facts.len() {
        let fact = &facts[index];
        let key = match (&fact.detail, fact.topic) {
            (Detail::Command { .. }, _) => work::command::dedup_key(&fact.text),
            (Detail::Error { of, .. }, _) => {
                let of = of.as_deref().map(work::command::dedup_key).unwrap_or_default();
                format!("{of} {}", text::without_durations(&fact.text))
            }
            // An answer is only the same if the question is.
            (Detail::Choice { asked, means, .. }, _) => format!("{asked:?} {means:?} {}", fact.text),
            // "continue" said twice was said twice; a long text said twice was sent again.
            (_, Topic::UserMessages | Topic::Requests | Topic::Last) if fact.text.len() <= 60 => {
                format!("{} {}", fact.message, fact.text)
            }
            (
                Detail::None
                | Detail::Rule(_)
                | Detail::File { .. }
                | Detail::Name(_)
                | Detail::Symbol { .. },
                _,
            ) => text::flat(&fact.text).to_lowercase(),
        };
        let newest =
            matches!(fact.detail, Detail::File { .. } | Detail::Command { .. } | Detail::Error { .. });
        match seen.insert((fact.topic, key.clone()), index) {
            Some(before) if newest => keep[before] = false,
            Some(before) => {
                keep[index] = false;
                seen.insert((fact.topic, key), before);
            }
            None => {}
        }
    }
    let mut keep = keep.into_iter();
    facts.retain(|_| keep.next().unwrap_or(true));
    facts
}
