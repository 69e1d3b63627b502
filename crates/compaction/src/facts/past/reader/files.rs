//! File sections of earlier summaries.

use super::SummaryReader;
use super::headings::{FILE_OPS, op_in, op_of_path};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, ends_with_colon};
use crate::facts::voice::ToolTopic;
use crate::facts::work::paths;
use crate::facts::{Detail, Fact, FileOp, REPOSITORY, Topic};

/// A path at the beginning of a line: everything between backticks, otherwise a word, in which names may stand in
/// brackets: `src/app/(shop)/[id].tsx`.
static PATH: AsciiFirstRegex = AsciiFirstRegex::new(
    r"^\**(?:`((?:[A-Za-z]:)?[^`:]+)(?::[\d-]+)?`|`*((?:[A-Za-z]:|~|\.{1,2})?/?(?:(?:\([\w-]+\)|\[{1,2}\.{0,3}[\w-]+\]{1,2}|[^\s`*,:;()\[\]\x22/]+)/)*(?:\[{1,2}\.{0,3}[\w-]+\]{1,2})?[^\s`*,:;()\[\]\x22/]*[^\s`*,:;()\[\]\x22/.]/?))[`*]*",
);

/// A note that says that the changes of a file were taken back.
static UNDONE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:reverted|restored|rolled back)(?: (?:via|with|by|using|to|from)\b|\W*$)",
);
/// "never modified", "was not changed"
static NEGATED: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)\b(?:never|not)\b");

impl SummaryReader<'_> {
    pub(super) fn files(&mut self, body: &str) {
        // Our format. Where the session has a working directory, that is used instead.
        if let Some(path) = body.strip_prefix("working directory: ") {
            if self.base.is_none() {
                // What follows the path was true only at that time.
                let path = path.split("; ").next().unwrap_or(path);
                self.push(Topic::Directory, path, Detail::None);
            }
            return;
        }
        // Our format. What was uncommitted then may be committed now.
        if let Some(told) = body.strip_prefix(REPOSITORY) {
            if !told.starts_with("uncommitted (") && !told.starts_with("nothing uncommitted") {
                let seen = told.rsplit_once(" (#").filter(|_| !told.starts_with("commits"));
                let told = seen.map_or(told, |it| it.0);
                self.push_seen(ToolTopic::Directory, &format!("{REPOSITORY}{told}"), Detail::None);
            }
            return;
        }
        // Our format: files from a listing that were not used until that compaction.
        if ["listed: ", "listed in "].iter().any(|it| body.starts_with(it)) {
            return;
        }
        if self.files_by_operation(body) {
            return;
        }
        if let Some(op) = self.tagged {
            let path = paths::path(body, None, self.base);
            return self.push(Topic::Files, &path, Detail::File { op, to: None });
        }
        self.leading_paths(body);
    }

    /// Our format: `edited: a.rs, b.rs`; `renamed: a.rs → b.rs`. Returns whether the line has this format.
    fn files_by_operation(&mut self, body: &str) -> bool {
        if let Some((label, list)) = body.split_once(": ")
            && let (word, root) =
                label.split_once(" in ").map_or((label, None), |(word, root)| (word, Some(root)))
            // The root is repeated in each path, so its length is bounded.
            && root.is_none_or(|it| it.len() <= paths::MAX_PATH_BYTES)
            && let Some((_, op)) = FILE_OPS.iter().find(|(known, _)| word.eq_ignore_ascii_case(known))
        {
            let whole =
                |it: &str| root.map_or(it.to_string(), |root| format!("{}/{it}", root.trim_end_matches('/')));
            // Other agents' format has text after a path in backticks.
            if let Some(path) = list.split('`').nth(1) {
                if is_path(path) {
                    let path = paths::path(path, None, self.base);
                    self.push(Topic::Files, &path, Detail::File { op: *op, to: None });
                }
                return true;
            }
            let items = items_with_symbols(list);
            // A sentence about a change: `Updated: the test expects 3 because the first rule also applies`.
            if items.iter().any(|(it, _)| it.contains(' ') && !it.contains('/') && !ends_in_extension(it)) {
                self.push(Topic::Findings, clip(body, 240).0, Detail::None);
                return true;
            }
            for (item, symbols) in items {
                let (path, to) = match item.split_once(" → ") {
                    Some((path, to)) => (path, Some(whole(to.trim()))),
                    None => (item, None),
                };
                let path = whole(path.trim());
                let file = to.clone().unwrap_or_else(|| path.clone());
                self.push(Topic::Files, &path, Detail::File { op: *op, to });
                for symbol in symbols {
                    let detail = Detail::Symbol { file: Some(file.clone()), used: true };
                    self.push_seen(ToolTopic::Identifiers, symbol, detail);
                }
            }
            return true;
        }
        false
    }

    /// A line that begins with paths, and may say what was done to them.
    fn leading_paths(&mut self, body: &str) {
        let (mut listed, mut rest) = (Vec::new(), body);
        loop {
            let more = [", ", " / ", " + ", " and "].iter().find_map(|it| rest.strip_prefix(it));
            let next = if listed.is_empty() { rest } else { more.unwrap_or_default() };
            let Some((path, after)) = first_path(next) else { break };
            listed.push(path);
            rest = after;
        }
        if listed.is_empty() {
            return self.note_below_file(body);
        }
        let op = op_of_path(rest).unwrap_or(FileOp::Mentioned);
        for path in &mut listed {
            // A glob pattern is not a path.
            if !path.contains(['*', '{']) {
                *path = paths::path(path, None, self.base);
                self.push(Topic::Files, path, Detail::File { op, to: None });
            }
        }
        let rest = rest.trim_matches(['*', ' ', '-', '—', '–', ':']);
        if rest.chars().count() > 12 {
            let text = format!("{}: {}", listed.join(", "), clip(rest, 240).0);
            self.push(Topic::Findings, &text, Detail::None);
        }
    }

    /// A line below a path in a file section.
    fn note_below_file(&mut self, body: &str) {
        // Other lines about the file may be in between, but not many.
        let file = self
            .facts
            .iter_mut()
            .rev()
            .take(40)
            .find(|it| it.topic == Topic::Files && it.message == self.number);
        if let Some(Fact { detail: Detail::File { op, .. }, .. }) = file {
            let changes = op_in(body).is_some_and(|it| !matches!(it, FileOp::Read | FileOp::Mentioned));
            if matches!(op, FileOp::Mentioned | FileOp::Edited) && UNDONE.is_match(body) {
                *op = FileOp::Restored;
            } else if *op == FileOp::Mentioned && changes && !NEGATED.is_match(body) {
                // The line says that something in the file was added, fixed or removed.
                *op = FileOp::Edited;
            }
        }
        if body.chars().count() > 24 && !ends_with_colon(body) {
            let place = file.map(|it| format!("{}: ", last_names(&it.text))).unwrap_or_default();
            self.push(Topic::Findings, &format!("{place}{}", clip(body, 240).0), Detail::None);
        }
    }
}

/// The items of a list of files, each with the symbols in brackets behind it: `a.rs (one, two), b.rs`.
fn items_with_symbols(list: &str) -> Vec<(&str, Vec<&str>)> {
    let mut out = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        let (item, behind) = rest.split_once(", ").unwrap_or((rest, ""));
        let names =
            item.split_once(" (").and_then(|(path, _)| Some((path, rest[path.len() + 2..].split_once(')')?)));
        let names = names.filter(|(_, (names, behind))| {
            (behind.is_empty() || behind.starts_with(", ")) && names.split(", ").all(|it| !it.contains(' '))
        });
        match names {
            Some((path, (names, behind))) => {
                out.push((path, names.split(", ").collect()));
                rest = behind.strip_prefix(", ").unwrap_or(behind);
            }
            None => {
                out.push((item, Vec::new()));
                rest = behind;
            }
        }
    }
    out
}

/// The name of a file with that of its directory: many files have the same name.
fn last_names(path: &str) -> String {
    match path.rmatch_indices('/').nth(1) {
        Some((at, _)) => format!("…{}", &path[at..]),
        None => path.to_owned(),
    }
}

/// The path at the beginning of a text, and the text after it.
fn first_path(text: &str) -> Option<(String, &str)> {
    let found = PATH.captures(text)?;
    let path = found.get(1).or(found.get(2))?;
    let rest = &text[found.get(0)?.end()..];
    // `app/[id].ts` continues where a word of prose would end.
    let whole = found.get(1).is_some() || !rest.starts_with(['[', '{', '*', '(']);
    (whole && is_path(path.as_str())).then(|| (path.as_str().to_owned(), rest))
}

/// Whether a heading is nothing but a path, in backticks or with an extension, and perhaps a note: "`src/a.rs` (created)".
pub(super) fn is_path_only(heading: &str) -> bool {
    /// Maximum characters of the note.
    const NOTE: usize = 40;
    first_path(heading).is_some_and(|(path, rest)| {
        let rest = rest.trim();
        let note = rest.starts_with('(') && rest.ends_with(')') && rest.chars().count() <= NOTE;
        let file = path.rsplit('/').next().is_some_and(|it| it.trim_start_matches('.').contains('.'));
        (rest.is_empty() || note) && (heading.starts_with('`') || path.contains('/') && file)
    })
}

fn is_path(text: &str) -> bool {
    // `User/linter`, `Complete/partial/empty`
    let words =
        text.starts_with(char::is_uppercase) && text.chars().all(|it| it.is_alphabetic() || it == '/');
    let within = text.contains('/') && !words;
    text.len() >= 3 && !text.contains(char::is_whitespace) && (within || ends_in_extension(text))
}

fn ends_in_extension(text: &str) -> bool {
    let ending = text.rsplit_once('.').map_or("", |it| it.1);
    (1..=5).contains(&ending.len()) && ending.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
}
