//! Rules and orders of the user: standing rules, and orders for the task at hand.

use std::borrow::Cow;

use super::statements;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::regions::{Region, regions};
use crate::facts::text::rule::{
    NO_TO_ALL, after_no, is_standing_rule, only_asks, polarity, rule_topic, without_quotations,
};
use crate::facts::text::{clip, has_marker, offset, sentences};
use crate::facts::voice::Prompt;
use crate::facts::{Detail, Fact, Polarity, Topic};

/// Maximum characters of a rule; of a longer sentence, the clause with the cue is taken.
pub(in crate::facts) const MAX_RULE_CHARS: usize = 420;

/// For each part of a prompt, the byte offsets at which a speaker begins, and whether the speaker is the
/// user. A pasted transcript, `[12] assistant: …`, holds much that the user did not say.
fn speakers(parts: &[Cow<'_, str>]) -> Vec<Vec<(usize, bool)>> {
    let mut user = true;
    let mut marks = 0;
    let mut out: Vec<Vec<(usize, bool)>> = Vec::new();
    for part in parts {
        let mut turns = vec![(0, user)];
        let mut at = 0;
        for line in part.split_inclusive('\n') {
            let rest = line.strip_prefix('[').and_then(|it| it.split_once("] "));
            let said = rest.filter(|it| it.0.bytes().all(|it| it.is_ascii_digit())).map(|it| it.1);
            let turn = match said {
                Some(said) if said.starts_with("user: ") => Some(true),
                Some(said) if said.starts_with("assistant: ") || said.starts_with("tool ") => Some(false),
                _ if line.starts_with(">>> ") => Some(false),
                _ => None,
            };
            if let Some(turn) = turn {
                marks += 1;
                user = turn;
                turns.push((at, user));
            }
            at += line.len();
        }
        out.push(turns);
    }
    if marks < 2 { parts.iter().map(|_| vec![(0, true)]).collect() } else { out }
}

/// Whether a question precedes the document in a prompt: a document that is asked about gives no orders.
fn is_asked_about(regions: &[(Region, &str)]) -> bool {
    let document = regions.iter().position(|it| it.0 == Region::Document);
    document.is_some_and(|at| regions[..at].iter().any(|it| it.1.contains(['?', '？'])))
}

/// The sentences of a prompt that may give orders, each with its part and region.
fn sentences_of<'p>(prompt: &'p Prompt) -> Vec<(&'p str, Region, &'p str)> {
    let speakers = speakers(prompt.parts());
    let of_part = |(part, turns): (&'p Cow<'_, str>, &Vec<(usize, bool)>)| {
        // Codex: the findings of a reviewing model.
        if part.trim_start().starts_with("<user_action>") {
            return Vec::new();
        }
        let regions = regions(part);
        let asked_about = is_asked_about(&regions);
        let orders = |kind: Region| match kind {
            Region::Typed | Region::ClientText => true,
            Region::Document | Region::HarnessText => !asked_about,
            Region::Block | Region::Diff | Region::Log | Region::Transcript => false,
        };
        let own = |it: &str| {
            let at = offset(it, part);
            turns.iter().rev().find(|turn| turn.0 <= at).is_some_and(|it| it.1)
        };
        let told = regions
            .into_iter()
            .filter(|it| orders(it.0))
            .flat_map(|(kind, text)| clauses(text).into_iter().map(move |it| (&**part, kind, untagged(it))));
        told.filter(|it| own(it.2)).collect::<Vec<_>>()
    };
    prompt.parts().iter().zip(&speakers).flat_map(of_part).collect()
}

/// `answers`: the prompt answers a question of the model, so that a "no" at its beginning forbids nothing.
pub(in crate::facts) fn read_rules(number: usize, prompt: &Prompt, answers: bool, facts: &mut Vec<Fact>) {
    let mut of_document: Vec<Fact> = Vec::new();
    let parts = prompt.parts();
    let plans: Vec<Outline> = parts.iter().map(|it| Outline::of(it)).collect();
    let reviews: Vec<&str> = parts.iter().map(|it| &**it).filter(|it| is_review(it)).collect();
    for list in parts.iter().zip(&plans).flat_map(|(part, plan)| plan.bounds(part)) {
        let detail = Detail::Rule(polarity(list).unwrap_or(Polarity::Forbid));
        facts.extend(prompt.quote(list).map(|it| Fact::from_user(Topic::Directives, number, it, detail)));
    }
    // End of the last list that was taken as a whole; its items are skipped.
    let mut told = std::ptr::null();
    for (part, region, sentence) in sentences_of(prompt) {
        let count = sentence.chars().count();
        let within = part.as_bytes().as_ptr_range();
        let listed = within.start <= told && told <= within.end && sentence.as_ptr() < told;
        if count < 5 || count < 12 && sentence.is_ascii() || listed {
            continue;
        }
        let document = region == Region::Document;
        let whole = document && ABOUT_THE_WHOLE.is_match(sentence);
        let plan = parts.iter().position(|it| std::ptr::eq(&**it, part)).map(|it| &plans[it]);
        let bounded = plan.is_some_and(|it| it.part_at(part, sentence) == PlanPart::Bounds);
        let briefs = document && plan.is_some_and(|it| it.briefs);
        let label = list_label(part, sentence);
        let listed = (briefs && !bounded || region == Region::Typed)
            && label.is_some_and(|it| RULES_LABEL.is_match(it));
        let in_list = listed || !bounded && is_labelled_rule(sentence);
        let Some(own) = without_refusal(part, sentence, answers) else { continue };
        let polarity = polarity(&own).or_else(|| (whole || in_list).then_some(Polarity::Require));
        let is_no_order = || {
            let of_review = reviews.iter().any(|it| std::ptr::eq(*it, part));
            let describes = of_review && DESCRIBES.is_match(sentence)
                || part.len() > LONG && !in_list && TELLS.is_match(sentence)
                || label.is_some_and(|it| STATE_LABEL.is_match(it)) && !PROHIBITS.is_match(sentence);
            describes && !ASKS_FOR.is_match(sentence) || of_review && PROPOSES.is_match(sentence)
        };
        if let Some(polarity) = polarity.filter(|_| !only_asks(sentence) && !is_no_order()) {
            let binds = || plan.is_some_and(|it| it.binds(part, sentence, polarity, whole));
            let client = region == Region::ClientText;
            if document && !in_list && !binds() || client && polarity != Polarity::Forbid {
                continue;
            }
            // These do not count toward `MAX_DOCUMENT_RULES`.
            let prohibits = || polarity == Polarity::Forbid && PROHIBITS.is_match(sentence);
            let alone = whole || in_list || briefs && prohibits();
            let typed = region == Region::Typed;
            let of_feature =
                DESCRIBES_FEATURE.is_match(part) && !prohibits() || OF_PRODUCT.is_match(sentence);
            let topic = if client {
                Topic::Constraints
            } else if !typed || of_feature || !in_list && is_listed_task(part, sentence) {
                Topic::Directives
            } else {
                rule_topic(sentence, polarity)
            };
            let text = if sentence.ends_with([':', '：']) {
                // "The code should either:" is not a rule without its list.
                let Some(list) = with_items(part, sentence) else { continue };
                told = list.as_bytes().as_ptr_range().end;
                list
            } else if count > MAX_RULE_CHARS {
                clause_with_cue(sentence)
            } else if typed && (REFERS_BACK.is_match(sentence) || POINTS_BACK.is_match(sentence)) {
                with_sentence_before(part, sentence).unwrap_or(sentence)
            } else if let Some(both) = with_scope(part, sentence).filter(|_| typed) {
                // The first of the two may be told already.
                facts.retain(|it| {
                    let rule = it.message == number && matches!(it.detail, Detail::Rule(_));
                    !(rule && both.starts_with(it.text.as_str()))
                });
                both
            } else {
                sentence
            };
            let rule =
                prompt.quote(text).map(|it| Fact::from_user(topic, number, it, Detail::Rule(polarity)));
            if document && !alone { of_document.extend(rule) } else { facts.extend(rule) }
        }
    }
    if of_document.len() <= MAX_DOCUMENT_RULES {
        facts.append(&mut of_document);
    }
}

/// A sentence without what it quotes, and without the "no" that answers a question. `None` if it only refuses.
fn without_refusal<'a>(part: &str, sentence: &'a str, answers: bool) -> Option<Cow<'a, str>> {
    if let Some(no) = NO_NEED.find(sentence).filter(|_| answers) {
        // The rest is a rule only if it forbids: "不用了，不要动 main 分支".
        let rest = &sentence[no.end()..];
        return (polarity(rest) == Some(Polarity::Forbid)).then(|| rest.into());
    }
    // A quoted cue is not the user's: `It says "never block".`
    let own = if sentence.starts_with(['"', '“']) { sentence.into() } else { without_quotations(sentence) };
    // "No push everything" says itself that it answers.
    let replies = answers || part.trim_start().starts_with(sentence) && NO_TO_ALL.is_match(sentence);
    let rest = replies.then(|| after_no(&own)).flatten().map(str::to_owned);
    Some(rest.map_or(own, Cow::Owned))
}

/// A refusal of what was offered, which forbids nothing: "不需要了，保持现状即可".
static NO_NEED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"^\W*(?:(?:不需要|不用|无需|無需|不必)(?:了|啦)?|\S{0,16}しなくて(?:も)?(?:いい|良い)(?:です)?よ?)(?:[，,。.!！]|$)",
);

/// A prompt whose sentences say what a feature does, not how to work: Spec Kit's command for a specification.
static DESCRIBES_FEATURE: AsciiFirstRegex = AsciiFirstRegex::new(r"^\s*/(?:speckit\.)?specify\b");

/// A prohibition of what a program does: "Do not redirect to the start page when the login fails."
static OF_PRODUCT: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:do not|don['’]?t) (?:redirect|navigate|show|display|render)\b.* (?:when|if|until|unless|after) ",
);

/// A file and line, as reviews cite them: `src/main.rs:12`.
static PLACE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"[\w/-]\.(?:rs|go|py|[jt]sx?|java|kt|rb|cs?|cc|cpp|h|swift|php|md|toml|ya?ml|json|sh):\d+\b",
);
/// A sentence that says what something does.
static DESCRIBES: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:this|that|it|there|the [\w/`.()-]+(?: [\w/`.()-]+){0,4}?) (?:only |never |also )?(?:is|are|has|\w{2,}s)\b",
);
/// The same about what takes no orders (`Some users …`, `read_all …`), and labels such as `Root cause:`.
static TELLS: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:some \w+|`?\w+_\w+`?|(?-i:[A-Z]\w+['’]s) \w+) (?:only |also |always |would never )?\w{2,}",
    r"|^\W*(?:bug|symptom|cause|root cause)(?: \([^)]{0,40}\))?:",
));
/// What somebody's report proposes; whether it is done is up to the user.
static PROPOSES: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)^\W*(?:suggested|recommended|proposed) (?:fix|remedy|remediation|change):");
static ASKS_FOR: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:must|should|shall|needs? to|ha(?:s|ve) to|please|let['’]?s|want|do not|don['’]?t|make sure|ensure)\b",
);
/// In a longer text, a description is rarely meant as a wish. Bytes.
const LONG: usize = 800;

/// Whether a text is somebody's code review: its descriptions of the code are not orders.
fn is_review(text: &str) -> bool {
    PLACE.find_iter(text).nth(2).is_some()
}

/// A sentence that limits the scope of the whole task: `no other changes`.
static ABOUT_THE_WHOLE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:all changes (?:are|go|stay|must)\b|(?:no|nothing) (?:other|else)\b|no (?:new|other|further|additional) \w+ (?:are |is )?(?:needed|required|allowed)?|no changes (?:to|in)\b)",
    r"|\b(?:remains?|are|is|stays?|kept) (?:unchanged|untouched|as[- ]is)\b",
));
/// A sentence that means nothing without the one before it.
static REFERS_BACK: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:then|it|they)\b|(?:this|that|these|those) (?:is|are|was|were|has|have|needs?|must|should|shall",
    r"|can|could|may|might|will|would|does|do|also|only|always|never)\b)",
));

/// What is to be kept or used is named in the sentence before: `keep that`.
static POINTS_BACK: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)\b(?:keep|use|follow|do|leave|preserve) (?:that|this|these|those)\b");

/// The title of a text that was written for a model.
static PROMPT_TITLE: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)^\s*# .*\bprompt\b");
/// A document that assigns the agent its work, rather than describing a product.
static BRIEFS: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?im)^\W*you are (?:the |an? )?[\w-]+|\bif you are (?:the |an? )?[\w-]+|^#+ (?:\W*\d+[.)] )?your (?:tasks?|job|role|assignment)\b",
);

/// A prohibition by its first words, whatever it is about.
static PROHIBITS: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:do|must|should) not|(?:don|mustn|shouldn)['’]?t|never|nunca|jamais|niemals|никогда не|не (?:трогай|меняй|изменяй|удаляй|используй|добавляй)\w*)\b",
    r"|^\W*(?:不要|禁止|绝不|切勿|절대)",
));

/// The label of a list whose items are rules, whatever their words.
static RULES_LABEL: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:\d+[.)]\W*)?(?:(?:important|general|hard|strict|critical|ground|key|core|global|working|lead|coordination|team|agent|safety|the|your|my|our) ){0,2}(?:rules|constraints|prohibitions|guardrails|restrictions|правила|ограничения|запреты",
    r"|regeln|einschränkungen|règles|contraintes|reglas|restricciones)\W*$",
    r"|^\W*(?:规则|約束|约束|限制|ルール|制約|규칙|제약)\W*$",
));

/// Whether a sentence stands in a list of tasks: most items are not rules. A prohibition is a rule all the
/// same.
fn is_listed_task(part: &str, sentence: &str) -> bool {
    /// Minimum items: a shorter list shows too little.
    const LEAST: usize = 3;
    /// Lines of a list that are looked at on each side.
    const MOST: usize = 40;
    let start = part[..offset(sentence, part)].rfind('\n').map_or(0, |it| it + 1);
    let item = |line: &&str| has_marker(line);
    let blank = |line: &&str| !line.trim().is_empty();
    let above = part[..start].lines().rev().filter(blank).take(MOST).take_while(item);
    let below = part[start..].lines().filter(blank).take(MOST).take_while(item);
    let forbids = PROHIBITS.is_match(sentence) || sentence.to_lowercase().starts_with("no ");
    if below.clone().next().is_none() || forbids {
        return false;
    }
    let is_rule = |it: &str| {
        sentences(it).into_iter().any(|it| polarity(it).is_some_and(|of| is_standing_rule(it, of)))
    };
    let rules: Vec<bool> = above.chain(below).map(is_rule).collect();
    rules.len() >= LEAST && rules.iter().filter(|it| **it).count() * 2 < rules.len()
}

/// The label of a list whose items say how things are.
static STATE_LABEL: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:(?:context|background|контекст)\b|(?:current|existing|текущ\w+|existierend\w*) |what (?:already |currently )?exists).*[:：]\W*$",
);

/// The label of the list in which a sentence begins an item.
fn list_label<'p>(part: &'p str, sentence: &str) -> Option<&'p str> {
    /// Maximum lines above the sentence that are searched for the label.
    const MOST: usize = 40;
    let at = offset(sentence, part);
    let start = part[..at].rfind('\n').map_or(0, |it| it + 1);
    let lead = part[start..at].chars().any(char::is_alphabetic);
    let line = part[start..].lines().next().unwrap_or_default();
    let introduces = sentence.trim_end_matches('*').ends_with([':', '：']);
    if lead || introduces || !has_marker(line) || line.starts_with([' ', '\t', '#']) {
        return None;
    }
    let mut above = part[..start].lines().rev().filter(|it| !it.trim().is_empty()).take(MOST);
    above.find(|it| !it.starts_with([' ', '\t']) && (!has_marker(it) || it.starts_with('#')))
}

/// Whether a sentence says itself that it is a rule: `**Constraints:** keep the design`.
fn is_labelled_rule(sentence: &str) -> bool {
    let parts = sentence.split_once([':', '：']);
    parts.is_some_and(|(label, rule)| RULES_LABEL.is_match(label) && rule.contains(char::is_alphabetic))
}

/// A requirement, whatever it is about.
static REQUIRES: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)\b(?:must|shall|do not|don['’]t|mandatory)\b");

/// A heading over what a task must not touch. Its nouns may name a thing of the program: `Error boundaries`.
static BOUNDS_HEADING: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\b(?:not to change|not change|do not|don['’]t|must not|out of scope|not in scope|non[- ]goals?)\b",
    r"|^\W*(?:\d+(?:\.\d+)*[.):]?\s+)?(?:(?:important|general|hard|strict|key|core|global|working|design|technical|project|scope|safety|file|the|your|my|our) ){0,2}",
    r"(?:constraints?|guardrails?|boundar(?:y|ies)|restrictions?)(?:\W*$|\W+(?:and|for|of|on)\b|\W*[&(:])",
    r"|^\W*(?:\d+(?:\.\d+)*[.):]?\s+)?(?:ограничения|запреты|einschränkungen|contraintes|restricciones)\W*$|^\W*(?:约束|约束条件|限制|制約|禁止事項|제약)\W*$",
));

pub(crate) fn is_bounds_heading(title: &str) -> bool {
    BOUNDS_HEADING.is_match(title)
}

/// What the text under a heading of a plan is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlanPart {
    /// What the task must not touch.
    Bounds,
    /// Why it is done.
    Background,
    /// How it is done.
    Steps,
    Other,
}

/// The parts of a document, one for each heading.
struct Outline {
    /// Byte offset, heading depth and kind of each.
    parts: Vec<(usize, usize, PlanPart)>,
    /// Whether the document assigns the agent its work.
    briefs: bool,
}

impl Outline {
    fn of(part: &str) -> Self {
        const BACKGROUND: [&str; 6] =
            ["context", "background", "problem", "overview", "motivation", "current state"];
        const STEPS: [&str; 8] =
            ["step", "phase", "tasks", "changes", "implementation", "approach", "files", "design"];
        let mut out: Vec<(usize, usize, PlanPart)> = Vec::new();
        let regions = regions(part);
        let documents = regions.iter().filter(|it| it.0 == Region::Document && !is_asked_about(&regions));
        let briefs = PROMPT_TITLE.is_match(part) || documents.clone().any(|it| BRIEFS.is_match(it.1));
        for line in documents.flat_map(|it| it.1.lines()) {
            let depth = line.bytes().take_while(|it| *it == b'#').count();
            let Some(title) = line[depth..].strip_prefix(' ').filter(|_| depth > 0) else { continue };
            let lower = title.to_lowercase();
            let numbered = lower.trim_start_matches("task ").starts_with(|c: char| c.is_ascii_digit());
            let own = if is_bounds_heading(title) {
                PlanPart::Bounds
            } else if depth > 1 && BACKGROUND.iter().any(|it| lower.contains(it)) {
                PlanPart::Background
            } else if depth > 1 && (numbered || STEPS.iter().any(|it| lower.contains(it))) {
                PlanPart::Steps
            } else {
                // Any other heading belongs to the part above it with a smaller depth.
                out.iter().rev().find(|it| it.1 < depth).map_or(PlanPart::Other, |it| it.2)
            };
            out.push((offset(line, part), depth, own));
        }
        Self { parts: out, briefs }
    }

    /// The part of the document in which a sentence stands.
    fn part_at(&self, part: &str, sentence: &str) -> PlanPart {
        let at = offset(sentence, part);
        self.parts.iter().rev().find(|it| it.0 <= at).map_or(PlanPart::Other, |it| it.2)
    }

    /// Whether a sentence can be a rule in its part of the document. `whole`: it is about the whole task.
    fn binds(&self, part: &str, sentence: &str, polarity: Polarity, whole: bool) -> bool {
        let at = offset(sentence, part);
        let here = self.part_at(part, sentence);
        let lead = part[..at].rsplit('\n').next().unwrap_or_default().trim();
        let numbered = lead.starts_with(|c: char| c.is_ascii_digit());
        let begins = |(before, _): (&str, &str)| !before.contains(char::is_alphanumeric);
        let forbids = || {
            polarity == Polarity::Forbid
                && !sentence.contains('`')
                && CUES.forbid.around(&Lowercased::of(sentence)).is_some_and(begins)
                && is_standing_rule(sentence, Polarity::Forbid)
        };
        let binds = match here {
            // Read as a list by `bounds`.
            PlanPart::Bounds => false,
            PlanPart::Background => whole || forbids(),
            PlanPart::Steps => whole || !numbered && REQUIRES.is_match(sentence) || forbids(),
            PlanPart::Other => true,
        };
        binds && !REFERS_BACK.is_match(sentence)
    }

    /// The lists of what the task must not touch, each with its heading.
    fn bounds<'p>(&self, part: &'p str) -> Vec<&'p str> {
        let ends = self.parts.iter().skip(1).map(|it| it.0).chain([part.len()]);
        let own = self.parts.iter().zip(ends).filter(|it| it.0.2 == PlanPart::Bounds);
        let text = |((at, depth, _), end): (&(usize, usize, PlanPart), usize)| {
            let text = part[at + depth..end].trim();
            let (heading, list) = text.split_once('\n')?;
            let list = list.trim_end_matches(|c: char| !c.is_alphanumeric() && !".)`".contains(c));
            let lines = list.lines().take_while(|it| !it.trim_start().starts_with("```"));
            let (mut end, mut chars) = (heading.len(), 0);
            for line in lines {
                chars += line.chars().count();
                if chars > MAX_RULE_CHARS {
                    break;
                }
                end = offset(line, text) + line.len();
            }
            (end > heading.len()).then(|| text[..end].trim_end())
        };
        own.filter_map(text).collect()
    }
}

/// Maximum rules in a document, apart from bounds, prohibitions and lists of rules; more describe a product.
const MAX_DOCUMENT_RULES: usize = 8;

/// A sentence with the one before it, in the same paragraph.
fn with_sentence_before<'a>(part: &'a str, sentence: &str) -> Option<&'a str> {
    let at = offset(sentence, part);
    let before = part[..at].trim_end();
    let paragraph = before.rfind("\n\n").map_or(0, |it| it + 2);
    let last = statements(before.get(paragraph..)?).pop()?;
    let both = &part[offset(last, part)..at + sentence.len()];
    (both.chars().count() <= MAX_RULE_CHARS).then_some(both)
}

/// A sentence that limits what the one before it says, with that one, if that one says what it is about: "For the drawer,
/// do not refactor. Only make small changes."
fn with_scope<'a>(part: &'a str, sentence: &str) -> Option<&'a str> {
    static LIMITS: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)^\W*(?:only|just)\b");
    static SCOPED: AsciiFirstRegex =
        AsciiFirstRegex::new(r"(?i)^\W*(?:for|in|on|when|with|as for|regarding) [^,.;:]{3,80},");
    let both = LIMITS.is_match(sentence).then(|| with_sentence_before(part, sentence)).flatten()?;
    SCOPED.is_match(both).then_some(both)
}

/// A sentence that introduces a list, with the items below it, up to the maximum length of a rule.
fn with_items<'a>(part: &'a str, sentence: &str) -> Option<&'a str> {
    let start = offset(sentence, part);
    let from = start + sentence.len();
    let mut end = from;
    for line in part.get(from..)?.split_inclusive('\n') {
        let body = line.trim();
        let over = end - start > 4 * MAX_RULE_CHARS
            || body.len() > 4 * MAX_RULE_CHARS
            || part[start..end].chars().count() + body.chars().count() > MAX_RULE_CHARS;
        let item = !body.is_empty() && (over || has_marker(body));
        if !body.is_empty() && (!item || over) {
            break;
        }
        end += line.len();
    }
    let whole = part[start..end].trim_end();
    (whole.len() > sentence.len()).then_some(whole)
}

/// The sentences of a text; a long one is split at semicolons.
fn clauses(text: &str) -> Vec<&str> {
    const LONG: usize = 200;
    let split = |it| if str::len(it) > LONG { sentences(it) } else { vec![it] };
    statements(text).into_iter().flat_map(split).collect()
}

/// A sentence without the closing tag of an element around it: `Only read.</task>`.
fn untagged(sentence: &str) -> &str {
    let tag = sentence.rfind("</").filter(|at| sentence.ends_with('>') && !sentence[*at..].contains(' '));
    tag.map_or(sentence, |at| sentence[..at].trim_end())
}

fn clause_with_cue(sentence: &str) -> &str {
    let lower = Lowercased::of(sentence);
    let cue = [&CUES.forbid, &CUES.require, &CUES.prefer].into_iter().find_map(|it| it.find(&lower));
    let Some(cue) = cue else { return clip(sentence, MAX_RULE_CHARS).0 };
    let breaks = [';', '；', '—', '–', '\n', ':'];
    let start = sentence[..cue.start]
        .rfind(breaks)
        .map_or(0, |it| it + sentence[it..].chars().next().map_or(1, char::len_utf8));
    let end = sentence[cue.end..].find(breaks).map_or(sentence.len(), |it| cue.end + it);
    let clause = sentence[start..end].trim();
    if clause.chars().count() <= MAX_RULE_CHARS {
        return clause;
    }
    // Without punctuation: some words before the cue, and everything after it.
    let from = sentence[..cue.start].char_indices().rev().nth(120).map_or(0, |(at, _)| at);
    let from = sentence[from..cue.start].find(' ').map_or(from, |it| from + it);
    clip(sentence[from..].trim(), MAX_RULE_CHARS).0
}
