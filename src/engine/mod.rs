//! The only sequence of effects: read → plan → ask → apply → check → archive → write → read back → install.
//!
//! The faces (CLI, MCP) translate their arguments into an [`Ask`], call a verb, and show the answer. Each
//! verb is a function in its own file; [`Engine`] is what they share.

mod archive;
mod compact;
mod input;
mod inspect;
mod prune;
mod repair;
mod score;
mod seat;
pub mod transfer;
mod undo;
mod write_back;

use std::path::PathBuf;
use std::sync::Arc;

use crate::answers::{MethodInfo, PrunedInfo, SessionInfo};
use crate::config::Config;
use crate::store::{AuditEntry, AuditVerb, Face, Scope, Store, StoreAt};
use compaction::plan::{Op, OutputOp};
use history::History;
use history::error::{Hint, HintWords, Result};
use tokens::TokenCounter;

pub use crate::agents::hooks::seat::SeatAsk;
pub use archive::passages::is_qualifier;
pub use archive::readable::readable;
pub use archive::recall::{FoundPrompt, Recalled, newest, read, recall, search};
pub use archive::{keep, push};
pub use compact::answered::answered;
pub use compact::attempt::{Attempt, HistoryFacts};
pub use compact::compact;
pub use compact::compacted::{
    Accepted, CompactOutcome, Compacted, Delivered, Question, Rejection, Summarizer,
};
#[cfg(feature = "otel")]
#[doc(hidden)]
pub use compact::events::otel;
pub use compact::events::{Event, Listener, shell};
pub use compact::min_kept::MinKept;
pub use compact::preview::{apply_preview, can_apply, keep_preview};
pub use compact::summary_cost::estimate_by_provider;
pub use input::open::{Directories, Opened, SessionRef, continued, open, open_measured, sessions};
pub use input::options::{Amount, Ask, CompactOptions, Counting, Edit, Editor, PruneOptions, To, Writer};
pub use input::request::keep_snapshot;
pub(crate) use input::values;
pub(crate) use inspect::estimate::words;
pub use inspect::estimate::{due, estimate};
pub use inspect::report::report;
pub use inspect::session_cost::cost_of;
pub use inspect::split::split;
pub use inspect::statusline;
#[cfg(feature = "parquet")]
pub use inspect::tables::tables;
pub use prune::prune;
pub use repair::{RepairTo, repair};
pub use score::compare::compare;
pub use score::hindsight::{CompactionWay, SessionCut, cuts, evaluate_way, hindsight};
pub use score::score;
pub use score::scorecard::{baseline, chained, planted, scorecard, trial};
pub use score::subject::{Subject, subject};
pub use seat::event::{SeatAnswer, seat_event};
pub use seat::hook::hook;
pub use seat::items::{ItemsAsk, ItemsDone, seat_items};
pub use seat::log::{self as seat_log, SeatEntry};
pub use seat::{Seated, seat};
pub use transfer::carry::{brief, hand_off};
pub use undo::{Archived, located, undo, undo_of};
pub use write_back::Installed;
pub(crate) use write_back::can_write_back;

pub struct Engine {
    pub config: Config,
    pub store: Arc<Store>,
    /// Milliseconds since 1970; fixed by `--now`.
    pub now: i64,
    /// Receives the events of compactions.
    pub listener: Option<Listener>,
    /// Which interface called; written to the audit log.
    pub face: Face,
    /// How that interface words hints on what the caller can do.
    pub hint_words: HintWords,
}

impl Engine {
    /// An engine with the configured store, at the current time.
    ///
    /// # Errors
    ///
    /// The store cannot be opened or created.
    pub fn new(config: Config) -> Result<Self> {
        Self::at(config, jiff::Timestamp::now().as_millisecond())
    }

    /// The same at another time, in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// As [`Engine::new`].
    pub fn at(config: Config, now: i64) -> Result<Self> {
        let store = open_store(&config)?;
        Ok(Self { config, store, now, listener: None, face: Face::Library, hint_words: |_| String::new() })
    }

    /// As [`Engine::at`], for read-only commands: if the store cannot be opened, everything that needs none
    /// still works, and storing anything is refused with the reason.
    ///
    /// # Errors
    ///
    /// The masking expressions of the configuration are not valid.
    pub fn even_without_store(config: Config, now: i64) -> Result<Self> {
        let store = Store::open_or_refuse(&config.store, config.redactor.clone())?;
        keep_counts(&config);
        let (store, hint_words): (_, HintWords) = (Arc::new(store), |_| String::new());
        Ok(Self { config, store, now, listener: None, face: Face::Library, hint_words })
    }

    /// `text`, followed by what the caller can do about it.
    pub(crate) fn hinted(&self, text: String, hint: Option<Hint>) -> String {
        match hint {
            Some(hint) => hint.after(&text, self.hint_words),
            None => text,
        }
    }

    /// Records an action in the audit log. The action is done by then, so a failure to record it is only a
    /// log warning.
    pub(crate) fn audit(&self, verb: AuditVerb, scope: &Scope, session: Option<&str>, handle: Option<&str>) {
        self.audit_by(
            self.config.agents.inside.map(super::agents::Agent::name),
            verb,
            scope,
            session,
            handle,
        );
    }

    /// As [`Engine::audit`], where it is known which agent asked.
    pub(crate) fn audit_by(
        &self,
        agent: Option<&str>,
        verb: AuditVerb,
        scope: &Scope,
        session: Option<&str>,
        handle: Option<&str>,
    ) {
        if !self.store.keeps() {
            return;
        }
        let owned = |it: Option<&str>| it.filter(|it| !it.is_empty()).map(str::to_owned);
        let entry = AuditEntry {
            owner: self.config.owner.clone(),
            at: self.now,
            verb,
            face: self.face,
            agent: owned(agent),
            project: scope.project.clone(),
            session: owned(session),
            handle: owned(handle),
        };
        if let Err(error) = self.store.put_audit(&entry) {
            tracing::warn!("{} is not in the audit log: {}", verb.name(), error.full());
        }
    }

    /// The scope under which a history is archived: the local user and the session's project.
    pub(crate) fn scope(&self, history: &History) -> Scope {
        self.scope_of(history.meta.cwd.as_deref().unwrap_or_default())
    }

    /// The local user's scope for a project.
    pub(crate) fn scope_of(&self, project: impl Into<String>) -> Scope {
        Scope { owner: self.config.owner.clone(), project: project.into() }
    }

    /// The scope of memories: the session's project, or the current directory if the session records none.
    pub(crate) fn memory_scope(&self, history: &History) -> Scope {
        if history.meta.cwd.is_some() { self.scope(history) } else { self.project() }
    }

    /// The projects that this directory may belong to: by its path as given, and by its real path.
    pub(crate) fn projects(&self) -> Vec<Scope> {
        let cwd = self.config.agents.cwd.clone();
        let real = std::fs::canonicalize(&cwd).ok().filter(|it| *it != cwd);
        let scope = |it: PathBuf| self.scope_of(it.display().to_string());
        std::iter::once(cwd).chain(real).map(scope).collect()
    }

    /// The project of this directory, symbolic links followed.
    pub(crate) fn project(&self) -> Scope {
        self.scope_of(self.config.project())
    }

    /// The scope of what belongs to no project.
    pub(crate) fn shared(&self) -> Scope {
        self.scope_of("")
    }
}

/// The store that the configuration names, with the on-disk cache of exact token counts beside it.
pub(crate) fn open_store(config: &Config) -> Result<Arc<Store>> {
    let store = Store::open(&config.store, config.redactor.clone())?;
    keep_counts(config);
    Ok(Arc::new(store))
}

/// Keeps exact token counts beside the store, if the store is on disk.
fn keep_counts(config: &Config) {
    if let StoreAt::Path(directory) = &config.store {
        tokens::exact::keep_on(crate::store::Counts::new(directory.join("counts")));
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
