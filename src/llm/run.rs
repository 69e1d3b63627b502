//! Runs a dialogue: sends its requests, waits as it demands, reports progress. The only place where a
//! dialogue meets time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::http::{Http, RequestLimits, runtime};
use compaction::summary::dialogue::{Dialogue, GaveUp, Step};
use compaction::summary::failure::Failure;
use compaction::summary::model::{Endpoint, ModelRequest, Reply};
use compaction::summary::request::SummaryRequest;
use history::error::{Error, ErrorKind, Result};

/// A future that need not be `Send`.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

pub type Sent<'a> = Local<'a, Result<Reply, Failure>>;

/// Sends one model request and returns the reply.
pub trait Transport {
    /// `seen` gets the number of characters received so far.
    fn send<'a>(&'a self, ask: &'a ModelRequest, seen: &'a dyn Fn(usize)) -> Sent<'a>;
}

/// The clock of a dialogue.
pub trait Clock {
    /// Milliseconds since the dialogue began.
    fn elapsed(&self) -> u64;
    fn wait(&self, ms: u64) -> Local<'_, ()>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A request was sent; if there are several parts: the part's number, and about how many there are.
    Asking(Option<(usize, usize)>),
    /// The model is writing: characters so far, and seconds since the request was sent.
    Writing(usize, u64),
    /// The request failed and will be retried: why and when.
    Waiting(String),
}

impl Progress {
    pub fn words(&self, who: &str) -> String {
        match self {
            Self::Asking(None) => format!("asking {who}"),
            Self::Asking(Some((number, of))) => format!("asking {who}: part {number} of about {of}"),
            Self::Writing(0, seconds) => format!("{who} is reading ({seconds} s)"),
            Self::Writing(chars, seconds) => format!("{who} has written {chars} characters ({seconds} s)"),
            Self::Waiting(why) => why.clone(),
        }
    }
}

pub type Tell = dyn Fn(&Progress) + Send + Sync;

/// The result of a dialogue: the summary with notes, or why there is none; `None` if it was cancelled.
pub type Ended = Option<Result<(String, Vec<String>), GaveUp>>;

/// Progress callback and cancellation of a dialogue.
#[derive(Clone, Default)]
pub struct Watch {
    /// Called at least every two seconds while a request is pending.
    pub progress: Option<Arc<Tell>>,
    /// Cancels the dialogue and closes the pending request's connection.
    pub cancel: CancellationToken,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("cancelled", &self.cancel.is_cancelled()).finish()
    }
}

impl Watch {
    fn tell(&self, progress: &Progress) {
        if let Some(it) = &self.progress {
            it(progress);
        }
    }
}

/// Interval between progress reports.
const TICK: Duration = Duration::from_secs(2);

/// Runs a dialogue to its end; `None` if it was cancelled.
pub async fn run(
    dialogue: &mut Dialogue,
    material: &SummaryRequest<'_>,
    transport: &dyn Transport,
    clock: &dyn Clock,
    watch: &Watch,
) -> Ended {
    let all = async {
        loop {
            match dialogue.next(material) {
                Step::Done(text, notes) => return Ok((text, notes)),
                Step::GaveUp(why) => return Err(why),
                Step::Wait(ms, why) => {
                    watch.tell(&Progress::Waiting(why));
                    clock.wait(ms).await;
                    dialogue.waited();
                }
                Step::Ask(ask) => {
                    watch.tell(&Progress::Asking(dialogue.part(material)));
                    let reply = reply(transport, &ask, watch).await;
                    dialogue.on_reply(material, reply, clock.elapsed());
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = watch.cancel.cancelled() => None,
        result = all => Some(result),
    }
}

async fn reply(transport: &dyn Transport, ask: &ModelRequest, watch: &Watch) -> Result<Reply, Failure> {
    let chars = std::cell::Cell::new(0);
    let seen = |now: usize| chars.set(now);
    let mut answer = transport.send(ask, &seen);
    let began = Instant::now();
    let mut tick = interval_at(began + TICK, TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            answer = &mut answer => return answer,
            _ = tick.tick() => watch.tell(&Progress::Writing(chars.get(), began.elapsed().as_secs())),
        }
    }
}

/// Asks the calling client's own model.
#[derive(Clone)]
pub struct Sampling(pub Arc<Sample>);

/// Sends a request and returns the reply.
pub type Sample =
    dyn Fn(&ModelRequest) -> Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send>> + Send + Sync;

impl std::fmt::Debug for Sampling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sampling")
    }
}

impl Transport for Sampling {
    fn send<'a>(&'a self, ask: &'a ModelRequest, _seen: &'a dyn Fn(usize)) -> Sent<'a> {
        (self.0)(ask)
    }
}

impl Transport for Http {
    fn send<'a>(&'a self, ask: &'a ModelRequest, seen: &'a dyn Fn(usize)) -> Sent<'a> {
        Box::pin(Http::send(self, ask, seen))
    }
}

struct Wall(Instant);

impl Clock for Wall {
    fn elapsed(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn wait(&self, ms: u64) -> Local<'_, ()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
    }
}

/// Runs a dialogue, blocking this thread. The dialogue's total time limit also ends a silent transport.
pub fn with_transport(
    dialogue: &mut Dialogue,
    material: &SummaryRequest<'_>,
    transport: &dyn Transport,
    watch: &Watch,
) -> Result<Ended> {
    let runtime = runtime("setting up to ask a model")?;
    let most = Duration::from_millis(material.bounds.total_ms);
    let ended = runtime.block_on(async {
        let clock = Wall(Instant::now());
        tokio::time::timeout(most, run(dialogue, material, transport, &clock, watch)).await
    });
    Ok(ended.unwrap_or_else(|_| {
        let why = format!("the limit of {} s for one summary was reached", most.as_secs());
        Some(Err(GaveUp::Bound(why)))
    }))
}

/// Has a provider count the tokens of messages, blocking this thread.
pub fn count_tokens(messages: serde_json::Value, endpoint: &Endpoint, limits: RequestLimits) -> Result<u64> {
    let runtime = runtime("setting up to ask a provider")?;
    let http = Http::new(endpoint.clone(), limits)?;
    let counted = runtime.block_on(http.count(messages));
    counted.map_err(|it| Error::new(ErrorKind::Provider, it.sentence(endpoint)))
}
