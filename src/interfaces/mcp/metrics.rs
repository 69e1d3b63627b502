//! Prometheus metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Count and total duration of calls, by tool and outcome.
type Calls = BTreeMap<(String, &'static str), (u64, Duration)>;

/// Counters since the server's start.
#[derive(Default)]
pub(super) struct Metrics {
    calls: Mutex<Calls>,
    responses: Mutex<BTreeMap<u16, u64>>,
    unauthorized: AtomicU64,
}

impl Metrics {
    pub(super) fn call(&self, tool: &str, outcome: &'static str, took: Duration) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, time) = calls.entry((tool.to_owned(), outcome)).or_default();
        *count += 1;
        *time += took;
    }

    pub(super) fn response(&self, status: u16) {
        *self.responses.lock().unwrap_or_else(PoisonError::into_inner).entry(status).or_default() += 1;
    }

    pub(super) fn unauthorized(&self) {
        self.unauthorized.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn text(&self, sessions: usize, streams: usize) -> String {
        let mut out = String::new();
        out.push_str("# HELP epitome_calls_total Tool calls.\n# TYPE epitome_calls_total counter\n");
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        for ((tool, outcome), (count, _)) in &*calls {
            out.push_str(&format!("epitome_calls_total{{tool=\"{tool}\",outcome=\"{outcome}\"}} {count}\n"));
        }
        out.push_str("# HELP epitome_call_seconds_total Time spent on tool calls.\n# TYPE epitome_call_seconds_total counter\n");
        for ((tool, outcome), (_, time)) in &*calls {
            let seconds = time.as_secs_f64();
            out.push_str(&format!(
                "epitome_call_seconds_total{{tool=\"{tool}\",outcome=\"{outcome}\"}} {seconds:.6}\n"
            ));
        }
        out.push_str(
            "# HELP epitome_http_responses_total Responses.\n# TYPE epitome_http_responses_total counter\n",
        );
        for (status, count) in &*self.responses.lock().unwrap_or_else(PoisonError::into_inner) {
            out.push_str(&format!("epitome_http_responses_total{{status=\"{status}\"}} {count}\n"));
        }
        let unauthorized = self.unauthorized.load(Ordering::Relaxed);
        out.push_str(&format!(
            "# HELP epitome_unauthorized_total Requests without a token that is known.\n\
             # TYPE epitome_unauthorized_total counter\nepitome_unauthorized_total {unauthorized}\n\
             # HELP epitome_sessions Open sessions.\n# TYPE epitome_sessions gauge\n\
             epitome_sessions{{transport=\"http\"}} {sessions}\nepitome_sessions{{transport=\"sse\"}} {streams}\n"
        ));
        out
    }
}
