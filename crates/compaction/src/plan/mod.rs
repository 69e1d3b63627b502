//! From a history and a profile to a plan, and from a plan and a summary to an outcome. Pure.
//!
//! ```text
//! History ─▶ plan: trigger ─▶ pass ─▶ pass ─▶ … ─▶ Plan ─▶ [summary] ─▶ apply ─▶ PlanOutcome
//!                             outputs, snip, collapse, summarize: each changes a Draft
//! ```
//!
//! **Invariants.** A plan is a document: it says what it does and why, and for which history it was made. Units are
//! never cut. The last prompt and all after it survive word for word, or the plan says why not. An outcome is smaller
//! than its input or it is rejected. Forced on its own outcome with nothing new, a plan does nothing.

mod attachments;
mod collapse;
mod draft;
mod outcome;
mod outputs;
mod split;
mod summarize;
mod trigger;

pub use attachments::{attached, refused};
use serde::{Deserialize, Serialize};

use crate::profile::{Pass, Profile, When};
use history::error::Hint;
use history::named;
use history::{History, Kind, Role};
use tokens::{Filled, TokenCounter, Tokenizer};

pub use collapse::transcript;
pub use draft::{Segment, json_len};
pub use outcome::{PlanOutcome, Splice, apply, behind};
pub use split::{Split, find as find_split, share_split};
pub use summarize::mark::{end_mark, ends_here, made_with};
pub use trigger::{Gate, ModelLimits, Verdict, passes, threshold, verdict};

use draft::Draft;

named! {
    /// Why a compaction runs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Cause {
        /// The user asked for it.
        #[default]
        Manual = "manual",
        /// The context filled up.
        Auto = "auto",
        /// The model refused the input as too long.
        Overflow = "overflow",
    }
}

/// What a plan depends on besides the history: time, cause and earlier runs. Filled in by the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// Milliseconds since 1970.
    pub now: i64,
    pub cause: Cause,
    /// When this session was last compacted, ms since 1970.
    pub last_run: Option<i64>,
    /// Compactions that failed in a row.
    pub failures: u32,
}

/// A summary that was stored earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot<'a> {
    pub text: &'a str,
    /// Number of messages that it covers, counted from the first.
    pub covers: usize,
}

pub struct PlanRequest<'a> {
    pub profile: &'a Profile,
    /// Prune: only tool outputs are replaced; nothing is snipped, collapsed or summarized.
    pub prune_only: bool,
    /// An automatic run: obeys the profile's trigger, switches and cool-down.
    pub auto: bool,
    /// Maximum tokens of the messages afterwards; `None`: the profile's own budget.
    pub budget: Option<u64>,
    /// Maximum tokens of the kept tail; `None`: the profile's own.
    pub keep: Option<u64>,
    /// Tokens of the summary, once it is written; until then its maximum is reserved.
    pub summary_tokens: Option<u64>,
    /// Tokens of newest outputs to protect; `None`: the profile's own.
    pub protect: Option<u64>,
    /// Tools whose outputs are never replaced.
    pub exclude_tools: &'a [String],
    /// If not empty, only the outputs of the calls with these ids are replaced.
    pub only: &'a [String],
    pub limits: ModelLimits<'a>,
    /// A stored summary of this session.
    pub snapshot: Option<Snapshot<'a>>,
    /// Reads a file's current content; `Some` if the user wants that instead of what the history holds.
    pub on_disk: Option<&'a dyn Fn(&str) -> Option<String>>,
    /// Computes the handle under which a text will be archived.
    pub handle: &'a dyn Fn(&str) -> String,
    /// The command that gets an archived text back; `{handle}` is filled in.
    pub recall: &'a str,
    /// Finds the lines of a text that state errors: they stay when its middle is cut out.
    pub error_lines: fn(&str) -> Vec<&str>,
}

impl<'a> PlanRequest<'a> {
    /// A request made by hand, with the profile's own numbers. `handle` archives nothing: it only computes
    /// the handle under which a text will be found.
    pub fn new(profile: &'a Profile, handle: &'a dyn Fn(&str) -> String) -> Self {
        Self {
            profile,
            prune_only: false,
            auto: false,
            budget: None,
            keep: None,
            summary_tokens: None,
            protect: None,
            exclude_tools: &[],
            only: &[],
            limits: ModelLimits::default(),
            snapshot: None,
            on_disk: None,
            handle,
            recall: "epitome recall {handle}",
            error_lines: |_| Vec::new(),
        }
    }
}

/// What happens to one part of the history, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Op {
    /// An output is replaced by a placeholder.
    Clear(OutputOp),
    /// An output or text keeps its beginning and end.
    Shorten(OutputOp),
    /// Messages are removed and not summarized.
    Drop {
        from: usize,
        /// Message after the last.
        to: usize,
        why: String,
    },
    /// Messages are replaced by the summary.
    Summarize {
        from: usize,
        /// Message after the last.
        to: usize,
        why: String,
    },
    /// A finished turn becomes one line.
    Collapse {
        from: usize,
        /// Message after the last.
        to: usize,
        text: String,
        /// Handle under which its messages will be archived.
        handle: String,
        tokens: u64,
        why: String,
    },
    /// Messages that the summarizing model is not shown, because its input would be too long.
    Skip {
        from: usize,
        /// Message after the last.
        to: usize,
        why: String,
    },
    /// A message stays, but at another place.
    Move { message: usize, why: String },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutputOp {
    pub message: usize,
    /// Index of the part in the message.
    pub part: usize,
    pub call_id: String,
    pub tool: String,
    pub tokens_before: u64,
    /// Tokens of the replacement.
    pub tokens_after: u64,
    pub text: String,
    /// Handle under which the original will be archived.
    pub handle: String,
    pub why: String,
}

/// Why a plan does nothing, or what it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The `reason_code` of the answer; empty when something is done.
    pub code: &'static str,
    /// A sentence with the numbers.
    pub text: String,
    /// What the caller can do about it.
    #[serde(skip)]
    pub hint: Option<Hint>,
}

impl Reason {
    fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), hint: None }
    }
}

/// The summary that a plan needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Need {
    /// First message that it replaces.
    pub from: usize,
    /// Message after the last.
    pub to: usize,
    pub max_tokens: u64,
    /// The limit before the summary's size was known, of which each kind of line in the offline summary has
    /// its share. `None` until then.
    #[serde(skip)]
    pub reserved: Option<u64>,
    /// First message that the model is shown; earlier ones would make its input too long.
    pub shown_from: usize,
    /// Index of the profile's pass that needs it.
    pub pass: usize,
}

/// The history that a plan was made for: its length and a digest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HistoryPrefix {
    pub count: usize,
    /// XXH3 of their content.
    pub digest: u64,
}

/// What will be done, and why. A dry run, a preview, a log line and a test snapshot at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    pub profile: String,
    pub cause: Cause,
    pub made_for: HistoryPrefix,
    /// Whether anything is to be done.
    pub act: bool,
    /// Why, or why not.
    pub reason: Reason,
    /// What happens: first to messages, then to outputs.
    pub ops: Vec<Op>,
    #[serde(skip)]
    pub layout: Vec<Segment>,
    pub need: Option<Need>,
    /// Number of messages before the cut: 0 none, all everything; `None` if there is no place to cut.
    pub split: Option<usize>,
    /// Tokens of the messages now.
    pub tokens_before: u64,
}

/// Makes a plan. Never fails: a plan that does nothing says why.
///
/// ```
/// use compaction::plan::{self, Moment, PlanRequest};
/// use compaction::profile::Profile;
/// use history::{History, Kind, Message, Meta, Role};
/// use tokens::{TokenCounter, Tokenizer};
///
/// let toml = r#"
/// name = "short"
/// about = "keeps the last message beside a summary"
/// follows = "nobody"
///
/// [[pass]]
/// do = "summarize"
/// when = "due"
/// keep = { messages = 1 }
/// layout = ["head", "summary", "tail"]
/// summary = { max-tokens = 100, sections = [{ title = "Where we are", holds = ["goal", "last"] }] }
/// "#;
/// let profile = Profile::parse(toml, "short.toml", &[])?;
/// let said = |number: usize| Message::text(Role::User, Kind::Said, format!("Step {number} of the plan. ").repeat(99));
/// let history = History::new((0..20).map(said).collect(), Meta::default());
/// let counter = TokenCounter::new(&history, Tokenizer::Auto, None);
/// let request = PlanRequest::new(&profile, &|_| "0000000000".to_owned());
/// let plan = plan::plan(&history, &counter, &request, &Moment::default());
/// assert!(plan.act, "{}", plan.reason.text);
/// assert_eq!(plan.need.map(|it| it.to), Some(19));
/// # Ok::<(), history::error::Error>(())
/// ```
pub fn plan(history: &History, counter: &TokenCounter, request: &PlanRequest<'_>, moment: &Moment) -> Plan {
    let profile = request.profile;
    let native = profile
        .estimator
        .map(|it| TokenCounter::new(history, Tokenizer::Fixed(it), Some(counter.overhead())));
    let mut draft = Draft::new(history, counter, native.as_ref().unwrap_or(counter), request, moment);
    let before = draft.tokens();
    let mut plan = Plan {
        profile: profile.name.clone(),
        cause: moment.cause,
        made_for: prefix(history),
        act: false,
        reason: Reason::new("", String::new()),
        ops: Vec::new(),
        layout: Vec::new(),
        need: None,
        split: None,
        tokens_before: before,
    };
    let due = verdict(history, draft.filled(), profile, &request.limits, moment);
    if let Some(window) = request.limits.window
        && counter.overhead() >= window
    {
        let text = format!(
            "system prompt and tools alone take {} tokens of a window of {window}: compacting messages would not help",
            counter.overhead()
        );
        plan.reason = Reason::new("window_too_small", text);
        return plan;
    }
    let overflow = moment.cause == Cause::Overflow;
    let cheap = profile.passes.iter().any(|it| it.when() == When::Always && !is_off(it, request));
    if request.auto && !due.due && !overflow && (!cheap || due.code == "switched_off") {
        plan.reason = Reason { code: due.code, text: due.reason, hint: due.hint };
        return plan;
    }
    let mut ran = run_passes(&mut draft, due.due, before);
    if request.auto && !due.due && !overflow && !request.prune_only {
        ran.refusal = Some(Reason { code: due.code, text: due.reason, hint: due.hint });
    }
    if draft.message_ops.iter().any(|it| matches!(it, Op::Summarize { .. })) {
        attachments::fit(&mut draft);
    }
    plan.ops = draft.ops();
    // In an automatic run, what later passes did counts although the summary was refused.
    plan.act = !plan.ops.is_empty() && (request.auto || !ran.nothing_else);
    plan.need = draft.need.take();
    plan.split = draft.split;
    plan.reason = match ran.refusal {
        Some(reason) if !plan.act => reason,
        _ if plan.act => Reason::new("", describe(&plan)),
        _ => Reason::new(
            "nothing_to_compact",
            format!(
                "{} messages with {before} tokens contain nothing that this profile would remove",
                history.messages().len()
            ),
        ),
    };
    plan.layout = draft.items;
    plan
}

/// What running a profile's passes led to.
#[derive(Default)]
struct Ran {
    /// Why nothing was done: the summary's reason if it was refused, otherwise the last pass's.
    refusal: Option<Reason>,
    /// An `or_nothing` summary was refused, so that a run by hand must do nothing.
    nothing_else: bool,
}

/// Runs the passes whose [`When`] applies. `due`: by the trigger; `before`: tokens of the history.
fn run_passes(draft: &mut Draft<'_>, due: bool, before: u64) -> Ran {
    let request = draft.request;
    let overflow = draft.moment.cause == Cause::Overflow;
    let mut ran = Ran::default();
    let mut refused = false;
    for (number, pass) in request.profile.passes.iter().enumerate() {
        let called = !request.auto || due;
        let runs = match pass.when() {
            When::Always => true,
            When::Due => called || overflow,
            When::Planned => called && !overflow && (!request.auto || still_due(draft)),
            When::Overflow => overflow,
        };
        if !runs || is_off(pass, request) {
            continue;
        }
        let result = match pass {
            Pass::Outputs(step) => outputs::run(draft, step),
            Pass::Snip(_) | Pass::Collapse(_) | Pass::Summarize(_) if request.prune_only => continue,
            Pass::Snip(step) => summarize::keep::snip(draft, step),
            Pass::Collapse(step) => collapse::run(draft, step),
            // After a first summary, a second one of the same history would have nothing left to replace.
            Pass::Summarize(_) if draft.need.is_some() => continue,
            Pass::Summarize(step) if step.not_after_failure && request.auto && draft.moment.failures > 0 => {
                let text = "the last compaction failed; a summary is not tried again unless it is asked for";
                Err(Reason::new("switched_off", text))
            }
            Pass::Summarize(step) => {
                let result = summarize::run(draft, step, number);
                // If cleared outputs alone reach the requested budget, no summary is needed.
                let reached = request.budget.is_some_and(|it| draft.tokens() <= it && it < before);
                if result.is_err() && step.or_nothing && !reached {
                    ran.nothing_else = true;
                    draft.undo();
                }
                result
            }
        };
        if let Err(reason) = result {
            // Users ask why there is no summary, so its reason takes precedence over other passes'.
            let summary = matches!(pass, Pass::Summarize(_));
            if summary || !refused {
                ran.refusal = Some(reason);
            }
            refused |= summary;
        }
    }
    ran
}

/// Whether a context that was due still is after the passes so far.
fn still_due(draft: &Draft<'_>) -> bool {
    let freed = draft.tokens_before().saturating_sub(draft.tokens());
    let Filled { overhead, messages } = draft.filled();
    let context = (overhead + messages).saturating_sub(freed);
    let chars = draft.items.iter().map(|it| draft.json_len(it)).sum();
    trigger::still_due(draft.request.profile, &draft.request.limits, context, chars)
}

/// Whether a pass is switched off. A prune that the user asks for also runs output passes that are off.
fn is_off(pass: &Pass, request: &PlanRequest<'_>) -> bool {
    match pass {
        Pass::Outputs(step) => step.off && (request.auto || !request.prune_only),
        Pass::Collapse(step) => !step.on,
        Pass::Snip(step) => step.off,
        Pass::Summarize(_) => false,
    }
}

/// One sentence for what a plan does.
fn describe(plan: &Plan) -> String {
    let outputs = plan.ops.iter().filter(|it| matches!(it, Op::Clear(_) | Op::Shorten(_))).count();
    let dropped: usize =
        plan.ops.iter().map(|it| if let Op::Drop { from, to, .. } = it { to - from } else { 0 }).sum();
    let mut parts = Vec::new();
    if let Some(need) = &plan.need {
        parts.push(format!(
            "messages {}–{} become a summary of at most {} tokens",
            need.from,
            need.to.max(1) - 1,
            need.max_tokens
        ));
    }
    let turns = plan.ops.iter().filter(|it| matches!(it, Op::Collapse { .. })).count();
    if turns > 0 {
        parts.push(many(turns, "finished turn becomes", "finished turns become") + " a line each");
    }
    if plan.need.is_none() {
        let why =
            plan.ops.iter().find_map(|it| if let Op::Summarize { why, .. } = it { Some(why) } else { None });
        parts.extend(why.cloned());
    }
    if outputs > 0 {
        parts.push(many(outputs, "tool output is", "tool outputs are") + " cleared or shortened");
    }
    if dropped > 0 {
        parts.push(many(dropped, "message is", "messages are") + " left out");
    }
    parts.join("; ")
}

fn many(number: usize, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

/// Identifies the history that a plan was made for.
pub fn prefix(history: &History) -> HistoryPrefix {
    prefix_of(history.messages())
}

/// Identifies the first messages of a history.
pub fn prefix_of(messages: &[history::Message]) -> HistoryPrefix {
    use history::Part;
    use std::hash::Hasher;
    let mut hash = twox_hash::XxHash3_64::new();
    let mut put = |tag: u8, text: &str| {
        hash.write(&[tag]);
        hash.write(&(text.len() as u64).to_le_bytes());
        hash.write(text.as_bytes());
    };
    for message in messages {
        let role = match message.role {
            Role::System => 0,
            Role::User => 1,
            Role::Assistant => 2,
            Role::Tool => 3,
        };
        put(role, "");
        for part in &message.parts {
            match part {
                Part::Text(it) => put(10, it.as_str()),
                Part::Reasoning(it) => put(11, it.text.as_str()),
                Part::Call(it) => {
                    put(12, &it.id);
                    put(12, it.input.as_str());
                }
                Part::Output(it) => {
                    put(13, &it.id);
                    put(13, it.text.as_str());
                }
                Part::Media(it) => put(14, &it.data),
                Part::Opaque(it) => put(15, it.raw.as_str()),
            }
        }
    }
    HistoryPrefix { count: messages.len(), digest: hash.finish() }
}

/// Whether a message counts among "the messages": system messages are overhead instead.
pub fn counts(message: &history::Message) -> bool {
    message.role != Role::System
}

/// Whether a message is part of the conversation: not inserted by a client or an earlier compaction.
fn is_work(message: &history::Message) -> bool {
    match message.kind {
        Kind::Said => true,
        Kind::Context | Kind::Summary | Kind::Marker | Kind::Ack | Kind::Continue => false,
    }
}
