//! Whose words a fact's text is, as types: only a [`Quote`] may be presented as the user's words, and one can only be
//! made from a message that a person wrote, from the agent's own record of a refusal or an answer, or from an earlier
//! summary. A [`Fact`] of what the user wants needs a quote, so that the compiler rejects a path, command or output in
//! its place.

use std::borrow::Cow;
use std::ops::Deref;

use super::text::typed::{slash_command, spec_kit_command, user_text};
use super::{Detail, Fact, Topic};
use history::tools;
use history::{Call, History, Kind, Message, Output, Refusal, Text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// The user's, verbatim: it may be put in quotation marks.
    User,
    Model,
    /// From tool calls and their outputs.
    Tools,
    Summary,
}

/// The text of a fact, and whose words it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributedText {
    voice: Voice,
    text: String,
}

impl AttributedText {
    pub fn voice(&self) -> Voice {
        self.voice
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn truncate(&mut self, bytes: usize) {
        self.text.truncate(bytes);
    }

    /// Replaces the text, unless it is the user's.
    pub(super) fn reword(&mut self, with: impl FnOnce(&str) -> String) {
        if self.voice != Voice::User {
            self.text = with(&self.text);
        }
    }
}

impl Deref for AttributedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl std::fmt::Display for AttributedText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quote(String);

impl Quote {
    /// For a refusal without a reason.
    pub(super) fn empty() -> Self {
        Self(String::new())
    }

    /// The reason for a refused call, where the agent recorded one.
    pub(super) fn of_refusal(refusal: &Refusal) -> Option<Self> {
        refusal.reason.as_deref().map(|it| Self(it.to_owned()))
    }
}

impl Deref for Quote {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Prefixes of texts that clients and hooks insert in a user message.
const INJECTED_STARTS: [&str; 8] = [
    "EXECUTION RESULT of [",
    "[Request interrupted",
    "Operation stopped by hook",
    "Caveat:",
    "This session is being continued",
    "System: ",
    // Gas Town, which types it into an idle agent.
    "📬 You have new mail from ",
    // Gemini CLI
    "User has manually exited Plan Mode.",
];

/// Prefix of the text with which Codex asks a reviewing model for approval. A transcript follows, in which
/// the user's entries say what the user allows in the other session, and then the planned action.
const REVIEW_START: &str = "The following is the Codex agent history ";

/// The slash command of a message, if without arguments; Claude Code puts the command's text after it.
pub(super) fn argless_command(message: &Message) -> Option<&str> {
    let mut texts = message.texts().map(Text::as_str).filter(|_| message.is_slash_command());
    let command = texts.find(|it| it.starts_with("<command-message>"));
    // `/plugin:setup` says nothing of the work.
    slash_command(command?).filter(|it| !it.ends_with("setup"))
}

/// OpenCode puts this text before the call of a sub-agent that the user started by a slash command.
const RAN_COMMAND: &str = "The following tool was executed by the user";

/// Whether a message stands for a command that the user ran in a sub-agent.
pub(super) fn is_run_by_user(message: &Message) -> bool {
    message.kind == Kind::Context && message.texts().any(|it| it.as_str() == RAN_COMMAND)
}

/// Whether the user asks for something in a message.
pub(super) fn is_asked(message: &Message) -> bool {
    message.is_prompt() || argless_command(message).is_some() || is_run_by_user(message)
}

/// The user's own words in a message that a person wrote.
pub(super) struct Prompt<'a> {
    parts: Vec<Cow<'a, str>>,
    /// See [`Prompt::is_argless_command`].
    no_arguments: bool,
    /// How many of the parts, from the first, ask for something; the others were said in another session.
    asked: usize,
}

impl<'a> Prompt<'a> {
    /// `None` for a message that no person wrote, or in which nothing is the user's own.
    pub(super) fn of(message: &'a Message) -> Option<Self> {
        // Claude Code appends its own instructions to a message from another session.
        let from_peer =
            |it: &Text| it.as_str().trim_start().starts_with("Another Claude session sent a message:");
        if let Some(command) = argless_command(message) {
            return Some(Self { parts: vec![command.into()], no_arguments: true, asked: 1 });
        }
        if !message.is_prompt() || message.texts().any(from_peer) {
            return None;
        }
        let said = |it: &&str| !INJECTED_STARTS.iter().any(|not| it.trim_start().starts_with(not));
        let texts: Vec<&str> = message.texts().map(Text::as_str).collect();
        let review = texts.len() > 2 && texts[0].starts_with(REVIEW_START);
        let ends = |it: &&str| it.starts_with(">>> TRANSCRIPT") && it.trim_end().ends_with(" END");
        let own = match texts.iter().position(ends) {
            Some(end) if review => end + 1,
            None if review => 1,
            Some(_) | None => texts.len(),
        };
        let parts = user_text(texts[..own].iter().copied()).into_iter().filter(said);
        let mut parts: Vec<Cow<'_, str>> = parts.map(Cow::Borrowed).collect();
        // Arguments say little without the command.
        let spec_kit = message.texts().find_map(|it| spec_kit_command(it.as_str()));
        if let Some((command, true)) = spec_kit {
            return Some(Self { parts: vec![command.into()], no_arguments: true, asked: 1 });
        }
        let slash = message.texts().find_map(|it| slash_command(it.as_str()));
        let command = slash.or_else(|| spec_kit.map(|it| it.0));
        if let (Some(command), Some(first)) = (command, parts.first_mut()) {
            *first = format!("{command}\n{first}").into();
        }
        let asked = if review { 1 } else { parts.len() };
        (!parts.is_empty()).then_some(Self { parts, no_arguments: false, asked })
    }

    /// Whether it is a slash command without arguments, which is a request all the same.
    pub(super) fn is_argless_command(&self) -> bool {
        self.no_arguments
    }

    pub(super) fn parts(&self) -> &[Cow<'a, str>] {
        &self.parts
    }

    /// The parts that ask for something.
    pub(super) fn requests(&self) -> &[Cow<'a, str>] {
        &self.parts[..self.asked]
    }

    pub(super) fn whole(&self) -> Quote {
        Quote(self.parts.join("\n").trim().to_owned())
    }

    /// `None` if `slice` is not a slice of one of the parts, even if it is equal to one.
    pub(super) fn quote(&self, slice: &str) -> Option<Quote> {
        let within = |part: &Cow<'_, str>| {
            let (part, slice) = (part.as_bytes().as_ptr_range(), slice.as_bytes().as_ptr_range());
            part.start <= slice.start && slice.end <= part.end
        };
        self.parts.iter().any(within).then(|| Quote(slice.to_owned()))
    }
}

/// The output of one of the agent's own tools that ask the user.
pub(super) struct UserReply<'a> {
    pub(super) output: &'a Output,
}

impl<'a> UserReply<'a> {
    /// `None` for any other tool, even one of an MCP server with the same name.
    pub(super) fn of(history: &History, call: &Call, output: &'a Output) -> Option<Self> {
        tools::asks_user(history.meta.agent.as_deref(), &call.name).then_some(Self { output })
    }

    pub(super) fn quote(&self, answer: String) -> Quote {
        Quote(answer)
    }
}

/// An earlier summary, of ours or of the agent's.
#[derive(Clone, Copy)]
pub(super) struct EarlierSummary<'a> {
    message: &'a Message,
    number: usize,
}

impl<'a> EarlierSummary<'a> {
    /// `None` for other messages.
    pub(super) fn of(number: usize, message: &'a Message) -> Option<Self> {
        (message.kind == Kind::Summary).then_some(Self { message, number })
    }

    pub(super) fn texts(self) -> impl Iterator<Item = &'a str> {
        self.message.texts().map(Text::as_str)
    }

    /// The user's words, as the summary quotes them.
    pub(super) fn quote(self, text: &str) -> Quote {
        Quote(text.to_owned())
    }

    /// A statement of the summary itself.
    pub(super) fn fact(self, topic: Topic, text: &str, detail: Detail) -> Fact {
        Fact::new(topic, self.number, Voice::Summary, text.to_owned(), detail)
    }
}

/// Topics of facts that come from tool calls and their outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolTopic {
    Files,
    Directory,
    Setup,
    Commands,
    Errors,
    Tried,
    Identifiers,
    Mode,
    Skills,
    /// A task list with open tasks, which the current turn read or changed.
    Open,
    /// Such a list that only earlier turns read.
    Unconfirmed,
    /// [`Topic::Decisions`]: what the user's settings forbid.
    Denied,
    /// [`Topic::Last`]: a command that the user ran in a sub-agent.
    Ran,
}

/// Topics of facts that come from the model's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelTopic {
    Tried,
    Untested,
    Findings,
    Approved,
    Current,
    Open,
    Active,
    Done,
    /// [`Topic::Last`]: a question of the model that nobody answered.
    Asked,
}

impl Fact {
    pub(super) fn from_user(topic: Topic, message: usize, quote: Quote, detail: Detail) -> Self {
        Self::new(topic, message, Voice::User, quote.0, detail)
    }

    pub(super) fn from_tools(topic: ToolTopic, message: usize, text: String, detail: Detail) -> Self {
        let topic = match topic {
            ToolTopic::Files => Topic::Files,
            ToolTopic::Directory => Topic::Directory,
            ToolTopic::Setup => Topic::Setup,
            ToolTopic::Commands => Topic::Commands,
            ToolTopic::Errors => Topic::Errors,
            ToolTopic::Open => Topic::Open,
            ToolTopic::Unconfirmed => Topic::Unconfirmed,
            ToolTopic::Tried => Topic::Tried,
            ToolTopic::Identifiers => Topic::Identifiers,
            ToolTopic::Mode => Topic::Mode,
            ToolTopic::Skills => Topic::Skills,
            ToolTopic::Denied => Topic::Decisions,
            ToolTopic::Ran => Topic::Last,
        };
        Self::new(topic, message, Voice::Tools, text, detail)
    }

    pub(super) fn from_model(topic: ModelTopic, message: usize, text: String) -> Self {
        let topic = match topic {
            ModelTopic::Tried => Topic::Tried,
            ModelTopic::Untested => Topic::Untested,
            ModelTopic::Findings => Topic::Findings,
            ModelTopic::Approved => Topic::Approved,
            ModelTopic::Current => Topic::Current,
            ModelTopic::Open => Topic::Open,
            ModelTopic::Active => Topic::Active,
            ModelTopic::Done => Topic::Done,
            ModelTopic::Asked => Topic::Last,
        };
        Self::new(topic, message, Voice::Model, text, Detail::None)
    }

    fn new(topic: Topic, message: usize, voice: Voice, text: String, detail: Detail) -> Self {
        Self { topic, message, text: AttributedText { voice, text }, detail }
    }
}
