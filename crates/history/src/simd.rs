//! Runtime SIMD dispatch: a [`Kernel`] is compiled for SSE2 and for AVX2, and CPUID chooses when it runs. Both find the
//! same.

/// Bytes that a kernel processes side by side.
pub const BLOCK: usize = 64;
pub type Block = [u8; BLOCK];
/// Maximum number of blocks whose counts fit into 8-bit lanes.
pub const BLOCKS: usize = 64;

/// Something that is computed in one pass over bytes.
pub trait Kernel {
    type Found;

    /// Processes the bytes. `bit_planes` transposes a block: the lowest bits of all bytes, with the first
    /// byte's lowest; then their second bits, and so on. Must be `#[inline(always)]`, and so must all that it
    /// calls: a function that is compiled on its own is compiled for every processor.
    fn over(bytes: &[u8], bit_planes: impl Fn(&Block) -> [u64; 8]) -> Self::Found;
}

#[inline]
pub fn over<P: Kernel>(bytes: &[u8]) -> P::Found {
    #[cfg(target_arch = "x86_64")]
    if x86::has_avx2() {
        #[expect(unsafe_code, reason = "the compiler cannot know the processor")]
        // SAFETY: the processor was just asked for all features that the function is compiled for.
        return unsafe { x86::over_with_avx2::<P>(bytes) };
    }
    P::over(bytes, bit_planes)
}

/// For each of `N` conditions, the number of bytes in at most [`BLOCKS`] rows that meet it.
#[inline(always)]
pub fn count<const N: usize>(rows: &[Block], such: impl Fn(u8) -> [bool; N]) -> [u64; N] {
    const { assert!(BLOCKS <= u8::MAX as usize) };
    debug_assert!(rows.len() <= BLOCKS);
    // One lane for each byte of a row, so that the compiler vectorizes it.
    let mut lanes = [[0u8; BLOCK]; N];
    for row in rows {
        for (at, byte) in row.iter().enumerate() {
            let such = such(*byte);
            for n in 0..N {
                lanes[n][at] += u8::from(such[n]);
            }
        }
    }
    let mut out = [0; N];
    for n in 0..N {
        for lane in &lanes[n] {
            out[n] += u64::from(*lane);
        }
    }
    out
}

/// [`Kernel::over`]'s `bit_planes`, eight bytes at once: the product gathers one bit of each in its highest byte.
#[inline(always)]
fn bit_planes(row: &Block) -> [u64; 8] {
    let mut out = [0; 8];
    for (at, bytes) in row.as_chunks::<8>().0.iter().enumerate() {
        let bytes = u64::from_le_bytes(*bytes);
        for (bit, plane) in out.iter_mut().enumerate() {
            let gathered = ((bytes >> bit) & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            *plane |= gathered << (8 * at);
        }
    }
    out
}

/// Number of bytes that [`special`] examines.
pub const LANES: usize = 16;

/// Which of the bytes cannot be in a JSON string unescaped, one bit each: quotes, backslashes, control
/// characters.
#[inline]
pub fn special(block: &[u8; LANES]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        #[expect(unsafe_code, reason = "the compiler asks for it though there is nothing to find out")]
        // SAFETY: every x86-64 processor has SSE2.
        return unsafe { x86::special(block) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    special_anywhere(block)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn special_anywhere(block: &[u8; LANES]) -> u32 {
    let bits = block.iter().enumerate();
    bits.fold(0, |out, (at, it)| out | u32::from(matches!(it, b'"' | b'\\' | 0..0x20)) << at)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::is_x86_feature_detected;
    use std::arch::x86_64::{
        __m256i, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi8, _mm256_movemask_epi8, _mm256_set_epi64x, _mm256_slli_epi16,
    };

    use super::{Block, Kernel, LANES};

    /// The same as `special_anywhere`, with one instruction for the sixteen bits.
    #[target_feature(enable = "sse2")]
    #[inline]
    pub(super) fn special(block: &[u8; LANES]) -> u32 {
        let (words, _) = block.as_chunks::<8>();
        let block = _mm_set_epi64x(i64::from_le_bytes(words[1]), i64::from_le_bytes(words[0]));
        let quote = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'"' as i8));
        let backslash = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'\\' as i8));
        let control = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1F)), block);
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control)) as u32
    }

    /// Whether [`over_with_avx2`] may be called.
    #[inline]
    pub(super) fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn over_with_avx2<P: Kernel>(bytes: &[u8]) -> P::Found {
        P::over(bytes, |row| bit_planes(row))
    }

    /// One instruction gathers the highest bits of 32 bytes; shifts move the other bits there.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn bit_planes(row: &Block) -> [u64; 8] {
        let (words, _) = row.as_chunks::<8>();
        let word = |at: usize| i64::from_le_bytes(words[at]);
        let half = |at: usize| _mm256_set_epi64x(word(at + 3), word(at + 2), word(at + 1), word(at));
        let gathered = |half: __m256i| u64::from(_mm256_movemask_epi8(half) as u32);
        let (low, high) = (half(0), half(4));
        macro_rules! plane {
            ($shift:literal) => {
                gathered(_mm256_slli_epi16::<$shift>(low)) | gathered(_mm256_slli_epi16::<$shift>(high)) << 32
            };
        }
        [plane!(7), plane!(6), plane!(5), plane!(4), plane!(3), plane!(2), plane!(1), plane!(0)]
    }
}

/// Runs a kernel without AVX2: tests compare [`over`] with it.
pub fn narrow<P: Kernel>(bytes: &[u8]) -> P::Found {
    P::over(bytes, bit_planes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct BitPlanes;

    impl Kernel for BitPlanes {
        type Found = Vec<[u64; 8]>;

        #[inline(always)]
        fn over(bytes: &[u8], bit_planes: impl Fn(&Block) -> [u64; 8]) -> Self::Found {
            bytes.as_chunks().0.iter().map(bit_planes).collect()
        }
    }

    struct Counts;

    impl Kernel for Counts {
        type Found = [u64; 2];

        #[inline(always)]
        fn over(bytes: &[u8], _: impl Fn(&Block) -> [u64; 8]) -> Self::Found {
            count(bytes.as_chunks().0, |it| [it < b'a', it == b'z'])
        }
    }

    #[test]
    fn special_bytes_everywhere() {
        for byte in 0..=255 {
            for at in 0..LANES {
                let mut block = [b'a'; LANES];
                (block[at], block[(at * 7 + 3) % LANES]) = (byte, b'"');
                assert_eq!(special(&block), special_anywhere(&block), "{block:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn all_registers_find_the_same(bytes in prop::collection::vec(any::<u8>(), 0..BLOCKS * BLOCK)) {
            let whole = &bytes[..bytes.len() / BLOCK * BLOCK];
            let slow: Vec<[u64; 8]> = whole
                .chunks(BLOCK)
                .map(|row| {
                    std::array::from_fn(|bit| {
                        (0..BLOCK).map(|at| u64::from(row[at] >> bit & 1) << at).sum()
                    })
                })
                .collect();
            prop_assert_eq!(&narrow::<BitPlanes>(&bytes), &slow);
            prop_assert_eq!(&over::<BitPlanes>(&bytes), &slow);
            let slow = [|it: &&u8| **it < b'a', |it: &&u8| **it == b'z'].map(|it| whole.iter().filter(it).count() as u64);
            prop_assert_eq!(narrow::<Counts>(&bytes), slow);
            prop_assert_eq!(over::<Counts>(&bytes), slow);
        }
    }
}
