//! What the model said in the current turn, and where the work stands at the end.

use std::collections::HashSet;

use super::answers::{MAX_ANSWER_CHARS, OPEN_INVITATION, closing_question, replies_to};
use super::report::{
    after_retraction, announces, current_state, delivers, is_report, speaks, text_of_model,
    without_closing_announcements, without_closing_questions,
};
use super::shorten::{begins_with_contrast, shortened, statements};
use super::{MIN_FINDING_CHARS, delegated, is_informative, prompt_fact};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::{
    FILE_NAME, clip, content_words, ends_with_colon, flat, is_question, lines, sentences, without_sentences,
};
use crate::facts::voice::{ModelTopic, Prompt, ToolTopic, is_run_by_user};
use crate::facts::{Detail, Fact, Topic, input_of};
use history::tools::{self, Meaning};
use history::{History, Message, Role};

/// Whether a sentence of the model says that something is not done. A short line that ends with a colon is a heading.
fn says_unfinished(sentence: &str) -> bool {
    const HEADING: usize = 60;
    let lower = Lowercased::of(sentence);
    let heading = ends_with_colon(sentence) && sentence.chars().count() < HEADING;
    !is_question(sentence) && !heading && CUES.unfinished.is_in(&lower) && !CUES.finished.is_in(&lower)
}

/// The state of the work at the end of `region`: the model's last message there, unless a prompt follows it
/// in the region. Left out are announcements once a tool has answered, and mere remarks if the turn goes on
/// after the region.
pub fn last_step(history: &History, region: &std::ops::Range<usize>) -> Option<Fact> {
    /// Minimum characters of a remark worth keeping where the same turn goes on after the region.
    const REMARK: usize = 40;
    let messages = history.messages();
    let covered = messages.get(region.clone())?;
    let at = region.start + covered.iter().rposition(|it| it.is_prompt() || speaks(it))?;
    if !speaks(&messages[at]) {
        return None;
    }
    let behind = messages[region.end..].iter().take_while(|it| !it.is_prompt());
    let goes_on = behind.clone().any(speaks);
    let text = state_at(messages, at, behind.clone().next().is_none());
    let over = goes_on && (text.chars().count() < REMARK || !is_informative(&text));
    (!text.is_empty() && !over).then(|| Fact::from_model(ModelTopic::Current, at, text))
}

/// A guess at a cause.
static GUESSES: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\blikely (?:issue|cause|reason|culprit|because|due)\b|\b(?:cause|issue|problem|reason) is (?:likely|probably)\b|\bi (?:suspect|guess|assume)\b",
);

/// The state of the work according to message `at`, without its announcements if a tool output follows. A
/// short answer delivered by a tool call is put after what the model said before it. `at_end`: nothing later
/// says what is being done, so announcements are kept if there is nothing else.
fn state_at(messages: &[Message], at: usize, at_end: bool) -> String {
    /// What is left without announcements is told alone if it is at least a fourth of a message.
    const POINT_SHARE: usize = 4;
    /// A shorter rest says too little. Characters.
    const REST: usize = 40;
    let mut text = text_of_model(&messages[at]);
    if is_working(messages, at) {
        let rest = after_retraction(&text).to_owned();
        text = if rest.chars().count() >= REST { rest } else { text };
    }
    if delivers(&messages[at]) && text.len() <= MAX_ANSWER_CHARS {
        let mut turn = messages[..at].iter().rev().take_while(|it| !it.is_prompt());
        let before = turn.find(|it| speaks(it)).map(text_of_model).unwrap_or_default();
        text = format!("{before}\n\n{text}");
    }
    let went_on = messages[at..].iter().any(|it| it.outputs().next().is_some());
    if !went_on {
        return current_state(&text);
    }
    // What was guessed was found out, or not, by the work since.
    let over = |it: &str| announces(it) || GUESSES.is_match(it);
    let rest = without_sentences(&current_state(without_closing_announcements(&text)), over);
    // Of a plan, a short rest is not the point.
    let point = rest.chars().count() * POINT_SHARE >= text.trim().chars().count();
    match rest.contains(char::is_alphanumeric) {
        true if point => flat(&rest),
        true => current_state(&text),
        false if at_end => current_state(&text),
        false => String::new(),
    }
}

/// Whether the model calls a tool in message `at` or right after it: the message is no answer.
pub(super) fn is_working(messages: &[Message], at: usize) -> bool {
    let calls = |it: &Message| it.calls().next().is_some() && !delivers(it);
    let next = messages.get(at + 1).filter(|it| it.role == Role::Assistant);
    calls(&messages[at]) || next.is_some_and(calls)
}

/// What the model said in the current turn before its last message, the newest first: no prompt follows that would make
/// it a reply, and nothing later repeats it.
pub(super) fn read_turn(messages: &[Message], request: usize, said: usize, facts: &mut Vec<Fact>) {
    const MOST: usize = 8;
    const CHARS: usize = 400;
    let found = |at: usize| move |it: &Fact| it.topic == Topic::Findings && it.message == at;
    let mut told = 0;
    for at in (request + 1..said).rev().filter(|it| speaks(&messages[*it])) {
        if told == MOST {
            break;
        }
        let text = text_of_model(&messages[at]);
        let report = is_report(&messages[at]);
        let next = messages[at + 1..].iter().find(|it| it.is_prompt() || speaks(it));
        if !report && facts.iter().any(found(at)) || next.is_some_and(Message::is_prompt) {
            continue;
        }
        let thought = if is_working(messages, at) { after_retraction(&text) } else { &text };
        let plain = without_closing_announcements(without_closing_questions(thought));
        let text = flat(&without_begun_steps(&shortened(&lines(plain), CHARS)));
        if text.chars().count() >= MIN_FINDING_CHARS && !text.ends_with(':') && is_informative(&text) {
            facts.retain(|it| !found(at)(it));
            facts.push(Fact::from_model(ModelTopic::Findings, at, text));
            told += 1;
        }
    }
}

/// A step that begins: "Step 5: Create the module."
static BEGINS_STEP: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)^\W*(?:task|step|phase|part|stage) \d{1,2} ?[:—–-] [^.!?]*\.?$");

/// A text without announcements and headings of steps, and without the sentences right after them that qualify them
/// ("But …").
fn without_begun_steps(text: &str) -> String {
    let mut gone = false;
    without_sentences(text, |it| {
        gone = announces(it) || BEGINS_STEP.is_match(it) || gone && begins_with_contrast(it);
        gone
    })
}

/// The model says what is wrong.
static DIAGNOSES: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\b(?:the|another|two|three) (?:\w+ )?(?:issues?|problems?|bugs?|cause|culprit|reason)\b(?: here)?(?::| (?:is|are|was|were|must)\b)",
    r"|\bi bet\b|(?:^|[.!?] )\W*now fix\b|\bmust be (?:that|because)\b|\broot cause\b|(?:问题|問題)(?:是|在于|在於|出在)|原因是",
));

/// Drops the sentences that say what is wrong if the model then changed files in the same turn and said something else of
/// the same: it was mended, or it was not the cause.
pub(super) fn drop_old_diagnoses(messages: &[Message], request: usize, facts: &mut Vec<Fact>) {
    /// Minimum number of words that two diagnoses of the same have in common.
    const SHARED: usize = 3;
    /// Number of later diagnoses with which one is compared.
    const MOST: usize = 32;
    let of_turn = |it: &Fact| {
        it.topic == Topic::Findings && it.message > request && !it.text.starts_with(delegated::REPORTS)
    };
    let diagnoses = |it: &Fact| -> Vec<(usize, String)> {
        let all = sentences(&it.text).into_iter().filter(|_| of_turn(it));
        all.filter(|it| DIAGNOSES.is_match(it)).map(|text| (it.message, text.to_owned())).collect()
    };
    let mut found: Vec<(usize, String)> = facts.iter().flat_map(diagnoses).collect();
    found.sort_by_key(|it| it.0);
    if found.len() < 2 {
        return;
    }
    let changes: Vec<usize> = (request..messages.len()).filter(|it| changes_files(&messages[*it])).collect();
    let changed = |from: usize, to: usize| {
        changes.partition_point(|it| *it < from) < changes.partition_point(|it| *it < to)
    };
    let words: Vec<HashSet<String>> = found.iter().map(|it| content_words(&it.1)).collect();
    let is_old = |one: usize| {
        (one + 1..found.len()).take(MOST).any(|other| {
            changed(found[one].0, found[other].0) && words[one].intersection(&words[other]).count() >= SHARED
        })
    };
    let old: Vec<&(usize, String)> = (0..found.len()).filter(|it| is_old(*it)).map(|it| &found[it]).collect();
    facts.retain_mut(|fact| {
        let is_old = |it: &str| old.iter().any(|old| old.0 == fact.message && old.1 == it);
        if !of_turn(fact) || !sentences(&fact.text).into_iter().any(is_old) {
            return true;
        }
        let left = without_sentences(&fact.text, is_old);
        fact.text.reword(|_| left.trim().to_owned());
        fact.text.chars().count() >= MIN_FINDING_CHARS
    });
}

/// The paths of the files that a message edits or creates.
fn changed_paths(message: &Message) -> impl Iterator<Item = Option<String>> {
    let changes = |it: &tools::Action| matches!(it.meaning, Meaning::Edit | Meaning::Create);
    message.calls().flat_map(tools::actions).filter(changes).map(|it| it.path)
}

fn changes_files(message: &Message) -> bool {
    changed_paths(message).next().is_some()
}

/// The end of the history: the last request, the model's last message, and its unanswered question.
pub(super) fn read_end(history: &History, last: Option<usize>, said: Option<usize>, facts: &mut Vec<Fact>) {
    let messages = history.messages();
    let newest = history.last_prompt().filter(|it| Some(*it) > last);
    for number in [last, newest].into_iter().flatten() {
        let Some(prompt) = Prompt::of(&messages[number]) else { continue };
        facts.extend(
            prompt.requests().iter().filter_map(|part| prompt_fact(Topic::Last, number, &prompt, part)),
        );
    }
    if let Some(at) = messages.iter().rposition(is_run_by_user).filter(|it| Some(*it) > last) {
        let next = messages.get(at + 1).into_iter().flat_map(Message::calls);
        let call = next.into_iter().find(|it| tools::meaning(&it.name) == Meaning::Delegate);
        let input = call.map(input_of).unwrap_or_default();
        if let Some(command) = input.get("command").and_then(serde_json::Value::as_str) {
            let text = format!("the user ran /{command} in a sub-agent");
            facts.push(Fact::from_tools(ToolTopic::Ran, at, text, Detail::None));
        }
    }
    let Some(said) = said else { return };
    let plain = text_of_model(&messages[said]);
    let fact = |topic: ModelTopic, text: String| Fact::from_model(topic, said, text);
    if let Some(asked) = closing_question(&plain) {
        let prompts: Vec<Prompt> = messages[said + 1..].iter().filter_map(Prompt::of).collect();
        let asked_once = flat(clip(asked, 400).0);
        if prompts.is_empty() {
            facts.push(fact(ModelTopic::Asked, asked_once));
        } else if !OPEN_INVITATION.is_match(asked) && !prompts.iter().any(|it| replies_to(asked, &it.whole()))
        {
            // The user asked for something else instead of answering.
            facts.push(fact(ModelTopic::Asked, format!("unanswered question to the user: {asked_once}")));
        }
    }
    // Tool calls after the message may have carried out what it announced.
    let worked = messages[said + 1..].iter().any(|it| it.calls().next().is_some());
    let current = state_at(messages, said, !worked);
    // If those calls serve a later request, the message before it is a finding, not the current step.
    let found = |it: &Fact| it.topic == Topic::Findings && it.message == said;
    let topic = match worked && last.is_some_and(|it| it > said) {
        true => Some(ModelTopic::Findings).filter(|_| !facts.iter().any(found)),
        false => Some(ModelTopic::Current),
    };
    // "Stopping here", after a "no" that the user took back.
    let taken_back = |it: &Fact| matches!(it.detail, Detail::Choice { superseded: Some(by), .. } if it.message < said && said < by);
    let holds = !current.is_empty() && !facts.iter().any(taken_back);
    if let Some(topic) = topic.filter(|_| holds) {
        facts.push(fact(topic, current));
    }
    // If the user wrote since, that request is what is open.
    if last.is_some_and(|it| it > said) {
        return;
    }
    let changed: Vec<String> = messages[said + 1..]
        .iter()
        .flat_map(changed_paths)
        .flatten()
        .map(|it| it.replace('\\', "/"))
        .collect();
    // What is to be done in files that were changed since may be done.
    let done = |it: &&str| {
        let mut named = FILE_NAME.find_iter(it).map(|it| it.as_str()).peekable();
        let is_changed = |name: &str| {
            changed
                .iter()
                .any(|path| path.strip_suffix(name).is_some_and(|it| it.is_empty() || it.ends_with('/')))
        };
        named.peek().is_some() && named.all(is_changed)
    };
    let left = |it: &&str| says_unfinished(it) && !done(it);
    for sentence in statements(&plain).into_iter().filter(left).take(6) {
        facts.push(fact(ModelTopic::Open, flat(clip(sentence, 300).0)));
    }
}
