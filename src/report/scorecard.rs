//! The scorecard: what each way to compact kept on many sessions, as Markdown. Built from values.

use std::collections::BTreeMap;

use serde::Serialize;

use score::{Class, Hindsight, Score, StatementTally, Tally, Truth, UsedKind};

/// The result of compacting one session in one way.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Trial {
    pub session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Weighted share of the facts that the result still contains; `None` if no facts were removed.
    pub kept: Option<f64>,
    pub classes: BTreeMap<Class, Tally>,
    /// Last request and open question; here the verbatim end counts as kept.
    pub last_request: Tally,
    /// Statements that contradict the original.
    pub contradictions: usize,
    /// Statements without support in the original.
    pub unsupported: usize,
    /// How many of its statements about the present are right.
    pub truth: Truth,
    /// Violations of the API's rules.
    pub invalid: usize,
    /// The requested size in tokens.
    pub budget: u64,
    /// Tokens before and after.
    pub tokens: (u64, u64),
    /// Milliseconds, without reading the session.
    pub millis: f64,
}

impl Trial {
    /// Copies the fields that a score has.
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

    /// As one line of a list.
    fn line(&self) -> String {
        if let Some(why) = &self.refused {
            return format!("- {}: nothing was made: {why}\n", self.session);
        }
        let lost = |(class, tally): (&Class, &Tally)| {
            let gone = tally.found - tally.kept;
            (gone > 0).then(|| format!("{} {gone} of {}", class.name(), tally.found))
        };
        let lost: Vec<String> = self.classes.iter().filter_map(lost).collect();
        let lost = if lost.is_empty() { "nothing".to_owned() } else { lost.join(", ") };
        format!("- {}: {} kept; only in the archive: {lost}\n", self.session, share(self.kept))
    }

    /// Number of facts that the result does not contain, not even in its verbatim end.
    pub fn lost(&self) -> usize {
        self.classes.values().map(|it| it.found - it.kept).sum()
    }
}

/// One way to compact at one size, over all sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactsRow {
    /// The profile or baseline.
    pub way: String,
    /// The requested size in percent of the original's tokens; `None` for the profile's own size.
    pub percent: Option<u64>,
    /// One per session.
    pub trials: Vec<Trial>,
}

impl FactsRow {
    /// The trials that were not refused.
    pub fn done(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|it| it.refused.is_none())
    }

    /// Quantile of [`Trial::kept`] over the sessions; `at`: 0 to 1.
    pub fn kept(&self, at: f64) -> Option<f64> {
        quantile(self.done().filter_map(|it| it.kept).collect(), at)
    }

    /// The share kept of all sessions' facts of a class. For last requests, the verbatim end counts as kept.
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

    /// Sum of a count over the sessions.
    pub fn sum(&self, of: impl Fn(&Trial) -> usize) -> usize {
        self.done().map(of).sum()
    }

    /// Statements of one kind over all sessions, and how many of them are right.
    pub fn statements(&self, of: impl Fn(&Truth) -> StatementTally) -> StatementTally {
        let all = self.done().map(|it| of(&it.truth));
        all.fold(StatementTally::default(), |sum, it| StatementTally {
            told: sum.told + it.told,
            right: sum.right + it.right,
        })
    }

    /// Number of sessions whose result exceeds the requested size.
    pub fn over(&self) -> usize {
        self.done().filter(|it| it.tokens.1 > it.budget).count()
    }

    /// The median of tokens after as a share of tokens before.
    pub fn size(&self) -> Option<f64> {
        quantile(self.done().map(|it| it.tokens.1 as f64 / it.tokens.0.max(1) as f64).collect(), 0.5)
    }

    pub fn millis(&self) -> Option<f64> {
        quantile(self.done().map(|it| it.millis).collect(), 0.5)
    }
}

/// How much of the first fifth of a session is left after one and after five consecutive compactions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Link {
    /// Weighted share of its facts that the first compaction kept.
    pub first: f64,
    /// Of the facts that the first compaction kept, the share left after the fifth.
    pub left: f64,
}

/// Five consecutive compactions, over all sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chain {
    pub way: String,
    /// The requested size of each compaction, in percent of the tokens.
    pub percent: u64,
    /// One per session.
    pub links: Vec<Link>,
}

impl Chain {
    /// Medians of both shares.
    pub fn medians(&self) -> Option<Link> {
        let first = quantile(self.links.iter().map(|it| it.first).collect(), 0.5)?;
        let left = quantile(self.links.iter().map(|it| it.left).collect(), 0.5)?;
        Some(Link { first, left })
    }

    fn line(&self) -> String {
        let middle = self.medians();
        let (first, left) = (share(middle.map(|it| it.first)), share(middle.map(|it| it.left)));
        line(&[self.way.clone(), at(Some(self.percent)), first, left, self.links.len().to_string()])
    }
}

/// What one way kept of the things before a cut that were used after it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HindsightResult {
    pub session: String,
    /// Tokens of the result.
    pub tokens: u64,
    pub hindsight: Hindsight,
}

/// One way at one size, over all cuts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HindsightRow {
    pub way: String,
    /// The requested size in percent of the original's tokens; `None` for the way's own size.
    pub percent: Option<u64>,
    pub looks: Vec<HindsightResult>,
}

impl HindsightRow {
    /// Quantile of the share kept over the cuts; `at`: 0 to 1.
    pub fn kept(&self, at: f64) -> Option<f64> {
        quantile(self.looks.iter().filter_map(|it| it.hindsight.share()).collect(), at)
    }

    /// The share kept of all used things of a kind.
    pub fn kind(&self, kind: UsedKind) -> Option<f64> {
        let all = self.looks.iter().filter_map(|it| it.hindsight.kinds.get(&kind));
        let (used, kept) = all.fold((0, 0), |sum, it| (sum.0 + it.used, sum.1 + it.kept));
        (used > 0).then(|| kept as f64 / used as f64)
    }
}

/// How much each way keeps of what was used later.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct HindsightCard {
    pub rows: Vec<HindsightRow>,
    /// Each of the agents' own compactions, and ours at the same size.
    pub agents_own: Vec<(HindsightResult, HindsightResult)>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Card {
    /// Names and tokens of the sessions.
    pub sessions: Vec<(String, u64)>,
    /// Sessions that were too small or could not be read.
    pub left_out: usize,
    pub rows: Vec<FactsRow>,
    pub chains: Vec<Chain>,
    pub hindsight: HindsightCard,
    /// Rows for synthetic sessions with planted facts.
    pub planted: Vec<FactsRow>,
}

/// The value below which a share `at` of the values lies, without interpolation.
fn quantile(mut values: Vec<f64>, at: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let index = (values.len() as f64 * at).floor() as usize;
    values.get(index.min(values.len().saturating_sub(1))).copied()
}

/// A share with two digits, rounded down so that nothing looks better than it is.
fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |it| format!("{:.2}", (it * 100.0 + 1e-9).floor() / 100.0))
}

/// A row of a Markdown table.
fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// The header of a Markdown table; all columns but the first are right-aligned.
fn head(columns: &[&str]) -> String {
    format!("| {} |\n|---|{}\n", columns.join(" | "), "--:|".repeat(columns.len() - 1))
}

fn at(percent: Option<u64>) -> String {
    percent.map_or_else(|| "own size".to_owned(), |it| format!("{it} %"))
}

impl HindsightCard {
    fn ways(&self) -> String {
        let kinds: Vec<&str> = UsedKind::ALL.iter().map(|it| it.name()).collect();
        let mut out = head(&[&["way", "at", "kept: median", "10th percentile"], &*kinds, &["cuts"]].concat());
        for row in &self.rows {
            let mut cells = vec![row.way.clone(), at(row.percent)];
            cells.extend([format!("**{}**", share(row.kept(0.5))), share(row.kept(0.1))]);
            cells.extend(UsedKind::ALL.iter().map(|it| share(row.kind(*it))));
            cells.push(row.looks.len().to_string());
            out.push_str(&line(&cells));
        }
        out
    }

    fn agents_own(&self) -> String {
        let middle = |side: fn(&(HindsightResult, HindsightResult)) -> &HindsightResult| {
            share(quantile(self.agents_own.iter().filter_map(|it| side(it).hindsight.share()).collect(), 0.5))
        };
        format!(
            "{} compactions of the agents' own, each beside ours of the same messages at no larger a size: median {} and {}.",
            self.agents_own.len(),
            middle(|it| &it.0),
            middle(|it| &it.1)
        )
    }

    fn compactions(&self) -> String {
        let of = |it: &HindsightResult| share(it.hindsight.share());
        let row = |(native, ours): &(HindsightResult, HindsightResult)| {
            line(&[native.session.clone(), native.tokens.to_string(), of(native), of(ours)])
        };
        self.agents_own.iter().map(row).collect()
    }
}

/// The page's template, with placeholders.
const PAGE: &str = include_str!("scorecard.md");

impl Card {
    pub fn markdown(&self) -> String {
        let tokens: u64 = self.sessions.iter().map(|it| it.1).sum();
        let (count, left_out) = (self.sessions.len(), self.left_out);
        let mut sizes: Vec<u64> = self.rows.iter().filter_map(|it| it.percent).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let of_size =
            |rows: &[FactsRow], size: Option<u64>| table(rows.iter().filter(|it| it.percent == size));
        let by_size = |title: &dyn Fn(u64) -> String, rows: &[FactsRow]| -> String {
            sizes.iter().map(|it| format!("{}\n\n{}", title(*it), of_size(rows, Some(*it)))).collect()
        };
        let values = [
            ("{counts}", format!("{count} sessions with {tokens} tokens; {left_out}")),
            ("{version}", score::VERSION.to_string()),
            ("{by_size}", by_size(&|it| format!("## At {it} % of the tokens"), &self.rows)),
            ("{own_size}", of_size(&self.rows, None)),
            ("{dominated}", self.dominated()),
            ("{truth}", self.truth()),
            ("{later}", self.hindsight.ways()),
            ("{natives}", self.hindsight.agents_own()),
            ("{compactions}", self.hindsight.compactions()),
            ("{chains}", self.chains.iter().map(Chain::line).collect()),
            ("{planted}", by_size(&|it| format!("\nAt {it} %:"), &self.planted)),
            ("{worst}", self.worst()),
            (
                "{sessions}",
                self.sessions.iter().map(|it| format!("- {} ({} tokens)\n", it.0, it.1)).collect(),
            ),
        ];
        values.iter().fold(PAGE.trim_end().to_owned(), |page, (place, value)| page.replace(place, value))
    }

    /// Lists sessions where a smaller budget loses fewer facts than the profile's own size.
    fn dominated(&self) -> String {
        let of = |own: &FactsRow| {
            let smaller = self.rows.iter().filter(|it| it.way == own.way && it.percent.is_some());
            let found: Vec<String> =
                smaller.flat_map(|it| dominates(it, own)).map(|it| format!("- {it}\n")).collect();
            format!("A smaller budget loses fewer facts in {} cases.\n\n{}\n", found.len(), found.concat())
        };
        self.rows.iter().filter(|it| it.percent.is_none()).map(of).collect()
    }

    /// Table of the profile's statements about the present, and how many are right.
    fn truth(&self) -> String {
        let Some(own) = self.rows.iter().find(|it| it.percent.is_none()) else { return String::new() };
        let shown = |it: StatementTally| format!("{} of {} ({})", it.right, it.told, share(it.share()));
        let row = |row: &FactsRow| {
            let told = [
                row.statements(|it| it.open),
                row.statements(|it| it.outcomes),
                row.statements(|it| it.rules),
            ];
            let [open, outcomes, rules] = told.map(shown);
            line(&[at(row.percent), open, outcomes, rules])
        };
        self.rows.iter().filter(|it| it.way == own.way).map(row).collect::<String>() + "\n"
    }

    fn worst(&self) -> String {
        let Some(row) = self.rows.iter().find(|it| it.percent == Some(10)) else { return String::new() };
        let mut trials: Vec<&Trial> = row.trials.iter().collect();
        trials.sort_by(|a, b| a.kept.unwrap_or(0.0).total_cmp(&b.kept.unwrap_or(0.0)));
        trials.into_iter().take(6).map(Trial::line).collect()
    }
}

/// Describes each session where `small` has at most as many tokens as `large` and loses fewer facts.
pub fn dominates(small: &FactsRow, large: &FactsRow) -> Vec<String> {
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

fn table<'a>(rows: impl Iterator<Item = &'a FactsRow>) -> String {
    let letters: Vec<&str> = Class::ALL.iter().map(|it| it.letter()).collect();
    let measures =
        ["contradictions", "unsupported", "invalid", "over budget", "refused", "size", "ms"].as_slice();
    let mut out = head(&[&["way", "kept: median", "10th percentile"], &*letters, measures].concat());
    for row in rows {
        let mut cells = vec![row.way.clone(), format!("**{}**", share(row.kept(0.5))), share(row.kept(0.1))];
        cells.extend(Class::ALL.iter().map(|it| share(row.class(*it))));
        let counts = [
            row.sum(|it| it.contradictions),
            row.sum(|it| it.unsupported),
            row.sum(|it| usize::from(it.invalid > 0)),
            row.over(),
            row.trials.len() - row.done().count(),
        ];
        cells.extend(counts.map(|it| it.to_string()));
        cells.push(row.size().map_or_else(|| "–".to_owned(), |it| format!("{:.0} %", it * 100.0)));
        cells.push(row.millis().map_or_else(|| "–".to_owned(), |it| format!("{it:.0}")));
        out.push_str(&line(&cells));
    }
    out + "\n"
}
