//! Text as the scorer sees it: its normal form, its tokens, its rows under their headings, and its sentences.

use history::Call;
use serde_json::Value;

use super::cues;

/// The normal form in which texts are compared: runs of white space are one space, decomposed Latin letters and kana
/// are composed. Never folds case.
pub(super) fn normal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() {
            if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
        } else if let Some(composed) = out.chars().next_back().and_then(|base| compose(base, c)) {
            out.pop();
            out.push(composed);
        } else {
            out.push(c);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// The pairs that file systems and input methods really decompose: European accents, voiced kana.
fn compose(base: char, mark: char) -> Option<char> {
    const LATIN: [(char, &str, &str); 7] = [
        ('\u{300}', "aeiouAEIOUnN", "àèìòùÀÈÌÒÙǹǸ"),
        ('\u{301}', "aeiouyAEIOUYcnsz", "áéíóúýÁÉÍÓÚÝćńśź"),
        ('\u{302}', "aeiouAEIOU", "âêîôûÂÊÎÔÛ"),
        ('\u{303}', "anoANO", "ãñõÃÑÕ"),
        ('\u{308}', "aeiouyAEIOUеЕ", "äëïöüÿÄËÏÖÜёЁ"),
        ('\u{30C}', "csznrCSZ", "čšžňřČŠŽ"),
        ('\u{327}', "cC", "çÇ"),
    ];
    match mark {
        '\u{306}' if base == 'и' => Some('й'),
        '\u{3099}' if "うウ".contains(base) => Some(if base == 'う' { 'ゔ' } else { 'ヴ' }),
        '\u{3099}' if ('か'..='ほ').contains(&base) || ('カ'..='ホ').contains(&base) => {
            char::from_u32(base as u32 + 1)
        }
        '\u{309A}' if ('は'..='ほ').contains(&base) || ('ハ'..='ホ').contains(&base) => {
            char::from_u32(base as u32 + 2)
        }
        _ => {
            let (_, plain, accented) = LATIN.iter().find(|(it, _, _)| *it == mark)?;
            plain.chars().position(|it| it == base).and_then(|at| accented.chars().nth(at))
        }
    }
}

/// Whether a script has no spaces between words (or, as Korean, has endings attached to them).
pub(super) fn is_dense(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}'
        | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}' | '々')
}

/// A word and its byte offset in the text.
pub(super) struct Word<'a> {
    pub(super) at: usize,
    pub(super) text: &'a str,
    pub(super) dense: bool,
}

/// Words of a text: runs of letters and digits, joined by the punctuation of paths, versions and identifiers;
/// a run of dense script is one word.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    words_of(text).collect()
}

/// [`words`], lazily.
pub(super) fn words_of(text: &str) -> impl Iterator<Item = Word<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at += text.as_bytes()[at..].iter().position(|it| sign(*it) != Sign::Apart)?;
            let c = char_at(text, at)?;
            let start = at;
            at += c.len_utf8();
            let leads = matches!(c, '/' | '~' | '.' | '_' | '@' | '#' | '$');
            let followed =
                || char_at(text, at).is_some_and(|it| it.is_alphanumeric() || matches!(it, '_' | '/' | '.'));
            if !(c.is_alphanumeric() || leads && followed()) {
                continue;
            }
            let dense = is_dense(c);
            while let Some(next) = char_at(text, at) {
                let joins = if dense {
                    is_dense(next)
                } else {
                    !is_dense(next)
                        && (next.is_alphanumeric()
                            || next == '_'
                            || matches!(
                                next,
                                '-' | '.' | '/' | ':' | '@' | '+' | '\'' | '’' | '#' | '=' | '%' | '\\' | '~'
                            ) && char_at(text, at + next.len_utf8()).is_some_and(|it| {
                                !is_dense(it)
                                    && (it.is_alphanumeric() || matches!(it, '_' | '/' | '.' | '\\'))
                            }))
                };
                if !joins {
                    break;
                }
                at += next.len_utf8();
                // Most of a word, byte by byte.
                if !dense {
                    at += text.as_bytes()[at..].iter().take_while(|it| sign(**it) == Sign::Letter).count();
                }
            }
            let word = text[start..at].trim_end_matches(['.', ':', '\'', '’']);
            if word.chars().any(char::is_alphanumeric) {
                return Some(Word { at: start, text: word, dense });
            }
        }
    })
}

/// The part that a byte can have in a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// ASCII that neither begins a word nor continues one by itself.
    Apart,
    /// An ASCII letter, digit or underscore.
    Letter,
    /// Depends on the characters around it.
    Other,
}

fn sign(byte: u8) -> Sign {
    const SIGNS: [Sign; 256] = {
        let mut out = [Sign::Other; 256];
        let mut at = 0;
        while at < 128 {
            let byte = at as u8;
            out[at] = match byte {
                b'_' => Sign::Letter,
                _ if byte.is_ascii_alphanumeric() => Sign::Letter,
                b'/' | b'~' | b'.' | b'@' | b'#' | b'$' => Sign::Other,
                _ => Sign::Apart,
            };
            at += 1;
        }
        out
    };
    SIGNS[usize::from(byte)]
}

/// The character that begins at a byte.
fn char_at(text: &str, at: usize) -> Option<char> {
    match text.as_bytes().get(at)? {
        byte if byte.is_ascii() => Some(char::from(*byte)),
        _ => text[at..].chars().next(),
    }
}

/// Lower case for ordinary words; paths, identifiers and camel case stay as they are.
pub(super) fn fold(word: &str) -> String {
    let marked = word.contains(['/', '_', '.', '\\', '@', '=']) || word.chars().any(|c| c.is_ascii_digit());
    let camel = word.chars().zip(word.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    if marked || camel { word.to_string() } else { word.to_lowercase().replace('’', "'") }
}

/// All tokens of a text in order: folded words, and pairs of neighboring characters of dense script.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for word in words(text) {
        if !word.dense {
            out.push(fold(word.text));
            continue;
        }
        let chars: Vec<char> = word.text.chars().collect();
        if chars.len() == 1 {
            out.push(word.text.to_string());
        }
        out.extend(chars.windows(2).map(|it| it.iter().collect::<String>()));
    }
    out
}

/// The tokens that carry meaning: without function words, cues of obligation, and pairs of bare hiragana. If
/// none are left, all tokens.
pub(super) fn content(text: &str) -> Vec<String> {
    let all = tokens(text);
    let kept: Vec<String> = all.iter().filter(|it| !is_function(it)).cloned().collect();
    if kept.is_empty() { all } else { kept }
}

pub(super) fn is_function(token: &str) -> bool {
    cues::FUNCTION_WORDS.binary_search(&token).is_ok()
        || token.chars().all(|c| ('\u{3041}'..='\u{309F}').contains(&c) || cues::FUNCTION_CHARS.contains(c))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A heading, a bold line, a tag, or a label that ends in a colon.
    Label,
    /// A list item or table row.
    Item,
    /// Anything else outside code.
    Prose,
    /// Inside a code fence.
    Code,
    /// A quotation that begins with `> `.
    Quote,
}

/// A line, joined with the next ones where it was only wrapped, and the labels that it belongs to.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Normal form, without list marker.
    pub(super) text: String,
    pub(super) shape: Shape,
    /// The rows above that label it: the nearest label line with no paragraph or other heading between, and
    /// the nearest heading.
    pub(super) labels: [Option<usize>; 2],
}

/// The rows of a text, code and quotes included.
pub(super) fn rows(text: &str) -> Vec<Row> {
    let mut out: Vec<Row> = Vec::new();
    let mut fence: Option<String> = None;
    let (mut heading, mut label) = (None, None);
    // Whether the last row may still be continued by a soft line break.
    let mut open = false;
    for line in text.lines() {
        let bare = line.trim();
        if let Some(mark) = &fence {
            if bare.starts_with(mark.as_str()) && bare.trim_matches(['`', '~']).is_empty() {
                fence = None;
            } else if !bare.is_empty() {
                out.push(Row { text: normal(bare), shape: Shape::Code, labels: [label, heading] });
            }
            open = false;
            continue;
        }
        if bare.starts_with("```") || bare.starts_with("~~~") {
            fence = Some(bare.chars().take_while(|c| *c == '`' || *c == '~').collect());
            open = false;
            continue;
        }
        if bare.is_empty() {
            open = false;
            continue;
        }
        let (marker, rest) = item(bare);
        let headed = is_heading(bare);
        if headed || ends_as_label(rest) {
            let level = if headed { 0 } else { 1 };
            let labels = if level == 0 { [None, None] } else { [None, heading] };
            out.push(Row { text: normal(rest), shape: Shape::Label, labels });
            if level == 0 {
                (heading, label) = (Some(out.len() - 1), None);
            } else {
                label = Some(out.len() - 1);
            }
            open = false;
            continue;
        }
        if bare.starts_with('>') && !bare.starts_with(">>>") {
            let rest = bare.trim_start_matches(['>', ' ']);
            out.push(Row { text: normal(rest), shape: Shape::Quote, labels: [label, heading] });
            open = false;
            continue;
        }
        let shape = if marker || bare.starts_with('|') { Shape::Item } else { Shape::Prose };
        // A capital, or a name and a colon, begins a new thought.
        let goes_on =
            rest.starts_with(|c: char| c.is_lowercase() || is_dense(c)) && !clip(rest, 20).contains(": ");
        if open
            && goes_on
            && shape == Shape::Prose
            && let Some(last) = out.last_mut()
        {
            last.text.push(' ');
            last.text.push_str(&normal(bare));
        } else {
            if shape == Shape::Prose
                && out.last().is_some_and(|it| it.shape == Shape::Item)
                && !line.starts_with([' ', '\t'])
            {
                label = None;
            }
            out.push(Row { text: normal(rest), shape, labels: [label, heading] });
        }
        // Hard-wrapped text: a long line without final punctuation continues in the next one.
        open =
            bare.chars().count() >= 60 && !bare.ends_with(['.', '!', '?', ':', ';', '。', '！', '？', '|']);
    }
    out
}

/// Removes a list marker, and says whether there was one: `- `, `* `, `• `, `1. `, `1) `.
fn item(line: &str) -> (bool, &str) {
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    if (1..=3).contains(&digits)
        && let Some(rest) = line[digits..].strip_prefix(". ").or_else(|| line[digits..].strip_prefix(") "))
    {
        return (true, rest.trim_start());
    }
    for mark in ["- ", "* ", "+ ", "• ", "・", "– "] {
        if let Some(rest) = line.strip_prefix(mark) {
            return (true, rest.trim_start());
        }
    }
    (false, line)
}

/// Maximum bytes of a heading, which is read again for each row under it.
const LONGEST_HEADING: usize = 400;

fn is_heading(line: &str) -> bool {
    if line.len() > LONGEST_HEADING {
        return false;
    }
    let hashes = line.chars().take_while(|c| *c == '#').count();
    let tag = line.starts_with('<') && line.ends_with('>') && !line.contains(' ') && line.len() < 60;
    let numbered = line.starts_with(|c: char| c.is_ascii_digit())
        && item(line).0
        && ends_as_label(line)
        && !line.contains('`');
    let bold = line.starts_with("**")
        && line.trim_end_matches(':').ends_with("**")
        && line.matches("**").count() == 2;
    (1..=6).contains(&hashes) && line[hashes..].starts_with(' ') || tag || bold || numbered
}

fn ends_as_label(line: &str) -> bool {
    let line = line.trim_end_matches(['*', '_', ' ']);
    line.ends_with([':', '：']) && line.chars().count() <= 80
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence {
    pub(super) text: String,
    pub(super) question: bool,
}

pub(super) fn sentences(row: &str) -> Vec<Sentence> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut chars = row.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let next = chars.peek().map(|(_, it)| *it);
        let ends = match c {
            '。' | '！' | '？' => true,
            '!' | '?' => next.is_none_or(|it| it.is_whitespace() || is_dense(it)),
            '.' => {
                next.is_none_or(char::is_whitespace)
                    && !cues::ABBREVIATIONS.iter().any(|it| row[start..end].ends_with(it))
            }
            ';' => next.is_none_or(char::is_whitespace),
            _ => false,
        };
        if ends {
            push_sentence(&row[start..end], &mut out);
            start = end;
        }
    }
    push_sentence(&row[start..], &mut out);
    out
}

fn push_sentence(text: &str, out: &mut Vec<Sentence>) {
    let text = text.trim();
    if text.chars().any(char::is_alphanumeric) {
        let end = text.trim_end_matches(['"', '”', '*', ')', '」', ' ']);
        out.push(Sentence { text: text.to_string(), question: end.ends_with(['?', '？']) });
    }
}

/// A text in which quotations and code spans are blanked, byte for byte, so that they do not count as the
/// speaker's own words.
pub(super) fn unquoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '`', '“', '「', '«']) {
        let open = rest[at..].chars().next().unwrap_or('"');
        let close = match open {
            '“' => '”',
            '「' => '」',
            '«' => '»',
            same => same,
        };
        let inner = at + open.len_utf8();
        let Some(len) = rest[inner..].find(close) else { break };
        out.push_str(&rest[..inner]);
        let quoted = &rest[inner..inner + len];
        // One or two words in quotes are a name or an emphasis, not a quotation.
        if open != '`' && words(quoted).len() <= 2 && !quoted.chars().any(is_dense) {
            out.push_str(quoted);
        } else {
            out.extend(std::iter::repeat_n('_', quoted.len()));
        }
        out.push(close);
        rest = &rest[inner + len + close.len_utf8()..];
    }
    out.push_str(rest);
    out
}

/// The last `limit` bytes, or a few less to start at a whole character.
pub(super) fn ending(text: &str, limit: usize) -> &str {
    let mut at = text.len().saturating_sub(limit);
    while !text.is_char_boundary(at) {
        at += 1;
    }
    &text[at..]
}

/// The first `limit` characters, cut at a space where possible.
pub(super) fn clip(text: &str, limit: usize) -> &str {
    match text.char_indices().nth(limit) {
        None => text,
        Some((end, _)) => {
            let cut = &text[..end];
            cut.rfind(' ').filter(|it| *it > end / 2).map_or(cut, |it| &cut[..it])
        }
    }
}

/// The strings in a call's arguments.
pub(super) fn strings(call: &Call, each: &mut dyn FnMut(&str)) {
    fn walk(value: &Value, each: &mut dyn FnMut(&str)) {
        match value {
            Value::String(it) => each(it),
            Value::Array(it) => it.iter().for_each(|it| walk(it, each)),
            Value::Object(it) => it.values().for_each(|it| walk(it, each)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    match serde_json::from_str::<Value>(call.input.as_str()) {
        Ok(value) if !call.freeform => walk(&value, each),
        Ok(_) | Err(_) => each(call.input.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// [`words`], character by character, as a reference.
    fn slow(text: &str) -> Vec<(usize, String, bool)> {
        let mut out = Vec::new();
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let dense = is_dense(c);
            let leads = matches!(c, '/' | '~' | '.' | '_' | '@' | '#' | '$');
            let followed =
                chars.peek().is_some_and(|(_, it)| it.is_alphanumeric() || matches!(it, '_' | '/' | '.'));
            if !(c.is_alphanumeric() || leads && followed) {
                continue;
            }
            let mut end = at + c.len_utf8();
            while let Some(&(at, next)) = chars.peek() {
                let sign = "-./:@+'’#=%\\~".contains(next);
                let behind = text[at + next.len_utf8()..].chars().next();
                let on = |it: char| !is_dense(it) && (it.is_alphanumeric() || "_/.\\".contains(it));
                let joins = if dense {
                    is_dense(next)
                } else {
                    let letter = next.is_alphanumeric() || next == '_';
                    !is_dense(next) && (letter || sign && behind.is_some_and(on))
                };
                if !joins {
                    break;
                }
                end = at + next.len_utf8();
                chars.next();
            }
            let word = text[at..end].trim_end_matches(['.', ':', '\'', '’']);
            if word.chars().any(char::is_alphanumeric) {
                out.push((at, word.to_owned(), dense));
            }
        }
        out
    }

    proptest! {
        #[test]
        fn words_are_what_single_characters_say(
            text in prop_oneof![any::<String>(), "[ab1_é字カ /~.@#$:'’+=%\\\\\n-]{0,60}"]
        ) {
            let found: Vec<_> = words(&text).iter().map(|it| (it.at, it.text.to_owned(), it.dense)).collect();
            prop_assert_eq!(found, slow(&text));
        }
    }
}
