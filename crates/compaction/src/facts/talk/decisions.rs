//! Questions of the model, and what the user's replies decide.

use super::answers::{
    CANNOT, CHINESE_QUESTION, CHOSEN_OPTION, MAX_ANSWER_CHARS, MAX_ECHO_WORDS, OFFER, TROUBLE, approves,
    decides, last_question, replies_to, topic_words,
};
use super::options::{
    OFFERED_OPTION, OFFERS_IF, answered_questions, answers_by_question, beside_own_options, meaning_in,
    option, option_tables, questions_of_tables, recommended, suggested,
};
use super::report::text_of_model;
use super::{BARE_ORDER, is_very_short};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::regions::{Region, regions};
use crate::facts::text::rule::{QUESTION_START, polarity};
use crate::facts::text::{
    clip, clip_end, flat, has_marker, is_heading, is_question, sentences, without_bold, without_markers,
};
use crate::facts::voice::{Prompt, Quote};
use crate::facts::{Detail, Fact, Topic};
use history::Message;
use std::borrow::Cow;

/// Maximum number of chosen options whose texts are told.
const MAX_CHOSEN: usize = 4;

/// Number of characters of an option by which its text is recognised.
const PASTED_CHARS: usize = 24;

/// A prompt that begins with a quotation, or with a list of its own: its first number is no option of the model's.
static QUOTES_OR_LISTS: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^\s*[「『“\x22]|^\s*1[.)、] ?\S[\s\S]{3,}?[\s；;。]2[.)、]");
/// Answers by number: `1. no 2. yes`.
static ANSWERS_EACH: AsciiFirstRegex = AsciiFirstRegex::new(r"(?s)^\s*1[.)] ?\S.*\s2[.)] ?\S");
/// What follows the number of an option that is not chosen: `option b won't do`.
static REFUSES_OPTION: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)^\W*(?:no|not|não|isn['’]?t|is not|doesn['’]?t|does not|won['’]?t|不)\b");
/// Chooses several points of a list: `1, then 4`, `all 3 one by one`.
pub(super) static CHOSEN_OPTIONS: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:all (?:two|three|four|five|six|[2-9])|(?:(?:do|options?|numbers?|points?) )?[1-9](?:(?: ?, ?(?:then |and )?| ?& ?| and | then )[1-9])+|[1-9](?: ?\+ ?[1-9])+\b.*)(?:\W*$|\W+(?:one by (?:one|1)|please|pls|first|now|in (?:this|that) order)\b)",
);
/// The user tells the model to go on, which chooses none of the alternatives.
static GO_ON: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)^\W*(?:please )?(?:proceed|continue|go on)\W*$");
/// An order to find something out, which decides nothing.
static ASKS_WHETHER: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:please )?(?:check|verify|confirm|review|see|assess|evaluate|determine)\b.*\bwhether\b",
);
/// The user complains about what was done, or says what they did themselves, which decides nothing.
static COMPLAINS: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*i (?:actually )?already (?:clicked|committed|did|fixed|made|merged|pushed|ran|sent|tested)\b|\b(?:(?:i|we) (?:didn['’]?t|did not|never) (?:tell|ask|want|say|said|asked|told)|not what (?:i|we) (?:asked|said|meant|wanted))\b",
);
/// Beginning of a question in the middle of a sentence, without a question mark.
static QUESTION_WITHIN: AsciiFirstRegex = AsciiFirstRegex::new(
    r"\bIs there\b|\bAre there\b|(?i)\b(?:is there (?:like )?an?|do you (?:think|know|suggest)|can you (?:check|look|explain|reconsider))\b|(?:どうする|どれにする|どちらにする)か",
);

/// The model asks whether it should do now what it proposed.
static GO_AHEAD: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)(?:^|[.!?:…] )\W*(?:(?:do you )?want me to|would you like me to|(?:shall|should|may|can) (?:i|we)\b|ready (?:to|for me to)\b|ok(?:ay)? to\b|confirm to\b)",
    r"|(?:soll ich|¿?quieres que|veux-tu que|quer que eu|мне начать)\b|(?:しましょうか|進めますか|开始吗|開始嗎|继续吗|可以吗|할까요)",
));

/// Whether a question only asks whether to go ahead, so that an approval is over once the turn reports.
pub(crate) fn asks_to_go_ahead(question: &str) -> bool {
    GO_AHEAD.is_match(question) && !question.contains(" or ")
}

/// An option by its place in a list, which nobody has named before the first reply.
static BY_PLACE: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)\bthe (?:first|second|third|former|latter) (?:one|option|approach)\b");

/// A prompt with what it may answer.
struct Reply<'a> {
    number: usize,
    prompt: &'a Prompt<'a>,
    said: Quote,
    /// The model's message before it.
    before: &'a str,
    /// The question or offer in that message.
    asked: Option<&'a str>,
}

impl Reply<'_> {
    fn is_short(&self) -> bool {
        self.said.chars().count() <= MAX_ANSWER_CHARS
    }

    fn decision(&self, text: Quote, asked: Option<&str>, means: Option<String>, refused: bool) -> Fact {
        let asked = asked.map(|it| without_bold(&flat(clip(&in_context(self.before, it), 240).0)));
        let detail = Detail::Choice { asked, means, refused, superseded: None };
        Fact::from_user(Topic::Decisions, self.number, text, detail)
    }
}

/// `begun`: whether the model has said anything that can be taken back.
pub(super) fn read_decisions(
    number: usize,
    prompt: &Prompt,
    before: Option<&Message>,
    begun: bool,
    facts: &mut Vec<Fact>,
) {
    let said = prompt.whole();
    let before = before.map(text_of_model).unwrap_or_default();
    let lower = Lowercased::of(&said);
    // A bare yes or no answers an offer even if prose follows the offer.
    let bare = is_very_short(&said) && (CUES.approve.is_in(&lower) || CUES.refuse.is_in(&lower));
    let ending = || sentences(clip_end(&before, 4_000)).into_iter();
    let offer = || ending().rfind(|it| OFFER.is_match(it) && is_question(it));
    let offer_if = || ending().rfind(|it| OFFERS_IF.is_match(it));
    let asked = last_question(&before).or_else(|| offer().or_else(offer_if).filter(|_| bare));
    let suggestion =
        || suggested(&before).map(|it| (asked.unwrap_or(it), without_bold(&flat(clip(it, 200).0))));
    let advised = recommended(&before).or_else(suggestion).filter(|_| bare);
    let asked = asked.or(advised.as_ref().map(|it| it.0));
    let reply = Reply { number, prompt, said: said.clone(), before: &before, asked };
    if read_answers_to_tables(&reply, facts) || read_answers_to_each(&reply, facts) {
        return;
    }
    if let Some(means) = chosen_option(&reply).or_else(|| chosen_options(&reply)) {
        facts.push(reply.decision(said, asked, Some(means), false));
        return;
    }
    let only_orders = BARE_ORDER.is_match(&said) && !CUES.approve.is_in(&lower);
    if (GO_ON.is_match(&said) || only_orders) && asked.is_some_and(|it| it.contains(", or ")) {
        return;
    }
    let Some(question) = asked.filter(|it| replies_to(it, &said) && decides(it, &before, &said)) else {
        read_choices(&reply, begun, facts);
        return;
    };
    // Approval may come with a further question.
    let approved = approves(&lower, &said);
    // A suggestion may be all that was asked.
    let means = advised.filter(|it| approved && without_bold(&flat(it.0)) != it.1).map(|it| it.1);
    if approved {
        take_back_refusal(number, question, facts);
    }
    // "1. no 2. yes" answers each of several questions.
    let all = numbered_questions(&before).filter(|_| ANSWERS_EACH.is_match(&said));
    let refused = CUES.refuse.is_in(&lower) && !approved;
    facts.push(reply.decision(said, all.as_deref().or(asked), means, refused));
}

/// Reads answers to several questions, each with a table of options: "B, A", "Q1: B, Q2: A". Returns
/// whether that is all the reply says.
fn read_answers_to_tables(reply: &Reply, facts: &mut Vec<Fact>) -> bool {
    let tables = if reply.is_short() { option_tables(reply.before) } else { Vec::new() };
    if tables.len() < 2 {
        return false;
    }
    let letters: Vec<&str> = reply.said.split([',', ' ', ';', '/']).filter(|it| !it.is_empty()).collect();
    let only_letters = letters.iter().all(|it| it.len() == 1);
    // One letter alone does not say which of the questions it answers.
    let answers = if only_letters && letters.len() == tables.len() {
        letters.iter().enumerate().map(|(at, it)| (at, *it)).collect()
    } else {
        answers_by_question(&reply.said)
    };
    if !answers.is_empty() {
        let means: Vec<String> = answers.iter().map(|it| meaning_in(&tables, it.0, it.1)).collect();
        let all = questions_of_tables(reply.before, tables.len());
        let asked = all.as_deref().or(reply.asked);
        facts.push(reply.decision(reply.said.clone(), asked, Some(means.join("; ")), false));
    }
    only_letters || !answers.is_empty()
}

/// Reads answers that name or number their questions. Returns whether that is all the reply says.
fn read_answers_to_each(reply: &Reply, facts: &mut Vec<Fact>) -> bool {
    let parts = reply.prompt.parts();
    let each: Vec<_> = parts.iter().flat_map(|it| answered_questions(reply.before, it)).collect();
    let answers = !each.is_empty();
    facts.extend(each.into_iter().filter_map(|(asked, said)| {
        let detail = Detail::Choice { asked: Some(asked), means: None, refused: false, superseded: None };
        Some(Fact::from_user(Topic::Decisions, reply.number, reply.prompt.quote(said)?, detail))
    }));
    // Beside the answers the user may decide something else.
    answers && !reply.said.trim().contains("\n\n")
}

/// The text of the offered option that a reply chooses: "2", "option B", "go with the first".
fn chosen_option(reply: &Reply) -> Option<String> {
    let said: &str = &reply.said;
    // An option may be quoted only to ask about it.
    let asks_about = is_question(said) && said.split_whitespace().count() > MAX_ECHO_WORDS;
    if !reply.is_short() || asks_about || CHOSEN_OPTIONS.is_match(said) || QUOTES_OR_LISTS.is_match(said) {
        return None;
    }
    let letter = CHOSEN_OPTION.captures(said)?.iter().skip(1).flatten().next()?;
    let after = &said[letter.end()..];
    let alone = said.chars().count() <= 3
        || said[..letter.start()].chars().any(char::is_alphabetic)
        || after.starts_with('번');
    let digits = letter.as_str().chars().all(|c| c.is_ascii_digit());
    let single = alone || digits && after.starts_with([',', '.', ')', ' ']);
    let chooses =
        single && !REFUSES_OPTION.is_match(after) && OFFERED_OPTION.find_iter(reply.before).nth(1).is_some();
    let offered = chooses.then(|| option(reply.before, letter.as_str()))??;
    // The option's own text behind its number is pasted, to say something of it.
    let begins: String = offered.chars().filter(|it| *it != '`').take(PASTED_CHARS).collect();
    let behind = after.trim_start_matches(['.', ')', ' ']).replace(['`', '*'], "");
    let pasted = begins.chars().count() == PASTED_CHARS && flat(&behind).starts_with(&begins);
    (!pasted).then_some(offered)
}

/// The texts of the offered options that a reply chooses: "1 + 2", "1, then 4".
fn chosen_options(reply: &Reply) -> Option<String> {
    let chosen = CHOSEN_OPTIONS.find(&reply.said).filter(|_| reply.is_short())?;
    if reply.said.to_lowercase().trim_start().starts_with("all") {
        return None;
    }
    let numbers = chosen.as_str().split(|it: char| !it.is_ascii_digit()).filter(|it| it.len() == 1);
    let means: Vec<String> = numbers.filter_map(|it| option(reply.before, it)).take(MAX_CHOSEN).collect();
    (!means.is_empty()).then(|| means.join("; "))
}

/// Reads the sentences that choose something or take it back, whatever was asked.
fn read_choices(reply: &Reply, begun: bool, facts: &mut Vec<Fact>) {
    /// Maximum bytes of a prompt; a longer one is a document.
    const MOST: usize = 2_500;
    if reply.said.len() > MOST {
        return;
    }
    let regions = reply.prompt.parts().iter().flat_map(|it| regions(it));
    let typed = regions.filter(|it| it.0 == Region::Typed).flat_map(|it| beside_own_options(it.1));
    for sentence in typed.flat_map(sentences).filter(|it| !chooses_nothing(it)) {
        let lower = Lowercased::of(sentence);
        if (CUES.choose.is_in(&lower) && (begun || !BY_PLACE.is_match(sentence))
            || begun && reply.is_short() && CUES.reverse.is_in(&lower))
            && let Some(quote) = reply.prompt.quote(sentence)
        {
            facts.push(reply.decision(quote, None, None, false));
        }
    }
}

/// Whether a sentence is a question, a report, or a rule, which is read elsewhere; or too long to be told.
fn chooses_nothing(sentence: &str) -> bool {
    let proposes = sentence.contains("et's") || sentence.contains("et’s");
    sentence.chars().count() > 320
        || is_question(sentence)
        || QUESTION_START.is_match(sentence) && !sentence.contains(", ") && !sentence.contains("et's")
        || QUESTION_WITHIN.is_match(sentence)
        || CHINESE_QUESTION.is_match(sentence)
        || TROUBLE.is_match(sentence)
        || polarity(sentence).is_some()
        || ASKS_WHETHER.is_match(sentence) && !proposes
        || COMPLAINS.is_match(sentence)
        || LEAVES_OPEN.is_match(sentence)
        || CANNOT.is_match(sentence)
}

/// The user leaves the choice to the model: "If you think it is too big, we can go with hints".
static LEAVES_OPEN: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:(?:and|but|so|or) )?if (?:u|you) (?:think|feel|want|prefer|believe)\b.*\b(?:can|could|may)\b",
);

/// The user accepts the offer that followed a "no": if both are about the same, the "no" no longer holds.
fn take_back_refusal(number: usize, offer: &str, facts: &mut [Fact]) {
    let before = |it: &Fact| it.topic == Topic::UserMessages && it.message < number;
    let Some(before) = facts.iter().rev().find(|it| before(it)).map(|it| it.message) else { return };
    for fact in facts.iter_mut().filter(|it| it.topic == Topic::Decisions && it.message == before) {
        if let Detail::Choice { asked: Some(asked), refused: true, superseded, .. } = &mut fact.detail
            && !topic_words(asked).is_disjoint(&topic_words(offer))
        {
            *superseded = Some(number);
        }
    }
}

/// A question that asks for the approval of a whole section.
static OF_SECTION: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)\b(?:so far|section|looks?|right|good|sense|match|works?|ok(?:ay)?)\b");

/// A question about what the sentence before it names.
static HAS_PRONOUN: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)\b(?:it|this|that|these|those|them)\b");

/// The second half of a question: "Or shall I keep it?"
static ALTERNATIVE: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)^\W*(?:or|oder|ou|или)\b|^\W*(?:それとも|还是|還是|아니면)");

/// A short question, preceded by the sentence before it, which says what it is about. A question on a line of
/// its own that asks whether a section is right is preceded by the section's heading.
fn in_context<'a>(text: &str, question: &'a str) -> Cow<'a, str> {
    /// A question of at least this many characters says itself what it is about. With a pronoun, it takes twice as many.
    const LONG: usize = 45;
    const LEAD_CHARS: usize = 160;
    /// Minimum words of the sentence before it.
    const WORDS: usize = 4;
    if let Some(offers) = offered_list(text, question) {
        return offers.into();
    }
    let length = question.chars().count();
    let alternative = ALTERNATIVE.is_match(question);
    let short = alternative || length < LONG || length < 2 * LONG && HAS_PRONOUN.is_match(question);
    let Some(at) = text.rfind(question).filter(|_| short) else { return question.into() };
    let above = &text[..at];
    let line = above.rsplit('\n').next().unwrap_or_default();
    let line = without_markers(line);
    let prose = line.starts_with(|it: char| it.is_alphabetic() || it == '*' || it == '`');
    let says = |it: &&str| alternative || it.split_whitespace().count() >= WORDS;
    let beside = sentences(line).pop().filter(|it| prose && says(it));
    let section =
        || OF_SECTION.is_match(question).then(|| above.lines().rev().find(|it| is_heading(it.trim())));
    let lead = beside.or_else(|| section().filter(|_| line.trim().is_empty()).flatten());
    let lead = lead.map(|it| without_bold(clip(without_markers(it), LEAD_CHARS).0));
    // In the summary, an arrow separates the question from the answer, and a colon introduces a list.
    match lead.filter(|it| !it.contains(" → ") && !it.ends_with(':')) {
        Some(lead) => format!("{lead} … {question}").into(),
        None => question.into(),
    }
}

/// All that the model offers, if the question is the last item of a list of offers: "Would you like me to:".
fn offered_list(text: &str, question: &str) -> Option<String> {
    let (above, mark) = text[..text.rfind(question)?].rsplit_once('\n')?;
    let is_mark = |it: char| "-*•.)".contains(it) || it.is_ascii_digit();
    let is_item = !mark.trim().is_empty() && mark.trim().chars().all(is_mark);
    if !is_item {
        return None;
    }
    let mut items = vec![question];
    for line in above.lines().rev().map(str::trim).filter(|it| !it.is_empty()) {
        if has_marker(line) {
            items.push(without_markers(line).trim_end_matches(['?', '？']));
        } else if line.ends_with(':') && OFFER.is_match(line) && items.len() > 1 {
            items.reverse();
            return Some(format!("{line} {}", items.join("; ")));
        } else {
            break;
        }
    }
    None
}

/// The numbered questions of a message on one line, if there are several.
fn numbered_questions(message: &str) -> Option<String> {
    let numbered = |it: &str| it.trim_start().starts_with(|it: char| it.is_ascii_digit());
    let questions: Vec<&str> = message.lines().filter(|it| numbered(it) && is_question(it.trim())).collect();
    (questions.len() > 1).then(|| flat(&questions.join(" ")))
}
