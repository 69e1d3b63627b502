//! Summaries by a model: against a server that speaks each provider's wire format with every fault, and against bad,
//! good and attacked summaries.

mod faults;
mod program;
pub(crate) mod server;
mod sizes;
mod dialogue;
mod truth;

use std::sync::Arc;

use epitome::compaction::facts::{self, Ledger};
use epitome::compaction::profile::SummarySpec;
use epitome::compaction::summary::offline;
use epitome::compaction::summary::prompt::PromptOverrides;
use epitome::compaction::summary::render::{self, Excerpt};
use epitome::compaction::summary::request::{Bounds, INPUT_REDUCTIONS, SummaryRequest};
use epitome::history::{Call, History, Kind, Message, Meta, Output, Part, Role};

/// About four characters a token, as good as any here.
fn count(text: &str) -> u64 {
    text.len() as u64 / 4 + 1
}

fn said(role: Role, text: &str) -> Message {
    Message::text(role, Kind::Said, text)
}

/// A call and its output.
fn ran(id: usize, tool: &str, input: serde_json::Value, output: &str, failed: bool) -> [Message; 2] {
    let id: Arc<str> = format!("call-{id}").into();
    let call = Call {
        id: id.clone(),
        name: tool.into(),
        input: input.to_string().into(),
        freeform: false,
        signature: None,
    };
    let output = Output { name: Some(tool.into()), failed, ..Output::new(id, output) };
    [
        Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)]),
        Message::new(Role::User, Kind::Said, vec![Part::Output(output)]),
    ]
}

/// A session that a material is made of.
struct Case {
    history: History,
    ledger: Ledger,
    spec: SummarySpec,
    excerpts: Vec<Excerpt>,
    own: PromptOverrides,
}

impl Case {
    fn new(messages: Vec<Message>) -> Self {
        let history = History::new(messages, Meta::default());
        let ledger = facts::read(&history);
        let spec = epitome::profiles::built_in("epitome").unwrap().summarize().unwrap().summary.clone();
        let excerpts = render::excerpts(&history, 0..history.messages().len(), &|it| {
            epitome::history::secrets::Redactor::default().redact(it)
        });
        Self { history, ledger, spec, excerpts, own: PromptOverrides::default() }
    }

    /// A small session with a rule, a file and a command.
    fn small() -> Self {
        let mut messages = vec![said(
            Role::User,
            "Fix the parser in src/parse.rs. Never touch the files in vendor/, they are not ours.",
        )];
        messages.extend(ran(
            1,
            "Edit",
            serde_json::json!({"file_path": "src/parse.rs", "old_string": "a", "new_string": "b"}),
            "ok",
            false,
        ));
        messages.extend(ran(
            2,
            "Bash",
            serde_json::json!({"command": "cargo test"}),
            "test result: ok. 12 passed; 0 failed",
            false,
        ));
        messages.push(said(
            Role::Assistant,
            &"The parser handles empty input now and the tests pass. ".repeat(40),
        ));
        messages.push(said(Role::User, "Good. Now add a test for the empty file as well."));
        Self::new(messages)
    }

    fn material(&self) -> SummaryRequest<'_> {
        SummaryRequest {
            history: &self.history,
            ledger: &self.ledger,
            region: 0..self.history.messages().len(),
            spec: &self.spec,
            max_tokens: 600,
            style: Default::default(),
            focus: None,
            pins: &[],
            language: epitome::compaction::summary::dialogue::language_of(&self.history),
            texts: epitome::profiles::text,
            own: &self.own,
            reductions: &INPUT_REDUCTIONS,
            window: None,
            thinking: 0,
            prefix: None,
            host: false,
            count: &count,
            excerpts: &self.excerpts,
            bounds: Bounds::default(),
        }
    }

    /// The offline summary, as a model would send it.
    fn good(&self) -> String {
        let material = self.material();
        let whole = crate::facts::asked(material.spec, material.region.clone(), material.max_tokens);
        let ask = offline::OfflineRequest { style: material.style, ..whole };
        format!("<summary>\n{}\n</summary>", offline::write(&self.history, &self.ledger, &ask, &count))
    }
}
