//! What the user overruled: prohibitions that were taken back ("don't push yet", then "commit and push"), and replies that
//! did not solve the problem.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::facts::talk::report::speaks;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::is_question;
use crate::facts::text::regions::{Region, regions};
use crate::facts::text::rule::polarity;
use crate::facts::text::{flat, sentences};
use crate::facts::voice::Prompt;
use crate::facts::{Detail, Fact, Polarity, Voice};
use history::History;

/// Steps that a user forbids for the moment.
const STEPS: &str = "commit|push|merge|deploy|publish|release";

/// A prohibition of a step without an object. "Never push to main" also binds an ordered push.
static FORBIDS_STEP: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::of(format!(
        concat!(
            r"(?i)^(?:.*[,;])?\W*(?:(?:please|pls|and|but|so|just|also|ok(?:ay)?)\W+)*(?:do not|don['’]?t) ({steps})",
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
        // What stands before the prohibition must be no rule of its own, which would go with it.
        let alone = |text: &str| text.rsplit_once([',', ';']).is_none_or(|it| polarity(it.0).is_none());
        let step = || FORBIDS_STEP.captures(&it.text).filter(|_| alone(&it.text));
        let found = || step().or_else(|| FORBIDS_THING.captures(&it.text));
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

/// A prompt that says that the reply before it did not solve the problem, or is not wanted.
static REFUTES: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:hmm+|nope|no|sorry|ok|unfortunately)\b\W*){0,2}(?:(?:it|that|this)(?:['’]s| is)? )?(?:",
    r"still (?:can['’]?t|cannot|the same\b|doesn['’]?t|does not|broken|fail\w*|no (?:go|luck|change|effect)\b|not (?:work|fix|solv|there|show|display|load)\w*",
    r"|(?:get|see|hav)(?:ting|ing)? (?:the |an? )?(?:same |this )?(?:error|issue|problem|exception))",
    r"|(?:the )?same (?:error|problem|issue|result)s?\b|(?:doesn['’]?t|didn['’]?t|does not|did not) (?:work|help|fix|solve)\b|not working\b",
    r"|(?:wait\W+)?(?:it|that|this)(?:['’]s| is) (?:an? different (?:app|error|file|issue|one|problem|program)|something else|not (?:it|that|right|the (?:cause|issue|problem))|(?:the )?wrong)\b",
    r"|failed to compile\b|compiled with (?:errors|problems)\b|i (?:still |now |am still )?(?:get|see|have)(?:ting|ing)? (?:the |these |this |an? )?(?:\w+ )?errors?\b",
    r"|i (?:don['’]?t|do not) think (?:that|it|this)(?:['’]s| is) (?:it|right|the (?:cause|issue|problem))\b",
    r"|(?:(?:given|since|because|considering) [^.?!]{0,80}, )?i (?:think|feel|guess)(?: that)? (?:it['’]?s|it is|it would be|we(?:['’]re| are)) (?:probably |maybe )?(?:better|safer|wiser) (?:not to|to not|off not)\b",
    r"|to say (?:it['’]s|it is) the same|immer noch (?:nicht|kaputt|derselbe|der gleiche|die gleiche)|(?:geht (?:immer noch )?nicht|funktioniert nicht)\b",
    r"|toujours (?:pas de changement|le même (?:problème|résultat)|la même erreur)|ça ne marche (?:toujours )?pas",
    r"|sigue (?:sin (?:funcionar|aparecer|cargar|salir)|igual\b|el mismo|dando)|todavía no (?:funciona|aparece|carga|sale)|no funcion\w+",
    r"|continua (?:sem (?:funcionar|aparecer)|com o mesmo|dando)|ainda não (?:funciona|aparece|carrega)|não funcion\w+",
    r"|(?:还是|還是|仍然|依然)(?:报错|報錯|一样|一樣|不行|不对|不對|没有变|没变|没有?反应|沒有?反應|没有任何|沒有任何|有问题|有問題)|没有(?:生效|变化|效果)|不行(?:[。，,!！]|$)",
    r"|여전히|아직도|まだ(?:動か|直って|同じ|エラー)|直って(?:い)?ない)",
));

/// A prompt that says that the problem is solved.
static SOLVED: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:ok(?:ay)?|yes|yeah|great|thanks|thank you|perfect|nice|cool|now)\b\W*){0,3}(?:it|that|this)(?:['’]s| is)? (?:now |all )?(?:works|worked|working|fixed|solved)\b(?: now)?(?:[.!,]|$)",
    r"|^\W*(?:jetzt (?:geht|funktioniert) es|es (?:geht|funktioniert) jetzt|ça marche(?: maintenant)?|ya funciona|agora funciona|теперь работает|(?:现在)?(?:可以了|好了|解决了|解決了)(?:[。，,!！]|$)|動きました|直りました|해결됐)",
));

/// The replies that the user's next message refutes, unless a later one says that the problem is solved: that message, and
/// its first sentence.
pub fn refuted_replies(history: &History) -> HashMap<usize, (usize, String)> {
    /// A longer sentence may be about something else. Characters.
    const SHORT: usize = 160;
    /// Number of prompts within which the user says that it is solved.
    const SOON: usize = 6;
    let messages = history.messages();
    let refutes = |at: usize| {
        let prompt = Prompt::of(&messages[at])?;
        let first = sentences(prompt.parts().first()?).first().copied()?.to_owned();
        let reply = messages[..at].iter().rposition(|it| it.is_prompt() || speaks(it))?;
        let is_short = first.chars().count() <= SHORT && !messages[reply].is_prompt();
        let refutes = REFUTES.is_match(&first) && polarity(&first).is_none();
        (is_short && refutes).then(|| (reply, (at, flat(&first))))
    };
    let prompts: Vec<usize> = history.prompts().collect();
    let says_solved = |at: &usize| Prompt::of(&messages[*at]).is_some_and(|it| SOLVED.is_match(&it.whole()));
    let stands = |it: &usize| !prompts[it + 1..].iter().take(SOON).any(says_solved);
    (0..prompts.len()).filter(stands).filter_map(|it| refutes(prompts[it])).collect()
}
