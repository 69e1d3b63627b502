//! What survived a compaction: facts taken from the source alone and looked for in the compacted history.
//!
//! Never sees `facts`, `compact` or `summarizer`, so that neither can flatter the other.
