//! Keeps answers small: selects fields, cuts long lists and texts, and reports what was cut.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::value;
use crate::answers::AnswerDocument;
use history::error::Result;
use tokens::Estimator;

/// Maximum tokens of an answer.
pub(crate) const ANSWER: u64 = 8_000;
/// Maximum tokens of a plan.
pub(crate) const PLAN: u64 = 1_500;
/// Maximum tokens of the answer after something was written.
pub(crate) const WRITTEN: u64 = 400;

/// Tokens of an answer as serialized. Even base64 never has more tokens than bytes, so an answer with at most
/// `limit` bytes need not be tokenized.
fn tokens(answer: &Map<String, Value>, limit: u64) -> u64 {
    let text = serde_json::to_string(&AnswerDocument::of(answer)).unwrap_or_default();
    if text.len() as u64 <= limit { text.len() as u64 } else { Estimator::O200k.text(&text) }
}

/// The named fields of a document, in this order, without empty ones.
pub(crate) fn pick<T: Serialize>(document: &T, names: &[&str]) -> Result<Map<String, Value>> {
    let mut document = value(document)?;
    let field = |name: &&str| Some(((*name).to_owned(), document.get_mut(*name)?.take()));
    Ok(names.iter().filter_map(field).filter(|(_, it)| !is_empty(it)).collect())
}

/// Replaces the value of a field, if the answer has it.
pub(crate) fn set(answer: &mut Map<String, Value>, name: &str, value: Value) {
    if let Some(field) = answer.get_mut(name) {
        *field = value;
    }
}

/// Replaces a list in the answer by its entries with only the named fields.
pub(crate) fn entries<T: Serialize>(
    answer: &mut Map<String, Value>,
    list: &str,
    entries: &[T],
    names: &[&str],
) -> Result<()> {
    let entries: Vec<Value> =
        entries.iter().map(|it| pick(it, names).map(Value::Object)).collect::<Result<_>>()?;
    set(answer, list, Value::Array(entries));
    Ok(())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(it) => it.is_empty(),
        Value::Array(it) => it.is_empty(),
        Value::Object(it) => it.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Cuts the largest of the named lists and texts until the answer has at most `limit` tokens. The field `cut`
/// tells the original length of each list; a cut text ends with `rest`, which says how to get the remainder.
pub(crate) fn fit(answer: &mut Map<String, Value>, limit: u64, lists: &[&str], texts: &[&str], rest: &str) {
    let mut over = tokens(answer, limit);
    while over > limit {
        let size = |name: &str| answer.get(name).map_or(0, |it| it.to_string().len());
        let floor = |name: &str| match answer.get(name) {
            Some(Value::Array(it)) => !it.is_empty(),
            Some(Value::String(it)) => it.len() > 200,
            _ => false,
        };
        let largest = lists.iter().chain(texts).filter(|it| floor(it)).max_by_key(|it| size(it)).copied();
        let Some(name) = largest else { return };
        let share = (limit as f64 / over as f64 * 0.9).clamp(0.1, 0.9);
        match answer.get_mut(name) {
            Some(Value::Array(list)) => {
                let all = list.len();
                list.truncate((all as f64 * share) as usize);
                note(answer, name, all);
            }
            Some(Value::String(text)) => *text = shortened(text, share, rest),
            _ => return,
        }
        over = tokens(answer, limit);
    }
}

/// Cuts a list to `most` entries.
pub(crate) fn first(answer: &mut Map<String, Value>, name: &str, most: usize) {
    if let Some(Value::Array(list)) = answer.get_mut(name)
        && list.len() > most
    {
        let all = list.len();
        list.truncate(most);
        note(answer, name, all);
    }
}

/// Records a list's original number of entries in `cut`.
fn note(answer: &mut Map<String, Value>, name: &str, all: usize) {
    let cut = answer.entry("cut").or_insert_with(|| json!({}));
    if let Value::Object(cut) = cut {
        cut.entry(name).or_insert(json!(all));
    }
}

const CUT: &str = "\n[… cut; ";

fn shortened(text: &str, share: f64, rest: &str) -> String {
    let text = text.rfind(CUT).map_or(text, |at| &text[..at]);
    let mut end = ((text.len() as f64 * share) as usize).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{CUT}{rest}]", text[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_to_the_limit_and_says_so() {
        let list: Vec<Value> = (0..2000).map(|it| json!({"message": it, "tool": "Bash"})).collect();
        let answer =
            json!({"status": "planned", "pruned": list, "summary": "word und Wörter 日本 ".repeat(2000)});
        let mut answer = answer.as_object().unwrap().clone();
        fit(&mut answer, PLAN, &["pruned"], &["summary"], "ask for a file");
        assert!(Estimator::O200k.text(&serde_json::to_string(&answer).unwrap()) <= PLAN);
        assert_eq!(answer["cut"]["pruned"], 2000);
        let summary = answer["summary"].as_str().unwrap();
        assert!(summary.ends_with("[… cut; ask for a file]"), "{summary}");
        assert_eq!(summary.matches(CUT).count(), 1);
    }

    #[test]
    fn leaves_small_answers_alone() {
        let mut answer =
            json!({"status": "noop", "pruned": [], "summary": "short"}).as_object().unwrap().clone();
        let before = answer.clone();
        fit(&mut answer, PLAN, &["pruned"], &["summary"], "");
        assert_eq!(answer, before);
        // Terminates although nothing is left to cut.
        fit(&mut answer, 1, &["pruned"], &["summary"], "");
        assert_eq!(answer, before);
    }
}
