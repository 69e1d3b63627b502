//! Where a session's bytes are read from.

use std::borrow::Cow;
use std::ops::Range;

use history::error::{Error, ErrorKind, Result};
use history::json;

/// Bytes that can be read repeatedly. `len` is fixed when it is opened; bytes after it do not exist.
pub trait Source: Sync {
    /// A path or its equivalent, for error messages.
    fn name(&self) -> &str;
    /// Length in bytes.
    fn len(&self) -> u64;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Fills `buffer` from `at`. Fewer bytes than asked for is [`ErrorKind::Changed`].
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()>;

    /// Reads a range. Fails as [`Self::read_at`] does.
    fn bytes(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let mut buffer = vec![0; (range.end - range.start) as usize];
        self.read_at(range.start, &mut buffer)?;
        Ok(buffer)
    }

    /// Reads a range as text, mended so that every byte keeps its position. Fails as [`Self::read_at`] does.
    fn text(&self, range: Range<u64>) -> Result<String> {
        let bytes = self.bytes(range)?;
        match json::mend(&bytes) {
            Cow::Owned(text) => Ok(text),
            Cow::Borrowed(_) => Ok(String::from_utf8(bytes).unwrap_or_default()),
        }
    }

    /// Reads the whole source. Fails as [`Self::read_at`] does.
    fn whole(&self) -> Result<Vec<u8>> {
        self.bytes(0..self.len())
    }
}

#[derive(Debug, Clone)]
pub struct MemorySource {
    name: String,
    bytes: Vec<u8>,
}

impl MemorySource {
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }
}

impl Source for MemorySource {
    fn name(&self) -> &str {
        &self.name
    }
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let range = at as usize..at as usize + buffer.len();
        let found = self.bytes.get(range).ok_or_else(|| {
            Error::new(ErrorKind::Changed, format!("expected {} bytes at {at}, found fewer", buffer.len()))
                .at(&self.name, None)
        })?;
        buffer.copy_from_slice(found);
        Ok(())
    }
}
