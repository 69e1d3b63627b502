//! A regex that is compiled twice, with ASCII and with Unicode classes. ASCII text uses the first, whose word
//! boundaries are about thirty times faster.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::{CaptureMatches, Captures, Match, Matches, Regex};

/// A regular expression with two variants: for texts whose letters are all ASCII, and for others.
///
/// In the first, `\w`, `\W`, `\d` and `\b` are ASCII classes, which for these texts match the same. The Unicode classes
/// take most of the time to compile an expression (one of ours took 245 million instructions), and beside a non-ASCII
/// character such as a dash, a Unicode word boundary falls back to an engine that is about thirty times slower.
///
/// Each is compiled when a text needs it.
pub(crate) struct AsciiFirstRegex {
    pattern: Cow<'static, str>,
    ascii: OnceLock<Regex>,
    unicode: OnceLock<Regex>,
}

impl AsciiFirstRegex {
    /// A pattern that does not compile matches nothing, and fails an assertion in tests.
    pub(crate) const fn new(pattern: &'static str) -> Self {
        Self { pattern: Cow::Borrowed(pattern), ascii: OnceLock::new(), unicode: OnceLock::new() }
    }

    /// For a pattern that is built at run time.
    pub(crate) fn of(pattern: String) -> Self {
        Self { pattern: pattern.into(), ascii: OnceLock::new(), unicode: OnceLock::new() }
    }

    /// The variant for a text. `ascii`: whether [`has_ascii_letters_only`] holds for it.
    pub(crate) fn for_text(&self, ascii: bool) -> &Regex {
        if ascii {
            self.ascii.get_or_init(|| compile(&self.in_ascii()))
        } else {
            self.unicode.get_or_init(|| compile(&self.pattern))
        }
    }

    fn in_ascii(&self) -> String {
        self.pattern
            .replace(r"\w", "[0-9A-Za-z_]")
            .replace(r"\W", "[^0-9A-Za-z_]")
            .replace(r"\d", "[0-9]")
            .replace(r"\b", r"(?-u:\b)")
    }

    fn on(&self, text: &str) -> &Regex {
        self.for_text(has_ascii_letters_only(text))
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.on(text).is_match(text)
    }

    pub(crate) fn find<'t>(&self, text: &'t str) -> Option<Match<'t>> {
        self.on(text).find(text)
    }

    pub(crate) fn find_iter<'r, 't>(&'r self, text: &'t str) -> Matches<'r, 't> {
        self.on(text).find_iter(text)
    }

    pub(crate) fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.on(text).captures(text)
    }

    pub(crate) fn captures_iter<'r, 't>(&'r self, text: &'t str) -> CaptureMatches<'r, 't> {
        self.on(text).captures_iter(text)
    }

    pub(crate) fn replace_all<'t>(&self, text: &'t str, with: &str) -> Cow<'t, str> {
        self.on(text).replace_all(text, with)
    }
}

/// Whether all letters and digits of a text are ASCII, without combining accents.
pub(crate) fn has_ascii_letters_only(text: &str) -> bool {
    let other = |it: char| !it.is_ascii() && (it.is_alphanumeric() || ('\u{300}'..='\u{36F}').contains(&it));
    text.is_ascii() || !text.contains(other)
}

fn compile(pattern: &str) -> Regex {
    let built = regex::RegexBuilder::new(pattern).size_limit(64 << 20).build();
    debug_assert!(built.is_ok(), "{built:?}");
    #[allow(clippy::expect_used, reason = "a literal of ours")]
    built.or_else(|_| Regex::new(r"[^\s\S]")).expect("the empty class compiles")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATTERNS: [&str; 4] =
        [r"\b\w+\b", r"(?m)^\W*(?:no|nö)\b", r"\d{2,}|\w-\w", r"(?:^|\b|\s)(?:never|，|никогда)(?:\b|$|\s)"];

    #[test]
    fn borders_are_unicode_where_letters_are() {
        let words = |text: &str| -> Vec<String> {
            AsciiFirstRegex::new(PATTERNS[0]).find_iter(text).map(|it| it.as_str().to_owned()).collect()
        };
        assert_eq!(words("Könnte—a ’b’"), ["Könnte", "a", "b"]);
        assert_eq!(words("only—a ’b’ ✓c"), ["only", "a", "b", "c"]);
        assert_eq!(words("修复-bug"), ["修复", "bug"]);
    }

    proptest! {
        #[test]
        fn both_find_the_same(text in "([abnoöver 0-9A_—’✓，。никогда修\u{301}\n-]|never|no){0,24}") {
            for pattern in PATTERNS {
                let found: Vec<_> = AsciiFirstRegex::new(pattern).find_iter(&text).map(|it| it.range()).collect();
                let as_it_is: Vec<_> = Regex::new(pattern).unwrap().find_iter(&text).map(|it| it.range()).collect();
                prop_assert_eq!(found, as_it_is, "{} in {:?}", pattern, &text);
            }
        }
    }
}
