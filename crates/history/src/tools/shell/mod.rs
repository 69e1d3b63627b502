//! What a shell command visibly does to files. This is not a shell: it knows words, quotes, lists, pipes,
//! redirections and here-documents, and says nothing about paths with variables or patterns in them.

mod effects;
mod scripts;
mod split;

use std::sync::Arc;

use super::{Action, Meaning};
use effects::touched;
use split::split;

/// Bytes of the longest path (Linux `PATH_MAX`).
const LONGEST_PATH: usize = 4_096;

/// Maximum number of values of a `for` loop that are looked at.
const MOST_VALUES: usize = 64;

/// How a program is joined to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Joint {
    /// Nothing, or a parenthesis.
    #[default]
    None,
    /// `;`, `&` or a line break: it runs whatever the one before it did.
    Then,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `|`
    Pipe,
}

/// One program that a command line runs.
#[derive(Debug)]
pub struct Program {
    pub words: Vec<String>,
    pub joint: Joint,
    /// The directory in which it runs; `None` if the line does not change it before.
    pub dir: Option<Arc<str>>,
    /// Targets of `>` and `>>`.
    pub writes: Vec<String>,
}

/// One command of a list or pipe.
#[derive(Default)]
struct Simple {
    joint: Joint,
    words: Vec<String>,
    /// Targets of `>`.
    writes: Vec<String>,
    /// Targets of `>>`.
    appends: Vec<String>,
    /// Body of its here-document.
    here: Option<String>,
}

impl Simple {
    fn of(word: &str) -> Self {
        Self { words: vec![word.to_owned()], ..Self::default() }
    }
}

/// The indexes of a shell and of the script that it runs: `zsh -i -c SCRIPT`.
pub(super) fn script_of<W: AsRef<str>>(words: &[W]) -> Option<(usize, usize)> {
    let script = |at: usize| {
        let shell = words[at].as_ref();
        let shell = shell.rsplit(['/', '\\']).next().unwrap_or(shell);
        let mut rest = words[at + 1..].iter().map(AsRef::as_ref);
        let flag = if ["bash", "sh", "zsh", "dash"].contains(&shell) {
            rest.take_while(|it| it.starts_with('-')).position(|it| it.ends_with('c'))
        } else if shell.starts_with("powershell") || shell.starts_with("pwsh") {
            // Flags before it may have values: `-ExecutionPolicy Bypass`.
            rest.position(|it| it.eq_ignore_ascii_case("-command"))
        } else {
            None
        };
        flag.map(|it| (at, at + it + 2))
    };
    (0..words.len()).find_map(script).filter(|it| it.1 < words.len())
}

/// Words as one command line, quoted where needed.
pub(super) fn join(words: &[&str]) -> String {
    let plain =
        |it: &str| !it.is_empty() && it.chars().all(|c| c.is_alphanumeric() || "-_./=:@%+,".contains(c));
    let quoted = words
        .iter()
        .map(|it| if plain(it) { it.to_string() } else { format!("'{}'", it.replace('\'', r"'\''")) });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The current directory of a command line, which `cd` changes and the end of a subshell restores.
#[derive(Clone, Default)]
struct Place {
    at: Option<Arc<str>>,
    /// The target of `cd -`.
    before: Option<Arc<str>>,
    /// Directories in which the open subshells started.
    outer: Vec<Option<Arc<str>>>,
}

/// Programs that change the directory.
const MOVES: [&str; 5] = ["cd", "chdir", "pushd", "Set-Location", "Push-Location"];
/// Programs that return to the directory before the last change.
const GOES_BACK: [&str; 2] = ["popd", "Pop-Location"];

impl Place {
    /// Applies a program that changes the directory.
    fn follow(&mut self, words: &[String]) {
        let Some((head, rest)) = words.split_first() else { return };
        if !MOVES.contains(&head.as_str()) && !GOES_BACK.contains(&head.as_str()) {
            return;
        }
        match rest.iter().rfind(|it| *it == "-" || !it.starts_with('-')).map(String::as_str) {
            _ if GOES_BACK.contains(&head.as_str()) => std::mem::swap(&mut self.before, &mut self.at),
            Some("-") => std::mem::swap(&mut self.before, &mut self.at),
            Some(to) => self.go(to),
            None => self.go("~"),
        }
    }

    fn go(&mut self, to: &str) {
        let to = match self.at.as_deref() {
            Some(at) if !absolute(to) => joined(at, to),
            Some(_) | None => to.to_owned(),
        };
        // No system accepts a longer path.
        if to.len() <= LONGEST_PATH {
            self.before = self.at.replace(to.into());
        }
    }
}

fn joined(dir: &str, path: &str) -> String {
    format!("{}/{path}", dir.trim_end_matches('/'))
}

/// The beginning and end of a subshell, each a command of its own.
const SUBSHELL: [&str; 2] = ["(", ")"];

/// The context of a line that a shell runs within another line.
#[derive(Clone, Copy, Default)]
struct Nesting {
    /// Whether another program started the shell, perhaps on another machine: `docker exec`, `ssh`.
    depth: u8,
    /// Another program started the shell, perhaps not here: `docker exec`, `ssh`.
    elsewhere: bool,
    /// How the line's first program is joined to the one before the line.
    joint: Joint,
}

/// Visits the simple commands of a line; after one that starts a shell (`wsl -- bash -c 'a | b'`), those of its script.
fn walk(
    command: &str,
    place: &mut Place,
    nesting: Nesting,
    visit: &mut dyn FnMut(&Simple, Program, Nesting),
) {
    /// Maximum depth of nested shells whose scripts are read.
    const DEEPEST: u8 = 2;
    for (at, simple) in split(command).into_iter().enumerate() {
        let joint = if at == 0 { nesting.joint } else { simple.joint };
        match &simple.words[..] {
            [it] if it == SUBSHELL[0] => place.outer.push(place.at.clone()),
            [it] if it == SUBSHELL[1] => {
                if let Some(began) = place.outer.pop() {
                    place.at = began;
                }
            }
            words => {
                let words = unwrapped(words);
                if let Some(line) = over_ssh(words).filter(|_| nesting.depth < DEEPEST) {
                    let inner = Nesting { depth: nesting.depth + 1, elsewhere: true, joint };
                    walk(&line, &mut Place { at: Some("~".into()), ..Place::default() }, inner, visit);
                    continue;
                }
                let script = script_of(words).or_else(|| nix_script(words));
                let script = script.filter(|_| nesting.depth < DEEPEST);
                let shell = script.map(|it| it.0);
                let own = &words[..shell.unwrap_or(words.len())];
                if shell != Some(0) {
                    let writes = [&simple.writes[..], &simple.appends].concat();
                    visit(&simple, Program { writes, ..program(own, joint, place) }, nesting);
                    place.follow(own);
                }
                if let Some((shell, script)) = script {
                    let inner = Nesting {
                        depth: nesting.depth + 1,
                        elsewhere: nesting.elsewhere || shell > 0,
                        joint: if shell == 0 { joint } else { Joint::None },
                    };
                    walk(&words[script], &mut place.clone(), inner, visit);
                }
            }
        }
    }
}

/// The indexes of the shell and the script of `nix-shell -p ruby --run SCRIPT`.
fn nix_script(words: &[String]) -> Option<(usize, usize)> {
    let runs = words.first().is_some_and(|it| it == "nix-shell");
    let flag = words.iter().position(|it| runs && (it == "--run" || it == "--command"))?;
    (flag + 1 < words.len()).then_some((0, flag + 1))
}

/// The line that `ssh HOST LINE` runs on another machine.
fn over_ssh(words: &[String]) -> Option<String> {
    const VALUED: &str = "bcDEeFIiJLlmOopQRSWw";
    let (head, mut rest) = words.split_first()?;
    if head.rsplit('/').next() != Some("ssh") {
        return None;
    }
    loop {
        let (word, behind) = rest.split_first()?;
        match word.strip_prefix('-') {
            Some(flag) if flag.len() == 1 && VALUED.contains(flag) => rest = behind.get(1..)?,
            Some(_) => rest = behind,
            None => return Some(behind.join(" ")).filter(|it| !it.is_empty()),
        }
    }
}

/// A program run at `place`; a git command in the directory of its `-C`, and without git's own options.
fn program(words: &[String], joint: Joint, place: &Place) -> Program {
    let mut place = place.clone();
    let words = match words {
        [git, rest @ ..] if git == "git" => {
            let mut rest = rest;
            loop {
                rest = match rest {
                    [flag, to, behind @ ..] if flag == "-C" => {
                        place.go(to);
                        behind
                    }
                    [flag, _, behind @ ..] if flag == "-c" => behind,
                    [flag, behind @ ..] if flag == "--no-pager" => behind,
                    _ => break,
                };
            }
            [std::slice::from_ref(git), rest].concat()
        }
        _ => words.to_vec(),
    };
    Program { words, joint, dir: place.at, writes: Vec::new() }
}

/// A text that a command line contains: a here-document that is written to a file, or a patch.
#[derive(Debug)]
pub struct Document {
    /// `None`: a patch, which names its files.
    pub path: Option<String>,
    /// The directory that the path is relative to, if known.
    pub dir: Option<Arc<str>>,
    pub text: String,
}

/// The documents in a command. `dir` is where it runs.
pub(super) fn documents(command: &str, dir: Option<&str>) -> Vec<Document> {
    let mut out = Vec::new();
    let mut place = Place { at: dir.map(Arc::from), ..Place::default() };
    walk(command, &mut place, Nesting::default(), &mut |simple, program, nesting| {
        let patch = effects::patch_of(&program.words, simple.here.as_deref());
        let file =
            program.writes.into_iter().next().filter(|_| program.words.first().is_some_and(|it| it == "cat"));
        let text = patch.or(simple.here.as_deref().filter(|_| file.is_some()));
        if let Some(text) = text.filter(|_| !nesting.elsewhere) {
            let path = file.filter(|_| patch.is_none());
            out.push(Document { path, dir: program.dir.clone(), text: text.to_owned() });
        }
    });
    out
}

/// A word of one path with the value of the variable that it names: `src/$name.rs`, `${name}`.
fn with_value(word: &str, name: &str, value: &str) -> Option<String> {
    let (at, mark) = [format!("${{{name}}}"), format!("${name}")]
        .into_iter()
        .find_map(|it| word.find(&it).map(|at| (at, it)))
        .filter(|_| !word.contains(char::is_whitespace))?;
    let (before, rest) = (&word[..at], &word[at + mark.len()..]);
    let longer = !mark.ends_with('}') && rest.starts_with(|it: char| it.is_alphanumeric() || it == '_');
    (!longer).then(|| format!("{before}{value}{rest}"))
}

/// The file actions of a command, in order. `dir` is where it runs; `cd` changes it.
pub(super) fn actions(command: &str, dir: Option<&str>) -> Vec<Action> {
    let mut out: Vec<Action> = Vec::new();
    let mut each: Option<(String, Vec<String>)> = None;
    // Where the actions of the program before begin in `out`, if that program prints files.
    let mut printed: Option<usize> = None;
    let mut place = Place { at: dir.map(Arc::from), ..Place::default() };
    walk(command, &mut place, Nesting::default(), &mut |simple, program, nesting| {
        if nesting.elsewhere {
            return;
        }
        let Program { words, dir, .. } = &program;
        match &words[..] {
            [head, name, in_, values @ ..] if head == "for" && in_ == "in" => {
                each = Some((name.clone(), values[..values.len().min(MOST_VALUES)].to_vec()));
                return;
            }
            [head, ..] if head == "done" => each = None,
            _ => {}
        }
        let names = |word: &str, name: &str| with_value(word, name, "").is_some();
        // `[ -f "$f" ]`: which of the values exist is unknown.
        let tests = words.iter().any(|it| ["[", "[[", "test"].contains(&it.as_str()));
        if let Some((name, values)) = &mut each
            && tests
            && words.iter().any(|it| names(it, name))
        {
            values.clear();
        }
        // A file that is written after it was deleted was replaced, not deleted.
        let written = |it: &Action| {
            let path = it.path.as_ref().filter(|_| it.dir == *dir);
            path.is_some_and(|it| simple.writes.contains(it) || simple.appends.contains(it))
        };
        out.retain(|it| it.meaning != Meaning::Delete || !written(it));
        // `cat a || cat b`: which of them was read is unknown.
        let prints = words.first().is_some_and(|it| it == "cat")
            && simple.here.is_none()
            && simple.writes.is_empty()
            && simple.appends.is_empty();
        if prints && program.joint == Joint::Or && printed.is_some() {
            out.truncate(printed.unwrap_or(out.len()));
            return;
        }
        let first = out.len();
        printed = prints.then_some(first);
        // A directory that is created again, or in which one is, was emptied, not deleted.
        if let Some(made) = makes_folders(words) {
            let holds = |path: &str, made: &str| {
                let below = made.strip_prefix(path.trim_end_matches('/'));
                path == made
                    || words[0] == "mkdir" && below.is_some_and(|it| it.is_empty() || it.starts_with('/'))
            };
            let again = |it: &Action| {
                it.dir == *dir && it.path.as_ref().is_some_and(|it| made.iter().any(|made| holds(it, made)))
            };
            out.retain(|it| it.meaning != Meaning::Delete || !again(it));
            return;
        }
        match &each {
            Some((name, values)) if words.iter().any(|it| names(it, name)) => {
                for value in values {
                    let value_of = |it: &String| with_value(it, name, value).unwrap_or_else(|| it.clone());
                    touched(&words.iter().map(value_of).collect::<Vec<_>>(), simple, &mut out);
                }
            }
            Some(_) | None => touched(words, simple, &mut out),
        }
        scripts::touched(words, simple, &mut out);
        for action in &mut out[first..] {
            action.dir.clone_from(dir);
        }
    });
    out
}

/// The simple commands, including those of nested scripts.
pub(super) fn programs(command: &str) -> Vec<Program> {
    let mut out = Vec::new();
    walk(command, &mut Place::default(), Nesting::default(), &mut |_, program, _| {
        out.extend((!program.words.is_empty()).then_some(program));
    });
    out
}

fn absolute(path: &str) -> bool {
    path.starts_with(['/', '~', '\\']) || path.get(1..2) == Some(":")
}

/// Programs whose output `rtk` shortens.
const SHORTENED: [&str; 24] = [
    "cargo",
    "curl",
    "docker",
    "find",
    "gh",
    "git",
    "go",
    "golangci-lint",
    "grep",
    "kubectl",
    "ls",
    "mypy",
    "npm",
    "npx",
    "pip",
    "playwright",
    "pnpm",
    "prettier",
    "pytest",
    "ruff",
    "tsc",
    "vitest",
    "wc",
    "wget",
];

/// The words without assignments and without those that only change how a command runs.
fn unwrapped(mut words: &[String]) -> &[String] {
    while let [head, rest @ ..] = words {
        let assignment = head.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        words = match head.as_str() {
            // `command -v` only looks a program up.
            "command" if rest.first().is_some_and(|it| it.starts_with('-')) => break,
            "sudo" | "env" | "time" | "command" | "nohup" | "then" | "do" | "else" | "!" | "(" | "{" => rest,
            "timeout" if rest.len() > 1 => &rest[1..],
            // It shortens the output of the program after it, if it knows that program.
            "rtk" => match rest {
                [mode, behind @ ..] if ["proxy", "test", "err", "summary"].contains(&mode.as_str()) => behind,
                [program, ..] if SHORTENED.contains(&program.as_str()) => rest,
                _ => break,
            },
            _ if assignment => rest,
            _ => break,
        };
    }
    words
}

/// The arguments of a program that creates directories.
fn makes_folders(words: &[String]) -> Option<&[String]> {
    match words {
        [head, made @ ..] if head == "mkdir" => Some(made),
        [git, verb, made @ ..] if git == "git" && verb == "clone" => Some(made),
        [git, tree, verb, made @ ..] if git == "git" && tree == "worktree" && verb == "add" => Some(made),
        [gh, repo, verb, made @ ..] if gh == "gh" && repo == "repo" && verb == "clone" => Some(made),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(command: &str) -> String {
        let line = |it: Action| {
            let dir = it.dir.map(|it| format!("{it}:")).unwrap_or_default();
            let to = it.to.map(|it| format!("->{it}")).unwrap_or_default();
            format!("{:?} {dir}{}{to}", it.meaning, it.path.unwrap_or_default())
        };
        actions(command, None).into_iter().map(line).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn tells_how_programs_are_joined() {
        for (command, expected) in [
            ("a && b || c; d | e & f", "a, And b, Or c, Then d, Pipe e, Then f"),
            ("(a |\n b) | c\n\nd;;", "a, Pipe b, Pipe c, Then d"),
            ("rg 'a|b; c' x", "rg a|b; c x"),
            ("x; bash -c 'a | b'", "x, Then a, Pipe b"),
            ("x; zsh -i -c 'a | b' | c", "x, Then a, Pipe b, Pipe c"),
            ("make |& tee log", "make, Pipe tee log"),
            ("x; ssh -p 22 -A root@h 'a && b' | c", "x, Then a, And b, Pipe c"),
            ("ssh h ls /x; ssh -T h", "ls /x, Then ssh -T h"),
            ("x; wsl -d u -- bash -lc 'a && b | c'", "x, Then wsl -d u --, a, And b, Pipe c"),
            (
                "git commit -m \"$(cat <<'EOF'\nsay \"a; rm x\" and don't (\nEOF\n)\" && git log",
                "git commit -m $(cat <<'EOF'\nsay \"a; rm x\" and don't (\nEOF\n), And git log",
            ),
            (
                "echo \"at $(git log --format=\"%h | %s\")\"; a",
                "echo at $(git log --format=\"%h | %s\"), Then a",
            ),
            ("echo \"$(a", "echo $(a"),
        ] {
            let shown = |it: Program| match it.joint {
                Joint::None => it.words.join(" "),
                joint => format!("{joint:?} {}", it.words.join(" ")),
            };
            assert_eq!(programs(command).into_iter().map(shown).collect::<Vec<_>>().join(", "), expected);
        }
    }

    #[test]
    fn sees_files() {
        for (command, expected) in [
            ("ls -la && cargo test 2>&1 | tail -20", ""),
            ("rm -f a.rs 'b c.rs' $X *.o", "Delete a.rs, Delete b c.rs"),
            ("rm -rf out tmp && mkdir -p out", "Delete tmp"),
            ("rm -rf web out && mkdir -p web/src/app output", "Delete out"),
            ("rm -rf web && gh repo clone web/lid lid", "Delete web"),
            ("rm -rf /t/a /t/b && git clone https://x.org/a /t/a && git worktree add /t/b", ""),
            ("rm -rf a && gh repo clone x/a a", ""),
            ("docker exec c sh -c 'rm x'; sh -c 'rm y'", "Delete y"),
            ("ssh h 'rm x'; rm y", "Delete y"),
            ("cd sub && git mv a.rs b.rs; git rm c.rs", "Rename sub:a.rs->b.rs, Delete sub:c.rs"),
            (
                "cd sub && git -C app -c a=b rm c.rs; git --no-pager -C /r mv d e; rm f",
                "Delete sub/app:c.rs, Rename /r:d->e, Delete sub:f",
            ),
            ("git rm --cached x.rs", ""),
            ("cd /w && cd sub && rm x", "Delete /w/sub:x"),
            ("open -a Preview a.png; open a.rs", "Read a.rs"),
            (
                "Get-Content .github\\x.json -Raw; Remove-Item notes.txt -ErrorAction SilentlyContinue",
                "Read .github\\x.json, Delete notes.txt",
            ),
            (
                "@'\nit's \"1\"; rm x\n'@ | Set-Content -Encoding UTF8 code\\a.py; (Get-Content -Raw b.py) -replace '1', '2' | Out-File b.py",
                "Create code\\a.py, Read b.py, Create b.py",
            ),
            ("cat package.json 2>/dev/null || cat setup.cfg; cat a.rs || true", "Read a.rs"),
            ("[ -f .env ] || cat > .env <<'E'\nx\nE\nls b || cat c.json", "Create .env, Read c.json"),
            ("Write-Output 'x' > w.txt; ls | Out-File -Append l.txt", "Create w.txt, Edit l.txt"),
            ("git add -A ':!dist' && rm ':!x'", ""),
            ("Rename-Item -LiteralPath \"src\\a.js\" -NewName \"b.js\"", "Rename src\\a.js->src\\b.js"),
            (
                "mv a.rs src app/; mv b.rs c.rs lib; git mv -k d/ e/; mv f/g.rs ./; mv *.rs lib/; mv -t lib a.rs b.rs",
                "Rename a.rs->app/a.rs, Rename src->app/src, Rename b.rs->lib/b.rs, Rename c.rs->lib/c.rs, Rename d->e/d, Rename f/g.rs->./g.rs",
            ),
            (
                "for f in a.rs b.rs; do [ -f \"$f\" ] && cat $f; done; for f in c.rs; do cat $f; done",
                "Read c.rs",
            ),
            ("mv web/* .; mv web/* api/* lib", "Rename web/*->./*, Rename web/*->lib/*, Rename api/*->lib/*"),
            ("cp a.rs /tmp/a.bak; mv a.rs.bak a.rs; cp /tmp/a.bak a.rs; cp a.rs b.rs", "Create b.rs"),
            (
                "cd sub && cargo add --dev gauge; cargo add -p x y; npm i; npm i -D z",
                "Edit sub:Cargo.toml, Edit sub:package.json",
            ),
            (
                "(cd sub && rm x) && rm y; (cd a; rm z) >> log; rm w",
                "Delete sub:x, Delete y, Delete a:z, Delete w",
            ),
            ("AT=$(cd .. && pwd); rm x", "Delete x"),
            ("cd a && ./run & cd b && rm x; ./c & rm y", "Delete b:x, Delete b:y"),
            ("cd a || exit 1; rm x |& tail; rm y", "Delete a:x, Delete a:y"),
            ("pushd a && rm x && popd && rm y; cd b; cd -; rm z", "Delete a:x, Delete y, Delete z"),
            ("cd -P a; rm x; cd; rm y", "Delete a:x, Delete ~:y"),
            ("bash -c 'cd a && rm x'; rm y", "Delete a:x, Delete y"),
            (
                r"Set-Location D:\w; cat src\a.rs D:\w\.b\c.rs; cat a\ b.rs",
                r"Read D:\w:src\a.rs, Read D:\w:D:\w\.b\c.rs, Read D:\w:a b.rs",
            ),
            ("cat > f.py <<'EOF'\nrm no.rs\nEOF\nrm yes.rs", "Create f.py, Delete yes.rs"),
            ("rm -f /tmp/a.log && make > /tmp/a.log 2>&1; echo \"exit=$?\" >> /tmp/a.log", ""),
            ("cat >> f.py << EOF\nx\nEOF", "Edit f.py"),
            ("echo hi > /dev/null; echo hi >log.txt 2>err.txt", "Create log.txt"),
            ("sed -i 's/a b/c/' src/x.rs", "Edit src/x.rs"),
            ("sed -i '' 's/a/b/' src/x.rs", "Edit src/x.rs"),
            ("sed -n '1,20p' src/x.rs | head -5", "Read src/x.rs"),
            ("nl -ba 'app/(shop)/page.tsx' | sed -n '1,9p'", "Read app/(shop)/page.tsx"),
            ("sed -i -e s/a/b/ -e s/c/d/ x.rs y.rs", "Edit x.rs, Edit y.rs"),
            ("perl -0pi -e 's/a/b/' x.md", "Edit x.md"),
            ("head -n 5 a.md; tail -3 b.md; nl -ba c.rs", "Read a.md, Read b.md, Read c.rs"),
            ("bash -lc 'rm x.rs'", "Delete x.rs"),
            ("FOO=1 timeout 5 rm x.rs", "Delete x.rs"),
            ("apply_patch <<'P'\n*** Begin Patch\n*** Update File: a\n*** End Patch\nP", "Edit a"),
            ("git commit -m \"rm x > y\"", ""),
            ("open src/fields.py 1474", "Read src/fields.py"),
            ("create new.py", "Create new.py"),
            ("cat 'unclosed", "Read unclosed"),
            ("cat <<", ""),
            ("# rm a\nrm b", "Delete b"),
            (
                "for f in a.rs 'b c.rs' *.md; do echo \"$f\"; nl -ba \"$f\" | head -3; cat x${f}; done; cat $f",
                "Read a.rs, Read b c.rs, Read xa.rs, Read xb c.rs",
            ),
            ("for it in a.py\ndo sed -i s/x/y/ ${it}\ndone", "Edit a.py"),
        ] {
            assert_eq!(shown(command), expected, "{command}");
        }
    }
}
