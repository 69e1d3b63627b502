//! Byte-pair encoding over tables that are used in place in the binary: nothing is decompressed, pages are
//! loaded on demand, and all processes share them.
//!
//! A text is cut into [`pieces`]. Nearly all of them are one token, which a single table lookup tells. The
//! others are merged pair by pair, lowest id first, and cached per thread.

mod pieces;
mod tables;

use std::cell::RefCell;

use tables::{ID_BITS, LINE, LONG, SHORT};
use twox_hash::XxHash3_128;

/// A vocabulary, and its pattern for cutting texts.
pub(super) struct Vocabulary {
    bytes: &'static [u8],
    /// Two neighboring ids, and the id that they merge to.
    pairs: Table<8>,
    /// Tokens of up to [`SHORT`] bytes.
    short: Table<8>,
    /// Tokens of up to [`LONG`] bytes.
    long: Table<16>,
    /// Whether the pattern distinguishes upper and lower case, as that of `o200k_base` does.
    is_cased: bool,
}

/// Aligned to a cache line.
#[repr(C, align(64))]
struct Lined<T: ?Sized>(T);

macro_rules! tables {
    ($name:literal) => {{
        static TABLES: &Lined<[u8]> =
            &Lined(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".tables")));
        &TABLES.0
    }};
}

pub(super) static O200K: Vocabulary = Vocabulary::of(tables!("o200k_base"), true);
pub(super) static CL100K: Vocabulary = Vocabulary::of(tables!("cl100k_base"), false);

/// A table that `build.rs` made of some keys: see [`tables`].
struct Table<const WIDTH: usize> {
    displacements: &'static [[u8; 2]],
    slots: &'static [[u8; WIDTH]],
}

impl<const WIDTH: usize> Table<WIDTH> {
    /// The table at the beginning of `bytes`, and the bytes after it.
    const fn of(bytes: &'static [u8], keys: usize) -> (Self, &'static [u8]) {
        let (groups, slots) = tables::sizes(keys);
        let (displacements, bytes) = bytes.split_at(groups * 2);
        let bytes = bytes.split_at((groups * 2).next_multiple_of(LINE) - groups * 2).1;
        let (slots, bytes) = bytes.split_at(slots * WIDTH);
        (Self { displacements: displacements.as_chunks().0, slots: slots.as_chunks().0 }, bytes)
    }

    /// The one slot that may hold the key of this hash.
    #[inline(always)]
    fn slot(&self, hash: u64) -> &'static [u8; WIDTH] {
        let displacement = self.displacements[tables::group(hash, self.displacements.len())];
        &self.slots[tables::slot(hash, u16::from_le_bytes(displacement), self.slots.len())]
    }
}

/// What the tables say about a piece.
enum Piece {
    Token,
    /// Several tokens, or one that is in no table; its count is cached by this key.
    Merged([u64; 2]),
    /// The same, but too long to be cached.
    Large,
}

const NONE: u32 = u32::MAX;

impl Vocabulary {
    const fn of(all: &'static [u8], is_cased: bool) -> Self {
        let keys = all.as_chunks::<4>().0;
        let (bytes, rest) = all.split_at(LINE).1.split_at(256);
        let (pairs, rest) = Table::of(rest, u32::from_le_bytes(keys[0]) as usize);
        let (short, rest) = Table::of(lined(all, rest), u32::from_le_bytes(keys[1]) as usize);
        let (long, _) = Table::of(lined(all, rest), u32::from_le_bytes(keys[2]) as usize);
        Self { bytes, pairs, short, long, is_cased }
    }

    pub(super) fn count(&self, text: &str) -> usize {
        if self.is_cased { self.count_by::<true>(text) } else { self.count_by::<false>(text) }
    }

    fn count_by<const CASED: bool>(&self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let (mut at, mut out) = (0, 0);
        while at < bytes.len() {
            let end = pieces::end::<CASED>(text, at);
            out += match self.look_up(bytes, at, end) {
                Piece::Token => 1,
                Piece::Merged(key) => self.merged_count(&bytes[at..end], key),
                Piece::Large => self.merge(&bytes[at..end]),
            };
            at = end;
        }
        out
    }

    #[inline(always)]
    fn look_up(&self, bytes: &[u8], at: usize, end: usize) -> Piece {
        let len = end - at;
        let first = pieces::word(bytes, at);
        if len <= SHORT {
            let key = tables::short(first, len);
            let slot = self.short.slot(tables::hash(key));
            if u64::from_le_bytes(*slot) == key { Piece::Token } else { Piece::Merged([key, SHORTER]) }
        } else if len <= LONG {
            let key = [first, tables::second(pieces::word(bytes, at + SHORT), len)];
            let (slot, _) = self.long.slot(tables::hash_of_two(key)).as_chunks();
            let is_token = slot.iter().zip(key).all(|(it, key)| u64::from_le_bytes(*it) == key);
            if is_token { Piece::Token } else { Piece::Merged(key) }
        } else if len <= REMEMBERED {
            // As much of a good hash as there is room for: no two pieces have the same by accident.
            let hash = XxHash3_128::oneshot(&bytes[at..end]);
            Piece::Merged([hash as u64, (hash >> 64) as u64 & !(0xFFFF << 48) | HASHED])
        } else {
            Piece::Large
        }
    }

    /// The number of tokens of a piece that is not one token; cached by this thread.
    #[inline(never)]
    fn merged_count(&self, piece: &[u8], key: [u64; 2]) -> usize {
        KNOWN.with_borrow_mut(|known| {
            let known = &mut known[usize::from(self.is_cased)];
            let place = (tables::hash_of_two(key) >> 32) as usize % PLACES;
            if let Some([first, second]) = known.get(place)
                && *first == key[0]
                && second & !COUNT == key[1]
            {
                return ((second & COUNT) >> COUNT_AT) as usize;
            }
            let count = if piece.len() <= LANES { self.merge_few(piece) } else { self.merge(piece) };
            if known.is_empty() {
                *known = vec![[0; 2]; PLACES];
            }
            known[place] = [key[0], key[1] | (count as u64) << COUNT_AT];
            count
        })
    }

    /// The id that two ids merge to, or [`NONE`].
    #[inline(always)]
    fn pair(&self, first: u32, second: u32) -> u32 {
        let key = tables::pair(first, second);
        let slot = u64::from_le_bytes(*self.pairs.slot(tables::hash(key)));
        if slot >> ID_BITS == key { slot as u32 & ((1 << ID_BITS) - 1) } else { NONE }
    }

    /// The number of tokens of a piece of 2 to [`LANES`] bytes.
    fn merge_few(&self, piece: &[u8]) -> usize {
        // Each token is at the index of its first byte, and so is its pair with the next one. The lowest bits
        // of a pair are this index, so the minimum of several equal pairs is the first one.
        let mut ids = [0; LANES];
        let mut pairs = [NONE; LANES];
        let mut next = [0u8; LANES];
        let mut previous = [0u8; LANES];
        let pair = |first, second, at: usize| match self.pair(first, second) {
            NONE => NONE,
            id => id << LANE_BITS | at as u32,
        };
        for (at, byte) in piece.iter().enumerate() {
            ids[at] = u32::from(self.bytes[usize::from(*byte)]);
            next[at] = at as u8 + 1;
            previous[at] = (at as u8).wrapping_sub(1);
        }
        for at in 0..piece.len() - 1 {
            pairs[at] = pair(ids[at], ids[at + 1], at);
        }
        let mut tokens = piece.len();
        loop {
            let lowest = pairs.iter().fold(NONE, |lowest, it| lowest.min(*it));
            if lowest == NONE {
                return tokens;
            }
            tokens -= 1;
            let (at, id) = (lowest as usize % LANES, lowest >> LANE_BITS);
            let merged = usize::from(next[at]) % LANES;
            let following = usize::from(next[merged]);
            (ids[at], next[at]) = (id, following as u8);
            (pairs[at], pairs[merged]) = (NONE, NONE);
            if following < piece.len() {
                previous[following] = at as u8;
                pairs[at] = pair(id, ids[following], at);
            }
            if at > 0 {
                let before = usize::from(previous[at]) % LANES;
                pairs[before] = pair(ids[before], id, before);
            }
        }
    }

    /// The number of tokens of a piece.
    ///
    /// It is merged in stretches, so that the time is linear in its length. Tokens are those of the whole
    /// text if and only if any two neighbors, merged on their own, stay as they are. So the last tokens of a
    /// stretch, which later text may change, are given up, the next stretch begins there, and the place where
    /// both meet is checked. How far back later text can change tokens is bounded by the vocabulary, so
    /// stretches get longer until the check holds.
    fn merge(&self, piece: &[u8]) -> usize {
        let mut size = 64;
        let stretch = |begin: usize, size: usize| {
            let end = piece.len().min(begin + size);
            self.merge_all(&piece[begin..end]).into_iter().map(|it| begin + it).collect::<Vec<usize>>()
        };
        let mut tokens = 0;
        let mut begin = 0;
        let mut ends = stretch(begin, size);
        while begin + size < piece.len() {
            let mut given_up = 3;
            loop {
                let kept = ends.len().saturating_sub(given_up);
                if kept == 0 {
                    size *= 2;
                    ends = stretch(begin, size);
                    break;
                }
                let end = ends[kept - 1];
                let last = if kept == 1 { begin } else { ends[kept - 2] };
                let then = stretch(end, size);
                if stretch(last, then[0] - last) == [end, then[0]] {
                    tokens += kept;
                    (begin, ends) = (end, then);
                    break;
                }
                given_up *= 2;
            }
        }
        tokens + ends.len()
    }

    /// Where the tokens of a stretch end, if it is merged on its own.
    fn merge_all(&self, stretch: &[u8]) -> Vec<usize> {
        let mut ids: Vec<u32> = stretch.iter().map(|it| u32::from(self.bytes[usize::from(*it)])).collect();
        let mut ends: Vec<usize> = (1..=stretch.len()).collect();
        let mut pairs: Vec<u32> = ids.windows(2).map(|it| self.pair(it[0], it[1])).collect();
        pairs.push(NONE);
        loop {
            let lowest = pairs.iter().fold(NONE, |lowest, it| lowest.min(*it));
            if lowest == NONE {
                return ends;
            }
            // All pairs with this id, from the first on: what they merge to can only merge to a higher one.
            let (mut from, mut to) = (0, 0);
            let mut is_new = false;
            while from < ids.len() {
                let merges = pairs[from] == lowest;
                let last = from + usize::from(merges);
                let id = if merges { lowest } else { ids[from] };
                if to > 0 && (merges || is_new) {
                    pairs[to - 1] = self.pair(ids[to - 1], id);
                }
                (ids[to], ends[to], pairs[to]) = (id, ends[last], pairs[last]);
                is_new = merges;
                from = last + 1;
                to += 1;
            }
            ids.truncate(to);
            ends.truncate(to);
            pairs.truncate(to);
        }
    }
}

/// The beginning of the next table, which is aligned to [`LINE`].
const fn lined(all: &'static [u8], rest: &'static [u8]) -> &'static [u8] {
    let at = all.len() - rest.len();
    rest.split_at(at.next_multiple_of(LINE) - at).1
}

/// Maximum bytes of a piece that [`Vocabulary::merge_few`] merges.
const LANES: usize = 1 << LANE_BITS;
const LANE_BITS: u32 = 4;

/// Maximum bytes of a piece whose count is cached: the count fits into a byte.
const REMEMBERED: usize = 255;
/// The second word of a cached key also holds the count, between the data of the key and the bits that say
/// its kind.
const COUNT_AT: u32 = 48;
const COUNT: u64 = 0xFF << COUNT_AT;
/// The highest bits of the second word tell a hash from a key of one word, a key of two words, and an empty
/// place.
const HASHED: u64 = 0xD0 << 56;
const SHORTER: u64 = 0xE0 << 56;

/// Pieces that a thread caches per encoding, in 256 kB; a new one replaces the one at its place.
const PLACES: usize = 1 << 14;

thread_local! {
    /// Keys and counts of pieces: `cl100k_base`, `o200k_base`.
    static KNOWN: RefCell<[Vec<[u64; 2]>; 2]> = const { RefCell::new([const { Vec::new() }; 2]) };
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn peers() -> [(&'static str, &'static [u8], &'static Vocabulary, &'static bpe_openai::Tokenizer); 2] {
        [
            ("o200k_base", include_bytes!("o200k_base.merges"), &O200K, bpe_openai::o200k_base()),
            ("cl100k_base", include_bytes!("cl100k_base.merges"), &CL100K, bpe_openai::cl100k_base()),
        ]
    }

    /// The two tokens that `token` is made of in its last merge; `known` are the tokens with lower ids.
    fn parts(known: &HashMap<Vec<u8>, u32>, token: &[u8]) -> [u32; 2] {
        let mut ends: Vec<usize> = (0..=token.len()).collect();
        while ends.len() > 3 {
            let merged = |at: usize| known.get(&token[ends[at]..ends[at + 2]]).copied();
            let lowest = (0..ends.len() - 2).filter_map(|at| Some((merged(at)?, at))).min().unwrap();
            ends.remove(lowest.1 + 1);
        }
        [&token[..ends[1]], &token[ends[1]..]].map(|it| known[it])
    }

    /// Makes the content of the merge files. If a file has to change, this is its new content.
    #[test]
    fn merges_are_those_of_another_implementation() {
        for (name, merges, _, peer) in peers() {
            let mut made = Vec::new();
            let mut known = HashMap::new();
            for id in 0..peer.bpe.num_tokens() as u32 {
                let token = peer.bpe.decode_tokens(&[id]);
                match token.as_slice() {
                    [byte] => made.push(*byte),
                    _ => parts(&known, &token).iter().for_each(|it| made.extend(&it.to_le_bytes()[..3])),
                }
                known.insert(token, id);
            }
            assert!(made == merges, "{name}");
        }
    }

    #[test]
    fn every_token_is_one() {
        for (name, _, vocabulary, peer) in peers() {
            for id in 0..peer.bpe.num_tokens() as u32 {
                let token = peer.bpe.decode_tokens(&[id]);
                assert_eq!(vocabulary.merge_all(&token), [token.len()], "{name}: {id}");
                assert!(token.len() > LANES || vocabulary.merge_few(&token) == 1, "{name}: {id}");
            }
        }
    }

    /// Merging in stretches gives the same as merging all at once.
    #[test]
    fn stretches_meet() {
        let mut state = 1u64;
        let mut next = |end: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % end
        };
        for round in 0..150 {
            let from: Vec<char> =
                ["ab", "-=", " ", "etaoinshrdlu", "あいうえお", "^_~=-+"][round % 6].chars().collect();
            let len = 1 + next(600);
            let text: String = (0..len).map(|_| from[next(from.len())]).collect();
            for (name, _, vocabulary, _) in peers() {
                let at_once = vocabulary.merge_all(text.as_bytes()).len();
                assert_eq!(vocabulary.merge(text.as_bytes()), at_once, "{name}: {text:?}");
            }
        }
    }
}
