//! What providers reported for the requests of a history, and what our own count learns from that.

use super::rates::Rates;
use super::window::window;
use history::{History, Kind, Message, Role, Usage};

/// What a provider counted for one request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    pub(super) message: usize,
    /// The first message of that response: all messages before it were sent.
    pub(super) start: usize,
    /// Tokens of the request.
    pub(super) sent: u64,
    /// Tokens of the request and its answer.
    pub(super) context: u64,
    /// Whether the model in question counted it, or one with the same tokenizer. Else the figures are
    /// converted.
    pub(super) own: bool,
    /// Maximum tokens of system prompt and tools.
    overhead_max: u64,
}

/// [`Report::overhead_max`] if the model's window is not known.
const OVERHEAD_MAX: u64 = 1_000_000;

/// Minimum ratio of a report to our own count. A smaller report is not of this history: it is of another kind
/// of request, or from a proxy that reports only what was not cached. Contexts that a plugin prunes keep more
/// (at least a quarter in all that were seen).
const MIN_SHARE: f64 = 0.05;

/// Maximum ratio of a report to our own count.
const MAX_SCALE: f64 = 4.0;

impl Report {
    /// Whether it is credible, given our own count of the tokens before it. A smaller report is credible too:
    /// then not all messages were sent.
    pub(super) fn is_credible(&self, before: f64) -> bool {
        let sent = self.sent as f64;
        let possible = self.context <= Usage::MOST && sent <= before * MAX_SCALE + self.overhead_max as f64;
        possible && sent >= before * MIN_SHARE
    }
}

/// The reports on the history as it is now: not those of requests before its summary was made, which messages
/// kept from then still carry, nor that of the request that made the summary. In tokens of the model of
/// `rates`.
pub(super) fn reports(history: &History, rates: Rates) -> impl Iterator<Item = Report> {
    let messages = history.messages();
    let known = history.meta.model.as_deref().and_then(window).map(|it| it.context);
    let overhead_max = history.meta.window.filter(|it| *it <= Usage::MOST).max(known).unwrap_or(OVERHEAD_MAX);
    let summarized = messages.iter().filter(|it| it.kind == Kind::Summary).filter_map(|it| it.at).max();
    messages.iter().enumerate().filter_map(move |(index, message)| {
        let usage = message.usage.filter(|it| it.sent() > 0)?;
        let stale = message.at.zip(summarized).is_some_and(|(at, summarized)| at < summarized);
        if stale || message.kind == Kind::Summary {
            return None;
        }
        // One response can be several messages; the last one has the report.
        let earlier = messages[..index].iter().rev();
        let same = |it: &&Message| it.role == Role::Assistant && it.kind == Kind::Said && it.usage.is_none();
        let start = index - earlier.take_while(same).count();
        let model = message.model.as_deref().or(history.meta.model.as_deref());
        let other = model.map(|it| Rates::of(&it.to_ascii_lowercase()));
        let other = other.filter(|it| !it.same_tokenizer(&rates));
        let converted =
            |tokens: u64| other.map_or(tokens, |it| (tokens as f64 * rates.text / it.text) as u64);
        let (sent, context) = (converted(usage.sent()), converted(usage.context()));
        Some(Report { message: index, start, sent, context, own: other.is_none(), overhead_max })
    })
}

/// How many of the reports, from the first on, are of the history as it is now. If outputs were cleared after
/// the last request, the reports after these outputs still include them: they exceed what is there by more
/// than any scale explains. If the client cleared them and reported afterwards, they do not.
pub(super) fn up_to_clearing(reports: &[Report], before: &[f64], history: &History) -> usize {
    /// Maximum tokens by which the overhead grows on its own, by reminders and tools that come later.
    const GROWTH: f64 = 4_000.0;
    /// Maximum ratio of the growth of the messages to their usual growth.
    const SCALE_SLACK: f64 = 1.15;
    let cleared = || history.messages().iter().position(|it| it.outputs().any(|it| it.cleared));
    let Some((last, cleared)) = reports.last().and_then(|it| Some((it, cleared()?))) else {
        return reports.len();
    };
    let earlier = reports.partition_point(|it| it.start <= cleared);
    // Between most neighboring reports nothing was cleared.
    let scale = learned_scale(reports, before) * SCALE_SLACK;
    let grown = |then: &Report| last.sent.saturating_sub(then.sent) as f64;
    let seen = |then: &Report| before[last.start] - before[then.start];
    match reports[..earlier].last() {
        Some(then) if grown(then) > seen(then) * scale + GROWTH => earlier,
        Some(_) | None => reports.len(),
    }
}

/// The ratio of the growth between neighboring reports to the growth that we count: the weighted median,
/// since single steps are off for reasons of their own (thoughts stripped, reminders not recorded), drawn
/// towards 1, which stands for the priors. Shrinking contexts (compactions, rewinds) are ignored.
pub(super) fn learned_scale(reports: &[Report], before: &[f64]) -> f64 {
    /// The weight of the priors, as a square root of tokens: that of one step of 10,000.
    const PRIOR: f64 = 100.0;
    let mut ratios = vec![(1.0, PRIOR)];
    for pair in reports.windows(2) {
        let seen = before[pair[1].start] - before[pair[0].start];
        if pair[1].sent > pair[0].sent && seen > 0.0 {
            ratios.push(((pair[1].sent - pair[0].sent) as f64 / seen, seen.sqrt()));
        }
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = ratios.iter().map(|it| it.1).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let median = ratios.iter().find(|(_, weight)| {
        sum += weight;
        sum >= half
    });
    median.map_or(1.0, |it| it.0).clamp(0.6, 1.6)
}
