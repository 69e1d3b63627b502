//! What a counter learns from the usage that providers reported: overhead, scale, and how far off it may be.

use super::{Basis, MARGIN_CONVERTED, MARGIN_OTHER_MODEL, MIN_MESSAGES_PER_THREAD, TokenCounter};
use crate::MethodKind;
use crate::reports::{Report, learned_scale, reports, up_to_clearing};
use history::{History, Part, Role, parallel};

impl TokenCounter {
    /// Learns scale and overhead from the reports; without any, finds the overhead otherwise.
    pub(super) fn anchor(&mut self, history: &History, given: Option<u64>) {
        let counted = [&history.meta.system, &history.meta.tools].into_iter().flatten();
        self.overhead = given.unwrap_or_else(|| counted.map(|it| self.text(it)).sum());
        if self.basis == Basis::Calibrated || reports(history, self.rates).next().is_none() {
            return;
        }
        // Tokens before each message, unscaled.
        let mut before = vec![0.0];
        before.extend(
            parallel::par_map(history.messages(), MIN_MESSAGES_PER_THREAD, |it| self.raw(it)).iter().scan(
                0.0,
                |sum, it| {
                    *sum += it;
                    Some(*sum)
                },
            ),
        );
        let mut reports: Vec<Report> = reports(history, self.rates).collect();
        let implausible = reports.iter().rfind(|it| !it.is_credible(before[it.start]));
        self.implausible_report = implausible.map(|it| (it.message, it.context));
        reports.retain(|it| it.is_credible(before[it.start]));
        // Reports of another tokenizer are used only if there are no others.
        let own = reports.iter().any(|it| it.own);
        reports.retain(|it| it.own == own);
        reports.truncate(up_to_clearing(&reports, &before, history));
        let Some(last) = reports.last() else { return };
        self.anchored = true;
        let unsent = self.basis == Basis::Shape && self.calibrate(&reports, &before, given);
        let counted: u64 = self.messages(&history.messages()[..last.start]).iter().sum();
        if unsent {
            self.hidden = (counted + self.overhead).saturating_sub(last.sent);
        }
        if given.is_none() {
            self.overhead = (last.sent + self.hidden).saturating_sub(counted);
        }
        self.method.margin_percent = self.margin(history, &reports, &before);
        if own {
            self.method.anchor = Some(last.message);
            self.reported = Some((last.message, last.context));
        } else {
            self.method.kind = MethodKind::Heuristic;
            self.method.margin_percent = self.method.margin_percent.max(MARGIN_CONVERTED);
        }
    }

    /// How far off the context may be, in percent: because of what came since the last report, and of what
    /// grew unseen with each response before (web searches, hidden thoughts, what the client adds). Fitted to
    /// the tuned half of the corpus (`tests/all/margins.rs`).
    fn margin(&self, history: &History, reports: &[Report], before: &[f64]) -> f64 {
        const OF_TAIL: f64 = 0.25;
        const OF_UNSEEN: f64 = 0.75;
        const UNSEEN_AT_LEAST: f64 = 100.0;
        let least = self.method.margin_percent;
        let (Some(last), Some(all)) = (reports.last(), before.last()) else { return least };
        let unseen = |pair: &[Report]| {
            let seen = (before[pair[1].start] - before[pair[0].start]) * self.scale;
            (pair[1].sent as f64 - pair[0].sent as f64 - seen).abs()
        };
        let mut unseen: Vec<f64> = reports.windows(2).map(unseen).collect();
        unseen.sort_by(f64::total_cmp);
        let usual = unseen.get(unseen.len() * 9 / 10).copied().unwrap_or(0.0).max(UNSEEN_AT_LEAST);
        let since = &history.messages()[last.start..];
        let responses = since.chunk_by(|a, b| a.role == b.role).filter(|it| it[0].role == Role::Assistant);
        let tail = (all - before[last.start]) * self.scale;
        let off = OF_TAIL * tail + OF_UNSEEN * usual * responses.count() as f64;
        (off * 100.0 / (last.sent as f64 + tail).max(1.0)).ceil().clamp(least, MARGIN_OTHER_MODEL.max(least))
    }

    /// Learns the scale from the reports, and sets `overhead` to the least that is beyond the messages.
    /// Returns whether the last report is too small to hold all messages.
    fn calibrate(&mut self, reports: &[Report], before: &[f64], given: Option<u64>) -> bool {
        /// A scale below this share of the learned one is no error of the scale: then not all messages were
        /// sent.
        const SQUEEZED: f64 = 0.9;
        let (Some(first), Some(last)) = (reports.first(), reports.last()) else { return false };
        let learned = learned_scale(reports, before);
        self.scale = if self.rates.measured { learned.clamp(0.8, 1.4) } else { learned };
        let overhead_of = |it: &Report| it.sent as f64 - before[it.start] * self.scale;
        // What is beyond the messages stays while they grow: at least half of what the first report shows.
        let least = (overhead_of(first).max(0.0) / 2.0).min(last.sent as f64 / 2.0);
        let needed = |overhead: f64| (last.sent as f64 - overhead) / before[last.start].max(1.0);
        let wanted = match given {
            Some(given) => needed(given as f64),
            None if overhead_of(last) < least => needed(least),
            None => self.scale,
        };
        self.overhead = given.unwrap_or(least as u64);
        let least_scale = self.scale * SQUEEZED;
        self.scale = wanted.clamp(least_scale, 4.0);
        wanted < least_scale
    }

    /// The share of reasoning in the messages: only a report shows which of it a client sends again.
    pub(super) fn reasoning_share(&self, history: &History) -> f64 {
        let of = |is_counted: fn(&Part) -> bool| {
            let parts = history.messages().iter().flat_map(|it| &it.parts);
            parts.filter(|it| is_counted(it)).map(|it| self.raw_part(it)).sum::<f64>()
        };
        of(|it| matches!(it, Part::Reasoning(_))) / of(|_| true).max(1.0)
    }
}
