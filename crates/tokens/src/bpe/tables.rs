//! The layout of a vocabulary's tables, for `build.rs`, which makes them, and the counter, which reads them.
//!
//! A table gives each of its keys its own slot (perfect hashing). The key's hash selects a group; the group's
//! displacement and the hash select the slot. A key that is not in the table ends at the slot of another one.
//! All numbers are little-endian.

pub(crate) const ID_BITS: u32 = 18;
/// Maximum bytes of a piece whose key is one word.
pub(crate) const SHORT: usize = 8;
/// Maximum bytes of a piece whose key is two words.
pub(crate) const LONG: usize = 14;
/// The alignment of everything in the file: the size of a cache line.
pub(crate) const LINE: usize = 64;

/// The number of groups and of slots for `keys`: 4 keys per group, 12 of 13 slots taken.
pub(crate) const fn sizes(keys: usize) -> (usize, usize) {
    (keys / 4 + 1, keys + keys / 12 + 1)
}

#[inline(always)]
pub(crate) fn group(hash: u64, groups: usize) -> usize {
    below(hash, groups)
}

/// The slot of a hash whose group has this displacement.
#[inline(always)]
pub(crate) fn slot(hash: u64, displacement: u16, slots: usize) -> usize {
    below(hash.wrapping_mul(u64::from(displacement) << 1 | 1), slots)
}

/// Scales a number of 64 bits down to one below `end`.
#[inline(always)]
fn below(it: u64, end: usize) -> usize {
    (((it >> 32) * end as u64) >> 32) as usize
}

const FACTORS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F];

/// The key of two neighboring ids.
#[inline(always)]
pub(crate) fn pair(first: u32, second: u32) -> u64 {
    u64::from(first) << ID_BITS | u64::from(second)
}

/// The key of a piece of up to [`SHORT`] bytes, given its first eight bytes (including what comes after it).
/// No other piece has this key, because no character ends with a byte like those that mark the length.
#[inline(always)]
pub(crate) fn short(word: u64, len: usize) -> u64 {
    if len == SHORT { word } else { tagged(word, len) }
}

/// The second word of the key of a piece of up to [`LONG`] bytes, given the bytes after its first eight,
/// which are the first word. Its second-highest byte is 0.
#[inline(always)]
pub(crate) fn second(word: u64, len: usize) -> u64 {
    tagged(word, len - SHORT)
}

#[inline(always)]
fn tagged(word: u64, len: usize) -> u64 {
    word & ((1 << (8 * len)) - 1) | (0xF0 | len as u64) << 56
}

/// The hash of a key of one word.
#[inline(always)]
pub(crate) fn hash(key: u64) -> u64 {
    let it = key.wrapping_mul(FACTORS[0]);
    it ^ it >> 32
}

/// The hash of a key of two words.
#[inline(always)]
pub(crate) fn hash_of_two([first, second]: [u64; 2]) -> u64 {
    hash(first.wrapping_mul(FACTORS[0]) ^ second.wrapping_mul(FACTORS[1]).rotate_left(32))
}
