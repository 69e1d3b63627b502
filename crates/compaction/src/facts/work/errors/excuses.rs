//! Which failures a statement of the model excuses: pre-existing, unrelated, flaky, expected.

use super::Errors;
use super::resolution::{MISSING_FILE, WRONG_CALL};
use crate::facts::Detail;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::{is_machine_output, sentences};
use crate::facts::work::command::{self, ParsedCommand};

/// Excuses for a failure that is not the work's fault, and the words with which a model gives them.
pub(in crate::facts) static EXCUSES: [(&str, AsciiFirstRegex); 4] = [
    excuse(
        "pre-existing",
        concat!(
            r"(?i)\bpre-?existing\b|\b(?:already|also) fail(?:s|ed|ing) (?:on|before|without)\b|\bfail(?:s|ed)? (?:on|in) (?:main|master)\b",
            r"|bereits (?:vorher|vorhanden)|préexistant|preexistente|既存|既有|기존",
        ),
    ),
    excuse("unrelated", r"(?i)\bunrelated\b"),
    excuse("flaky", r"(?i)\b(?:flaky|flakiness)\b"),
    excuse(
        "expected",
        r"\b(?:TDD|RED)\b|(?i:\b(?:expected|intended) (?:to fail|failures?)\b|\bfail(?:s|ed|ing)? as (?:expected|intended)\b)",
    ),
];

const fn excuse(word: &'static str, pattern: &'static str) -> (&'static str, AsciiFirstRegex) {
    (word, AsciiFirstRegex::new(pattern))
}

static DOUBTED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\?\s*$|\b(?:not|n['’]t|whether|if|might|may|maybe|could|perhaps|probably|check|verify|likely)\b",
);

/// The model goes on to mend the failure, or says that it is partly its own: "… plus pre-existing ones. Let me fix them".
static MENDS: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:let me|i['’]ll|i will) (?:now )?(?:fix|address|correct) (?:them|these|those|it|all of them|both)(?: now)?\s*(?:[.,:;!)]|$)|\bnow fixable\b|\b(?:errors?|failures?|issues?) from (?:our|my) (?:changes|edits)\b",
);

/// The model says that it runs a command to see it fail.
static WANTS_FAILURE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\bnegative (?:check|test|case)s?\b|\bred phase\b|\bfails? without (?:the|this) (?:fix|change)\b",
    r"|\b(?:verify|confirm|check|prove|ensure|see)(?: that)? (?:it|they|(?:the|new) \w+) fails?\b|\b(?:it|this|that|they) (?:should|must) fail\b",
));

/// The sentence counts no failures, so what it calls pre-existing are warnings.
static COUNTS_NONE: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)\b(?:0|no|zero) (?:errors?|failures?)\b|エラー\s*[:：は]?\s*(?:0|なし|無し)");

impl Errors<'_> {
    /// Excuses the failure of a check that, as `said` (command or description) tells, was run to see it fail.
    pub(in crate::facts::work) fn note_wanted_failure(&mut self, number: usize, said: &str) {
        if !WANTS_FAILURE.is_match(said) {
            return;
        }
        for error in self.recent().filter(|it| it.message == number) {
            let other = MISSING_FILE.is_match(&error.text) || WRONG_CALL.is_match(&error.text);
            if let Detail::Error { of: Some(of), excused: excused @ None, .. } = &mut error.detail
                && !other
                && command::checks_or_delivers(of)
            {
                *excused = Some((number, "expected"));
            }
        }
    }

    /// Excuses the newest failures that the model calls pre-existing, unrelated, flaky or expected.
    pub(in crate::facts::work) fn note_excuse(&mut self, number: usize, text: &str) {
        /// Number of messages after the failure within which a model says so.
        const SOON: usize = 8;
        let Some(newest) = self.facts.iter().map(|it| it.message).max() else { return };
        if number.saturating_sub(newest) > SOON || excuse_in(text).is_none() || MENDS.is_match(text) {
            return;
        }
        let says = |it: &&str| {
            CUES.failure.is_in(&Lowercased::of(it))
                && !DOUBTED.is_match(it)
                && !COUNTS_NONE.is_match(it)
                && !is_machine_output(it)
        };
        let Some(word) = sentences(text).into_iter().filter(says).find_map(excuse_in) else { return };
        for error in self.recent().filter(|it| it.message == newest) {
            if let Detail::Error { of: Some(of), excused, .. } = &mut error.detail
                && (command::checks_or_delivers(of) || ParsedCommand::of(of).runs_package_script())
            {
                *excused = Some((number, word));
            }
        }
    }
}

/// The first excuse in a text.
fn excuse_in(text: &str) -> Option<&'static str> {
    let found = EXCUSES.iter().filter_map(|(word, pattern)| Some((pattern.find(text)?.start(), *word)));
    found.min().map(|it| it.1)
}
