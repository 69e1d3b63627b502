//! Steps of plans, indexed by their words.

use std::collections::{HashMap, HashSet};

/// Maximum steps with a common word that are compared: a word that more of them contain does not distinguish them.
pub(in crate::facts) const MAX_CANDIDATES: usize = 64;

pub(in crate::facts) struct StepIndex {
    whole: HashSet<String>,
    steps: Vec<HashSet<String>>,
    by_word: HashMap<String, Vec<usize>>,
}

impl StepIndex {
    pub(in crate::facts) fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut out = Self { whole: HashSet::new(), steps: Vec::new(), by_word: HashMap::new() };
        for text in texts {
            out.whole.insert(text.to_ascii_lowercase());
            let own = long_words(text);
            for word in &own {
                let places = out.by_word.entry(word.clone()).or_default();
                if places.len() < MAX_CANDIDATES {
                    places.push(out.steps.len());
                }
            }
            out.steps.push(own);
        }
        out
    }

    /// Whether one of the steps is the same in other words.
    pub(in crate::facts) fn contains_similar(&self, text: &str) -> bool {
        if self.whole.contains(&text.to_ascii_lowercase()) {
            return true;
        }
        let own = long_words(text);
        let near: HashSet<usize> =
            own.iter().filter_map(|it| self.by_word.get(it)).flatten().copied().collect();
        near.into_iter().map(|it| &self.steps[it]).any(|other| {
            let shared = own.intersection(other).count();
            shared >= 2 && (shared == own.len() || shared == other.len())
        })
    }
}

/// The longer words of a step, without its explanation.
fn long_words(text: &str) -> HashSet<String> {
    let end = [" — ", "; ", " ("].iter().filter_map(|it| text.find(it)).min().unwrap_or(text.len());
    let words = text[..end].split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|it| it.chars().count() > 3).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_same_step() {
        for (a, b, expected) in [
            ("Write the docs", "write the docs", true),
            ("Write the importer docs", "Write docs for the importer (README)", true),
            ("Write the importer docs", "Write the importer", true),
            ("Write the docs", "Read the docs", false),
            ("Fix the parser", "Fix the writer", false),
            ("Write parser tests for Windows", "Write parser tests for Linux", false),
        ] {
            assert_eq!(StepIndex::of([a].into_iter()).contains_similar(b), expected, "{a} / {b}");
        }
    }
}
