//! Ids for calls that have none.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use history::made_up_id;

/// Ids of calls, by which responses without an id find their call: by the tool's name, first come, first
/// served.
#[derive(Default)]
pub(super) struct Ids {
    unanswered: HashMap<String, VecDeque<Arc<str>>>,
    answered: HashSet<Arc<str>>,
}

impl Ids {
    /// An id for part `index` of message `number`, a call of the tool `name`.
    pub(super) fn made_up(&mut self, number: usize, index: usize, name: &str) -> Arc<str> {
        self.remember(&made_up_id(number, index), name)
    }

    /// Remembers a call that has an id, in case its answer has none.
    pub(super) fn remember(&mut self, id: &str, name: &str) -> Arc<str> {
        let id: Arc<str> = id.into();
        self.unanswered.entry(name.to_string()).or_default().push_back(id.clone());
        id
    }

    /// Notes an answer that names its call.
    pub(super) fn answered(&mut self, id: &str) -> Arc<str> {
        let id: Arc<str> = id.into();
        self.answered.insert(id.clone());
        id
    }

    /// The call of an answer that names only its tool: the first of that tool without an answer.
    pub(super) fn answered_by_name(&mut self, number: usize, index: usize, name: &str) -> Arc<str> {
        let queue = self.unanswered.get_mut(name);
        let found = queue.and_then(|it| {
            loop {
                match it.pop_front() {
                    Some(id) if self.answered.contains(&id) => {}
                    other => break other,
                }
            }
        });
        found.unwrap_or_else(|| format!("response_{number}_{index}").into())
    }
}
