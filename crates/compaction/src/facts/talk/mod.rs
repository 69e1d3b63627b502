//! Facts of the conversation: the goal, rules, decisions, requests, open questions, the model's findings, and
//! approaches that were given up.

pub(in crate::facts) mod answers;
pub(in crate::facts) mod approved;
pub(in crate::facts) mod decisions;
pub(super) mod delegated;
mod options;
pub(in crate::facts) mod orders;
pub(in crate::facts) mod overruled;
pub(in crate::facts) mod replies;
pub(in crate::facts) mod report;
mod shorten;
pub(in crate::facts) mod turn;

use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::rule::polarity;
use crate::facts::text::{
    clip, flat, has_marker, is_question, lines, sentences, without_bold, without_markers, without_sentences,
};
use crate::facts::voice::{ModelTopic, Prompt, ToolTopic};
use crate::facts::{Detail, Fact, Polarity, Topic};
use answers::{CHOSEN_OPTION, MAX_ANSWER_CHARS, is_offer};
pub(in crate::facts) use answers::{
    MAX_REPLY_BYTES, answers_question, asks, asks_back, chooses_option, leaves_question,
};
use decisions::{CHOSEN_OPTIONS, read_decisions};
use history::tools::{self, Meaning};
use history::{History, Kind, Message, Part, Role};
use options::{mentioned_option, without_choice};
use orders::{MAX_RULE_CHARS, read_rules};
use report::{after_retraction, announces, delivers, speaks, text_of_model, without_closing_questions};
use shorten::{join_sentences, shortened, statements, without_offers};
use std::borrow::Cow;
use std::collections::HashSet;
use turn::{drop_old_diagnoses, is_working, read_end, read_turn};

const MIN_FINDING_CHARS: usize = 40;

/// Drops rules, from index `start` on, that are list items in the prompt and in a reply of the model: the user pasted what
/// it proposes, which is a task.
fn drop_pasted_rules(prompt: &str, before: &[Message], start: usize, facts: &mut Vec<Fact>) {
    /// Number of the newest replies that are looked at.
    const REPLIES: usize = 6;
    if facts.len() == start {
        return;
    }
    let items = |text: &str| -> HashSet<String> {
        let plain = text.lines().map(|it| without_bold(it.trim()));
        plain.filter(|it| has_marker(it)).map(|it| flat(without_markers(&it))).collect()
    };
    let own = items(prompt);
    let replies = before.iter().rev().filter(|it| speaks(it)).take(REPLIES);
    let proposed: HashSet<String> = replies.flat_map(|it| items(&text_of_model(it))).collect();
    let mut rules = facts.split_off(start);
    rules.retain(|it| {
        let rule = flat(without_markers(&it.text));
        !own.contains(&rule) || !proposed.contains(&rule)
    });
    facts.append(&mut rules);
}

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
/// A prompt that only asks how the work goes: the reply does not end it.
static ASKS_PROGRESS: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:so,? )?(?:(?:what|what['’]s)(?: are| r)? (?:you|u) (?:now )?(?:doing|up to|working on)|what['’]?s the (?:status|progress)|(?:any )?(?:status|progress)(?: update)? ?\?|how(?:['’]s| is) it going|where are we(?: at)?|(?:are )?you (?:stuck|still (?:there|working|running))|still (?:there|working))(?: (?:now|so far))?\W*$",
);

/// Whether a prompt only asks how the work goes.
pub(in crate::facts) fn asks_progress(prompt: &str) -> bool {
    ASKS_PROGRESS.is_match(prompt)
}

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
                let before = facts.len();
                read_rules(number, &prompt, answers, &mut facts);
                drop_pasted_rules(&prompt_text, &messages[..number], before, &mut facts);
                let chosen = is_very_short(&prompt_text) && answers;
                read_decisions(number, &prompt, asked, last_model_message.is_some(), &mut facts);
                if let (Some(start), Some(said)) = (first_fact_of_message.take(), last_model_message) {
                    let reply = text_of_model(&messages[said]);
                    read_answered_reply(said, &reply, number, &prompt_text, answers, start, &mut facts);
                }
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
                    let reply = text_of_model(&messages[before]);
                    read_conclusion(before, &reply, false, false, start, &mut facts);
                }
                (last_model_message, unanswered) = (Some(number), Some(number));
                first_fact_of_message = Some(facts.len());
                let text = text_of_model(message);
                let text = if is_working(messages, number) { after_retraction(&text) } else { &text };
                let mends = message.calls().any(|it| tools::meaning(&it.name) == Meaning::Edit);
                read_statements(number, text, mends, &mut facts);
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
/// The model waits for another request.
static WAITS: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:let me know|anything else|feel free|whenever you|just (?:ask|say|tell me)|i['’]?m here)\b",
);

/// Drops an "ok" to an offer after which the model only waited for another request: nothing was accepted.
fn drop_acknowledgements(messages: &[Message], facts: &mut Vec<Fact>) {
    facts.retain(|fact| {
        let offered =
            matches!(&fact.detail, Detail::Choice { asked: Some(asked), means: None, .. } if is_offer(asked));
        if fact.topic != Topic::Decisions || !offered || !ACKNOWLEDGES.is_match(&fact.text) {
            return true;
        }
        let turn = &messages[fact.message + 1..];
        let next = turn.iter().position(Message::is_prompt);
        let Some(next) = next else { return true };
        let turn = &turn[..next];
        let waits = turn.iter().any(|it| speaks(it) && WAITS.is_match(&text_of_model(it)));
        !waits || turn.iter().any(|it| it.calls().next().is_some())
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
        || asks_progress(text)
        || RESUMES.is_match(text)
        || is_praise(text)
        || count <= 24 && text.split_whitespace().count() <= 3 && {
            let lower = Lowercased::of(text);
            CUES.approve.is_in(&lower) || CUES.refuse.is_in(&lower)
        }
}

/// An order to do what the reply before it proposes: "Yes, implement this".
static BARE_ORDER: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:yes|yeah|ok(?:ay)?|sure|please|pls|great|perfect|cool|now|then|so|go ahead and|let['’]?s)\W+)*",
    r"(?:(?:do|make|apply|implement|execute|proceed with|start with) (?:it|this|that|these|those|them|(?:the|this|that|these|those) (?:proposed )?(?:changes?|plan|fix(?:es)?|updates?|edits?))(?: (?:now|please|all|then))*",
    r"|(?:that |this |it )?(?:sounds|looks) (?:good|great|fine|right))\W*$",
));

/// Whether a prompt only agrees to what the reply before it proposes, so that by itself it tells nothing.
pub(crate) fn only_agrees(text: &str) -> bool {
    let approves = || {
        let lower = Lowercased::of(text);
        text.split_whitespace().count() <= 3 && CUES.approve.is_in(&lower) && !CUES.refuse.is_in(&lower)
    };
    polarity(text).is_none()
        && (RESUMES.is_match(text) || BARE_ORDER.is_match(text) || is_praise(text) || approves())
}

/// Whether a prompt requests nothing at all: a greeting, or a slash command without arguments.
pub(in crate::facts) fn is_empty_prompt(text: &str) -> bool {
    let text = text.trim();
    is_one_of(&GREETINGS, text) || text.starts_with('/') && is_trivial(text)
}

/// Reads the model's findings, the approaches that it gave up, and the code that it calls untested. `mends`: the message
/// edits a file, so what it found there is no longer so.
fn read_statements(number: usize, plain: &str, mends: bool, facts: &mut Vec<Fact>) {
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
        } else if !mends
            && found < 3
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

/// Adds the conclusion of the model's reply `said`, without what the prompt `number` after it withdraws or refuses.
/// `answers`: the prompt answers the reply. `start`: see [`read_conclusion`].
fn read_answered_reply(
    said: usize,
    reply: &str,
    number: usize,
    prompt: &str,
    answers: bool,
    start: usize,
    facts: &mut Vec<Fact>,
) {
    if supersedes_proposal(prompt) {
        withdraw_findings(said, start, facts);
    } else {
        let chose = facts
            .iter()
            .rev()
            .take_while(|it| it.message == number)
            .any(|it| matches!(it.detail, Detail::Choice { means: Some(_), .. }));
        let refused = CUES.refuse.is_in(&Lowercased::of(sentences(prompt).first().unwrap_or(&"")));
        let told = if answers || chose { without_choice(reply, chose).into() } else { Cow::Borrowed(reply) };
        read_conclusion(said, &told, refused, answers, start, facts);
    }
    facts.extend(referred_items(said, reply, prompt));
}

/// Adds the conclusion of the model's message `number`, in place of the findings from single sentences of the
/// message, which are among the facts from index `start` on. `refused`: the user's reply begins with a no, so
/// the model's recommendations are left out. `answered`: the user answers the message, and may accept what it offers;
/// otherwise, its offers are left out.
fn read_conclusion(
    number: usize,
    plain: &str,
    refused: bool,
    answered: bool,
    start: usize,
    facts: &mut Vec<Fact>,
) {
    let plain = without_closing_questions(plain);
    let text = conclusion(plain, refused, answered, CONCLUSION_CHARS);
    // A text that ends with a colon announces a step that was taken since.
    if text.chars().count() >= MIN_FINDING_CHARS && !text.ends_with(':') && is_informative(plain) {
        withdraw_findings(number, start, facts);
        facts.push(Fact::from_model(ModelTopic::Findings, number, text));
    }
}

/// Maximum characters of a conclusion, and of one that is told at length.
const CONCLUSION_CHARS: usize = 600;
pub(crate) const LONG_CHARS: usize = 1_600;

/// Says that the client is in its plan mode, or asks the user to end it.
static STATES_MODE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\bplan mode is (?:still )?(?:active|on)\b|\b(?:disable|exit|leave|turn off) plan mode\b",
);

/// What a message without its closing questions concludes, in about `chars` characters.
fn conclusion(plain: &str, refused: bool, answered: bool, chars: usize) -> String {
    let advice = |it: &str| refused && CUES.recommends.is_in(&Lowercased::of(it));
    // What it was about to do was done, or not, in the messages since; a mode that still holds has a line of its own.
    let over = |it: &str| advice(it) || announces(it) || STATES_MODE.is_match(it);
    let all = lines(plain);
    let told = if answered { all } else { without_offers(&all) };
    without_sentences(&shortened(&told, chars), over).trim().to_owned()
}

/// Whether a finding is the report of a sub-agent.
pub(crate) fn is_of_subagent(fact: &Fact) -> bool {
    fact.text.starts_with(delegated::REPORTS)
}

/// A reply or the report of a sub-agent at full length, if nothing was dropped since from its short form, the fact's text.
pub(crate) fn at_length(history: &History, fact: &Fact) -> Option<String> {
    let message = history.messages().get(fact.message)?;
    if let Some(report) = fact.text.strip_prefix(delegated::REPORTS) {
        return delegated::at_length(message, report);
    }
    let reply = text_of_model(message);
    let plain = without_closing_questions(&reply);
    // The forms that leave out more come first.
    let forms = [(true, false), (true, true), (false, false), (false, true)];
    let form = forms.iter().find(|it| conclusion(plain, it.0, it.1, CONCLUSION_CHARS) == *fact.text)?;
    Some(conclusion(plain, form.0, form.1, LONG_CHARS))
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
