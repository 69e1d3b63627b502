//! Every fault of a provider: how often it is tried, how long that takes, what comes out. Nothing hangs.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use epitome::compaction::summary::dialogue::{Dialogue, GaveUp};
use epitome::compaction::summary::failure::Failure;
use epitome::compaction::summary::model::{Api, Endpoint, ModelRequest, Reply};
use epitome::llm::http::{Http, RequestLimits};
use epitome::llm::run::{self, Clock, Local, Progress, Transport, Watch};

use super::Case;
use super::server::{self, APIS, Does, KEY, events, http, refusal, serve, stream};

pub(crate) const LIMITS: RequestLimits = RequestLimits {
    connect: Duration::from_secs(5),
    idle: Duration::from_millis(400),
    total: Duration::from_millis(1_000),
    bytes: 2 << 20,
};

/// A provider over HTTP, as the program has it.
pub(crate) struct Wire {
    http: Http,
    limits: RequestLimits,
    longest: Cell<Duration>,
}

impl Wire {
    pub(crate) fn new(endpoint: Endpoint, limits: RequestLimits) -> Self {
        Self { http: Http::new(endpoint, limits).unwrap(), limits, longest: Cell::default() }
    }
}

impl Transport for Wire {
    fn send<'a>(
        &'a self,
        ask: &'a ModelRequest,
        seen: &'a dyn Fn(usize),
    ) -> Local<'a, Result<Reply, Failure>> {
        Box::pin(async move {
            let began = Instant::now();
            let result = self.http.send(ask, seen).await;
            self.longest.set(self.longest.get().max(began.elapsed()));
            result
        })
    }
}

/// Waits cost nothing but are counted.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) waited: RefCell<Vec<u64>>,
}

impl Clock for Counted {
    fn elapsed(&self) -> u64 {
        self.waited.borrow().iter().sum()
    }

    fn wait(&self, ms: u64) -> Local<'_, ()> {
        self.waited.borrow_mut().push(ms);
        Box::pin(std::future::ready(()))
    }
}

pub(crate) type Outcome = Option<Result<(String, Vec<String>), GaveUp>>;

pub(crate) async fn dialogue(
    case: &Case,
    wire: &Wire,
    clock: &Counted,
    watch: &Watch,
) -> (Dialogue, Outcome) {
    let mut dialogue = Dialogue::new(7);
    let material = case.material();
    let result = run::run(&mut dialogue, &material, wire, clock, watch).await;
    (dialogue, result)
}

struct Fault {
    name: &'static str,
    /// Requests that reach the provider.
    tries: u32,
    /// What the message says; empty: a summary.
    says: &'static str,
    does: fn(Api, usize, &str) -> Does,
}

fn status(code: u16) -> fn(Api, usize, &str) -> Does {
    match code {
        400 => |api, _, _| Does::Sends(refusal(api, 400)),
        401 => |api, _, _| {
            // Some providers repeat the key.
            let body = format!(
                r#"{{"error":{{"message":"Incorrect API key provided: {KEY}","type":"invalid_request_error","code":"invalid_api_key"}}}}"#
            );
            if api == Api::OpenaiChat {
                Does::Sends(http("401 Unauthorized", "application/json", "", body.as_bytes()))
            } else {
                Does::Sends(refusal(api, 401))
            }
        },
        403 => |api, _, _| Does::Sends(refusal(api, 403)),
        404 => |api, _, _| Does::Sends(refusal(api, 404)),
        408 => |api, _, _| Does::Sends(refusal(api, 408)),
        409 => |api, _, _| Does::Sends(refusal(api, 409)),
        500 => |api, _, _| Does::Sends(refusal(api, 500)),
        502 => |api, _, _| Does::Sends(refusal(api, 502)),
        503 => |api, _, _| Does::Sends(refusal(api, 503)),
        _ => |api, _, _| Does::Sends(refusal(api, 529)),
    }
}

fn faults() -> Vec<Fault> {
    let fault = |name, tries, says, does| Fault { name, tries, says, does };
    vec![
        fault("none", 1, "", |api, _, good| Does::Sends(stream(api, good))),
        fault("400", 1, "check the model's name", status(400)),
        fault("401", 1, "check the key in SOME_API_KEY", status(401)),
        fault("403", 1, "credit", status(403)),
        fault("404 no such model", 1, "check that the model \"model-x\"", status(404)),
        fault("408", 5, "try again later", status(408)),
        fault("409", 5, "try again later", status(409)),
        fault("429 once, retry-after 2", 2, "", |api, number, good| match number {
            0 => Does::Sends(http(
                "429 Too Many",
                "application/json",
                "retry-after: 2\r\n",
                b"{\"error\":{\"message\":\"slow down\"}}",
            )),
            _ => Does::Sends(stream(api, good)),
        }),
        fault("429, retry-after 1 h", 1, "longer than the limit", |_, _, _| {
            Does::Sends(http(
                "429 Too Many",
                "application/json",
                "retry-after: 3600\r\n",
                b"{\"error\":{\"message\":\"slow down\"}}",
            ))
        }),
        fault("500", 5, "try again later", status(500)),
        fault("500 twice", 3, "", |api, number, good| {
            if number < 2 { Does::Sends(refusal(api, 500)) } else { Does::Sends(stream(api, good)) }
        }),
        fault("502", 5, "try again later", status(502)),
        fault("503", 5, "try again later", status(503)),
        fault("529", 5, "try again later", status(529)),
        fault("HTML, status 200", 5, "a page of HTML titled \"Log in\"", |_, _, _| {
            Does::Sends(http(
                "200 OK",
                "text/html",
                "",
                b"<!doctype html><html><head><title>Log in</title></head></html>",
            ))
        }),
        fault("HTML, status 502", 5, "a page of HTML titled \"Bad Gateway\"", |_, _, _| {
            Does::Sends(http(
                "502 Bad Gateway",
                "text/html",
                "",
                b"<html><head><title>Bad Gateway</title></head></html>",
            ))
        }),
        fault("overloaded in the stream", 5, "an error in the stream", |_, _, _| {
            let event = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
            Does::Sends(http("200 OK", "text/event-stream", "", event.as_bytes()))
        }),
        fault("stream stops in the middle", 5, "cut off", |api, _, good| {
            let all = events(api, good);
            Does::Sends(http("200 OK", "text/event-stream", "", all[..all.len() / 2].concat().as_bytes()))
        }),
        fault("connection breaks in the middle", 5, "cut off", |api, _, good| {
            let all = stream(api, good);
            Does::Sends(all[..all.len() / 2].to_vec())
        }),
        fault("garbage in the stream", 5, "not JSON", |api, _, good| {
            let all = format!("{}data: }}{{\u{0}\n\n", events(api, good)[0]);
            Does::Sends(http("200 OK", "text/event-stream", "", all.as_bytes()))
        }),
        fault("closes without a word", 5, "check the network", |_, _, _| Does::Closes),
        fault("says nothing", 2, "nothing was received for 0.4 s", |_, _, _| Does::Hangs(Vec::new())),
        fault("never ends", 2, "nothing was received for 0.4 s", |api, _, good| {
            let all = events(api, good);
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_vec();
            Does::Hangs([head, all[..all.len() / 2].concat().into_bytes()].concat())
        }),
        fault("trickles byte by byte", 2, "no complete answer within 1.0 s", |api, _, good| {
            Does::Repeats(events(api, good).concat().into_bytes(), Some(Duration::from_millis(50)))
        }),
        fault("endless, 100 MB and more", 1, "more than 2 MB", |_, _, _| {
            Does::Repeats(b": nothing to see\n\n".to_vec(), None)
        }),
        fault("endless line", 1, "more than 2 MB", |_, _, _| {
            Does::Repeats(b"data: xxxxxxxxxxxxxxxx".to_vec(), None)
        }),
        fault("redirect", 1, "redirect to \"https://evil.example/x\"", |_, _, _| {
            Does::Sends(http(
                "307 Temporary Redirect",
                "text/plain",
                "location: https://evil.example/x?q=1\r\n",
                b"",
            ))
        }),
    ]
}

#[tokio::test]
async fn every_fault_of_every_provider_ends_well() {
    let case = Case::small();
    let good = case.good();
    println!("{:<32} {:<17} {:>5} {:>8} {:>8}  outcome", "fault", "provider", "tries", "waited", "took");
    for fault in faults() {
        for api in APIS {
            let (does, text) = (fault.does, good.clone());
            let (address, log) = serve(move |number, _| does(api, number, &text)).await;
            check(&case, &fault, server::endpoint(api, &format!("http://{address}")), Some(log)).await;
        }
    }
    // Faults before a request: nobody there, no TLS where TLS is asked for, no such host.
    for api in APIS {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let fault =
            Fault { name: "nobody there", tries: 5, says: "check the network", does: |_, _, _| Does::Closes };
        check(&case, &fault, server::endpoint(api, &format!("http://{free}")), None).await;
        let (address, _) = serve(|_, _| Does::Closes).await;
        let plain = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tls = plain.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = plain.accept().await {
                // Not what a TLS server would say.
                let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    .await;
            }
        });
        let fault = Fault {
            name: "no TLS there",
            tries: 1,
            says: "check the certificate",
            does: |_, _, _| Does::Closes,
        };
        check(&case, &fault, server::endpoint(api, &format!("https://{tls}")), None).await;
        drop(address);
    }
}

async fn check(case: &Case, fault: &Fault, endpoint: Endpoint, log: Option<server::Log>) {
    let wire = Wire::new(endpoint.clone(), LIMITS);
    let clock = Counted::default();
    let began = Instant::now();
    let (dialogue, result) = dialogue(case, &wire, &clock, &Watch::default()).await;
    let took = began.elapsed();
    let outcome = match result.unwrap() {
        Ok((text, _)) => {
            assert!(text.contains("vendor/"), "{text}");
            String::new()
        }
        Err(why) => why.sentence(Some(&endpoint)),
    };
    let waited: u64 = clock.waited.borrow().iter().sum();
    let shown = if outcome.is_empty() { "a summary" } else { &outcome };
    println!(
        "{:<32} {:<17} {:>5} {waited:>6}ms {:>6}ms  {shown}",
        fault.name,
        endpoint.provider,
        dialogue.requests,
        took.as_millis()
    );
    assert!(
        outcome.contains(fault.says) && outcome.is_empty() == fault.says.is_empty(),
        "{}: {outcome}",
        fault.name
    );
    assert_eq!(dialogue.requests, fault.tries, "{}: {outcome}", fault.name);
    if let Some(log) = log {
        assert_eq!(log.requests.lock().unwrap().len() as u32, fault.tries, "{}", fault.name);
    }
    assert!(wire.longest.get() < wire.limits.total + Duration::from_secs(5), "{} hangs", fault.name);
    let all = format!("{outcome} {dialogue:?} {endpoint:?}");
    assert!(!all.contains(KEY) && !all.contains("4f9a8b7c"), "{}: the key is told", fault.name);
    if fault.name.starts_with("429 once") {
        assert_eq!(*clock.waited.borrow(), [2_000]);
    }
}

#[tokio::test]
async fn requests_are_what_the_providers_expect() {
    let case = Case::small();
    for api in APIS {
        let good = case.good();
        let (address, log) = serve(move |_, _| Does::Sends(stream(api, &good))).await;
        let wire = Wire::new(server::endpoint(api, &format!("http://{address}")), LIMITS);
        let (dialogue, result) = dialogue(&case, &wire, &Counted::default(), &Watch::default()).await;
        assert!(result.unwrap().is_ok());
        assert_eq!(
            (dialogue.tokens.input, dialogue.tokens.cache_read, dialogue.tokens.output),
            (90, 10, 50),
            "{api:?}"
        );
        assert_eq!(dialogue.model.as_deref(), Some("model-x-1"));
        let request = log.requests.lock().unwrap()[0].clone();
        let head = request.head.to_lowercase();
        let (path, key) = match api {
            Api::Anthropic => ("post /v1/messages ", "x-api-key: "),
            Api::OpenaiResponses => ("post /v1/responses ", "authorization: bearer "),
            Api::OpenaiChat => ("post /v1/chat/completions ", "authorization: bearer "),
            Api::Gemini => ("post /v1beta/models/model-x:streamgeneratecontent?alt=sse ", "x-goog-api-key: "),
        };
        assert!(head.starts_with(path) && head.contains(&format!("{key}{KEY}")), "{head}");
        assert!(request.body.get("tools").is_none(), "tools are never offered");
        insta::assert_json_snapshot!(format!("body-{}", api.name()), request.body);
    }
}

#[tokio::test]
async fn a_cancelled_call_stops_on_the_wire() {
    let case = Case::small();
    for api in APIS {
        let good = case.good();
        let (address, log) = serve(move |_, _| {
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_vec();
            Does::Hangs([head, events(api, &good)[..5].concat().into_bytes()].concat())
        })
        .await;
        let wire = Wire::new(server::endpoint(api, &format!("http://{address}")), RequestLimits::default());
        let watch = Watch::default();
        let (clock, cancel) = (Counted::default(), watch.cancel.clone());
        let ((_, result), ()) = tokio::join!(dialogue(&case, &wire, &clock, &watch), async {
            log.came.notified().await;
            cancel.cancel();
        });
        assert!(result.is_none());
        // The server sees the connection end; if it did not, this would not.
        log.gone.notified().await;
    }
}

#[tokio::test]
async fn whoever_watches_hears_of_every_retry() {
    let case = Case::small();
    let (address, _) = serve(|_, _| Does::Sends(refusal(Api::Anthropic, 503))).await;
    let wire = Wire::new(server::endpoint(Api::Anthropic, &format!("http://{address}")), LIMITS);
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let keep = heard.clone();
    let progress = move |it: &Progress| keep.lock().unwrap().push(it.words("it"));
    let watch = Watch { progress: Some(std::sync::Arc::new(progress)), ..Watch::default() };
    let clock = Counted::default();
    let (_, result) = dialogue(&case, &wire, &clock, &watch).await;
    assert!(result.unwrap().is_err());
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 9, "{heard:?}");
    assert!(heard[1].contains("retry 2 of 5 in 0."), "{heard:?}");
    let waited = clock.waited.borrow();
    assert!(waited.windows(2).all(|it| it[0] < it[1]), "{waited:?}");
}

/// By the SDKs of the providers, where a Python that has them is named in `EPITOME_PYTHON` or first in the path.
#[test]
#[expect(clippy::disallowed_methods, reason = "tests may be told where things are")]
fn request_bodies_are_of_the_sdks_types() {
    let python = std::env::var("EPITOME_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/summarizer/bodies.py");
    match std::process::Command::new(&python).arg(script).output() {
        Ok(output) => {
            let (out, error) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            eprint!("{out}{error}");
            assert!(output.status.success(), "{out}{error}");
        }
        Err(error) => eprintln!("SKIPPED: request_bodies_are_of_the_sdks_types: {python}: {error}"),
    }
}
