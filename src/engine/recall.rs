//! Finding again what was archived, remembered or typed.

use super::{Engine, SessionRef};
use crate::agents;
use crate::error::{Error, Kind, Result};
use crate::store::words::Words;
use crate::store::{Entry, Query, Reach, Recalled, Scope, Typed};

impl Engine {
    /// The scope of a handle that is to be read. The user reads their own from anywhere. An agent, and whoever says
    /// `project` or `session`, reads only what is of this directory, one above or one below, unless they say `all`.
    pub fn readable(&self, handle: &str, said: Option<&str>) -> Result<Scope> {
        let found = self.store.locate(handle, &self.config.owner)?;
        let near = |here: &str| {
            let (here, there) = (std::path::Path::new(here), std::path::Path::new(&found.project));
            here.starts_with(there) || there.starts_with(here)
        };
        let ours = found.project.is_empty() || self.projects().iter().any(|it| near(&it.project));
        let anywhere = match said {
            Some("all") => true,
            None => self.config.agents.inside.is_none(),
            Some("project" | "session") => false,
            Some(other) => return Err(unknown_scope(other)),
        };
        if ours || anywhere {
            return Ok(found);
        }
        let what = format!(
            "reading {handle}: expected a handle of this project, found one of {}; with --scope all it is read all the same",
            found.project
        );
        Err(Error::new(Kind::Refused, what))
    }

    /// Searches as far as `said` (session, project, all; unsaid: the project, and all if that finds nothing). `session`
    /// names one for `session`.
    pub fn recall(&self, query: &Query, said: Option<&str>, session: SessionRef) -> Result<Recalled> {
        let here = self.project();
        let search = |scope: &Scope, reach: &Reach, name: &'static str| -> Result<Recalled> {
            let query = Query { reach: reach.clone(), ..query.clone() };
            let found = self.store.search(scope, &query)?;
            let room = query.limit.saturating_sub(found.hits.len() as u32);
            let typed = if query.offset == 0 { self.typed(&query, room)? } else { Vec::new() };
            Ok(Recalled { found, typed, reach: name })
        };
        match said {
            Some("all") => search(&here, &Reach::All, "all"),
            Some("project") => search(&here, &Reach::Project, "project"),
            Some("session") => {
                let opened = self.open(&session, None, None)?;
                let history = &opened.session.history;
                let id = history.meta.session.as_deref().unwrap_or_default().to_owned();
                search(&self.scope(history), &Reach::Session(id), "session")
            }
            None => {
                let near = search(&here, &Reach::Project, "project")?;
                let nothing = near.found.hits.is_empty() && near.typed.is_empty() && query.offset == 0;
                if nothing { search(&here, &Reach::All, "all") } else { Ok(near) }
            }
            Some(other) => Err(unknown_scope(other)),
        }
    }

    /// The prompts in the agents' own logs that hold all words, the newest first.
    fn typed(&self, query: &Query, limit: u32) -> Result<Vec<Typed>> {
        let words = Words::parse(&query.text)?;
        let env = &self.config.agents;
        let of_project: Option<Vec<String>> = match &query.reach {
            Reach::All => None,
            Reach::Session(id) => Some(vec![id.clone()]),
            Reach::Project => {
                Some(agents::list(env, None, Some(&env.cwd)).into_iter().map(|it| it.id).collect())
            }
        };
        let wanted = |it: &agents::Typed| of_project.as_ref().is_none_or(|ids| ids.contains(&it.session));
        let found = agents::typed(env).into_iter().rev().filter(wanted).filter_map(|it| {
            let snippet = words.find(&it.text)?;
            Some(Typed { kind: "prompt", agent: it.agent.name(), session: it.session, at: it.at, snippet })
        });
        Ok(found.take(limit as usize).collect())
    }

    /// The newest originals: of the session that is named, else of the one that calls or the newest here, else of this
    /// project.
    pub fn newest(&self, session: Option<&str>, limit: u32, offset: u32) -> Result<Vec<Entry>> {
        let mut scopes = self.projects();
        let id = match session {
            // Not only sessions that are still there have something in the archive.
            Some(name) => match self.open(&SessionRef::Named(name.to_owned()), None, None) {
                Ok(opened) => {
                    scopes.insert(0, self.scope(&opened.session.history));
                    opened.session.history.meta.session.as_deref().map(str::to_owned)
                }
                Err(_) => Some(name.to_owned()),
            },
            None => self.default_session(None).ok().map(|it| it.id),
        };
        let wider = (session.is_none() && id.is_some()).then_some(None);
        for id in std::iter::once(id.as_deref()).chain(wider) {
            for scope in &scopes {
                if !self.store.newest(scope, id, 1, 0)?.is_empty() {
                    return self.store.newest(scope, id, limit, offset);
                }
            }
        }
        Ok(Vec::new())
    }
}

fn unknown_scope(found: &str) -> Error {
    Error::new(Kind::Arguments, format!("scope: expected session, project or all, found {found:?}"))
}
