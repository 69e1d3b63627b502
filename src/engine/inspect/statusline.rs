//! How full a session is, what a compaction would leave, and whether the provider's cache is warm. Fast
//! enough for a status line: reads what the agent passes and at most the two ends of the session's file, not
//! the archive.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::agents::hooks::statusline::StatusInput;
use crate::answers::AdviceLevel;
use crate::config::Config;
use crate::engine::compact::compacted::percent;
use crate::engine::inspect::estimate::level;
use crate::engine::inspect::session_cost::remainder;
use crate::files::File;
use cost::replay::Replay;
use sessions::derive::time;
use sessions::requests::{live, requests};
use sessions::{MemorySource, Session, Source};

/// Maximum bytes read at each end of a session's file.
const END: u64 = 256 << 10;

#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct StatusLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens of the last request and its answer.
    pub context: u64,
    pub window: u64,
    pub used_percent: f64,
    /// About how many tokens a compaction would leave: by the profile's budget, no plan is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_percent: Option<f64>,
    pub level: AdviceLevel,
    /// Whether the provider has the context in its cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_warm: Option<bool>,
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_until: Option<String>,
    /// Minutes until then, rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_minutes: Option<u64>,
}

/// What the ends of a session's file say.
#[derive(Default)]
struct FileEnds {
    /// Tokens of the first request: system prompt, tools and the first prompt, about.
    first: Option<u64>,
    /// Tokens of the last request and its answer, where no compaction came after it.
    context: Option<u64>,
    window: Option<u64>,
    model: Option<String>,
    /// Milliseconds since 1970.
    warm_until: Option<i64>,
}

/// The status of the session that an agent names; `None` if its context or its window is unknown. `now`:
/// milliseconds since 1970.
pub fn status_line(config: &Config, input: &StatusInput, now: i64) -> Option<StatusLine> {
    let ends = input.path.as_deref().and_then(|it| ends(it, input.context.is_none())).unwrap_or_default();
    let model = input.model.clone().or(ends.model);
    let configured = model.as_deref().and_then(|it| config.windows.get(it).copied());
    let (context, reported) = match input.context {
        Some(it) => (it.tokens, it.window),
        None => (ends.context, ends.window),
    };
    let known = || model.as_deref().and_then(tokens::window).map(|it| it.context);
    let (context, window) = (context?, configured.or(reported).or_else(known).filter(|it| *it > 0)?);
    let used = percent(context, Some(window))?;
    let until = input.cache.map_or(ends.warm_until, |it| it.until);
    let warm = until.map(|it| now < it);
    let left = until.map(|it| it.saturating_sub(now)).filter(|it| *it > 0);
    let after = config.default_profile().ok().zip(ends.first).and_then(|(profile, first)| {
        Some(remainder(&profile, first)?.after(context)).filter(|it| *it < context)
    });
    Some(StatusLine {
        session: input.session.clone(),
        model,
        context,
        window,
        used_percent: used,
        after,
        after_percent: after.and_then(|it| percent(it, Some(window))),
        level: level(Some(used), warm == Some(false)),
        cache_warm: warm,
        warm_until: until.map(time),
        warm_minutes: left.map(|it| (it as u64).div_ceil(60_000)),
    })
}

/// Reads the beginning of a session's file, and with `whole` its end.
fn ends(path: &Path, whole: bool) -> Option<FileEnds> {
    let file = File::open(path).ok()?;
    let len = file.len();
    let piece = |from: u64, to: u64| Some(MemorySource::new(file.name(), file.bytes(from..to).ok()?));
    let first = |end: u64| {
        let head = piece(0, len.min(end))?;
        let session = sessions::read(&head, None).ok()?;
        let first = requests(&head, &session).ok()?.all.into_iter().find(|it| !it.side)?;
        Some((session.format, first.usage.sent()))
    };
    // Try a short piece first: the first request is mostly near the beginning.
    let (format, first) = [END / 8, END].into_iter().find_map(first)?;
    let mut out = FileEnds { first: Some(first), ..FileEnds::default() };
    if whole {
        last(&sessions::read(&piece(len.saturating_sub(END), len)?, Some(format)).ok()?, &mut out);
    }
    Some(out)
}

/// What the last request of a session says of its context and the provider's cache.
fn last(session: &Session, out: &mut FileEnds) {
    let (requests, mut replay) = (live(&session.history), Replay::default());
    let Some(last) = requests.all.last() else { return };
    out.context = Some(last.usage.context());
    out.window = session.history.meta.window;
    out.model = last.model.as_deref().map(str::to_owned);
    replay.learn(last);
    let known = out.model.as_deref().and_then(|it| replay.cache(it, false));
    out.warm_until = known.filter(|it| it.1.tokens > 0).and_then(|(rule, cached)| cached.warm_until(rule));
}
