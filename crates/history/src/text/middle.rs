//! Removes the middle of a text, as Codex does with tool outputs, and finds where texts can be cut at all.

/// Codex's estimate: UTF-8 bytes / 4, rounded up.
pub fn bytes4(bytes: usize) -> usize {
    bytes.div_ceil(4)
}

/// Codex of August 2026: at most four bytes per token of the budget, half of them from the start and half
/// from the end, and between them the number of missing tokens. This mark is not part of the budget.
pub fn by_tokens(text: &str, tokens: usize) -> String {
    let budget = tokens.saturating_mul(4);
    let missing = bytes4(text.len().saturating_sub(budget));
    with_mark(text, budget, &format!("…{missing} tokens truncated…"))
}

/// At most `bytes`, half of them from the start and half from the end, and `mark` between them.
pub fn with_mark(text: &str, bytes: usize, mark: &str) -> String {
    if text.is_empty() || (bytes > 0 && text.len() <= bytes) {
        return text.to_owned();
    }
    let (_, head, tail) = split(text, bytes / 2, bytes - bytes / 2);
    format!("{head}{mark}{tail}")
}

/// The longest prefix of at most `head` bytes and the longest suffix of at most `tail` bytes, both of whole
/// characters and without overlap. The first value is the number of characters between them.
pub fn split(text: &str, head: usize, tail: usize) -> (usize, &str, &str) {
    let end = floor(text, head);
    let start = ceil(text, text.len().saturating_sub(tail).max(end));
    (text[end..start].chars().count(), &text[..end], &text[start..])
}

/// Codex 0.46: at most `bytes`, including the mark and a line break after it; cut at line breaks if there are
/// any. Also the token estimate of the whole text, if it was cut.
pub fn within_bytes(text: &str, bytes: usize) -> (String, Option<usize>) {
    if text.len() <= bytes {
        return (text.to_owned(), None);
    }
    let total = bytes4(text.len());
    let mark = |tokens: usize| format!("…{tokens} tokens truncated…");
    // The length of the mark depends on the number in it, which depends on the mark's length: four rounds
    // settle it.
    let mut tokens = total;
    for _ in 0..4 {
        let room = bytes.saturating_sub(mark(tokens).len());
        if bytes == 0 || room == 0 {
            return (mark(total), Some(total));
        }
        let (head, tail) = at_lines(text, room / 2, room - room / 2);
        let missing = bytes4(text.len() - head.len() - tail.len());
        if missing == tokens {
            break;
        }
        tokens = missing;
    }
    let room = bytes.saturating_sub(mark(tokens).len());
    if room == 0 {
        return (mark(total), Some(total));
    }
    let (head, tail) = at_lines(text, room / 2, room - room / 2);
    (format!("{head}{}\n{tail}", mark(tokens)), Some(total))
}

/// [`split`], but the prefix ends after its last line break and the suffix begins after its first, unless the
/// budget ends inside a character.
fn at_lines(text: &str, head: usize, tail: usize) -> (&str, &str) {
    let (_, first, last) = split(text, head, tail);
    let lines = |whole: bool, at: Option<usize>| at.filter(|_| whole);
    let first = lines(first.len() == head, first.rfind('\n')).map_or(first, |at| &first[..=at]);
    let last = lines(last.len() == tail, last.find('\n')).map_or(last, |at| &last[at + 1..]);
    (first, last)
}

/// The last character boundary at or before byte `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|it| text.is_char_boundary(*it)).unwrap_or(0)
}

/// The first character boundary at or after byte `at`.
pub fn ceil(text: &str, at: usize) -> usize {
    (at..text.len()).find(|it| text.is_char_boundary(*it)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codex_vectors() {
        let one = "this is an example of a long output that should be truncated";
        let two = format!("{one}\nalso some other line");
        let faces = format!("{}\nsecond line with text\n", "😀".repeat(10));
        for (text, tokens, expected) in [
            ("abcdef", 0, "…2 tokens truncated…"),
            ("example output", 1, "ex…3 tokens truncated…ut"),
            (one, 5, "this is an…10 tokens truncated… truncated"),
            (&two, 10, "this is an example o…11 tokens truncated…also some other line"),
            (&faces, 8, "😀😀😀😀…8 tokens truncated… line with text\n"),
            ("", 0, ""),
            ("abcd", 1, "abcd"),
        ] {
            assert_eq!(by_tokens(text, tokens), expected, "{text} {tokens}");
        }
        assert_eq!(with_mark(&faces, 20, "…"), "😀😀…with text\n");
        assert_eq!(bytes4(faces.len()), 16);
        assert_eq!((bytes4(0), bytes4(5)), (0, 2));
    }

    #[test]
    fn codex_split_vectors() {
        let five = "😀".repeat(5);
        for (text, head, tail, expected) in [
            ("hello world", 5, 5, (1, "hello", "world")),
            ("abc", 0, 0, (3, "", "")),
            ("abcdef", 4, 4, (0, "abcd", "ef")),
            ("😀abc😀", 5, 5, (1, "😀a", "c😀")),
            (&five, 1, 1, (5, "", "")),
            (&five, 7, 7, (3, "😀", "😀")),
            (&five, 8, 8, (1, "😀😀", "😀😀")),
        ] {
            assert_eq!(split(text, head, tail), expected, "{text} {head} {tail}");
        }
    }

    #[test]
    fn codex_0_46_vectors() {
        let lines: String = (1..=20).map(|it| format!("{it:03}\n")).collect();
        let expected = "001\n002\n003\n004\n…12 tokens truncated…\n017\n018\n019\n020\n";
        assert_eq!(within_bytes(&lines, 64), (expected.to_owned(), Some(20)));
        assert_eq!(within_bytes(&lines, 80), (lines.clone(), None));
        assert_eq!(within_bytes(&lines, 0), ("…20 tokens truncated…".to_owned(), Some(20)));
        // The cut is between characters, whatever the budget.
        for bytes in 0..60 {
            within_bytes(&"あ".repeat(40), bytes);
            with_mark(&"あ".repeat(40), bytes, "…");
        }
    }
}
