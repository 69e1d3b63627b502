//! Prohibitions that the user took back: "don't push yet", then "commit and push"; "no camera yet", then "add the camera".

use std::sync::LazyLock;

use crate::facts::talk::orders::polarity;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::sentences;
use crate::facts::text::stretches::{Stretch, stretches};
use crate::facts::voice::Prompt;
use crate::facts::{Detail, Fact, Polarity, Voice};
use history::History;

/// Steps that a user forbids for the moment.
const STEPS: &str = "commit|push|merge|deploy|publish|release";

/// A prohibition of one step that names nothing else: "never push to main" also binds who is told to push.
static BARE: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
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
static ORDER: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::of(format!(
        concat!(
            r"(?i)(?:^\W*|\b(?:and|then|now|please|ahead and|you can|let['’]?s) )(?:(?:now|please|then|ok(?:ay)?|yes|you can|can you|go ahead and|let['’]?s)\W+)*",
            r"({steps})\b",
        ),
        steps = STEPS
    ))
});

/// A prohibition for the moment, with what it names.
static NOT_YET: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:do not|don['’]?t|no need to|not need to) (?:\w+ )?(?:add|build|create|implement|introduce|include|integrate|make|use|start|begin|write)\b(.{3,60}?)\b(?:just )?yet\b",
);

/// A request to do what was not to be done yet.
static WANTS: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:add|build|create|finish|fix|implement|improve|integrate|introduce|make|start|use)\b",
);

/// The words that name something in what is not to be done yet: `Camera` in "Do not add Camera yet".
fn things_of(text: &str) -> Option<Vec<String>> {
    /// Bytes of a word that names something.
    const LONG: usize = 5;
    const LINKS: [&str; 6] = ["about", "anything", "other", "these", "those", "their"];
    let named = NOT_YET.captures(text)?.get(1)?.as_str().to_lowercase();
    let words = named.split(|it: char| !it.is_alphanumeric());
    let things: Vec<String> =
        words.filter(|it| it.len() >= LONG && !LINKS.contains(it)).map(str::to_owned).collect();
    (!things.is_empty()).then_some(things)
}

/// Drops prohibitions of a step, or for the moment, whose matter the user asked for later.
pub(in crate::facts) fn drop_overruled(history: &History, facts: &mut Vec<Fact>) {
    let of_user = |it: &Fact| it.detail == Detail::Rule(Polarity::Forbid) && it.voice() == Voice::User;
    let wants = |it: &str| WANTS.is_match(it) && polarity(it) != Some(Polarity::Forbid);
    let later = |it: &Fact, thing: &String| {
        let since = history.messages().iter().skip(it.message + 1).filter_map(Prompt::of);
        let mut parts =
            since.flat_map(|it| it.parts().iter().map(|it| it.to_lowercase()).collect::<Vec<_>>());
        parts.any(|it| sentences(&it).iter().any(|it| it.contains(thing.as_str()) && wants(it)))
    };
    let asked_since =
        |it: &Fact| things_of(&it.text).is_some_and(|all| all.iter().all(|thing| later(it, thing)));
    facts.retain(|it| !(of_user(it) && asked_since(it)));
    let step = |it: &Fact| {
        let forbids = it.detail == Detail::Rule(Polarity::Forbid) && it.voice() == Voice::User;
        let found = forbids.then(|| BARE.captures(&it.text)).flatten()?;
        Some(found.get(1)?.as_str().to_lowercase())
    };
    if !facts.iter().any(|it| step(it).is_some()) {
        return;
    }
    let mut ordered: Vec<(usize, String)> = Vec::new();
    for (number, message) in history.messages().iter().enumerate() {
        let Some(prompt) = Prompt::of(message) else { continue };
        let typed = prompt.parts().iter().flat_map(|it| stretches(it)).filter(|it| it.0 == Stretch::Typed);
        for sentence in typed.flat_map(|it| sentences(it.1)).filter(|it| polarity(it).is_none()) {
            let found = ORDER.captures_iter(sentence).filter_map(|it| it.get(1));
            ordered.extend(found.map(|it| (number, it.as_str().to_lowercase())));
        }
    }
    let overruled = |of: &Fact, verb: &str| ordered.iter().any(|it| it.0 > of.message && it.1 == verb);
    facts.retain(|it| !step(it).is_some_and(|verb| overruled(it, &verb)));
}
