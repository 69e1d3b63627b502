//! The output of a command.

use std::io::{IsTerminal, Read, Write};

use serde::Serialize;

use super::Paint;
use super::paint::{fitted, wrapped};
use crate::answers::AnswerDocument;
use crate::interfaces::terminal::LineMode;
use history::error::{Error, ErrorKind, Result};

/// The output of a command. Text for people is printed without control characters; JSON and originals are
/// printed exactly.
pub(crate) struct Screen<'a> {
    pub(super) out: &'a mut dyn Write,
    pub(super) paint: Paint,
    pub(super) json: bool,
    pub(super) quiet: bool,
}

impl Screen<'_> {
    /// With `--json`, prints an answer, with the contract's version first; returns whether it did.
    pub(super) fn json<T: Serialize>(&mut self, answer: &T) -> Result<bool> {
        self.document(&AnswerDocument::of(answer))
    }

    /// Prints an answer as JSON or with `show`; returns exit code 0.
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

    /// With `--json`, prints a document without the contract's version; returns whether it did.
    pub(super) fn document<T: Serialize>(&mut self, document: &T) -> Result<bool> {
        if !self.json {
            return Ok(false);
        }
        let text = serde_json::to_string_pretty(document).map_err(unwritable)?;
        self.write(&format!("{text}\n"))?;
        Ok(true)
    }

    /// Prints a table that fits the terminal: columns in `dispensable` are hidden if necessary, and a last
    /// line names them.
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

    /// Prints an answer's warnings.
    pub(super) fn warnings(&mut self, warnings: &[String]) -> Result<()> {
        for warning in warnings {
            self.line(&self.paint.faint(&format!("note: {warning}")))?;
        }
        Ok(())
    }

    /// Prints an answer as JSON or as one sentence.
    pub(super) fn sentence<T: Serialize>(&mut self, answer: &T, text: &str) -> Result<()> {
        if self.json(answer)? { Ok(()) } else { self.line(text) }
    }

    /// Prints an answer as one line of JSON, with the contract's version as its first field.
    pub(super) fn json_line<T: Serialize>(&mut self, answer: &T) -> Result<()> {
        self.document_line(&AnswerDocument::of(answer))
    }

    /// Prints a document as one line of JSON, without the contract's version.
    pub(super) fn document_line<T: Serialize>(&mut self, document: &T) -> Result<()> {
        let line = serde_json::to_string(document).map_err(unwritable)?;
        self.write(&format!("{line}\n"))
    }

    /// Prints one line; line breaks in the text are escaped.
    pub(super) fn line(&mut self, text: &str) -> Result<()> {
        let text = self.paint.visible(text, LineMode::Line);
        self.write(&format!("{text}\n"))
    }

    /// Prints a text that may have several lines.
    pub(super) fn block(&mut self, text: &str) -> Result<()> {
        let text = self.paint.visible(text, LineMode::Block);
        self.write(&format!("{text}\n"))
    }

    /// Prints one line, omitted with `-q`.
    pub(super) fn note(&mut self, text: &str) -> Result<()> {
        if self.quiet { Ok(()) } else { self.line(text) }
    }

    /// Prints bytes exactly; on a terminal as text without control characters.
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
