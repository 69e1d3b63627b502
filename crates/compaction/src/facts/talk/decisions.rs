//! Questions of the model, and what the user's replies decide.

use super::options::{
    OFFERED_OPTION, OFFERS_IF, answered_questions, answers_by_question, beside_own_options, meaning_in,
    option, option_tables, questions_of_tables, recommended, suggested,
};
use super::report::text_of_model;
use super::{BARE_ORDER, is_very_short};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::regions::{Region, regions};
use crate::facts::text::rule::{QUESTION_START, begins_with_no, polarity};
use crate::facts::text::{
    clip, clip_end, flat, has_marker, is_heading, is_question, sentences, without_bold, without_markers,
};
use crate::facts::voice::{Prompt, Quote};
use crate::facts::{Detail, Fact, Polarity, Topic};
use history::Message;
use std::borrow::Cow;
use std::collections::HashSet;

/// Maximum characters of a prompt that answers the model's question by a yes, a no or a choice.
pub(super) const MAX_ANSWER_CHARS: usize = 240;

/// A prompt of at most this many bytes answers a question whatever it says.
pub(in crate::facts) const MAX_REPLY_BYTES: usize = 60;

/// Maximum number of chosen options whose texts are told.
const MAX_CHOSEN: usize = 4;

/// A question of at most this many words only echoes what was asked.
const MAX_ECHO_WORDS: usize = 3;

/// Number of characters of an option by which its text is recognised.
const PASTED_CHARS: usize = 24;

/// Maximum characters of an answer that begins with a yes.
const MAX_APPROVAL_CHARS: usize = 400;

pub(super) static CHOSEN_OPTION: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:(?:let'?s )?(?:go|do|take|use|pick|choose)(?: with| for)? )?(?:(?:option|approach|choice|number|plan|no\.?|#|opci[oó]n|op[cç][aã]o) ?)?([1-9]|[a-h])(?:\W|$)|^(?:选择?|選擇?|就|用|那就?|采用|採用|执行|執行|走|按照?){0,2}(?:方案|选项|選項|オプション|옵션|방법) ?([1-9]|[a-h])(?:吧|了|就行|即可|で|로|으로)?\W*$|^\W*([1-9])번(?:\W|으로|째|$)",
);
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
/// The model offers to do something.
static OFFER: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)^\W*(?:(?:do you )?want me to|would you like me to|shall i)\b");
/// A question that proposes nothing: a reply to it is a request.
pub(super) static OPEN_INVITATION: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\banything (?:else|more)\b|\bsomething (?:else|more) (?:i|to|you)\b|\bwhat(?:'s|’s| is| comes)? (?:next|else)\b|\b(?:how|what) (?:else )?can i (?:help|do)\b",
    r"|\bwhat would you like(?: me)? to (?:do|work)\b|\bother (?:questions|requests|changes)\b",
    r"|gi(?:ú|u)p gì|(?:cómo|en qué)(?: más)? (?:te |le )?(?:puedo|podemos) ayudar|(?:como|em que) posso (?:te )?ajudar|(?:comment|en quoi) puis-je (?:vous |t['’])?aider|(?:wie|womit) kann ich (?:ihnen|dir)? ?(?:\w+ )?helfen",
    r"|чем (?:я )?могу помочь|(?:有什么|有什麼|有何).{0,8}(?:帮|幫|协助|協助)|何か.{0,6}お手伝い|(?:무엇|뭘|어떻게).{0,6}도와",
));
/// An order to find something out, which decides nothing.
static ASKS_WHETHER: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:please )?(?:check|verify|confirm|review|see|assess|evaluate|determine)\b.*\bwhether\b",
);
/// The user complains about what was done, or says what they did themselves, which decides nothing.
static COMPLAINS: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*i (?:actually )?already (?:clicked|committed|did|fixed|made|merged|pushed|ran|sent|tested)\b|\b(?:(?:i|we) (?:didn['’]?t|did not|never) (?:tell|ask|want|say|said|asked|told)|not what (?:i|we) (?:asked|said|meant|wanted))\b",
);
/// The user could not do what the model told them to, which decides nothing.
static CANNOT: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*i (?:can['’]?t|cannot|am not able to|couldn['’]?t) (?:access|click|find|get|open|see|select)\b|^\W*no (?:puedo|encuentro|veo)\b|^\W*je (?:ne )?(?:peux|trouve|vois) pas|^\W*não (?:consigo|encontro|vejo)\b|^\W*ich (?:kann|finde|sehe) .{0,40}\bnicht\b|^\W*(?:我)?(?:找不到|打不开|打不開|看不到|没找到)|수 ?(?:가 )?없(?:어|다|네|습니다|음|는 ?거 ?같)\S{0,4}\W*$|(?:できません|できない|見つかりません)(?:でした)?\W*$",
);
/// The user begins by saying that the question was not understood, or asks for one question at a time, which answers nothing.
static PUZZLED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:wait\b.{0,20}\bmean(?:ing)?\b|(?:let['’]?s (?:go|do) (?:through )?\w+ |(?:just )?one (?:question )?)(?:one[- ])?at[- ]a[- ]time\b|(?:(?:wait|sorry|hm+)\W+)?(?:what do you mean\b|i (?:do not|don['’]?t|didn['’]?t) (?:understand|get (?:it|this|that))\b))",
);
/// The beginning of a counter-question.
static DOUBT_START: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)^\W*(?:q:|(?:ok(?:ay)?|but|so|and|hm+|mh+|mm+)\b)");
/// Beginning of a question in the middle of a sentence, without a question mark.
static QUESTION_WITHIN: AsciiFirstRegex = AsciiFirstRegex::new(
    r"\bIs there\b|\bAre there\b|(?i)\b(?:is there (?:like )?an?|do you (?:think|know|suggest)|can you (?:check|look|explain|reconsider))\b|(?:どうする|どれにする|どちらにする)か",
);
/// A Chinese question without a question mark.
static CHINESE_QUESTION: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?:什么|怎么样?|如何|多少|吗|呢|哪.{0,3})\W*$|^\W*(?:什么|为什么|怎么|如何|哪)|你(?:认为|觉得)[^。]{0,80}还是|(?:既然|怎么|你).{0,30}(?:为什么|為什麼|为何|為何)",
);

pub(super) fn is_offer(question: &str) -> bool {
    OFFER.is_match(question)
}

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

/// The question that a text ends with.
fn last_question(text: &str) -> Option<&str> {
    let tail = clip_end(text, 4_000);
    // Options may follow the question, but not more than a sentence of prose.
    let last = sentences(tail).into_iter().rev().take(8);
    let mut prose = 0;
    for sentence in last {
        if is_question(sentence) {
            return Some(sentence);
        }
        prose += usize::from(!OFFERED_OPTION.is_match(sentence) && sentence.chars().count() > 40);
        if prose > 1 {
            break;
        }
    }
    None
}

/// The question with which a message of the model ends, that [`recommended`] finds, or what is [`suggested`].
pub(super) fn closing_question(text: &str) -> Option<&str> {
    last_question(text).or_else(|| recommended(text).map(|it| it.0)).or_else(|| suggested(text))
}

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
    let short = length < LONG || length < 2 * LONG && HAS_PRONOUN.is_match(question);
    let Some(at) = text.rfind(question).filter(|_| short) else { return question.into() };
    let above = &text[..at];
    let line = above.rsplit('\n').next().unwrap_or_default();
    let line = without_markers(line);
    let prose = line.starts_with(|it: char| it.is_alphabetic() || it == '*' || it == '`');
    let beside = sentences(line).pop().filter(|it| prose && it.split_whitespace().count() >= WORDS);
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

fn approves(lower: &Lowercased, whole: &str) -> bool {
    // "Ok, but what if …?" approves nothing.
    CUES.approve.is_in(lower) && !(asks(whole) && DOUBT_START.is_match(whole) && sentences(whole).len() == 1)
}

pub(in crate::facts) fn asks(prompt: &str) -> bool {
    is_question(prompt)
        || CHINESE_QUESTION.is_match(prompt)
        || QUESTION_START.is_match(prompt)
        || prompt.starts_with('/')
}

/// Whether a prompt answers the question `asked`: it is short, or decides, or approves.
pub(super) fn replies_to(asked: &str, prompt: &str) -> bool {
    let lower = Lowercased::of(prompt);
    let count = prompt.chars().count();
    let approves = approves(&lower, prompt);
    let decides = approves || CUES.refuse.is_in(&lower) || CUES.choose.is_in(&lower);
    let short = prompt.len() <= MAX_REPLY_BYTES || count <= MAX_ANSWER_CHARS && decides;
    // "What? No!" answers; "Why do we need two? I use one." does not.
    let asks_first = sentences(prompt)
        .first()
        .is_some_and(|it| is_question(it) && it.split_whitespace().count() > MAX_ECHO_WORDS);
    let answers = !asks(prompt) && !asks_first && short || approves && count <= MAX_APPROVAL_CHARS;
    answers && !OPEN_INVITATION.is_match(asked) && !PUZZLED.is_match(prompt)
}

/// A question that yes or no answers.
static YES_OR_NO: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\b(?:want me to|would you like|do you want|shall (?:i|we)|should (?:i|we)|(?:may|can|could) (?:i|we)|are you",
    r"|(?:does|is|are|do) (?:this|that|it|these|everything|you))\b",
    r"|吗|嗎|要不要|是否|ますか|ましょうか|でしょうか|까요|습니까|나요",
));
static ASKS_WHICH: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:which|what|where|when|how|who|why)\b|哪|什么|什麼|どれ|どの|何|어떤|무엇",
);
/// A report of trouble, which answers no question that yes or no answers.
static TROUBLE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:i )?(?:got|get|am getting|keep getting|have|see) (?:this|the|an?|that|these|some) (?:\w+ )?(?:errors?|issues?|problems?|exceptions?|warnings?)\b",
    r"|^\W*(?:ok(?:ay)?\W+)?(?:so )?(?:now )?here (?:are|is) (?:the|some|an?) .{0,20}\b(?:bugs?|errors?|issues?|problems?)\b",
    r"|^\W*(?:it )?(?:still )?(?:does not|doesn['’]?t|is not|isn['’]?t|not) work(?:ing)?\b|^\W*(?:ça|cela) (?:ne )?(?:marche|fonctionne) (?:pas|plus)|^\W*no (?:funciona|anda|anduvo|funcionó|sirve)\b",
    r"|有(?:一定|一点|一點|些|个|個)(?:问题|問題)",
));
/// A complaint about the model, which answers none of its questions.
static ACCUSES: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*you(?:['’]re| are) (?:still )?(?:ignoring|not (?:doing|following|listening|reading))\b",
);
/// A prompt that begins another subject, though it may begin with a word of approval.
static NEXT_SUBJECT: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*ok(?:ay)?\W+(?:so )?(?:now (?:we|i|here|there|the|it)|i (?:made|did) (?:some|a few|the|more)|i(?:['’]ve)? (?:\w{3,}ed|ran|got|sent|saw|put))\b",
);

/// Whether the reply to a question decides it. After a question that yes or no answers, the user may begin another
/// subject: then the reply has no word in common with the end of the message that asks.
fn decides(asked: &str, message: &str, reply: &str) -> bool {
    /// Characters at the end of the message that asks, in which its alternatives stand.
    const END: usize = 600;
    /// Maximum characters of a reply that names what is chosen, and nothing else.
    const NAME: usize = 24;
    if ACCUSES.is_match(reply) || CANNOT.is_match(reply) {
        return false;
    }
    if !YES_OR_NO.is_match(asked) || ASKS_WHICH.is_match(asked) {
        return true;
    }
    if TROUBLE.is_match(reply) {
        return false;
    }
    let lower = Lowercased::of(reply);
    let forbids = polarity(reply) == Some(Polarity::Forbid) && !begins_with_no(reply);
    let answers = approves(&lower, reply)
        || CUES.choose.is_in(&lower)
        || !forbids && (CUES.refuse.is_in(&lower) || reply.chars().count() <= NAME);
    let next = NEXT_SUBJECT.is_match(reply);
    if answers && !next {
        return true;
    }
    // What begins another subject answers only if it names what was asked.
    let words = topic_words(if next { asked } else { clip_end(message, END) });
    topic_words(reply).iter().any(|it| words.contains(it))
}

/// Words that say what a text is about, without endings; of a text in ideographs or Hangul, all pairs of characters.
fn topic_words(text: &str) -> HashSet<String> {
    /// Minimum characters of a word, and how many of them are compared.
    const LEAST: usize = 4;
    const STEM: usize = 5;
    const EMPTY: [&str; 17] = [
        "want",
        "would",
        "like",
        "shall",
        "should",
        "could",
        "does",
        "this",
        "that",
        "these",
        "with",
        "have",
        "your",
        "then",
        "everything",
        "need",
        "well",
    ];
    let mut out = HashSet::new();
    for word in text.split(|it: char| !it.is_alphanumeric()).map(str::to_lowercase) {
        let chars: Vec<char> = word.chars().collect();
        if !word.is_ascii() && chars.iter().any(|it| *it >= '\u{2e80}') {
            out.extend(chars.windows(2).map(|it| it.iter().collect::<String>()));
        } else if chars.len() >= LEAST && !EMPTY.contains(&word.as_str()) {
            out.insert(chars.iter().take(STEM).collect());
        }
    }
    out
}

/// Whether a message of the model ends with a question that it needs an answer to, rather than with an offer.
pub(in crate::facts) fn asks_back(text: &str) -> bool {
    closing_question(text).is_some_and(|it| !OPEN_INVITATION.is_match(it) && !OFFER.is_match(it))
}

/// Whether a message of the model ends with a question that waits for the user.
pub(in crate::facts) fn leaves_question(text: &str) -> bool {
    closing_question(text).is_some_and(|it| !OPEN_INVITATION.is_match(it))
}

/// Whether a prompt only names one of the options that the model's message before it offers: `A`, `option 2`.
pub(in crate::facts) fn chooses_option(prompt: &Message, before: &Message) -> bool {
    let Some(prompt) = Prompt::of(prompt) else { return false };
    is_very_short(&prompt.whole())
        && CHOSEN_OPTION.is_match(&prompt.whole())
        && OFFERED_OPTION.find_iter(&text_of_model(before)).nth(1).is_some()
}

/// Whether a prompt answers the question with which the model's message before it ends.
pub(in crate::facts) fn answers_question(prompt: &Message, before: &Message) -> bool {
    let Some(prompt) = Prompt::of(prompt) else { return false };
    let before = text_of_model(before);
    closing_question(&before).is_some_and(|it| replies_to(it, &prompt.whole()))
        || !answered_questions(&before, &prompt.whole()).is_empty()
}
