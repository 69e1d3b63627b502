//! A session with its token counter and context window; every verb counts through it.

use crate::engine::archive::marks;
use crate::engine::{Ask, Engine, Opened};
use compaction::plan::ModelLimits;
use history::error::Hint;
use history::{History, Usage};
use sessions::Session;
use tokens::{self, Filled, TokenCounter};

/// Plausible context windows, in tokens.
const WINDOWS: std::ops::RangeInclusive<u64> = 1_000..=Usage::MOST;

/// A session with the counter and window it is measured by.
pub(crate) struct Measured<'a> {
    pub(crate) history: &'a History,
    /// The whole history to apply the plan to, if the session has grown since the plan's `history`.
    pub(crate) grown_history: Option<&'a History>,
    pub(crate) counter: TokenCounter,
    pub(crate) limits: ModelLimits<'a>,
    /// Tokens of the messages.
    pub(crate) tokens: u64,
    /// Tokens of system prompt and tools, and of messages in the system's role.
    pub(crate) overhead: u64,
    /// A reported context larger than the model's known window, and the window assumed instead.
    pub(crate) inferred: Option<(u64, u64)>,
}

impl Measured<'_> {
    /// The history that a plan is applied to.
    pub(crate) fn full_history(&self) -> &History {
        self.grown_history.unwrap_or(self.history)
    }

    pub(crate) fn filled(&self) -> Filled {
        let overhead = self.counter.overhead();
        Filled { overhead, messages: self.context() - overhead }
    }

    pub(crate) fn context(&self) -> u64 {
        self.tokens + self.overhead - self.counter.hidden()
    }
}

pub(crate) fn measure<'a>(engine: &Engine, session: &'a Session, ask: &'a Ask) -> Measured<'a> {
    measure_history(engine, session, &session.history, ask)
}

/// As [`measure`], for the part of the session's history that a plan is made for.
pub(crate) fn measure_history<'a>(
    engine: &Engine,
    session: &Session,
    history: &'a History,
    ask: &'a Ask,
) -> Measured<'a> {
    // The largest context that the session was ever compacted at.
    let compacted = session.past.iter().filter_map(|it| it.tokens_before).max();
    let model = ask.counting.model.as_deref().or(history.meta.model.as_deref());
    let known = model.and_then(tokens::window);
    let configured = model.and_then(|it| engine.config.model_window(&history.meta, it));
    let known_overhead = ask.counting.overhead.or_else(|| overhead_before(engine, history));
    let counter = TokenCounter::for_model(history, model, ask.tokenizer(), known_overhead);
    let (mut tokens, mut overhead) = (0, counter.overhead());
    for (message, size) in history.messages().iter().zip(counter.messages(history.messages())) {
        *if compaction::plan::counts(message) { &mut tokens } else { &mut overhead } += size;
    }
    let explicit = ask.counting.window.or(configured).filter(|it| *it > 0);
    let recorded = history.meta.window.filter(|it| WINDOWS.contains(it));
    let explicit = explicit.or(recorded);
    // The session's own model accepted this context, so its window is at least as large.
    let own = ask.counting.model.is_none();
    let seen = counter.reported().map(|it| it.1).max(compacted.filter(|it| *it <= Usage::MOST));
    let seen = seen.filter(|seen| own && explicit.is_none() && known.is_some_and(|it| it.context < *seen));
    let inferred = seen.map(tokens::at_least);
    let limits = ModelLimits {
        model,
        window: explicit.or(inferred).or(known.map(|it| it.context)),
        window_given: explicit.is_some(),
        // A window given explicitly replaces the model's separate input limit.
        input: known.and_then(|it| it.input).filter(|_| explicit.or(inferred).is_none()),
        output: known.map(|it| it.output),
        next: ask.next,
    };
    Measured { history, grown_history: None, limits, counter, tokens, overhead, inferred: seen.zip(inferred) }
}

/// Tokens of system prompt and tools as noted when we compacted the session, if no usage was reported since:
/// every request still sends them.
fn overhead_before(engine: &Engine, history: &History) -> Option<u64> {
    let summarized = history.messages().iter().any(|it| it.kind == history::Kind::Summary);
    if !summarized || TokenCounter::is_reported(history) {
        return None;
    }
    let name = marks::SessionMark::Overhead.of(history.meta.session.as_deref()?);
    engine.store.marked(&engine.scope(history), &name).ok().flatten()?.value.parse().ok()
}

/// Warnings about lines that could not be read and reports that are implausible.
pub(crate) fn warnings(engine: &Engine, opened: &Opened, measured: &Measured<'_>) -> Vec<String> {
    let mut out = notes(opened);
    if let Some((message, tokens)) = measured.counter.implausible_report() {
        out.push(format!(
            "message {message} reports a context of {tokens} tokens, which cannot be this history's: it is more than \
             any model accepts, more than the messages can have, or less than a twentieth of them; the report is \
             ignored"
        ));
    }
    if let Some((message, why)) = compaction::plan::refused(measured.history.messages(), &measured.counter) {
        out.push(format!(
            "message {message} holds an image that the API refuses ({why}): every request with it fails; `epitome \
             compact` replaces it with a note"
        ));
    }
    let hidden = measured.counter.hidden();
    if hidden > 0 {
        out.push(format!(
            "{hidden} tokens of the messages were not sent with the last request, according to the provider's \
             report: a plugin or the agent itself prunes what the model sees; the context size excludes them"
        ));
    }
    if let Some((seen, window)) = measured.inferred {
        let what = format!(
            "the session had a context of {seen} tokens, more than the model's known window; a window of {window} is \
             assumed"
        );
        out.push(engine.hinted(what, Some(Hint::GiveWindow)));
    }
    if let Some(window) = measured.history.meta.window.filter(|it| !WINDOWS.contains(it)) {
        out.push(format!(
            "the session reports a window of {window} tokens, which no model has; it is ignored"
        ));
    }
    out
}

/// Lines that could not be read, as warnings: the first few, and a count of the others.
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
        let session = crate::agents::write_back::shell::quoted(&path.display().to_string());
        out.push(format!("`epitome repair {session}` shows what is wrong with it, and repairs only that"));
    }
    out
}
