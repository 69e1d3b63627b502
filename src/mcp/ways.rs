//! Where the result for a session can go: an answer names no call that would then be refused.

use std::path::Path;

use crate::agents::reach::{self, Job};
use crate::agents::{self, AgentRef};
use crate::engine::{Engine, Opened};
use sessions::Format;

/// The agent that keeps sessions of this format.
pub(super) fn agent_of(format: Format) -> Option<AgentRef> {
    agents::of_format(format)
}

/// Whether a result of this kind could be written back, as far as it can be told without doing it.
pub(super) fn back(engine: &Engine, opened: &Opened, job: Job) -> bool {
    let (Some(agent), Some(path)) = (agent_of(opened.session.format), &opened.path) else { return false };
    let address = path.to_string_lossy();
    let database = agents::split_address(&address).filter(|_| !path.exists()).map(|(_, it, _)| it);
    let export = agent.database().is_some() && database.is_none();
    let place = database.unwrap_or(path);
    let env = &engine.config.agents;
    let id = opened.session.history.meta.session.as_deref().unwrap_or_default();
    let live = opened.live || reach::is_live(env, agent, id, place);
    engine.store.keeps()
        && agent.reach(job, live, export).is_ok()
        && (export || reach::is_found(env, agent, place))
        && (export || is_replaceable(place))
        && is_known(agent, opened)
}

/// A link would be cut, and what is read-only is so for a reason.
fn is_replaceable(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|it| !it.is_symlink() && !it.permissions().readonly())
}

/// Of no later generation of the agent than its form is known of.
fn is_known(agent: AgentRef, opened: &Opened) -> bool {
    // The version stands near the beginning.
    let head = opened.source.bytes(0..opened.source.len().min(1 << 18));
    head.is_ok_and(|it| reach::newer(agent, &it).is_none())
}
