//! Where something lies in the tables of a vocabulary: what `build.rs`, which makes them, and the counter agree on.
//!
//! A table gives each of its keys a slot of its own. The key's hash names a group, the group's displacement and the
//! hash name the slot; a key that is not in the table ends at the slot of another one. All numbers are little-endian.

pub(crate) const ID_BITS: u32 = 18;
/// Maximum bytes of a piece that is a key of one word.
pub(crate) const SHORT: usize = 8;
/// Maximum bytes of a piece that is a key of two words.
pub(crate) const LONG: usize = 14;
/// What begins in the file of the tables, does so at a multiple of this: of a line of the processor's cache.
pub(crate) const LINE: usize = 64;

/// Number of groups and of slots for `keys`: 4 keys a group, 12 slots in 13 taken.
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

/// A number of 64 bits, brought down below another one.
#[inline(always)]
fn below(it: u64, end: usize) -> usize {
    (((it >> 32) * end as u64) >> 32) as usize
}

const FACTORS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F];

/// The key of two neighbouring ids.
#[inline(always)]
pub(crate) fn pair(first: u32, second: u32) -> u64 {
    u64::from(first) << ID_BITS | u64::from(second)
}

/// The key of a piece of up to [`SHORT`] bytes, given its first eight (or what lies behind it). No character ends with
/// a byte like those that tell the length, so it is that of no other piece.
#[inline(always)]
pub(crate) fn short(word: u64, len: usize) -> u64 {
    if len == SHORT { word } else { tagged(word, len) }
}

/// The second word of the key of a piece of up to [`LONG`] bytes, given what follows its first eight bytes, which are
/// the first one. The byte next to the highest is 0.
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
