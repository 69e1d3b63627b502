//! Memories: their kinds, export and import, and which of them are duplicates; their rows are in
//! `remembered`.

pub(crate) mod remembered;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::store::Handle;
use history::error::{Error, ErrorKind, Result};
use history::named;

/// What a compaction's summary begins with when it is saved as a memory (opencode-supermemory 2.0).
pub const SESSION_SUMMARY: &str = "[Session Summary]";

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum MemoryScope {
        /// The user's, in every project.
        User = "user",
        #[default]
        Project = "project",
    }
}

named! {
    /// What a memory is about (the types of opencode-supermemory).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum MemoryKind {
        /// How the project is built, tested, run.
        ProjectConfig = "project-config",
        /// How it is made.
        Architecture = "architecture",
        /// An error and what helped.
        ErrorSolution = "error-solution",
        /// What the user likes.
        Preference = "preference",
        #[default]
        LearnedPattern = "learned-pattern",
        /// The summary of a session.
        Conversation = "conversation",
    }
}

impl MemoryKind {
    pub fn named(name: &str) -> Result<Self> {
        let names = Self::ALL.iter().map(|it| it.name());
        Self::find(name).ok_or_else(|| Error::unknown("a type", names, name))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryFilter {
    /// The user's or the project's; `None` for both.
    pub scope: Option<MemoryScope>,
    /// Only of this type.
    pub kind: Option<MemoryKind>,
    pub pinned: bool,
    /// Maximum number; `None` for all.
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Imported {
    pub added: u32,
    pub known: u32,
    /// Number of a note (from 0) that was refused, and why.
    pub refused: Vec<(u32, String)>,
}

/// Memories that were merged into one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tidied {
    /// The one that stays.
    pub kept: Handle,
    /// The ones it stands for. They are not deleted, only no longer listed or found.
    pub superseded: Vec<Handle>,
    pub why: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NewMemory {
    pub content: String,
    #[serde(rename = "type", default)]
    pub kind: MemoryKind,
    #[serde(default)]
    pub scope: MemoryScope,
    #[serde(default)]
    pub pinned: bool,
    #[serde(default)]
    pub tags: Vec<String>,
    /// The session it comes from.
    #[serde(default)]
    pub session: Option<String>,
    /// When it was first remembered, in milliseconds since 1970; `None` is now.
    #[serde(rename = "created_at", default)]
    pub created: Option<i64>,
}

impl NewMemory {
    /// A session's summary, as a memory of the project.
    pub fn summary(session: &str, summary: &str) -> Self {
        Self {
            content: format!("{SESSION_SUMMARY}\n{}", summary.trim()),
            kind: MemoryKind::Conversation,
            session: Some(session.into()),
            ..Self::default()
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub id: Handle,
    /// The text, without private passages and secrets.
    pub content: String,
    #[serde(rename = "type")]
    pub kind: MemoryKind,
    pub scope: MemoryScope,
    /// When it was remembered, in milliseconds since 1970.
    #[serde(rename = "created_at")]
    pub created: i64,
    pub pinned: bool,
    pub tags: Vec<String>,
    /// The session it comes from.
    pub session: Option<String>,
}

/// Memories as JSON that [`from_json`] reads.
pub fn to_json(memories: &[Memory]) -> String {
    let mut text = serde_json::to_string_pretty(&serde_json::json!({ "contract": 1, "memories": memories }))
        .unwrap_or_default();
    text.push('\n');
    text
}

/// Memories as Markdown for people: a heading for each type, an item for each memory.
pub fn to_markdown(memories: &[Memory]) -> String {
    let mut out = String::from("# Memories\n");
    for kind in MemoryKind::ALL {
        let mut of_kind = memories.iter().filter(|it| it.kind == kind).peekable();
        if of_kind.peek().is_some() {
            let _ = write!(out, "\n## {}\n\n", kind.name());
        }
        for it in of_kind {
            let text = it.content.trim().replace('\n', "\n  ");
            let scope = it.scope.name();
            let pinned = if it.pinned { ", pinned" } else { "" };
            let tags: String = it.tags.iter().map(|tag| format!(" #{tag}")).collect();
            let _ = writeln!(out, "- {text}{tags} ({scope}{pinned}, `{}`)", it.id);
        }
    }
    out
}

/// Reads what [`to_json`] wrote, or an array of objects that have at least `content`.
pub fn from_json(text: &str) -> Result<Vec<NewMemory>> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Document {
        Whole { memories: Vec<NewMemory> },
        Bare(Vec<NewMemory>),
    }
    let wrong = |error| {
        let what = "importing memories: expected a JSON array of objects with `content`, or an object that \
            holds one as `memories`, found something else";
        Error::new(ErrorKind::Input, what).because(error)
    };
    match serde_json::from_str(text).map_err(wrong)? {
        Document::Whole { memories } | Document::Bare(memories) => Ok(memories),
    }
}

/// Reads what [`to_markdown`] wrote, and any other Markdown: each list item and each paragraph is a note,
/// with the lines indented below it and the code block after it. Headings only set the type, if they name
/// one.
pub fn from_markdown(text: &str) -> Vec<NewMemory> {
    let mut out: Vec<NewMemory> = Vec::new();
    let mut kind = MemoryKind::default();
    // The current note: whether it continues, how far its lines are indented, and its open code fence.
    let (mut open, mut indent, mut fence) = (false, 0, None::<&str>);
    for line in text.lines() {
        let (start, rest) = line.split_at(line.len() - line.trim_start_matches(' ').len());
        let point = rest
            .strip_prefix("- ")
            .or_else(|| rest.strip_prefix("* "))
            .filter(|_| start.len() < indent.max(1));
        let mark = ["```", "~~~"].into_iter().find(|it| rest.starts_with(it));
        let add = |out: &mut Vec<NewMemory>, line: &str| {
            if let Some(note) = out.last_mut() {
                note.content.push('\n');
                note.content.push_str(line.get(indent.min(start.len())..).unwrap_or_default());
            }
        };
        if fence.is_some() || (mark.is_some() && !out.is_empty()) {
            fence = match (fence, mark) {
                (Some(open), Some(mark)) if open == mark => None,
                (Some(open), _) => Some(open),
                (None, mark) => mark,
            };
            add(&mut out, line);
        } else if rest.is_empty() {
            // After an empty line, a list item continues if indented; a paragraph does not.
            open = open && indent > 0;
        } else if let Some(heading) = rest.strip_prefix('#').filter(|_| start.is_empty()) {
            let name = heading.trim_start_matches('#').trim();
            kind = MemoryKind::find(name).unwrap_or_default();
            (open, indent) = (false, 0);
        } else if let Some(point) = point {
            (open, indent) = (true, start.len() + 2);
            out.push(NewMemory { content: point.to_owned(), kind, ..NewMemory::default() });
        } else if open && (indent == 0 || start.len() >= indent) {
            add(&mut out, line);
        } else {
            (open, indent) = (true, 0);
            out.push(NewMemory { content: rest.to_owned(), kind, ..NewMemory::default() });
        }
    }
    out.into_iter().map(described).collect()
}

/// A note with the suffix that [`to_markdown`] adds parsed and removed: ` #tag (project, pinned, `id`)`.
fn described(note: NewMemory) -> NewMemory {
    let about = |text: &str| {
        let (rest, about) = text.strip_suffix("`)")?.rsplit_once(" (")?;
        let (scope, id) = about.split_once(", `").filter(|(_, id)| Handle::parse(id).is_some())?;
        let _ = id;
        let (scope, pinned) =
            scope.split_once(", ").map_or((scope, false), |(scope, it)| (scope, it == "pinned"));
        Some((rest.to_owned(), MemoryScope::find(scope)?, pinned))
    };
    let Some((mut content, scope, pinned)) = about(note.content.trim_end()) else { return note };
    let mut tags = Vec::new();
    while let Some((rest, tag)) = content.rsplit_once(" #")
        && !tag.is_empty()
        && !tag.contains(char::is_whitespace)
    {
        tags.insert(0, tag.to_owned());
        content.truncate(rest.len());
    }
    NewMemory { content, scope, pinned, tags, ..note }
}

/// Which memories are duplicates of a newer one, or outdated by it. `memories` are newest first; so are the
/// results.
pub(crate) fn duplicates(memories: &[Memory]) -> Vec<Tidied> {
    let mut groups: BTreeMap<(MemoryScope, String), Vec<usize>> = BTreeMap::new();
    let mut taken = vec![false; memories.len()];
    let mut out: Vec<(usize, Tidied)> = Vec::new();
    for (why, key) in [
        ("same words", same_words as fn(&Memory) -> Option<String>),
        ("newer summary of the same session", same_session),
        ("newer value of the same setting", same_setting),
    ] {
        groups.clear();
        for (number, memory) in memories.iter().enumerate().filter(|(number, _)| !taken[*number]) {
            if let Some(key) = key(memory) {
                groups.entry((memory.scope, key)).or_default().push(number);
            }
        }
        for group in groups.values().filter(|it| it.len() > 1) {
            let superseded = group[1..].iter().map(|it| memories[*it].id).collect();
            group[1..].iter().for_each(|it| taken[*it] = true);
            out.push((group[0], Tidied { kept: memories[group[0]].id, superseded, why }));
        }
    }
    out.sort_by_key(|(number, _)| *number);
    out.into_iter().map(|(_, it)| it).collect()
}

/// The words alone: case, spaces and punctuation make no difference.
fn same_words(memory: &Memory) -> Option<String> {
    let words = memory.content.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty());
    let words: Vec<_> = words.map(str::to_lowercase).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn same_session(memory: &Memory) -> Option<String> {
    (memory.kind == MemoryKind::Conversation).then(|| memory.session.clone()).flatten()
}

/// `Test command: cargo test` and `Test command: just test` are two values of one setting.
fn same_setting(memory: &Memory) -> Option<String> {
    let settles = matches!(memory.kind, MemoryKind::ProjectConfig | MemoryKind::Preference);
    let text = memory.content.trim();
    let (name, value) = text.split_once(": ").or_else(|| text.split_once(" = "))?;
    let plain = !text.contains('\n') && !value.trim().is_empty() && name.split_whitespace().count() <= 4;
    (settles && plain).then(|| format!("{} {}", memory.kind.name(), name.trim().to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(n: u32, kind: MemoryKind, content: &str) -> Memory {
        let scope = crate::store::Scope { owner: "me".into(), project: "/p".into() };
        let id = Handle::of(&scope, &crate::store::Digest::of(&n.to_le_bytes()));
        Memory {
            id,
            content: content.into(),
            kind,
            scope: MemoryScope::Project,
            created: i64::from(n),
            pinned: n == 1,
            tags: vec![],
            session: None,
        }
    }

    #[test]
    fn the_newer_stands_for_the_older() {
        use MemoryKind::{Architecture, Conversation, LearnedPattern, ProjectConfig};
        let mut memories = vec![
            memory(8, Conversation, "[Session Summary]\nlater"),
            memory(7, ProjectConfig, "Test command: just test"),
            memory(6, LearnedPattern, "Use   tabs, always!"),
            memory(5, Conversation, "[Session Summary]\nearlier"),
            memory(4, ProjectConfig, "test command: cargo test"),
            memory(3, LearnedPattern, "use tabs always"),
            memory(2, Architecture, "Store: SQLite"),
            memory(1, Architecture, "Store: files"),
        ];
        memories[0].session = Some("s".into());
        memories[3].session = Some("s".into());
        let got: Vec<_> =
            duplicates(&memories).into_iter().map(|it| (it.kept, it.superseded, it.why)).collect();
        assert_eq!(
            got,
            [
                (memories[0].id, vec![memories[3].id], "newer summary of the same session"),
                (memories[1].id, vec![memories[4].id], "newer value of the same setting"),
                (memories[2].id, vec![memories[5].id], "same words"),
            ]
        );
    }

    #[test]
    fn any_markdown_is_notes() {
        let text = "# House rules\n\nRead this\nfirst.\n\n## Style\n\n- Tabs\n  - not spaces\n\n  ever\n* Run:\n\n```sh\n# not a heading\n- no point\n```\nThe end #1 (see above)\n";
        let notes: Vec<_> = from_markdown(text).into_iter().map(|it| it.content).collect();
        assert_eq!(
            notes,
            [
                "Read this\nfirst.",
                "Tabs\n- not spaces\never",
                "Run:\n```sh\n# not a heading\n- no point\n```",
                "The end #1 (see above)"
            ]
        );
        let tagged = from_markdown("- x #a #b (user, `3k9w2m7qxa`)").remove(0);
        assert_eq!((tagged.content.as_str(), tagged.tags.len(), tagged.scope), ("x", 2, MemoryScope::User));
        for odd in ["", "#", "```", "-", "- ", "   \n- é #", "(user, `3k9w2m7qxa`)", " (user, `3k9w2m7qxa`)"]
        {
            from_markdown(odd);
        }
    }

    #[test]
    fn exports_for_people_and_for_itself() {
        let memories = [
            memory(1, MemoryKind::Preference, "Answers\nin French"),
            memory(2, MemoryKind::ProjectConfig, "Port: 8080"),
        ];
        let text = to_markdown(&memories);
        let ids = [memories[0].id.to_string(), memories[1].id.to_string()];
        assert_eq!(
            text.replace(&ids[0], "A").replace(&ids[1], "B"),
            "# Memories\n\n## project-config\n\n- Port: 8080 (project, `B`)\n\n## preference\n\n\
             - Answers\n  in French (project, pinned, `A`)\n"
        );
        let notes = from_json(&to_json(&memories)).unwrap();
        assert_eq!(notes.len(), 2);
        assert_eq!(notes[0].content, "Answers\nin French");
        assert_eq!(
            (notes[0].created, notes[0].pinned, notes[0].kind),
            (Some(1), true, MemoryKind::Preference)
        );
        let notes = from_markdown(&text);
        let got: Vec<_> = notes.iter().map(|it| (&*it.content, it.kind, it.pinned)).collect();
        let expected = [
            ("Port: 8080", MemoryKind::ProjectConfig, false),
            ("Answers\nin French", MemoryKind::Preference, true),
        ];
        assert_eq!(got, expected);
        assert_eq!(from_json(r#"[{"content":"x"}]"#).unwrap()[0].kind, MemoryKind::LearnedPattern);
        assert_eq!(from_json("{}").unwrap_err().kind(), ErrorKind::Input);
    }
}
