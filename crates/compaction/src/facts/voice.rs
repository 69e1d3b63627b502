//! Whose words a fact's text is, as types: what may be quoted as the user's is a [`Quote`], and a quote is made of a
//! message that a person wrote, of the agent's own record of a refusal or an answer, or of an earlier summary. There is
//! no other way to make one, nor a [`Fact`] of what the user wants without one, so that the compiler refuses a path, a
//! command or an output in the user's place.

use std::ops::Deref;

use super::text::own;
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
    Seen,
    Summary,
}

/// The text of a fact, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    voice: Voice,
    text: String,
}

impl Words {
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

impl Deref for Words {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl std::fmt::Display for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Words of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quote(String);

impl Quote {
    /// Nothing: the user said no and no more.
    pub(super) fn silent() -> Self {
        Self(String::new())
    }

    /// Why the user refused a call, where the agent recorded it.
    pub(super) fn reason(refusal: &Refusal) -> Option<Self> {
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
const NOT_SAID: [&str; 10] = [
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
        let said = |it: &&str| !NOT_SAID.iter().any(|not| it.trim_start().starts_with(not));
        let parts: Vec<&str> = own(message.texts().map(Text::as_str)).into_iter().filter(said).collect();
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
pub(super) struct Answered<'a> {
    pub(super) output: &'a Output,
}

impl<'a> Answered<'a> {
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
pub(super) struct Earlier<'a> {
    message: &'a Message,
    number: usize,
}

impl<'a> Earlier<'a> {
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
        Fact::made(topic, self.number, Voice::Summary, text.to_owned(), detail)
    }
}

/// Topics of what is not the user's to say: these facts are the model's, or seen in what tools were asked and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
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
pub(super) enum Told {
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
    pub(super) fn user(topic: Topic, message: usize, quote: Quote, detail: Detail) -> Self {
        Self::made(topic, message, Voice::User, quote.0, detail)
    }

    /// What was seen in calls and outputs.
    pub(super) fn seen(topic: Seen, message: usize, text: String, detail: Detail) -> Self {
        let topic = match topic {
            Seen::Files => Topic::Files,
            Seen::Directory => Topic::Directory,
            Seen::Setup => Topic::Setup,
            Seen::Commands => Topic::Commands,
            Seen::Errors => Topic::Errors,
            Seen::Tried => Topic::Tried,
            Seen::Identifiers => Topic::Identifiers,
        };
        Self::made(topic, message, Voice::Seen, text, detail)
    }

    /// What the model said.
    pub(super) fn told(topic: Told, message: usize, text: String) -> Self {
        let topic = match topic {
            Told::Tried => Topic::Tried,
            Told::Untested => Topic::Untested,
            Told::Findings => Topic::Findings,
            Told::Current => Topic::Current,
            Told::Open => Topic::Open,
            Told::Active => Topic::Active,
            Told::Done => Topic::Done,
            Told::Asked => Topic::Last,
        };
        Self::made(topic, message, Voice::Model, text, Detail::None)
    }

    fn made(topic: Topic, message: usize, voice: Voice, text: String, detail: Detail) -> Self {
        Self { topic, message, text: Words { voice, text }, detail }
    }
}
