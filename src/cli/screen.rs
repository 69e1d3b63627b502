//! Where a command writes.

use std::io::{IsTerminal, Read, Write};

use serde::Serialize;

use super::Paint;
use super::paint::{fitted, wrapped};
use crate::answers::AnswerDocument;
use crate::terminal::LineMode;
use history::error::{Error, ErrorKind, Result};

/// Where a command writes, and how. Text for people passes through the door that lets nothing through on which a
/// terminal acts; JSON and originals are exact.
pub(crate) struct Screen<'a> {
    pub(super) out: &'a mut dyn Write,
    pub(super) paint: Paint,
    pub(super) json: bool,
    pub(super) quiet: bool,
}

impl Screen<'_> {
    /// An answer with the contract's version before its fields, if `--json` was given; whether it was.
    pub(super) fn json<T: Serialize>(&mut self, answer: &T) -> Result<bool> {
        self.document(&AnswerDocument::of(answer))
    }

    /// An answer as JSON, or else as `show` shows it; the exit code 0.
    pub(super) fn answer<T: Serialize>(
        &mut self,
        answer: &T,
        show: impl FnOnce(&T, &mut Self) -> Result<()>,
    ) -> Result<u8> {
        if !self.json(answer)? {
            show(answer, self)?;
        }
        Ok(0)
    }

    /// JSON that has a shape of its own, if `--json` was given; whether it was.
    pub(super) fn document<T: Serialize>(&mut self, document: &T) -> Result<bool> {
        if !self.json {
            return Ok(false);
        }
        let text = serde_json::to_string_pretty(document).map_err(unwritable)?;
        self.write(&format!("{text}\n"))?;
        Ok(true)
    }

    /// A table as wide as the terminal: of the columns named, those that have no room are hidden, with a line that
    /// names them.
    pub(super) fn table(
        &mut self,
        head: &[&str],
        rows: impl IntoIterator<Item = Vec<String>>,
        dispensable: &[&str],
    ) -> Result<()> {
        let head = head.iter().map(|it| (*it).to_owned()).collect();
        let all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
        let (lines, hidden) = fitted(&all, dispensable, self.paint);
        for line in lines {
            self.line(line.trim_end())?;
        }
        if hidden.is_empty() {
            return Ok(());
        }
        let note = format!("columns hidden (terminal too narrow): {}; --json has all", hidden.join(", "));
        for line in wrapped(&note, self.paint) {
            self.note(&self.paint.faint(&line))?;
        }
        Ok(())
    }

    /// What was not quite as wanted, below an answer.
    pub(super) fn warnings(&mut self, warnings: &[String]) -> Result<()> {
        for warning in warnings {
            self.line(&self.paint.faint(&format!("note: {warning}")))?;
        }
        Ok(())
    }

    /// An answer that is one sentence for people.
    pub(super) fn sentence<T: Serialize>(&mut self, answer: &T, text: &str) -> Result<()> {
        if self.json(answer)? { Ok(()) } else { self.line(text) }
    }

    /// An answer on one line, with the contract's version before its fields.
    pub(super) fn json_line<T: Serialize>(&mut self, answer: &T) -> Result<()> {
        self.document_line(&AnswerDocument::of(answer))
    }

    /// JSON on one line that has a shape of its own.
    pub(super) fn document_line<T: Serialize>(&mut self, document: &T) -> Result<()> {
        let line = serde_json::to_string(document).map_err(unwritable)?;
        self.write(&format!("{line}\n"))
    }

    /// One line. A line break in it is shown and breaks nothing.
    pub(super) fn line(&mut self, text: &str) -> Result<()> {
        let text = self.paint.visible(text, LineMode::Line);
        self.write(&format!("{text}\n"))
    }

    /// A text of several lines, which stay.
    pub(super) fn block(&mut self, text: &str) -> Result<()> {
        let text = self.paint.visible(text, LineMode::Block);
        self.write(&format!("{text}\n"))
    }

    /// A line for people, left out with `-q`.
    pub(super) fn note(&mut self, text: &str) -> Result<()> {
        if self.quiet { Ok(()) } else { self.line(text) }
    }

    /// Bytes that were asked for: exact, but on a terminal, where they are a text to look at.
    pub(super) fn exact(&mut self, bytes: &mut dyn Read) -> Result<()> {
        if !std::io::stdout().is_terminal() {
            return std::io::copy(bytes, self.out).map(drop).map_err(crate::store::unwrapped);
        }
        let mut all = Vec::new();
        bytes.read_to_end(&mut all).map_err(crate::store::unwrapped)?;
        let text = String::from_utf8_lossy(&all);
        self.block(text.strip_suffix('\n').unwrap_or(&text))
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.out
            .write_all(text.as_bytes())
            .map_err(|error| Error::new(ErrorKind::Io, "writing to standard output").because(error))
    }
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Bug, "writing JSON").because(error)
}
