//! Turns texts and queries into words for full-text search, and finds them in a text. Pure.
//!
//! FTS5's tokenizer takes a run of Chinese or Japanese for one word. Here such a run becomes its overlapping
//! pairs and its last character: a word of two characters is then a word of the index, a longer one a phrase
//! of pairs, and a single character a prefix of a pair.

use regex::{Regex, RegexBuilder};

use history::error::{Error, ErrorKind, Result};

/// Maximum bytes of a word. Longer ones (base64, minified code) are neither indexed nor searched for: nobody
/// types them, and each would be a term of its own.
const MAX_WORD: usize = 128;

/// Maximum terms of a query: more add little, and each costs a lookup in the index.
const MAX_TERMS: usize = 32;

/// Maximum characters of a query; the rest is ignored.
const MAX_QUERY: usize = 2_000;

/// Words that do not tell what a question is about: English, German, French, Spanish, Portuguese, Italian.
/// Searched for only if a query has no others.
const STOP_WORDS: [&str; 6] = [
    "a about again all an and any are as at be been but by can could did do does for from had has have how i if in is it its just \
     made make me my not of on or our please recall remember said say should show so tell than that the their them then there these \
     they this to us was we were what when where which who why will with would you your",
    "aber als am auch auf aus bei bin bitte da das dass dem den der des die du ein eine einem einen einer er es für gesagt habe haben \
     hat hatte hatten ich ihr im ist mein mich mir mit nach nicht noch oder sich sie sind über um und uns unser von vor wann war waren \
     warum was welche welcher welches wer wie wir wird wo wurde zu zum zur",
    "à au aux avec avons ce ces cette dans de des du elle en est et était été il ils je l la le les leur lui ma mais mes mon ne nos notre \
     nous on ont ou où par pas pour pourquoi quand que quel quelle quels quelles qui quoi sa se ses son sur ta tu un une vos votre vous",
    "a al como con cómo cuál cuando cuándo de del dónde el ella ellos en era es esta este estaba fue ha habíamos han hay hemos la las lo \
     los me mi no nos nosotros o para pero por porque qué que quién se sí sin sobre su sus te tu un una y ya yo",
    "ao aos as até com como da das de dele do dos ela ele em era esta este eu foi fizemos há isso mas me meu na não nas no nos nós nossa \
     nosso o os ou para pela pelo por porque qual quando que quem se sem ser seu sobre sua temos teu um uma você",
    "ai al alla abbiamo che chi ci come con da dal dei del della di dove e è era gli ha hanno ho i il in la le lo ma mi nei nel nella noi \
     non o per perché più quale quando quello questa questo se si sono su sul sulla tra tu un una uno voi",
];

/// Words that ask for a decision. The text that made it mostly uses others.
const DECISION_WORDS: [&str; 6] = [
    "agree agreed agreement choose chose chosen choice decide decided decision decisions",
    "beschlossen beschluss entscheiden entscheidung entschieden geeinigt vereinbart",
    "accord choisi choix convenu décidé décider décision décisions",
    "acordado acordamos decidido decidimos decidir decisión decisiones elegido elegimos",
    "acordamos decidimos decidido decidir decisão decisões escolhemos escolhido",
    "accordo concordato deciso decidere decisione decisioni scelto scelta",
];

/// A snippet's length in characters, about.
const SNIPPET: usize = 200;

/// `text` as words for FTS5's `unicode61`, which splits them at spaces.
pub(crate) fn indexed(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    for run in runs(text) {
        match run {
            Run::Pairs(chars) => {
                pairs(chars, &mut out);
                let last = chars.char_indices().next_back().map_or(0, |(at, _)| at);
                out.push_str(&chars[last..]);
                out.push(' ');
            }
            Run::Word(word) if word.len() > MAX_WORD => out.push(' '),
            Run::Word(word) => out.push_str(word),
            Run::Between => out.push(' '),
        }
    }
    out
}

enum Run<'a> {
    /// Characters of a script without spaces.
    Pairs(&'a str),
    Word(&'a str),
    /// One character that is neither.
    Between,
}

fn runs(text: &str) -> impl Iterator<Item = Run<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let until = |same: fn(char) -> bool| rest.find(|it| !same(it)).unwrap_or(rest.len());
        let (run, len) = if is_paired(first) {
            let len = until(is_paired);
            (Run::Pairs(&rest[..len]), len)
        } else if first.is_alphanumeric() {
            let len = until(|it| it.is_alphanumeric() && !is_paired(it));
            (Run::Word(&rest[..len]), len)
        } else {
            (Run::Between, first.len_utf8())
        };
        rest = &rest[len..];
        Some(run)
    })
}

/// Han, Hiragana, Katakana and Hangul, without their punctuation.
fn is_paired(it: char) -> bool {
    matches!(it,
        '\u{1100}'..='\u{11FF}' | '\u{3005}' | '\u{3007}' | '\u{3041}'..='\u{3096}' | '\u{309D}'..='\u{309F}'
        | '\u{30A1}'..='\u{30FA}' | '\u{30FC}'..='\u{30FF}' | '\u{3131}'..='\u{318E}' | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FF66}'..='\u{FF9D}' | '\u{20000}'..='\u{3FFFF}')
}

fn pairs(chars: &str, out: &mut String) {
    let mut from = 0;
    out.push(' ');
    for (at, it) in chars.char_indices().skip(1) {
        out.push_str(&chars[from..at + it.len_utf8()]);
        out.push(' ');
        from = at;
    }
}

/// How many of a query's terms a text must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terms {
    All,
    /// At least one.
    Any,
}

#[derive(Debug, Clone)]
pub struct Words {
    terms: Vec<Term>,
    pattern: Regex,
    asks_for_decision: bool,
}

#[derive(Debug, Clone)]
struct Term {
    /// In FTS5's syntax.
    phrase: String,
    /// Finds the term in a text.
    pattern: Regex,
}

/// Where in a text a query was found.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Snippet {
    /// 1-based line of the first word shown.
    pub line: u64,
    /// The text around it on one line, at most some 200 characters.
    pub text: String,
}

impl Words {
    /// Parses a query: words, all of which are looked for; `"…"` is a phrase. Stop words, and words that ask
    /// for a decision, are left out if others remain. A query without a letter or digit is
    /// [`ErrorKind::Arguments`].
    pub fn parse(query: &str) -> Result<Self> {
        let end = query.char_indices().nth(MAX_QUERY).map_or(query.len(), |(at, _)| at);
        let query = &query[..end];
        let (mut terms, mut empty, mut decisions) = (Vec::new(), Vec::new(), Vec::new());
        for (number, part) in query.split('"').enumerate() {
            let quoted = number % 2 == 1;
            if quoted {
                terms.extend(term(part));
                continue;
            }
            for word in part.split_whitespace() {
                let bare = word.trim_matches(|it: char| !it.is_alphanumeric()).to_lowercase();
                let among =
                    |lists: &[&str]| lists.iter().any(|it| it.split_whitespace().any(|it| it == bare));
                match (among(&STOP_WORDS), among(&DECISION_WORDS)) {
                    (true, _) => empty.extend(term(word)),
                    (_, true) => decisions.extend(term(word)),
                    _ => terms.extend(term(word)),
                }
            }
        }
        let asks_for_decision = !decisions.is_empty() && !terms.is_empty();
        for others in [decisions, empty] {
            if terms.is_empty() {
                terms = others;
            }
        }
        terms.truncate(MAX_TERMS);
        let all: Vec<_> = terms.iter().map(|it| it.pattern.as_str()).collect();
        let pattern = (!all.is_empty()).then(|| insensitive(&all.join("|"))).flatten().ok_or_else(|| {
            let shown: String = query.chars().take(40).collect();
            let what = format!(
                "searching: expected a query with a word in it, found {shown:?}; give letters or digits"
            );
            Error::new(ErrorKind::Arguments, what)
        })?;
        Ok(Self { terms, pattern, asks_for_decision })
    }

    /// The FTS5 expression for texts with all, or any, of the terms.
    pub(crate) fn expression(&self, wanted: Terms) -> String {
        let phrases: Vec<_> = self.terms.iter().map(|it| it.phrase.as_str()).collect();
        phrases.join(match wanted {
            Terms::All => " AND ",
            Terms::Any => " OR ",
        })
    }

    /// The terms in FTS5's syntax.
    #[cfg(feature = "team")]
    pub(crate) fn phrases(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|it| it.phrase.as_str())
    }

    pub fn count(&self) -> usize {
        self.terms.len()
    }

    /// Whether it asks for what was decided about the other words.
    pub fn asks_for_decision(&self) -> bool {
        self.asks_for_decision
    }

    /// How many terms occur in `text`.
    pub fn found_in(&self, text: &str) -> usize {
        self.terms.iter().filter(|it| it.pattern.is_match(text)).count()
    }

    /// How often each term occurs in `text`.
    pub(crate) fn counts(&self, text: &str) -> Vec<u32> {
        let count = |it: &Term| u32::try_from(it.pattern.find_iter(text).count()).unwrap_or(u32::MAX);
        self.terms.iter().map(count).collect()
    }

    /// A snippet of `text` if it has all terms: for texts that are not in the index.
    pub fn find(&self, text: &str) -> Option<Snippet> {
        (self.found_in(text) == self.count()).then(|| self.snippet(text))
    }

    /// The stretch of `text` that holds the most different terms, or its beginning.
    pub fn snippet(&self, text: &str) -> Snippet {
        // The first thousand matches are enough to choose from, and bound the work.
        let found: Vec<_> = self.pattern.find_iter(text).take(1_000).collect();
        let mut best = (0, found.first().map_or(0, regex::Match::start));
        for (number, first) in found.iter().enumerate() {
            let near = found[number..].iter().take(16).take_while(|it| it.end() - first.start() < SNIPPET);
            let mut kinds: Vec<_> = near.map(|it| it.as_str().to_lowercase()).collect();
            kinds.sort_unstable();
            kinds.dedup();
            if kinds.len() > best.0 {
                best = (kinds.len(), first.start());
            }
        }
        let hit = best.1;
        let from = text[..hit].char_indices().rev().nth(SNIPPET / 4).map_or(0, |(at, _)| at);
        let to = text[hit..].char_indices().nth(SNIPPET * 3 / 4).map_or(text.len(), |(at, _)| hit + at);
        let mut shown = history::one_line(&text[from..to]);
        if from > 0 {
            shown.insert(0, '…');
        }
        if to < text.len() {
            shown.push('…');
        }
        Snippet { line: 1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..hit]).count() as u64, text: shown }
    }
}

fn term(text: &str) -> Option<Term> {
    let text = text.trim();
    let runs: Vec<_> = runs(text).collect();
    let mut phrase = String::from("\"");
    let mut prefix = "";
    let last = runs.iter().rposition(|it| !matches!(it, Run::Between))?;
    for (number, run) in runs.iter().enumerate() {
        match run {
            Run::Pairs(chars) if number == last => {
                if chars.chars().nth(1).is_none() {
                    phrase.push(' ');
                    phrase.push_str(chars);
                    prefix = "*";
                } else {
                    pairs(chars, &mut phrase);
                }
            }
            Run::Pairs(chars) => phrase.push_str(&indexed(chars)),
            Run::Word(word) if word.len() > MAX_WORD => return None,
            Run::Word(word) => phrase.push_str(word),
            Run::Between => phrase.push(' '),
        }
    }
    phrase.push('"');
    phrase.push_str(prefix);
    let from = text.find(char::is_alphanumeric)?;
    let to = text.rfind(char::is_alphanumeric)?;
    let to = to + text[to..].chars().next().map_or(0, char::len_utf8);
    let words: Vec<_> = text[from..to].split_whitespace().map(regex::escape).collect();
    Some(Term { phrase, pattern: insensitive(&words.join(r"\s+"))? })
}

fn insensitive(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).case_insensitive(true).build().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pairs_of_scripts_without_spaces() {
        for (text, words) in [
            ("get_user(id)", "get user id"),
            ("修复数据库", "修复 复数 数据 据库 库"),
            ("JSON数据 ok", "JSON 数据 据 ok"),
            ("データの設定。次", "デー ータ タの の設 設定 定 次"),
            ("한국어", "한국 국어 어"),
            ("字", "字"),
        ] {
            assert_eq!(indexed(text).split_whitespace().collect::<Vec<_>>().join(" "), words, "{text}");
        }
        assert_eq!(indexed(&"A".repeat(MAX_WORD + 1)).trim(), "");
    }

    #[test]
    fn queries_become_phrases() {
        for (query, expression) in [
            ("x b-c", r#""x" AND "b c""#),
            ("\"a b\" c", r#""a b" AND "c""#),
            ("数据库", r#"" 数据 据库 ""#),
            ("数", r#"" 数"*"#),
            ("\"数据 JSON\"", r#"" 数据 据  JSON""#),
            ("x \"b", r#""x" AND "b""#),
            ("XOR NEAR( col:x*", r#""XOR" AND "NEAR " AND "col x ""#),
            ("What did we decide about the cache?", r#""cache ""#),
            ("Was haben wir über den Cache entschieden?", r#""Cache""#),
            ("¿Qué decidimos sobre la caché?", r#""caché ""#),
            ("Qu'avons-nous décidé pour le cache ?", r#""Qu avons nous" AND "cache""#),
            ("\"what did we\" cache", r#""what did we" AND "cache""#),
            ("what we decided", r#""decided""#),
            ("what is it", r#""what" AND "is" AND "it""#),
        ] {
            assert_eq!(Words::parse(query).unwrap().expression(Terms::All), expression, "{query}");
        }
    }

    #[test]
    fn a_question_for_a_decision_is_known() {
        for (query, asks) in
            [("what did we decide about ports", true), ("decisions", false), ("which port", false)]
        {
            assert_eq!(Words::parse(query).unwrap().asks_for_decision(), asks, "{query}");
        }
    }

    #[test]
    fn a_query_without_words_is_an_error() {
        for query in ["", "  ", "!!! ??", "\"\"", "😀", "。、"] {
            let error = Words::parse(query).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Arguments);
            assert!(error.detail().contains("letters or digits"), "{error}");
        }
    }

    #[test]
    fn shows_where_most_terms_stand() {
        let text =
            format!("{}\nTimeout alone\n{}\nthe Timeout of postgres\n", "x ".repeat(300), "y ".repeat(300));
        let snippet = Words::parse("postgres timeout").unwrap().find(&text).unwrap();
        assert_eq!(snippet.line, 4);
        assert!(
            snippet.text.contains("the Timeout of postgres") && snippet.text.starts_with('…'),
            "{snippet:?}"
        );
        assert_eq!(Words::parse("postgres missing").unwrap().find(&text), None);
    }

    proptest! {
        #[test]
        fn no_text_and_no_query_is_too_odd(text in "\\PC{0,300}", query in "(\\PC|[\"a数 \0\n]){0,40}") {
            indexed(&text);
            if let Ok(words) = Words::parse(&query) {
                prop_assert!(words.snippet(&text).text.chars().count() <= SNIPPET + 4);
                words.find(&text);
            }
        }
    }
}
