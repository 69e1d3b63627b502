//! Prohibitions that the user took back: "don't push yet", then "commit and push"; "no camera yet", then "add the camera".

use std::sync::LazyLock;

use crate::facts::talk::is_question;
use crate::facts::talk::orders::polarity;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::regions::{Region, regions};
use crate::facts::text::sentences;
use crate::facts::voice::Prompt;
use crate::facts::{Detail, Fact, Polarity, Voice};
use history::History;

/// Steps that a user forbids for the moment.
const STEPS: &str = "commit|push|merge|deploy|publish|release";

/// A prohibition of a step without an object. "Never push to main" also binds an ordered push.
static FORBIDS_STEP: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::of(format!(
        concat!(
            r"(?i)^\W*(?:(?:please|pls|and|but|so|just|also|ok(?:ay)?)\W+)*(?:do not|don['’]?t) ({steps})",
            r"(?: (?:or|and|/) (?:{steps}))?",
            r"(?:,? (?:anything|it|this|that|them|yet|now|for now|for the moment|until i (?:say so|tell you|ask|confirm)|please))*\W*$",
        ),
        steps = STEPS
    ))
});
/// An order to take one of these steps.
static ORDERS_STEP: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::of(format!(
        concat!(
            r"(?i)(?:^\W*|\b(?:and|then|now|please|ahead and|you can|let['’]?s) )(?:(?:now|please|then|ok(?:ay)?|yes|you can|can you|go ahead and|let['’]?s)\W+)*",
            r"({steps})\b",
        ),
        steps = STEPS
    ))
});

/// A prohibition of one thing for the moment: `don't add the camera yet`.
static FORBIDS_THING: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:please|pls|and|but|so|just|also|ok(?:ay)?)\W+)*(?:do not|don['’]?t) ",
    r"(?:add|build|create|implement|introduce|include|integrate) (?:(?:the|a|an|any) )?(\w[\w-]{3,}) (?:just )?yet\W*$",
));
/// An order to do what [`FORBIDS_THING`] forbade: verb, at most two words, thing.
static ORDERS_THING: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:please|pls|and|now|then|next|ok(?:ay)?|yes|great|good|nice|let['’]?s|you can|can you|go ahead and)\W+)*",
    r"(?:add|build|create|implement|introduce|include|integrate) (?:[\w-]+ ){0,2}?([\w-]{4,})\b",
));
/// Words that turn an order into something else: `add the tests without the camera`.
static QUALIFIES_ORDER: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)\b(?:without|later|before|after|when|if|not|never|except|once|no)\b|n['’]t\b");

/// Drops prohibitions that match [`FORBIDS_STEP`] or [`FORBIDS_THING`] if the user later ordered the same step
/// or thing.
pub(in crate::facts) fn drop_overruled(history: &History, facts: &mut Vec<Fact>) {
    let forbidden = |it: &Fact| {
        let forbids = it.detail == Detail::Rule(Polarity::Forbid) && it.voice() == Voice::User;
        let found = || FORBIDS_STEP.captures(&it.text).or_else(|| FORBIDS_THING.captures(&it.text));
        Some(forbids.then(found)??.get(1)?.as_str().to_lowercase())
    };
    if !facts.iter().any(|it| forbidden(it).is_some()) {
        return;
    }
    let mut ordered: Vec<(usize, String)> = Vec::new();
    for (number, message) in history.messages().iter().enumerate() {
        let Some(prompt) = Prompt::of(message) else { continue };
        let typed = prompt.parts().iter().flat_map(|it| regions(it)).filter(|it| it.0 == Region::Typed);
        for sentence in typed.flat_map(|it| sentences(it.1)).filter(|it| polarity(it).is_none()) {
            let found = ORDERS_STEP.captures_iter(sentence).filter_map(|it| it.get(1));
            ordered.extend(found.map(|it| (number, it.as_str().to_lowercase())));
            let thing = ORDERS_THING
                .captures(sentence)
                .filter(|_| !is_question(sentence) && !QUALIFIES_ORDER.is_match(sentence));
            ordered.extend(thing.and_then(|it| it.get(1)).map(|it| (number, it.as_str().to_lowercase())));
        }
    }
    let overruled = |of: &Fact, what: &str| ordered.iter().any(|it| it.0 > of.message && it.1 == what);
    facts.retain(|it| !forbidden(it).is_some_and(|what| overruled(it, &what)));
}
