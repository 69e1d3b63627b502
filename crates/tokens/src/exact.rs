//! Exact counts with OpenAI's encodings, linear on any text.
//!
//! The tables (6 MB in the binary) are used in place: nothing is decompressed, and a process that counts
//! little reads little of them. Counts are cached by a hash of their content, for the life of the process
//! and, if a [`Shelf`] is set, beyond it: counting a session that grew by a turn costs a turn.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use foldhash::HashMap;

use super::bpe::{self, Vocabulary};
use history::parallel;
use twox_hash::XxHash3_128;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `o200k_base`: GPT-4o and everything after.
    O200k,
    /// `cl100k_base`: GPT-4 and GPT-3.5.
    Cl100k,
}

/// Tokens of a text. What looks like a special token is counted as plain text.
pub fn count(encoding: Encoding, text: &str) -> u64 {
    let key = key(encoding, text);
    if let Some(known) = memo().get(&key) {
        return *known;
    }
    let counted = fresh(encoding, text);
    if text.len() >= REMEMBERED_FROM {
        remember([(key, counted)].into_iter());
    }
    counted
}

/// Tokens of each text. Counts that this process or the [`Shelf`] knows are reused; the other texts are
/// counted, on all cores if there is much of them.
pub fn counts(encoding: Encoding, texts: &[&str]) -> Vec<u64> {
    let bytes: usize = texts.iter().map(|it| it.len()).sum();
    let keys =
        parallel::par_map(texts, share(texts.len(), bytes, BYTES_HASHED_A_THREAD), |it| key(encoding, it));
    let mut out: Vec<Option<u64>> = {
        let memo = memo();
        let all = keys.iter().zip(texts);
        // Empty texts are not cached.
        all.map(|(key, text)| if text.is_empty() { Some(0) } else { memo.get(key).copied() }).collect()
    };
    let new = out.iter().zip(keys.iter().zip(texts)).filter(|(known, _)| known.is_none());
    let mut unknown: Vec<(u128, &str)> = new.map(|(_, (key, text))| (*key, *text)).collect();
    if unknown.is_empty() {
        return out.into_iter().flatten().collect();
    }
    unknown.sort_unstable_by_key(|it| it.0);
    unknown.dedup_by_key(|it| it.0);
    let mut found = Memo::default();
    if let Some(shelf) = SHELF.get() {
        found.extend(unknown.iter().filter_map(|it| Some((it.0, shelf.get(it.0)?))));
        unknown.retain(|it| !found.contains_key(&it.0));
    }
    // Largest first, so that no thread is left with a long one at the end.
    unknown.sort_unstable_by_key(|it| std::cmp::Reverse(it.1.len()));
    let bytes = unknown.iter().map(|it| it.1.len()).sum();
    let share = share(unknown.len(), bytes, BYTES_A_THREAD);
    let counted = parallel::par_map(&unknown, share, |it| (it.0, fresh(encoding, it.1)));
    if let Some(shelf) = SHELF.get().filter(|_| !counted.is_empty()) {
        shelf.put(&counted);
    }
    found.extend(counted);
    remember(found.iter().map(|it| (*it.0, *it.1)));
    for (count, key) in out.iter_mut().zip(keys) {
        *count = count.or_else(|| found.get(&key).copied());
    }
    out.into_iter().flatten().collect()
}

/// How many of `many` texts with `bytes` in all hold about `least` bytes.
fn share(many: usize, bytes: usize, least: usize) -> usize {
    (many * least).div_ceil(bytes.max(1)).max(1)
}

/// A cache of counts that outlives the process, keyed by a hash of encoding and content.
pub trait Shelf: Send + Sync {
    /// The count that was put there, if it is still there.
    fn get(&self, key: u128) -> Option<u64>;
    /// Puts counts there, as far as there is room.
    fn put(&self, counts: &[(u128, u64)]);
}

/// Sets the count cache of this process; later calls are ignored.
pub fn keep_on(shelf: impl Shelf + 'static) {
    // A second engine in one process has the same shelf, or makes do with the first.
    let _ = SHELF.set(Box::new(shelf));
}

static SHELF: OnceLock<Box<dyn Shelf>> = OnceLock::new();

/// Minimum bytes of a text whose count is cached: counting a shorter one costs less.
const REMEMBERED_FROM: usize = 64;
/// Maximum number of cached counts: as many as a table of 131,072 slots takes, 3.3 MB. A server reaches it
/// within minutes and stays there: a larger table still doubled after ten, which looked like a leak.
const REMEMBERED_AT_MOST: usize = 131_072 / 8 * 7;
/// Minimum bytes per thread: at 200 MB a second they take most of a millisecond.
const BYTES_A_THREAD: usize = 128 * 1024;
/// The same for hashing, which is much faster.
const BYTES_HASHED_A_THREAD: usize = 2 * 1024 * 1024;

type Memo = HashMap<u128, u64>;

static MEMO: OnceLock<Mutex<Memo>> = OnceLock::new();

fn memo() -> MutexGuard<'static, Memo> {
    MEMO.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

fn remember(counts: impl ExactSizeIterator<Item = (u128, u64)>) {
    let mut memo = memo();
    // A server that runs for months must not grow for months. Counts that are in use are soon cached again.
    if memo.len() + counts.len() > REMEMBERED_AT_MOST {
        memo.clear();
    }
    memo.extend(counts);
}

fn key(encoding: Encoding, text: &str) -> u128 {
    match encoding {
        Encoding::O200k => XxHash3_128::oneshot_with_seed(0, text.as_bytes()),
        Encoding::Cl100k => XxHash3_128::oneshot_with_seed(1, text.as_bytes()),
    }
}

fn fresh(encoding: Encoding, text: &str) -> u64 {
    vocabulary(encoding).count(text) as u64
}

fn vocabulary(encoding: Encoding) -> &'static Vocabulary {
    match encoding {
        Encoding::O200k => &bpe::O200K,
        Encoding::Cl100k => &bpe::CL100K,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use history::middle::ceil;

    fn peer(encoding: Encoding) -> &'static bpe_openai::Tokenizer {
        match encoding {
            Encoding::O200k => bpe_openai::o200k_base(),
            Encoding::Cl100k => bpe_openai::cl100k_base(),
        }
    }

    const BOTH: [Encoding; 2] = [Encoding::O200k, Encoding::Cl100k];

    #[test]
    fn counts_as_published() {
        // Examples of the tiktoken cookbook.
        assert_eq!(count(Encoding::Cl100k, "tiktoken is great!"), 6);
        assert_eq!(count(Encoding::O200k, "antidisestablishmentarianism"), 6);
        assert_eq!(count(Encoding::O200k, "お誕生日おめでとう"), 8);
        assert_eq!(count(Encoding::O200k, ""), 0);
        assert_eq!(count(Encoding::O200k, "<|endoftext|>"), 7);
    }

    /// Cases in which the patterns are easily misread.
    #[test]
    fn cuts_where_another_implementation_does() {
        let texts = [
            "it's IT'S we'Ll they'RE I'vE 'tis 'S x'ſ X'ſy ''s '' 'd'd",
            "a\r\nb\r\r\n\n c\n\r d \r\n \r\n  e\r",
            "1 12 123 1234 1234567 ٣٤٥٦٧ Ⅷ½² 1a2b 12,345.678",
            "e\u{301}e\u{301} \u{301}a \u{301}A .\u{301} \u{301}\u{301} \u{301}1 A\u{301}B\u{301}",
            "漢字かなカナ混じり文、ＡＢＣabc亚洲AV한국어KOREA Ελλάδα ДОМдом",
            "ǅungla ǄUNGLA xǅ ʰʰ Aʰ ªº aª camelCase HTTPServer XMLHttpRequest iOS",
            "!\n ?\r\n/// ./\n/ --\n\n// \u{2014}\n/ {\n}\n/",
            "   leading  two   three    four \t tab\t\ttabs \t\n \n\t x  ",
            " \u{a0}\u{3000}x\u{85}y \u{2028} z\u{a0}\u{a0}",
            "\0\0\0\0\0\0\0\0 \0 \u{1}\u{7f} \0a",
            "_snake_case __init__ $var @user #tag &amp; <|endoftext|> a.b.c (x) [y] {z}",
        ];
        for encoding in BOTH {
            for text in texts {
                for (from, _) in text.char_indices() {
                    let text = &text[from..];
                    assert_eq!(
                        fresh(encoding, text),
                        peer(encoding).count(text) as u64,
                        "{encoding:?}: {text:?}"
                    );
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn agrees_with_another_implementation(
            text in prop_oneof![
                any::<String>(),
                "[a-zA-Z0-9 _.,:;(){}\\[\\]\"'\n\t=/-]{0,400}",
                "[ぁ-んァ-ン一-龠가-힣à-ÿ😀-🙏 \n]{0,100}",
                "[ \t\r\n\u{a0}\u{3000}x]{0,80}",
                "[a-zA-Z'sßÉſǅʰ漢\u{301}\u{1acf}٣Ⅷ0-9 /\n.-]{0,60}",
            ]
        ) {
            for encoding in BOTH {
                prop_assert_eq!(count(encoding, &text), peer(encoding).count(text.as_str()) as u64);
            }
        }

    }

    #[test]
    fn counted_ahead_is_counted_the_same() {
        #[derive(Default)]
        struct Known(Mutex<HashMap<u128, u64>>);
        impl Shelf for &'static Known {
            fn get(&self, key: u128) -> Option<u64> {
                self.0.lock().unwrap().get(&key).copied()
            }
            fn put(&self, counts: &[(u128, u64)]) {
                self.0.lock().unwrap().extend(counts.iter().copied());
            }
        }
        static KNOWN: OnceLock<Known> = OnceLock::new();
        keep_on(KNOWN.get_or_init(Known::default));
        let texts: Vec<String> =
            (0..400).map(|it| format!("{it} shelves, {}", "and words ".repeat(it))).collect();
        let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        texts.extend(["", "twice", "twice"]);
        let found = counts(Encoding::O200k, &texts);
        let known = KNOWN.get().unwrap().0.lock().unwrap().clone();
        for (text, found) in texts.iter().zip(found) {
            let counted = peer(Encoding::O200k).count(*text) as u64;
            assert_eq!(found, counted);
            assert_eq!(count(Encoding::O200k, text), counted);
            assert_eq!(known.get(&key(Encoding::O200k, text)), (!text.is_empty()).then_some(&counted));
        }
    }

    /// A megabyte of what makes tokenizers quadratic. There is no time limit here: a quadratic one would not
    /// end.
    #[test]
    fn ends_on_hostile_text() {
        let mut state = 1u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        let mut random = |from: &str| {
            let from: Vec<char> = from.chars().collect();
            let mut text = String::new();
            while text.len() < 1_000_000 {
                text.push(from[next() as usize % from.len()]);
            }
            text
        };
        let base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let cjk: String = ('一'..='龠').collect();
        let kana: String = ('ぁ'..='ん').collect();
        let hostile = [
            "a".repeat(1_000_000),
            " ".repeat(1_000_000),
            format!("{}x", " ".repeat(1_000_000)),
            "\n".repeat(1_000_000),
            "=".repeat(1_000_000),
            "あ".repeat(333_333),
            random("abcdefghijklmnopqrstuvwxyz"),
            random(base64),
            random("!#$%&()*+,-./:;<=>?@[]^_{|}~"),
            random(&cjk),
            random(&kana),
        ];
        for text in hostile {
            let some = &text[..ceil(&text, 20_000)];
            assert_eq!(fresh(Encoding::O200k, some), peer(Encoding::O200k).count(some) as u64);
            let counted = count(Encoding::O200k, &text);
            assert!((1_000..1_000_000).contains(&counted), "{counted} for {:?}", text.chars().next());
            // Cached now.
            assert_eq!(count(Encoding::O200k, &text), counted);
        }
    }
}
