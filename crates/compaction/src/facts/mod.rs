//! The ledger: the facts of a history that a summary must not lose, extracted without a model. Each fact knows its
//! message.
//!
//! Shares no extraction code with `score`, which checks it; both read tool calls through `tools`.
//!
//! The user's words are only taken from messages that a person wrote ([`Kind::Said`]), from the agent's own record of a
//! refusal or an answer, and from earlier summaries: see `voice`. Client context and tool output are never attributed
//! to the user.
//!
//! [`Kind::Said`]: history::Kind::Said

mod good_moment;
mod mode;
mod past;
mod plan;
mod refusals;
mod skills;
mod talk;
pub(crate) mod text;
pub(crate) mod topic;
mod voice;
mod work;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

pub use good_moment::pause;
use history::parallel;
use history::replaced;
use history::tools::code_mode;
use history::verbatim;
use history::{Call, History};
pub(crate) use past::reader::UNREADABLE;
pub(crate) use past::reader::headings::{
    ANSWERED, ANSWERED_BEFORE, ANSWERED_BELOW, ANSWERED_LATER, BELOW, COMMITS, EARLIER, FILE_CHANGED,
    FOLLOWED, GOES_ON, MORE_DONE, OF_EARLIER_REQUEST, REPLIED_BELOW, REPLY_TO, REPORTED, REPORTS, RESOLVED,
    TOUCHED, UNCHECKED,
};
pub use plan::NumberedStep;
pub(crate) use talk::decisions::asks_to_go_ahead;
pub(crate) use talk::orders::is_bounds_heading;
pub use talk::overruled::refuted_replies;
pub(crate) use talk::replies::report_of_turn;
pub use talk::replies::{
    AnsweredRequest, answers, final_answer, last_answered, last_reply, question_answered, requests,
};
pub use talk::turn::last_step;
pub(crate) use talk::{LONG_CHARS, at_length, is_of_subagent, only_agrees};

pub use text::flat;
pub use topic::{ClaimPlace, Topic};
pub use voice::{AttributedText, Voice};
pub(crate) use work::REPOSITORY;
pub(crate) use work::checks::outdated as outdated_checks;
pub(crate) use work::command::attempt_key;
pub use work::command::{checks_or_delivers, commit_subject, is_read_only, only_prepares};
pub(crate) use work::errors::resolution::{is_misfit, is_missing_file};
pub use work::outcome::{Outcome, error_lines};

/// Whether a rule forbids, requires or prefers something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polarity {
    Forbid,
    Require,
    Prefer,
}

/// The last operation on a file. A read does not replace an earlier change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileOp {
    Created,
    /// Created in this session, then edited.
    CreatedThenEdited,
    /// Existed before and was overwritten as a whole.
    Written,
    Edited,
    /// Committed here; what changed it, and whether that was before the session, is unknown.
    Committed,
    Renamed,
    Deleted,
    /// Its changes were discarded: it is as it was before.
    Restored,
    /// An earlier summary says that it was edited; it has only been read since.
    ReadAfterEdit,
    Read,
    /// Only read here; git lists it as changed since work was delegated to another agent.
    ReadThenChanged,
    /// Found by a search, or named in an earlier summary that does not say what was done to it.
    Mentioned,
    /// Only named in a long listing, and not used since.
    Listed,
}

impl FileOp {
    /// Whether the file differs from what it was.
    pub(crate) fn changes(self) -> bool {
        match self {
            Self::Created
            | Self::CreatedThenEdited
            | Self::Written
            | Self::Edited
            | Self::Committed
            | Self::Renamed
            | Self::ReadThenChanged
            | Self::Deleted => true,
            Self::Restored | Self::ReadAfterEdit | Self::Read | Self::Mentioned | Self::Listed => false,
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
    /// A version, with the name of the package or program.
    Version,
    Port,
    /// A session or object id.
    Id,
    /// A setting: `KEY=value`, `key: 5`.
    Setting,
    /// `#1a2b3c`.
    Colour,
}

/// What is known of a fact beyond its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    None,
    /// The text is a rule.
    Rule(Polarity),
    /// The text is a path.
    File {
        op: FileOp,
        /// Its new path, if it was renamed.
        to: Option<String>,
    },
    /// The text is a command.
    Command {
        /// The result of its last run.
        outcome: Outcome,
        /// Whether it changes nothing: `ls`, `git log`.
        read_only: bool,
    },
    /// The text is the line that states the error.
    Error {
        /// The command, or tool and path, that failed.
        of: Option<String>,
        /// The message in which the same command or tool succeeded later.
        resolved: Option<usize>,
        /// The message in which a similar command succeeded later, so that the error may be gone.
        similar: Option<usize>,
        /// The message in which the model says that the error is not caused by the work, and its word for
        /// that: pre-existing, unrelated, flaky, expected.
        excused: Option<(usize, &'static str)>,
    },
    /// The text is a file, and what a check reports in it.
    Diagnostics {
        by: String,
    },
    /// The text is the user's answer to a question or proposal.
    Choice {
        asked: Option<String>,
        /// What the answer refers to, such as the text of option B; or what was refused.
        means: Option<String>,
        refused: bool,
        /// The message in which another answer replaced it.
        superseded: Option<usize>,
    },
    /// The text is an identifier.
    Name(Name),
    /// The text is a function or type that was written, found or mentioned.
    Symbol {
        /// The file that defines it, if known.
        file: Option<String>,
        /// Whether the agent wrote or named it; if not, it only read the definition.
        used: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    pub topic: Topic,
    /// Number of its message in the history; for a state, the message that last changed it.
    pub message: usize,
    pub text: AttributedText,
    pub detail: Detail,
}

/// The facts of a history, without duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    /// In the order of their messages.
    pub facts: Vec<Fact>,
    /// All changes to files, in order; `facts` has only the last operation on each file.
    pub file_changes: Vec<Fact>,
    /// The working directory, if the history contains it.
    pub directory: Option<String>,
    /// Open steps that tools name by a number, by their text.
    pub numbered_steps: HashMap<String, NumberedStep>,
}

impl Fact {
    pub fn voice(&self) -> Voice {
        self.text.voice()
    }

    /// Whether it is a step that is not done. The line about a task list in a file is none: it counts the tasks,
    /// whatever was done of one of them.
    fn is_open_step(&self) -> bool {
        self.topic.is_open_step() && self.voice() != Voice::Tools
    }
}

impl Ledger {
    /// The facts about a topic, in order.
    pub fn about(&self, topic: Topic) -> impl Iterator<Item = &Fact> {
        self.facts.iter().filter(move |it| it.topic == topic)
    }
}

/// Whether a text states a rule.
pub(crate) fn is_rule(text: &str) -> bool {
    text::rule::polarity(text).is_some()
}

/// Whether a text is a plan: its first words say so.
pub fn is_plan(text: &str) -> bool {
    /// Maximum characters before the colon or the first step.
    const LEAD: usize = 80;
    let lead: String = text.chars().take(LEAD).collect::<String>().to_lowercase();
    let lead = lead.split([':', '：', '\n']).next().filter(|it| it.len() < lead.len()).unwrap_or_default();
    let words = lead.split(|it: char| !it.is_alphanumeric());
    words.clone().any(|it| it == "plan")
        || lead.contains("next steps")
        || ["計画", "计划", "計劃"].iter().any(|it| lead.contains(it))
}

/// The input of a call as JSON; null if it is not JSON.
fn input_of(call: &Call) -> serde_json::Value {
    serde_json::from_str(call.input.as_str()).unwrap_or_default()
}

/// Compiles the cues in advance: for a short history they take most of the first [`read`] in a process.
pub fn prepare() {
    std::sync::LazyLock::force(&text::cues::CUES);
}

/// Reads a history. Takes time linear in its text; the same history gives the same ledger.
pub fn read(history: &History) -> Ledger {
    let mut ledger = read_expanded(history);
    drop_unkept(history, &mut ledger.facts);
    past::reader::note_unreadable(history, &mut ledger.facts);
    let turn = history.last_prompt().unwrap_or(0);
    let is_reply =
        |it: &&mut Fact| it.topic == Topic::Findings && it.voice() == Voice::Model && it.message < turn;
    ledger.facts.iter_mut().filter(is_reply).for_each(|it| it.topic = Topic::Replies);
    ledger.facts.sort_by_key(|it| it.message);
    ledger
}

/// Drops goals and orders of prompts that a sealed compaction did not keep, if a later request is known. A compaction
/// keeps the newest prompts, so the others were answered.
fn drop_unkept(history: &History, facts: &mut Vec<Fact>) {
    let Some(sealed) = history.messages().iter().rposition(|it| it.replaced.is_some()) else { return };
    let asks = |it: &Fact| matches!(it.topic, Topic::Goal | Topic::Last) && it.voice() == Voice::User;
    if facts.iter().any(|it| asks(it) && it.message != sealed) {
        facts.retain(|it| it.message != sealed || !asks(it) && it.topic != Topic::Directives);
    }
}

/// Reads a history with sealed and quoted messages expanded; message numbers are those of `history`.
fn read_expanded(history: &History) -> Ledger {
    let replaced = replaced::expanded(history);
    let kept = verbatim::expanded(replaced.as_ref().map_or(history, |it| &it.0));
    let (history, origins) = match (replaced, kept) {
        (None, None) => return read_messages(history, &|it| it),
        (Some(it), None) | (None, Some(it)) => it,
        (Some((_, first)), Some((history, then))) => {
            (history, then.into_iter().filter_map(|it| first.get(it).copied()).collect())
        }
    };
    let origin = |it: usize| origins.get(it).copied().unwrap_or(it);
    let mut ledger = read_messages(&history, &origin);
    let origin = |it: &mut usize| *it = origin(*it);
    for fact in ledger.facts.iter_mut().chain(&mut ledger.file_changes) {
        origin(&mut fact.message);
        match &mut fact.detail {
            Detail::Error { resolved, similar, excused, .. } => {
                [resolved, similar].into_iter().flatten().for_each(origin);
                excused.iter_mut().for_each(|it| origin(&mut it.0));
            }
            Detail::Choice { superseded, .. } => superseded.iter_mut().for_each(origin),
            Detail::None
            | Detail::Rule(_)
            | Detail::File { .. }
            | Detail::Command { .. }
            | Detail::Diagnostics { .. }
            | Detail::Name(_)
            | Detail::Symbol { .. } => {}
        }
    }
    ledger
}

/// `origin`: maps a message number to the one that texts cite.
fn read_messages(history: &History, origin: &(dyn Fn(usize) -> usize + Sync)) -> Ledger {
    let expanded = code_mode::expanded(history);
    let history = expanded.as_ref().unwrap_or(history);
    let mut facts = Vec::new();
    let directory = work::paths::directory(history);
    past::reader::read(history, directory.as_deref(), &mut facts);
    let goal = facts.iter().any(|it| it.topic == Topic::Goal);
    // The two do not depend on each other's facts.
    let (said, (names, file_changes, commits, numbered_steps)) = parallel::join(
        || talk::read(history, goal),
        || {
            let (file_changes, commits) = work::read(history, directory.as_deref(), origin, &mut facts);
            let (changed, numbered_steps) = plan::read(history, &mut facts);
            past::superseded::drop_superseded(history, &changed, &mut facts);
            facts.extend(refusals::read(history, directory.as_deref()));
            (work::identifiers::read(history, directory.as_deref()), file_changes, commits, numbered_steps)
        },
    );
    facts.extend(said);
    facts.extend(names);
    work::identifiers::drop_redundant_names(&mut facts);
    past::superseded::drop_refused_steps(&mut facts);
    past::superseded::settle_steps(history, &mut facts);
    talk::delegated::settle_running(history, &mut facts);
    facts.extend(talk::delegated::running(history));
    facts.extend(talk::delegated::sent(history));
    past::temporary::drop_outdated(history, &mut facts);
    past::overtaken::drop_overtaken(history, &mut facts);
    past::repeated::drop_repeated(history, &mut facts);
    past::repeated::drop_lost_hashes(|it| commits.is_lost(it), &mut facts);
    past::expired_rules::drop_expired_rules(history, &mut facts);
    talk::overruled::drop_overruled(history, &mut facts);
    past::superseded::replace_answered_goal(history, &mut facts);
    past::superseded::drop_finished_requests(&mut facts);
    talk::approved::read(history, &mut facts);
    facts.extend(mode::read(history));
    skills::read(history, &mut facts);
    refusals::drop_guessed_causes(&mut facts);
    Ledger { facts: deduplicated(facts), file_changes, directory, numbered_steps }
}

/// Sorts the facts by message and drops duplicates, keeping the last of a file, command or error, else the
/// first.
fn deduplicated(mut facts: Vec<Fact>) -> Vec<Fact> {
    // A stable sort: within a message the facts stay in the order in which they were found.
    facts.sort_by_key(|it| it.message);
    let mut seen: HashMap<(Topic, String), usize> = HashMap::new();
    let mut keep = vec![true; facts.len()];
    for index in 0..facts.len() {
        let fact = &facts[index];
        let key = match (&fact.detail, fact.topic) {
            // Each commit is one of its own.
            (Detail::Command { outcome, .. }, _) => {
                let commit = outcome.result.as_deref().filter(|it| it.starts_with("committed "));
                work::command::command_key(&fact.text) + commit.unwrap_or_default()
            }
            (Detail::Error { of, .. }, _) => {
                let of = of.as_deref().map(work::command::command_key).unwrap_or_default();
                format!("{of} {}", text::without_durations(&fact.text))
            }
            // Answers are equal only if their questions are.
            (Detail::Choice { asked, means, .. }, _) => format!("{asked:?} {means:?} {}", fact.text),
            // A short text that is repeated was said twice; a long one was resent.
            (_, Topic::UserMessages | Topic::Requests | Topic::Last) if fact.text.len() <= 60 => {
                format!("{} {}", fact.message, fact.text)
            }
            (
                Detail::None
                | Detail::Rule(_)
                | Detail::File { .. }
                | Detail::Diagnostics { .. }
                | Detail::Name(_)
                | Detail::Symbol { .. },
                _,
            ) => text::flat(&fact.text).to_lowercase(),
        };
        let newest =
            matches!(fact.detail, Detail::File { .. } | Detail::Command { .. } | Detail::Error { .. });
        match seen.entry((fact.topic, key)) {
            Entry::Vacant(first) => {
                first.insert(index);
            }
            Entry::Occupied(mut before) if newest => keep[before.insert(index)] = false,
            Entry::Occupied(_) => keep[index] = false,
        }
    }
    let mut keep = keep.into_iter();
    facts.retain(|_| keep.next().unwrap_or(true));
    facts
}
