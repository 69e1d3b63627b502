//! Facts of the conversation: the goal, rules, decisions, requests, open questions, the model's findings, and
//! approaches that were given up.

pub(in crate::facts) mod approved;
mod decisions;
mod options;
pub(super) mod delegated;
pub(in crate::facts) mod orders;
pub(in crate::facts) mod overruled;
pub(in crate::facts) mod replies;
pub(in crate::facts) mod report;

use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::rule::polarity;
use crate::facts::text::{clip, ends_with_colon, flat, is_question, lines, sentences, without_sentences};
use crate::facts::voice::{ModelTopic, Prompt, ToolTopic};
use crate::facts::{Detail, Fact, Polarity, Topic};
use decisions::{
    CHOSEN_OPTION, CHOSEN_OPTIONS, MAX_ANSWER_CHARS, OPEN_INVITATION, closing_question, is_offer,
    read_decisions, replies_to,
};
pub(in crate::facts) use decisions::{
    MAX_REPLY_BYTES, answers_question, asks, asks_back, chooses_option, leaves_question,
};
use history::tools::{self, Meaning};
use history::{History, Kind, Message, Part, Role};
use options::{mentioned_option, without_choice};
use orders::{MAX_RULE_CHARS, read_rules};
use report::{
    after_retraction, announces, current_state, delivers, is_report, join_sentences, shortened, speaks,
    statements, text_of_model, without_closing_announcements, without_closing_questions, without_offers,
};

const MIN_FINDING_CHARS: usize = 40;

/// Openings of sentences that say nothing if they are short: "No output yet.", "Agreed."
static FILLER: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:no|not|nothing|still|yes|ok|okay|sure|agreed|understood|got it|thanks?|thank you|great|perfect|good|right",
    r"|hello|hi|of course|certainly|sorry|i can help|i(?:'|’)?d be happy|happy to)\b",
));
/// The openings of [`FILLER`] that can begin a finding of more than three words: "Nothing was pushed yet."
static NEGATIVE: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)^\W*(?:no|not|nothing|still)\b");
/// A prompt that only asks to continue the earlier work.
static RESUMES: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:please|pls|ok(?:ay)?|yes|now|sorry)\W+)*(?:continue|resume|carry on|go on|keep going|proceed|pick (?:it )?up)",
    r"(?:,? (?:please|(?:(?:with|from) )?(?:(?:the|this|that|our|your) )?(?:(?:previous|last|old) )?(?:session|work|conversation|task)",
    r"|(?:from )?where (?:you|we|it) (?:left off|stopped)))*\W*$",
));
/// Placeholder of an image (Claude Code).
static IMAGE: AsciiFirstRegex = AsciiFirstRegex::new(r"\[Image(?: #\d+)?\]");

/// Reads the conversation. `goal`: whether an earlier summary already states the goal.
pub(in crate::facts) fn read(history: &History, mut goal: bool) -> Vec<Fact> {
    let mut facts = Vec::new();
    let messages = history.messages();
    let mut last_model_message: Option<usize> = None;
    // The model's last message, until the user answers it: a question is answered once.
    let mut unanswered: Option<usize> = None;
    // Index of the first fact from that message, until its conclusion is read.
    let mut first_fact_of_message: Option<usize> = None;
    let mut last_request: Option<usize> = None;
    let mut started = goal;
    for (number, message) in messages.iter().enumerate() {
        // A history may begin in the middle of the work.
        started |= message.parts.iter().any(|it| matches!(it, Part::Call(_) | Part::Output(_)));
        match (message.role, message.kind) {
            (Role::User, Kind::Said | Kind::Context) => {
                let Some(prompt) = Prompt::of(message) else { continue };
                let parts = prompt.parts();
                let prompt_text = parts.join("\n");
                let no_arguments = prompt.is_argless_command();
                let trivial = !no_arguments && is_trivial(&prompt_text);
                for part in parts.iter().filter(|it| no_arguments || !is_empty_prompt(it)) {
                    facts.extend(prompt_fact(Topic::UserMessages, number, &prompt, part));
                }
                for part in prompt.requests() {
                    // Clients join consecutive prompts into one message, so each part is checked separately.
                    if no_arguments || !is_trivial(part) {
                        facts.extend(prompt_fact(Topic::Requests, number, &prompt, part));
                        if !goal {
                            facts.extend(prompt_fact(Topic::Goal, number, &prompt, part));
                        }
                    }
                }
                goal |= !trivial;
                // The prompt that starts the work answers nothing.
                let asked = unanswered.take().filter(|_| started).map(|it| &messages[it]);
                let answers = asked.is_some_and(|it| answers_question(message, it));
                let chooses = asked.is_some_and(|it| chooses_option(message, it));
                if let Some(start) = first_fact_of_message.take()
                    && let Some(said) = last_model_message
                {
                    let reply = text_of_model(&messages[said]);
                    if supersedes_proposal(&prompt_text) {
                        withdraw_findings(said, start, &mut facts);
                    } else {
                        let refused = CUES
                            .refuse
                            .is_in(&Lowercased::of(sentences(&prompt_text).first().unwrap_or(&"")));
                        let reply =
                            if answers || chooses { without_choice(&reply) } else { (&*reply).into() };
                        read_conclusion(said, &reply, refused, start, &mut facts);
                    }
                    facts.extend(referred_items(said, &reply, &prompt_text));
                }
                read_rules(number, &prompt, answers, &mut facts);
                let chosen = is_very_short(&prompt_text) && answers;
                read_decisions(number, &prompt, asked, last_model_message.is_some(), &mut facts);
                if started {
                    read_objection(number, &prompt_text, &messages[..number], &mut facts);
                }
                started |= !trivial;
                if !trivial && !chosen || last_request.is_none() {
                    last_request = Some(number);
                }
            }
            (Role::Assistant, Kind::Said) if speaks(message) => {
                if let (Some(start), Some(before)) = (first_fact_of_message.take(), last_model_message)
                    && delivers(&messages[before])
                {
                    read_conclusion(before, &text_of_model(&messages[before]), false, start, &mut facts);
                }
                (last_model_message, unanswered) = (Some(number), Some(number));
                first_fact_of_message = Some(facts.len());
                let text = text_of_model(message);
                let works = message.calls().next().is_some() && !delivers(message);
                read_statements(number, if works { after_retraction(&text) } else { &text }, &mut facts);
            }
            (Role::User | Role::Assistant | Role::System | Role::Tool, _) => {}
        }
    }
    drop_acknowledgements(messages, &mut facts);
    facts.extend(delegated::read(history));
    if let (Some(request), Some(said)) = (last_request, last_model_message) {
        read_turn(messages, request, said, &mut facts);
        drop_old_diagnoses(messages, request, &mut facts);
    }
    read_end(history, last_request, last_model_message, &mut facts);
    facts
}

/// A prompt that accepts an offer, or only acknowledges the message that ends with it.
static ACKNOWLEDGES: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)^\W*(?:ok(?:ay)?|k|cool|great|nice|thanks|thank you|got it|understood)\W*$");

/// Drops an "ok" to an offer after which the model did nothing until the next prompt: nothing was accepted.
fn drop_acknowledgements(messages: &[Message], facts: &mut Vec<Fact>) {
    facts.retain(|fact| {
        let offered =
            matches!(&fact.detail, Detail::Choice { asked: Some(asked), means: None, .. } if is_offer(asked));
        if fact.topic != Topic::Decisions || !offered || !ACKNOWLEDGES.is_match(&fact.text) {
            return true;
        }
        let turn = &messages[fact.message + 1..];
        let next = turn.iter().position(Message::is_prompt);
        next.is_none_or(|next| turn[..next].iter().any(|it| it.calls().next().is_some()))
    });
}

/// Whether a prompt is so short that only the question before it makes it a request: `local`, `A and B`.
fn is_very_short(prompt: &str) -> bool {
    /// Maximum words.
    const WORDS: usize = 3;
    prompt.split_whitespace().count() <= WORDS
}

fn prompt_fact(topic: Topic, number: usize, prompt: &Prompt, part: &str) -> Option<Fact> {
    Some(Fact::from_user(topic, number, prompt.quote(part.trim())?, Detail::None))
}

/// Records a step that the model announced in its last message and the user forbids in the reply, as tried
/// and given up. Announcements in earlier messages do not count: those the model dropped by itself.
fn read_objection(number: usize, prompt: &str, before: &[Message], facts: &mut Vec<Fact>) {
    // "Apply them, no need to draft first" objects to nothing.
    let begins = |it: &&str| {
        let lower = Lowercased::of(it);
        let opens = |(before, from): (&str, &str)| {
            before.split_whitespace().count() <= 3 && !before.contains(',') && !from.starts_with(',')
        };
        CUES.forbid.around(&lower).is_some_and(opens)
    };
    let no = sentences(prompt).first().copied().filter(|it| polarity(it) == Some(Polarity::Forbid));
    let Some(no) = no.filter(begins) else { return };
    let stems = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|it| it.chars().count() >= 5);
        words.map(|it| it.to_lowercase().chars().take(6).collect()).collect()
    };
    let against = stems(no);
    let turn = before.iter().rev().take_while(|it| !it.is_prompt());
    let said = turn.filter(|it| it.role == Role::Assistant && it.kind == Kind::Said);
    let last = said.map(Message::plain).find(|it| !it.trim().is_empty()).unwrap_or_default();
    let meant = sentences(&last).into_iter().find(|it| {
        let own = stems(it);
        it.chars().count() <= MAX_RULE_CHARS
            && CUES.announce.is_in(&Lowercased::of(it))
            && against.iter().any(|word| own.contains(word))
    });
    if let Some(meant) = meant {
        let text = format!("{} → \"{}\"", flat(meant), flat(clip(no, 200).0));
        facts.push(Fact::from_tools(ToolTopic::Tried, number, text, Detail::None));
    }
}

const GREETINGS: [&str; 14] = [
    "hi",
    "hello",
    "hey",
    "hola",
    "bonjour",
    "salut",
    "olá",
    "oi",
    "hallo",
    "ciao",
    "привет",
    "xin chao",
    "xin chào",
    "你好",
];

fn is_one_of(words: &[&str], text: &str) -> bool {
    words.iter().any(|it| text.trim_end_matches(['.', '!']).eq_ignore_ascii_case(it))
}

/// A prompt that only praises: `nice, well done`.
static PRAISE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:(?:(?:very|so|really|that['’]?s) )?(?:nice|cool|awesome|amazing|excellent|wow|lovely|beautiful|wonderful|well done|(?:good|great|nice) (?:job|work|one))\W*)+$",
);

pub(in crate::facts) fn is_praise(text: &str) -> bool {
    PRAISE.is_match(text)
}

/// Whether a prompt requests nothing by itself: "yes", "continue", "hi".
pub(in crate::facts) fn is_trivial(text: &str) -> bool {
    // An image needs words beside it to be a request.
    let unmarked = IMAGE.replace_all(text, "");
    let shows = unmarked.len() < text.len();
    let text = unmarked.trim();
    if shows && text.split_whitespace().count() < 3 {
        return true;
    }
    let count = text.chars().count();
    count <= 2
        || text.starts_with('/') && !text.contains(char::is_whitespace) && text.matches('/').count() == 1
        || is_one_of(&["thanks", "thank you", "test", "clear", "exit", "quit"], text)
        || is_one_of(&GREETINGS, text)
        || RESUMES.is_match(text)
        || is_praise(text)
        || count <= 24 && text.split_whitespace().count() <= 3 && {
            let lower = Lowercased::of(text);
            CUES.approve.is_in(&lower) || CUES.refuse.is_in(&lower)
        }
}

/// Whether a prompt requests nothing at all: a greeting, or a slash command without arguments.
pub(in crate::facts) fn is_empty_prompt(text: &str) -> bool {
    let text = text.trim();
    is_one_of(&GREETINGS, text) || text.starts_with('/') && is_trivial(text)
}

/// Reads the model's findings, the approaches that it gave up, and the code that it calls untested.
fn read_statements(number: usize, plain: &str, facts: &mut Vec<Fact>) {
    let mut model = |topic: ModelTopic, text: &[&str]| {
        facts.push(Fact::from_model(topic, number, join_sentences(text, 300)))
    };
    let mut found = 0;
    let mut before: Option<&str> = None;
    for sentence in statements(plain) {
        let last = before.replace(sentence);
        if sentence.chars().count() < 20 || sentence.ends_with([':', '?', '？', '：']) {
            continue;
        }
        let lower = Lowercased::of(sentence);
        if is_hollow(sentence, &lower) {
            continue;
        }
        let plans = CUES.announce.is_in(&lower);
        let mended = CUES.fixed.is_in(&lower);
        if !plans && !mended && CUES.gave_up.is_in(&lower) {
            model(ModelTopic::Tried, &[sentence]);
        } else if !mended && CUES.untested.is_in(&lower) {
            model(ModelTopic::Untested, &[sentence]);
        } else if found < 3
            && sentence.chars().count() >= MIN_FINDING_CHARS
            && CUES.found.is_in(&lower)
            && !is_narration(&lower)
        {
            let whole = !CUES.back_reference.is_in(&lower);
            let with = last.filter(|it| it.chars().count() <= 200 && !is_narration(&Lowercased::of(it)));
            found += usize::from(whole || with.is_some());
            match with {
                _ if whole => model(ModelTopic::Findings, &[sentence]),
                Some(with) => model(ModelTopic::Findings, &[with, sentence]),
                None => {}
            }
        }
    }
}

fn is_narration(lower: &Lowercased) -> bool {
    CUES.announce.is_in(lower) || CUES.narration.is_in(lower)
}

/// Adds the conclusion of the model's message `number`, in place of the findings from single sentences of the
/// message, which are among the facts from index `start` on. `refused`: the user's reply begins with a no, so
/// the model's recommendations are left out.
fn read_conclusion(number: usize, plain: &str, refused: bool, start: usize, facts: &mut Vec<Fact>) {
    let plain = without_closing_questions(plain);
    let advice = |it: &str| refused && CUES.recommends.is_in(&Lowercased::of(it));
    // What it was about to do was done, or not, in the messages since.
    let over = |it: &str| advice(it) || announces(it);
    let text = without_sentences(&shortened(&without_offers(&lines(plain)), 600), over).trim().to_owned();
    // A text that ends with a colon announces a step that was taken since.
    if text.chars().count() >= MIN_FINDING_CHARS && !text.ends_with(':') && is_informative(plain) {
        withdraw_findings(number, start, facts);
        facts.push(Fact::from_model(ModelTopic::Findings, number, text));
    }
}

/// The items of the last numbered list in the model's message `number`, if the user's reply refers to them by
/// number: without them the reply means nothing.
fn referred_items(number: usize, plain: &str, prompt: &str) -> Vec<Fact> {
    const MAX_ITEMS: usize = 9;
    const MAX_CHARS: usize = 300;
    const WHOLE: usize = 600;
    let head = clip(prompt, 2_000).0;
    // A shorter message is told with all its options.
    let long = plain.len() > WHOLE && !CHOSEN_OPTION.is_match(head);
    if let Some(option) = mentioned_option(plain, head).filter(|_| long) {
        let text = join_sentences(&lines(option), 2 * MAX_CHARS);
        return vec![Fact::from_model(ModelTopic::Findings, number, text)];
    }
    let refers = || CUES.refers.is_in(&Lowercased::of(head)) && !CHOSEN_OPTION.is_match(head);
    if !CHOSEN_OPTIONS.is_match(head) && !refers() {
        return Vec::new();
    }
    let numbered = |line: &&str| -> Option<usize> { line.split_once(['.', ')'])?.0.parse().ok() };
    let all = lines(plain);
    let items: Vec<(usize, &str)> = all.iter().filter_map(|it| Some((numbered(it)?, *it))).collect();
    // The last list of the message.
    let from = items.iter().rposition(|it| it.0 == 1).unwrap_or(items.len());
    let list = items[from..].iter().enumerate().take_while(|(at, it)| it.0 == at + 1).take(MAX_ITEMS);
    let list: Vec<Fact> = list
        .map(|(_, (point, it))| {
            Fact::from_model(
                ModelTopic::Findings,
                number,
                format!("({point}) {}", join_sentences(&[it], MAX_CHARS)),
            )
        })
        .collect();
    if list.len() > 1 { list } else { Vec::new() }
}

/// Whether a sentence says that something was found or done, but not what.
fn is_hollow(sentence: &str, lower: &Lowercased) -> bool {
    let names = |c: char| c.is_ascii_digit() || "`:/_\"“".contains(c);
    CUES.hollow.is_in(lower) && !sentence.contains(names)
}

/// Removes the findings of a message from `facts[start..]`.
fn withdraw_findings(number: usize, start: usize, facts: &mut Vec<Fact>) {
    facts.extract_if(start.., |it| it.topic == Topic::Findings && it.message == number).for_each(drop);
}

/// Whether a prompt begins by saying that a proposal was decided, done or withdrawn.
fn supersedes_proposal(prompt: &str) -> bool {
    // "Show names instead of ids" is a request of its own.
    let withdraws = |it: &&str| {
        let it = it.to_lowercase().replace("instead of", "in place of");
        it.chars().count() <= MAX_ANSWER_CHARS && CUES.withdraws.is_in(&Lowercased::of(&it))
    };
    sentences(prompt).first().is_some_and(withdraws)
}

/// Whether a text says more than that the model understood and what it is about to do.
fn is_informative(text: &str) -> bool {
    let idle = |it: &&str| {
        let short = it.chars().count() < 40 && !it.contains(|c: char| c.is_ascii_digit() || c == '`');
        // "Nothing was pushed yet" is informative.
        let bare = it.split_whitespace().count() <= 3 || !NEGATIVE.is_match(it);
        let lower = Lowercased::of(it);
        is_question(it)
            || is_narration(&lower)
            || is_hollow(it, &lower)
            || short && bare && FILLER.is_match(it)
    };
    /// A longer message says more than that there is no news. Characters.
    const NO_NEWS: usize = 300;
    let sentences = sentences(text);
    let says_nothing = |it: &&str| CUES.no_news.is_in(&Lowercased::of(it)) && it.chars().count() < 40;
    let says_nothing = text.chars().count() <= NO_NEWS && sentences.iter().any(says_nothing);
    sentences.is_empty() || !says_nothing && !sentences.iter().all(idle)
}

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

/// The state of the work according to message `at`, without its announcements if a tool output follows. A
/// short answer delivered by a tool call is put after what the model said before it. `at_end`: nothing later
/// says what is being done, so announcements are kept if there is nothing else.
fn state_at(messages: &[Message], at: usize, at_end: bool) -> String {
    /// What is left without announcements is told alone if it is at least a fourth of a message.
    const POINT_SHARE: usize = 4;
    /// A shorter rest says too little. Characters.
    const REST: usize = 40;
    let mut text = text_of_model(&messages[at]);
    if messages[at].calls().next().is_some() {
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
    let rest = without_sentences(&current_state(without_closing_announcements(&text)), announces);
    // Of a plan, a short rest is not the point.
    let point = rest.chars().count() * POINT_SHARE >= text.trim().chars().count();
    match rest.contains(char::is_alphanumeric) {
        true if point => flat(&rest),
        true => current_state(&text),
        false if at_end => current_state(&text),
        false => String::new(),
    }
}

/// What the model said in the current turn before its last message, the newest first: no prompt follows that would make
/// it a reply, and nothing later repeats it.
fn read_turn(messages: &[Message], request: usize, said: usize, facts: &mut Vec<Fact>) {
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
        let thought = if report { &text } else { after_retraction(&text) };
        let plain = without_closing_announcements(without_closing_questions(thought));
        let text = flat(&without_sentences(&shortened(&lines(plain), CHARS), announces));
        if text.chars().count() >= MIN_FINDING_CHARS && !text.ends_with(':') && is_informative(&text) {
            facts.retain(|it| !found(at)(it));
            facts.push(Fact::from_model(ModelTopic::Findings, at, text));
            told += 1;
        }
    }
}

/// The model says what is wrong.
static DIAGNOSES: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\b(?:the|another|two|three) (?:\w+ )?(?:issues?|problems?|bugs?|cause|culprit|reason)\b(?: here)?(?::| (?:is|are|was|were|must)\b)",
    r"|\bi bet\b|(?:^|[.!?] )\W*now fix\b|\bmust be (?:that|because)\b|\broot cause\b|(?:问题|問題)(?:是|在于|在於|出在)|原因是",
));

/// Drops what the model thought was wrong in the current turn if it then changed files and found something else: it was
/// mended, or it was not the cause.
fn drop_old_diagnoses(messages: &[Message], request: usize, facts: &mut Vec<Fact>) {
    let diagnosis =
        |it: &Fact| it.topic == Topic::Findings && it.message > request && DIAGNOSES.is_match(&it.text);
    let Some(last) = facts.iter().filter(|it| diagnosis(it)).map(|it| it.message).max() else { return };
    let changes = |it: &Message| {
        let mut actions = it.calls().flat_map(tools::actions);
        actions.any(|it| matches!(it.meaning, Meaning::Edit | Meaning::Create))
    };
    let changed = messages[..last].iter().rposition(changes);
    facts.retain(|it| !diagnosis(it) || it.message == last || changed.is_none_or(|at| at < it.message));
}

/// The end of the history: the last request, the model's last message, and its unanswered question.
fn read_end(history: &History, last: Option<usize>, said: Option<usize>, facts: &mut Vec<Fact>) {
    let messages = history.messages();
    let newest = history.last_prompt().filter(|it| Some(*it) > last);
    for number in [last, newest].into_iter().flatten() {
        let Some(prompt) = Prompt::of(&messages[number]) else { continue };
        facts.extend(
            prompt.requests().iter().filter_map(|part| prompt_fact(Topic::Last, number, &prompt, part)),
        );
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
    let acted = messages[said + 1..].iter().flat_map(Message::calls).flat_map(tools::actions);
    let changed = acted.filter(|it| matches!(it.meaning, Meaning::Edit | Meaning::Create));
    let changed: Vec<String> = changed.filter_map(|it| it.path).collect();
    // What is to be done in a file that was changed since may be done.
    let done =
        |it: &&str| changed.iter().any(|path| it.contains(path.rsplit(['/', '\\']).next().unwrap_or(path)));
    let left = |it: &&str| says_unfinished(it) && !done(it);
    for sentence in statements(&plain).into_iter().filter(left).take(6) {
        facts.push(fact(ModelTopic::Open, flat(clip(sentence, 300).0)));
    }
}
