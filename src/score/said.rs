//! Facts of what was said: rules, decisions, approaches given up, the goal and the last request.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde_json::Value;

use super::cues::{self, Cue, Place, Sign};
use super::done::is_refusal;
use super::probe::{Class, Fact, Polarity, Probe};
use super::text::{
    Row, Sentence, Shape, Word, clip, content, is_dense, is_function, normal, own_words, rows, sentences,
    unquoted, words,
};
use crate::history::{Call, History, Kind, Message, Output, Part, Role};
use crate::tools::{self, Meaning};

/// Facts of what user and model said, in the order of the history.
pub(super) fn probes(source: &History) -> Vec<Probe> {
    let mut out = rules(source);
    let known: Vec<String> = out.iter().map(Probe::text).collect();
    decisions(source, &known, &mut out);
    given_up(source, &mut out);
    ends(source, &mut out);
    out
}

/// Which way the cues of obligation in a sentence point, if there are any.
pub(super) fn polarity(sentence: &str) -> Option<Polarity> {
    static BY_FIRST: LazyLock<HashMap<&'static str, Vec<(Vec<&'static str>, &'static Cue)>>> =
        LazyLock::new(|| {
            let mut map: HashMap<_, Vec<_>> = HashMap::new();
            for cue in cues::OBLIGATION.iter().filter(|it| !it.words.contains(is_dense)) {
                let parts: Vec<&str> = cue.words.split(' ').collect();
                map.entry(parts[0]).or_default().push((parts, cue));
            }
            map
        });
    let text = unquoted(sentence).replace('’', "'").to_lowercase();
    let (mut require, mut forbid) = (false, false);
    let mut mark = |sign: Sign| match sign {
        Sign::Require => require = true,
        Sign::Forbid => forbid = true,
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
        mark(Sign::Forbid);
    }
    // "Use X, not Y" at a clause's start.
    if let Some(at) = text.find("use ")
        && text[at..].contains(" not ") | text[at..].contains(" instead of ")
        && (at == 0
            || text[..at].trim_end().ends_with([',', '.', ':', ';', '-'])
            || text[..at].ends_with("please "))
    {
        mark(Sign::Require);
    }
    if text.contains(is_dense) {
        let dense = || cues::OBLIGATION.iter().filter(|it| it.words.contains(is_dense));
        let mut rest = text.clone();
        // Longest first, each taken out, so that 不必須 is not also 必須.
        let mut found: Vec<&Cue> = dense().filter(|it| rest.contains(it.words)).collect();
        found.sort_by_key(|it| std::cmp::Reverse(it.words.len()));
        for cue in found {
            if rest.contains(cue.words) {
                rest = rest.replace(cue.words, "");
                mark(cue.sign);
            }
        }
    }
    match (require, forbid) {
        (true, true) => Some(Polarity::Mixed),
        (true, false) => Some(Polarity::Require),
        (false, true) => Some(Polarity::Forbid),
        (false, false) => None,
    }
}

/// "No console logs!": up to four words after a `no` that opens a clause, and no verb of a report among them.
fn bans_briefly(text: &str, all: &[Word<'_>]) -> bool {
    const REPORTS: [&str; 26] = [
        "is", "are", "was", "were", "applied", "found", "idea", "problem", "problems", "worries", "more",
        "need", "longer", "it", "that", "this", "not", "changes", "errors", "error", "such", "output",
        "results", "issues", "one", "way",
    ];
    all.iter().enumerate().filter(|(_, it)| it.text == "no").any(|(at, word)| {
        let opens = text[..word.at].trim_end().is_empty()
            || text[..word.at].trim_end().ends_with([',', '.', ':', ';', '-', '!']);
        let clause: Vec<&Word<'_>> = all[at + 1..].iter().collect();
        let glued = clause.first().is_some_and(|it| text[word.at + 2..it.at].trim().is_empty());
        opens && glued && clause.len() <= 4 && !clause.iter().any(|it| REPORTS.contains(&it.text))
    })
}

/// Whether a sentence, said by the user, is a rule.
fn rule(sentence: &Sentence) -> Option<Polarity> {
    let lower = sentence.text.replace('’', "'").to_lowercase();
    if cues::NOT_A_RULE.iter().any(|it| lower.contains(it)) || is_question(sentence, &lower) {
        return None;
    }
    let bare = unquoted(&sentence.text);
    let long = sentence.text.chars().count() > 500;
    polarity(&sentence.text).filter(|_| !long && weight(&bare) >= 2)
}

fn is_question(sentence: &Sentence, lower: &str) -> bool {
    if cues::POLITE.iter().any(|it| lower.starts_with(it)) {
        return false;
    }
    let mut first = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|it| !it.is_empty());
    let (verb, subject) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    sentence.question
        || cues::ASKING.contains(&verb)
        || cues::ASKING_VERBS.contains(&verb) && cues::SUBJECTS.contains(&subject)
        || cues::ASKING_ANYWHERE.iter().any(|it| lower.contains(it))
}

/// How many tokens of a text carry meaning; none of them may.
fn weight(text: &str) -> usize {
    content(text).iter().filter(|it| !is_function(it)).count()
}

/// The own words of a message, part by part: what one part pastes does not end another.
fn own(message: &Message) -> String {
    message.texts().map(|it| own_words(it.as_str())).collect::<Vec<_>>().join("\n")
}

fn is_prompt(message: &Message) -> bool {
    message.is_prompt() && !is_noise(&message.plain())
}

/// What clients write in the user's name.
fn is_noise(text: &str) -> bool {
    let text = text.trim_start();
    [
        "[Request interrupted",
        "Operation stopped by hook",
        "Caveat:",
        "<command-",
        "<local-command",
        "<bash-",
        "<user-prompt-submit-hook",
    ]
    .iter()
    .any(|it| text.starts_with(it))
        || text.starts_with('/') && !text.trim_end().contains([' ', '\n'])
}

/// Rules of the prompts, and of what earlier summaries give as the user's.
fn rules(source: &History) -> Vec<Probe> {
    // By normal text: probes, in order of first appearance.
    let mut order: Vec<String> = Vec::new();
    let mut found: HashMap<String, (Vec<usize>, Polarity)> = HashMap::new();
    for (number, message) in source.messages().iter().enumerate() {
        let summary = message.kind == Kind::Summary;
        if !summary && !is_prompt(message) {
            continue;
        }
        let text = if summary { message.plain() } else { own(message) };
        let all = rows(&text);
        for row in &all {
            if matches!(row.shape, Shape::Code) || row.shape == Shape::Quote && !summary {
                continue;
            }
            if summary && !of_the_user(&all, row) {
                continue;
            }
            let inherited = row.labels[0]
                .and_then(|it| all.get(it))
                .filter(|it| row.shape == Shape::Item && names_rules(&it.text))
                .map(|it| polarity(&it.text).unwrap_or(Polarity::Require));
            for sentence in sentences(&row.text) {
                let inherited =
                    inherited.filter(|_| weight(&sentence.text) >= 2 && sentence.text.chars().count() <= 300);
                if row.shape == Shape::Label && sentence.text.ends_with([':', '：']) {
                    continue;
                }
                if let Some(polarity) = rule(&sentence).or(inherited) {
                    let key = sentence.text.clone();
                    let entry = found.entry(key.clone()).or_insert_with(|| {
                        order.push(key);
                        (Vec::new(), polarity)
                    });
                    if entry.0.last() != Some(&number) {
                        entry.0.push(number);
                    }
                }
            }
        }
    }
    // An order that a later one turns around is no order any more.
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
            out.push(Probe { class: Class::U, messages, fact: Fact::Rule { text, polarity } });
        }
    }
    out
}

/// Whether a row says, itself or by its labels, that it gives the user's rules or words.
pub(super) fn of_the_user(rows: &[Row], row: &Row) -> bool {
    let says = |text: &str| {
        let lower = text.to_lowercase();
        cues::OF_THE_USER.iter().any(|it| lower.contains(it))
    };
    row.labels.iter().flatten().filter_map(|it| rows.get(*it)).any(|it| says(&it.text)) || {
        let lower = row.text.to_lowercase();
        [
            "user",
            "you said",
            "you asked",
            "用户",
            "用戶",
            "ユーザー",
            "사용자",
            "usuario",
            "пользовател",
            "benutzer",
            "nutzer",
            "utilisateur",
        ]
        .iter()
        .any(|it| lower.contains(it))
    }
}

/// Whether a label heads a list of rules.
fn names_rules(label: &str) -> bool {
    let lower = label.to_lowercase();
    label.chars().count() <= 60
        && (polarity(label).is_some()
            || [
                "constraint",
                "rules",
                "规则",
                "規則",
                "约束",
                "約束",
                "制約",
                "ルール",
                "규칙",
                "제약",
                "reglas",
                "правила",
                "regeln",
                "règles",
                "contraintes",
            ]
            .iter()
            .any(|it| lower.contains(it)))
}

/// What the user chose, allowed, refused.
fn decisions(source: &History, rules: &[String], out: &mut Vec<Probe>) {
    let mut asked: HashMap<&str, &Call> = HashMap::new();
    let mut answers: Vec<(String, Probe)> = Vec::new();
    let mut assistant = String::new();
    let mut refused: Option<usize> = None;
    for (number, message) in source.messages().iter().enumerate() {
        if message.role == Role::Assistant && message.texts().any(|it| !it.as_str().trim().is_empty()) {
            assistant = message.plain();
        }
        for part in &message.parts {
            match part {
                Part::Call(call) => {
                    asked.insert(&call.id, call);
                }
                Part::Output(output) => {
                    let Some(call) = asked.remove(&*output.id) else { continue };
                    if is_refusal(output) {
                        refused = Some(number);
                        if let Some(reason) = refusal_reason(output.text.as_str()) {
                            refused = None;
                            out.push(decision(number, None, reason));
                        }
                    } else if tools::meaning(&call.name) == Meaning::Ask && !output.cleared {
                        answered(number, call, output, &mut answers);
                    }
                }
                Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
        if !is_prompt(message) {
            continue;
        }
        let said: Vec<Sentence> = rows(&own(message))
            .iter()
            .filter(|it| it.shape != Shape::Code && it.shape != Shape::Quote)
            .flat_map(|it| sentences(&it.text))
            .collect();
        let Some(first) = said.first() else { continue };
        // The reason for a refusal is what the user says next.
        let mut taken = None;
        if refused.take().is_some()
            && weight(&first.text) >= 2
            && first.text.chars().count() <= 300
            && !asks(first)
            && !undecided(first)
        {
            out.push(decision(number, None, first.text.clone()));
            taken = Some(0);
        } else if let Some(chosen) = chosen(first, &assistant) {
            out.extend(chosen.into_iter().map(|it| decision(number, question(&assistant), it)));
            taken = Some(0);
        } else if let Some(agreed) = agreed(first, &assistant) {
            out.push(decision(number, None, agreed));
            taken = Some(0);
        }
        for (index, sentence) in said.iter().enumerate() {
            if taken != Some(index) && decides(sentence) && !rules.contains(&sentence.text) {
                out.push(decision(number, None, sentence.text.clone()));
            }
        }
    }
    out.extend(answers.into_iter().map(|it| it.1));
}

fn decision(number: usize, question: Option<String>, choice: String) -> Probe {
    Probe::new(Class::D, number, Fact::Decision { question, choice, superseded: Vec::new() })
}

/// Whether a sentence is a question, with or without its mark. A question mark after Chinese particles often hides an
/// order, but nobody can tell.
fn asks(sentence: &Sentence) -> bool {
    let lower = sentence.text.replace('’', "'").to_lowercase();
    is_question(sentence, &lower) && !lower.contains("吧")
}

fn undecided(sentence: &Sentence) -> bool {
    let lower = sentence.text.replace('’', "'").to_lowercase();
    cues::NOT_A_DECISION.iter().any(|it| lower.contains(it))
}

fn decides(sentence: &Sentence) -> bool {
    let lower = unquoted(&sentence.text).replace('’', "'").to_lowercase();
    let long = sentence.text.chars().count() > 300;
    if long || asks(sentence) || undecided(sentence) || weight(&sentence.text) < 2 {
        return false;
    }
    cues::DECISION
        .iter()
        .any(|cue| if cue.ends_with(',') { lower.starts_with(cue) } else { has_phrase(&lower, cue) })
}

/// Whether `cue` stands in `lower` as whole words; anywhere if it is dense.
fn has_phrase(lower: &str, cue: &str) -> bool {
    lower.match_indices(cue).any(|(at, _)| {
        let before = lower[..at].chars().next_back();
        let after = lower[at + cue.len()..].chars().next();
        cue.contains(is_dense)
            || before.is_none_or(|it| !it.is_alphanumeric()) && after.is_none_or(|it| !it.is_alphanumeric())
    })
}

/// The options behind a letter or number in a short answer.
fn chosen(answer: &Sentence, assistant: &str) -> Option<Vec<String>> {
    let all = words(&answer.text);
    let lower = answer.text.to_lowercase();
    let first = lower.split(' ').next().unwrap_or_default();
    if answer.question || all.len() > 12 || cues::ASKING.contains(&first) {
        return None;
    }
    let label = |it: &str| -> Option<String> {
        let one = it.trim_start_matches('#');
        let mut chars = one.chars();
        let (only, None) = (chars.next()?, chars.next()) else { return None };
        let letter = only.is_ascii_uppercase() && only != 'I' && (only != 'A' || all.len() <= 4)
            || only.is_ascii_lowercase() && all.len() == 1
            || matches!(only, 'b'..='h') && lower.contains("option");
        (only.is_ascii_digit() || letter).then(|| only.to_ascii_uppercase().to_string())
    };
    let labels: Vec<String> = all.iter().filter_map(|it| label(it.text)).collect();
    if labels.is_empty() {
        return None;
    }
    let options = options(assistant);
    let found: Vec<String> = labels
        .iter()
        .filter_map(|it| options.iter().rev().find(|(label, _)| label == it))
        .map(|it| it.1.clone())
        .collect();
    (found.len() == labels.len()).then_some(found)
}

/// Enumerated lines of a text: label and what it stands for.
fn options(text: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for line in text.lines() {
        let bare = line.trim().trim_start_matches(['-', '*', '#', ' ', '|', '•', '(']);
        let bare = bare.strip_prefix("Option ").or_else(|| bare.strip_prefix("option ")).unwrap_or(bare);
        let mut chars = bare.char_indices();
        let Some((_, label)) = chars.next() else { continue };
        let Some((at, sign)) = chars.next() else { continue };
        if !(label.is_ascii_digit() || label.is_ascii_uppercase())
            || !matches!(sign, '.' | ')' | ':' | '*' | ' ' | '|' | '—')
        {
            continue;
        }
        if sign == ' ' && !line.contains("Option ") {
            continue;
        }
        let rest = normal(bare[at..].trim_start_matches(['.', ')', ':', '*', ' ', '|', '-', '—', '–']));
        if content(&rest).is_empty() {
            continue;
        }
        out.push((label.to_ascii_uppercase().to_string(), clip(&rest, 200).replace("**", "")));
    }
    out
}

/// The last question of a text.
fn question(text: &str) -> Option<String> {
    let all = rows(text);
    let tail = all.len().saturating_sub(6);
    all[tail..].iter().rev().filter(|it| it.shape != Shape::Code).find_map(|row| {
        sentences(&row.text)
            .into_iter()
            .rev()
            .find(|it| it.question && weight(&it.text) >= 2)
            .map(|it| it.text)
    })
}

/// What a yes agrees to: what it says itself, or the question before it.
fn agreed(answer: &Sentence, assistant: &str) -> Option<String> {
    let lower = answer.text.trim_end_matches(['.', '!', '。', '！', ' ']).to_lowercase();
    if answer.question {
        return None;
    }
    let starts = |it: &&&str| {
        lower.strip_prefix(**it).is_some_and(|rest| {
            rest.chars().next().is_none_or(|c| !c.is_alphanumeric()) || rest.starts_with(is_dense)
        })
    };
    let yes = cues::YES.iter().filter(starts).max_by_key(|it| it.len());
    let no = cues::NO.iter().filter(starts).max_by_key(|it| it.len());
    let word = yes.or(no)?;
    let own = lower.get(word.len()..).unwrap_or_default().trim_matches([',', ' ', '-', '.', '!', '，', '、']);
    let asked = question(assistant);
    if weight(own) >= 3 && answer.text.chars().count() <= 300 {
        // "ok, now …" goes on rather than agrees: it counts only as an answer.
        return asked.map(|_| answer.text.clone());
    }
    asked
}

/// Questions and answers of an ask tool; an approved plan.
fn answered(number: usize, call: &Call, output: &Output, answers: &mut Vec<(String, Probe)>) {
    let input: Value = serde_json::from_str(call.input.as_str()).unwrap_or(Value::Null);
    let name = call.name.to_ascii_lowercase();
    if name.contains("plan") {
        let plan = input.get("plan").and_then(Value::as_str).unwrap_or_default();
        let title =
            plan.lines().map(|it| it.trim_start_matches(['#', ' ', '*'])).find(|it| content(it).len() >= 2);
        if let (Some(title), false) = (title, output.failed) {
            answers.push((String::new(), decision(number, None, normal(clip(title, 200)))));
        }
        return;
    }
    for (question, answer) in pairs(&input, output.text.as_str()) {
        let mut superseded = Vec::new();
        let same = |it: &(String, Probe)| !question.is_empty() && it.0 == question;
        if let Some(at) = answers.iter().position(same)
            && let Fact::Decision { choice, superseded: older, .. } = answers.remove(at).1.fact
        {
            superseded = older;
            if choice != answer {
                superseded.push(choice);
            }
        }
        let asked = Some(question.clone()).filter(|it| !it.is_empty());
        let fact = Fact::Decision { question: asked, choice: answer, superseded };
        answers.push((question, Probe::new(Class::D, number, fact)));
    }
}

/// `"question"="answer"` (Claude Code 2.1, OpenCode 1.18), or answers as JSON beside the questions of the call (Codex
/// 0.169, Gemini CLI 0.61). A letter or number stands for its option.
fn pairs(input: &Value, text: &str) -> Vec<(String, String)> {
    let questions: Vec<&Value> = match input.get("questions").and_then(Value::as_array) {
        Some(list) => list.iter().collect(),
        None => vec![input],
    };
    let asked = |it: &Value| it.get("question").and_then(Value::as_str).map(normal).unwrap_or_default();
    let resolve = |question: &Value, answer: &str| -> String {
        let labels: Vec<String> = question
            .get("options")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|it| it.as_str().or_else(|| it.get("label")?.as_str()).map(normal))
            .collect();
        let mut chars = answer.chars();
        let index = match (chars.next(), chars.next()) {
            (Some(c), None) if c.is_ascii_digit() => {
                c.to_digit(10).map(|it| it as usize).and_then(|it| it.checked_sub(1))
            }
            (Some(c), None) if c.is_ascii_alphabetic() => {
                Some((c.to_ascii_lowercase() as u8 - b'a') as usize)
            }
            _ => None,
        };
        index.and_then(|it| labels.get(it).cloned()).unwrap_or_else(|| normal(answer))
    };
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\"=\"") {
        let question = before.rsplit('"').next().unwrap_or_default();
        let Some((answer, more)) = after.split_once('"') else { break };
        let known = questions.iter().find(|it| asked(it) == normal(question));
        out.push((normal(question), known.map_or_else(|| normal(answer), |it| resolve(it, answer))));
        rest = more;
    }
    if !out.is_empty() {
        return out;
    }
    let answers: Vec<String> = match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map)) => {
            let inner = map.get("answers").cloned().unwrap_or(Value::Object(map));
            match inner {
                Value::Object(map) => map.values().map(leaf).collect(),
                Value::Array(list) => list.iter().map(leaf).collect(),
                _ => Vec::new(),
            }
        }
        Ok(Value::String(it)) => vec![it],
        _ => vec![clip(text.trim(), 200).to_string()],
    };
    questions
        .iter()
        .zip(answers)
        .filter(|(_, answer)| !answer.trim().is_empty())
        .map(|(question, answer)| (asked(question), resolve(question, answer.trim())))
        .collect()
}

/// The strings in an answer, joined. Depth is bounded: answers are lists of strings in an object at most.
fn leaf(value: &Value) -> String {
    match value {
        Value::String(it) => it.clone(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        Value::Object(map) => map
            .get("answers")
            .or_else(|| map.get("answer"))
            .map(|it| match it {
                Value::String(it) => it.clone(),
                Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
                _ => String::new(),
            })
            .unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn refusal_reason(text: &str) -> Option<String> {
    cues::REFUSAL_REASONS.iter().find_map(|mark| {
        let at = text.to_ascii_lowercase().find(mark)?;
        let reason = normal(text.get(at + mark.len()..)?);
        let reason =
            reason.split("Note: The user's next message").next().unwrap_or_default().trim().to_string();
        let first = sentences(&reason).into_iter().next()?.text;
        (content(&first).len() >= 2).then_some(first)
    })
}

/// Sentences that say that something was tried and left, and why.
fn given_up(source: &History, out: &mut Vec<Probe>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (number, message) in source.messages().iter().enumerate() {
        if message.kind != Kind::Said {
            continue;
        }
        let text = match message.role {
            Role::User if is_prompt(message) => own(message),
            Role::Assistant => message.plain(),
            Role::User | Role::System | Role::Tool => continue,
        };
        for row in rows(&text).iter().filter(|it| it.shape != Shape::Code && it.shape != Shape::Label) {
            for sentence in sentences(&row.text) {
                let lower = sentence.text.replace('’', "'").to_lowercase();
                let length = lower.chars().count();
                let any = |list: &[&str]| list.iter().any(|it| has_phrase(&lower, it));
                let left = any(cues::GIVEN_UP) || any(cues::GIVEN_UP_IF) && any(cues::APPROACH);
                let why = cues::BECAUSE.iter().any(|it| lower.contains(it));
                if !sentence.question && (16..=400).contains(&length) && left && why {
                    seen.insert(sentence.text, number);
                }
            }
        }
    }
    out.extend(seen.into_iter().map(|(text, number)| Probe::new(Class::T, number, Fact::Tried { text })));
}

/// Goal, last request, and the question left open.
fn ends(source: &History, out: &mut Vec<Probe>) {
    let messages = source.messages();
    let request = |message: &Message| -> Option<String> {
        if !is_prompt(message) {
            return None;
        }
        let own = normal(&own(message));
        let text = if weight(&own) == 0 { normal(clip(&message.plain(), 300)) } else { own };
        let substantive = weight(&text) >= 3;
        substantive.then_some(text)
    };
    let words = |class: Class, number: usize, text: &str, limit: usize| {
        Probe::new(class, number, Fact::Words { text: clip(text, limit).to_string() })
    };
    let first = messages.iter().enumerate().find_map(|(at, it)| Some((at, request(it)?)));
    let summary = messages.iter().enumerate().find(|(_, it)| it.kind == Kind::Summary);
    let told = summary
        .filter(|(at, _)| first.as_ref().is_none_or(|it| it.0 > *at))
        .and_then(|(at, it)| Some((at, told_goal(it)?)));
    if let Some((number, text)) = told.or(first) {
        // What the first sentences ask for; the rest of a long first prompt is its detail.
        let mut goal = String::new();
        for sentence in sentences(&text) {
            if goal.chars().count() >= 160
                || !goal.is_empty() && goal.chars().count() + sentence.text.chars().count() > 300
            {
                break;
            }
            goal.push_str(&sentence.text);
            goal.push(' ');
        }
        out.push(words(Class::G, number, goal.trim_end(), 300));
    }
    if let Some((number, text)) =
        messages.iter().enumerate().rev().find_map(|(at, it)| Some((at, request(it)?)))
    {
        out.push(words(Class::L, number, &text, 1_000));
    }
    let last = messages
        .iter()
        .enumerate()
        .rev()
        .find(|(_, it)| it.kind == Kind::Said && it.texts().any(|it| !it.is_empty()));
    if let Some((number, message)) = last.filter(|(_, it)| it.role == Role::Assistant) {
        let plain = message.plain();
        let all = rows(&plain);
        let end = all.last().filter(|it| it.shape != Shape::Code).and_then(|it| sentences(&it.text).pop());
        if let Some(open) = end.filter(|it| it.question && content(&it.text).len() >= 2) {
            out.push(words(Class::L, number, &open.text, 400));
        }
    }
}

/// The goal that an earlier summary gives under a heading for it.
fn told_goal(message: &Message) -> Option<String> {
    const HEADINGS: [&str; 11] = [
        "goal",
        "primary request",
        "objective",
        "user's request",
        "original request",
        "intent",
        "目标",
        "目標",
        "目的",
        "objetivo",
        "цель",
    ];
    let plain = message.plain();
    let all = rows(&plain);
    let names = |it: &Row| {
        let lower = it.text.to_lowercase();
        HEADINGS.iter().any(|word| lower.contains(word))
    };
    let under = |row: &&Row| row.labels.iter().flatten().filter_map(|it| all.get(*it)).any(names);
    let row = all.iter().find(|it| it.shape != Shape::Label && content(&it.text).len() >= 3 && under(it))?;
    Some(row.text.clone())
}

/// Every sentence of the prompts, as [`sentences`] cuts them.
pub(super) fn sentences_of_the_user(source: &History) -> std::collections::HashSet<String> {
    let prompts = source.messages().iter().filter(|it| is_prompt(it) || it.kind == Kind::Summary);
    prompts.flat_map(|it| rows(&it.plain())).flat_map(|row| sentences(&row.text)).map(|it| it.text).collect()
}
