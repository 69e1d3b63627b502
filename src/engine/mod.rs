//! The only sequence of effects: read → plan → archive → ask → apply → write → read back → install.
//!
//! Faces translate their arguments into an [`Ask`], call one of four verbs, and show the answer.

mod archive;
mod carry;
mod compact;
mod compacted;
mod compare;
mod container;
mod cost;
mod estimate;
mod events;
mod gate;
mod hook;
mod install;
pub mod keep;
mod make;
mod marks;
mod memories;
mod moved;
mod open;
mod options;
mod preview;
mod prune;
mod readback;
mod recall;
mod repair;
mod report;
mod restore;
mod restore_seat;
mod score;
mod scorecard;
mod seat;
mod seat_event;
mod seat_items;
pub mod seat_log;
mod spending;
mod split;
pub mod statusline;
mod summarize;
pub mod transfer;
pub(crate) mod values;

use std::path::PathBuf;
use std::sync::Arc;

use crate::answers::{MethodInfo, PrunedInfo, SessionInfo};
use crate::config::{Config, StoreAt};
use crate::store::{Digest, Handle, Sqlite, Store, Where};
use compaction::plan::{Limits, Moment, Op, OutputOp, Request, Snapshot};
use compaction::profile::Pass;
use history::error::{Error, Kind, Result};
use history::{History, Usage};
use sessions::Session;
use tokens::{self, Filled, TokenCounter};

pub use compacted::{About, Checked, CompactOutcome, Compacted, Output, Question, Rejection, Summarizer};
pub(crate) use estimate::words;
pub use events::{Event, Listener};
pub use gate::{Known, MinKept};
pub use install::Installed;
pub use make::Attempt;
pub use open::{Opened, SessionRef};
pub use options::{Amount, Ask, CompactOptions, Counting, Edit, Editor, PruneOptions, To};
pub use repair::RepairTo;
pub use restore::Kept;
pub use scorecard::Subject;
pub use seat::{SeatAsk, Seated};
pub use seat_event::SeatAnswer;
pub use seat_items::{ItemsAsk, ItemsDone};
pub use seat_log::SeatEntry;

pub struct Engine {
    /// What the user wants, resolved.
    pub config: Config,
    /// The archive and memory.
    pub store: Arc<dyn Store>,
    /// Milliseconds since 1970; fixed by `--now`.
    pub now: i64,
    /// Who is told what happens.
    pub listener: Option<Listener>,
}

/// How a reader gets an original back, in a shell or by the tool of the same name.
const RECALL: &str = "epitome recall {handle}";

/// A snapshot as it is kept.
#[derive(serde::Serialize, serde::Deserialize)]
struct StoredSnapshot {
    text: String,
    covers: usize,
    /// Of the messages that it covers; a number that JSON would round.
    digest: String,
}

impl Measured<'_> {
    /// What a plan is carried out on.
    fn whole(&self) -> &History {
        self.grown.unwrap_or(self.history)
    }
}

/// A session with the counter and window it is measured by.
struct Measured<'a> {
    history: &'a History,
    /// What a plan is carried out on, where that has grown since.
    grown: Option<&'a History>,
    counter: TokenCounter,
    limits: Limits<'a>,
    /// Tokens of the messages.
    tokens: u64,
    /// Tokens of system prompt and tools, and of messages in the system's role.
    overhead: u64,
    /// A context that was reported beyond the window that the model is known for, and the window taken instead.
    inferred: Option<(u64, u64)>,
}

impl Measured<'_> {
    fn filled(&self) -> Filled {
        let overhead = self.counter.overhead();
        Filled { overhead, messages: self.context() - overhead }
    }

    /// Tokens of all that is sent.
    fn context(&self) -> u64 {
        self.tokens + self.overhead - self.counter.hidden()
    }
}

impl Engine {
    /// With the store that the configuration names. `now`: milliseconds since 1970.
    pub fn new(config: Config, now: i64) -> Result<Self> {
        let store = Sqlite::open(&place(&config), config.redactor.clone())?;
        keep_counts(&config);
        Ok(Self { config, store: Arc::new(store), now, listener: None })
    }

    /// The same for whoever only looks: where the store cannot be opened, what needs none is done all the same, and
    /// what would be kept is refused with the reason.
    pub fn even_without_store(config: Config, now: i64) -> Result<Self> {
        let store = Sqlite::open_or_refuse(&place(&config), config.redactor.clone())?;
        keep_counts(&config);
        Ok(Self { config, store: Arc::new(store), now, listener: None })
    }

    fn measure<'a>(&self, session: &'a Session, ask: &'a Ask) -> Measured<'a> {
        let compacted = session.past.iter().filter_map(|it| it.tokens_before).max();
        self.measure_history(&session.history, ask, compacted)
    }

    /// `compacted`: the largest context that the session was ever compacted at.
    fn measure_history<'a>(
        &self,
        history: &'a History,
        ask: &'a Ask,
        compacted: Option<u64>,
    ) -> Measured<'a> {
        let model = ask.counting.model.as_deref().or(history.meta.model.as_deref());
        let known = model.and_then(tokens::window);
        let configured = model.and_then(|it| self.config.model_window(&history.meta, it));
        let known_overhead = ask.counting.overhead.or_else(|| self.overhead_before(history));
        let counter = TokenCounter::for_model(history, model, ask.tokenizer(), known_overhead);
        let (mut tokens, mut overhead) = (0, counter.overhead());
        for (message, size) in history.messages().iter().zip(counter.messages(history.messages())) {
            *if compaction::plan::counts(message) { &mut tokens } else { &mut overhead } += size;
        }
        let given = ask.counting.window.or(configured).filter(|it| *it > 0);
        let told = history.meta.window.filter(|it| WINDOWS.contains(it));
        let given = given.or(told);
        // What the session's own model was sent, its window takes.
        let own = ask.counting.model.is_none();
        let seen = counter.reported().map(|it| it.1).max(compacted.filter(|it| *it <= Usage::MOST));
        let seen = seen.filter(|seen| own && given.is_none() && known.is_some_and(|it| it.context < *seen));
        let inferred = seen.map(tokens::at_least);
        let limits = Limits {
            model,
            window: given.or(inferred).or(known.map(|it| it.context)),
            window_given: given.is_some(),
            // A window that somebody gave stands for the whole input.
            input: known.and_then(|it| it.input).filter(|_| given.or(inferred).is_none()),
            output: known.map(|it| it.output),
            next: ask.next,
        };
        Measured { history, grown: None, limits, counter, tokens, overhead, inferred: seen.zip(inferred) }
    }

    /// What the system prompt and the tools took when we compacted a session for which nothing was reported since: they
    /// are sent all the same.
    fn overhead_before(&self, history: &History) -> Option<u64> {
        let summarized = history.messages().iter().any(|it| it.kind == history::Kind::Summary);
        if !summarized || TokenCounter::is_reported(history) {
            return None;
        }
        let name = marks::overhead_mark(history.meta.session.as_deref()?);
        self.store.marked(&self.scope(history), &name).ok().flatten()?.value.parse().ok()
    }

    /// The same ask; when it obeys the profile's own trigger, as the agent's own settings would have the profile.
    fn honoured(&self, ask: &Ask) -> Ask {
        let mut ask = ask.clone();
        if ask.options.auto {
            ask.profile = ask.profile.honouring(&|from| self.config.agent_setting(from));
        }
        ask
    }

    /// The session's project, if files may be read from it: somebody asked for that, and works there.
    fn project_on_disk(&self, history: &History, ask: &Ask) -> Option<PathBuf> {
        let project = history.meta.cwd.as_deref().filter(|_| ask.options.files_from_disk)?;
        let project = std::fs::canonicalize(project).ok()?;
        // Who made the session file must not say which folder of this machine is read.
        let here = std::fs::canonicalize(&self.config.agents.cwd).ok()?;
        here.starts_with(&project).then_some(project)
    }

    /// The newest stored summary of a session, if the session still begins with what it covers, and nothing is asked
    /// for that it would not say.
    fn snapshot(&self, history: &History, ask: &Ask) -> Option<(String, usize)> {
        let wanted = |it: &Pass| matches!(it, Pass::Summarize(it) if it.snapshot.is_some());
        let asked = !ask.options.pin.is_empty() || ask.options.focus.is_some() || ask.edit.is_some();
        if asked || !ask.profile.passes.iter().any(wanted) {
            return None;
        }
        let name = format!("snapshot/{}", history.meta.session.as_deref()?);
        let mark = self.store.marked(&self.scope(history), &name).ok().flatten()?;
        let stored: StoredSnapshot = serde_json::from_str(&mark.value).ok()?;
        let prefix = history.messages().get(..stored.covers)?;
        let same = compaction::plan::prefix_of(prefix).digest.to_string() == stored.digest;
        same.then_some((stored.text, stored.covers))
    }

    /// Keeps a summary of the first messages of a session, so that a later compaction can use it: each that a model
    /// wrote or the user edited is kept.
    pub fn keep_snapshot(&self, history: &History, covers: usize, text: &str) -> Result<()> {
        let (Some(session), Some(prefix)) =
            (history.meta.session.as_deref(), history.messages().get(..covers))
        else {
            let what = format!(
                "a snapshot: expected a session with an id and {covers} messages, found neither or fewer"
            );
            return Err(Error::new(Kind::Arguments, what));
        };
        let digest = compaction::plan::prefix_of(prefix).digest.to_string();
        // A model may repeat a secret that it was told of elsewhere, a user may write one.
        let stored = StoredSnapshot { text: self.config.redactor.redact(text), covers, digest };
        let value = history::json::compact(&stored);
        self.store.mark(&self.scope(history), &format!("snapshot/{session}"), &value, self.now)
    }

    /// Compactions of a session that ran by themselves and failed in a row.
    fn failures(&self, history: &History) -> u32 {
        let Some(session) = history.meta.session.as_deref() else { return 0 };
        let mark = self.store.marked(&self.scope(history), &format!("failed/{session}")).ok().flatten();
        mark.and_then(|it| it.value.parse().ok()).unwrap_or(0)
    }

    /// Counts a compaction that ran by itself: a failure more, or none any more.
    fn count_failure(&self, history: &History, failed: bool) -> Result<()> {
        let Some(session) = history.meta.session.as_deref() else { return Ok(()) };
        let (scope, name) = (self.scope(history), format!("failed/{session}"));
        match (failed, self.failures(history)) {
            (true, before) => self.store.mark(&scope, &name, &(before + 1).to_string(), self.now),
            (false, 0) => Ok(()),
            (false, _) => self.store.unmark(&scope, &name).map(drop),
        }
    }

    /// Calls `with` with the request of a plan; what it borrows lives as long as the call.
    fn with_request<T>(
        &self,
        measured: &Measured<'_>,
        ask: &Ask,
        prune_only: bool,
        summary_tokens: Option<u64>,
        with: impl FnOnce(&Request<'_>) -> T,
    ) -> T {
        let scope = self.scope(measured.history);
        let snapshot = self.snapshot(measured.history, ask);
        let project = self.project_on_disk(measured.history, ask);
        let on_disk = |path: &str| crate::files::text_below(project.as_deref()?, path);
        let handle = |text: &str| Handle::of(&scope, &Digest::of(text.as_bytes())).as_str().to_owned();
        with(&Request {
            profile: &ask.profile,
            prune_only,
            auto: ask.options.auto,
            budget: ask.options.budget.map(|it| it.of(measured.tokens)),
            keep: ask.options.keep.map(|it| it.of(measured.tokens)),
            summary_tokens,
            protect: ask.prune.protect_tokens,
            exclude_tools: &ask.prune.exclude_tools,
            only: &ask.prune.only,
            limits: measured.limits,
            snapshot: snapshot.as_ref().map(|(text, covers)| Snapshot { text, covers: *covers }),
            on_disk: project.as_ref().map(|_| &on_disk as &dyn Fn(&str) -> Option<String>),
            handle: &handle,
            recall: RECALL,
        })
    }

    /// To whom what is archived of a history belongs: the local user and the session's project.
    pub(crate) fn scope(&self, history: &History) -> crate::store::Scope {
        let project = history.meta.cwd.as_deref().unwrap_or_default();
        crate::store::Scope { owner: self.config.owner.clone(), project: project.to_owned() }
    }

    /// Whose memories are meant: the session's project's, or this directory's where the session does not say it.
    pub(crate) fn memory_scope(&self, history: &History) -> crate::store::Scope {
        if history.meta.cwd.is_some() { self.scope(history) } else { self.project() }
    }

    fn moment(&self, history: &History, ask: &Ask) -> Moment {
        Moment {
            now: self.now,
            cause: ask.cause(),
            last_run: self.last_compaction(history),
            failures: self.failures(history),
        }
    }
}

/// Exact counts are kept beside the store, where there is one.
fn keep_counts(config: &Config) {
    if let Where::Path(directory) = place(config) {
        tokens::exact::keep_on(crate::store::Counts::new(directory.join("counts")));
    }
}

fn place(config: &Config) -> Where {
    match &config.store {
        StoreAt::Path(path) => Where::Path(path.clone()),
        StoreAt::Nowhere => Where::None,
    }
}

fn session_info(opened: &Opened) -> SessionInfo {
    let meta = &opened.session.history.meta;
    let text = |it: &Option<Arc<str>>| it.as_deref().map(str::to_owned);
    SessionInfo {
        agent: text(&meta.agent),
        id: text(&meta.session),
        path: opened.path.as_ref().map(|it| it.display().to_string()),
        format: opened.session.format.name().to_owned(),
        model: text(&meta.model),
    }
}

fn method_info(counter: &TokenCounter) -> MethodInfo {
    let method = counter.method();
    MethodInfo {
        kind: method.kind.name().to_owned(),
        estimator: method.estimator.name().to_owned(),
        anchor: method.anchor,
        margin_percent: method.margin_percent,
    }
}

/// The outputs that a plan clears or shortens.
fn pruned(ops: &[Op]) -> Vec<PrunedInfo> {
    let info = |op: &OutputOp| PrunedInfo {
        message: op.message,
        call_id: op.call_id.clone(),
        tool: op.tool.clone(),
        tokens_before: op.tokens_before,
        tokens_after: op.tokens_after,
        text: op.text.clone(),
        handle: op.handle.clone(),
    };
    ops.iter()
        .filter_map(|op| if let Op::Clear(op) | Op::Shorten(op) = op { Some(info(op)) } else { None })
        .collect()
}

/// What could not be read, and what is not believed.
fn warnings(opened: &Opened, measured: &Measured<'_>) -> Vec<String> {
    let mut out = notes(opened);
    if let Some((message, tokens)) = measured.counter.disbelieved() {
        out.push(format!(
            "message {message} reports a context of {tokens} tokens, which is not this history's: more than any model \
             takes or than the messages can come to, or less than a twentieth of them; it is counted without that report"
        ));
    }
    if let Some((message, why)) = compaction::plan::refused(measured.history.messages(), &measured.counter) {
        out.push(format!(
            "message {message} holds an image that the API refuses ({why}): every request with it fails; `epitome \
             compact` replaces it by a note"
        ));
    }
    let hidden = measured.counter.hidden();
    if hidden > 0 {
        out.push(format!(
            "{hidden} tokens of the messages were not sent with the last request, by what the provider reported: \
             something (a plugin, the agent itself) prunes what the model sees; the context is told without them"
        ));
    }
    if let Some((seen, window)) = measured.inferred {
        out.push(format!(
            "the session had a context of {seen} tokens, more than the window that the model is known for; its window \
             is taken to be {window} (--window sets it)"
        ));
    }
    if let Some(window) = measured.history.meta.window.filter(|it| !WINDOWS.contains(it)) {
        out.push(format!(
            "the session tells a window of {window} tokens, which no model has; it is not gone by"
        ));
    }
    out
}

/// Windows that models have, in tokens.
const WINDOWS: std::ops::RangeInclusive<u64> = 1_000..=Usage::MOST;

/// What could not be read, as warnings; the first few and a count.
fn notes(opened: &Opened) -> Vec<String> {
    let notes = &opened.session.notes;
    let mut out: Vec<String> =
        notes.iter().take(5).map(|it| format!("line {}: {}", it.line, it.what)).collect();
    if notes.len() > 5 {
        out.push(format!(
            "… and {} more lines that were not understood and are kept as they are",
            notes.len() - 5
        ));
    }
    if let (false, true, Some(path)) = (notes.is_empty(), opened.session.format.is_repaired(), &opened.path) {
        let session = crate::agents::reach::quoted(&path.display().to_string());
        out.push(format!("`epitome repair {session}` says what is wrong with it, and mends only that"));
    }
    out
}
