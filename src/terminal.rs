//! The one door for text to a terminal. What comes from a session, a file's name or another program may hold sequences
//! that set the title, write the clipboard, clear the screen, or turn the direction of writing around; here they become
//! visible characters.

use std::borrow::Cow;
use std::io::{self, Write};

/// How line breaks and tabs are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineMode {
    /// All on one line.
    Line,
    /// Lines and tabs stay.
    Block,
}

/// The text without anything that a terminal acts on, but for line breaks and tabs of a block: C0 controls become their
/// pictures (`␛`), C1 controls and marks of direction their numbers (`<U+202E>`).
pub fn visible(text: &str, form: LineMode) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(it) = rest.next() {
        match (it, form) {
            ('\n' | '\t', LineMode::Block) => out.push(it),
            ('\t', LineMode::Line) => out.push(' '),
            // What Windows ends its lines with.
            ('\r', LineMode::Block) if rest.peek() == Some(&'\n') => {}
            ('\0'..='\u{1f}', _) => out.extend(char::from_u32(0x2400 + it as u32)),
            ('\u{7f}', _) => out.push('␡'),
            _ if is_active(it) => out.push_str(&format!("<U+{:04X}>", it as u32)),
            _ => out.push(it),
        }
    }
    Cow::Owned(out)
}

/// Controls, and what changes the direction of the text around it (the "Trojan Source" characters).
fn is_active(it: char) -> bool {
    it.is_control()
        || matches!(it, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Standard error, or any writer, behind the door. Each call of `write` is one text.
pub struct Visible<W>(pub W);

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(visible(&text, LineMode::Block).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts_on_the_terminal() {
        for (text, line, block) in [
            ("plain ü 日本 👩‍👩‍👧", "plain ü 日本 👩‍👩‍👧", "plain ü 日本 👩‍👩‍👧"),
            ("\u{1b}]52;c;eA==\u{7}", "␛]52;c;eA==␇", "␛]52;c;eA==␇"),
            ("\u{1b}[2J\u{9b}31m\u{8}\u{7f}", "␛[2J<U+009B>31m␈␡", "␛[2J<U+009B>31m␈␡"),
            ("a\nb\tc\r\nd\re\0", "a␊b c␍␊d␍e␀", "a\nb\tc\nd␍e␀"),
            ("\u{202e}x\u{2066}\u{85}", "<U+202E>x<U+2066><U+0085>", "<U+202E>x<U+2066><U+0085>"),
        ] {
            assert_eq!(visible(text, LineMode::Line), line);
            assert_eq!(visible(text, LineMode::Block), block);
        }
    }
}
