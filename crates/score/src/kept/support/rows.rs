//! Sets of word n-grams, looked up by their hashes.

use foldhash::HashMap;
use twox_hash::XxHash3_64;

/// N-grams of up to three words that claims contain, and which of them were found.
#[derive(Clone, Default)]
pub(super) struct NgramSet {
    /// Whether an n-gram begins with a word of this [`bucket`], which rules out most words at once.
    first: Vec<bool>,
    rows: HashMap<u64, bool>,
}

impl NgramSet {
    /// Adds all n-grams of a text as wanted.
    pub(super) fn ask(&mut self, text: &str) {
        self.first.resize(1 << 16, false);
        for word in words(text) {
            self.first[bucket(word)] = true;
        }
        rows_of(text, |_| true, |it| _ = self.rows.insert(it, false));
    }

    /// Marks the n-grams that a text of the source has.
    pub(super) fn find(&mut self, text: &str) {
        let Self { first, rows } = self;
        if first.is_empty() {
            return;
        }
        rows_of(
            text,
            |it| first[bucket(it)],
            |it| {
                if let Some(found) = rows.get_mut(&it) {
                    *found = true;
                }
            },
        );
    }

    /// Marks what another set with the same n-grams found.
    pub(super) fn join(&mut self, other: Self) {
        self.rows.extend(other.rows.into_iter().filter(|it| it.1));
    }

    /// Whether the source has all n-grams of a text that was added by [`ask`](Self::ask).
    pub(super) fn has(&self, text: &str) -> bool {
        let mut holds = true;
        rows_of(text, |_| true, |it| holds &= self.rows.get(&it).copied().unwrap_or_default());
        holds
    }
}

pub(super) fn hash(text: &str) -> u64 {
    XxHash3_64::oneshot(text.as_bytes())
}

/// The runs of letters and digits in a text.
fn words(mut text: &str) -> impl Iterator<Item = &str> {
    // Number of bytes at the start of a text that are letters and digits, or that are anything else.
    let span = |text: &str, letters: bool| {
        let mut at = 0;
        while let Some(byte) = text.as_bytes().get(at) {
            let (letter, len) = match byte {
                byte if byte.is_ascii() => (byte.is_ascii_alphanumeric(), 1),
                _ => text[at..].chars().next().map_or((false, 1), |it| (it.is_alphanumeric(), it.len_utf8())),
            };
            if letter != letters {
                break;
            }
            at += len;
        }
        at
    };
    std::iter::from_fn(move || {
        text = &text[span(text, false)..];
        let (run, rest) = text.split_at(span(text, true));
        text = rest;
        (!run.is_empty()).then_some(run)
    })
}

/// A 16-bit hash of a word's first two bytes, last byte and length.
fn bucket(word: &str) -> usize {
    let bytes = word.as_bytes();
    let at = |place: usize| bytes.get(place).copied().unwrap_or_default();
    let some = [at(0), at(1), at(bytes.len().wrapping_sub(1)), bytes.len() as u8];
    (u32::from_le_bytes(some).wrapping_mul(0x9E37_79B1) >> 16) as usize
}

/// Takes the hashes of all n-grams of up to three words whose first word `first` accepts.
fn rows_of(text: &str, first: impl Fn(&str) -> bool, mut take: impl FnMut(u64)) {
    let mut words = words(text);
    let (mut one, mut two, mut three) = (words.next(), words.next(), words.next());
    while let Some(word) = one {
        if first(word) {
            let joined = |row: u64, word| row.rotate_left(5).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ hash(word);
            let word = hash(word);
            let pair = two.map(|it| joined(word, it));
            let triple = pair.zip(three).map(|(pair, it)| joined(pair, it));
            [Some(word), pair, triple].into_iter().flatten().for_each(&mut take);
        }
        (one, two, three) = (two, three, words.next());
    }
}
