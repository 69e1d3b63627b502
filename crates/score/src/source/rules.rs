//! Rules that the user gave, with their polarity.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use super::said::{has_phrase, is_prompt, is_question, own, weight};
use crate::cues::{self, Cue, Place};
use crate::probe::{Class, Fact, Polarity, Probe};
use crate::text::{Row, Sentence, Shape, Word, clip, content, is_dense, rows, sentences, unquoted, words};
use history::{History, Kind};

/// Rules in prompts, and in what earlier summaries attribute to the user.
pub(crate) fn probes(source: &History) -> Vec<Probe> {
    // The rules by their text, and their order of first appearance.
    let mut order: Vec<String> = Vec::new();
    let mut found: HashMap<String, (Vec<usize>, Polarity)> = HashMap::new();
    for (number, message) in source.messages().iter().enumerate() {
        let summary = message.kind == Kind::Summary;
        if !summary && !is_prompt(message) {
            continue;
        }
        let text = if summary { message.plain() } else { own(message) };
        let (said, handed) = if summary { (text.as_str(), "") } else { text.split_at(attached(&text)) };
        let mut given = rules_in(said, summary);
        given
            .extend(Some(rules_in(handed, false)).filter(|it| it.len() <= MOST_ATTACHED).unwrap_or_default());
        for (key, polarity) in given {
            let entry = found.entry(key.clone()).or_insert_with(|| {
                order.push(key);
                (Vec::new(), polarity)
            });
            if entry.0.last() != Some(&number) {
                entry.0.push(number);
            }
        }
    }
    // A rule that a later one reverses no longer holds.
    let mut latest: BTreeMap<Vec<String>, (usize, Polarity)> = BTreeMap::new();
    let tokens = |text: &str| {
        let mut all = content(text);
        all.sort_unstable();
        all.dedup();
        all
    };
    for text in &order {
        let (messages, polarity) = &found[text];
        let at = messages.last().copied().unwrap_or_default();
        let entry = latest.entry(tokens(text)).or_insert((at, *polarity));
        if at >= entry.0 {
            *entry = (at, *polarity);
        }
    }
    let mut out = Vec::new();
    for text in order {
        let Some((messages, polarity)) = found.remove(&text) else { continue };
        if latest.get(&tokens(&text)).is_some_and(|it| it.1 == polarity) {
            out.push(Probe { class: Class::UserRule, messages, fact: Fact::Rule { text, polarity } });
        }
    }
    out
}

/// Maximum number of rules in an attached document that are read; one with more only describes something.
const MOST_ATTACHED: usize = 8;

/// Whether a text contains a page of a forum or mailing list: several lines like `3 days ago`.
fn has_page(text: &str) -> bool {
    const POSTS: usize = 5;
    let aged = |line: &&str| {
        let line = line.trim();
        line.len() <= 20 && line.starts_with(|c: char| c.is_ascii_digit()) && line.ends_with(" ago")
    };
    text.lines().filter(aged).nth(POSTS - 1).is_some()
}

/// Byte offset of an attached document: of the first heading after a colon, after "below" or after `---`; or,
/// if a page was pasted, of the first blank line.
fn attached(text: &str) -> usize {
    // What a harness tells every model is binding, however long it is.
    let head = clip(text, 600).to_lowercase();
    if ["you are a", "your name is", "we are currently", "we're currently", "the following issue"]
        .iter()
        .any(|it| head.contains(it))
    {
        return text.len();
    }
    if has_page(text) {
        return text.find("\n\n").unwrap_or(text.len());
    }
    let mut at = 0;
    let mut last = "";
    for line in text.split_inclusive('\n') {
        let heading = line.starts_with("# ") || line.starts_with("## ");
        let announced = last.ends_with([':', '：']) || last.contains(" below") || last == "---";
        if heading && announced && at <= 6_000 {
            return at;
        }
        if !line.trim().is_empty() {
            last = line.trim();
        }
        at += line.len();
    }
    text.len()
}

/// The rules of a text, with their polarity.
fn rules_in(text: &str, summary: bool) -> Vec<(String, Polarity)> {
    let mut out = Vec::new();
    let all = rows(text);
    for row in &all {
        if matches!(row.shape, Shape::Code) || row.shape == Shape::Quote && !summary {
            continue;
        }
        if summary && !gives_rules(&all, row) {
            continue;
        }
        let inherited = row
            .labels
            .iter()
            .flatten()
            .next()
            .and_then(|it| all.get(*it))
            .filter(|it| row.shape == Shape::Item && names_rules(&it.text))
            .map(|it| polarity(&it.text).unwrap_or(Polarity::Require));
        let spoken = if summary { dequoted(&row.text) } else { row.text.clone() };
        for sentence in sentences(&spoken) {
            let inherited =
                inherited.filter(|_| weight(&sentence.text) >= 2 && sentence.text.chars().count() <= 300);
            if row.shape == Shape::Label && sentence.text.ends_with([':', '：']) {
                continue;
            }
            out.extend(rule(&sentence).or(inherited).map(|it| (sentence.text.clone(), it)));
        }
    }
    out
}

/// Whether a row says, itself or by its labels, that it gives the user's rules or words.
pub(crate) fn of_the_user(rows: &[Row], row: &Row) -> bool {
    let says = |text: &str| {
        let lower = text.to_lowercase();
        cues::OF_THE_USER.iter().any(|it| lower.contains(it))
    };
    row.labels.iter().flatten().filter_map(|it| rows.get(*it)).any(|it| says(&it.text)) || {
        let lower = row.text.to_lowercase();
        cues::NAMES_THE_USER.iter().any(|it| lower.contains(it))
    }
}

/// Whether a row of an earlier summary gives the user's rules: it stands under a label for them, or quotes the user.
fn gives_rules(rows: &[Row], row: &Row) -> bool {
    let labels =
        || row.labels.iter().flatten().filter_map(|it| rows.get(*it)).map(|it| it.text.to_lowercase());
    let labelled = labels().any(|it| cues::RULE_LABELS.iter().any(|word| it.contains(word)));
    // Such labels head what tools did and printed, even if that mentions the user.
    let seen = labels().any(|it| cues::SEEN_LABELS.contains(&it.trim_matches(['#', '*', ':', ' '])));
    labelled || !seen && of_the_user(&[], row) && row.text.contains(['"', '“', '「'])
}

/// A text without its quotation marks: where the user is quoted, the quotation is what the user says.
pub(crate) fn dequoted(text: &str) -> String {
    text.replace(['"', '“', '”', '「', '」'], " ").trim().to_string()
}

/// Whether a label heads a list of rules.
pub(crate) fn names_rules(label: &str) -> bool {
    let lower = label.to_lowercase();
    label.chars().count() <= 60
        && (polarity(label).is_some() || cues::RULE_HEADINGS.iter().any(|it| lower.contains(it)))
}

/// A cue of obligation, with its words.
type Parts = (Vec<&'static str>, &'static Cue);

/// The polarity of the cues of obligation in a sentence, if there are any.
pub(crate) fn polarity(sentence: &str) -> Option<Polarity> {
    static BY_FIRST: LazyLock<HashMap<&'static str, Vec<Parts>>> = LazyLock::new(|| {
        let mut map: HashMap<_, Vec<_>> = HashMap::new();
        for cue in cues::OBLIGATION.iter().filter(|it| !it.words.contains(is_dense)) {
            let parts: Vec<&str> = cue.words.split(' ').collect();
            map.entry(parts[0]).or_default().push((parts, cue));
        }
        map
    });
    let text = unquoted(sentence).replace('’', "'").to_lowercase();
    let (mut require, mut forbid) = (false, false);
    let mut mark = |sign: Polarity| {
        require |= sign != Polarity::Forbid;
        forbid |= sign != Polarity::Require;
    };
    let all = words(&text);
    let mut index = 0;
    while let Some(word) = all.get(index) {
        let opening = index == 0 || {
            let before = &all[index - 1];
            let between = &text[before.at + before.text.len()..word.at];
            before.dense
                || between.contains(|c: char| !c.is_whitespace())
                || cues::LEADS.contains(&before.text)
        };
        let hit = BY_FIRST.get(word.text).into_iter().flatten().find(|(parts, cue)| {
            // "It only checks …" describes; "only check …" orders.
            let describes =
                cue.words == "only" && all.get(index + 1).is_some_and(|it| it.text.ends_with('s'));
            (opening && !describes || cue.place == Place::Anywhere)
                && parts
                    .iter()
                    .enumerate()
                    .all(|(at, part)| all.get(index + at).is_some_and(|it| it.text == *part))
        });
        match hit {
            Some((parts, cue)) => {
                mark(cue.sign);
                index += parts.len();
            }
            None => index += 1,
        }
    }
    if bans_briefly(&text, &all) {
        mark(Polarity::Forbid);
    }
    // "Use X, not Y" at a clause's start.
    if let Some(at) = text.find("use ")
        && text[at..].contains(" not ") | text[at..].contains(" instead of ")
        && (at == 0
            || text[..at].trim_end().ends_with([',', '.', ':', ';', '-'])
            || text[..at].ends_with("please "))
    {
        mark(Polarity::Require);
    }
    if text.contains(is_dense) {
        let dense = || cues::OBLIGATION.iter().filter(|it| it.words.contains(is_dense));
        let mut rest = text.clone();
        // Longest first, each removed, so that 不必須 does not also match 必須.
        let mut found: Vec<&Cue> = dense().filter(|it| rest.contains(it.words)).collect();
        found.sort_by_key(|it| std::cmp::Reverse(it.words.len()));
        for cue in found {
            if rest.contains(cue.words) {
                rest = rest.replace(cue.words, "");
                mark(cue.sign);
            }
        }
    }
    // A Japanese sentence that ends in こと is an order.
    let end = text.trim_end_matches(['。', '．', '.', '」', ' ', '*']);
    if end.ends_with("こと") && !forbid {
        require = true;
    }
    match (require, forbid) {
        (true, true) => Some(Polarity::Mixed),
        (true, false) => Some(Polarity::Require),
        (false, true) => Some(Polarity::Forbid),
        (false, false) => None,
    }
}

/// "No console logs!": up to four words after a `no` that opens a clause, none of which marks a report.
fn bans_briefly(text: &str, all: &[Word<'_>]) -> bool {
    const REPORTS: [&str; 26] = [
        "is", "are", "was", "were", "applied", "found", "idea", "problem", "problems", "worries", "more",
        "need", "longer", "it", "that", "this", "not", "changes", "errors", "error", "such", "output",
        "results", "issues", "one", "way",
    ];
    all.iter().enumerate().filter(|(_, it)| it.text == "no").any(|(at, word)| {
        let opens = text[..word.at].trim_end().is_empty()
            || text[..word.at].trim_end().ends_with([',', '.', ':', ';', '-', '!']);
        let clause = &all[at + 1..];
        let glued = clause.first().is_some_and(|it| text[word.at + 2..it.at].trim().is_empty());
        opens && glued && clause.len() <= 4 && !clause.iter().any(|it| REPORTS.contains(&it.text))
    })
}

/// Whether a sentence begins by declining what was offered, which forbids nothing: "不需要了，保持现状即可".
fn refuses_offer(sentence: &str) -> bool {
    const NO_NEED: [&str; 5] = ["不需要", "不用", "无需", "無需", "不必"];
    NO_NEED.iter().filter_map(|it| sentence.trim_start().strip_prefix(it)).any(|rest| {
        let rest = rest.trim_start_matches(['了', '啦']);
        let ends = rest.chars().next().is_none_or(|it| "，,。.！!".contains(it));
        ends && !matches!(polarity(rest), Some(Polarity::Forbid | Polarity::Mixed))
    })
}

/// The polarity of a user's sentence, if it is a rule.
fn rule(sentence: &Sentence) -> Option<Polarity> {
    let lower = sentence.text.replace('’', "'").to_lowercase();
    if cues::NOT_A_RULE.iter().any(|it| has_phrase(&lower, it))
        || is_question(sentence, &lower)
        || refuses_offer(&lower)
    {
        return None;
    }
    let bare = unquoted(&sentence.text);
    let long = sentence.text.chars().count() > 500;
    polarity(&sentence.text).filter(|_| !long && weight(&bare) >= 2)
}
