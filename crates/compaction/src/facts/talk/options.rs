//! The options that the model offers, and which of them the user chooses.

use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{
    clip, clip_end, flat, is_heading, is_question, sentences, without_bold, without_markers,
};
use regex::Captures;

/// The model offers something without a question mark; a bare yes takes the offer.
pub(super) static OFFERS_IF: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:if you(?:['’]d)? (?:want|like|prefer|wish),? (?:i|we) (?:can|could|will)|si (?:lo )?(?:quieres|prefieres|deseas),? (?:puedo|podemos)|se (?:quiser|preferir|você quiser),? (?:posso|podemos)|si (?:tu veux|vous voulez|tu préfères),? (?:je|on|nous) p|wenn du (?:willst|möchtest),? k(?:ann|önnen))",
);
pub(super) static OFFERED_OPTION: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?mi)^\s*(?:[-*•|]\s*)?[*_(\[]*(?:#+\s*)?(?:option\s+|approach\s+|opci[oó]n\s+|op[cç][aã]o\s+|方案\s*|选项\s*|選項\s*|방법\s*|옵션\s*)?([1-9]|[a-h])(?: \([^()]{2,20}\))?[*_]*(?:[.):\]—–-][*_]*\s+|：[*_]*\s*|\s*\|\s*)(\S.*)$",
);
/// What may stand before the number of an option.
static OPTION_WORD: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)option|approach|opci[oó]n|op[cç][aã]o|方案|选项|選項|방법|옵션");
/// The option that the model recommends: `My recommendation: **A** — …`.
static RECOMMENDED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?im)^\W*(?:my recommendation(?: is)?|recommended|推奨|i(?:['’]d| would)? (?:strongly )?(?:recommend|suggest|go with))[:\s*]+(?:option |approach )?(?-i:([1-9A-H]))\**\s*(?:$|[.,:;—–(-])",
);
/// The answer that the model suggests to its question: `**Suggested:** No - it never expires.`
static SUGGESTED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?im)^\W*(suggested(?: answer)?[*_]*:[*_ ]*[^\s(*_].*)$");
/// The label of one of several options that a prompt lists itself.
static OWN_OPTION: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?m)^[ \t]*(?:[-*•] |#+ )?\**(?:案|方案|选项|選項|選択肢|옵션 ?|(?i:option|approach|variant|opci[oó]n|op[cç][aã]o) )([A-H1-9])\b",
);

/// Of a list of options of which the model recommends one: the sentence before the list, which serves as the
/// question, and the recommended option.
pub(super) fn recommended(text: &str) -> Option<(&str, String)> {
    let tail = clip_end(text, 4_000);
    let options: Vec<_> = OFFERED_OPTION.find_iter(tail).collect();
    let [first, .., last] = &options[..] else { return None };
    let (above, below) = (&tail[..first.start()], &tail[last.end()..]);
    let wanted = RECOMMENDED.captures(below).or_else(|| RECOMMENDED.captures(above))?.get(1)?.as_str();
    // The heading of a table, and the recommendation, are no question.
    let says = |it: &&str| !it.is_empty() && !it.starts_with('|') && !RECOMMENDED.is_match(it);
    let line = above.lines().map(str::trim).rfind(says)?;
    Some((sentences(line).pop()?, option(tail, wanted)?))
}

/// The answer that the model suggests at the end of a message.
pub(super) fn suggested(text: &str) -> Option<&str> {
    Some(SUGGESTED.captures_iter(clip_end(text, 1_000)).last()?.get(1)?.as_str().trim())
}

/// What stands before and after the options that a prompt lists itself: the options do not say which one is chosen. They
/// end at a paragraph that is not indented.
pub(super) fn beside_own_options(text: &str) -> [&str; 2] {
    let labels: Vec<_> = OWN_OPTION.find_iter(text).collect();
    let [first, .., last] = labels[..] else { return [text, ""] };
    let mut blank = false;
    let mut end = last.end();
    for line in text[last.end()..].split_inclusive('\n') {
        if blank && line.starts_with(|it: char| !it.is_whitespace()) {
            break;
        }
        blank = line.trim().is_empty();
        end += line.len();
    }
    [&text[..first.start()], &text[end..]]
}

/// The text of the last option in a message that has the letter or number `wanted`.
pub(super) fn option(message: &str, wanted: &str) -> Option<String> {
    let is_wanted = |it: &str| it.eq_ignore_ascii_case(wanted);
    let offered = OFFERED_OPTION.captures_iter(message).filter(|it| is_wanted(&it[1]));
    // A heading, "Option 2: …", before an item of another list.
    let named = |it: &Captures| OPTION_WORD.is_match(&it[0][..it[0].len() - it[2].len()]);
    let offered = offered.map(|it| (named(&it), it)).max_by_key(|it| it.0)?.1;
    // The cells of a table's row.
    let text = offered[2].trim_matches(['*', ' ', '|']).replace(" | ", "; ");
    Some(without_bold(&flat(clip(&text, 200).0)))
}

/// The tables of options in a message: label and text of each row.
pub(super) fn option_tables(message: &str) -> Vec<Vec<(String, String)>> {
    static ROW: AsciiFirstRegex = AsciiFirstRegex::new(r"(?m)^\s*\|\s*\**([A-H])\**\s*\|\s*([^|\n]+?)\s*\|");
    let mut out: Vec<Vec<(String, String)>> = Vec::new();
    for row in ROW.captures_iter(message) {
        let (label, text) = (row[1].to_owned(), without_bold(&flat(clip(&row[2], 200).0)));
        match out.last_mut().filter(|it| it.iter().all(|it| it.0 != label)) {
            Some(table) => table.push((label, text)),
            None => out.push(vec![(label, text)]),
        }
    }
    out
}

/// The first lines of a message that ask something, or are the heading of a question, one for each of `tables`.
pub(super) fn questions_of_tables(message: &str, tables: usize) -> Option<String> {
    let asks =
        |it: &&str| !it.starts_with('|') && (is_question(it) || is_heading(it) && it.contains("Question"));
    let all: Vec<&str> = message.lines().map(str::trim).filter(asks).take(tables).collect();
    (all.len() == tables).then(|| all.iter().map(|it| without_markers(it)).collect::<Vec<_>>().join("; "))
}

/// The answers to numbered questions, `Q1: B, Q2: 45 seconds`: index of the question, and the answer.
pub(super) fn answers_by_question(prompt: &str) -> Vec<(usize, &str)> {
    static NUMBER: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)\bQ(?:uestion )?([1-9]\d?) ?[:.)=-] ?");
    let numbers: Vec<_> = NUMBER.captures_iter(prompt).filter_map(|it| it.get(0).zip(it.get(1))).collect();
    let ends = numbers.iter().skip(1).map(|it| it.0.start()).chain([prompt.len()]);
    let answer = |((whole, number), end): (&(regex::Match<'_>, regex::Match<'_>), usize)| {
        let at: usize = number.as_str().parse().ok()?;
        let said = prompt[whole.end()..end].split("\n\n").next()?;
        let said = said.trim_matches([' ', ',', ';', '.', '\n']);
        (!said.is_empty()).then_some((at - 1, said))
    };
    numbers.iter().zip(ends).filter_map(answer).collect()
}

/// The answers of a prompt to the questions that a message numbers, `❓ **Q8** - **Where do templates live?**`: each
/// question, and the answer.
pub(super) fn answered_questions<'p>(message: &str, prompt: &'p str) -> Vec<(String, &'p str)> {
    static NUMBERED: AsciiFirstRegex = AsciiFirstRegex::new(r"(?m)^\W*Q(?:uestion )?([1-9]\d?)\b\W*(\w.*)$");
    const CHARS: usize = 160;
    let answers = answers_by_question(prompt);
    let questions: Vec<(usize, String)> = NUMBERED
        .captures_iter(message)
        // `Q3 2025` is a quarter, not a question.
        .filter(|it| it[2].contains('?') || it[0].contains("**"))
        .filter_map(|it| {
            let told = sentences(it.get(2)?.as_str()).first().map(|it| clip(it, CHARS).0.to_owned())?;
            Some((it.get(1)?.as_str().parse().ok()?, format!("Q{} {}", &it[1], without_bold(&told))))
        })
        .collect();
    let asked = |at: usize| questions.iter().find(|it| it.0 == at + 1).map(|it| it.1.clone());
    let both: Vec<_> = answers.into_iter().filter_map(|(at, said)| Some((asked(at)?, said))).collect();
    if both.len() > 1 { both } else { Vec::new() }
}

/// What an answer stands for in the table of its question; the answer itself, if it names no option.
pub(super) fn meaning_in(tables: &[Vec<(String, String)>], question: usize, answer: &str) -> String {
    let option = tables.get(question).into_iter().flatten().find(|it| it.0.eq_ignore_ascii_case(answer));
    option.map_or_else(|| answer.to_owned(), |it| it.1.clone())
}

/// The option of a message that a prompt mentions by its number, with the text below its heading: `how do I do option 2`.
pub(super) fn mentioned_option<'a>(message: &'a str, prompt: &str) -> Option<&'a str> {
    static MENTIONS: AsciiFirstRegex =
        AsciiFirstRegex::new(r"(?i)\b(?:option|approach|opci[oó]n|op[cç][aã]o)\s+([1-9]|(?-i:[A-H]))\b");
    let wanted = MENTIONS.captures(prompt)?.get(1)?.as_str();
    let named = |it: &Captures| OPTION_WORD.is_match(&it[0][..it[0].len() - it[2].len()]);
    let offered: Vec<_> = OFFERED_OPTION.captures_iter(message).filter(named).collect();
    let at = offered.iter().rposition(|it| it[1].eq_ignore_ascii_case(wanted))?;
    let start = offered[at].get(2)?.start();
    let end = offered.get(at + 1).and_then(|it| it.get(0)).map_or(message.len(), |it| it.start());
    Some(&message[start..end])
}

/// An option, a row of a table of options, or the table's heading: `A) Home page`, `| A | Home page |`, `| Option | Text |`.
static OPTION_ROW: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\s*(?:[-*] )?\**(?-i:[A-H])\**[).]\**\s|^\s*\|\s*\**(?:[A-H]|options?|custom|short|选项|選項|opci[oó]n|op[cç][aã]o)\**\s*\|",
);
/// How to answer a question: `You can reply with the option letter`.
static HOW_TO_ANSWER: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:(?:you can|please|just) )?(?:reply|respond|answer) (?:with|by|like)\b|^\W*you can (?:accept|choose|pick)\b|^\W*format:\W*short answer\b",
);

/// A reply without what the user's answer settled: an offer, and, if the user chose an option or took what was recommended,
/// the options.
pub(super) fn without_choice(reply: &str, chose: bool) -> String {
    let of_choice = |line: &str| {
        let rows = [&OPTION_ROW, &RECOMMENDED, &SUGGESTED, &HOW_TO_ANSWER];
        rows.iter().any(|it| it.is_match(line))
    };
    let chose = chose || recommended(reply).is_some() || suggested(reply).is_some();
    let settled = |line: &str| OFFERS_IF.is_match(line) || chose && of_choice(line);
    reply.lines().filter(|it| !settled(it)).collect::<Vec<_>>().join("\n")
}
