//! The words by which people give rules, choose and turn round, as data: one file a language in `prompts/cues/`.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

/// A language's file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Language {
    /// Words stand between spaces or punctuation.
    words: bool,
    forbid: Vec<String>,
    require: Vec<String>,
    prefer: Vec<String>,
    void: Vec<String>,
    approve: Vec<String>,
    refuse: Vec<String>,
    choose: Vec<String>,
    reverse: Vec<String>,
    gave_up: Vec<String>,
    untested: Vec<String>,
    found: Vec<String>,
    remaining: Vec<String>,
    announce: Vec<String>,
}

/// Every language, one line each.
const FILES: [&str; 8] = [
    include_str!("../../prompts/cues/en.toml"),
    include_str!("../../prompts/cues/zh.toml"),
    include_str!("../../prompts/cues/ja.toml"),
    include_str!("../../prompts/cues/ko.toml"),
    include_str!("../../prompts/cues/es.toml"),
    include_str!("../../prompts/cues/ru.toml"),
    include_str!("../../prompts/cues/de.toml"),
    include_str!("../../prompts/cues/fr.toml"),
];

/// What `\w` is in the languages with spaces: Latin, its marks, Cyrillic. That of all scripts would be most of what is
/// compiled.
const LETTER: &str =
    r"[0-9_A-Za-z\u{AA}\u{BA}\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{24F}\u{300}-\u{36F}\u{400}-\u{52F}]";

/// The lists of all languages together, each one expression.
pub(super) struct Cues {
    pub(super) forbid: Regex,
    pub(super) require: Regex,
    pub(super) prefer: Regex,
    pub(super) void: Regex,
    /// At the start of a text.
    pub(super) approve: Regex,
    /// At the start of a text.
    pub(super) refuse: Regex,
    pub(super) choose: Regex,
    pub(super) reverse: Regex,
    pub(super) gave_up: Regex,
    pub(super) untested: Regex,
    pub(super) found: Regex,
    pub(super) remaining: Regex,
    /// At the start of a text.
    pub(super) announce: Regex,
}

/// The cues, read once. A file that does not parse gives no cues; a test sees to it that all do.
pub(super) static CUES: LazyLock<Cues> = LazyLock::new(|| {
    let languages: Vec<Language> = FILES.iter().filter_map(|it| toml::from_str(it).ok()).collect();
    // The ends are written once for all languages that have them: their classes are most of what is compiled.
    let any = |start: bool, list: fn(&Language) -> &Vec<String>| {
        let cues = |words: bool| {
            let those = languages.iter().filter(|it| it.words == words);
            those.flat_map(list).map(String::as_str).collect::<Vec<_>>().join("|")
        };
        let (spaced, dense) = (cues(true).replace(r"\w", LETTER), cues(false));
        compiled(&if start {
            format!(r"(?im)^\W*(?:(?:{spaced})\b|{dense})")
        } else {
            // `\b` would ask for a word character where a cue begins with punctuation or the line.
            format!(r"(?im)(?:^|\b|\s)(?:{spaced})(?:\b|$|\s)|{dense}")
        })
    };
    Cues {
        forbid: any(false, |it| &it.forbid),
        require: any(false, |it| &it.require),
        prefer: any(false, |it| &it.prefer),
        void: any(false, |it| &it.void),
        approve: any(true, |it| &it.approve),
        refuse: any(true, |it| &it.refuse),
        choose: any(false, |it| &it.choose),
        reverse: any(false, |it| &it.reverse),
        gave_up: any(false, |it| &it.gave_up),
        untested: any(false, |it| &it.untested),
        found: any(false, |it| &it.found),
        remaining: any(false, |it| &it.remaining),
        announce: any(true, |it| &it.announce),
    }
});

/// An expression of ours. One that does not compile matches nothing; the tests compile all of them.
pub(super) fn compiled(pattern: &str) -> Regex {
    #[allow(clippy::expect_used, reason = "a literal of ours, which the tests compile")]
    regex::RegexBuilder::new(pattern)
        .size_limit(64 << 20)
        .build()
        .or_else(|_| Regex::new(r"[^\s\S]"))
        .expect("the empty class compiles")
}

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
                &it.void,
                &it.approve,
                &it.refuse,
                &it.choose,
                &it.reverse,
                &it.gave_up,
                &it.untested,
                &it.found,
                &it.remaining,
                &it.announce,
            ]
            .into_iter()
            .flatten()
            {
                Regex::new(cue).unwrap_or_else(|error| panic!("{cue}: {error}"));
            }
        }
        assert!(CUES.forbid.is_match("Never push") && CUES.remaining.is_match("next step"));
    }
}
