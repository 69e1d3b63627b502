//! Calls and their results: results without a call, calls without a result, and ids that are used twice.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use foldhash::{HashMap as Table, HashMapExt as _};

use super::hash;

/// What to do with a result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ResultIs {
    Fine,
    /// Its call got this new id.
    Renamed(String),
    Orphan,
    /// Its call was answered before, by the same text (`true`) or by another.
    Second(bool),
}

/// The calls seen so far. `T`: what is needed to answer a call in place of its tool.
pub(crate) struct Pairs<T> {
    open: HashMap<Box<str>, (usize, T)>,
    /// Hashes of the ids of answered calls, and of their results.
    answered: Table<u64, u64>,
    /// The new ids of calls, by the old one that their results still have.
    renamed: HashMap<Box<str>, String>,
    suffixes: Suffixes,
    count: usize,
}

/// The next numbers to append to ids that are used twice, by id: a search continues where the one before
/// ended.
#[derive(Default)]
pub(crate) struct Suffixes(HashMap<Box<str>, u32>);

impl Suffixes {
    /// `base` with the first number from 2 on that makes it free.
    pub(crate) fn free(&mut self, base: &str, mut is_free: impl FnMut(&str) -> bool) -> String {
        let number = self.0.entry(base.into()).or_insert(2);
        loop {
            let id = format!("{base}{number}");
            if is_free(&id) {
                return id;
            }
            *number += 1;
        }
    }

    /// Ids were freed: all searches start again.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
            answered: Table::new(),
            renamed: HashMap::new(),
            suffixes: Suffixes::default(),
            count: 0,
        }
    }
}

impl<T> Pairs<T> {
    /// Adds a call. Returns a new id if its own is taken, or not `plain`: then the API does not accept it.
    pub(crate) fn call(&mut self, id: &str, plain: impl Fn(&str) -> bool, it: T) -> Option<String> {
        self.count += 1;
        if !self.is_taken(id) && plain(id) {
            self.renamed.remove(id);
            self.open.insert(id.into(), (self.count, it));
            return None;
        }
        let clean: String = id
            .chars()
            .map(|it| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' })
            .take(40)
            .collect();
        let clean = if clean.is_empty() { "call".to_owned() } else { clean };
        let new = if self.is_taken(&clean) || !plain(&clean) { self.another(&clean) } else { clean };
        self.renamed.insert(id.into(), new.clone());
        self.open.insert(new.as_str().into(), (self.count, it));
        Some(new)
    }

    fn is_taken(&self, id: &str) -> bool {
        self.open.contains_key(id) || self.answered.contains_key(&hash(id.as_bytes()))
    }

    /// An id derived from this one that no call has.
    pub(crate) fn another(&mut self, id: &str) -> String {
        let Self { open, answered, suffixes, .. } = self;
        suffixes.free(&format!("{id}_"), |it| {
            !open.contains_key(it) && !answered.contains_key(&hash(it.as_bytes()))
        })
    }

    /// Notes that a call with this id was made for a result.
    pub(crate) fn answered(&mut self, id: &str) {
        self.answered.insert(hash(id.as_bytes()), 0);
    }

    /// Judges a result for `id` with this text.
    pub(crate) fn result(&mut self, id: &str, text: &str) -> ResultIs {
        let new = self.renamed.get(id).cloned();
        let name = new.as_deref().unwrap_or(id);
        let (key, text_hash) = (hash(name.as_bytes()), hash(text.as_bytes()));
        if self.open.remove(name).is_some() {
            self.answered.insert(key, text_hash);
            return new.map_or(ResultIs::Fine, ResultIs::Renamed);
        }
        match self.answered.get(&key) {
            Some(first) => ResultIs::Second(*first == text_hash),
            None => ResultIs::Orphan,
        }
    }

    /// The calls without a result, in order, each with its id.
    pub(crate) fn unanswered(self) -> Vec<(Box<str>, T)> {
        let mut all: Vec<_> = self.open.into_iter().map(|(id, (number, it))| (number, id, it)).collect();
        all.sort_by_key(|it| it.0);
        all.into_iter().map(|(_, id, it)| (id, it)).collect()
    }

    /// Forgets the open calls for which `is` holds.
    pub(crate) fn forget(&mut self, is: impl Fn(&T) -> bool) {
        self.open.retain(|_, (_, it)| !is(it));
    }
}

/// The ranges to remove from a list, including commas, so that the elements `gone` go. None if all go.
pub(super) fn removals(elements: &[Range<u64>], gone: &BTreeSet<usize>) -> Option<Vec<Range<u64>>> {
    let last = (0..elements.len()).rev().find(|it| !gone.contains(it))?;
    let mut out = Vec::new();
    for &it in gone {
        if it < last {
            out.push(elements[it].start..elements[it + 1].start);
        }
    }
    if last + 1 < elements.len() {
        out.push(elements[last].end..elements[elements.len() - 1].end);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs() {
        let plain = |id: &str| !id.is_empty() && !id.contains('.');
        let mut it = Pairs::default();
        assert_eq!(it.call("a", plain, 1), None);
        assert_eq!(it.result("b", "x"), ResultIs::Orphan);
        assert_eq!(it.result("a", "x"), ResultIs::Fine);
        assert_eq!(it.result("a", "x"), ResultIs::Second(true));
        assert_eq!(it.result("a", "y"), ResultIs::Second(false));
        assert_eq!(it.call("a", plain, 2), Some("a_2".into()));
        assert_eq!(it.result("a", "z"), ResultIs::Renamed("a_2".into()));
        assert_eq!(it.call("f.1", plain, 3), Some("f_1".into()));
        assert_eq!(it.call("", plain, 4), Some("call".into()));
        assert_eq!(it.call("c", plain, 5), None);
        assert_eq!(it.unanswered(), [("f_1".into(), 3), ("call".into(), 4), ("c".into(), 5)]);
    }

    #[test]
    fn elements_go_with_their_commas() {
        let text = "[a, b ,c,d]";
        let all: Vec<_> =
            ["a", "b", "c", "d"].map(|it| text.find(it).map(|at| at as u64..at as u64 + 1).unwrap()).into();
        for (gone, left) in [
            (vec![0], "[b ,c,d]"),
            (vec![1, 2], "[a, d]"),
            (vec![2, 3], "[a, b]"),
            (vec![0, 3], "[b ,c]"),
            (vec![0, 1, 3], "[c]"),
            (vec![], text),
        ] {
            let mut out = text.to_owned();
            for it in removals(&all, &gone.into_iter().collect()).unwrap().into_iter().rev() {
                out.replace_range(it.start as usize..it.end as usize, "");
            }
            assert_eq!(out, left);
        }
        assert_eq!(removals(&all, &(0..4).collect()), None);
    }
}
