//! What a message of the model asks, and whether the user's next prompt answers it.

use super::is_very_short;
use super::options::{OFFERED_OPTION, answered_questions, recommended, suggested};
use super::report::text_of_model;
use crate::facts::Polarity;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::rule::{QUESTION_START, begins_with_no, polarity};
use crate::facts::text::{clip_end, is_question, sentences};
use crate::facts::voice::Prompt;
use history::Message;
use std::collections::HashSet;

/// Maximum characters of a prompt that answers the model's question by a yes, a no or a choice.
pub(super) const MAX_ANSWER_CHARS: usize = 240;

/// A prompt of at most this many bytes answers a question whatever it says.
pub(in crate::facts) const MAX_REPLY_BYTES: usize = 60;

/// A question of at most this many words only echoes what was asked.
pub(super) const MAX_ECHO_WORDS: usize = 3;

/// Maximum characters of an answer that begins with a yes.
const MAX_APPROVAL_CHARS: usize = 400;

/// The model offers to do something.
pub(super) static OFFER: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)^\W*(?:(?:do you )?want me to|would you like me to|shall i)\b");
/// A question that proposes nothing: a reply to it is a request.
pub(super) static OPEN_INVITATION: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\banything (?:else|more)\b|\bsomething (?:else|more) (?:i|to|you)\b|\bwhat(?:'s|’s| is| comes)? (?:next|else)\b|\b(?:how|what) (?:else )?can i (?:help|do)\b",
    r"|\bwhat would you like(?: me)? to (?:do|work)\b|\bother (?:questions|requests|changes)\b",
    r"|gi(?:ú|u)p gì|(?:cómo|en qué)(?: más)? (?:te |le )?(?:puedo|podemos) ayudar|(?:como|em que) posso (?:te )?ajudar|(?:comment|en quoi) puis-je (?:vous |t['’])?aider|(?:wie|womit) kann ich (?:ihnen|dir)? ?(?:\w+ )?helfen",
    r"|чем (?:я )?могу помочь|(?:有什么|有什麼|有何).{0,8}(?:帮|幫|协助|協助)|何か.{0,6}お手伝い|(?:무엇|뭘|어떻게).{0,6}도와",
));
/// The user could not do what the model told them to, which decides nothing.
pub(super) static CANNOT: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*i (?:can['’]?t|cannot|am not able to|couldn['’]?t) (?:access|click|find|get|open|see|select)\b|^\W*no (?:puedo|encuentro|veo)\b|^\W*je (?:ne )?(?:peux|trouve|vois) pas|^\W*não (?:consigo|encontro|vejo)\b|^\W*ich (?:kann|finde|sehe) .{0,40}\bnicht\b|^\W*(?:我)?(?:找不到|打不开|打不開|看不到|没找到)|수 ?(?:가 )?없(?:어|다|네|습니다|음|는 ?거 ?같)\S{0,4}\W*$|(?:できません|できない|見つかりません)(?:でした)?\W*$",
);
/// The user begins by saying that the question was not understood, or asks for one question at a time, which answers nothing.
static PUZZLED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:wait\b.{0,20}\bmean(?:ing)?\b|(?:let['’]?s (?:go|do) (?:through )?\w+ |(?:just )?one (?:question )?)(?:one[- ])?at[- ]a[- ]time\b|(?:(?:wait|sorry|hm+)\W+)?(?:what do you mean\b|i (?:do not|don['’]?t|didn['’]?t) (?:understand|get (?:it|this|that))\b))",
);
/// The beginning of a counter-question.
static DOUBT_START: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)^\W*(?:q:|(?:ok(?:ay)?|but|so|and|hm+|mh+|mm+)\b)");
/// A Chinese question without a question mark.
pub(super) static CHINESE_QUESTION: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?:什么|怎么样?|如何|多少|吗|呢|哪.{0,3})\W*$|^\W*(?:什么|为什么|怎么|如何|哪)|你(?:认为|觉得)[^。]{0,80}还是|(?:既然|怎么|你).{0,30}(?:为什么|為什麼|为何|為何)",
);
pub(super) fn is_offer(question: &str) -> bool {
    OFFER.is_match(question)
}

/// The question that a text ends with.
pub(super) fn last_question(text: &str) -> Option<&str> {
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

pub(super) static CHOSEN_OPTION: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:(?:let'?s )?(?:go|do|take|use|pick|choose)(?: with| for)? )?(?:(?:option|approach|choice|number|plan|no\.?|#|opci[oó]n|op[cç][aã]o) ?)?([1-9]|[a-h])(?:\W|$)|^(?:选择?|選擇?|就|用|那就?|采用|採用|执行|執行|走|按照?){0,2}(?:方案|选项|選項|オプション|옵션|방법) ?([1-9]|[a-h])(?:吧|了|就行|即可|で|로|으로)?\W*$|^\W*([1-9])번(?:\W|으로|째|$)",
);

pub(super) fn approves(lower: &Lowercased, whole: &str) -> bool {
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
pub(super) static TROUBLE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
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
pub(super) fn decides(asked: &str, message: &str, reply: &str) -> bool {
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
pub(super) fn topic_words(text: &str) -> HashSet<String> {
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
