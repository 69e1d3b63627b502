//! A span for each compaction, sent to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names: OTLP over
//! HTTP, with the GenAI attributes of the semantic conventions (in development). It has no text of a session.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::KeyValue;
use opentelemetry::trace::{Span as _, SpanKind, Status, Tracer as _, TracerProvider as _};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;

use crate::agents::Env;
use crate::engine::{Ask, CompactOutcome, Compacted, Engine, Opened, Seated};
use history::error::Result;

/// Timeout of an export, and of the final flush when the process ends.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(3);

/// Created with the first span; `None` if no collector is configured.
static PROVIDER: OnceLock<Option<SdkTracerProvider>> = OnceLock::new();

/// Sends the span of a compaction whose result was to be written. A no-op, or one that still waits for an
/// answer, sends none.
pub(crate) fn compacted(
    engine: &Engine,
    begun: Instant,
    opened: &Opened,
    ask: &Ask,
    compacted: &Result<Compacted>,
) {
    let mut attributes = about(opened, ask);
    let failed = match compacted {
        Ok(it) => {
            let outcome = match &it.outcome {
                CompactOutcome::Compacted { accepted, .. } => Ok(accepted.attempt.outcome.tokens),
                CompactOutcome::Rejected(why) => Err(why.code()),
                CompactOutcome::Planned(_) | CompactOutcome::NeedsAnswer(_) | CompactOutcome::Noop { .. } => {
                    return;
                }
            };
            attributes.push(KeyValue::new("epitome.summarizer", it.about.summarizer.clone()));
            if let Some((provider, model)) = it.about.summarizer.split_once('/') {
                attributes.push(KeyValue::new("gen_ai.provider.name", provider_name(provider)));
                attributes.push(KeyValue::new("gen_ai.request.model", model.to_owned()));
            }
            let usage = &it.about.usage;
            if usage.requests > 0 {
                attributes.push(number("gen_ai.usage.input_tokens", usage.input));
                attributes.push(number("gen_ai.usage.output_tokens", usage.output));
                attributes.push(number("gen_ai.usage.cache_read.input_tokens", usage.cache_read));
            }
            attributes.push(number("epitome.tokens.before", it.about.tokens_before));
            outcome.map(|tokens| attributes.push(number("epitome.tokens.after", tokens))).err()
        }
        Err(error) => Some(error.code()),
    };
    send(engine, begun, attributes, failed);
}

/// As [`compacted`], for a compaction on a running agent's behalf.
pub(crate) fn seated(engine: &Engine, begun: Instant, opened: &Opened, ask: &Ask, seated: &Result<Seated>) {
    let mut attributes = about(opened, ask);
    attributes.push(KeyValue::new("epitome.summarizer", "offline"));
    let failed = match seated {
        Ok(it) => {
            attributes.push(number("epitome.tokens.before", it.tokens_before));
            attributes.push(number("epitome.tokens.after", it.tokens_after));
            None
        }
        Err(error) => Some(error.code()),
    };
    send(engine, begun, attributes, failed);
}

/// Flushes pending spans within [`EXPORT_TIMEOUT`]. Call it before the process ends.
pub fn finish() {
    if let Some(Some(provider)) = PROVIDER.get()
        && let Err(error) = provider.shutdown_with_timeout(EXPORT_TIMEOUT)
    {
        tracing::warn!("the collector at OTEL_EXPORTER_OTLP_ENDPOINT did not get every span: {error}");
    }
}

fn about(opened: &Opened, ask: &Ask) -> Vec<KeyValue> {
    let meta = &opened.session.history.meta;
    let mut out = vec![
        KeyValue::new("gen_ai.operation.name", "compact"),
        KeyValue::new("epitome.profile", ask.profile.name.clone()),
        KeyValue::new("epitome.trigger", ask.cause().name()),
    ];
    let known = [
        ("gen_ai.conversation.id", &meta.session),
        ("gen_ai.agent.name", &meta.agent),
        ("epitome.session.model", &meta.model),
    ];
    out.extend(known.into_iter().filter_map(|(key, it)| Some(KeyValue::new(key, it.as_deref()?.to_owned()))));
    out
}

fn number(key: &'static str, it: u64) -> KeyValue {
    KeyValue::new(key, i64::try_from(it).unwrap_or(i64::MAX))
}

/// The provider's name in the semantic conventions.
fn provider_name(name: &str) -> String {
    match name {
        "gemini" => "gcp.gemini".to_owned(),
        other => other.to_owned(),
    }
}

/// `failed`: the error code, if nothing was compacted.
fn send(engine: &Engine, begun: Instant, mut attributes: Vec<KeyValue>, failed: Option<&'static str>) {
    let Some(provider) = PROVIDER.get_or_init(|| provider(&engine.config.agents)) else { return };
    match failed {
        Some(code) => attributes.push(KeyValue::new("error.type", code)),
        // The conventions define only `true` for this attribute.
        None => attributes.push(KeyValue::new("gen_ai.conversation.compacted", true)),
    }
    let started = SystemTime::UNIX_EPOCH + Duration::from_millis(engine.now.max(0).unsigned_abs());
    let tracer = provider.tracer("epitome");
    let mut span = tracer
        .span_builder("compact")
        .with_kind(SpanKind::Internal)
        .with_start_time(started)
        .with_attributes(attributes)
        .start(&tracer);
    if let Some(code) = failed {
        span.set_status(Status::error(code));
    }
    span.end_with_timestamp(started + begun.elapsed());
}

fn provider(env: &Env) -> Option<SdkTracerProvider> {
    if env.text("OTEL_SDK_DISABLED") == Some("true") || env.text("OTEL_TRACES_EXPORTER") == Some("none") {
        return None;
    }
    let endpoint = match env.text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
        Some(it) => it.to_owned(),
        None => format!("{}/v1/traces", env.text("OTEL_EXPORTER_OTLP_ENDPOINT")?.trim_end_matches('/')),
    };
    crate::llm::http::use_ring();
    let exporter =
        SpanExporter::builder().with_http().with_endpoint(endpoint).with_timeout(EXPORT_TIMEOUT).build();
    match exporter {
        Ok(exporter) => {
            let name = env.text("OTEL_SERVICE_NAME").unwrap_or("epitome").to_owned();
            let resource = Resource::builder().with_service_name(name).build();
            Some(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
        }
        Err(error) => {
            tracing::warn!("no spans are sent: OTEL_EXPORTER_OTLP_ENDPOINT: {error}");
            None
        }
    }
}
