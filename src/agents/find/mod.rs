//! Sessions of all agents: listed, found by id, and the calling session.

pub(crate) mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::agents::{ALL, AgentRef, Env};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSession {
    pub agent: AgentRef,
    /// The agent's id for it.
    pub id: String,
    /// Its file, or the database that holds it.
    pub path: PathBuf,
    /// The session that started it, for a sub-agent's.
    pub parent: Option<String>,
    /// The directory it was started in, if known.
    pub cwd: Option<PathBuf>,
    /// Last change, ms since 1970.
    pub changed_ms: i64,
    /// The first 80 characters of the first prompt, white space collapsed; empty if the prompt is not near
    /// the file's start.
    pub first_words: String,
    /// Whether it is known to be running: its lock is held, or it is the calling session.
    pub live: bool,
}

impl FoundSession {
    /// The value to pass as SESSION: its file, or `database#id`.
    pub fn address(&self) -> String {
        match self.agent.info().database {
            Some(_) => super::address(&self.path, &self.id),
            None => self.path.display().to_string(),
        }
    }
}

/// All sessions, optionally only of one agent and working directory: newest first, each sub-agent's session
/// right after its parent.
pub fn list(env: &Env, agent: Option<AgentRef>, cwd: Option<&Path>) -> Vec<FoundSession> {
    under_parents(search(env, agent, cwd, None))
}

/// A prompt that the user typed, from a log that an agent keeps apart from its sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedPrompt {
    /// Whose log it is.
    pub agent: AgentRef,
    /// The session it was typed in.
    pub session: String,
    /// When, ms since 1970.
    pub at: i64,
    pub text: String,
}

/// The prompts in the agents' logs, newest last. The logs are only read.
pub fn typed(env: &Env) -> Vec<TypedPrompt> {
    ALL.into_iter().flat_map(|it| it.typed(env)).collect()
}

/// The sessions with that id: usually one or none.
pub fn find(env: &Env, id: &str) -> Vec<FoundSession> {
    under_parents(search(env, None, None, Some(id)))
}

/// The sessions whose id begins with `id`.
pub fn find_beginning(env: &Env, id: &str) -> Vec<FoundSession> {
    let mut found = search(env, None, None, None);
    found.retain(|it| it.id.starts_with(id));
    under_parents(found)
}

/// The sessions of a session's sub-agents, and of their sub-agents in turn.
pub fn sub_agents(env: &Env, agent: AgentRef, id: &str) -> Vec<FoundSession> {
    below(search(env, Some(agent), None, None), id)
}

fn below(mut left: Vec<FoundSession>, id: &str) -> Vec<FoundSession> {
    left.retain(|it| it.id != id);
    let (mut out, mut parents) = (Vec::new(), vec![id.to_owned()]);
    while let Some(parent) = parents.pop() {
        let (children, others) = left.into_iter().partition(|it| it.parent.as_ref() == Some(&parent));
        left = others;
        parents.extend(children.iter().map(|it: &FoundSession| it.id.clone()));
        out.extend(children);
    }
    out
}

/// The calling session. Several if it is ambiguous: ask, and do nothing. None if no agent is calling.
///
/// A session id from the agent is trusted. Without one, a session with a running tool call is taken.
/// Otherwise it is the newest session of this directory, and ambiguous if another one changed within two
/// minutes of it.
pub fn current(env: &Env) -> Vec<FoundSession> {
    const SAME_TIME_MS: i64 = 120_000;
    let Some(agent) = env.inside else { return Vec::new() };
    if let Some(id) = &env.session {
        return search(env, Some(agent), None, Some(id));
    }
    let mut found = list(env, Some(agent), Some(&env.cwd));
    found.retain(|it| it.parent.is_none());
    let calling: Vec<_> = found.iter().filter(|it| agent.is_calling(it)).cloned().collect();
    if !calling.is_empty() {
        found = calling;
    }
    let newest = found.first().map_or(0, |it| it.changed_ms);
    found.retain(|it| newest.saturating_sub(it.changed_ms) <= SAME_TIME_MS);
    if let [only] = found.as_mut_slice() {
        only.live = true;
    }
    found
}

fn search(env: &Env, agent: Option<AgentRef>, cwd: Option<&Path>, id: Option<&str>) -> Vec<FoundSession> {
    let asked = ALL.into_iter().filter(|it| agent.is_none_or(|agent| agent == *it));
    let mut out: Vec<FoundSession> = asked.flat_map(|it| it.search(env, cwd, id)).collect();
    for it in &mut out {
        it.live |= env.inside == Some(it.agent) && env.session.as_ref() == Some(&it.id);
    }
    out.sort_by(|a, b| {
        b.changed_ms.cmp(&a.changed_ms).then_with(|| (a.agent.name(), &a.id).cmp(&(b.agent.name(), &b.id)))
    });
    out
}

fn under_parents(found: Vec<FoundSession>) -> Vec<FoundSession> {
    let key = |it: &FoundSession, id: &str| (it.agent.name(), id.to_owned());
    let there: BTreeSet<_> = found.iter().map(|it| key(it, &it.id)).collect();
    let mut children: BTreeMap<_, Vec<FoundSession>> = BTreeMap::new();
    let mut tops = Vec::new();
    for it in found {
        let parent = it.parent.as_ref().filter(|id| **id != it.id).map(|id| key(&it, id));
        match parent.filter(|it| there.contains(it)) {
            Some(parent) => children.entry(parent).or_default().push(it),
            None => tops.push(it),
        }
    }
    // Depth first, without recursion: a stack whose top is next.
    let mut stack: Vec<FoundSession> = tops.into_iter().rev().collect();
    let mut out = Vec::new();
    while let Some(it) = stack.pop() {
        if let Some(below) = children.remove(&key(&it, &it.id)) {
            stack.extend(below.into_iter().rev());
        }
        out.push(it);
    }
    // Sub-agents whose parents form a cycle are never reached from a top session: append them.
    out.extend(children.into_values().flatten());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{ASSUMED, first_words};

    fn session(id: &str, parent: Option<&str>, changed_ms: i64) -> FoundSession {
        FoundSession {
            agent: ASSUMED,
            id: id.into(),
            path: PathBuf::from("/x"),
            parent: parent.map(Into::into),
            cwd: None,
            changed_ms,
            first_words: String::new(),
            live: false,
        }
    }

    #[test]
    fn sub_agents_follow_their_parent() {
        let found = vec![
            session("c", Some("a"), 9),
            session("b", None, 8),
            session("d", Some("c"), 7),
            session("a", None, 6),
            session("x", Some("gone"), 5),
            session("p", Some("q"), 4),
            session("q", Some("p"), 3),
        ];
        let ids: Vec<_> = under_parents(found).into_iter().map(|it| it.id).collect();
        assert_eq!(ids, ["b", "a", "c", "d", "x", "q", "p"]);
    }

    #[test]
    fn sub_agents_of_sub_agents_are_found_and_circles_end() {
        let found = vec![
            session("c", Some("a"), 9),
            session("d", Some("c"), 7),
            session("a", None, 6),
            session("x", Some("b"), 5),
            session("p", Some("q"), 4),
            session("q", Some("p"), 3),
        ];
        let ids = |id: &str| below(found.clone(), id).into_iter().map(|it| it.id).collect::<Vec<_>>();
        assert_eq!(ids("a"), ["c", "d"]);
        assert_eq!(ids("p"), ["q"]);
        assert!(ids("d").is_empty());
    }

    #[test]
    fn folds_first_words() {
        assert_eq!(first_words("  a\n b\t c "), "a b c");
        assert_eq!(first_words(&"é ".repeat(100)).chars().count(), 79);
        assert_eq!(first_words(&"x".repeat(100)).len(), 80);
        assert_eq!(first_words(""), "");
    }

    #[test]
    fn nobody_calls() {
        let home = tempfile::tempdir().unwrap();
        let env = Env { home: home.path().to_owned(), ..Env::default() };
        assert_eq!((list(&env, None, None), current(&env), find(&env, "x")), (vec![], vec![], vec![]));
    }
}
