//! Replaces the directories that the records of a moved session name.

use std::io::{BufRead, Read};

use memchr::memmem;
use regex::bytes::{Captures, Regex};

use history::error::{Error, ErrorKind, Result};

/// Which fields of a session's records name directories, and what becomes of which directory.
pub(crate) struct Directories {
    fields: Regex,
    text: Regex,
    /// From and to; the first match counts.
    pairs: Vec<(String, String)>,
}

impl Directories {
    /// `fields`: the keys whose values, a string or a list of strings, are directories.
    pub(crate) fn new(fields: &[&str], pairs: Vec<(String, String)>) -> Result<Self> {
        let compiled = |pattern: &str| {
            Regex::new(pattern)
                .map_err(|error| Error::new(ErrorKind::Bug, "compiling a pattern").because(error))
        };
        // Quotation marks inside a JSON string are escaped, so that no key can match there.
        let text = r#""(?:[^"\\]|\\.)*""#;
        let keys = fields.join("|");
        let whole = format!(r#"(?s-u)("(?:{keys})"\s*:\s*)({text}|\[\s*(?:{text}\s*,?\s*)*\])"#);
        let pairs = pairs.into_iter().map(|(from, to)| (from.trim_end_matches(['/', '\\']).to_owned(), to));
        let pairs = pairs.filter(|(from, to)| !from.is_empty() && from != to).collect();
        Ok(Self { fields: compiled(&whole)?, text: compiled(&format!("(?s-u){text}"))?, pairs })
    }

    /// The replacement of a directory or of a path below it, if there is one.
    fn moved(&self, directory: &str) -> Option<String> {
        self.pairs.iter().find_map(|(from, to)| {
            let rest = directory.strip_prefix(from.as_str())?;
            (rest.is_empty() || rest.starts_with(['/', '\\'])).then(|| format!("{to}{rest}"))
        })
    }

    /// A line with its directories replaced, and how many were.
    fn line(&self, line: &[u8]) -> (Vec<u8>, u64) {
        let mut count = 0;
        let replaced = self.fields.replace_all(line, |field: &Captures<'_>| {
            let texts = self.text.replace_all(&field[2], |text: &Captures<'_>| {
                let decoded: Option<String> = serde_json::from_slice(&text[0]).ok();
                match decoded.and_then(|it| self.moved(&it)) {
                    Some(moved) => {
                        count += 1;
                        history::json::compact(&moved).into_bytes()
                    }
                    None => text[0].to_vec(),
                }
            });
            [&field[1], &texts].concat()
        });
        (replaced.into_owned(), count)
    }
}

/// Reads a session with its directories replaced, line by line.
pub(crate) struct Moved<'a, R> {
    inner: R,
    directories: &'a Directories,
    line: std::io::Cursor<Vec<u8>>,
    /// Directories replaced so far.
    pub(crate) fields: u64,
    /// Lines that still name the old project's directory, in messages and calls.
    pub(crate) mentions: u64,
}

impl<'a, R: BufRead> Moved<'a, R> {
    pub(crate) fn new(inner: R, directories: &'a Directories) -> Self {
        Self { inner, directories, line: std::io::Cursor::default(), fields: 0, mentions: 0 }
    }
}

impl<R: BufRead> Read for Moved<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let read = self.line.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let mut line = Vec::new();
            if self.inner.read_until(b'\n', &mut line)? == 0 {
                return Ok(0);
            }
            let (line, count) = self.directories.line(&line);
            self.fields += count;
            let old = self.directories.pairs.first().map(|it| it.0.as_bytes());
            self.mentions += u64::from(old.is_some_and(|it| memmem::find(&line, it).is_some()));
            self.line = std::io::Cursor::new(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_move_in_their_fields_and_nowhere_else() {
        let pairs = [("/old/p", "/new/q \"x\""), ("/old", "/home/b")];
        let pairs = pairs.map(|(from, to)| (from.to_owned(), to.to_owned())).to_vec();
        let directories = Directories::new(&["cwd", "roots"], pairs).unwrap();
        for (line, expected, count) in [
            (r#"{"cwd":"/old/p"}"#, r#"{"cwd":"/new/q \"x\""}"#, 1),
            (r#"{"cwd" : "\/old\/p\/s","x":1}"#, r#"{"cwd" : "/new/q \"x\"/s","x":1}"#, 1),
            (r#"{"cwd":"/old/pp"}"#, r#"{"cwd":"/home/b/pp"}"#, 1),
            (
                r#"{"roots": ["/old/p", "/else", "/old"]}"#,
                r#"{"roots": ["/new/q \"x\"", "/else", "/home/b"]}"#,
                2,
            ),
            (r#"{"text":"{\"cwd\":\"/old/p\"}"}"#, r#"{"text":"{\"cwd\":\"/old/p\"}"}"#, 0),
            (r#"{"text":"/old/p","cwd":null}"#, r#"{"text":"/old/p","cwd":null}"#, 0),
            (r#"{"cwd":"/older/p","cwd":"/old/p"#, r#"{"cwd":"/older/p","cwd":"/old/p"#, 0),
        ] {
            let (moved, found) = directories.line(line.as_bytes());
            assert_eq!((String::from_utf8(moved).unwrap().as_str(), found), (expected, count));
        }
        let mut out = Vec::new();
        let text = "{\"cwd\":\"/old/p\"}\r\n\n{\"text\":\"see /old/p/x\"}\n\u{feff}no end";
        let mut moved = Moved::new(text.as_bytes(), &directories);
        moved.read_to_end(&mut out).unwrap();
        assert_eq!((moved.fields, moved.mentions), (1, 1));
        assert_eq!(String::from_utf8(out).unwrap(), text.replacen("\"/old/p\"", "\"/new/q \\\"x\\\"\"", 1));
    }
}
