//! Random histories against each system's rules, which are written here a second time, from the seeds and references
//! alone: small models of the programs, that share no code with what they check.
//!
//! Sizes are scaled down so that a thousand histories take seconds; the constants themselves are held by `vectors`.

mod claude;
mod codex;
mod gemini;
mod learn;
mod opencode;
mod supermemory;

use epitome::compaction::plan::{self, ModelLimits, Moment, Op, Plan};
use epitome::compaction::profile::Profile;
use epitome::history::{History, Message};
use epitome::tokens::Filled;

/// Histories of each kind: the first thousand, three where everything is asked for.
fn rounds() -> u64 {
    if crate::corpus::whole() { 3_000 } else { 1_000 }
}

/// A seeded generator (splitmix64): the same histories in every run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let it = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        it ^ (it >> 31)
    }

    /// A number from `least` to `most`.
    fn of(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    fn length(&mut self, least: usize, most: usize) -> usize {
        self.of(least as u64, most as u64) as usize
    }

    /// True once in so many times.
    fn once_in(&mut self, times: u64) -> bool {
        self.next().is_multiple_of(times)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.length(0, of.len() - 1)]
    }

    /// So many characters, mostly ASCII; now and then Japanese, an emoji, something that JSON escapes.
    fn text(&mut self, chars: usize) -> String {
        let other: &[char] = match self.of(0, 5) {
            0 => &['あ', '漢', '。'],
            1 => &['😀', 'é', '"'],
            2 => &['\n', '\\', '\t'],
            _ => &['a', ' ', 'z'],
        };
        (0..chars)
            .map(|_| if self.once_in(3) { self.one(other) } else { self.one(&['a', 'b', ' ', 'e']) })
            .collect()
    }
}

/// Runs a check on so many histories; says what differed in how many.
fn differences(name: &str, rounds: u64, mut check: impl FnMut(&mut Dice) -> Result<(), String>) {
    let mut dice = Dice(0x5EED);
    let failures: Vec<String> = (0..rounds)
        .filter_map(|round| check(&mut dice).err().map(|it| format!("history {round}: {it}")))
        .collect();
    println!("{name}: {rounds} histories, {} differ", failures.len());
    assert!(
        failures.is_empty(),
        "{name}: {} of {rounds} differ, the first:\n{}",
        failures.len(),
        failures[..failures.len().min(3)].join("\n")
    );
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, ours: &T, theirs: &T) -> Result<(), String> {
    let clip = |text: String| text.chars().take(1_500).collect::<String>();
    if ours == theirs {
        return Ok(());
    }
    let [ours, theirs] = [ours, theirs].map(|it| clip(format!("{it:?}")));
    Err(format!("ours {ours}, the rules {theirs}: {}", clip(what.to_owned())))
}

/// Whether a profile compacts by itself a context of so many tokens.
fn due(
    profile: &Profile,
    messages: Vec<Message>,
    tokens: u64,
    limits: &ModelLimits<'_>,
    moment: &Moment,
) -> bool {
    let history = crate::vectors::history(messages);
    plan::verdict(&history, Filled { overhead: 0, messages: tokens }, profile, limits, moment).due
}

/// What stands in the place of an output: by message and part.
fn replaced(plan: &Plan) -> std::collections::BTreeMap<(usize, usize), String> {
    plan.ops
        .iter()
        .filter_map(|op| match op {
            Op::Clear(it) | Op::Shorten(it) => Some(((it.message, it.part), it.text.clone())),
            Op::Drop { .. }
            | Op::Summarize { .. }
            | Op::Collapse { .. }
            | Op::Skip { .. }
            | Op::Move { .. } => None,
        })
        .collect()
}

/// The new history as text, one entry a message; the pieces of a message without anything between.
fn texts(history: &History, plan: &Plan) -> Vec<String> {
    let text = |it: &Message| {
        let outputs: Vec<&str> = it.outputs().map(|it| it.text.as_str()).collect();
        let said: String = it.texts().map(|it| it.as_str()).collect();
        outputs.join("\n") + &said
    };
    crate::vectors::laid_out(history, plan).iter().map(text).collect()
}
