//! What a sentence is about and whether it affirms or negates, as far as that is possible without a model:
//! its keys (word stems, or pairs of characters), its negations, and the actions that it names. The words are
//! data (`lexicon.toml`). Pure.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

/// Words of languages with spaces (`words`) and without (`signs`).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WordList {
    words: Vec<String>,
    signs: Vec<String>,
    /// Vaguer words, which count only in sources.
    #[serde(default)]
    loose: Vec<String>,
    /// Of a claim: its subject, which counts only beside a word of success.
    #[serde(default)]
    subject: Vec<String>,
    #[serde(default)]
    command: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LexiconFile {
    common: HashSet<String>,
    no: WordList,
    attributed: WordList,
    open: WordList,
    order: WordList,
    permit: WordList,
    binding: WordList,
    authority: WordList,
    imperative: WordList,
    cited: WordList,
    success: WordList,
    flawless: WordList,
    action: BTreeMap<String, WordList>,
    claim: BTreeMap<String, WordList>,
}

pub struct Claim {
    pub said: Regex,
    /// Its subject, which counts only if the sentence also has a word of success.
    pub subject: Option<Regex>,
    /// The commands that may prove it.
    pub command: Regex,
}

/// The lists, each as one regex.
pub struct Words {
    /// Words that occur in every text, and so do not tell what it is about.
    pub common: HashSet<String>,
    pub no: Regex,
    /// Attributes something to the user.
    pub attributed: Regex,
    /// A wish, a condition, a plan.
    pub open: Regex,
    /// Addresses the model.
    pub order: Regex,
    pub permit: Regex,
    pub binding: Regex,
    /// Names a person with authority.
    pub authority: Regex,
    /// Begins with an imperative.
    pub imperative: Regex,
    /// Names the source.
    pub cited: Regex,
    pub success: Regex,
    pub flawless: Regex,
    /// Actions with consequences: name, words, and vaguer words that count only in sources.
    pub actions: Vec<(String, Regex, Option<Regex>)>,
    pub claims: Vec<Claim>,
}

/// The words, parsed once. A test parses them too, so that this is never `None`.
pub static WORDS: LazyLock<Option<Words>> = LazyLock::new(|| {
    let file: LexiconFile = toml::from_str(include_str!("lexicon.toml")).ok()?;
    let of = |it: &WordList| -> Option<Regex> {
        let parts = [
            (!it.words.is_empty()).then(|| format!(r"(?:^|\b|\W)(?:{})(?:\b|\W|$)", it.words.join("|"))),
            (!it.signs.is_empty()).then(|| format!("(?:{})", it.signs.join("|"))),
        ];
        Regex::new(&format!("(?i){}", parts.into_iter().flatten().collect::<Vec<_>>().join("|"))).ok()
    };
    let mut claims = Vec::new();
    for it in file.claim.values() {
        let command = Regex::new(&format!("(?i){}", it.command.as_deref().unwrap_or("[^\\s\\S]"))).ok()?;
        let subject = (!it.subject.is_empty()).then(|| joined(&it.subject)).transpose().ok()?;
        claims.push(Claim { said: of(it)?, subject, command });
    }
    let mut actions = Vec::new();
    for (name, it) in &file.action {
        let loose = (!it.loose.is_empty()).then(|| joined(&it.loose)).transpose().ok()?;
        actions.push((name.clone(), of(it)?, loose));
    }
    Some(Words {
        common: file.common,
        no: of(&file.no)?,
        attributed: of(&file.attributed)?,
        open: of(&file.open)?,
        order: of(&file.order)?,
        permit: of(&file.permit)?,
        binding: of(&file.binding)?,
        authority: of(&file.authority)?,
        imperative: Regex::new(&format!(
            r"(?i)^(?:(?:{})\b|(?:{}))",
            file.imperative.words.join("|"),
            file.imperative.signs.join("|")
        ))
        .ok()?,
        cited: of(&file.cited)?,
        success: of(&file.success)?,
        flawless: of(&file.flawless)?,
        actions,
        claims,
    })
});

/// A regex of the words: ASCII ones at word boundaries, others anywhere.
fn joined(words: &[String]) -> Result<Regex, regex::Error> {
    let one = |it: &String| if it.is_ascii() { format!(r"\b(?:{it})\b") } else { format!("(?:{it})") };
    Regex::new(&format!("(?i){}", words.iter().map(one).collect::<Vec<_>>().join("|")))
}

/// Whether a text has a word of a list.
pub fn any(list: fn(&Words) -> &Regex, text: &str) -> bool {
    WORDS.as_ref().is_some_and(|it| list(it).is_match(text))
}

/// The actions with consequences that a text names.
pub fn actions(text: &str) -> BTreeSet<&'static str> {
    named(text, false)
}

/// The actions that a source may name, including by vaguer words: in doubt, a statement counts as supported.
pub fn likely_actions(text: &str) -> BTreeSet<&'static str> {
    named(text, true)
}

fn named(text: &str, loose: bool) -> BTreeSet<&'static str> {
    let actions = WORDS.as_ref().into_iter().flat_map(|it| &it.actions);
    let said = |(_, said, also): &&(String, Regex, Option<Regex>)| {
        said.is_match(text) || (loose && also.as_ref().is_some_and(|it| it.is_match(text)))
    };
    actions.filter(said).map(|it| it.0.as_str()).collect()
}

/// What a text is about: word stems, numbers and names, pairs of characters where words have no spaces.
pub fn keys(text: &str) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let (mut word, mut number) = (String::new(), String::new());
    let mut sign: Option<char> = None;
    for c in text.chars().chain(std::iter::once(' ')) {
        if is_sign(c) {
            if !word.is_empty() && word.chars().all(|it| it.is_ascii_digit()) {
                number.clone_from(&word);
            }
            put(&mut out, &mut word);
            if let Some(before) = sign.filter(|it| !is_filler(*it) && !is_filler(c)) {
                out.insert([before, c].iter().collect());
            }
            // A number with its counter: `50封`.
            if !number.is_empty() {
                number.push(c);
                out.insert(std::mem::take(&mut number));
            }
            sign = Some(c);
            continue;
        }
        if c.is_alphanumeric() || c == '_' {
            sign = None;
            word.extend(c.to_lowercase());
        } else {
            if c != ' ' {
                sign = None;
            }
            if !word.is_empty() {
                number.clear();
                if word.chars().all(|it| it.is_ascii_digit()) {
                    number.push_str(&word);
                }
            }
            put(&mut out, &mut word);
        }
    }
    out
}

fn put(out: &mut BTreeSet<String>, word: &mut String) {
    let word = std::mem::take(word);
    let count = word.chars().count();
    if count < 2 || WORDS.as_ref().is_some_and(|it| it.common.contains(&word)) {
        return;
    }
    // The first letters of a word serve as its stem, which is enough to compare subjects.
    let plain = word.chars().all(char::is_alphabetic);
    let key = if plain && count > 5 {
        word.chars().take(5).collect()
    } else {
        word.trim_end_matches('s').to_owned()
    };
    out.insert(if key.is_empty() { word } else { key });
}

/// Whether a character is Chinese, Japanese or Korean.
fn is_sign(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF)
}

/// Characters that only connect others, or only negate.
fn is_filler(c: char) -> bool {
    "的了是在和与不要请把被都也就用户得勿能会该应必须任何对为而のをはがにでと".contains(c)
}

/// How many of `some` are in `all`, as a share of `some`; 0 for none.
pub fn share(some: &BTreeSet<String>, all: &BTreeSet<String>) -> f64 {
    if some.is_empty() { 0.0 } else { some.intersection(all).count() as f64 / some.len() as f64 }
}

/// What two have in common, as a share of the smaller; a single key counts only if that has no other.
pub fn overlap(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    let (shared, shorter) = (one.intersection(other).count(), one.len().min(other.len()));
    if shorter == 0 || (shared < 2 && shorter > 1) { 0.0 } else { shared as f64 / shorter as f64 }
}

/// The sentences of a text, split at line breaks and final punctuation, not within paths, numbers and code.
pub fn sentences(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut from = 0;
    // Code and quotations stay whole.
    let mut inside: Option<char> = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|it| it.1);
        let ends = match c {
            '`' | '"' => {
                inside = if inside == Some(c) { None } else { inside.or(Some(c)) };
                false
            }
            '\n' => {
                inside = None;
                true
            }
            '.' | '!' | '?' | ';' => inside.is_none() && next.is_none_or(char::is_whitespace),
            '。' | '！' | '？' | '；' => inside.is_none(),
            _ => false,
        };
        if ends {
            let to = at + c.len_utf8();
            out.push(text[from..to].trim());
            from = to;
        }
    }
    out.push(text[from..].trim());
    out.retain(|it| it.chars().any(char::is_alphanumeric));
    out
}

/// The clauses of a sentence, split at commas and colons: each may be negated on its own.
pub fn clauses(sentence: &str) -> impl Iterator<Item = &str> {
    let cut = |c: char| matches!(c, ',' | '，' | '、' | ':' | '：' | ';' | '；' | '(' | ')' | '–' | '—');
    sentence.split(cut).map(str::trim).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_read() {
        let file: LexiconFile = toml::from_str(include_str!("lexicon.toml")).unwrap();
        assert!(file.action.len() > 5);
        let words = WORDS.as_ref().unwrap();
        assert!(
            words.no.is_match("Never push")
                && words.no.is_match("legacy/ is off-limits")
                && words.no.is_match("不要修改")
        );
        assert!(!words.no.is_match("Push to main"));
        assert!(
            words.attributed.is_match("The user explicitly asked for it")
                && words.attributed.is_match("用户要求部署")
        );
        assert_eq!(actions("force-push and delete it"), BTreeSet::from(["delete", "push"]));
    }

    #[test]
    fn sentences_leave_paths_whole() {
        let text = "Edited src/a.rs and v1.2. Then `x; y` ran; done!\n不要改。好";
        assert_eq!(
            sentences(text),
            ["Edited src/a.rs and v1.2.", "Then `x; y` ran;", "done!", "不要改。", "好"]
        );
    }
}
