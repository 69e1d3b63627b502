//! What lines depend on beside their fact: what is known of requests, replies and later runs.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::SHORT;
use super::quote::{cut, words};
use crate::facts::{
    ANSWERED, ANSWERED_BEFORE, ANSWERED_BELOW, ANSWERED_LATER, AnsweredRequest, BELOW, EARLIER, Fact,
    LONG_CHARS, NumberedStep, REPLIED_BELOW, REPLY_TO, Topic, Voice, asks_to_go_ahead, attempt_key,
    is_missing_file,
};
use history::tools::{self, Meaning};

/// What the writing of lines depends on.
pub(super) struct LineStyle<'a> {
    /// Directories that are cut from the front of paths and named once per line.
    pub(super) roots: Vec<String>,
    /// Errors have a section of their own, so commands do not repeat them.
    pub(super) errors_apart: bool,
    /// The message that answered the request before the current one.
    pub(super) previous_answer: Option<usize>,
    /// The message that answered the last prompt: a question, or what the session ends with.
    pub(super) last_answered: Option<usize>,
    /// The reply that ends the session, if it stands behind the summary.
    pub(super) replied: Option<usize>,
    /// The first message behind the summary.
    pub(super) end: usize,
    /// Replies that the user's next message refutes: that message, and its first sentence.
    pub(super) refuted: HashMap<usize, (usize, String)>,
    /// The message of the last step, and its suffix, if its turn went on.
    pub(super) goes_on: Option<(usize, String)>,
    /// Requests, in order, each with the message that answered it.
    pub(super) answers: Vec<AnsweredRequest>,
    /// The requests of the user, in order, if replies have a section of their own.
    pub(super) requests: Option<Vec<usize>>,
    /// The sealed compaction whose replaced messages were read: their own numbers are lost.
    pub(super) sealed: Option<usize>,
    /// The messages of the current request that stay word for word behind the summary.
    pub(super) below: Vec<usize>,
    /// Whether the current request says little without the one before it.
    pub(super) follows_up: bool,
    /// The message of the last call that changed something or ran a program.
    pub(super) last_work: Option<usize>,
    /// Failed commands, by message and command, and the message that resolved the failure.
    pub(super) resolved: HashMap<(usize, String), usize>,
    /// Successful checks, by message and command, after which code was edited.
    pub(super) outdated: &'a HashSet<(usize, &'a str)>,
    /// By key of a command, the last message in which it ran.
    pub(super) last_runs: HashMap<String, (usize, Option<bool>)>,
    /// Reports of the turns that decisions began, by the message of the decision.
    pub(super) went_ahead: HashMap<usize, usize>,
    /// The newest findings at length, by message and text.
    pub(super) long: HashMap<(usize, String), String>,
    /// Open steps that tools name by a number, by their text.
    pub(super) numbered: &'a HashMap<String, NumberedStep>,
    /// The system's words, by ours.
    pub(super) words: BTreeMap<String, String>,
}

impl LineStyle<'_> {
    /// The system's word for ours, or ours.
    pub(super) fn word<'a>(&'a self, ours: &'a str) -> &'a str {
        self.words.get(ours).map_or(ours, String::as_str)
    }

    /// The suffix of a request that says how it was answered, if it was.
    fn answer_of_last(&self, fact: &Fact) -> String {
        // The goal of an earlier summary is wider than one request.
        let request = fact.voice() == Voice::User;
        let by = self.answers.iter().find(|it| it.request == fact.message && request);
        match by {
            Some(by) if by.reply >= self.end => return ANSWERED_BELOW.to_owned(),
            Some(by) if fact.topic == Topic::Last || self.last_answered >= Some(self.end) => {
                return replied(by);
            }
            Some(_) | None => {}
        }
        match self.last_answered.filter(|it| request && *it > fact.message) {
            Some(at) if at >= self.end => ANSWERED_BELOW.to_owned(),
            Some(at) => by.map_or_else(|| format!("{ANSWERED}{at}])"), replied),
            None if request && self.replied.is_some() => REPLIED_BELOW.to_owned(),
            None => String::new(),
        }
    }

    /// The suffix of the last request, told in at most `chars` characters.
    pub(super) fn end_of_last(&self, fact: &Fact, chars: usize) -> String {
        let answer = self.answer_of_last(fact);
        let shortened = self.below.contains(&fact.message) && fact.text.chars().count() > chars;
        if shortened && answer.is_empty() { BELOW.to_owned() } else { answer }
    }

    /// The reply to the request before the current one, if it came after a fact of the user.
    pub(super) fn over_since(&self, fact: &Fact) -> Option<usize> {
        self.previous_answer.filter(|it| *it > fact.message)
    }

    /// The suffix of a goal. `over`: what answered the request before the last, if later than the goal.
    pub(super) fn end_of_goal(&self, fact: &Fact, over: Option<usize>) -> String {
        let Some(last) = over else {
            let answer = self.answer_of_last(fact);
            let below = self.below.contains(&fact.message) && answer.is_empty();
            return if below { BELOW.to_owned() } else { answer };
        };
        // An earlier summary covers several requests, some of which may be open.
        if fact.voice() != Voice::User {
            return EARLIER.to_owned();
        }
        let by = self.answers.iter().find(|it| it.request == fact.message);
        match by.filter(|it| it.reply <= last) {
            Some(by) => replied(by),
            None => format!("{ANSWERED_BEFORE}{last}])"),
        }
    }

    /// The prefix of a reply that names its request, if that is known; empty for other facts.
    pub(super) fn replies_to(&self, fact: &Fact) -> String {
        let is_reply =
            fact.topic == Topic::Replies && fact.voice() == Voice::Model && self.sealed != Some(fact.message);
        let request = self.requests.iter().flatten().rfind(|it| is_reply && **it < fact.message);
        request.map_or_else(String::new, |it| format!("{REPLY_TO}{it}: "))
    }

    /// The suffix of a decision that names the report of its turn, if it only answered whether to go ahead.
    pub(super) fn report_of(&self, fact: &Fact, asked: Option<&str>) -> String {
        let report = self.went_ahead.get(&fact.message).filter(|_| asked.is_some_and(asks_to_go_ahead));
        report.map_or_else(String::new, |it| format!("{ANSWERED}{it}])"))
    }

    /// What the user answered to a reply that did not solve the problem or is not wanted; empty for other facts.
    pub(super) fn refuted_by(&self, fact: &Fact) -> String {
        let by = self.refuted.get(&fact.message).filter(|_| fact.topic == Topic::Replies);
        by.map_or_else(String::new, |(at, said)| format!("(the user then at #{at}: \"{said}\") "))
    }

    /// What is known of an error that nothing resolved. Later work may have ended it, and an earlier summary's error may
    /// have ended before.
    pub(super) fn state_of_unresolved(&self, error: &Fact, of: Option<&str>) -> String {
        if error.voice() == Voice::Summary {
            return "status unknown".to_owned();
        }
        if self.last_work.is_none_or(|it| it <= error.message) {
            return "unresolved".to_owned();
        }
        let reads =
            of.and_then(|it| it.split(' ').next()).is_some_and(|it| tools::meaning(it) == Meaning::Read);
        if reads && is_missing_file(&error.text) {
            return "not there".to_owned();
        }
        let request = self.answers.iter().rfind(|it| it.request < error.message);
        let told = error.message..self.end;
        if let Some(by) = request.filter(|it| !it.passed_over && !it.leaves_open && told.contains(&it.reply))
        {
            return format!("its request was answered at #{}", by.reply);
        }
        match of.and_then(|it| self.last_runs.get(&attempt_key(it))) {
            Some((last, _)) if *last <= error.message => "not run again in this form".to_owned(),
            Some((last, Some(false))) => format!("its run at #{last} failed otherwise"),
            Some((last, _)) => format!("run again at #{last}"),
            None => "status unknown".to_owned(),
        }
    }

    /// What a fact says, at length if there is room for it.
    pub(super) fn told(&self, fact: &Fact, chars: usize) -> String {
        let long = || self.long.get(&(fact.message, fact.text.to_string()));
        match (chars >= LONG_CHARS).then(long).flatten() {
            Some(long) => cut(long, chars),
            None => words(fact, chars),
        }
    }

    /// A step in at most `chars` characters, with its number and, if there is room, what it is about.
    pub(super) fn step(&self, fact: &Fact, chars: usize) -> String {
        /// Characters for what all steps are about, and the least that says something of one, and the most.
        const ALL: usize = 1_800;
        const ONE: (usize, usize) = (120, 300);
        let text = cut(&fact.text, chars);
        // A note may follow its text. One title may begin with another.
        let titles = self.numbered.iter().filter(|it| fact.text.starts_with(it.0.as_str()));
        let step = titles.max_by_key(|it| it.0.len()).filter(|_| fact.topic != Topic::Done);
        let Some((_, step)) = step else { return text };
        // With its number, the model can update it, and a later reading knows what was updated.
        let number = format!("#{}", step.id);
        let text = if text.contains(&number) { text } else { format!("{text} (task {number})") };
        let room = (ALL / self.numbered.len()).min(ONE.1);
        match step.about.as_deref().filter(|_| chars > SHORT && room >= ONE.0) {
            Some(about) => format!("{text}. {}", cut(about, room)),
            None => text,
        }
    }

    /// The prefix of a line: the word and a colon, or a mark in brackets.
    pub(super) fn mark(&self, ours: &str) -> String {
        let word = self.word(ours);
        if word.ends_with(']') { word.to_owned() } else { format!("{word}:") }
    }
}

fn replied(by: &AnsweredRequest) -> String {
    let suffix = if by.passed_over { ANSWERED_LATER } else { ANSWERED };
    format!("{suffix}{}])", by.reply)
}
