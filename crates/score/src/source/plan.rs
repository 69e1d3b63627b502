//! The plan, as tools set it, as lists print it, or as a checklist has it.

use std::collections::HashMap;

use serde_json::Value;

use crate::probe::{Class, Fact, Probe};
use crate::text::normal;
use history::{Call, History, Kind, Role};

#[derive(Default)]
pub(super) struct Plan {
    items: Vec<Item>,
    /// Index in `items` by id; if an id repeats, of the first.
    places: HashMap<String, usize>,
    /// The message that last set the plan as a whole.
    planned_at: Option<usize>,
    /// The message that last set an item, by its id.
    list_at: HashMap<String, usize>,
}

/// `id`: empty where the tool has none.
struct Item {
    id: String,
    text: String,
    open: bool,
}

impl Plan {
    /// Closes steps whose file the model calls done in a remark, without updating its list.
    pub(super) fn close_in_passing(&mut self, text: &str) {
        /// Maximum bytes of a remark; longer texts are reports.
        const SHORT: usize = 600;
        if text.len() > SHORT || self.items.is_empty() {
            return;
        }
        let text = text.replace('`', "").to_lowercase();
        let words: Vec<&str> = text.split_whitespace().collect();
        for pair in words.windows(2) {
            let over = ["done", "complete", "completed", "finished"]
                .contains(&pair[1].trim_end_matches(['.', ',', '!', ';']));
            if over && pair[0].contains('.') {
                let named = self.items.iter_mut().filter(|it| it.text.to_lowercase().contains(pair[0]));
                named.for_each(|it| it.open = false);
            }
        }
    }

    pub(super) fn read_call(&mut self, number: usize, call: &Call, answer: &str) {
        let Ok(input) = serde_json::from_str::<Value>(call.input.as_str()) else { return };
        let text = |item: &Value, keys: &[&str]| {
            keys.iter().find_map(|key| item.get(*key)?.as_str()).map(normal).filter(|it| !it.is_empty())
        };
        let list = ["todos", "plan", "task_list", "items", "tasks"]
            .iter()
            .find_map(|key| input.get(key)?.as_array());
        if let Some(list) = list {
            self.items.clear();
            self.places.clear();
            for item in list {
                if let Some(content) =
                    text(item, &["content", "step", "description", "title", "text", "subject"])
                {
                    self.items.push(Item { id: String::new(), text: content, open: is_open(item) });
                }
            }
            self.planned_at = Some(number);
        } else if let Some(id) = text(&input, &["taskId", "task_id", "id"]) {
            let entry = self.places.get(&id).and_then(|at| self.items.get_mut(*at));
            if let Some(entry) = entry {
                if let Some(new) = text(&input, &["subject"]) {
                    entry.text = new;
                }
                if input.get("status").is_some() {
                    entry.open = is_open(&input);
                }
                self.list_at.insert(id, number);
                self.planned_at = Some(number);
            }
        } else if let Some(content) = text(&input, &["subject", "title"]) {
            // Claude Code 2.1: `Task #3 created successfully: …`.
            let id: String = answer
                .split('#')
                .nth(1)
                .unwrap_or_default()
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            let id = if id.is_empty() { (self.items.len() + 1).to_string() } else { id };
            self.list_at.insert(id.clone(), number);
            self.places.entry(id.clone()).or_insert(self.items.len());
            self.items.push(Item { id, text: content, open: true });
            self.planned_at = Some(number);
        } else {
            self.read_list(number, answer);
        }
    }

    /// Claude Code's `TaskList` prints every task: `#3 [completed] …`.
    fn read_list(&mut self, number: usize, answer: &str) {
        for line in answer.lines() {
            let Some((id, rest)) = line.strip_prefix('#').and_then(|it| it.split_once(" [")) else {
                continue;
            };
            let Some((status, _)) = rest.split_once(']') else { continue };
            let Some(entry) = self.places.get(id).and_then(|at| self.items.get_mut(*at)) else { continue };
            let open = is_open(&serde_json::json!({ "status": status }));
            if entry.open != open {
                entry.open = open;
                self.list_at.insert(id.to_owned(), number);
                self.planned_at = Some(number);
            }
        }
    }

    /// Without a plan tool, the last checklist of at least two items in what user or model wrote is the plan.
    pub(super) fn read_checklist(&mut self, source: &History) {
        if self.planned_at.is_some() {
            return;
        }
        for (number, message) in source.messages().iter().enumerate().rev() {
            if message.kind != Kind::Said {
                continue;
            }
            let plain = message.plain();
            let boxes: Vec<(bool, &str)> = plain
                .lines()
                .map(|it| it.trim().trim_start_matches(['-', '*', ' ']))
                .filter_map(|it| {
                    it.strip_prefix("[ ]").map(|rest| (true, rest)).or_else(|| {
                        it.strip_prefix("[x]").or_else(|| it.strip_prefix("[X]")).map(|rest| (false, rest))
                    })
                })
                .collect();
            // A long list in what the user attached belongs to a document; questions are what to check, not what to do.
            let asked = boxes.iter().filter(|it| it.1.trim_end().ends_with(['?', '？'])).count();
            let document = message.role == Role::User && (boxes.len() > 10 || plain.len() > 4_000);
            let blanks = boxes.iter().filter(|it| has_placeholder(it.1)).count();
            let form = blanks > 1 && blanks * 3 >= boxes.len();
            if document || form || asked * 2 > boxes.len() {
                continue;
            }
            if boxes.len() >= 2 {
                let item = |it: &(bool, &str)| Item { id: String::new(), text: normal(it.1), open: it.0 };
                self.items = boxes.iter().map(item).collect();
                self.planned_at = Some(number);
                return;
            }
        }
    }

    /// Steps that are done, and not open under another id.
    pub(super) fn finished(&self) -> Vec<String> {
        let open = |text: &str| self.items.iter().any(|it| it.open && it.text == text);
        self.items.iter().filter(|it| !it.open && !open(&it.text)).map(|it| it.text.clone()).collect()
    }

    pub(super) fn into_probes(self) -> impl Iterator<Item = Probe> {
        let Self { items, planned_at, list_at, .. } = self;
        items.into_iter().filter(|it| it.open).filter_map(move |it| {
            let at = list_at.get(&it.id).copied().or(planned_at)?;
            Some(Probe::new(Class::OpenItem, at, Fact::Plan { item: it.text }))
        })
    }
}

fn is_open(item: &Value) -> bool {
    let status = item.get("status").and_then(Value::as_str).unwrap_or("pending");
    !["completed", "done", "cancelled", "canceled", "deleted", "complete"].contains(&status)
}

/// Whether an item ends with what is to be filled in: `Task 1 - [brief description]`.
fn has_placeholder(item: &str) -> bool {
    const NAMES: [&str; 6] = ["name", "description", "title", "date", "status", "details"];
    let blank = item.trim_end().strip_suffix(']').and_then(|it| it.rsplit_once('['));
    blank.is_some_and(|(_, it)| it.split([' ', ',']).any(|it| NAMES.contains(&it)))
}
