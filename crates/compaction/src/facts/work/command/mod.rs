//! Classifies shell commands.

mod exit_code;
mod filters;
mod git;
mod inline_script;
mod operation;
mod powershell;
mod prints;
mod read_only;

use super::paths::file_name;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::flat;
pub(in crate::facts::work) use filters::lets_through;
pub use git::commit_subject;
use history::Output;
use history::tools::{self, Program};
pub(in crate::facts) use inline_script::inline_script_words;
pub(in crate::facts) use operation::Operation;
use operation::{checks_syntax, operation};
pub(in crate::facts::work) use prints::output_directory;
pub use read_only::only_prepares;
pub(in crate::facts::work) use read_only::program_is_read_only;

/// Words of a command that builds, checks or runs a project.
const SETUP_WORDS: [&str; 18] = [
    "test",
    "tests",
    "build",
    "lint",
    "fmt",
    "format",
    "check",
    "typecheck",
    "type-check",
    "check-types",
    "tsc",
    "install",
    "clippy",
    "vet",
    "pytest",
    "vitest",
    "sync",
    "dev",
];

/// Variables before a program, and an exit code printed after it: `CI=1 make; echo EXIT:$?`.
static ENVIRONMENT: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^(?:[A-Z_][A-Z0-9_]*=(?:\$\([^()]*\)|\x22[^\x22]*\x22|'[^']*'|[^\s'\x22$])+\s+)+");
static ECHOES_CODE: AsciiFirstRegex = AsciiFirstRegex::new(r";\s*echo [^;|&\n]*\$\?[^;|&\n]*$");

/// A key that runs of the same command share: it omits the directory, here-documents, filters that only
/// shorten the output, and commit messages.
pub(crate) fn command_key(command: &str) -> String {
    let mut rest = command.trim();
    // A leading comment states the purpose.
    while let Some((_, after)) = rest.strip_prefix('#').and_then(|it| it.split_once('\n')) {
        rest = after.trim_start();
    }
    while let Some((_, after)) = after_cd(rest) {
        rest = after.trim();
    }
    if rest.contains("git ") && rest.contains(" commit") {
        rest = rest.split(" -m ").next().unwrap_or(rest);
    }
    let rest = flat(rest.split(" <<").next().unwrap_or(rest));
    let mut rest = rest.as_str();
    loop {
        let before = rest;
        for end in ["2>&1", "|| true", "; true"] {
            rest = rest.trim_end_matches(end).trim_end();
        }
        if let Some((head, tail)) = rest.rsplit_once('|')
            && ["tail", "head", "Select-Object -First", "Select-Object -Last"]
                .iter()
                .any(|it| tail.trim_start().starts_with(it))
        {
            rest = head.trim_end();
        }
        if rest == before {
            return rest.into();
        }
    }
}

/// A key that attempts at the same command share: also with other variables, or its exit code printed.
pub(crate) fn attempt_key(command: &str) -> String {
    let rest = after_cd(command.trim()).map_or(command, |it| it.1).trim_start();
    let rest = &rest[ENVIRONMENT.find(rest).map_or(0, |it| it.end())..];
    command_key(&rest[..ECHOES_CODE.find(rest).map_or(rest.len(), |it| it.start())])
}

/// The directory of a leading `cd`.
pub(in crate::facts) fn directory(command: &str) -> Option<&str> {
    let (to, _) = after_cd(command.trim_start())?;
    Some(to.trim().trim_matches(['"', '\'']).trim_end_matches('/'))
}

/// The argument of a leading `cd`, and what follows it.
fn after_cd(command: &str) -> Option<(&str, &str)> {
    // PowerShell.
    if let Some(rest) = command.strip_prefix("Set-Location ") {
        return rest.split_once(';').filter(|it| !it.0.contains('\n')).or_else(|| rest.split_once('\n'));
    }
    let rest = command.strip_prefix("cd ")?;
    rest.split_once("&&").filter(|it| !it.0.contains('\n')).or_else(|| rest.split_once('\n'))
}

/// The leading `&&` list of a command, which succeeded if the whole did. If a pipe, `;`, `||` or line break
/// ends the list, its last program is left out: that one may have failed.
pub(in crate::facts) fn surely_succeeded_part(command: &str) -> &str {
    let mut rest = command.trim();
    while let Some((_, after)) = after_cd(rest) {
        rest = after.trim_start();
    }
    match rest.find(['|', ';', '\n']) {
        Some(at) => rest[..at].rsplit_once("&&").map_or("", |it| it.0),
        None => rest,
    }
}

/// The beginning of a here-document, but not the `<<<<<<<` in a search for conflict markers.
static HERE_DOCUMENT: AsciiFirstRegex = AsciiFirstRegex::new(r#"(?:^|[^<])<<-?\s*['"\\]?[A-Za-z_]"#);

/// Whether a command contains a here-document or a script of several lines.
pub(in crate::facts) fn has_inline_script(command: &str) -> bool {
    let inline = [" -c ", " -e ", " -pe ", " --eval ", " -p "];
    HERE_DOCUMENT.is_match(command) || command.contains('\n') && inline.iter().any(|it| command.contains(it))
}

/// Whether a command changes nothing.
pub fn is_read_only(command: &str) -> bool {
    ParsedCommand::of(command).is_read_only()
}

/// Whether a command builds, checks or delivers the work.
pub fn checks_or_delivers(command: &str) -> bool {
    let command = ParsedCommand::of(command);
    let delivers = |words: Vec<&str>| {
        matches!(
            words[..],
            ["git", "commit" | "push" | "merge" | "rebase" | "cherry-pick", ..]
                | ["gh", "pr" | "release", "create" | "merge", ..]
        )
    };
    command.is_setup() || command.programs().any(delivers)
}

/// Whether a program searches text.
pub(in crate::facts::work) fn greps(program: &str) -> bool {
    matches!(program, "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack")
}

/// A command that ran, and the message with its output.
#[derive(Clone, Copy)]
pub(in crate::facts::work) struct Run<'a> {
    pub(in crate::facts::work) number: usize,
    pub(in crate::facts::work) command: &'a str,
    pub(in crate::facts::work) parsed: &'a ParsedCommand,
    pub(in crate::facts::work) output: &'a Output,
}

/// A command line, taken apart once.
pub(in crate::facts) struct ParsedCommand {
    programs: Vec<Program>,
    has_here_document: bool,
    /// All here-documents are written to files or substituted into an argument.
    only_writes_documents: bool,
    /// Whether it changes nothing, if it is PowerShell.
    powershell: Option<bool>,
    /// Whether it is PowerShell that only writes a here-string to a file.
    only_writes_text: bool,
}

impl ParsedCommand {
    pub(in crate::facts) fn of(command: &str) -> Self {
        let programs = tools::programs(command);
        let documents = HERE_DOCUMENT.find_iter(command).count();
        // Commit messages are often given this way.
        let said = command.matches("$(cat <<").count();
        let written = programs.iter().filter(|it| writes_document(&it.words)).count();
        Self {
            programs,
            has_here_document: documents > 0,
            only_writes_documents: said + written >= documents,
            powershell: powershell::is_read_only(command),
            only_writes_text: powershell::only_writes_text(command),
        }
    }

    /// The words of each program.
    pub(in crate::facts) fn programs(&self) -> impl Iterator<Item = Vec<&str>> {
        self.programs.iter().map(|it| it.words.iter().map(String::as_str).collect())
    }

    /// Whether it changes nothing.
    pub(in crate::facts) fn is_read_only(&self) -> bool {
        // A here-document usually writes something.
        self.powershell.unwrap_or_else(|| {
            !self.programs.is_empty()
                && !self.has_here_document
                && !self.writes_files()
                && self.programs().all(|words| program_is_read_only(&words))
        })
    }

    /// Whether what it prints is written to a file of the work.
    fn writes_files(&self) -> bool {
        let elsewhere = |it: &String| {
            ["/dev/", "/tmp/", "&", "$", "NUL"].iter().any(|of| it.trim_matches('"').starts_with(of))
        };
        self.programs.iter().flat_map(|it| &it.writes).any(|it| !elsewhere(it))
    }

    /// The operations that may change something, without those that write here-documents. Empty if a
    /// here-document is given to another program.
    pub(in crate::facts) fn operations(&self) -> Vec<Operation> {
        if !self.only_writes_documents {
            return Vec::new();
        }
        let acts = |it: &&Program| !(self.has_here_document && writes_document(&it.words));
        let words = self.programs.iter().filter(acts).map(|it| it.words.iter().map(String::as_str).collect());
        words.filter(|it: &Vec<&str>| !program_is_read_only(it)).filter_map(|it| operation(&it)).collect()
    }

    /// Each program with its arguments, without flags; read-only programs only if there are no others.
    /// `git mv` counts as `mv`. Empty if a script is fed to a program.
    pub(in crate::facts) fn steps(&self) -> Vec<Vec<&str>> {
        let acts = !self.is_read_only();
        let told = self.programs().filter(|it| !acts || !program_is_read_only(it)).filter_map(step);
        let steps: Vec<Vec<&str>> = told.collect();
        let fed = self.has_here_document && steps.iter().any(|it| it.len() == 1);
        if fed { Vec::new() } else { steps }
    }

    /// Names of its programs with their subcommands, without those that only print or change directory.
    pub(in crate::facts) fn names(&self) -> Vec<String> {
        const AROUND: [&str; 9] = ["cd", "echo", "printf", "cat", "head", "tail", "true", "export", "set"];
        let telling = self.programs().filter(|it| !AROUND.contains(&it[0]));
        telling.filter_map(|it| operation(&it)).map(|it| it.name).collect()
    }

    /// Whether it installs `module`. `project`: the name of the project, which `install .` installs.
    pub(in crate::facts) fn installs(&self, module: &str, project: Option<&str>) -> bool {
        let plain = |it: &str| -> String {
            let it = it.trim_matches(['"', '\'']);
            let version = it.char_indices().skip(1).find(|it| "=<>~!@[;".contains(it.1));
            it[..version.map_or(it.len(), |it| it.0)].to_lowercase().replace('_', "-")
        };
        let package = plain(module.split('.').next().unwrap_or(module));
        let local = |it: &&str| matches!(*it, "." | "./") || it.starts_with(".[");
        self.programs().any(|words| {
            let Some(at) =
                words.iter().take(4).position(|it| matches!(*it, "install" | "add" | "i" | "require"))
            else {
                return false;
            };
            let given = &words[at + 1..];
            given.iter().any(|it| plain(it) == package)
                || given.iter().any(local) && project.is_some_and(|it| plain(it) == package)
        })
    }

    /// Whether one of its programs is `name`.
    pub(in crate::facts) fn runs(&self, name: &str) -> bool {
        self.programs().any(|it| file_name(it[0]) == name)
    }

    /// Whether `other` gives the same arguments, at least two, to another program: `rsync a b` for `cp a b`.
    pub(in crate::facts) fn same_by_other_program(&self, other: &Self) -> bool {
        let (own, others) = (self.steps(), other.steps());
        own.iter()
            .any(|it| it.len() > 2 && others.iter().any(|other| other[0] != it[0] && other[1..] == it[1..]))
    }

    /// Whether `other` does the same with another program in place of `missing`: `python3` for `python`.
    pub(in crate::facts) fn runs_under_other_name(&self, missing: &str, other: &Self) -> bool {
        let own = |it: &Vec<&str>| file_name(it[0]) == missing && it.len() > 1;
        self.programs().filter(own).any(|failed| {
            other
                .programs()
                .any(|it| file_name(it[0]) != missing && (it.ends_with(&failed) || it[1..] == failed[1..]))
        })
    }

    /// Whether `other` has all steps of this, except those of the program `missing`.
    pub(in crate::facts) fn goes_without(&self, missing: &str, other: &Self) -> bool {
        let done = other.steps();
        let mut left = self.steps().into_iter().filter(|it| file_name(it[0]) != missing).peekable();
        left.peek().is_some() && left.all(|it| done.contains(&it))
    }

    /// Whether it only writes here-documents, or a here-string, to files.
    pub(in crate::facts) fn only_writes_files(&self) -> bool {
        let prepares = |it: &Vec<&str>| match it[0] {
            "cat" => it.len() == 1,
            "tee" | "cd" | "mkdir" | "mktemp" | "echo" | "printf" | "chmod" | "ls" | "wc" => true,
            other => other.ends_with("=$"),
        };
        self.only_writes_text
            || self.has_here_document
                && self.programs().all(|it| prepares(&it))
                && self.programs().any(|it| matches!(it[0], "cat" | "tee"))
    }

    /// Whether its last program searches text or files.
    pub(in crate::facts) fn searches(&self) -> bool {
        let last = self.programs().last();
        last.is_some_and(|words| match words[..] {
            ["git", "grep", ..] => true,
            _ => greps(file_name(words[0])) || file_name(words[0]) == "fd",
        })
    }

    /// Whether it only asks if something exists, so that failing is an answer: `command -v x`, `test -f x`.
    pub(in crate::facts) fn only_asks(&self) -> bool {
        let asks = |it: &Vec<&str>| {
            matches!(
                it[..],
                ["which" | "type" | "test" | "[" | "[[", ..]
                    | ["command", "-v" | "-V", ..]
                    | [_, "--version" | "-V"]
            )
        };
        let around = |it: &Vec<&str>| matches!(it[0], "cd" | "echo" | "printf" | "true" | "head" | "tail");
        self.programs().any(|it| asks(&it)) && self.programs().all(|it| asks(&it) || around(&it))
    }

    /// Whether its last program changes nothing.
    pub(in crate::facts) fn ends_read_only(&self) -> bool {
        self.programs().last().is_some_and(|it| program_is_read_only(&it))
    }

    /// Whether it builds, checks or runs the project.
    pub(in crate::facts) fn is_setup(&self) -> bool {
        // A task may have a suffix, `test:unit`, and a directory as prefix, `//apps/api:test`.
        let task = |word: &str| {
            let task = word.strip_prefix("//").and_then(|it| it.split_once(':')).map_or(word, |it| it.1);
            SETUP_WORDS.contains(&task.split(':').next().unwrap_or_default())
        };
        self.programs().any(|words| words.iter().take(4).any(|it| task(it)))
    }

    /// The words of each program, and the directory in which it runs.
    pub(super) fn programs_with_dirs(&self) -> impl Iterator<Item = (Vec<&str>, Option<&str>)> {
        self.programs().zip(self.programs.iter().map(|it| it.dir.as_deref()))
    }
}

/// Whether a program, as far as its words tell, only writes its input to a file: `cat`, `tee a`.
fn writes_document(words: &[String]) -> bool {
    match words {
        [head] => head == "cat",
        [head, ..] => head == "tee",
        [] => false,
    }
}

/// A program with its arguments, without flags; `None` if it only prints or prepares.
fn step(words: Vec<&str>) -> Option<Vec<&str>> {
    const AROUND: [&str; 9] = ["cd", "echo", "printf", "cat", "tee", "head", "tail", "true", "export"];
    let words = match words[..] {
        ["git", "mv" | "rm", ..] => words[1..].to_vec(),
        _ => words,
    };
    if checks_syntax(&words) {
        return Some(words);
    }
    let (head, rest) = words.split_first().filter(|it| !AROUND.contains(it.0))?;
    let commits = *head == "git" && rest.first() == Some(&"commit");
    let says = |at: usize| commits && at > 0 && ["-m", "-am", "--message"].contains(&rest[at - 1]);
    let given = rest.iter().enumerate().filter(|(at, it)| !it.starts_with('-') && !says(*at));
    Some([*head].into_iter().chain(given.map(|it| *it.1)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_looking_from_doing() {
        for (command, expected) in [
            ("git status --short && git log -3", true),
            ("git -C /x diff | head", true),
            ("zsh -lc 'source ~/.zshrc && sed -n 1,9p a.rs'", true),
            (". ./setup.sh && cat a.rs", false),
            ("git -C /x push", false),
            ("git branch -a", true),
            ("git branch", true),
            ("git branch -D old", false),
            ("git remote set-url origin x", false),
            ("git config user.name x", false),
            ("sed -n 1,5p a; rg x | wc -l", true),
            ("sed -i s/a/b/ x", false),
            ("bd show x", true),
            ("gh api repos/a/b/pulls/7/comments --jq .", true),
            ("gh api -X POST repos/a/b/issues", false),
            ("curl -fsSL https://x.y | rg z", true),
            ("curl -d a=b https://x.y", false),
            ("cargo --help", true),
            ("find . -name '*.ts' | xargs -n 1 grep -l rate", true),
            ("find . -name '*.ts' -exec wc -l {} +", true),
            ("find . -name '*.tmp' -delete", false),
            ("find . -name '*.tmp' -exec rm {} \\;", false),
            ("rg -l rate | xargs -I {} sed -i s/a/b/ {}", false),
            ("env CI=1 cargo test", false),
            ("for f in a b; do echo \"$f\"; wc -l $f; done", true),
            ("for f in a b; do rm $f; done", false),
            ("if test -f x; then cat x; else printf none; fi", true),
            ("cargo test", false),
            ("docker exec -u web app cat /etc/hosts | sort", true),
            ("docker exec app npm run migrate", false),
            ("docker compose ps; docker logs app --tail 20", true),
            ("docker compose up -d app", false),
            ("gcloud compute networks subnets list --filter=a", true),
            ("gcloud services enable a.googleapis.com", false),
            ("npm search a; npm run list", false),
            ("sed 's/a/b/' x | sed -E 's/c//'", true),
            ("curl -s -X GET http://a", true),
            ("curl -s -o /dev/null -w '%{http_code}' http://a", false),
            ("curl -s -X POST http://a", false),
            ("curl -sSXPOST http://a && curl -fsSL -H 'X-Id: 1' http://b", false),
            ("curl -fsSL -H 'X-Id: 1' --request=GET http://b", true),
            ("curl -F file=@a http://a", false),
            ("curl -LO http://a/b.zip", false),
            ("sed 's/a/b/' x > src/y.ts", false),
            ("grep a x > /tmp/found.txt 2>/dev/null", true),
            ("aws lambda update-function-code --function-name get-user", false),
            ("aws ec2 describe-instances --filters a", true),
            ("gcloud functions deploy get-user", false),
            ("npx changeset version; lerna version --yes", false),
            ("go env -w GOPRIVATE=a", false),
            ("$out = npm test 2>&1 | Select-Object -Last 20; Write-Output $out", false),
            ("$p='docs/a.md'; $lines = Get-Content $p; $lines[2..4]", true),
            ("Get-ChildItem *.log | % { rm $_ }", false),
            ("Get-Process a | ForEach-Object { $_.Kill() }", false),
            ("LOG=a.log; for i in 1 2; do [ -f \"$LOG\" ] && break; done; tail -5 \"$LOG\"", true),
            (
                "pwsh -NoLogo -NoProfile -Command 'Get-ChildItem -Recurse | ForEach-Object { $_.FullName }'",
                true,
            ),
            ("pwsh -NoLogo -Command '$a = Get-Content x; $a | Set-Content y'", false),
            ("Get-ChildItem x | ForEach-Object { Remove-Item $_ }", false),
            ("", false),
        ] {
            assert_eq!(is_read_only(command), expected, "{command}");
        }
        for (command, expected) in [
            ("mkdir -p src/a && ls src", true),
            ("New-Item -ItemType Directory -Force -Path a | Out-Null", true),
            ("New-Item -Path a.txt -Value b", false),
            ("git fetch --all --prune", true),
            ("git fetch origin pull/12/head:pr-12", false),
            ("mkdir -p a && ls b > a/list.txt", false),
            ("chmod +x a.sh", true),
            ("chmod -R 700 /srv/data", false),
            ("mkdir -p b && cp a b", false),
            ("ls", false),
        ] {
            assert_eq!(only_prepares(command), expected, "{command}");
        }
        let kinds = |it: &str| {
            ParsedCommand::of(it).operations().into_iter().map(|it| it.name).collect::<Vec<_>>().join(", ")
        };
        for (command, expected) in [
            ("cd a && CI=1 npm run check -s 2>&1 | grep -c error", "npm run check"),
            ("git -C /x fetch origin && git status", "git fetch"),
            ("npx tsc --noEmit", "tsc"),
            ("bun ./src/cli.ts eval run a.yaml -v", "bun src/cli.ts eval run"),
            ("node a.js", "node a.js"),
            ("uv run python3.12 -m pytest -q a.py", "pytest"),
            ("fnm exec --using=24 -- corepack pnpm exec vitest run", "vitest run"),
            ("npx", "npx"),
            ("pnpm --filter @a/web test && make -C src lint", "pnpm test, make lint"),
            ("pnpm -C ui --filter web test && make -j4 -C src lint", "pnpm test, make lint"),
            ("cat > a.ts <<'E'\nrm x\nE\nnpm run check", "npm run check"),
            ("git commit -m \"$(cat <<'E'\na.b\nE\n)\"", "git commit"),
            ("./gradlew :app:test", "gradlew"),
            ("python3 - <<'E'\nprint(1)\nE", ""),
        ] {
            assert_eq!(kinds(command), expected, "{command}");
        }
        let there =
            "cd go && go test -race ./a\ncd .. && git diff --check && git status --short\ngh stack view";
        assert_eq!(ParsedCommand::of(there).git_directory().as_deref(), Some("go/.."));
        assert_eq!(
            ParsedCommand::of("bun test src/a.test.ts -t x").operations()[0].targets,
            ["src/a.test.ts"]
        );
        assert_eq!(
            ParsedCommand::of("pnpm -C ui --filter=web test -t x").operations()[0].limits,
            ["x", "ui", "web"]
        );
        for (command, expected) in [
            ("cat > a.md <<'E'\nrm x\nE", true),
            ("mkdir -p a && tee a/b <<E\nx\nE", true),
            ("cat > a.py <<E\nx\nE\npython a.py", false),
            ("python3 - <<E\nx\nE", false),
            ("cat a.md", false),
            ("@'\n# It's\n'@ | Set-Content -Path \"a b.md\"", true),
            ("$t = @\"\nx\n\"@\nOut-File a.md -InputObject $t", true),
            ("@'\nx\n'@ | Set-Content a.ps1; ./a.ps1", false),
            ("@'\nx\n'@ | python -", false),
            ("@'\nx\n'@ | python -\n@'\ny\n'@ | Set-Content a.md", false),
            ("@'\nx\n'@ | Set-Content a.ps1 && ./a.ps1", false),
            ("@\"\n$(rm x)\n\"@ | Set-Content a.md", false),
        ] {
            assert_eq!(ParsedCommand::of(command).only_writes_files(), expected, "{command}");
        }
        assert_eq!(command_key("npm test || true"), command_key("npm test 2>&1"));
        for (command, expected) in [
            ("cd a\nmake 2>&1", "make 2>&1"),
            ("cd a && make && make test | tail -3", "make "),
            ("make; ls", ""),
            ("make || true", ""),
        ] {
            assert_eq!(surely_succeeded_part(command), expected, "{command}");
        }
        assert_eq!(command_key("cd /a && cargo test 2>&1 | tail -5"), command_key("cargo test"));
        assert_eq!(
            command_key("git add . && git commit -m 'a'"),
            command_key("git add . && git commit -m 'b'")
        );
        assert_eq!(
            ParsedCommand::of("git checkout -- a.rs b.rs && git restore c.rs").restored_files(),
            ["a.rs", "b.rs", "c.rs"]
        );
        assert_eq!(ParsedCommand::of("git checkout src/a.rs").restored_files(), ["src/a.rs"]);
        assert!(ParsedCommand::of("git checkout -b new").restored_files().is_empty());
        assert_eq!(
            ParsedCommand::of("git show origin/main:src/a.rs | sed -n 1,9p").files_of_revision(),
            ["src/a.rs"]
        );
        assert_eq!(
            ParsedCommand::of("rg -n 'a/b c' apps/cli packages/core/src | head").searched_paths(),
            ["apps/cli", "packages/core/src"]
        );
        assert_eq!(ParsedCommand::of("git show --stat HEAD").files_of_revision(), Vec::<String>::new());
        assert!(ParsedCommand::of("git restore x").discards_changes(false));
        assert!(!ParsedCommand::of("git restore --staged x").discards_changes(false));
    }
}
