//! All text for a terminal passes through here. Text from a session, a file name or another program may
//! contain control sequences that set the title, write to the clipboard, clear the screen or reverse the
//! writing direction; they become visible characters.

use std::borrow::Cow;
use std::io::{self, Write};

/// How line breaks and tabs are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineMode {
    /// Everything on one line.
    Line,
    /// Line breaks and tabs are kept.
    Block,
}

/// Makes control characters visible, except line breaks and tabs in a block: C0 controls become their
/// pictures (`␛`), C1 controls and bidirectional controls their code points (`<U+202E>`).
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
            // A Windows line ending.
            ('\r', LineMode::Block) if rest.peek() == Some(&'\n') => {}
            ('\0'..='\u{1f}', _) => out.extend(char::from_u32(0x2400 + it as u32)),
            ('\u{7f}', _) => out.push('␡'),
            _ if is_active(it) => out.push_str(&format!("<U+{:04X}>", it as u32)),
            _ => out.push(it),
        }
    }
    Cow::Owned(out)
}

/// Control characters, including bidirectional ones (as in "Trojan Source" attacks).
fn is_active(it: char) -> bool {
    it.is_control()
        || matches!(it, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A writer that applies [`visible`] to everything. Each call of `write` is treated as one text.
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
