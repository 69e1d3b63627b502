//! Who writes the summary: the offline summarizer (pure), a provider, or the calling agent itself.

pub mod offline;
