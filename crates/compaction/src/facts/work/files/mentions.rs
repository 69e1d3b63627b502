//! Files named in the output of searches and listings, and in prose: what the agent may read next.

use crate::facts::text::clip;
use crate::facts::text::regions::{Region, regions};
use crate::facts::work::paths::file_name;

/// An output with more files is a directory listing.
const MAX_FILES: usize = 60;
/// Bytes of an output that are read.
const MAX_BYTES: usize = 40_000;
/// Maximum bytes of a path.
const MAX_PATH: usize = 200;

/// Directories of third-party files, which nobody edits.
pub(in crate::facts::work) const THIRD_PARTY: [&str; 5] =
    ["node_modules", "site-packages", ".venv", "__pycache__", ".git"];

/// File extensions that are recognized without a directory in the path: `chalk.green` is not a file.
const FILES: [&str; 24] = [
    "c", "cfg", "cpp", "css", "go", "h", "html", "java", "js", "json", "jsx", "lock", "md", "mjs", "mod",
    "py", "rb", "rs", "sh", "toml", "ts", "tsx", "yaml", "yml",
];

/// The files at the beginning of the lines of an output, in order: `path`, `path:12: text`, ` M path`, and
/// `path | 3 ++`. Empty if there are too many.
pub(in crate::facts) fn in_output(output: &str) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    for line in clip(output, MAX_BYTES).0.lines() {
        let Some(path) = leading_path(line) else { continue };
        if out.last() == Some(&path) || out.contains(&path) {
            continue;
        }
        if out.len() == MAX_FILES {
            return Vec::new();
        }
        out.push(path);
    }
    out
}

/// The files that prose names, in backticks, in a link or with a line number: `src/a.rs`, (/w/src/a.rs:12),
/// src/a.rs:12.
pub(in crate::facts) fn in_prose(text: &str) -> Vec<&str> {
    let apart = |c: char| c.is_whitespace() || "()\"'`,;|".contains(c);
    // `Library/Application Support/a.json` is one path with a blank, whose end is no path of its own.
    let continues = |before: &str, it: &str| {
        let named = |it: &str| it.starts_with(['/', '~']) || it.starts_with(char::is_uppercase);
        let open = |it: &str| named(it) && it.contains('/') && !file_name(it).contains('.');
        before.strip_suffix(' ').is_some_and(open) && it.starts_with(char::is_uppercase)
    };
    let mut before = "";
    let words = clip(text, MAX_BYTES).0.split_inclusive(apart).filter_map(|it| {
        let word = it.trim_end_matches(apart);
        let names = word.contains('/') && !word.contains("://") && !continues(before, word);
        before = it;
        names.then_some(word)
    });
    // Brackets within a path name a parameter: `app/[id]/page.tsx`; not so `<name>/a.json`, `src/*.rs`.
    let paths = words.map(|it| {
        let it = it.trim_end_matches(['.', ':', '!', '?', ']', '}', '>', '*']);
        it.trim_start_matches(|c| "{<*".contains(c) || c == '[' && !it.contains("]/"))
    });
    // No space between a word and a path: `請閱讀/Users/me/a.md`.
    let rooted =
        |it: &str| ["/Users/", "/home/", "/mnt/", "/root/", "/tmp/"].iter().any(|of| it.starts_with(of));
    let paths = paths.map(|it| match it.split_once('/') {
        Some((word, _)) if !word.is_empty() && !word.is_ascii() && rooted(&it[word.len()..]) => {
            &it[word.len()..]
        }
        Some(_) | None => it,
    });
    // `@src/a.rs` is how a prompt names a file to some clients; `@/a.ts` and `@scope/a.ts` name modules.
    let paths = paths.map(|it| it.strip_prefix('@').filter(|rest| !rest.starts_with('/')).unwrap_or(it));
    distinct(paths.filter_map(leading_path).filter(|it| it.contains('/') && !lists_files(it)).collect())
}

/// The files that a reply names outside of code blocks, which may show examples.
pub(in crate::facts) fn in_reply(text: &str) -> Vec<&str> {
    let told = regions(clip(text, MAX_BYTES).0).into_iter().filter(|it| it.0 != Region::Block);
    distinct(told.flat_map(|it| in_prose(it.1)).collect())
}

/// Whether a text names a path as code, in a link or with a line number: `src/a.rs`, src/a.rs:12.
pub(in crate::facts) fn is_marked(text: &str, path: &str) -> bool {
    text.match_indices(path).any(|(at, _)| {
        let behind = &text[at + path.len()..];
        let place = behind.strip_prefix(':').is_some_and(|it| it.starts_with(|it: char| it.is_ascii_digit()));
        place || behind.starts_with(['`', ')', ']']) || text[..at].ends_with(['`', '(', '['])
    })
}

/// The files that a prompt names, in what was typed or in a document, and those that a diff in it changes.
pub(in crate::facts) fn in_prompt(text: &str) -> Vec<&str> {
    let (text, _) = clip(text, MAX_BYTES);
    let changed =
        text.lines().filter_map(|it| it.strip_prefix("+++ b/").or_else(|| it.strip_prefix("--- a/")));
    let mut out: Vec<&str> = changed.map(str::trim_end).filter(|it| is_plain(it)).collect();
    for (kind, region) in regions(text) {
        match kind {
            Region::Typed | Region::Document => out.extend(in_prose(region)),
            Region::Block
            | Region::Diff
            | Region::Log
            | Region::Transcript
            | Region::HarnessText
            | Region::ClientText => {}
        }
    }
    distinct(out)
}

fn distinct(mut paths: Vec<&str>) -> Vec<&str> {
    paths.sort_unstable();
    paths.dedup();
    paths.truncate(MAX_FILES);
    paths
}

/// Whether a slash separates two files: `a.md/b.json`.
fn lists_files(path: &str) -> bool {
    let is_file = |it: &str| it.rsplit_once('.').is_some_and(|(stem, _)| !stem.is_empty());
    path.split_once('/').is_some_and(|(one, other)| is_file(one) && !other.contains('/') && is_file(other))
}

fn leading_path(line: &str) -> Option<&str> {
    let line = line.trim();
    let (line, state) = match line.split_once(' ') {
        Some((state, rest)) if state.len() <= 2 && state.bytes().all(|it| b"MADRCU?".contains(&it)) => {
            (rest.trim(), true)
        }
        Some((path, rest)) if rest.trim_start().starts_with("| ") => (path, true),
        Some(_) | None => (line, false),
    };
    let (path, behind) = line.split_once(':').unwrap_or((line, ""));
    // `ls DIR` prints bare names, whose directory is unknown.
    let placed = state || behind.starts_with(|it: char| it.is_ascii_digit());
    let path = path.strip_prefix("./").unwrap_or(path);
    let ending = file_name(path).rsplit_once('.').is_some_and(|(_, ending)| {
        (1..=6).contains(&ending.len())
            && ending.bytes().all(|it| it.is_ascii_alphanumeric())
            && ending.bytes().any(|it| it.is_ascii_alphabetic())
            && (path.contains('/') || placed && FILES.contains(&ending))
    });
    let plugin = path.contains(".claude/plugins/");
    let foreign = plugin || path.split('/').any(|it| THIRD_PARTY.contains(&it));
    (ending && !foreign && path.len() >= 5 && is_plain(path) && !path.contains("//") && !is_other_name(path))
        .then_some(path)
}

fn is_plain(path: &str) -> bool {
    let plain = |it: char| it.is_alphanumeric() || "/._-@+~[]".contains(it);
    path.len() <= MAX_PATH && path.chars().all(plain)
}

/// Whether a word with a slash and an extension names no file: a range of revisions (`origin/main...HEAD`), a
/// path whose beginning was cut (`.../deep/e.rs`), a line of a diff, a package with its version
/// (`@scope/name@1.2`).
fn is_other_name(path: &str) -> bool {
    let ranges = path.split('/').any(|it| it.contains("..") && it != "..");
    let package = path.split('@').skip(1).any(|it| it.starts_with(|c: char| c.is_ascii_digit()));
    // Endings: `.py/.ts/.go`.
    let endings = path.matches('/').count() > 1 && path.split('/').all(|it| it.starts_with('.'));
    ranges || package || endings || path.starts_with(['-', '+', '@'])
}

/// Directories that hold other worktrees of a repository.
const TREES: [&str; 3] = ["worktrees/", ".worktrees/", ".git/"];

/// Whether a path is in another worktree than the session's.
pub(in crate::facts) fn is_of_other_tree(path: &str, base: Option<&str>) -> bool {
    let within = |it: &str| TREES.iter().any(|of| format!("/{it}").contains(&format!("/{of}")));
    within(path) && !base.is_some_and(within)
}

/// The other worktree that a path is in: `.worktrees/a` for `.worktrees/a/src/b.rs`.
pub(in crate::facts) fn tree_of<'a>(path: &'a str, base: Option<&str>) -> Option<&'a str> {
    let begin =
        |of: &&str| path.find(of).filter(|at| *at == 0 || path[..*at].ends_with('/')).map(|at| at + of.len());
    let begin = TREES.iter().filter_map(begin).min().filter(|_| is_of_other_tree(path, base))?;
    let end = path[begin..].find('/').map_or(path.len(), |it| begin + it);
    Some(&path[..end])
}

/// Whether a path is a placeholder for others, `tests/[module].py`, `FEATURE_DIR/plan.md`, or was redacted.
pub(in crate::facts) fn is_placeholder(path: &str) -> bool {
    /// Extensions of files in whose names brackets are a route parameter.
    const ROUTES: [&str; 8] = ["js", "jsx", "ts", "tsx", "mjs", "vue", "svelte", "astro"];
    let ending = path.rsplit_once('.').map_or("", |it| it.1);
    let capital = |it: char| it.is_ascii_uppercase() || it == '_';
    let variable = path.split_once('/').is_some_and(|it| it.0.contains('_') && it.0.chars().all(capital));
    variable || path.contains("REDACTED") || file_name(path).contains('[') && !ROUTES.contains(&ending)
}

/// Whether a component of a path is a variable: `scripts/X.py`, `turn-N.md`, mktemp's `run-XX….txt`.
pub(in crate::facts) fn has_variable(path: &str) -> bool {
    path.split('/')
        .filter_map(|it| it.split('.').next())
        .any(|stem| stem.ends_with("XX") || matches!(stem.rsplit(['-', '_']).next(), Some("N" | "X")))
}

/// Whether a path belongs to an agent or package manager itself: loaded instructions, caches.
pub(in crate::facts) fn is_kept_by_tools(path: &str) -> bool {
    const HOMES: [&str; 6] =
        ["/.codex/", "/.claude/plugins/", "/.claude/skills/", "/.agents/skills/", "/.cache/", "/.npm/"];
    // What Claude Code's background tasks print.
    let printed = path.starts_with("/tmp/claude") || path.starts_with("/private/tmp/claude");
    (path.starts_with('/') || path.starts_with('~'))
        && (HOMES.iter().any(|it| path.contains(it)) || printed && path.ends_with(".output"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_off_prose() {
        let text = "It stands in `src/a.rs:12`, see [b](/w/lib/b.ts:3), c/d.py, app/[id]/e.ts, [lib/f.ts]. And and/or, A.md/B.json, <name>/g.json, lib/*.rs, @lib/i.rs, @/lib/j.ts, *lib/h.rs*, https://x.io/a.html, 1/2.5, Library/Application Support/k.json.";
        assert_eq!(
            in_prose(text),
            ["/w/lib/b.ts", "app/[id]/e.ts", "c/d.py", "lib/f.ts", "lib/h.rs", "lib/i.rs", "src/a.rs"]
        );
    }

    #[test]
    fn files_are_read_off_a_diff_in_a_prompt() {
        let text = "Review this change of src/a.rs.\n\ndiff --git a/PLAN.md b/PLAN.md\n--- a/PLAN.md\n+++ b/PLAN.md\n@@ -1 +1 @@\n-see lib/old.rs\n+see lib/new.rs\n--- /dev/null\n+++ b/src/b.rs\n@@ -0,0 +1 @@\n+use lib/c.rs\n";
        assert_eq!(in_prompt(text), ["PLAN.md", "src/a.rs", "src/b.rs"]);
    }

    #[test]
    fn lists_of_files_are_read_and_prose_is_not() {
        let output = "src/a.rs:12:fn main() {\nsrc/a.rs:30:}\n M docs/b.md\n?? new/c.toml\n./lib/c.ts\n src/d.rs | 4 ++--\n .../deep/e.rs | 2 +-\n\
            See docs/README.md for more.\nchalk.green:3: x\nbare.rs\nMakefile.md:7:x\n12.5 ms\nhttps://example.org/x.html\nFound 3 files\n";
        assert_eq!(
            in_output(output),
            ["src/a.rs", "docs/b.md", "new/c.toml", "lib/c.ts", "src/d.rs", "Makefile.md"]
        );
        let many: String = (0..=MAX_FILES).map(|it| format!("src/file{it}.rs\n")).collect();
        assert_eq!(in_output(&many), Vec::<&str>::new());
    }
}
