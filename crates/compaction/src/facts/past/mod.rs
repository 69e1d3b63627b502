//! Earlier summaries, ours and other agents', parsed back into facts, so that summaries are neither lost nor nested; and
//! what the session since then says about these facts.

pub(in crate::facts) mod evidence;
pub(in crate::facts) mod expired_rules;
pub(in crate::facts) mod overtaken;
mod progress;
pub(in crate::facts) mod reader;
pub(in crate::facts) mod repeated;
pub(in crate::facts) mod step_index;
pub(in crate::facts) mod superseded;
pub(in crate::facts) mod temporary;
