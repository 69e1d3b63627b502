//! XXH3 with 128 bits, as fast as memory is read.
//!
//! xxhash-rust picks its SIMD width at compile time; long inputs go through [`simd`], which picks it at run time.
//! Both find the same, so that what lies on the disk stays valid.

use xxhash_rust::xxh3::xxh3_128_with_seed;

use history::simd::{self, Block, Kernel};

/// The hash of some bytes.
pub(super) fn hash<const SEED: u64>(bytes: &[u8]) -> u128 {
    // Up to 240 bytes it is another hash.
    if bytes.len() < LONG { xxh3_128_with_seed(bytes, SEED) } else { simd::over::<Long<SEED>>(bytes) }
}

/// From here on the registers are worth the way there.
const LONG: usize = 512;

/// XXH3 of long inputs: <https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md>, whose names are in brackets.
struct Long<const SEED: u64>;

const SECRET: usize = 192;
/// Rows between two scrambles (stripes of a block).
const BLOCK: usize = (SECRET - simd::BLOCK) / 8;

const DEFAULT_SECRET: [u8; SECRET] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde,
    0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79,
    0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46,
    0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb,
    0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2,
    0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c,
    0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59,
    0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3,
    0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3,
    0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8,
    0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb,
    0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

/// Factors (PRIME32_1 and so on).
const SMALL: [u64; 3] = [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D];
const LARGE: [u64; 5] = [
    0x9E37_79B1_85EB_CA87,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0x85EB_CA77_C2B2_AE63,
    0x27D4_EB2F_1656_67C5,
];

type Sums = [u64; simd::BLOCK / 8];

impl<const SEED: u64> Kernel for Long<SEED> {
    type Found = u128;

    #[inline(always)]
    fn over(bytes: &[u8], _: impl Fn(&Block) -> [u64; 8]) -> u128 {
        let secret = seeded(SEED);
        let mut sums = [SMALL[2], LARGE[0], LARGE[1], LARGE[2], LARGE[3], SMALL[1], LARGE[4], SMALL[0]];
        // The last row is always taken by itself, at the end.
        let (mut rows, _) = bytes[..bytes.len() - 1].as_chunks::<{ simd::BLOCK }>();
        while !rows.is_empty() {
            // Neither `chunks` nor an index: what is unrolled by the block hides the vectors from the compiler.
            let (block, rest) = rows.split_at(rows.len().min(BLOCK));
            for (it, secret) in block.iter().zip(secret.windows(simd::BLOCK).step_by(8)) {
                take(&mut sums, it, row(secret, 0));
            }
            if block.len() == BLOCK {
                let key = words(row(&secret, SECRET - simd::BLOCK));
                for n in 0..sums.len() {
                    sums[n] = (sums[n] ^ sums[n] >> 47 ^ key[n]).wrapping_mul(SMALL[0]);
                }
            }
            rows = rest;
        }
        take(&mut sums, row(bytes, bytes.len() - simd::BLOCK), row(&secret, SECRET - simd::BLOCK - 7));
        let length = bytes.len() as u64;
        let low = merged(&sums, row(&secret, 11), length.wrapping_mul(LARGE[0]));
        let high = merged(&sums, row(&secret, SECRET - simd::BLOCK - 11), !length.wrapping_mul(LARGE[1]));
        u128::from(low) | u128::from(high) << 64
    }
}

/// The secret of a seed (initCustomSecret).
fn seeded(seed: u64) -> [u8; SECRET] {
    let mut out = DEFAULT_SECRET;
    for (at, word) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let it = u64::from_le_bytes(*word);
        let it = if at % 2 == 0 { it.wrapping_add(seed) } else { it.wrapping_sub(seed) };
        *word = it.to_le_bytes();
    }
    out
}

#[inline(always)]
fn row(bytes: &[u8], at: usize) -> &Block {
    &bytes[at..].as_chunks().0[0]
}

#[inline(always)]
fn words(row: &Block) -> Sums {
    let (words, _) = row.as_chunks();
    std::array::from_fn(|n| u64::from_le_bytes(words[n]))
}

/// Takes a row in (accumulate_512).
#[inline(always)]
fn take(sums: &mut Sums, row: &Block, secret: &Block) {
    let (row, secret) = (words(row), words(secret));
    let mut out = *sums;
    for n in 0..out.len() {
        let keyed = row[n] ^ secret[n];
        out[n] = out[n].wrapping_add(row[n ^ 1]).wrapping_add((keyed & 0xFFFF_FFFF) * (keyed >> 32));
    }
    *sums = out;
}

/// One half of the hash (mergeAccs, avalanche).
#[inline(always)]
fn merged(sums: &Sums, secret: &Block, begin: u64) -> u64 {
    let secret = words(secret);
    let mut out = begin;
    for n in [0, 2, 4, 6] {
        let product = u128::from(sums[n] ^ secret[n]) * u128::from(sums[n + 1] ^ secret[n + 1]);
        out = out.wrapping_add(product as u64 ^ (product >> 64) as u64);
    }
    out = (out ^ out >> 37).wrapping_mul(0x1656_6791_9E37_79F9);
    out ^ out >> 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use history::simd::narrow;

    proptest! {
        #[test]
        fn is_what_the_library_finds(bytes in prop::collection::vec(any::<u8>(), 0..5_000)) {
            prop_assert_eq!(hash::<0>(&bytes), xxh3_128_with_seed(&bytes, 0));
            prop_assert_eq!(hash::<1>(&bytes), xxh3_128_with_seed(&bytes, 1));
            if bytes.len() >= LONG {
                prop_assert_eq!(narrow::<Long<1>>(&bytes), xxh3_128_with_seed(&bytes, 1));
            }
        }
    }

    /// Where a row, a block or both begin.
    #[test]
    fn is_what_the_library_finds_at_every_length() {
        let bytes: Vec<u8> = (0..3_200u32).map(|it| ((it * it) >> 3) as u8).collect();
        for end in 0..bytes.len() {
            assert_eq!(hash::<1>(&bytes[..end]), xxh3_128_with_seed(&bytes[..end], 1), "{end} bytes");
        }
    }
}
