//! Whose words a fact's text is, as types: what may be quoted as the user's is a [`Quote`], and a quote is made of a
//! message that a person wrote, of the agent's own record of a refusal or an answer, or of an earlier summary. There is
//! no other way to make one, nor a [`Fact`] of what the user wants without one, so that the compiler refuses a path, a
//! command or an output in the user's place.

use std::ops::Deref;

use super::text::user_text;
use super::{Detail, Fact, Topic};
use history::tools;
use history::{Call, History, Kind, Message, Output, Refusal, Text};

/// Whose words a fact's text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// The user's, verbatim: it may be put in quotation marks.
    User,
    Model,
    /// Seen in what tools were asked and answered.
    Tools,
    Summary,
}

/// The text of a fact, and whose it is.
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

    /// Leaves the first `bytes`.
    pub(super) fn truncate(&mut self, bytes: usize) {
        self.text.truncate(bytes);
    }

    /// Replaces words that are not the user's.
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

/// Words of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quote(String);

impl Quote {
    /// Nothing: the user said no and no more.
    pub(super) fn empty() -> Self {
        Self(String::new())
    }

    /// Why the user refused a call, where the agent recorded it.
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

/// What clients and hooks put where a user's words would stand.
const INJECTED_STARTS: [&str; 10] = [
    "EXECUTION RESULT of [",
    "[Request interrupted",
    "Operation stopped by hook",
    "Caveat:",
    "This session is being continued",
    "System: ",
    "Another Claude session sent a message:",
    // What Codex frames a command with that its reviewer is to judge.
    ">>> APPROVAL REQUEST ",
    ">>> TRANSCRIPT ",
    "Planned action JSON:",
];

/// The user's own words in a message that a person wrote.
pub(super) struct Prompt<'a> {
    parts: Vec<&'a str>,
}

impl<'a> Prompt<'a> {
    /// Nothing for a message that no person wrote, or in which nothing is the user's own.
    pub(super) fn of(message: &'a Message) -> Option<Self> {
        if !message.is_prompt() {
            return None;
        }
        let said = |it: &&str| !INJECTED_STARTS.iter().any(|not| it.trim_start().starts_with(not));
        let parts: Vec<&str> =
            user_text(message.texts().map(Text::as_str)).into_iter().filter(said).collect();
        (!parts.is_empty()).then_some(Self { parts })
    }

    /// The stretches of it.
    pub(super) fn parts(&self) -> &[&'a str] {
        &self.parts
    }

    pub(super) fn whole(&self) -> Quote {
        Quote(self.parts.join("\n").trim().to_owned())
    }

    /// A slice of a stretch; nothing for a text from elsewhere, also if it reads the same.
    pub(super) fn quote(&self, slice: &str) -> Option<Quote> {
        let within = |part: &&str| {
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
    /// Nothing for any other tool, whatever it is called behind a server's name.
    pub(super) fn of(history: &History, call: &Call, output: &'a Output) -> Option<Self> {
        tools::asks_user(history.meta.agent.as_deref(), &call.name).then_some(Self { output })
    }

    /// An answer that stands in it.
    pub(super) fn quote(&self, answer: String) -> Quote {
        Quote(answer)
    }
}

/// An earlier summary: of ours or of the agent's, in a message that was marked as one.
#[derive(Clone, Copy)]
pub(super) struct EarlierSummary<'a> {
    message: &'a Message,
    number: usize,
}

impl<'a> EarlierSummary<'a> {
    /// Nothing for a message that is none.
    pub(super) fn of(number: usize, message: &'a Message) -> Option<Self> {
        (message.kind == Kind::Summary).then_some(Self { message, number })
    }

    pub(super) fn texts(self) -> impl Iterator<Item = &'a str> {
        self.message.texts().map(history::Text::as_str)
    }

    /// What it quotes of the user.
    pub(super) fn quote(self, text: &str) -> Quote {
        Quote(text.to_owned())
    }

    /// What it says itself, of whatever topic.
    pub(super) fn fact(self, topic: Topic, text: &str, detail: Detail) -> Fact {
        Fact::new(topic, self.number, Voice::Summary, text.to_owned(), detail)
    }
}

/// Topics of what is not the user's to say: these facts are the model's, or seen in what tools were asked and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolTopic {
    Files,
    Directory,
    Setup,
    Commands,
    Errors,
    Tried,
    Identifiers,
}

/// Topics of what the model says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelTopic {
    Tried,
    Untested,
    Findings,
    Current,
    Open,
    Active,
    Done,
    /// [`Topic::Last`]: its question that nobody answered.
    Asked,
}

impl Fact {
    /// What the user said.
    pub(super) fn from_user(topic: Topic, message: usize, quote: Quote, detail: Detail) -> Self {
        Self::new(topic, message, Voice::User, quote.0, detail)
    }

    /// What was seen in calls and outputs.
    pub(super) fn from_tools(topic: ToolTopic, message: usize, text: String, detail: Detail) -> Self {
        let topic = match topic {
            ToolTopic::Files => Topic::Files,
            ToolTopic::Directory => Topic::Directory,
            ToolTopic::Setup => Topic::Setup,
            ToolTopic::Commands => Topic::Commands,
            ToolTopic::Errors => Topic::Errors,
            ToolTopic::Tried => Topic::Tried,
            ToolTopic::Identifiers => Topic::Identifiers,
        };
        Self::new(topic, message, Voice::Tools, text, detail)
    }

    /// What the model said.
    pub(super) fn from_model(topic: ModelTopic, message: usize, text: String) -> Self {
        let topic = match topic {
            ModelTopic::Tried => Topic::Tried,
            ModelTopic::Untested => Topic::Untested,
            ModelTopic::Findings => Topic::Findings,
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
