//! What simple ways to compact keep: the scorecard's floor and yardstick. Plain functions over histories.

use history::named;
use history::tools::{self, Meaning};
use history::{History, Kind, Message, Output, Part, Role, Text};

named! {
    /// A way to compact that anyone can write in an hour.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Baseline {
        /// The newest messages that fit.
        KeepLast = "keep-last",
        /// The user's messages before the newest that fit in half of it, the oldest and newest first.
        UserOnly = "user-only",
        /// All messages, the older tool outputs replaced by a placeholder; the oldest messages go if it still does not
        /// fit.
        Masking = "masking",
        /// One line a message, cut to its first words, before the newest messages.
        Skeleton = "skeleton",
        /// A list of the files named, before the newest messages.
        FileList = "file-list",
    }
}

impl Baseline {
    /// Compacts `source` to at most `budget` tokens, as `count` counts a message; less if units do not fit exactly.
    pub fn compact(self, source: &History, budget: u64, count: &dyn Fn(&Message) -> u64) -> History {
        let messages = source.messages();
        let history = |front: Vec<Message>, from: usize| {
            let all = front.into_iter().chain(messages[from..].iter().cloned()).collect();
            History::new(all, source.meta.clone())
        };
        match self {
            Self::KeepLast => history(Vec::new(), newest(source, budget, count)),
            Self::UserOnly => {
                let from = newest(source, budget / 2, count);
                let tail: u64 = messages[from..].iter().map(count).sum();
                let prompts: Vec<&Message> = messages[..from].iter().filter(|it| it.is_prompt()).collect();
                let mut left = budget.saturating_sub(tail);
                let mut keep = vec![false; prompts.len()];
                let newest_first = (0..prompts.len()).rev().filter(|it| *it > 0);
                for at in (0..prompts.len().min(1)).chain(newest_first) {
                    let price = count(prompts[at]);
                    if price <= left {
                        left -= price;
                        keep[at] = true;
                    }
                }
                let front = prompts.into_iter().zip(keep).filter(|it| it.1).map(|it| it.0.clone()).collect();
                history(front, from)
            }
            Self::Masking => masked(source, budget, count),
            Self::Skeleton => beside_the_newest(source, budget, count, |from| {
                messages[..from].iter().map(skeleton).filter(|it| !it.is_empty()).collect()
            }),
            Self::FileList => beside_the_newest(source, budget, count, |from| {
                let mut lines = vec!["Files:".to_string()];
                for path in messages[..from].iter().flat_map(Message::calls).flat_map(tools::actions) {
                    let line = path.path.map(|it| format!("- {it}"));
                    lines.extend(line.filter(|it| !lines.contains(it)));
                }
                lines
            }),
        }
    }
}

/// The newest messages that fit into half of `budget`, behind a summary of as many of the last `lines` as fit
/// into the rest. `lines` gets the number of messages that go.
pub fn beside_the_newest(
    source: &History,
    budget: u64,
    count: &dyn Fn(&Message) -> u64,
    lines: impl FnOnce(usize) -> Vec<String>,
) -> History {
    let from = newest(source, budget / 2, count);
    let end = &source.messages()[from..];
    let left = budget.saturating_sub(end.iter().map(count).sum());
    let all = summary(&lines(from), left, count).into_iter().chain(end.iter().cloned()).collect();
    History::new(all, source.meta.clone())
}

/// Index from which on the newest units fit into `budget`.
fn newest(source: &History, budget: u64, count: &dyn Fn(&Message) -> u64) -> usize {
    let mut left = budget;
    let mut from = source.messages().len();
    for unit in source.units().iter().rev() {
        let price: u64 = source.messages()[unit.clone()].iter().map(count).sum();
        if price > left {
            break;
        }
        left -= price;
        from = unit.start;
    }
    from
}

/// The newest lines that fit, found by bisection, since more lines have more tokens.
fn summary(lines: &[String], budget: u64, count: &dyn Fn(&Message) -> u64) -> Vec<Message> {
    let make = |lines: &[String]| Message::text(Role::User, Kind::Summary, lines.join("\n"));
    let (mut fits, mut over) = (0, lines.len() + 1);
    while fits + 1 < over {
        let middle = fits.midpoint(over);
        if count(&make(&lines[lines.len() - middle..])) <= budget { fits = middle } else { over = middle }
    }
    if fits == 0 { Vec::new() } else { vec![make(&lines[lines.len() - fits..])] }
}

/// The first words of each part, and the names of tools.
fn skeleton(message: &Message) -> String {
    let who = message.role.name();
    let mut out = String::new();
    for part in &message.parts {
        let text = match part {
            Part::Text(it) => super::text::clip(&super::text::normal(it.as_str()), 100).to_string(),
            Part::Call(it) => {
                let path =
                    tools::actions(it).into_iter().find_map(|it| it.path.or(it.command)).unwrap_or_default();
                format!("[{}] {}", it.name, super::text::clip(&super::text::normal(&path), 80))
            }
            Part::Output(it) => {
                let failed = if it.failed { "failed: " } else { "" };
                format!("{failed}{}", super::text::clip(&super::text::normal(it.text.as_str()), 60))
            }
            Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => continue,
        };
        out.push_str(&format!("{who}: {text} "));
    }
    out
}

/// Masks outputs, except those of the plan, from the oldest on until the history fits. If that is not enough,
/// the oldest units go, too.
fn masked(source: &History, budget: u64, count: &dyn Fn(&Message) -> u64) -> History {
    let mut all: Vec<Message> = source.messages().to_vec();
    let mut total: u64 = all.iter().map(count).sum();
    for message in &mut all {
        if total <= budget {
            break;
        }
        let before = count(message);
        for part in &mut message.parts {
            if let Part::Output(output) = part {
                mask(output);
            }
        }
        message.parts.retain(|it| !matches!(it, Part::Reasoning(_)));
        total = total + count(message) - before;
    }
    let masked = History::new(all, source.meta.clone());
    let from = newest(&masked, budget, count);
    let kept = masked.messages()[from..].to_vec();
    History::new(kept, source.meta.clone())
}

fn mask(output: &mut Output) {
    let plan = output.name.as_deref().is_some_and(|it| tools::meaning(it) == Meaning::Plan);
    if !plan && output.text.size().bytes > 60 {
        output.text = Text::new("[output removed]");
        output.media = [].into();
        output.cleared = true;
    }
}
