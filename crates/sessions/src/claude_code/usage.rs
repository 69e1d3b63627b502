//! What a response reports of its tokens.

use history::Usage;
use serde::Deserialize;

use super::lenient::lenient;
use crate::cursor::{Cursor, Seen};

/// `message.usage`.
#[derive(Deserialize, Default)]
pub(super) struct Reported {
    #[serde(default, deserialize_with = "lenient")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cache_creation: Option<Creation>,
}

/// Of what was written to a cache, how much for how long.
#[derive(Deserialize, Default)]
pub(super) struct Creation {
    #[serde(default, deserialize_with = "lenient")]
    ephemeral_1h_input_tokens: Option<u64>,
}

impl Creation {
    fn of(it: &mut Cursor<'_>) -> Option<Self> {
        let (mut out, mut seen) = (Self::default(), Seen::default());
        it.object(|it, name| {
            match name {
                "ephemeral_1h_input_tokens" => {
                    out.ephemeral_1h_input_tokens = seen.once(0, it.some(Cursor::number))?;
                }
                _ => it.pass()?,
            }
            Some(())
        })?;
        Some(out)
    }
}

/// `message.usage` of a row.
pub(crate) fn usage(text: &str) -> Usage {
    serde_json::from_str(text).map(Reported::usage).unwrap_or_default()
}

impl Reported {
    pub(super) fn usage(self) -> Usage {
        Usage {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write: self.cache_creation_input_tokens.unwrap_or(0),
            cache_write_hour: self.cache_creation.and_then(|it| it.ephemeral_1h_input_tokens).unwrap_or(0),
            reasoning: 0,
        }
    }

    /// Reads it where it is as usual: whole numbers, or nothing.
    pub(super) fn of(it: &mut Cursor<'_>) -> Option<Self> {
        let (mut out, mut seen) = (Self::default(), Seen::default());
        it.object(|it, name| {
            match name {
                "input_tokens" => out.input_tokens = seen.once(0, it.some(Cursor::number))?,
                "output_tokens" => out.output_tokens = seen.once(1, it.some(Cursor::number))?,
                "cache_read_input_tokens" => {
                    out.cache_read_input_tokens = seen.once(2, it.some(Cursor::number))?
                }
                "cache_creation_input_tokens" => {
                    out.cache_creation_input_tokens = seen.once(3, it.some(Cursor::number))?;
                }
                "cache_creation" => out.cache_creation = seen.once(4, it.some(Creation::of))?,
                _ => it.pass()?,
            }
            Some(())
        })?;
        Some(out)
    }
}
