//! Which session the calling process belongs to.

use crate::agents::hooks::HookEvent;
use crate::engine::Engine;
use crate::engine::archive::marks::caller_mark;
use crate::store::Scope;
use history::error::Result;

/// Notes that this process's ancestors belong to the session, so that a server started by the same agent
/// finds it.
pub(crate) fn record(engine: &Engine, scope: &Scope, event: &HookEvent) -> Result<()> {
    for process in crate::config::ancestors() {
        let value = format!("{} {}", event.agent.name(), event.session);
        engine.store.mark(scope, &caller_mark(process), &value, engine.now)?;
    }
    Ok(())
}

/// The session that a hook noted for one of this process's ancestors.
pub(crate) fn recorded(engine: &Engine, agent: &str) -> Option<String> {
    let scope = engine.project();
    crate::config::ancestors().into_iter().find_map(|process| {
        let mark = engine.store.marked(&scope, &caller_mark(process)).ok().flatten()?;
        let (name, session) = mark.value.split_once(' ')?;
        (name == agent).then(|| session.to_owned())
    })
}
