//! Server-sent events as the providers use them: `data:` lines up to an empty line. Pure.

/// Reads a stream that comes in pieces cut anywhere, also within a character or between `\r` and `\n`.
#[derive(Debug, Default)]
pub struct SseReader {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
}

impl SseReader {
    /// Takes a piece, and calls `event` with the data of every event that it completes.
    ///
    /// # Errors
    /// The first error that `event` returns.
    pub fn feed<E>(&mut self, piece: &[u8], event: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        for &byte in piece {
            if byte == b'\n' {
                self.end_line(event)?;
            } else {
                self.line.push(byte);
            }
        }
        Ok(())
    }

    /// Ends the stream: a last event without its empty line still counts.
    ///
    /// # Errors
    /// The error that `event` returns.
    pub fn end<E>(&mut self, event: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.end_line(event)?;
        self.dispatch(event)
    }

    /// Bytes of unfinished events.
    pub fn waiting(&self) -> usize {
        self.line.len() + self.data.len()
    }

    fn end_line<E>(&mut self, event: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.is_empty() {
            return self.dispatch(event);
        }
        // Only data is needed: event names, ids and comments add nothing.
        if let Some(rest) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(rest.strip_prefix(b" ").unwrap_or(rest));
            self.has_data = true;
        }
        Ok(())
    }

    fn dispatch<E>(&mut self, event: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if !std::mem::take(&mut self.has_data) {
            return Ok(());
        }
        event(&std::mem::take(&mut self.data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut out = Vec::new();
        let mut reader = SseReader::default();
        let mut keep = |data: &[u8]| -> Result<(), ()> {
            out.push(String::from_utf8_lossy(data).into_owned());
            Ok(())
        };
        for piece in pieces {
            reader.feed(piece, &mut keep).unwrap();
        }
        reader.end(&mut keep).unwrap();
        out
    }

    #[test]
    fn events_survive_any_cut() {
        let text =
            "event: a\r\ndata: {\"x\":\r\ndata: \"é\"}\r\n\r\n: ping\n\ndata:[DONE]\n\ndata: last".as_bytes();
        let whole = read(&[text]);
        assert_eq!(whole, ["{\"x\":\n\"é\"}", "[DONE]", "last"]);
        for at in 0..text.len() {
            assert_eq!(read(&[&text[..at], &text[at..]]), whole, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(read(&bytes), whole);
    }
}
