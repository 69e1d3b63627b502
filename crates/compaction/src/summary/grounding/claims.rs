//! Statements of a summary that have no source: words attributed to the user, orders addressed to the model,
//! successes that no result shows, paths that do not exist. Pure.

use std::collections::BTreeSet;

use memchr::memmem;

use super::lexicon::{self, WORDS, actions, clauses, keys, likely_actions, overlap, share};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::{ClaimPlace, Detail, Ledger, Topic, flat};
use history::named;
use history::{History, Kind, Message, Part, Role};

struct Passage {
    keys: BTreeSet<String>,
    /// Of each clause: its keys, its number of negations, its actions.
    clauses: Vec<(BTreeSet<String>, usize, BTreeSet<&'static str>)>,
}

impl Passage {
    fn of(text: &str) -> Self {
        let clause = |it: &str| (keys(it), negations(it), likely_actions(it));
        Self {
            keys: keys(text),
            clauses: lexicon::sentences(text).into_iter().flat_map(clauses).map(clause).collect(),
        }
    }
}

/// Number of negations in a text.
pub(in crate::summary) fn negations(text: &str) -> usize {
    WORDS.as_ref().map_or(0, |it| it.no.find_iter(text).count())
}

/// Whether a clause only states a condition: `until it is done`.
fn is_condition(clause: &str) -> bool {
    static CONDITION: AsciiFirstRegex = AsciiFirstRegex::new(
        r"(?i)^(?:until|unless|while|as long as|before|once|if|when|solange|bis|bevor|wenn|falls|sobald)\b",
    );
    let bare = clause.trim_start_matches(|c: char| !c.is_alphanumeric());
    CONDITION.is_match(bare)
}

static EXCEPTION_WORDS: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)\b(?:without|unless|ohne|sans|sin|except|only)\b|未经|没有|除非");

/// Whether two sentences point the same way: both negate, or neither does. If both have a word such as
/// "without", two negations may cancel out, so that their number decides.
pub(in crate::summary) fn same_polarity(one: &str, other: &str) -> bool {
    let (a, b) = (negations(one), negations(other));
    if a.max(b) > 1 && EXCEPTION_WORDS.is_match(one) && EXCEPTION_WORDS.is_match(other) {
        a % 2 == b % 2
    } else {
        (a > 0) == (b > 0)
    }
}

/// Whether a text allows something, or says that it is optional.
fn permits(text: &str) -> bool {
    lexicon::any(|it| &it.permit, text) && negations(text) == 0
}

/// Whether a clause states a rule, rather than its reason.
fn is_rule(clause: &str) -> bool {
    negations(clause) > 0
        || lexicon::any(|it| &it.permit, clause)
        || lexicon::any(|it| &it.binding, clause)
        || {
            let lower = clause.to_lowercase();
            let first = lower.split_whitespace().next().unwrap_or_default();
            ["only", "just", "always", "nur", "ausschließlich", "immer"].contains(&first)
                || ["只", "一律", "总是"].iter().any(|it| lower.contains(it))
        }
}

/// Whether a line about the same subject as a rule agrees with it. A line that permits something agrees only
/// with a rule that does; otherwise both must point the same way.
pub(in crate::summary) fn agrees(rule: &str, line: &str) -> bool {
    if permits(line) { permits(rule) } else { same_polarity(rule, line) }
}

/// Minimum overlap of two texts about the same subject.
pub(in crate::summary) const NEAR: f64 = 0.35;

/// Everything that a summary may be based on.
pub struct Sources<'a> {
    history: &'a History,
    ledger: &'a Ledger,
    /// What the user wrote or answered, and what earlier summaries say.
    user: Vec<Passage>,
    /// Instructions that the client set.
    context: Vec<Passage>,
    /// What the model said, and its plan.
    model: Vec<Passage>,
    /// The text of the user's messages and of earlier summaries.
    user_text: String,
}

named! {
    /// Why a sentence was removed, in words for a warning.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Unfounded {
        /// Attributed to the user, or a rule that was never given.
        InventedUserStatement = "put in the user's mouth without a source",
        Order = "speaking to the model instead of reporting",
        Success = "claiming a success that no result shows",
        Path = "naming a path that the conversation does not have",
    }
}

impl<'a> Sources<'a> {
    pub fn new(history: &'a History, ledger: &'a Ledger) -> Self {
        let mut out = Self {
            history,
            ledger,
            user: Vec::new(),
            context: Vec::new(),
            model: Vec::new(),
            user_text: String::new(),
        };
        for message in history.messages() {
            let text = message.plain();
            if text.is_empty() {
                continue;
            }
            match (message.role, message.kind) {
                (Role::User, Kind::Said) | (_, Kind::Summary) => {
                    // An earlier summary has many lines that do not depend on each other.
                    out.user.extend(paragraphs(&text).map(Passage::of));
                    out.user_text.push_str(&flat(&text));
                    out.user_text.push('\n');
                }
                (Role::System, _) | (_, Kind::Context) => {
                    out.context.extend(paragraphs(&text).map(Passage::of));
                }
                (Role::Assistant, _) => out.model.extend(paragraphs(&text).map(Passage::of)),
                (Role::User | Role::Tool, _) => {}
            }
        }
        for fact in &ledger.facts {
            match (&fact.detail, fact.topic) {
                (Detail::Choice { asked, means, .. }, _) => {
                    let parts = [asked.as_deref(), Some(fact.text.as_str()), means.as_deref()];
                    out.user.push(Passage::of(&parts.into_iter().flatten().collect::<Vec<_>>().join("\n")));
                }
                (_, Topic::Active | Topic::Open | Topic::Done | Topic::Decisions | Topic::Commands) => {
                    out.model.push(Passage::of(&fact.text));
                }
                (_, _) => {}
            }
        }
        out
    }

    /// Why a sentence has no source; `None` if it has one.
    pub fn unfounded(&self, sentence: &str, place: ClaimPlace) -> Option<Unfounded> {
        // Quotations of the user need no other source.
        let mut rest = sentence.to_owned();
        for quote in quotes(sentence) {
            if self.user_text.contains(&flat(quote)) {
                rest = rest.replacen(quote, "", 1);
            }
        }
        if rest != sentence && keys(&rest).len() < 2 {
            return None;
        }
        let sentence = rest.as_str();
        let all = |pools: &[&'_ [Passage]], sentence: &str| supported(sentence, pools);
        if lexicon::any(|it| &it.order, sentence) && !all(&[&self.user, &self.context], sentence) {
            return Some(Unfounded::Order);
        }
        if lexicon::any(|it| &it.attributed, sentence)
            && !(all(&[&self.user], sentence) && self.quotes_exist(sentence))
        {
            return Some(Unfounded::InventedUserStatement);
        }
        if lexicon::any(|it| &it.authority, sentence)
            && !lexicon::any(|it| &it.cited, sentence)
            && !all(&[&self.user, &self.context, &self.model], sentence)
        {
            return Some(Unfounded::InventedUserStatement);
        }
        let given = match place {
            ClaimPlace::Rules => {
                (all(&[&self.user, &self.context], sentence) && self.is_about_user_text(sentence))
                    || (self.is_decided(sentence) && !self.contradicts(sentence))
            }
            ClaimPlace::Tasks => all(&[&self.user, &self.context, &self.model], sentence),
            ClaimPlace::Report => true,
        };
        let opposed = match place {
            ClaimPlace::Rules => self.contradicts(sentence) || self.opposes(sentence),
            // A goal may negate what the user observed: "it crashes" becomes "it must not crash".
            ClaimPlace::Tasks => negations(sentence) == 0 && self.contradicts(sentence),
            ClaimPlace::Report => false,
        };
        if !given || opposed {
            return Some(Unfounded::InventedUserStatement);
        }
        if place == ClaimPlace::Report && self.binds(sentence) {
            return Some(Unfounded::Order);
        }
        if place != ClaimPlace::Rules && self.claims_too_much(sentence) {
            return Some(Unfounded::Success);
        }
        None
    }

    /// Whether the user or the client speaks of the same subject, with more than one word in common.
    fn is_about_user_text(&self, sentence: &str) -> bool {
        let mine = keys(sentence);
        let least = if mine.len() > 1 { 2 } else { 1 };
        let near =
            |it: &Passage| mine.intersection(&it.keys).count() >= least && share(&mine, &it.keys) >= 0.3;
        self.user.iter().chain(&self.context).any(near)
            || close(sentence, &[&self.user, &self.context], 1.1, 0.5)
    }

    /// Whether a sentence reverses a rule of the ledger, and repeats none.
    fn opposes(&self, sentence: &str) -> bool {
        let mine = keys(sentence);
        let (mut same, mut other) = (false, false);
        for fact in self.ledger.about(Topic::Constraints).chain(self.ledger.about(Topic::Directives)) {
            // "Only the tool, never by hand" has two clauses: the one that is nearer to the sentence counts.
            let near = |it: &str| overlap(&mine, &keys(it));
            let rules = clauses(&fact.text).filter(|it| is_rule(it));
            let part = rules.max_by(|a, b| near(a).total_cmp(&near(b))).filter(|it| near(it) >= 0.6);
            if part.is_none() && near(&fact.text) < NEAR {
                continue;
            }
            match agrees(part.unwrap_or(&fact.text), sentence) {
                true => same = true,
                false => other = true,
            }
        }
        other && !same
    }

    /// Whether a finding reads as an order, a permission or a wish that neither the user, the client nor the
    /// model expressed: a tool's output alone cannot give any.
    fn binds(&self, sentence: &str) -> bool {
        let any = |list| lexicon::any(list, sentence);
        let allows = any(|it| &it.permit) && !actions(sentence).is_empty();
        if !(allows || is_imperative(sentence) || any(|it| &it.binding) || any(|it| &it.authority))
            || any(|it| &it.cited)
        {
            return false;
        }
        let pools: [&[Passage]; 3] = [&self.user, &self.context, &self.model];
        !supported(sentence, &pools) || !close(sentence, &pools, 0.5, 0.6)
    }

    /// Whether it is a decision of the ledger or, if it names no actions, of the model.
    fn is_decided(&self, sentence: &str) -> bool {
        let keys = keys(sentence);
        let decided =
            self.ledger.about(Topic::Decisions).any(|it| share(&keys, &lexicon::keys(&it.text)) >= 0.5);
        decided || (actions(sentence).is_empty() && self.model.iter().any(|it| share(&keys, &it.keys) >= 0.6))
    }

    /// Whether the user said the opposite of a clause, and nowhere the same.
    fn contradicts(&self, sentence: &str) -> bool {
        clauses(sentence).any(|clause| {
            let (mine, no) = (keys(clause), negations(clause) > 0);
            // Conditions are skipped: "until it is done" and "while it is not" mean the same.
            if mine.len() < 2 || is_condition(clause) {
                return false;
            }
            let near = self.user.iter().flat_map(|it| &it.clauses).filter(|(theirs, ..)| {
                let shared = mine.intersection(theirs).count();
                shared >= 2 && shared * 2 >= mine.len() && shared * 5 >= mine.len().min(theirs.len()) * 3
            });
            let (mut same, mut other) = (false, false);
            for (_, theirs, _) in near {
                if (*theirs > 0) == no { same = true } else { other = true }
            }
            other && !same && same_polarity(sentence, clause)
        })
    }

    /// Whether every longer quotation is in the conversation.
    fn quotes_exist(&self, sentence: &str) -> bool {
        quotes(sentence).all(|quote| {
            // The pieces of a shortened quotation are looked for one by one.
            quote
                .split(['…'])
                .flat_map(|it| it.split("..."))
                .map(str::trim)
                .filter(|it| it.chars().count() > 7)
                .all(|it| self.has(it))
        })
    }

    /// Whether a text occurs anywhere in the conversation, without the white space around it.
    pub fn has(&self, text: &str) -> bool {
        let text = text.trim();
        let finder = memmem::Finder::new(text.as_bytes());
        let found = |it: &str| finder.find(it.as_bytes()).is_some();
        let part = |part: &Part| match part {
            Part::Text(it) => found(it.as_str()),
            Part::Call(it) => found(it.input.as_str()) || found(&it.name),
            Part::Output(it) => found(it.text.as_str()),
            Part::Reasoning(it) => found(it.text.as_str()),
            Part::Media(_) | Part::Opaque(_) => false,
        };
        let meta = &self.history.meta;
        let messages = self.history.messages();
        messages.iter().flat_map(|it: &Message| &it.parts).any(part)
            || meta.cwd.as_deref().is_some_and(&found)
            || meta.system.as_ref().is_some_and(|it| found(it.as_str()))
            || self.ledger.facts.iter().any(|it| found(&it.text))
    }

    /// Whether a sentence claims a success that neither a command's result nor the user nor an earlier record shows.
    fn claims_too_much(&self, sentence: &str) -> bool {
        let Some(words) = WORDS.as_ref() else { return false };
        // "10 passed, 2 failed" claims nothing; "no failures" does.
        let flat = words.flawless.replace_all(sentence, " ");
        let flawless = flat != sentence;
        let failed = flat.to_lowercase();
        if ["fail", "fehl", "失败", "失敗"].iter().any(|it| failed.contains(it)) {
            return false;
        }
        let claims = |it: &str| words.no.is_match(it) || words.open.is_match(it);
        let well = (flawless || words.success.is_match(&flat)) && !claims(&flat);
        let of = |claim: &lexicon::Claim| well && claim.subject.as_ref().is_some_and(|it| it.is_match(&flat));
        let said = |claim: &lexicon::Claim| {
            of(claim) || clauses(&flat).any(|clause| !claims(clause) && claim.said.is_match(clause))
        };
        words.claims.iter().filter(|claim| said(claim)).any(|claim| {
            let mut shown: Option<bool> = None;
            for fact in self.ledger.about(Topic::Commands).filter(|it| claim.command.is_match(&it.text)) {
                if let Detail::Command { outcome, .. } = &fact.detail {
                    // The last known outcome counts; a run of which none is known counts as success.
                    shown = outcome.ok.or(shown).or(Some(true));
                }
            }
            let told = lexicon::sentences(&self.user_text)
                .into_iter()
                .any(|it| claim.said.is_match(it) && !words.no.is_match(it) && !words.open.is_match(it));
            shown != Some(true) && !told
        })
    }

    /// Paths without an extension, if the ledger has a file of that name: `deploy/Dockerfile`.
    pub fn bare_paths<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let part = |c: char| !(c.is_alphanumeric() || matches!(c, '/' | '_' | '.' | '-' | '@' | '~'));
        let known = |name: &str| {
            let mut files = self.ledger.about(Topic::Files);
            files.any(|it| it.text.rsplit('/').next() == Some(name) && !name.contains('.'))
        };
        let words = text.split(part).filter(|it| it.contains('/'));
        words.filter(|it| it.rsplit('/').next().is_some_and(known)).collect()
    }

    /// The path of the ledger that a misspelled one means: the only one of that name, or two letters away.
    pub fn nearest_path(&self, wrong: &str) -> Option<&str> {
        let name = |it: &str| it.rsplit('/').next().unwrap_or_default().to_owned();
        let files: Vec<&str> = self.ledger.about(Topic::Files).map(|it| it.text.as_str()).collect();
        let same: Vec<&&str> = files.iter().filter(|it| name(it) == name(wrong)).collect();
        if let [one] = same.as_slice() {
            return Some(one);
        }
        files
            .iter()
            .filter(|it| it.len().abs_diff(wrong.len()) <= 2)
            .copied()
            .find(|it| distance(it, wrong) <= 2)
            .or_else(|| {
                let ends = |it: &&&str| distance(&name(it), &name(wrong)) <= 2 && name(wrong).len() > 5;
                files.iter().filter(|it| ends(it)).copied().next()
            })
    }
}

/// Whether a sentence begins with an imperative: `Merge it`, not `Merged` or `merges`.
fn is_imperative(sentence: &str) -> bool {
    let bare = sentence.trim_start_matches(|c: char| !c.is_alphanumeric());
    lexicon::any(|it| &it.imperative, bare)
}

fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n")
        .flat_map(|it| if it.len() > 2_000 { it.lines().collect::<Vec<_>>() } else { vec![it] })
        .filter(|it| !it.trim().is_empty())
}

/// Whether `pools` say what a sentence says: enough of its keys, and every action with consequences in the
/// same direction.
fn supported(sentence: &str, pools: &[&[Passage]]) -> bool {
    let bare = WORDS.as_ref().map_or_else(|| sentence.into(), |it| it.attributed.replace_all(sentence, " "));
    let mine = keys(&bare);
    let all = || pools.iter().flat_map(|it| it.iter());
    let mut consequences = false;
    for clause in clauses(&bare) {
        let no = negations(clause) > 0;
        let about = keys(clause);
        for action in actions(clause) {
            consequences |= !no;
            // The same action in the same direction and, if the clause names an object, about that.
            let said = all().any(|it| {
                let aims = |theirs: &BTreeSet<String>| {
                    about.len() < 2
                        || about.intersection(theirs).next().is_some()
                        || about.intersection(&it.keys).count() > 1
                };
                it.clauses.iter().any(|(theirs, negations, actions)| {
                    actions.contains(action) && (*negations > 0) == no && aims(theirs)
                })
            });
            if !said {
                return false;
            }
        }
    }
    if mine.is_empty() {
        return !consequences;
    }
    if consequences { close(&bare, pools, 0.34, 0.7) } else { close(&bare, pools, 0.3, 0.4) }
}

/// Whether `pools` have a sentence's keys. `one`: minimum share in one passage; `any`: in all of them.
fn close(sentence: &str, pools: &[&[Passage]], one: f64, any: f64) -> bool {
    let mine = keys(sentence);
    let all = || pools.iter().flat_map(|it| it.iter());
    let best = all().map(|it| share(&mine, &it.keys)).fold(0.0, f64::max);
    let some = mine.iter().filter(|key| all().any(|it| it.keys.contains(*key))).count();
    best >= one || some as f64 / mine.len().max(1) as f64 >= any
}

/// Quotations of at least eight characters, or four in the quotation marks of Chinese and Japanese.
fn quotes(sentence: &str) -> impl Iterator<Item = &str> {
    static QUOTE: AsciiFirstRegex =
        AsciiFirstRegex::new("\"([^\"]{8,})\"|“([^”]{4,})”|„([^“”]{8,})[“”]|「([^」]{4,})」|«([^»]{8,})»");
    QUOTE.captures_iter(sentence).filter_map(|it| it.iter().skip(1).flatten().next().map(|it| it.as_str()))
}

/// Paths in a text: absolute ones (or from `~` or `.`) with any extension, others with a known extension.
pub fn paths(text: &str) -> Vec<&str> {
    static PATH: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
        r"(?:~|\.{1,2})?(?:/[\p{L}\p{N}_.@+-]+)+\.[A-Za-z][A-Za-z0-9]{0,7}|[\p{L}\p{N}_.@+-]+(?:/[\p{L}\p{N}_.@+-]+)*\.",
        r"(?:rs|ts|tsx|js|jsx|mjs|py|go|java|kt|c|h|cc|cpp|hpp|rb|php|swift|cs|sql|sh|toml|ya?ml|json|md|html|css|vue|lock|txt|cfg|ini|proto|gradle|xml|csv)\b",
    ));
    let mut out: Vec<&str> = Vec::new();
    for it in PATH.find_iter(text) {
        // Part of a URL is not a path.
        if !text[..it.start()].ends_with([':', '/']) && !it.as_str().contains("//") {
            out.push(it.as_str());
        }
    }
    out
}

/// Edit distance; if a text is longer than 200 bytes, the longer length instead.
fn distance(one: &str, other: &str) -> usize {
    if one.len().max(other.len()) > 200 {
        return one.len().max(other.len());
    }
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.iter().enumerate() {
            let here = (before + usize::from(a != *b)).min(row[j] + 1).min(row[j + 1] + 1);
            before = std::mem::replace(&mut row[j + 1], here);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_point_alike() {
        assert!(same_polarity("Never touch legacy/", "legacy/ is off-limits"));
        assert!(!same_polarity("Never touch legacy/", "Always touch legacy/"));
        assert!(!same_polarity("Never push without asking", "Pushing without asking is fine"));
        assert!(same_polarity("不要修改旧文件", "旧文件禁止改动"));
    }

    #[test]
    fn paths_are_found() {
        let text = "Edited `src/auth/login.rs`, /etc/hosts.conf and Cargo.toml; see https://a.b/c.html, and/or client/server.";
        assert_eq!(paths(text), ["src/auth/login.rs", "/etc/hosts.conf", "Cargo.toml"]);
        assert_eq!(distance("src/auth.rs", "src/auht.rs"), 2);
    }
}
