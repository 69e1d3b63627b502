//! Exact counts with OpenAI's encodings, linear on any text.
//!
//! The tables (8 MB in the binary) take a quarter of a second to unfold and 65 MB to hold, so nothing happens until
//! the first count. Counts of longer texts are remembered for the life of the process by a hash of their content:
//! counting a session that grew by a turn costs a turn.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use toktok::Tokenizer;
use xxhash_rust::xxh3::xxh3_128;

use super::middle::{ceil, floor};
use super::shape;

/// An encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `o200k_base`: GPT-4o and everything after.
    O200k,
    /// `cl100k_base`: GPT-4 and GPT-3.5.
    Cl100k,
}

/// Tokens of a text. What looks like a special token counts as the text it is.
pub fn count(encoding: Encoding, text: &str) -> u64 {
    if text.len() < REMEMBERED_FROM {
        return fresh(encoding, text);
    }
    let key = (encoding, xxh3_128(text.as_bytes()));
    let memo = MEMO.get_or_init(Mutex::default);
    if let Some(known) = memo.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return *known;
    }
    let counted = fresh(encoding, text);
    let mut memo = memo.lock().unwrap_or_else(PoisonError::into_inner);
    // A server that lives for months must not grow for months. What is in use is counted again at once.
    if memo.len() >= REMEMBERED_AT_MOST {
        memo.clear();
    }
    memo.insert(key, counted);
    counted
}

/// The longest beginning of a text that has at most `tokens` tokens, cut between characters.
pub fn head(encoding: Encoding, text: &str, tokens: u64) -> &str {
    cut(encoding, text, tokens, |bounds, most| &text[..floor(text, bounds[most])])
}

/// The longest end of a text that has at most `tokens` tokens, cut between characters.
pub fn tail(encoding: Encoding, text: &str, tokens: u64) -> &str {
    cut(encoding, text, tokens, |bounds, most| &text[ceil(text, bounds[bounds.len() - 1 - most])..])
}

/// Unfolds the tables of `o200k_base`, so that a later count need not wait. For a thread in the background.
pub fn preload() {
    tokenizer(Encoding::O200k);
}

/// Below this many bytes counting costs less than remembering.
const REMEMBERED_FROM: usize = 64;
/// 500,000 entries are about 24 MB.
const REMEMBERED_AT_MOST: usize = 500_000;

static MEMO: OnceLock<Mutex<HashMap<(Encoding, u128), u64>>> = OnceLock::new();

fn fresh(encoding: Encoding, text: &str) -> u64 {
    match tokenizer(encoding) {
        Some(it) => it.count(text.as_bytes()) as u64,
        None => shape::thousandths(text).div_ceil(1_000),
    }
}

/// The tables are part of the binary and known to be good; the `Option` is for the library's sake.
fn tokenizer(encoding: Encoding) -> Option<&'static Tokenizer> {
    static O200K: OnceLock<Option<Tokenizer>> = OnceLock::new();
    static CL100K: OnceLock<Option<Tokenizer>> = OnceLock::new();
    match encoding {
        Encoding::O200k => O200K.get_or_init(|| Tokenizer::builtin("o200k_base").ok()),
        Encoding::Cl100k => CL100K.get_or_init(|| Tokenizer::builtin("cl100k_base").ok()),
    }
    .as_ref()
}

/// A piece of `text` with at most `tokens` tokens. `piece` takes that many of the tokens, given where each one ends
/// (first 0). What was cut out may count differently by itself, so it is counted again and cut further.
fn cut<'a>(
    encoding: Encoding,
    text: &'a str,
    tokens: u64,
    piece: impl Fn(&[usize], usize) -> &'a str,
) -> &'a str {
    let mut most = usize::try_from(tokens).unwrap_or(usize::MAX);
    // A token has at least one byte.
    if text.len() <= most {
        return text;
    }
    let Some(tokenizer) = tokenizer(encoding) else {
        return &text[..floor(text, most)];
    };
    let bounds: Vec<usize> =
        tokenizer.encode_with_offsets(text.as_bytes()).1.into_iter().map(|it| it as usize).collect();
    if bounds.len() - 1 <= most {
        return text;
    }
    loop {
        let found = piece(&bounds, most);
        let over = tokenizer.count(found.as_bytes()).saturating_sub(tokens as usize);
        if over == 0 {
            return found;
        }
        most = most.saturating_sub(over);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Characters that toktok 0.3 classes differently from Unicode 17 (new combining marks, U+1ACF..=U+1AEB).
    fn is_disputed(c: char) -> bool {
        ('\u{1acf}'..='\u{1aeb}').contains(&c)
    }

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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn agrees_with_another_implementation(
            text in prop_oneof![
                any::<String>(),
                "[a-zA-Z0-9 _.,:;(){}\\[\\]\"'\n\t=/-]{0,400}",
                "[ぁ-んァ-ン一-龠가-힣à-ÿ😀-🙏 \n]{0,100}",
                "[ \t\r\n\u{a0}\u{3000}x]{0,80}",
            ]
        ) {
            prop_assume!(!text.contains(is_disputed));
            for encoding in BOTH {
                prop_assert_eq!(count(encoding, &text), peer(encoding).count(text.as_str()) as u64);
            }
        }

        #[test]
        fn pieces_fit_and_are_pieces(text in "\\PC{0,120}", tokens in 0u64..40) {
            for encoding in BOTH {
                let (head, tail) = (head(encoding, &text, tokens), tail(encoding, &text, tokens));
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert!(count(encoding, head) <= tokens && count(encoding, tail) <= tokens);
                if count(encoding, &text) <= tokens {
                    prop_assert_eq!(head, &text);
                    prop_assert_eq!(tail, &text);
                }
            }
        }
    }

    #[test]
    fn cuts_at_a_budget() {
        let text = "The quick brown fox jumps over the lazy dog";
        assert_eq!(head(Encoding::O200k, text, 3), "The quick brown");
        assert_eq!(tail(Encoding::O200k, text, 2), " lazy dog");
        assert_eq!((head(Encoding::O200k, text, 0), tail(Encoding::O200k, text, 0)), ("", ""));
        assert_eq!(head(Encoding::O200k, "😀😀", 1), "😀");
        assert_eq!(head(Encoding::O200k, text, u64::MAX), text);
    }

    /// A megabyte of what makes tokenizers quadratic. There is no clock here: a quadratic one would not end.
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
            let counted = count(Encoding::O200k, &text);
            assert!((1_000..1_000_000).contains(&counted), "{counted} for {:?}", text.chars().next());
            // Remembered now.
            assert_eq!(count(Encoding::O200k, &text), counted);
        }
    }
}
