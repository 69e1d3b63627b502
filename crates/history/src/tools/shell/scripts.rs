//! The files that an inline script of Python or Node changes: `python3 - <<'E'`, `node -e '…'`.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::Simple;
use super::effects::{file, named};
use crate::tools::{Action, Meaning};

/// A path as a script names it: group 1 of a literal, group 2 of a variable.
const PATH: &str = r#"(?:(?:pathlib\.)?Path\(\s*)?(?:r?["']([^"'\n]+)["']|([A-Za-z_]\w*))\s*\)?"#;

/// A pattern in which `PATH` stands for [`PATH`].
fn regex(parts: &[&str]) -> Regex {
    let pattern = parts.concat().replace("PATH", PATH);
    Regex::new(&pattern).unwrap_or_else(|error| unreachable!("a constant pattern: {error}"))
}

/// What a call does to the path that it names.
static CALLS: LazyLock<[(Regex, Meaning); 4]> = LazyLock::new(|| {
    [
        (
            regex(&[
                r#"\bopen\(\s*PATH\s*(?:,\s*(?:mode\s*=\s*)?["']rb?["'])?\s*(?:,\s*encoding[^)]*)?\)"#,
                r"|\bPATH\s*\.read_(?:text|bytes)\(|\breadFile(?:Sync)?\(\s*PATH",
            ]),
            Meaning::Read,
        ),
        (
            regex(&[
                r#"\bopen\(\s*PATH\s*,\s*(?:mode\s*=\s*)?["'](?:ab?\+?|rb?\+)["']|\bappendFile(?:Sync)?\(\s*PATH"#,
            ]),
            Meaning::Edit,
        ),
        (
            regex(&[
                r#"\bopen\(\s*PATH\s*,\s*(?:mode\s*=\s*)?["'][wx]b?\+?["']"#,
                r"|\bPATH\s*\.write_(?:text|bytes)\(|\bwriteFile(?:Sync)?\(\s*PATH",
            ]),
            Meaning::Create,
        ),
        (
            regex(&[r"\bos\.(?:remove|unlink)\(\s*PATH|\bPATH\s*\.unlink\(|\b(?:unlink|rm)Sync\(\s*PATH"]),
            Meaning::Delete,
        ),
    ]
});

/// A variable with a literal, and one that takes each of several: `for p in ['a.md', 'b.md']:`.
static ASSIGNS: LazyLock<Regex> = LazyLock::new(|| {
    regex(&[
        r#"(?m)(?:^|[;{])\s*(?:(?:const|let|var)\s+)?([A-Za-z_]\w*)\s*=\s*(?:(?:pathlib\.)?Path\(\s*)?r?["']([^"'\n]+)["']\s*\)?\s*(?:[;#\n]|$)"#,
    ])
});
static LOOPS: LazyLock<Regex> = LazyLock::new(|| {
    regex(&[r"\bfor\s+\(?(?:const\s+|let\s+)?([A-Za-z_]\w*)\s+(?:in|of)\s+[\[(]([^\])]*)[\])]"])
});
static LITERAL: LazyLock<Regex> = LazyLock::new(|| regex(&[r#"["']([^"'\n]+)["']"#]));

/// Adds what an inline script does to files that it names by literals.
pub(super) fn touched(words: &[String], simple: &Simple, out: &mut Vec<Action>) {
    /// Bytes.
    const LONGEST: usize = 100_000;
    let [program, arguments @ ..] = words else { return };
    let flag = match program.rsplit('/').next().unwrap_or(program) {
        "node" | "bun" => "-e",
        program if program.starts_with("python") => "-c",
        _ => return,
    };
    let argument = || arguments.iter().position(|it| it == flag).and_then(|at| arguments.get(at + 1));
    // What a script in a file reads is no script: `python3 load.py <<'E'`.
    let here = simple.here.as_deref().filter(|_| arguments.iter().all(|it| it.starts_with('-')));
    let script = here.or_else(|| argument().map(String::as_str)).unwrap_or_default();
    if script.len() > LONGEST
        || !["open(", "write", "unlink", "remove", "Sync("].iter().any(|it| script.contains(it))
    {
        return;
    }
    let values = values(script);
    let mut read: HashSet<String> = HashSet::new();
    for (call, meaning) in &*CALLS {
        for path in call.captures_iter(script).flat_map(|it| paths(&it, &values)) {
            match meaning {
                Meaning::Read => drop(read.insert(path)),
                // What was read before is there.
                Meaning::Create if read.contains(&path) => out.push(Action::on(Meaning::Edit, path)),
                _ => out.push(Action::on(*meaning, path)),
            }
        }
    }
}

/// The literals that each variable stands for.
fn values(script: &str) -> HashMap<&str, Vec<&str>> {
    let mut out: HashMap<&str, Vec<&str>> = HashMap::new();
    for found in ASSIGNS.captures_iter(script) {
        let (Some(name), Some(value)) = (found.get(1), found.get(2)) else { continue };
        out.entry(name.as_str()).or_default().push(value.as_str());
    }
    for found in LOOPS.captures_iter(script) {
        let (Some(name), Some(list)) = (found.get(1), found.get(2)) else { continue };
        let each = LITERAL.captures_iter(list.as_str()).filter_map(|it| it.get(1));
        out.entry(name.as_str()).or_default().extend(each.map(|it| it.as_str()));
    }
    out
}

/// The paths in a match: of a pattern with several alternatives, the groups of the one that matched.
fn paths(found: &Captures, values: &HashMap<&str, Vec<&str>>) -> Vec<String> {
    let mut groups = found.iter().skip(1).enumerate();
    let Some((at, name)) = groups.find_map(|(at, it)| Some((at, it?.as_str()))) else { return Vec::new() };
    let is_literal = at.is_multiple_of(2);
    let all = if is_literal { vec![name] } else { values.get(name).cloned().unwrap_or_default() };
    all.into_iter().filter(|it| file(it) && named(it)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_files_that_a_script_changes() {
        for (program, script, expected) in [
            (
                "python3",
                "from pathlib import Path\np = Path('src/a.rs')\ns = p.read_text()\np.write_text(s.replace('a', 'b'))",
                "Edit src/a.rs",
            ),
            ("python", "open('out/b.json', 'w').write('{}')", "Create out/b.json"),
            (
                "python3.11",
                "p='c.md'\nwith open(p) as f: s=f.read()\nwith open(p, \"w\", encoding='utf-8') as f:\n  f.write(s)",
                "Edit c.md",
            ),
            ("python3", "with open('log.txt', 'a') as f: f.write('x')", "Edit log.txt"),
            ("python3", "import os\nfor p in ['x.md', 'y.md']:\n  os.remove(p)", "Delete x.md, Delete y.md"),
            (
                "python3",
                "d = 'src'\nopen(f'{d}/a.rs', 'w')\nopen(d + '/b.rs', 'w')\nopen(name, 'w')\nprint(open('z.md').read())",
                "",
            ),
            (
                "node",
                "const fs=require('fs'); const f='package.json'; const s=fs.readFileSync(f,'utf8'); fs.writeFileSync(f, s)",
                "Edit package.json",
            ),
            (
                "node",
                "require('fs').writeFileSync(\"a/b.js\", x); fs.unlinkSync('c.js')",
                "Create a/b.js, Delete c.js",
            ),
            ("ruby", "File.write('a.rb', 'x')", ""),
        ] {
            let simple = Simple { here: Some(script.to_owned()), ..Simple::default() };
            let mut out = Vec::new();
            touched(&[program.to_owned()], &simple, &mut out);
            let told: Vec<String> = out
                .iter()
                .map(|it| format!("{:?} {}", it.meaning, it.path.as_deref().unwrap_or_default()))
                .collect();
            assert_eq!(told.join(", "), expected, "{script}");
        }
    }
}
