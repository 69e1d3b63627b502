//! A cache of token counts in a file of fixed size, by a hash of what was counted: a session that was counted
//! once is not counted again by the next process. It holds no text. Nothing depends on it: what is missing or
//! broken is counted again, and what it has no room for is forgotten.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use twox_hash::XxHash3_64;

use crate::files::{new_file, read_exact_at, write_all_at};
use tokens::exact::Shelf;

/// The key selects a bucket; any of its slots may hold the key.
const BUCKETS: u64 = 1 << 15;
const SLOTS: usize = 4;
/// Key, tokens, and a checksum of both, which exposes a slot that two processes wrote at once.
const SLOT: usize = 16 + 8 + 8;
const BUCKET: usize = SLOTS * SLOT;
/// 4 MB, in a sparse file.
const SIZE: u64 = BUCKETS * BUCKET as u64;

/// The cache file, opened on first use.
pub struct Counts {
    path: PathBuf,
    file: OnceLock<Option<fs::File>>,
}

impl Counts {
    /// A cache in the file at `path`, which is created on first use.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: OnceLock::new() }
    }

    fn file(&self) -> Option<&fs::File> {
        let open = || {
            let found = fs::OpenOptions::new().read(true).write(true).open(&self.path);
            let file = found.or_else(|_| new_file(&self.path)).ok()?;
            if file.metadata().ok()?.len() != SIZE {
                file.set_len(SIZE).ok()?;
            }
            Some(file)
        };
        self.file.get_or_init(open).as_ref()
    }

    fn bucket(&self, key: u128) -> Option<(u64, [u8; BUCKET])> {
        let at = (key as u64 % BUCKETS) * BUCKET as u64;
        let mut bucket = [0; BUCKET];
        read_exact_at(self.file()?, at, &mut bucket).ok()?;
        Some((at, bucket))
    }
}

/// The key and the tokens in a slot, if its checksum is right.
fn held(slot: &[u8]) -> Option<(u128, u64)> {
    let (body, sum) = slot.split_at_checked(24)?;
    let (key, tokens) = body.split_at_checked(16)?;
    let whole = XxHash3_64::oneshot(body).to_le_bytes() == sum;
    let key = u128::from_le_bytes(key.try_into().ok()?);
    whole.then_some((key, u64::from_le_bytes(tokens.try_into().ok()?)))
}

fn slot(key: u128, tokens: u64) -> [u8; SLOT] {
    let mut out = [0; SLOT];
    out[..16].copy_from_slice(&key.to_le_bytes());
    out[16..24].copy_from_slice(&tokens.to_le_bytes());
    let sum = XxHash3_64::oneshot(&out[..24]).to_le_bytes();
    out[24..].copy_from_slice(&sum);
    out
}

impl Shelf for Counts {
    fn get(&self, key: u128) -> Option<u64> {
        let (_, bucket) = self.bucket(key)?;
        bucket.chunks_exact(SLOT).filter_map(held).find(|it| it.0 == key).map(|it| it.1)
    }

    fn put(&self, counts: &[(u128, u64)]) {
        for (key, tokens) in counts {
            let Some((at, bucket)) = self.bucket(*key) else { return };
            let slots: Vec<_> = bucket.chunks_exact(SLOT).map(held).collect();
            let same = slots.iter().position(|it| it.is_some_and(|it| it.0 == *key));
            let place = same.or_else(|| slots.iter().position(Option::is_none));
            // If all are taken, the key selects the one to overwrite.
            let place = place.unwrap_or((key >> 64) as usize % SLOTS);
            let written =
                self.file().map(|it| write_all_at(it, at + (place * SLOT) as u64, &slot(*key, *tokens)));
            if !matches!(written, Some(Ok(()))) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_put_there_beyond_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts");
        let one = Counts::new(path.clone());
        assert_eq!(one.get(7), None);
        one.put(&[(7, 70), (7 + u128::from(BUCKETS), 71), (8, 80)]);
        one.put(&[(8, 81)]);
        let two = Counts::new(path);
        assert_eq!(
            [two.get(7), two.get(7 + u128::from(BUCKETS)), two.get(8)],
            [Some(70), Some(71), Some(81)]
        );
        // A full bucket forgets entries; it never mixes them up.
        let many: Vec<_> =
            (0..20u64).map(|it| (u128::from(it * BUCKETS + 9) | u128::from(it) << 64, it)).collect();
        two.put(&many);
        let known = many.iter().filter_map(|it| Some((it.1, two.get(it.0)?)));
        assert!(known.clone().all(|(is, found)| is == found));
        assert_eq!(known.count(), SLOTS);
    }

    #[test]
    fn a_broken_file_is_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts");
        Counts::new(path.clone()).put(&[(3, 30)]);
        let mut bytes = fs::read(&path).unwrap();
        bytes.iter_mut().for_each(|it| *it = it.wrapping_add(1));
        bytes.truncate(5_000);
        fs::write(&path, bytes).unwrap();
        let counts = Counts::new(path);
        assert_eq!(counts.get(3), None);
        counts.put(&[(3, 31)]);
        assert_eq!(counts.get(3), Some(31));
        assert_eq!(Counts::new(folder.path().join("no/such/folder")).get(3), None);
    }
}
