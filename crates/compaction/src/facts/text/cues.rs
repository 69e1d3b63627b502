//! Cues: phrases by which people give rules, choose and change their minds, as data: one file per language in `cues/`.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use serde::Deserialize;

use super::ascii_first::{AsciiFirstRegex, has_ascii_letters_only};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Language {
    /// The language separates words by spaces or punctuation.
    words: bool,
    forbid: Vec<String>,
    require: Vec<String>,
    prefer: Vec<String>,
    standing: Vec<String>,
    not_rule: Vec<String>,
    once: Vec<String>,
    lasting: Vec<String>,
    approve: Vec<String>,
    refuse: Vec<String>,
    choose: Vec<String>,
    reverse: Vec<String>,
    gave_up: Vec<String>,
    untested: Vec<String>,
    found: Vec<String>,
    remaining: Vec<String>,
    unfinished: Vec<String>,
    finished: Vec<String>,
    announce: Vec<String>,
    fixed: Vec<String>,
    narration: Vec<String>,
    back_reference: Vec<String>,
    withdraws: Vec<String>,
    passing: Vec<String>,
    recommends: Vec<String>,
    defect: Vec<String>,
}

const FILES: [&str; 8] = [
    include_str!("cues/en.toml"),
    include_str!("cues/zh.toml"),
    include_str!("cues/ja.toml"),
    include_str!("cues/ko.toml"),
    include_str!("cues/es.toml"),
    include_str!("cues/ru.toml"),
    include_str!("cues/de.toml"),
    include_str!("cues/fr.toml"),
];

/// `\w` for the languages with spaces: Latin with combining marks, and Cyrillic. All scripts would take most of the
/// time to compile.
const LETTER: &str =
    r"[0-9_A-Za-z\u{AA}\u{BA}\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{24F}\u{300}-\u{36F}\u{400}-\u{52F}]";

/// A text in lower case, with every byte offset unchanged: a letter whose lower case has another length is left as it
/// is.
///
/// Cues are in lower case too: matching both cases would double the cost.
pub(in crate::facts) struct Lowercased<'a> {
    text: Cow<'a, str>,
    ascii_only: bool,
}

impl<'a> Lowercased<'a> {
    pub(in crate::facts) fn of(text: &'a str) -> Self {
        let lower = |c: char| {
            let mut forms = c.to_lowercase();
            forms.next().filter(|it| forms.next().is_none() && it.len_utf8() == c.len_utf8()).unwrap_or(c)
        };
        let ascii_only = has_ascii_letters_only(text);
        let text = match text {
            text if !ascii_only => text.chars().map(lower).collect(),
            text if text.bytes().any(|it| it.is_ascii_uppercase()) => text.to_ascii_lowercase().into(),
            text => text.into(),
        };
        Self { text, ascii_only }
    }
}

/// The cues of one kind in all languages, as one expression.
pub(in crate::facts) struct CueSet(AsciiFirstRegex);

impl CueSet {
    pub(in crate::facts) fn is_in(&self, lower: &Lowercased) -> bool {
        self.0.for_text(lower.ascii_only).is_match(&lower.text)
    }

    /// Byte range of the first match.
    pub(in crate::facts) fn find(&self, lower: &Lowercased) -> Option<Range<usize>> {
        self.0.for_text(lower.ascii_only).find(&lower.text).map(|it| it.range())
    }

    /// The text before the first match and from there on, in lower case.
    pub(in crate::facts) fn around<'t>(&self, lower: &'t Lowercased) -> Option<(&'t str, &'t str)> {
        self.0.for_text(lower.ascii_only).find(&lower.text).map(|it| lower.text.split_at(it.start()))
    }

    /// The text with each match replaced by a space.
    pub(in crate::facts) fn erase<'a>(&self, lower: &'a Lowercased) -> Lowercased<'a> {
        let text = self.0.for_text(lower.ascii_only).replace_all(&lower.text, " ");
        Lowercased { text, ascii_only: lower.ascii_only }
    }
}

pub(in crate::facts) struct Cues {
    pub(in crate::facts) forbid: CueSet,
    pub(in crate::facts) require: CueSet,
    pub(in crate::facts) prefer: CueSet,
    pub(in crate::facts) standing: CueSet,
    pub(in crate::facts) not_rule: CueSet,
    /// In a rule for one request only.
    pub(in crate::facts) once: CueSet,
    /// In a rule that holds beyond one request, whatever else it says.
    pub(in crate::facts) lasting: CueSet,
    /// At the start of a text.
    pub(in crate::facts) approve: CueSet,
    /// At the start of a text.
    pub(in crate::facts) refuse: CueSet,
    pub(in crate::facts) choose: CueSet,
    pub(in crate::facts) reverse: CueSet,
    pub(in crate::facts) gave_up: CueSet,
    pub(in crate::facts) untested: CueSet,
    pub(in crate::facts) found: CueSet,
    pub(in crate::facts) remaining: CueSet,
    pub(in crate::facts) unfinished: CueSet,
    /// Excludes a match of `unfinished`.
    pub(in crate::facts) finished: CueSet,
    /// At the start of a text.
    pub(in crate::facts) announce: CueSet,
    /// In a sentence about a failure or gap that no longer exists.
    pub(in crate::facts) fixed: CueSet,
    /// In a sentence about how the work proceeds, not what came of it.
    pub(in crate::facts) narration: CueSet,
    /// At the start of a text that cannot be understood without the one before it.
    pub(in crate::facts) back_reference: CueSet,
    /// A proposal was decided, done or withdrawn.
    pub(in crate::facts) withdraws: CueSet,
    /// In a sentence that what is found later replaces.
    pub(in crate::facts) passing: CueSet,
    pub(in crate::facts) recommends: CueSet,
    pub(in crate::facts) defect: CueSet,
}

/// Compiled once. A file that does not parse gives no cues; a test checks that all do.
pub(in crate::facts) static CUES: LazyLock<Cues> = LazyLock::new(|| {
    let languages: Vec<Language> = FILES.iter().filter_map(|it| toml::from_str(it).ok()).collect();
    let any = |start: bool, list: fn(&Language) -> &Vec<String>| {
        // Plain words in a group of their own become one trie, which costs no more per character than one word.
        let cues = |words: bool| {
            let those = languages.iter().filter(|it| it.words == words).flat_map(list).map(String::as_str);
            let (plain, patterns): (Vec<&str>, Vec<&str>) = those.partition(|it| regex::escape(it) == *it);
            let plain = (!plain.is_empty()).then(|| format!("({})", plain.join("|")));
            plain.iter().map(String::as_str).chain(patterns).collect::<Vec<_>>().join("|")
        };
        let (spaced, dense) = (cues(true).replace(r"\w", LETTER), cues(false));
        CueSet(AsciiFirstRegex::new(if start {
            format!(r"(?m)^\W*(?:(?:{spaced})\b|{dense})")
        } else {
            // `\b` alone would require a word character where a cue begins with punctuation.
            format!(r"(?m)(?:^|\b|\s)(?:{spaced})(?:\b|$|\s)|{dense}")
        }))
    };
    Cues {
        forbid: any(false, |it| &it.forbid),
        require: any(false, |it| &it.require),
        prefer: any(false, |it| &it.prefer),
        standing: any(false, |it| &it.standing),
        not_rule: any(false, |it| &it.not_rule),
        once: any(false, |it| &it.once),
        lasting: any(false, |it| &it.lasting),
        approve: any(true, |it| &it.approve),
        refuse: any(true, |it| &it.refuse),
        choose: any(false, |it| &it.choose),
        reverse: any(false, |it| &it.reverse),
        gave_up: any(false, |it| &it.gave_up),
        untested: any(false, |it| &it.untested),
        found: any(false, |it| &it.found),
        remaining: any(false, |it| &it.remaining),
        unfinished: any(false, |it| &it.unfinished),
        finished: any(false, |it| &it.finished),
        announce: any(true, |it| &it.announce),
        fixed: any(false, |it| &it.fixed),
        narration: any(false, |it| &it.narration),
        back_reference: any(true, |it| &it.back_reference),
        withdraws: any(false, |it| &it.withdraws),
        passing: any(false, |it| &it.passing),
        recommends: any(false, |it| &it.recommends),
        defect: any(false, |it| &it.defect),
    }
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_parse_and_compile() {
        for file in FILES {
            let it: Language = toml::from_str(file).unwrap();
            for cue in [
                &it.forbid,
                &it.require,
                &it.prefer,
                &it.standing,
                &it.not_rule,
                &it.once,
                &it.lasting,
                &it.approve,
                &it.refuse,
                &it.choose,
                &it.reverse,
                &it.gave_up,
                &it.untested,
                &it.found,
                &it.remaining,
                &it.unfinished,
                &it.finished,
                &it.announce,
                &it.fixed,
                &it.narration,
                &it.back_reference,
                &it.withdraws,
                &it.passing,
                &it.recommends,
                &it.defect,
            ]
            .into_iter()
            .flatten()
            {
                regex::Regex::new(cue).unwrap_or_else(|error| panic!("{cue}: {error}"));
                let plain = cue.replace(r"\S", "").replace(r"\W", "");
                assert_eq!(plain, plain.to_lowercase(), "cues are looked for in small letters");
            }
        }
        let has = |list: &CueSet, text: &str| list.is_in(&Lowercased::of(text));
        assert!(has(&CUES.forbid, "Never push") && has(&CUES.remaining, "next step"));
        assert!(has(&CUES.forbid, "НЕ ТРОГАЙ это") && has(&CUES.approve, "Да"));
        assert!(has(&CUES.forbid, "Готово, don't push to main") && has(&CUES.forbid, "done — never push"));
        // Words that begin like a cue of another language.
        for text in
            ["Könntest du das erklären?", "Nötig ist nur SQLite", "Síncrono por favor", "Kế hoạch tiếp theo"]
        {
            assert!(!has(&CUES.approve, text) && !has(&CUES.refuse, text), "{text}");
        }
        assert!(!has(&CUES.forbid, "Le module de génie logiciel est dans src/core"));
    }

    #[test]
    fn small_letters_stand_where_the_large_ones_did() {
        for text in ["Plain", "no capitals", "ÄÖ ẞ İ K Å Ω Ж ſ", "日本語 ＡＢ", ""] {
            let lower = Lowercased::of(text).text;
            let starts = |it: &str| it.char_indices().map(|it| it.0).collect::<Vec<_>>();
            assert_eq!(starts(&lower), starts(text), "{text}");
        }
        assert_eq!(Lowercased::of("ÄÖ ẞ İ Ж").text, "äö ẞ İ ж");
    }
}
