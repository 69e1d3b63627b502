//! Which rows are live: the leaf of the tree, and the path to it, which the client would send.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt, HashSet};

use super::Index;
use crate::Note;
use crate::agents::claude_code::row::{Row, RowKind};

/// Maximum time between a row whose parent is missing and the earlier row that the client uses as its parent.
const BRIDGED_MS: i64 = 5_000;

/// Rows in order of time: whether of a sidechain, time, row number.
type Timeline = BTreeSet<(bool, i64, usize)>;

/// Rows by their uuid.
type ByUuid = HashMap<Arc<str>, usize>;

impl Index {
    /// The numbers of the live rows, in the order in which the client visits them.
    ///
    /// - The path ends in the newest descendant of the row that the last `last-prompt` points at, else in the
    ///   last row. A boundary after the pointer makes it invalid. File order counts, not the time stamps.
    /// - It follows `parentUuid` only, so it stops at a boundary; `logicalParentUuid` is ignored.
    /// - Where a parent is not in the file, it continues from the last row that was written within 5 s
    ///   before.
    /// - Rows that the last boundary preserves come after their anchor.
    /// - Parallel calls branch: the other rows of a response on the path, and the results of its calls, are
    ///   put back.
    ///
    /// Where no row has a parent (files made by other tools), all rows are live, in file order.
    pub(in crate::agents::claude_code) fn live(&mut self) -> Vec<usize> {
        // Of several rows with the same uuid the last counts.
        let by_uuid: ByUuid = self.rows.iter().enumerate().map(|(at, it)| (it.uuid.clone(), at)).collect();
        let mut parents = self.parents(&by_uuid);
        let main: Vec<usize> = (0..self.rows.len()).filter(|it| !self.rows[*it].sidechain).collect();
        if main.len() > 1 && main.iter().all(|it| parents[*it].is_none() && self.rows[*it].compact.is_none())
        {
            let what =
                "expected parentUuid to link the rows, found none that does; their order in the file is used"
                    .into();
            let line = self.rows[main[0]].line;
            self.notes.push(Note { line, what });
            return main;
        }
        let boundary = self.boundary();
        let kept = boundary.and_then(|it| self.relink(it, &by_uuid, &mut parents));
        let leaf = self.leaf(&main, boundary, &by_uuid, &parents);
        let (path, seen) = self.walk(leaf, &parents);
        // Once the client has relinked what it preserves, it forgets the other rows before the boundary.
        let forgotten = |at: usize| match (&kept, boundary) {
            (Some(kept), Some(boundary)) => at < boundary && !kept.contains(&at),
            _ => false,
        };
        let off = |at: &usize| {
            let row = &self.rows[*at];
            !seen[*at] && !row.sidechain && !forgotten(*at) && by_uuid.get(&row.uuid) == Some(at)
        };
        let off: Vec<usize> = (0..self.rows.len()).filter(off).collect();
        self.with_siblings(path, &off, &by_uuid)
    }

    fn parents(&self, by_uuid: &ByUuid) -> Vec<Option<usize>> {
        // Most rows have the row before as parent, and then share the `Arc` of its uuid: no lookup is needed.
        let unique = by_uuid.len() == self.rows.len();
        let mut parents: Vec<Option<usize>> = Vec::with_capacity(self.rows.len());
        for (at, row) in self.rows.iter().enumerate() {
            let before = at.checked_sub(1).filter(|_| unique);
            let on_it =
                |it: &usize| row.parent.as_ref().is_some_and(|of| Arc::ptr_eq(of, &self.rows[*it].uuid));
            let named = || row.parent.as_ref().and_then(|it| by_uuid.get(it)).copied();
            parents.push(before.filter(on_it).or_else(named));
        }
        parents
    }

    /// The row in which the path ends.
    fn leaf(
        &mut self,
        main: &[usize],
        boundary: Option<usize>,
        by_uuid: &ByUuid,
        parents: &[Option<usize>],
    ) -> Option<usize> {
        let pointed = match &self.pointer {
            Some((leaf, before, line)) if boundary.is_none_or(|it| it < *before) => {
                let found = by_uuid.get(&**leaf).copied();
                if found.is_none() {
                    let what = "expected leafUuid to name a row, found none; the last row is used".into();
                    self.notes.push(Note { line: *line, what });
                }
                found
            }
            _ => None,
        };
        // The client ends the path in a message: never in a row that only reports progress, nor in one without a time.
        let timed = main.iter().any(|it| self.rows[*it].at.is_some());
        let is_leaf = |it: &usize| {
            let row = &self.rows[*it];
            !matches!(row.kind, RowKind::Link | RowKind::Boundary) && (row.at.is_some() || !timed)
        };
        match pointed {
            Some(start) => {
                let below = descendants(start, parents);
                main.iter().rev().copied().find(|it| below[*it] && is_leaf(it)).or(Some(start))
            }
            None => main.iter().rev().copied().find(is_leaf).or(main.last().copied()),
        }
    }

    /// The rows from the root to the leaf, and for each row whether it is on that path.
    fn walk(&mut self, leaf: Option<usize>, parents: &[Option<usize>]) -> (Vec<usize>, Vec<bool>) {
        let (mut path, mut seen) = (Vec::new(), vec![false; self.rows.len()]);
        let (mut bridged, mut unseen) = (Vec::new(), None);
        let mut next = leaf;
        while let Some(at) = next
            && !seen[at]
        {
            seen[at] = true;
            path.push(at);
            next = parents[at].or_else(|| self.bridge(at, &seen, &mut unseen));
            if parents[at].is_none()
                && let Some(before) = next
            {
                bridged.push(self.bridged(at, before));
            }
        }
        path.reverse();
        self.notes.extend(self.hole(&path, parents));
        self.notes.extend(bridged);
        (path, seen)
    }

    /// The path, with the rows of `off` put after the rows of the same response: parallel calls and their
    /// results.
    fn with_siblings(&self, path: Vec<usize>, off: &[usize], by_uuid: &ByUuid) -> Vec<usize> {
        if off.is_empty() {
            return path;
        }
        let placed = |(position, at): (usize, &usize)| Some((self.rows[*at].response.as_deref()?, position));
        let place: HashMap<&str, usize> = path.iter().enumerate().filter_map(placed).collect();
        let find = |uuid: &Option<Arc<str>>| uuid.as_ref().and_then(|it| by_uuid.get(it)).copied();
        let mut put_back: HashMap<usize, Vec<usize>> = HashMap::new();
        for &at in off {
            let row = &self.rows[at];
            let response = match row.kind {
                RowKind::Assistant { .. } => row.response.as_deref(),
                RowKind::User { result: true, .. } => find(&row.answers)
                    .or_else(|| find(&row.parent))
                    .and_then(|it| self.rows[it].response.as_deref()),
                _ => None,
            };
            if let Some(position) = response.and_then(|it| place.get(it)) {
                put_back.entry(*position).or_default().push(at);
            }
        }
        let mut out = Vec::with_capacity(path.len());
        for (position, at) in path.into_iter().enumerate() {
            out.push(at);
            out.extend(put_back.remove(&position).unwrap_or_default());
        }
        out
    }

    /// Where a row's parent is not in the file, the row from which the client continues: the last one written
    /// before it, within [`BRIDGED_MS`]. Measured on 2.1.328. `unseen` is filled on first use.
    fn bridge(&self, at: usize, seen: &[bool], unseen: &mut Option<Timeline>) -> Option<usize> {
        let row = &self.rows[at];
        let (_, time) = row.parent.as_ref().zip(row.at)?;
        let unseen = unseen.get_or_insert_with(|| {
            let rows = self.rows.iter().enumerate();
            rows.filter_map(|(at, it)| Some((it.sidechain, it.at?, at))).collect()
        });
        let first = (row.sidechain, time.saturating_sub(BRIDGED_MS), 0);
        // A removed row was seen already, or is from now on.
        while let Some(&last) = unseen.range(first..=(row.sidechain, time, usize::MAX)).next_back() {
            unseen.remove(&last);
            if !seen[last.2] {
                return Some(last.2);
            }
        }
        None
    }

    fn bridged(&self, at: usize, before: usize) -> Note {
        let parent = self.rows[at].parent.as_deref().unwrap_or_default();
        let what = format!(
            "expected a row with uuid {parent}, found none; Claude Code goes on from line {}, the last row written within 5 s before",
            self.rows[before].line
        );
        Note { line: self.rows[at].line, what }
    }

    /// A note if the path begins at a row whose parent is not in the file: the client sends nothing from
    /// before it.
    fn hole(&self, path: &[usize], parents: &[Option<usize>]) -> Option<Note> {
        let root = *path.first()?;
        let parent = self.rows[root].parent.as_ref().filter(|_| parents[root].is_none())?;
        let is_message =
            |it: &&Row| !it.sidechain && matches!(it.kind, RowKind::User { .. } | RowKind::Assistant { .. });
        let hidden = self.rows[..root].iter().filter(is_message).count();
        let what = format!(
            "expected a row with uuid {parent}, found none; Claude Code resumes from this row, so {hidden} rows with messages before it are left out (they stay in the file)"
        );
        (hidden > 0).then(|| Note { line: self.rows[root].line, what })
    }

    /// Makes the rows that a boundary preserves descend from its anchor, and the anchor's children from the
    /// last of them. Returns the preserved rows; none if there are none or one is missing.
    fn relink(
        &self,
        boundary: usize,
        by_uuid: &ByUuid,
        parents: &mut [Option<usize>],
    ) -> Option<HashSet<usize>> {
        let compact = self.rows[boundary].compact.as_ref()?;
        let find = |uuid: &String| by_uuid.get(uuid.as_str()).copied();
        let (anchor, kept) = match (&compact.kept, &compact.segment) {
            (Some(kept), _) => {
                (find(&kept.anchor_uuid)?, kept.uuids.iter().map(find).collect::<Option<Vec<_>>>()?)
            }
            (None, Some(segment)) => {
                let (head, mut at) = (find(&segment.head_uuid)?, find(&segment.tail_uuid)?);
                let (mut kept, mut seen) = (vec![at], HashSet::from_iter([at]));
                while at != head {
                    at = parents[at]?;
                    if !seen.insert(at) {
                        return None;
                    }
                    kept.push(at);
                }
                kept.reverse();
                (find(&segment.anchor_uuid)?, kept)
            }
            (None, None) => return None,
        };
        let (&head, &tail) = (kept.first()?, kept.last()?);
        let set: HashSet<usize> = kept.iter().copied().collect();
        if set.contains(&anchor) {
            return None;
        }
        for (at, parent) in parents.iter_mut().enumerate() {
            if *parent == Some(anchor) && at != head {
                *parent = Some(tail);
            }
        }
        parents[head] = Some(anchor);
        for pair in kept.windows(2) {
            parents[pair[1]] = Some(pair[0]);
        }
        Some(set)
    }
}

/// Which rows descend from `start`, itself included.
fn descendants(start: usize, parents: &[Option<usize>]) -> Vec<bool> {
    let mut children = vec![Vec::new(); parents.len()];
    for (row, parent) in parents.iter().enumerate() {
        parent.map(|it| children[it].push(row));
    }
    let (mut below, mut open) = (vec![false; parents.len()], vec![start]);
    while let Some(row) = open.pop() {
        if !std::mem::replace(&mut below[row], true) {
            open.extend(&children[row]);
        }
    }
    below
}
