//! Functions and types that are written, found by a search or mentioned, and those in files that were read.

use std::collections::{HashMap, HashSet};

use crate::facts::text::{clip, offset};
use crate::facts::voice::ToolTopic;
use crate::facts::work::command::output_directory;
use crate::facts::work::files::mentions::{THIRD_PARTY, is_of_other_tree};
use crate::facts::work::paths;
use crate::facts::{Detail, Fact, input_of};
use history::Call;
use history::tools::{self, Action, Document};

/// Maximum names from one message: more are a listing.
pub(in crate::facts) const MAX_PER_MESSAGE: usize = 40;

/// Functions and types, without duplicates.
#[derive(Default)]
pub(in crate::facts) struct Symbols {
    facts: Vec<Fact>,
    /// Index in `facts` by name.
    known: HashMap<String, usize>,
    /// Definitions that a search or a read file showed, in order.
    shown: Vec<Shown>,
    edited: HashSet<String>,
    /// File and name of definitions that were removed and not added again.
    removed: HashSet<(String, String)>,
    /// Names in the agent's calls and texts.
    used: HashSet<String>,
    /// Names that the last edit concerning them took out.
    taken_out: HashSet<String>,
    /// Files that were written as a whole: the message, and the names in them.
    rewritten: HashMap<String, (usize, HashSet<String>)>,
}

/// A definition that an output shows.
struct Shown {
    name: String,
    message: usize,
    file: Option<String>,
    /// Shown by a search, not by reading a file.
    found: bool,
}

impl Symbols {
    /// Adds a definition that the agent names, unless its file is known, from an edit or a later message.
    fn add_named(&mut self, number: usize, name: &str, file: Option<String>) {
        let known = self.known.get(name).and_then(|at| self.facts.get(*at));
        if !known.is_some_and(|it| matches!(it.detail, Detail::Symbol { file: Some(_), .. })) {
            self.add(number, name, file);
        }
    }

    fn add(&mut self, number: usize, name: &str, file: Option<String>) {
        let at = *self.known.entry(name.to_owned()).or_insert(self.facts.len());
        match self.facts.get_mut(at).map(|it| &mut it.detail) {
            Some(Detail::Symbol { file: known, .. }) => *known = file.or(known.take()),
            _ => {
                let detail = Detail::Symbol { file, used: true };
                self.facts.push(Fact::from_tools(ToolTopic::Identifiers, number, name.into(), detail));
            }
        }
    }

    /// Adds names in backticks.
    pub(in crate::facts) fn add_quoted(&mut self, number: usize, text: &str) {
        let quoted = text.split('`').skip(1).step_by(2).map(|it| it.trim_end_matches("()"));
        for name in quoted.filter(|it| is_symbol(it)).take(MAX_PER_MESSAGE) {
            self.add(number, name, None);
        }
    }

    /// Records the names in a text or call of the agent.
    pub(in crate::facts) fn note_used(&mut self, text: &str) {
        let mut escaped = false;
        for run in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            // In JSON, `\nfoo` is a line break and `foo`.
            let name = if escaped { run.get(1..).unwrap_or_default() } else { run };
            let end = offset(run, text) + run.len();
            escaped = text.as_bytes().get(end) == Some(&b'\\');
            if is_symbol(name) && !self.used.contains(name) {
                self.used.insert(name.to_owned());
            }
        }
    }

    /// Adds the definitions that a call writes.
    pub(in crate::facts) fn add_written(
        &mut self,
        number: usize,
        call: &Call,
        actions: &[Action],
        base: Option<&str>,
    ) {
        const TEXTS: [&str; 7] =
            ["new_string", "newString", "newText", "content", "file_text", "new_str", "replace"];
        let file = single_file(actions, base);
        let input = input_of(call);
        let text = |keys: &[&'static str]| text_of(&input, keys);
        let patch = if call.freeform { Some(call.input.as_str()) } else { text(&["patchText"]) };
        let of = || file.clone();
        let mut lines: Vec<Line> = Vec::new();
        if let Some(patch) = patch {
            lines.extend(lines_of_patch(patch, of(), None, base));
        } else {
            // One edit, or a list of them (pi, Claude Code's MultiEdit).
            let listed = input.get("edits").and_then(serde_json::Value::as_array).into_iter().flatten();
            for edit in std::iter::once(&input).chain(listed) {
                let old = text_of(edit, &["old_string", "oldString", "oldText", "old_str"]);
                lines.extend(old.unwrap_or_default().lines().map(|it| (false, it, of())));
                lines.extend(text_of(edit, &TEXTS).unwrap_or_default().lines().map(|it| (true, it, of())));
            }
        }
        let commands = actions.iter().filter_map(|it| Some((it.command.as_deref()?, it.dir.as_deref())));
        let documents: Vec<Document> = commands.flat_map(|(it, dir)| tools::documents(it, dir)).collect();
        for Document { path, dir, text } in &documents {
            match path {
                Some(path) => {
                    let file = paths::path(path, dir.as_deref(), base);
                    lines.extend(text.lines().map(|it| (true, it, Some(file.clone()))));
                }
                None => lines.extend(lines_of_patch(text, None, dir.as_deref(), base)),
            }
        }
        let whole = text(&["content", "file_text"]).is_some();
        self.add_lines(number, &lines, file.as_deref(), whole);
    }

    /// `file`: the only file concerned; `whole`: whether the lines are all that it has now.
    fn add_lines(&mut self, number: usize, lines: &[Line], file: Option<&str>, whole: bool) {
        self.edited.extend(lines.iter().filter_map(|it| it.2.clone()));
        let names = |comes: bool| {
            let of = lines.iter().filter(move |it| it.0 == comes).flat_map(|it| words(it.1));
            of.filter(|it| is_symbol(it)).map(str::to_owned).collect::<HashSet<String>>()
        };
        let (old_names, new_names) = (names(false), names(true));
        self.taken_out.extend(old_names);
        self.taken_out.retain(|it| !new_names.contains(it));
        match file.map(|it| (it, self.rewritten.get_mut(it))) {
            Some((_, Some(known))) if !whole => known.1.extend(new_names),
            Some((file, _)) if whole => {
                let all = lines.iter().flat_map(|it| words(it.1)).map(str::to_owned).collect();
                self.rewritten.insert(file.to_owned(), (number, all));
            }
            Some(_) | None => {}
        }
        let defined = |comes: bool| {
            let of = lines.iter().filter(move |it| it.0 == comes && it.2.as_deref().is_none_or(is_code));
            of.filter_map(|it| Some((definition(it.1)?, it.2.clone()))).take(MAX_PER_MESSAGE)
        };
        for (name, file) in defined(false) {
            self.removed.extend(file.map(|it| (it, name.to_owned())));
        }
        for (name, file) in defined(true) {
            self.removed.retain(|it| it.1 != name);
            self.add(number, name, file);
        }
    }

    /// Adds the definitions that a search printed: `path:12:fn name(`.
    pub(in crate::facts) fn add_found(
        &mut self,
        number: usize,
        output: &str,
        actions: &[Action],
        base: Option<&str>,
    ) {
        /// Maximum definitions in a search result; more are an index.
        const ANSWER: usize = 20;
        let dir = output_directory(actions, base).flatten();
        let own = single_file(actions, base).filter(|it| it.contains('.'));
        let mut out = Vec::new();
        for line in clip(output, 20_000).0.lines() {
            let numbered = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
            let Some((first, rest)) = line.split_once(':') else { continue };
            let (file, code) = match rest.split_once(':') {
                _ if numbered(first) => (own.clone(), rest),
                Some((line, code)) if numbered(line) => (paths::printed(first, dir.as_deref(), base), code),
                Some(_) | None => continue,
            };
            let is_own = |it: &str| {
                is_code(it)
                    && !is_of_other_tree(it, base)
                    && !it.split('/').any(|it| THIRD_PARTY.contains(&it))
            };
            let name = definition(code).filter(|it| is_symbol(it) && file.as_deref().is_none_or(is_own));
            out.extend(name.map(|it| Shown { name: it.to_owned(), message: number, file, found: true }));
        }
        if out.len() <= ANSWER {
            self.shown.append(&mut out);
        }
    }

    /// Records the definitions in a file that was read.
    pub(in crate::facts) fn add_read(&mut self, number: usize, output: &str, file: Option<&str>) {
        /// Bytes of an output that are read.
        const MOST: usize = 60_000;
        if !file.is_none_or(is_code) {
            return;
        }
        let lines = || clip(output, MOST).0.lines().map(unnumbered);
        let above = std::iter::once("").chain(lines());
        // Rust marks a test in the line above it.
        let is_test = |it: &str| it.trim_start().starts_with("#[") && it.trim_end().ends_with("test]");
        let defined = lines().zip(above).filter(|it| !is_test(it.1)).filter_map(|it| definition(it.0));
        let file = || file.map(str::to_owned);
        self.shown.extend(defined.filter(|it| is_symbol(it)).map(|it| Shown {
            name: it.to_owned(),
            message: number,
            file: file(),
            found: false,
        }));
    }

    /// The facts: all definitions that the agent wrote or names, and the last few others of each file.
    pub(in crate::facts) fn into_facts(mut self) -> Vec<Fact> {
        /// Maximum definitions that the agent does not name, per file that it edited or only read.
        const NEWEST: usize = 30;
        const NEWEST_READ: usize = 15;
        let (named, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.shown).into_iter().partition(|it| self.used.contains(&it.name));
        let mut of_file: HashMap<String, usize> = HashMap::new();
        for Shown { name, message, file, .. } in named.into_iter().rev() {
            if let Some(file) = &file {
                *of_file.entry(file.clone()).or_default() += usize::from(!self.known.contains_key(&name));
            }
            self.add_named(message, &name, file);
        }
        for Shown { name, message, file, found } in rest.into_iter().rev() {
            // Tests of files that were not edited are read as examples.
            let example = !found && (name.starts_with("test_") || name.starts_with("Test"));
            let Some(file) = file.filter(|it| !example || self.edited.contains(it)) else { continue };
            let count = of_file.entry(file.clone()).or_default();
            let most = if self.edited.contains(&file) { NEWEST } else { NEWEST_READ };
            if *count >= most || self.known.contains_key(&name) {
                continue;
            }
            *count += 1;
            self.known.insert(name.clone(), self.facts.len());
            let detail = Detail::Symbol { file: Some(file), used: false };
            self.facts.push(Fact::from_tools(ToolTopic::Identifiers, message, name, detail));
        }
        let gone = |it: &Fact| match &it.detail {
            Detail::Symbol { file: Some(file), .. } => {
                let rewritten = self.rewritten.get(file);
                self.removed.contains(&(file.clone(), it.text.as_str().to_owned()))
                    || rewritten
                        .is_some_and(|(at, names)| it.message < *at && !names.contains(it.text.as_str()))
            }
            Detail::Symbol { file: None, .. } => self.taken_out.contains(it.text.as_str()),
            _ => false,
        };
        self.facts.retain(|it| !gone(it));
        self.facts
    }
}

/// Whether a line is added rather than removed, its text, and its file.
type Line<'a> = (bool, &'a str, Option<String>);

/// The changed lines of a patch, which may have several files, relative to `dir`. `file`: the file of the lines before the
/// first file's name.
fn lines_of_patch<'a>(
    patch: &'a str,
    mut file: Option<String>,
    dir: Option<&str>,
    base: Option<&str>,
) -> Vec<Line<'a>> {
    let mut out = Vec::new();
    for line in patch.lines() {
        if let Some(path) = file_of_patch(line) {
            file = Some(paths::path(path, dir, base));
        } else if line.starts_with(['+', '-']) {
            out.push((line.starts_with('+'), &line[1..], file.clone()));
        }
    }
    out
}

/// The file that the actions of a call concern, if only one.
pub(in crate::facts) fn single_file(actions: &[Action], base: Option<&str>) -> Option<String> {
    let mut files = actions.iter().filter_map(|it| file_of(it, base));
    let first = files.next()?;
    files.all(|it| it == first).then_some(first)
}

/// Whether a file may define functions; code in a document does not count.
fn is_code(file: &str) -> bool {
    const OTHERS: [&str; 9] = ["md", "mdx", "json", "jsonl", "toml", "yaml", "yml", "txt", "lock"];
    file.rsplit_once('.').is_none_or(|it| !OTHERS.contains(&it.1))
}

/// The file whose part of a patch begins at a line.
fn file_of_patch(line: &str) -> Option<&str> {
    ["*** Update File: ", "*** Add File: ", "+++ b/"]
        .iter()
        .find_map(|it| line.strip_prefix(*it))
        .map(str::trim)
}

/// The file of an action, relative to `base`.
pub(in crate::facts) fn file_of(action: &Action, base: Option<&str>) -> Option<String> {
    action.path.as_deref().map(|it| paths::path(it, action.dir.as_deref(), base))
}

/// The words of a line of code.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|it| !it.is_empty())
}

/// Whether a word can only be a name of code: it has an underscore, or capitals inside.
fn is_symbol(word: &str) -> bool {
    (5..=60).contains(&word.len())
        && word.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
        && word.starts_with(|it: char| it.is_ascii_alphabetic())
        && word.bytes().any(|it| it.is_ascii_lowercase())
        && (word.contains('_') || word.bytes().skip(1).any(|it| it.is_ascii_uppercase()))
}

/// A line without the line number of a viewer.
pub(in crate::facts) fn unnumbered(line: &str) -> &str {
    let rest = line.trim_start_matches([' ', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    if rest.len() == line.len() { line } else { rest.strip_prefix(['→', '\t', ':', '|']).unwrap_or(line) }
}

/// The function or type that a line of code defines, or a constant that is exported or in capitals.
fn definition(line: &str) -> Option<&str> {
    const KEYWORDS: [&str; 11] = [
        "fn",
        "func",
        "def",
        "function",
        "class",
        "struct",
        "enum",
        "trait",
        "interface",
        "type",
        "function*",
    ];
    const MODIFIERS: [&str; 12] = [
        "export",
        "default",
        "pub",
        "async",
        "static",
        "public",
        "private",
        "protected",
        "abstract",
        "declare",
        "unsafe",
        "final",
    ];
    let code = line.trim_start_matches([' ', '\t', '+']);
    let mut rest = code;
    loop {
        let (word, behind) = rest.split_once(' ')?;
        let behind = behind.trim_start();
        if word == "func" && behind.starts_with('(') {
            // In Go, the receiver precedes a method's name.
            return leading_identifier(behind.split_once(") ")?.1);
        }
        if word == "const" && !behind.starts_with("fn ") {
            let shouted = |it: &&str| !it.bytes().any(|it| it.is_ascii_lowercase());
            return leading_identifier(behind).filter(|it| code.starts_with("export ") || shouted(it));
        }
        if KEYWORDS.contains(&word) {
            // PowerShell: `function Invoke-Build {`.
            let with_hyphens =
                behind.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).next();
            let command = with_hyphens.filter(|it| {
                word == "function"
                    && it.contains('-')
                    && it.starts_with(|it: char| it.is_ascii_alphabetic())
                    && (4..=61).contains(&it.len())
            });
            let name = command.or_else(|| leading_identifier(behind))?;
            // In a list of imports, `type` only marks a name: `type Gauge,`.
            let after = behind[name.len()..].trim_start();
            let defines =
                word != "type" || after.starts_with(may_follow_type_name) && !after.starts_with("as ");
            return defines.then_some(name);
        }
        if word != "const" && !MODIFIERS.contains(&word) && !word.starts_with("pub(") {
            return None;
        }
        rest = behind;
    }
}

/// Whether a character may follow the name in the definition of a type: `type A = B`, `type A<T> =`, `type A struct`.
fn may_follow_type_name(it: char) -> bool {
    it.is_ascii_alphabetic() || "=<[(*".contains(it)
}

/// The identifier at the beginning of a text, if it is longer than three characters.
fn leading_identifier(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    let name = &text[..end];
    // `__init__` is in every file.
    let dunder = name.starts_with("__") && name.ends_with("__");
    let own = !dunder && !name.starts_with(|c: char| c.is_ascii_digit());
    ((4..=61).contains(&name.len()) && own).then_some(name)
}

/// The first of the named fields that is a text.
fn text_of<'a>(input: &'a serde_json::Value, fields: &[&str]) -> Option<&'a str> {
    fields.iter().find_map(|it| input.get(*it)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_read_off_lines() {
        for (line, expected) in [
            ("export class TriggerRegistry {", Some("TriggerRegistry")),
            ("  pub(crate) async fn load_config(", Some("load_config")),
            ("func (it *Flow) HappyPath(t *testing.T) {", Some("HappyPath")),
            ("+type Session struct {", Some("Session")),
            ("export type Gauge<T> = Map<string, T>;", Some("Gauge")),
            ("  type Gauge,", None),
            ("  type Gauge", None),
            ("  type Gauge as Dial,", None),
            ("export const useStore = () => {", Some("useStore")),
            ("const MAGIC_WORD = 1", Some("MAGIC_WORD")),
            ("const local = 1", None),
            ("pub const fn size_of_it()", Some("size_of_it")),
            ("this function does that", None),
            ("return class_of(x)", None),
            ("class A", None),
        ] {
            assert_eq!(definition(line), expected, "{line}");
        }
        assert_eq!(unnumbered("   12→fn a() {}"), "fn a() {}");
        assert_eq!(unnumbered("00012| fn a() {}"), " fn a() {}");
        assert_eq!(unnumbered("  let x"), "  let x");
    }

    #[test]
    fn of_what_was_read_what_the_agent_names_comes_first() {
        let mut symbols = Symbols::default();
        symbols.add_read(3, "   1→class TriggerRegistry {\n   2→class OtherThing {", Some("src/a.ts"));
        symbols.add_read(4, "class TriggerRegistry {\nclass LastThing {", Some("src/b.ts"));
        symbols.note_used(r#"{"new_string":"a\nTriggerRegistry.get()"}"#);
        let facts = symbols.into_facts();
        let told: Vec<_> = facts.iter().map(|it| (it.text.as_str(), it.detail.clone())).collect();
        let of = |file: &str, used| Detail::Symbol { file: Some(file.to_owned()), used };
        let expected = [
            ("TriggerRegistry", of("src/b.ts", true)),
            ("LastThing", of("src/b.ts", false)),
            ("OtherThing", of("src/a.ts", false)),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn of_a_file_that_was_only_read_few_are_told_and_none_of_a_document() {
        let mut symbols = Symbols::default();
        let many: String = (10..60).map(|it| format!("def of_number_{it}():\n")).collect();
        symbols.add_read(1, &many, Some("src/a.py"));
        symbols.add_read(2, "def test_of_number():\nclass TestOfNumber:", Some("src/b.py"));
        symbols.add_read(3, "def shown_in_it():", Some("docs/a.md"));
        let told: Vec<_> = symbols.into_facts().iter().map(|it| it.text.to_string()).collect();
        assert_eq!(told, (45..60).rev().map(|it| format!("of_number_{it}")).collect::<Vec<_>>());
    }

    #[test]
    fn names_that_edits_took_out_are_not_told() {
        let call = |name: &str, input: &str| Call {
            id: "c".into(),
            name: name.into(),
            input: history::Text::new(input),
            freeform: false,
            signature: None,
        };
        let mut symbols = Symbols::default();
        symbols.add_read(1, "class OldGauge {\nclass KeptGauge {", Some("src/a.ts"));
        symbols.add_quoted(2, "The import of `useGauge` is not needed, `useDial` is.");
        let edit = r#"{"path":"src/b.ts","edits":[{"oldText":"import { useGauge, useDial }","newText":"import { useDial }"}]}"#;
        let edit = call("edit", edit);
        symbols.add_written(3, &edit, &tools::actions(&edit), None);
        let whole = r#"{"file_path":"src/a.ts","content":"class KeptGauge {\nclass NewGauge {"}"#;
        let whole = call("Write", whole);
        symbols.add_written(4, &whole, &tools::actions(&whole), None);
        let told: Vec<_> = symbols.into_facts().iter().map(|it| it.text.to_string()).collect();
        assert_eq!(told, ["useDial", "KeptGauge", "NewGauge"]);
    }

    #[test]
    fn a_here_document_and_a_patch_in_a_command_define_names() {
        let command = "cd src && cat > a.py <<'E'\nclass FirstGauge:\nE\napply_patch <<'E'\n*** Update File: b.py\n-def old_gauge():\n+def new_gauge():\nE";
        let call = Call {
            id: "c".into(),
            name: "Bash".into(),
            input: history::Text::new(serde_json::json!({ "command": command }).to_string()),
            freeform: false,
            signature: None,
        };
        let mut symbols = Symbols::default();
        symbols.add_written(1, &call, &tools::actions(&call), None);
        let facts = symbols.into_facts();
        let told: Vec<_> = facts.iter().map(|it| (it.text.as_str(), it.detail.clone())).collect();
        let of = |file: &str| Detail::Symbol { file: Some(file.to_owned()), used: true };
        assert_eq!(told, [("FirstGauge", of("src/a.py")), ("new_gauge", of("src/b.py"))]);
    }

    #[test]
    fn a_patch_says_of_each_name_where_it_is_and_that_it_is_gone() {
        let patch = |text: &str| Call {
            id: "c".into(),
            name: "apply_patch".into(),
            input: history::Text::new(text),
            freeform: true,
            signature: None,
        };
        let mut symbols = Symbols::default();
        let added = "*** Update File: src/a.rs\n+fn first_of_all() {}\n*** Update File: src/b.rs\n+fn second_one() {}\n*** Update File: a.md\n+fn shown_there() {}";
        symbols.add_written(1, &patch(added), &[], None);
        symbols.add_written(
            2,
            &patch("*** Update File: src/b.rs\n-fn second_one() {}\n+fn third_one() {}"),
            &[],
            None,
        );
        let told: Vec<_> =
            symbols.into_facts().iter().map(|it| (it.text.to_string(), it.detail.clone())).collect();
        let of = |file: &str| Detail::Symbol { file: Some(file.to_owned()), used: true };
        assert_eq!(
            told,
            [("first_of_all".to_owned(), of("src/a.rs")), ("third_one".to_owned(), of("src/b.rs"))]
        );
    }
}
