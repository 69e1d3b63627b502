//! The providers' formats: request headers and bodies, and stream events.

pub mod anthropic;
pub mod gemini;
pub mod openai;
pub mod sse;

use serde_json::Value;

use crate::summary::failure::Failure;
use crate::summary::model::{Api, Endpoint, Key, ModelRequest, PartialReply};

impl Endpoint {
    /// Headers besides the content type. The key goes nowhere else.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let key = self.key.as_ref().map(Key::expose);
        match self.api {
            Api::Anthropic => {
                let mut out = vec![("anthropic-version", anthropic::VERSION.to_owned())];
                out.extend(key.map(|it| ("x-api-key", it.to_owned())));
                out
            }
            Api::OpenaiResponses | Api::OpenaiChat => {
                key.map(|it| ("authorization", format!("Bearer {it}"))).into_iter().collect()
            }
            Api::Gemini => key.map(|it| ("x-goog-api-key", it.to_owned())).into_iter().collect(),
        }
    }

    pub fn body(&self, ask: &ModelRequest) -> Value {
        match self.api {
            Api::Anthropic => anthropic::body(&self.model, ask),
            Api::OpenaiResponses => openai::responses_body(&self.model, ask),
            Api::OpenaiChat => openai::chat_body(&self.model, ask),
            Api::Gemini => gemini::body(ask),
        }
    }

    /// Adds one event of the stream to the reply.
    ///
    /// # Errors
    /// The failure that the event itself reports.
    pub fn event(&self, draft: &mut PartialReply, event: &Value) -> Result<(), Failure> {
        if let Some(failure) = Failure::in_event(event) {
            return Err(failure);
        }
        match self.api {
            Api::Anthropic => anthropic::event(draft, event),
            Api::OpenaiResponses => openai::responses_event(draft, event),
            Api::OpenaiChat => openai::chat_event(draft, event),
            Api::Gemini => gemini::event(draft, event),
        }
        Ok(())
    }
}
