//! The only sequence of effects: read → plan → archive → ask → apply → write → read back → install.
//!
//! Faces translate their arguments into an [`Ask`], call one of four verbs, and show the answer.

mod archive;
mod carry;
mod compact;
mod compacted;
mod compare;
mod cost;
mod estimate;
mod events;
mod gate;
mod hook;
mod install;
mod make;
mod memories;
mod open;
mod preview;
mod prune;
mod readback;
mod recall;
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

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::answers::{MethodInfo, PrunedInfo, SessionInfo};
use crate::config::{Choice, Config, Said, StoreAt};
use crate::llm::run::{Sampling, Watch};
use crate::store::{Digest, Handle, Sqlite, Store, Where};
use compaction::plan::{Cause, Limits, Moment, Op, OutputOp, Request, Snapshot};
use compaction::profile::{Pass, Profile, Style};
use history::error::{Error, Kind, Result};
use history::{History, Usage};
use sessions::{Format, Session};
use tokens::{self, Filled, TokenCounter, Tokenizer};

pub use compacted::Compacted;
pub(crate) use estimate::words;
pub use events::{Event, Listener};
pub use gate::{Known, MinKept};
pub use open::{Opened, SessionRef};
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

/// A size: so many tokens, or a share of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Amount {
    Tokens(u64),
    /// Share of the messages' tokens, 0 to 1.
    Share(f64),
}

impl Amount {
    /// Reads `4000`, `4k`, `20%` or `0.2`.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            let what = format!("expected tokens (4000, 4k) or a share (20%, 0.2), found {text:?}");
            Error::new(Kind::Arguments, what)
        };
        let outside = || {
            let what = format!("a share must be above 0% and at most 100%, found {text:?}");
            Error::new(Kind::Arguments, what)
        };
        let text = text.trim();
        let share =
            |value: f64| (0.0 < value && value <= 1.0).then_some(Self::Share(value)).ok_or_else(outside);
        if let Some(percent) = text.strip_suffix('%') {
            return share(percent.trim().parse::<f64>().map_err(|_| wrong())? / 100.0);
        }
        if let Some(thousands) = text.strip_suffix(['k', 'K']) {
            let value: f64 = thousands.parse().map_err(|_| wrong())?;
            return if value > 0.0 { Ok(Self::Tokens((value * 1000.0) as u64)) } else { Err(wrong()) };
        }
        if let Ok(tokens) = text.parse::<u64>() {
            return if tokens > 0 { Ok(Self::Tokens(tokens)) } else { Err(wrong()) };
        }
        share(text.parse::<f64>().map_err(|_| wrong())?)
    }

    /// In tokens, of so many.
    pub fn of(self, total: u64) -> u64 {
        match self {
            Self::Tokens(tokens) => tokens,
            Self::Share(share) => (total as f64 * share).floor() as u64,
        }
    }
}

/// What is to be done with a result.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum To {
    #[default]
    Plan,
    /// A file of that path; in the session's own format, or as the messages that were asked for.
    File(std::path::PathBuf),
    /// The bytes are handed back.
    Bytes,
    /// The session itself, so that its agent resumes from it.
    Session,
    /// A new session of this agent.
    Agent(crate::agents::AgentRef),
}

/// What a caller asks for, in the words of interface.md.
#[derive(Debug, Clone)]
pub struct Ask {
    pub profile: Profile,
    /// Instead of the session's model.
    pub model: Option<String>,
    /// Instead of the model's window, in tokens.
    pub window: Option<u64>,
    /// Tokens of system prompt and tools of bare messages.
    pub overhead: Option<u64>,
    pub tokenizer: Tokenizer,
    /// What the messages may have afterwards.
    pub budget: Option<Amount>,
    /// How much of the end stays.
    pub keep: Option<Amount>,
    /// What to look at.
    pub focus: Option<String>,
    pub style: Style,
    /// Facts to carry word for word.
    pub pins: Vec<String>,
    /// Obey the profile's own trigger.
    pub auto: bool,
    pub cause: Cause,
    /// Plain messages of this API instead of the session's own format.
    pub messages_as: Option<Format>,
    /// Refuse to keep less of the facts than this.
    pub min_kept: MinKept,
    /// Instead of the profile's protected tokens of newest outputs.
    pub protect: Option<u64>,
    /// Tools whose outputs stay.
    pub exclude_tools: Vec<String>,
    /// Only the outputs of these calls.
    pub only: Vec<String>,
    /// Tokens of what is about to be sent besides.
    pub next: Option<u64>,
    /// Where the result goes.
    pub to: To,
    /// A summary that is written already: nobody is asked for one.
    pub written: Option<String>,
    /// Who writes the summary.
    pub summarizer: Choice,
    /// The user asks, who may name any provider; otherwise only what the configuration names is asked.
    pub trusted: bool,
    /// Where that is, where the call says so.
    pub endpoint: Said,
    /// Nobody is asked: what it would cost is told instead.
    pub dry: bool,
    /// Whoever watches while a model writes.
    pub watch: Watch,
    /// The calling client's own model, where it can be asked right away: then [`Choice::Host`] needs no second call.
    pub sampling: Option<Sampling>,
    /// Lets the user change the summary before it is used.
    pub edit: Option<Edit>,
    /// Files that a profile puts back come from disk, where they lie below the session's project.
    pub from_disk: bool,
}

/// Gets a summary and gives back what the user made of it.
#[derive(Clone)]
pub struct Edit(pub Arc<Editor>);

/// Opens a text and gives back what became of it.
pub type Editor = dyn Fn(&str) -> Result<String> + Send + Sync;

impl std::fmt::Debug for Edit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Edit")
    }
}

impl Ask {
    /// By this profile, with nothing else asked for.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            model: None,
            window: None,
            overhead: None,
            tokenizer: Tokenizer::Auto,
            budget: None,
            keep: None,
            focus: None,
            style: Style::default(),
            pins: Vec::new(),
            auto: false,
            cause: Cause::Manual,
            messages_as: None,
            min_kept: MinKept::default(),
            protect: None,
            exclude_tools: Vec::new(),
            only: Vec::new(),
            next: None,
            to: To::Plan,
            written: None,
            summarizer: Choice::Offline,
            trusted: false,
            endpoint: Said::default(),
            dry: false,
            watch: Watch::default(),
            sampling: None,
            edit: None,
            from_disk: false,
        }
    }
}

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
        let model = ask.model.as_deref().or(history.meta.model.as_deref());
        let known = model.and_then(tokens::window);
        let configured = model.and_then(|it| self.config.windows.get(it).copied());
        let known_overhead = ask.overhead.or_else(|| self.overhead_before(history));
        let counter = TokenCounter::for_model(history, model, ask.tokenizer, known_overhead);
        let (mut tokens, mut overhead) = (0, counter.overhead());
        for (message, size) in history.messages().iter().zip(counter.messages(history.messages())) {
            *if compaction::plan::counts(message) { &mut tokens } else { &mut overhead } += size;
        }
        let given = ask.window.or(configured).filter(|it| *it > 0);
        let told = history.meta.window.filter(|it| WINDOWS.contains(it));
        let given = given.or(told);
        // What the session's own model was sent, its window takes.
        let own = ask.model.is_none();
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
        let name = install::overhead_mark(history.meta.session.as_deref()?);
        self.store.marked(&self.scope(history), &name).ok().flatten()?.value.parse().ok()
    }

    /// The same ask; when it obeys the profile's own trigger, as the agent's own settings would have the profile.
    fn honoured(&self, ask: &Ask) -> Ask {
        let mut ask = ask.clone();
        if ask.auto {
            ask.profile = ask.profile.honouring(&|from| self.config.agent_setting(from));
        }
        ask
    }

    /// The session's project, if files may be read from it: somebody asked for that, and works there.
    fn project_on_disk(&self, history: &History, ask: &Ask) -> Option<PathBuf> {
        let project = history.meta.cwd.as_deref().filter(|_| ask.from_disk)?;
        let project = std::fs::canonicalize(project).ok()?;
        // Who made the session file must not say which folder of this machine is read.
        let here = std::fs::canonicalize(&self.config.agents.cwd).ok()?;
        here.starts_with(&project).then_some(project)
    }

    /// The newest stored summary of a session, if the session still begins with what it covers, and nothing is asked
    /// for that it would not say.
    fn snapshot(&self, history: &History, ask: &Ask) -> Option<(String, usize)> {
        let wanted = |it: &Pass| matches!(it, Pass::Summarize(it) if it.snapshot.is_some());
        let asked = !ask.pins.is_empty() || ask.focus.is_some() || ask.edit.is_some();
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
            auto: ask.auto,
            budget: ask.budget.map(|it| it.of(measured.tokens)),
            keep: ask.keep.map(|it| it.of(measured.tokens)),
            summary_tokens,
            protect: ask.protect,
            exclude_tools: &ask.exclude_tools,
            only: &ask.only,
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
            cause: ask.cause,
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
    out
}
