//! Which archived originals may be read from here.

use crate::engine::Engine;
use crate::store::{Scope, SearchScope};
use history::error::{Error, ErrorKind, Hint, Result};

/// The scope of a handle, if the caller may read it. The user may read any of their own. An agent, or a
/// caller that passes `project` or `session`, may read only what belongs to the working directory, a parent
/// or a subdirectory, unless it passes `all`.
///
/// # Errors
///
/// No such handle, or one of another project.
pub fn readable(engine: &Engine, handle: &str, wanted: Option<SearchScope>) -> Result<Scope> {
    let found = engine.store.locate(handle, &engine.config.owner)?;
    let near = |here: &str| {
        let (here, there) = (std::path::Path::new(here), std::path::Path::new(&found.project));
        here.starts_with(there) || there.starts_with(here)
    };
    let ours = found.project.is_empty() || engine.projects().iter().any(|it| near(&it.project));
    let anywhere = match wanted {
        Some(SearchScope::All) => true,
        None => engine.config.agents.inside.is_none(),
        Some(SearchScope::Project | SearchScope::Session) => false,
    };
    if ours || anywhere {
        return Ok(found);
    }
    let what = format!("reading {handle}: expected a handle of this project, found one of {}", found.project);
    Err(Error::new(ErrorKind::Refused, what).hint(Hint::AllScopes))
}
