//! Where a text is cut before it is tokenized: no token crosses a cut.
//!
//! The rule of each encoding is published as a pattern, of which the first alternative that fits is taken. Classes of
//! characters are those of the `regex` crate, in which tiktoken runs the patterns. `o200k_base`:
//!
//! ```text
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! \p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//! ```
//!
//! `cl100k_base`, which does not distinguish upper and lower case:
//!
//! ```text
//! (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//! ```

/// The classes of characters that the patterns distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    /// Everything else: punctuation, signs, control characters.
    Other,
    /// Lu, Lt.
    Upper,
    /// Ll.
    Lower,
    /// Lm, Lo: counts as upper and as lower case.
    Letter,
    /// M: the same in a word of `o200k_base`, which it may also precede.
    Mark,
    /// N.
    Number,
    /// White space except line breaks.
    Space,
    /// `\r`, `\n`.
    Break,
}

use Class::{Break, Letter, Lower, Mark, Number, Other, Space, Upper};

const CLASSES: [Class; 8] = [Other, Upper, Lower, Letter, Mark, Number, Space, Break];

/// The classes of all characters, half a byte each: first the number of the block for each [`BLOCK`]
/// characters, then the distinct blocks. A test makes it anew.
static TABLE: &[u8] = include_bytes!("classes.bin");
const BLOCK: usize = 128;
const BLOCKS: usize = (char::MAX as usize + 1) / BLOCK;

fn class(it: char) -> Class {
    let block = usize::from(TABLE[it as usize / BLOCK]);
    let at = it as usize % BLOCK;
    let two = TABLE[BLOCKS + block * (BLOCK / 2) + at / 2];
    CLASSES[usize::from(two >> (4 * (at % 2))) & 7]
}

/// The classes of ASCII characters; none for other bytes.
const ASCII: [Option<Class>; 256] = {
    let mut out = [None; 256];
    let mut byte = 0;
    while byte < 128 {
        out[byte as usize] = Some(match byte {
            b'A'..=b'Z' => Upper,
            b'a'..=b'z' => Lower,
            b'0'..=b'9' => Number,
            b'\r' | b'\n' => Break,
            b'\t' | 0x0B | 0x0C | b' ' => Space,
            _ => Other,
        });
        byte += 1;
    }
    out
};

/// Eight bytes from `at` on, the first one lowest; zeros after the end.
#[inline(always)]
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|it| it.first_chunk()) {
        Some(it) => u64::from_le_bytes(*it),
        None => last_word(bytes, at),
    }
}

#[cold]
fn last_word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().rev().fold(0, |out, it| out << 8 | u64::from(*it))
}

const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);

/// How many of a word's bytes, from the first on, are in an ASCII range.
#[inline(always)]
fn run(word: u64, first: u8, last: u8) -> usize {
    let all = |it: u8| u64::from_ne_bytes([it; 8]);
    let low = word & !HIGHEST;
    // Each sum carries into the highest bit of its byte: the first from `first` on, the second only after
    // `last`.
    let within = (low + all(0x80 - first)) & !(low + all(0x7F - last)) & !word & HIGHEST;
    ((within ^ HIGHEST).trailing_zeros() / 8) as usize
}

/// The end of the ASCII letters from `at` on; with `CASED`, of capitals and the small letters after them.
#[inline(always)]
fn letters<const CASED: bool>(bytes: &[u8], mut at: usize) -> usize {
    if !CASED {
        loop {
            let some = run(word(bytes, at) | u64::from_ne_bytes([0x20; 8]), b'a', b'z');
            at += some;
            if some < 8 {
                return at;
            }
        }
    }
    loop {
        let word = word(bytes, at);
        let capitals = run(word, b'A', b'Z');
        at += capitals;
        if capitals < 8 {
            let small = run(word >> (8 * capitals), b'a', b'z');
            at += small;
            if capitals + small < 8 {
                return at;
            }
            break;
        }
    }
    loop {
        let some = run(word(bytes, at), b'a', b'z');
        at += some;
        if some < 8 {
            return at;
        }
    }
}

/// The end of a contraction's suffix (`'s`, `'ll`) at `at`, or `at` if there is none.
fn ending(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at..).unwrap_or_default() {
        [b'\'', b's' | b'S' | b't' | b'T' | b'm' | b'M' | b'd' | b'D', ..] => at + 2,
        [b'\'', b'r' | b'R' | b'v' | b'V', b'e' | b'E', ..] => at + 3,
        [b'\'', b'l' | b'L', b'l' | b'L', ..] => at + 3,
        // The long s (ſ) matches `s` in a pattern that ignores case.
        [b'\'', 0xC5, 0xBF, ..] => at + 3,
        _ => at,
    }
}

/// The end of the line breaks (and slashes) that belong to the punctuation before them.
#[inline(always)]
fn breaks<const CASED: bool>(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b'\r' | b'\n' | b'/') = bytes.get(at)
        && (CASED || bytes[at] != b'/')
    {
        at += 1;
    }
    at
}

/// The end of the piece that begins at `at`, before the text's end. `CASED`: by the rule of `o200k_base`.
#[inline(always)]
pub(super) fn end<const CASED: bool>(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let first = bytes[at];
    if !CASED && first == b'\'' {
        let end = ending(bytes, at);
        if end > at {
            return end;
        }
    }
    // As long as it is ASCII; anything else goes to `slow_end`, character by character.
    let begin = match ASCII[usize::from(first)] {
        Some(Upper | Lower) => at,
        Some(Number) => {
            let mut end = at + 1;
            while end < at + 3 && end < bytes.len() {
                match ASCII[usize::from(bytes[end])] {
                    Some(Number) => end += 1,
                    Some(_) => break,
                    None => return slow_end::<CASED>(text, at),
                }
            }
            return end;
        }
        Some(Break) => return space_end::<CASED>(text, at),
        Some(Other | Letter | Mark | Space) => at + 1,
        None => return slow_end::<CASED>(text, at),
    };
    let end = letters::<CASED>(bytes, begin);
    let behind = bytes.get(end).copied();
    if behind.is_some_and(|it| !it.is_ascii()) {
        return slow_end::<CASED>(text, at);
    }
    if end > begin {
        return if CASED && behind == Some(b'\'') { ending(bytes, end) } else { end };
    }
    // No letter follows.
    let is_punctuation = |it: u8| ASCII[usize::from(it)] == Some(Other);
    let stands = is_punctuation(first) || first == b' ' && behind.is_some_and(is_punctuation);
    if !stands {
        return space_end::<CASED>(text, at);
    }
    let mut end = at + 1;
    loop {
        match bytes.get(end).map(|it| ASCII[usize::from(*it)]) {
            Some(Some(Other)) => end += 1,
            Some(Some(_)) | None => return breaks::<CASED>(bytes, end),
            Some(None) => return slow_end::<CASED>(text, at),
        }
    }
}

/// [`end`] for a piece that begins with white space, without a word or punctuation directly after it.
#[inline(always)]
fn space_end<const CASED: bool>(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut end, mut line) = (at, at);
    loop {
        end += run(word(bytes, end), b' ', b' ');
        match bytes.get(end).map(|it| ASCII[usize::from(*it)]) {
            Some(Some(Space)) => end += 1,
            Some(Some(Break)) => {
                end += 1;
                line = end;
            }
            Some(Some(_)) if line > at => return line,
            // The last space belongs to what follows.
            Some(Some(_)) if end - at > 1 => return end - 1,
            Some(Some(_)) => return end,
            Some(None) => return slow_end::<CASED>(text, at),
            None => return if line > at { line } else { end },
        }
    }
}

/// [`end`] for any text.
#[inline(never)]
fn slow_end<const CASED: bool>(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let next = |at: usize| text[at..].chars().next().map(|it| (class(it), at + it.len_utf8()));
    let run = |mut at: usize, such: fn(Class) -> bool| {
        while let Some((_, end)) = next(at).filter(|it| such(it.0)) {
            at = end;
        }
        at
    };
    let Some((first, behind)) = next(at) else { return at };
    // A character that is neither a letter nor a number may precede a word.
    let begins = match first {
        Other | Mark | Space => [behind, at],
        Upper | Lower | Letter | Number | Break => [at, at],
    };
    if CASED {
        for begin in begins {
            let capitals = run(begin, |it| matches!(it, Upper | Letter | Mark));
            let small = run(capitals, |it| matches!(it, Lower | Letter | Mark));
            // If no small letter follows, the last character that counts as both is the small one.
            let is_both = |it: &(usize, char)| matches!(class(it.1), Letter | Mark);
            let both = || text[begin..capitals].char_indices().rfind(is_both);
            let both_end = || both().map_or(begin, |it| begin + it.0 + it.1.len_utf8());
            let end = if small > capitals { small } else { both_end() };
            if end > begin {
                return ending(bytes, end);
            }
        }
        for begin in begins {
            let capitals = run(begin, |it| matches!(it, Upper | Letter | Mark));
            if capitals > begin {
                return ending(bytes, capitals);
            }
        }
    } else {
        let end = ending(bytes, at);
        if end > at {
            return end;
        }
        for begin in begins {
            let end = run(begin, |it| matches!(it, Upper | Lower | Letter));
            if end > begin {
                return end;
            }
        }
    }
    if first == Number {
        let more = text[behind..].chars().take(2).take_while(|it| class(*it) == Number);
        return behind + more.map(char::len_utf8).sum::<usize>();
    }
    let begin = if bytes[at] == b' ' { behind } else { at };
    let end = run(begin, |it| matches!(it, Other | Mark));
    if end > begin {
        return breaks::<CASED>(bytes, end);
    }
    let end = run(at, |it| matches!(it, Space | Break));
    let spaces = &text[at..end];
    match spaces.rfind(['\r', '\n']) {
        Some(line) => at + line + 1,
        None if end == text.len() => end,
        // The last space belongs to what follows.
        None => match spaces.char_indices().next_back() {
            Some((last, _)) if last > 0 => at + last,
            Some(_) | None => end,
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Makes the content of the table. If the file has to change, this is its new content.
    #[test]
    fn classes_are_those_of_the_patterns() {
        let mut all = vec![Other; BLOCKS * BLOCK];
        let patterns = [
            (r"[\p{Lu}\p{Lt}]", Upper),
            (r"\p{Ll}", Lower),
            (r"[\p{Lm}\p{Lo}]", Letter),
            (r"\p{M}", Mark),
            (r"\p{N}", Number),
            (r"[\s--\r\n]", Space),
            (r"[\r\n]", Break),
        ];
        let text: String = ('\0'..=char::MAX).collect();
        for (pattern, class) in patterns {
            for found in regex::Regex::new(pattern).unwrap().find_iter(&text) {
                all[found.as_str().chars().next().unwrap() as usize] = class;
            }
        }
        let (mut which, mut blocks) = (Vec::new(), Vec::new());
        for block in all.chunks(BLOCK) {
            let block: Vec<u8> = block.chunks(2).map(|it| it[0] as u8 | (it[1] as u8) << 4).collect();
            let known = blocks.iter().position(|it| *it == block);
            which.push(u8::try_from(known.unwrap_or(blocks.len())).unwrap());
            if known.is_none() {
                blocks.push(block);
            }
        }
        assert!([which, blocks.concat()].concat() == TABLE);
    }

    proptest! {
        #[test]
        fn words_at_once_and_characters_one_by_one(
            text in "([a-zA-Z0-9]{0,20}|[ \t\r\n]{0,12}|[ -~]{0,6}|'[sStTrReEvVlLdDmM]{1,3}|[éÉßſǅʰあ漢\u{301}٣Ⅷ—😀\u{a0}\u{85}\u{3000}]{0,3}){0,8}"
        ) {
            let mut at = 0;
            while at < text.len() {
                prop_assert_eq!(end::<true>(&text, at), slow_end::<true>(&text, at), "at {}", at);
                prop_assert_eq!(end::<false>(&text, at), slow_end::<false>(&text, at), "at {}", at);
                at = end::<true>(&text, at);
            }
        }
    }
}
