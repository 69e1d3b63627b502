//! Cues: phrases by which people give rules, choose and change their minds, as data: one file per language in `cues/`.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use serde::Deserialize;

use super::ascii_first::{AsciiFirstRegex, has_ascii_letters_only};

/// Declares the lists, one row each: a new list needs a row here and an entry in every file.
macro_rules! cues {
    ($($(#[$doc:meta])* $list:ident: $place:ident,)*) => {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Language {
            /// The language separates words by spaces or punctuation.
            words: bool,
            $($list: Vec<String>,)*
        }

        pub(in crate::facts) struct Cues {
            $($(#[$doc])* pub(in crate::facts) $list: CueSet,)*
        }

        impl Cues {
            fn of(languages: &[Language]) -> Self {
                Self { $($list: CueSet::of(languages, Place::$place, |it| &it.$list),)* }
            }
        }

        #[cfg(test)]
        impl Language {
            fn all(&self) -> impl Iterator<Item = &String> {
                [$(&self.$list),*].into_iter().flatten()
            }
        }
    };
}

cues! {
    forbid: Anywhere,
    require: Anywhere,
    prefer: Anywhere,
    standing: Anywhere,
    not_rule: Anywhere,
    /// In a rule for one request only.
    once: Anywhere,
    /// In a rule that holds beyond one request, whatever else it says.
    lasting: Anywhere,
    approve: Start,
    refuse: Start,
    choose: Anywhere,
    reverse: Anywhere,
    gave_up: Anywhere,
    untested: Anywhere,
    found: Anywhere,
    remaining: Anywhere,
    unfinished: Anywhere,
    /// Excludes a match of `unfinished`.
    finished: Anywhere,
    announce: Start,
    /// In a sentence about a failure or gap that no longer exists.
    fixed: Anywhere,
    /// In a sentence about how the work proceeds, not what came of it.
    narration: Anywhere,
    /// In a text that cannot be understood without the one before it.
    back_reference: Start,
    /// A proposal was decided, done or withdrawn.
    withdraws: Anywhere,
    /// In a sentence that what is found later replaces.
    passing: Anywhere,
    recommends: Anywhere,
    /// In what the model says of a call that was refused.
    denied: Anywhere,
    defect: Anywhere,
    failure: Anywhere,
    waiting: Anywhere,
    /// In a sentence that turns or concludes the one before it.
    turns: Start,
    /// In a sentence from which nothing follows.
    aside: Anywhere,
    /// In a sentence that says that something was found or done, unless it also names it.
    hollow: Anywhere,
    no_news: Start,
    /// The user refers to a point of a list by its number.
    refers: Anywhere,
    /// The user orders what a report found or proposed.
    carry_out: Anywhere,
    /// The model reports that it is done.
    carried_out: Anywhere,
}

/// Where in a text the cues of a list count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Anywhere,
    /// At the start of a line.
    Start,
}

const FILES: [&str; 9] = [
    include_str!("cues/en.toml"),
    include_str!("cues/zh.toml"),
    include_str!("cues/ja.toml"),
    include_str!("cues/ko.toml"),
    include_str!("cues/es.toml"),
    include_str!("cues/pt.toml"),
    include_str!("cues/ru.toml"),
    include_str!("cues/de.toml"),
    include_str!("cues/fr.toml"),
];

/// `\w` for the languages with spaces: Latin with combining marks, and Cyrillic. With all scripts, the class
/// would take most of the compile time.
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

/// The cues of one kind in all languages, as one regex.
pub(in crate::facts) struct CueSet(AsciiFirstRegex);

impl CueSet {
    fn of(languages: &[Language], place: Place, list: fn(&Language) -> &Vec<String>) -> Self {
        // Plain words in a group of their own become one trie, which costs no more per character than one word.
        let cues = |words: bool| {
            let those = languages.iter().filter(|it| it.words == words).flat_map(list).map(String::as_str);
            let (plain, patterns): (Vec<&str>, Vec<&str>) = those.partition(|it| regex::escape(it) == *it);
            let plain = (!plain.is_empty()).then(|| format!("({})", plain.join("|")));
            plain.iter().map(String::as_str).chain(patterns).collect::<Vec<_>>().join("|")
        };
        let (spaced, dense) = (cues(true).replace(r"\w", LETTER), cues(false));
        let set = AsciiFirstRegex::of(match place {
            Place::Start => format!(r"(?m)^\W*(?:(?:{spaced})\b|{dense})"),
            // `\b` alone would require a word character where a cue begins with punctuation.
            Place::Anywhere => format!(r"(?m)(?:^|\b|\W)(?:{spaced})(?:\b|$|\s)|{dense}"),
        });
        // Compiled now, not on first use, so that a server can do it before its first call.
        set.for_text(true);
        Self(set)
    }

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

/// Compiled once. A file that does not parse gives no cues; a test checks that all do.
pub(in crate::facts) static CUES: LazyLock<Cues> = LazyLock::new(|| {
    let languages: Vec<Language> = FILES.iter().filter_map(|it| toml::from_str(it).ok()).collect();
    Cues::of(&languages)
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_parse_and_compile() {
        for file in FILES {
            let it: Language = toml::from_str(file).unwrap();
            for cue in it.all() {
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
