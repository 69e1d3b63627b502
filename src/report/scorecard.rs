//! A scorecard from values: what each way to compact kept on many sessions, as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use score::{Class, Hindsight, Score, Tally, Told, Truth, UsedKind};

/// What came of compacting one session one way.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Trial {
    pub session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Weighted share of the facts that is still said; nothing if none were evicted.
    pub kept: Option<f64>,
    pub classes: BTreeMap<Class, Tally>,
    /// Last request and open question, the verbatim end counted.
    pub last_request: Tally,
    /// What is asserted against the source.
    pub contradictions: usize,
    /// What is asserted without support.
    pub unsupported: usize,
    /// What it states as true now.
    pub truth: Truth,
    /// Rules of the API that the result breaks.
    pub invalid: usize,
    /// Tokens that were asked for.
    pub budget: u64,
    /// Before and after.
    pub tokens: (u64, u64),
    /// Milliseconds it took, reading apart.
    pub millis: f64,
}

impl Trial {
    /// What a score says of it.
    pub fn of(session: &str, score: &Score) -> Self {
        Self {
            session: session.to_owned(),
            kept: score.kept,
            classes: score.classes.clone(),
            last_request: score.last_request,
            contradictions: score.contradictions.len(),
            unsupported: score.unsupported.len(),
            ..Self::default()
        }
    }

    /// Facts that are in the result neither as such nor in its verbatim end.
    pub fn lost(&self) -> usize {
        self.classes.values().map(|it| it.found - it.kept).sum()
    }
}

/// One way to compact at one size, over all sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The profile or baseline.
    pub way: String,
    /// Percent of the tokens that were asked for; nothing where the way has a size of its own.
    pub percent: Option<u64>,
    /// One for each session.
    pub trials: Vec<Trial>,
}

impl Row {
    /// The trials that came to something.
    pub fn done(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|it| it.refused.is_none())
    }

    /// Quantile of the share kept over the sessions, `at` in 0 to 1.
    pub fn kept(&self, at: f64) -> Option<f64> {
        quantile(self.done().filter_map(|it| it.kept).collect(), at)
    }

    /// Of all sessions' facts of a class, the share kept. Last requests count with the verbatim end.
    pub fn class(&self, class: Class) -> Option<f64> {
        let tally = |it: &Trial| match class {
            Class::LastRequest => Some(it.last_request),
            _ => it.classes.get(&class).copied(),
        };
        let (mut kept, mut found) = (0, 0);
        for it in self.done().filter_map(tally) {
            kept += it.kept;
            found += it.found;
        }
        (found > 0).then(|| kept as f64 / found as f64)
    }

    /// Sum of a figure over the sessions.
    pub fn sum(&self, of: impl Fn(&Trial) -> usize) -> usize {
        self.done().map(of).sum()
    }

    /// Statements of one kind over all sessions, and how many of them are right.
    pub fn told(&self, of: impl Fn(&Truth) -> Told) -> Told {
        let all = self.done().map(|it| of(&it.truth));
        all.fold(Told::default(), |sum, it| Told { told: sum.told + it.told, right: sum.right + it.right })
    }

    /// Sessions that came out larger than asked for.
    pub fn over(&self) -> usize {
        self.done().filter(|it| it.tokens.1 > it.budget).count()
    }

    /// Tokens after, as a share of those before: the median.
    pub fn size(&self) -> Option<f64> {
        quantile(self.done().map(|it| it.tokens.1 as f64 / it.tokens.0.max(1) as f64).collect(), 0.5)
    }

    pub fn millis(&self) -> Option<f64> {
        quantile(self.done().map(|it| it.millis).collect(), 0.5)
    }
}

/// What is left of the first fifth of a session after one and after five compactions in a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Link {
    /// Weighted share of its facts that the first compaction kept.
    pub first: f64,
    /// Of those that the first kept, the share that is there after the fifth.
    pub left: f64,
}

/// Five compactions in a row, over all sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chain {
    pub way: String,
    /// Percent of the tokens that were asked for, each time.
    pub percent: u64,
    /// One for each session.
    pub links: Vec<Link>,
}

impl Chain {
    /// Medians of both shares.
    pub fn medians(&self) -> Option<Link> {
        let first = quantile(self.links.iter().map(|it| it.first).collect(), 0.5)?;
        let left = quantile(self.links.iter().map(|it| it.left).collect(), 0.5)?;
        Some(Link { first, left })
    }
}

/// What one way made of the part before a cut, and what of the things used later is there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HindsightResult {
    pub session: String,
    /// Of what it made.
    pub tokens: u64,
    pub hindsight: Hindsight,
}

/// One way at one size, over all cuts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HindsightRow {
    pub way: String,
    /// Percent of the tokens that were asked for; nothing for the way's own size.
    pub percent: Option<u64>,
    pub looks: Vec<HindsightResult>,
}

impl HindsightRow {
    /// Quantile of the share kept over the cuts, `at` in 0 to 1.
    pub fn kept(&self, at: f64) -> Option<f64> {
        quantile(self.looks.iter().filter_map(|it| it.hindsight.share()).collect(), at)
    }

    /// Of all things of a kind, the share kept.
    pub fn kind(&self, kind: UsedKind) -> Option<f64> {
        let all = self.looks.iter().filter_map(|it| it.hindsight.kinds.get(&kind));
        let (used, kept) = all.fold((0, 0), |sum, it| (sum.0 + it.used, sum.1 + it.kept));
        (used > 0).then(|| kept as f64 / used as f64)
    }
}

/// What was used later, and what each way holds of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct HindsightCard {
    pub rows: Vec<HindsightRow>,
    /// Each compaction of an agent's own, and ours at the same size.
    pub natives: Vec<(HindsightResult, HindsightResult)>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Card {
    /// Names and tokens of the sessions.
    pub sessions: Vec<(String, u64)>,
    /// Sessions that were too small or could not be read.
    pub left_out: usize,
    pub rows: Vec<Row>,
    pub chains: Vec<Chain>,
    pub hindsight: HindsightCard,
    /// Ways by size on made-up sessions with planted facts.
    pub planted: Vec<Row>,
}

/// The value below which a share `at` of the values lies; the lower neighbour, nothing is interpolated.
fn quantile(mut values: Vec<f64>, at: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let index = (values.len() as f64 * at).floor() as usize;
    values.get(index.min(values.len().saturating_sub(1))).copied()
}

/// A share with two digits, rounded down so that nothing looks better than it is.
fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |it| format!("{:.2}", (it * 100.0 + 1e-9).floor() / 100.0))
}

impl HindsightCard {
    fn markdown(&self, out: &mut String) {
        out.push_str(LATER);
        let kinds: Vec<&str> = UsedKind::ALL.iter().map(|it| it.name()).collect();
        let _ = writeln!(out, "| way | at | kept: median | 10th percentile | {} | cuts |", kinds.join(" | "));
        let _ = writeln!(out, "|---|{}", "--:|".repeat(kinds.len() + 4));
        for row in &self.rows {
            let kinds: Vec<String> = UsedKind::ALL.iter().map(|it| share(row.kind(*it))).collect();
            let _ = writeln!(
                out,
                "| {} | {} | **{}** | {} | {} | {} |",
                row.way,
                row.percent.map_or_else(|| "own size".to_owned(), |it| format!("{it} %")),
                share(row.kept(0.5)),
                share(row.kept(0.1)),
                kinds.join(" | "),
                row.looks.len()
            );
        }
        let of = |it: &HindsightResult| share(it.hindsight.share());
        let middle = |side: fn(&(HindsightResult, HindsightResult)) -> &HindsightResult| {
            share(quantile(self.natives.iter().filter_map(|it| side(it).hindsight.share()).collect(), 0.5))
        };
        let _ = writeln!(
            out,
            "\n{} compactions of the agents' own, each beside ours of the same messages at no larger a size: median {} and {}.\n",
            self.natives.len(),
            middle(|it| &it.0),
            middle(|it| &it.1)
        );
        out.push_str("| compaction | tokens | the agent's own | ours |\n|---|--:|--:|--:|\n");
        for (native, ours) in &self.natives {
            let _ =
                writeln!(out, "| {} | {} | {} | {} |", native.session, native.tokens, of(native), of(ours));
        }
        out.push('\n');
    }
}

impl Card {
    pub fn markdown(&self) -> String {
        let mut out = String::from(INTRODUCTION);
        let tokens: u64 = self.sessions.iter().map(|it| it.1).sum();
        let _ = writeln!(
            out,
            "{} sessions with {} tokens; {} more were too small (below 6,000 tokens) or unreadable. Facts: version {} of the rules.\n",
            self.sessions.len(),
            tokens,
            self.left_out,
            score::VERSION
        );
        let mut sizes: Vec<u64> = self.rows.iter().filter_map(|it| it.percent).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for percent in &sizes {
            let _ = writeln!(out, "## At {percent} % of the tokens\n");
            table(&mut out, self.rows.iter().filter(|it| it.percent == Some(*percent)));
        }
        out.push_str(DEFAULT);
        table(&mut out, self.rows.iter().filter(|it| it.percent.is_none()));
        self.dominated(&mut out);
        self.truth(&mut out);
        self.hindsight.markdown(&mut out);
        out.push_str("## Five compactions in a row\n\n");
        out.push_str(CHAINED);
        out.push_str("\n| way | at | first cycle keeps | of that, left after the fifth | sessions |\n|---|--:|--:|--:|--:|\n");
        for it in &self.chains {
            let middle = it.medians();
            let _ = writeln!(
                out,
                "| {} | {} % | {} | {} | {} |",
                it.way,
                it.percent,
                share(middle.map(|it| it.first)),
                share(middle.map(|it| it.left)),
                it.links.len()
            );
        }
        out.push_str("\n## Planted facts\n\n");
        out.push_str(PLANTED);
        for percent in &sizes {
            let _ = writeln!(out, "\nAt {percent} %:\n");
            table(&mut out, self.planted.iter().filter(|it| it.percent == Some(*percent)));
        }
        out.push_str("## What went worst\n\n");
        out.push_str("The sessions of which our own profile keeps least, at 10 %:\n\n");
        self.worst(&mut out);
        out.push_str(LIMITS);
        out.push_str("\n## Sessions\n\n");
        for (name, tokens) in &self.sessions {
            let _ = writeln!(out, "- {name} ({tokens} tokens)");
        }
        out
    }

    /// The sessions where a smaller result of the same profile loses fewer facts than its own size does.
    fn dominated(&self, out: &mut String) {
        for own in self.rows.iter().filter(|it| it.percent.is_none()) {
            let smaller = self.rows.iter().filter(|it| it.way == own.way && it.percent.is_some());
            let found: Vec<String> =
                smaller.flat_map(|it| dominates(it, own)).map(|it| format!("- {it}\n")).collect();
            let _ = writeln!(
                out,
                "A smaller budget loses fewer facts in {} cases.\n\n{}",
                found.len(),
                found.concat()
            );
        }
    }

    /// What the profile itself tells as true now.
    fn truth(&self, out: &mut String) {
        out.push_str(TRUE_NOW);
        let Some(own) = self.rows.iter().find(|it| it.percent.is_none()) else { return };
        for row in self.rows.iter().filter(|it| it.way == own.way) {
            let shown = |it: Told| format!("{} of {} ({})", it.right, it.told, share(it.share()));
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} |",
                row.percent.map_or_else(|| "own size".to_owned(), |it| format!("{it} %")),
                shown(row.told(|it| it.open)),
                shown(row.told(|it| it.outcomes)),
                shown(row.told(|it| it.rules)),
            );
        }
        out.push('\n');
    }

    fn worst(&self, out: &mut String) {
        let Some(row) = self.rows.iter().find(|it| it.percent == Some(10)) else { return };
        let mut trials: Vec<&Trial> = row.trials.iter().collect();
        trials.sort_by(|a, b| a.kept.unwrap_or(0.0).total_cmp(&b.kept.unwrap_or(0.0)));
        for it in trials.into_iter().take(6) {
            match &it.refused {
                Some(why) => {
                    let _ = writeln!(out, "- {}: nothing was made: {why}", it.session);
                }
                None => {
                    let lost = |(class, tally): (&Class, &Tally)| {
                        let gone = tally.found - tally.kept;
                        (gone > 0).then(|| format!("{} {gone} of {}", class.name(), tally.found))
                    };
                    let lost: Vec<String> = it.classes.iter().filter_map(lost).collect();
                    let _ = writeln!(
                        out,
                        "- {}: {} kept; only in the archive: {}",
                        it.session,
                        share(it.kept),
                        if lost.is_empty() { "nothing".to_owned() } else { lost.join(", ") }
                    );
                }
            }
        }
    }
}

/// Where `small` takes no more tokens than `large` and loses fewer facts of the same session.
pub fn dominates(small: &Row, large: &Row) -> Vec<String> {
    let pairs = small
        .done()
        .flat_map(|it| large.done().filter(|own| own.session == it.session).map(move |own| (it, own)));
    let better =
        pairs.filter(|(small, large)| small.tokens.1 <= large.tokens.1 && small.lost() < large.lost());
    better
        .map(|(small, large)| {
            format!(
                "{}: {} facts lost in {} tokens, {} in {}",
                small.session,
                small.lost(),
                small.tokens.1,
                large.lost(),
                large.tokens.1
            )
        })
        .collect()
}

fn table<'a>(out: &mut String, rows: impl Iterator<Item = &'a Row>) {
    out.push_str("| way | kept: median | 10th percentile |");
    let letters: Vec<&str> = Class::ALL.iter().map(|it| it.letter()).collect();
    let _ = writeln!(
        out,
        " {} | contradictions | unsupported | invalid | over budget | refused | size | ms |",
        letters.join(" | ")
    );
    let _ = writeln!(out, "|---|{}", "--:|".repeat(letters.len() + 9));
    for row in rows {
        let classes: Vec<String> = Class::ALL.iter().map(|it| share(row.class(*it))).collect();
        let _ = writeln!(
            out,
            "| {} | **{}** | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.way,
            share(row.kept(0.5)),
            share(row.kept(0.1)),
            classes.join(" | "),
            row.sum(|it| it.contradictions),
            row.sum(|it| it.unsupported),
            row.sum(|it| usize::from(it.invalid > 0)),
            row.over(),
            row.trials.len() - row.done().count(),
            row.size().map_or_else(|| "–".to_owned(), |it| format!("{:.0} %", it * 100.0)),
            row.millis().map_or_else(|| "–".to_owned(), |it| format!("{it:.0}")),
        );
    }
    out.push('\n');
}

const INTRODUCTION: &str = "\
# What survives a compaction

Written by `epitome score --corpus DIR`; without a model, a key or a network, and the same for everyone with the same
sessions (but for the milliseconds). It says what each way to compact keeps of the facts of real sessions, and what it
loses. Facts are taken from the original alone, by code that shares nothing with the code that writes summaries.

A fact counts as kept only in usable form and in one line: a path with what was done to it, a command with how it
ended, a rule with its polarity. Facts that stand in the messages kept word for word at the end are not counted: that
is nobody's merit. **Kept** is the share of all others, weighted by class; the median and the 10th percentile over the
sessions.

The classes: **U** rules the user gave (weight 3), **D** decisions (3), **L** last request and open question (3; here
standing in the kept end counts), **F** files and what was last done to them (2), **X** commands and how they ended
(2), **E** errors and whether they are gone (2), **P** open plan items (2), **G** the goal (2), **T** approaches tried
and given up (1), **I** identifiers (1). Their columns are shares of all sessions' facts together.

**contradictions**: lines that say the opposite of the original. **unsupported**: paths, commands, hashes, quotes or
successes that the original does not bear out. **invalid**: results that break a rule of their API. **over budget**:
results larger than asked for; some systems have a size of their own and take no other. **refused**: sessions of which
nothing was made, such as when the profile's own limits forbid it; they are in no other column.

The baselines: *keep-last* keeps the newest messages, *user-only* the user's messages before the newest, *masking*
blanks old tool outputs, *skeleton* keeps the first words of each message, *file-list* the names of the files.
Profiles of other systems write their summary offline here, in that system's sections: what a model would write in
them is another matter.

";

const DEFAULT: &str = "\
## At its own size

What `epitome compact` does when nobody names a budget.

";

const TRUE_NOW: &str = "\
## What is told as true now

Of our own summaries: steps told as open that the session's plan does not have done at its end; commands told with the
outcome that their exit code gives, where one was reported; lines under a heading for rules that are the user's own
words.

| at | open steps | outcomes | rules |
|--:|--:|--:|--:|
";

const LATER: &str = "\
## What was used later

A session is cut at 60 % of its messages, and at each compaction of its agent's own; the part before is compacted. What
counts are the things that the agent's calls named after the cut, that stood before it, and that nobody showed it again
in between: paths, commands, symbols whose definition it had seen, values, and errors that came again. The end that
stays word for word counts, too. *plain ledger* are the same facts as in our summary, in the order of the session.

";

const CHAINED: &str = "\
A session is cut into five parts. After each, everything so far is compacted; the next part follows the outcome. What
counts are facts of the first part that still hold at the end of the session.
";

const PLANTED: &str = "\
Eight made-up sessions of 40 turns, six random facts a turn, made of words that no language has, so that no common
word can satisfy them.
";

const LIMITS: &str = "
## What this does not say

- It is lexical: that a fact is said does not mean that a model will use it. Kept is an upper bound of that.
- It knows the facts that its rules find. What hand-made labels say of the rules: at least 80 % of the facts that people
  mark are found. Reasons, nuances and tone are not measured.
- Small budgets measure what is pinned more than how well it is written. Read a summary before you trust a figure.
- Our own summaries were improved against these figures. Sessions that were not in the corpus are the better test;
  `epitome score --corpus` on your own is the best one.
- Milliseconds are those of the machine at hand, for planning, writing and checking; reading the session and its facts
  is apart.
";
