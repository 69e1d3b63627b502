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
mod keep;
mod layout;
mod mark;
mod outcome;
mod outputs;
mod restore;
mod shorten;
mod split;
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
pub use mark::{end_mark, ends_here, made_with};
pub use outcome::{PlanOutcome, Splice, apply, behind};
pub use split::{Split, find as find_split, share_split};
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

/// The moment in which a plan is made: everything that is not in the history. Comes from the engine.
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
    /// The messages from the first on that it covers.
    pub covers: usize,
}

pub struct PlanRequest<'a> {
    pub profile: &'a Profile,
    /// Only outputs; no summary.
    pub prune_only: bool,
    /// Obey the profile's trigger, switches and cool-down.
    pub auto: bool,
    /// Tokens that the messages may have afterwards; the profile's own otherwise.
    pub budget: Option<u64>,
    /// Tokens of the kept end; the profile's own otherwise.
    pub keep: Option<u64>,
    /// Tokens the summary is known to need, once it is written; reserved until then.
    pub summary_tokens: Option<u64>,
    /// Instead of the profile's protected tokens of newest outputs.
    pub protect: Option<u64>,
    /// Tools whose outputs are never replaced.
    pub exclude_tools: &'a [String],
    /// Only the outputs of these calls.
    pub only: &'a [String],
    pub limits: ModelLimits<'a>,
    /// A stored summary of this session.
    pub snapshot: Option<Snapshot<'a>>,
    /// What a file holds now, by its path, where the user asked for that instead of what the history holds.
    pub on_disk: Option<&'a dyn Fn(&str) -> Option<String>>,
    /// The handle under which a text will be archived.
    pub handle: &'a dyn Fn(&str) -> String,
    /// How a reader gets a handle back; `{handle}` is filled in.
    pub recall: &'a str,
}

impl<'a> PlanRequest<'a> {
    /// What the profile does when it is asked by hand, and nothing else asked for. `handle` archives nothing yet: it
    /// says under which handle a text will be found.
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
    /// Messages go, without a trace in the summary.
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
        /// Where its messages will be.
        handle: String,
        tokens: u64,
        why: String,
    },
    /// Messages that are not shown to a model which is asked for the summary: the input would be too long.
    Skip {
        from: usize,
        /// Message after the last.
        to: usize,
        why: String,
    },
    /// Something is put in, or stays elsewhere than it stood.
    Move { message: usize, why: String },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutputOp {
    pub message: usize,
    /// Number of the part in it.
    pub part: usize,
    pub call_id: String,
    pub tool: String,
    pub tokens_before: u64,
    /// Tokens of what takes its place.
    pub tokens_after: u64,
    /// What takes its place.
    pub text: String,
    /// Where the original will be.
    pub handle: String,
    pub why: String,
}

/// Why nothing is done, or what is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// One of the contract's `reason_code`s; empty when something is done.
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
    /// Tokens that it could have taken before its size was known: since then the kept end has its part, and what is
    /// left has no other use. Nothing before.
    #[serde(skip)]
    pub reserved: Option<u64>,
    /// First message that is shown to a model; the ones before it would make the input too long.
    pub shown_from: usize,
    /// Number of the profile's pass that it is for.
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
    /// What happens, in the order of the history.
    pub ops: Vec<Op>,
    #[serde(skip)]
    pub layout: Vec<Segment>,
    pub need: Option<Need>,
    /// The number of messages before the cut: 0 nothing, all everything; nothing where there is no place.
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
            "system prompt and tools alone take {} tokens of a window of {window}: nothing that is compacted would help",
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
    if draft.others.iter().any(|it| matches!(it, Op::Summarize { .. })) {
        attachments::fit(&mut draft);
    }
    plan.ops = draft.ops();
    // By itself, what comes after such a step is done all the same.
    plan.act = !plan.ops.is_empty() && (request.auto || !ran.nothing_else);
    plan.need = draft.need.take();
    plan.split = draft.split;
    plan.reason = match ran.refusal {
        Some(reason) if !plan.act => reason,
        _ if plan.act => Reason::new("", describe(&plan)),
        _ => Reason::new(
            "nothing_to_compact",
            format!(
                "{} messages with {before} tokens hold nothing that this profile would take out",
                history.messages().len()
            ),
        ),
    };
    plan.layout = draft.items;
    plan
}

/// What came of a profile's passes.
#[derive(Default)]
struct Ran {
    /// Why nothing was done, of the pass that people ask about.
    refusal: Option<Reason>,
    /// The summary was refused, and its profile does without it nothing that the user asked for.
    nothing_else: bool,
}

/// Runs the passes whose time it is. `due`: by the trigger; `before`: tokens of the history.
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
            Pass::Snip(step) => keep::snip(draft, step),
            Pass::Collapse(step) => collapse::run(draft, step),
            // A second summary of the same history would have nothing left to say.
            Pass::Summarize(_) if draft.need.is_some() => continue,
            Pass::Summarize(step) if step.not_after_failure && request.auto && draft.moment.failures > 0 => {
                let text = "the last compaction failed; no summary is tried again unless somebody asks";
                Err(Reason::new("switched_off", text))
            }
            Pass::Summarize(step) => {
                let result = layout::summarize(draft, step, number);
                // Who names a budget has it when what was cleared reaches it: no summary is needed then.
                let reached = request.budget.is_some_and(|it| draft.tokens() <= it && it < before);
                if result.is_err() && step.or_nothing && !reached {
                    ran.nothing_else = true;
                    draft.undo();
                }
                result
            }
        };
        if let Err(reason) = result {
            // What the summary waits for is what people ask about; failing that, what the last pass says.
            let summary = matches!(pass, Pass::Summarize(_));
            if summary || !refused {
                ran.refusal = Some(reason);
            }
            refused |= summary;
        }
    }
    ran
}

/// Whether a context that was due is so after the passes before.
fn still_due(draft: &Draft<'_>) -> bool {
    let freed = draft.whole().saturating_sub(draft.tokens());
    let Filled { overhead, messages } = draft.filled();
    let context = (overhead + messages).saturating_sub(freed);
    let chars = draft.items.iter().map(|it| draft.json_len(it)).sum();
    trigger::still_due(draft.request.profile, &draft.request.limits, context, chars)
}

/// Whether a pass is switched off. Who asks for a prune, or for outputs by their ids, asks for what is off too.
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

/// Whether a message counts among "the messages": instructions in the system's role are overhead.
pub fn counts(message: &history::Message) -> bool {
    message.role != Role::System
}

/// Whether it holds more than what a client or an earlier compaction put there.
fn is_work(message: &history::Message) -> bool {
    match message.kind {
        Kind::Said => true,
        Kind::Context | Kind::Summary | Kind::Marker | Kind::Ack | Kind::Continue => false,
    }
}
