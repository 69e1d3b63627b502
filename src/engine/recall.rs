//! Finding again what was archived, remembered or typed.

use std::collections::HashSet;

use super::{Engine, SessionRef};
use crate::agents;
use crate::store::words::Words;
use crate::store::{
    Entry, Found, Hit, Query, Range, Reach, Recalled, Scope, Slice, Typed, What, range, unwrapped,
};
use compaction::plan;
use history::error::{Error, Kind, Result};
use history::{Kind as Said, Message, Part};
use sessions::{self, Memory};

/// Sessions that one search looks through, at most.
const SESSIONS: u32 = 1_000;
/// Outputs of a session that have handles of their own, as far as a search knows of them.
const CLEARED: u32 = 10_000;
/// Results of one search, at most.
const MOST: u32 = 100;
/// Bytes of them, at most: about a second's reading.
const LOOKED_THROUGH: u64 = 256 << 20;

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
        let search = |scope: &Scope, reach: Reach| -> Result<Recalled> {
            let query = Query { reach, ..query.clone() };
            let recalled = self.search(scope, &query)?;
            let room = query.limit.saturating_sub(recalled.found.hits.len() as u32);
            let typed = if query.offset == 0 { self.typed(&query, room)? } else { Vec::new() };
            Ok(Recalled { typed, ..recalled })
        };
        match said {
            Some("all") => search(&here, Reach::All),
            Some("project") => search(&here, Reach::Project),
            Some("session") => {
                let opened = self.open(&session, None, None)?;
                let history = &opened.session.history;
                let id = history.meta.session.as_deref().unwrap_or_default().to_owned();
                search(&self.scope(history), Reach::Session(id))
            }
            None => {
                let near = search(&here, Reach::Project)?;
                let nothing = near.found.hits.is_empty() && near.typed.is_empty() && query.offset == 0;
                if nothing { search(&here, Reach::All) } else { Ok(near) }
            }
            Some(other) => Err(unknown_scope(other)),
        }
    }

    /// Searches the index of outputs, summaries and memories, and, where that leaves room, the messages of the sessions in
    /// the archive: those are looked through as they lie there, so that a compaction need not take them apart.
    pub fn search(&self, scope: &Scope, query: &Query) -> Result<Recalled> {
        let mut found = self.store.search(scope, query)?;
        let recalled =
            |found, passed| Recalled { found, typed: Vec::new(), reach: query.reach.name(), passed };
        let wanted = query.only.is_empty() || query.only.contains(&What::Message);
        // The index comes first, all pages of it.
        if !wanted || (found.next.is_some() && !found.partial) {
            return Ok(recalled(found, 0));
        }
        let (limit, offset) = (query.limit.clamp(1, MOST) as usize, query.offset as usize);
        let indexed = match found.hits.len() {
            _ if found.partial => 0,
            0 if offset > 0 => {
                let all = self.store.search(scope, &Query { offset: 0, limit: MOST, ..query.clone() })?;
                if all.partial { 0 } else { all.hits.len() }
            }
            some => offset + some,
        };
        let room = if found.partial { limit } else { limit.saturating_sub(found.hits.len()) };
        let (mut said, passed) = self.said(scope, query, offset.saturating_sub(indexed), room + 1)?;
        let more = said.len() > room;
        said.truncate(room);
        if found.partial {
            if said.is_empty() && (offset == 0 || self.said(scope, query, 0, 1)?.0.is_empty()) {
                return Ok(recalled(found, passed));
            }
            // What was said holds all words.
            found = Found::default();
        }
        found.hits.extend(said);
        found.next = more.then(|| query.offset + limit as u32);
        Ok(recalled(found, passed))
    }

    /// The newest messages in archived sessions that hold all words, and how many sessions were not looked through.
    /// `skip`: so many are passed over.
    fn said(&self, scope: &Scope, query: &Query, mut skip: usize, most: usize) -> Result<(Vec<Hit>, usize)> {
        let words = Words::parse(&query.text)?;
        let sessions = self.store.sessions(scope, &query.reach, SESSIONS)?;
        let (mut out, mut bytes, mut known) = (Vec::new(), 0, HashSet::new());
        for (looked, entry) in sessions.iter().enumerate() {
            bytes += entry.bytes;
            if looked > 0 && bytes > LOOKED_THROUGH {
                return Ok((out, sessions.len() - looked));
            }
            let at = Scope { owner: scope.owner.clone(), project: entry.project.clone() };
            // Whoever may search here wants what can be found; what cannot be read, `doctor` tells.
            let Ok(messages) = self.messages(&at, entry.handle.as_str()) else { continue };
            // Outputs that were cleared have handles of their own, and are in the index.
            let cleared = self.store.newest(&at, entry.session.as_deref(), CLEARED, 0)?;
            let cleared: HashSet<u32> = cleared.into_iter().filter_map(|it| it.message).collect();
            for (number, message) in messages.iter().enumerate().rev() {
                let mut told = message.clone();
                if cleared.contains(&(number as u32)) {
                    told.parts.retain(|it| !matches!(it, Part::Output(_)));
                }
                let text = plan::transcript(&[told]);
                let Some(snippet) = words.find(&text) else { continue };
                // Stored again and again, a session says the same again.
                if message.kind == Said::Summary || !known.insert(text) {
                    continue;
                }
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                let range = Some(Range::Messages { from: number as u64, to: number as u64 }.to_string());
                let number = Some(number as u32);
                let entry = Entry { what: What::Message, message: number, tokens: None, ..entry.clone() };
                out.push(Hit { entry, score: 0.0, snippet, range });
                if out.len() == most {
                    return Ok((out, 0));
                }
            }
        }
        Ok((out, 0))
    }

    /// The messages of a session in the archive.
    fn messages(&self, scope: &Scope, handle: &str) -> Result<Vec<Message>> {
        let source = Memory::new(handle, self.store.restore(scope, handle)?);
        Ok(sessions::read(&source, None)?.history.into_messages())
    }

    /// A part of what a handle names, at most `limit` tokens as `count` counts them: what the store can tell, and
    /// messages of a session.
    pub fn read(
        &self,
        scope: &Scope,
        handle: &str,
        range: &Range,
        limit: u64,
        count: &dyn Fn(&str) -> u64,
    ) -> Result<Slice> {
        let Range::Messages { from, to } = *range else {
            return self.store.recall(scope, handle, range, limit, count);
        };
        let what = self.store.entry(scope, handle)?.what;
        if !matches!(what, What::Session | What::Compaction) {
            let what =
                format!("range {range}: expected the handle of a session, found that of a {}", what.name());
            return Err(Error::new(Kind::Arguments, what));
        }
        let messages = self.messages(scope, handle)?;
        let last = messages.len().saturating_sub(1) as u64;
        if from > last {
            let what = format!("range {range}: expected messages from m0 to m{last}, found none there");
            return Err(Error::new(Kind::Arguments, what));
        }
        let (mut out, mut left) = (String::new(), limit);
        for number in from..=to.min(last) {
            let text = plan::transcript(&messages[number as usize..=number as usize]);
            let tokens = count(&text);
            if tokens > left {
                let rest = if out.is_empty() { number + 1 } else { number };
                if out.is_empty() {
                    let all = Range::WHOLE;
                    let head = range::slice(&mut text.as_bytes(), &all, left, count).map_err(unwrapped)?;
                    out = format!(
                        "{}\n[… of {tokens} tokens; the range /word/±2 reads around a word]\n",
                        head.text
                    );
                }
                let next = (rest <= to.min(last)).then(|| Range::Messages { from: rest, to }.to_string());
                return Ok(Slice { text: out, next });
            }
            left -= tokens;
            out.push_str(&text);
        }
        Ok(Slice { text: out, next: None })
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
