//! What a format is: the facts and functions that its module fills in. [`Format::ALL`] lists them.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::requests::Collector;
use crate::{Keep, Mode, Session, Source, Written, agents, wire};
use history::History;
use history::error::{Error, ErrorKind, Result};

/// How a session is written down. A small value: a reference to its module's `Row`.
#[derive(Clone, Copy)]
pub struct Format(pub(crate) &'static Row);

/// One format, as its module describes it.
pub(crate) struct Row {
    /// The name used in arguments and JSON.
    pub(crate) name: &'static str,
    /// The API whose messages its agent sends.
    pub(crate) api: Api,
    /// Whether its thinking is signed by that API. Agents that talk to several providers do not say which one signed.
    pub(crate) is_signed: bool,
    /// Part of the path of its agent's folder, and how a session's file name ends: enough to recognise a session in
    /// which too little is written.
    pub(crate) folder: Option<(&'static str, &'static [&'static str])>,
    /// Whether the first 64 KB, mended, are surely of this format. Plain messages are recognised by
    /// [`crate::wire::sniff`].
    pub(crate) recognise: Option<fn(&str) -> bool>,
    pub(crate) read: fn(&dyn Source) -> Result<Session>,
    /// Reads what is needed to measure it; otherwise all of it is read.
    pub(crate) scan: Option<fn(&dyn Source, &Keep<'_>) -> Result<Session>>,
    /// Writes a changed history back; a format without it is only read.
    pub(crate) write: Option<fn(&dyn Source, &Session, &History, Mode) -> Result<Written>>,
    /// Makes a new session of a history that was read in another format.
    pub(crate) carry: Option<fn(&dyn Source, &Session, &History) -> Result<Written>>,
    /// Reads the requests that the provider reported, also those whose messages are not sent any more; otherwise only
    /// those of the history are known.
    pub(crate) requests: Option<fn(&dyn Source, &mut Collector) -> Result<()>>,
    /// What looks for damage, in this order; a format without it is not repaired.
    pub(crate) repair: &'static [crate::repair::Stage],
}

/// An API that takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Anthropic,
    OpenAiChat,
    OpenAiResponses,
    Gemini,
}

impl Format {
    /// Claude Code `.jsonl`.
    pub const CLAUDE_CODE: Self = Self(&agents::claude_code::ROW);
    /// Codex `rollout-*.jsonl`.
    pub const CODEX: Self = Self(&agents::codex::ROW);
    /// Gemini CLI `.jsonl` or the older `.json`.
    pub const GEMINI_CLI: Self = Self(&agents::gemini_cli::ROW);
    /// OpenCode's export `.json`.
    pub const OPENCODE: Self = Self(&agents::opencode::ROW);
    /// pi `.jsonl`; read only.
    pub const PI: Self = Self(&agents::pi::ROW);
    /// Qwen Code `.jsonl`; read only.
    pub const QWEN_CODE: Self = Self(&agents::qwen_code::ROW);
    /// SWE-agent `.traj`; read only.
    pub const SWE_AGENT: Self = Self(&agents::swe_agent::ROW);
    /// Anthropic Messages: an array, or a request body that holds one.
    pub const ANTHROPIC: Self = Self(&wire::ANTHROPIC);
    /// OpenAI chat completions messages.
    pub const OPENAI_CHAT: Self = Self(&wire::OPENAI_CHAT);
    /// OpenAI Responses input items.
    pub const OPENAI_RESPONSES: Self = Self(&wire::OPENAI_RESPONSES);
    pub const GEMINI: Self = Self(&wire::GEMINI);

    /// All of them, native ones first. In this order a session is recognised: Qwen Code's records are like Claude
    /// Code's, with something more.
    pub const ALL: [Self; 11] = [
        Self::QWEN_CODE,
        Self::CLAUDE_CODE,
        Self::CODEX,
        Self::GEMINI_CLI,
        Self::OPENCODE,
        Self::PI,
        Self::SWE_AGENT,
        Self::ANTHROPIC,
        Self::OPENAI_CHAT,
        Self::OPENAI_RESPONSES,
        Self::GEMINI,
    ];

    /// The format of that name.
    ///
    /// # Errors
    /// [`ErrorKind::Arguments`] for one that is not known.
    pub fn named(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|it| it.name()).collect();
            Error::new(
                ErrorKind::Arguments,
                format!("expected a format ({}), found {name:?}", names.join(", ")),
            )
        })
    }

    /// The API whose messages this format's agent sends: itself for plain messages.
    pub fn api(self) -> Self {
        self.0.api.format()
    }

    /// The name used in arguments and JSON.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Whether it is plain messages of an API.
    pub fn is_wire(self) -> bool {
        self.api() == self
    }

    /// Whether damage in sessions of this format is mended.
    pub fn is_repaired(self) -> bool {
        !self.0.repair.is_empty()
    }

    /// Whether sessions of this format are only read: their content is written as plain messages of [`Self::api`].
    pub fn is_read_only(self) -> bool {
        self.0.write.is_none()
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

impl Hash for Format {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::named(&String::deserialize(deserializer)?).map_err(|error| D::Error::custom(error.detail()))
    }
}

impl Api {
    pub(crate) fn format(self) -> Format {
        match self {
            Self::Anthropic => Format::ANTHROPIC,
            Self::OpenAiChat => Format::OPENAI_CHAT,
            Self::OpenAiResponses => Format::OPENAI_RESPONSES,
            Self::Gemini => Format::GEMINI,
        }
    }
}
