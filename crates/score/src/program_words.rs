//! Names of programs and their subcommands: which only look around, test, build or act. Data only.

/// Programs that only look around, so that their success is no fact.
pub(super) const LOOKING: &[&str] = &[
    "ls", "ll", "cat", "sed", "head", "tail", "nl", "less", "more", "grep", "rg", "egrep", "find", "fd",
    "pwd", "echo", "printf", "which", "type", "wc", "cd", "tree", "stat", "file", "du", "df", "env",
    "printenv", "date", "whoami", "hostname", "uname", "ps", "awk", "sort", "uniq", "cut", "jq", "test", "[",
    "true", "sleep", "export", "diff", "open", "goto", "scroll_down", "scroll_up", "find_file", "search_file",
    "search_dir", "edit", "create", "submit", "for", "while", "if", "done", "fi", "exit", "xxd", "strings",
    "basename", "dirname", "realpath", "column", "tmux", "ag", "bat", "set", "mkdir", "touch", "chmod",
    "break", "cmp", "comm", "continue", "dig", "dir", "hexdump", "lsof", "md5sum", "mdfind", "mdls",
    "netstat", "nslookup", "nproc", "nvidia-smi", "pgrep", "ping", "read", "seq", "sha256sum", "ss", "uptime",
    "Out-Null", "Out-String", "Sort-Object", "Write-Host", "Write-Output",
];

/// Verbs of PowerShell's commands that only look around: `Get-Content`.
pub(super) const LOOKING_VERBS: &[&str] = &["Compare", "ConvertFrom", "ConvertTo", "Format", "Get", "Measure", "Resolve", "Select", "Test"];

/// Programs of cloud providers, whose verb may stand behind any number of nouns, and the verbs.
pub(super) const CLOUDS: &[&str] = &["aws", "az", "doctl", "flyctl", "gcloud", "heroku"];
pub(super) const CLOUD_LOOKING: &[&str] = &["describe", "get", "list", "show"];
pub(super) const CLOUD_ACTING: &[&str] = &[
    "add", "apply", "attach", "cancel", "copy", "create", "delete", "deploy", "disable", "enable", "invoke", "put", "remove", "reset", "restart", "run", "send", "set", "start", "stop", "terminate", "update",
];

/// Subcommands that only look around.
pub(super) const LOOKING_PAIRS: &[&str] = &[
    "git status", "git diff", "git log", "git show", "git branch", "git remote", "git rev-parse",
    "git ls-files", "git blame", "git reflog", "git worktree", "git config", "git describe", "git merge-base",
    "git cat-file", "git grep", "git ls-tree", "git notes", "git for-each-ref", "git fetch", "git stash",
    "gh pr", "gh issue", "gh api", "gh repo", "gh run", "gh auth", "gh search", "npm ls", "npm view",
    "npm list", "npm info", "cargo tree", "cargo metadata", "go list", "go env", "go doc", "go version",
    "docker ps", "docker images", "docker stats", "docker top", "git ls-remote", "systemctl is-active", "bd blocked", "bd show", "bd list", "bd ready", "python --version",
    "node --version",
];

/// Second words that only look around, after any program.
pub(super) const LOOKING_SECOND: &[&str] = &[
    "status", "list", "ls", "show", "capture", "describe", "info", "inspect", "logs", "view", "get", "statuses", "--help",
    "--version", "help", "version", "-V", "-h", "search", "where", "wait", "whoami",
];

/// Subcommands with effects, although their first two words are in the list above.
pub(super) const ACTING: &[&str] = &[
    "gh pr create", "gh pr merge", "gh pr edit", "gh pr close", "gh pr comment", "gh pr review",
    "gh pr ready", "gh issue create", "gh issue close", "gh issue comment", "gh issue edit",
    "gh release create", "git worktree add", "git worktree remove", "git branch -d", "git branch -D",
    "git stash pop", "git stash drop", "git remote set-url", "git remote add",
];

/// Words of commands whose success supports a claim that tests pass.
pub(super) const TESTING: &[&str] = &[
    "test", "pytest", "jest", "vitest", "mocha", "rspec", "ctest", "nextest", "check", "ci", "tox", "phpunit",
    "unittest", "verify",
];

/// Words of commands whose success supports a claim that the code builds.
pub(super) const BUILDING: &[&str] = &[
    "build", "check", "compile", "make", "tsc", "tsgo", "vet", "clippy", "lint", "test", "ci", "gradle",
    "mvn", "install", "run",
];

/// Programs that agents run: a code span that starts with one and has an argument is a command.
pub(super) const PROGRAMS: &[&str] = &[
    "git", "gh", "npm", "npx", "pnpm", "yarn", "bun", "bunx", "node", "deno", "cargo", "rustc", "go",
    "python", "python3", "pip", "pip3", "uv", "pytest", "make", "docker", "kubectl", "terraform", "curl",
    "wget", "mvn", "gradle", "dotnet", "swift", "ruby", "bundle", "rake", "php", "composer", "mix", "tsc",
    "eslint", "ruff", "just", "bash",
];
