//! Programs: which of them and their subcommands only look around, test, build or act, and what they print about errors
//! and exit codes. Data only.

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

/// Beginnings of lines that programs wrote.
pub(super) const LOG_OPENINGS: &[&str] = &[
    "$ ", "❯ ", "➜ ", "% ", "⏺", "⎿", "│", "╭", "╰", "├", "└", "┃", "[Request interrupted",
    "Operation stopped by hook", "Caveat:", "Traceback", "File \"", "ERROR", "WARN", "INFO", "DEBUG", "TRACE",
    "FATAL", "error:", "error[", "warning:", "Error:", "Warning:", "npm ERR", "npm WARN", "panic:",
    "goroutine ", "thread '", "diff --git", "index ", "@@ ", "+++ ", "--- ", "[INFO", "[ERROR", "[WARN",
    "[DEBUG", "TypeError", "SyntaxError", "ReferenceError", "ValueError", "Exception", "in: ", "remote: ",
    "fatal: ",
];

/// Keywords of code before the name that they define.
pub(super) const DEFINING: &[&str] = &[
    "fn", "func", "def", "function", "class", "struct", "enum",
    "trait", "interface", "type", "const", "fun", "module",
];

/// Beginnings of lines that say that a checker or runner found errors.
pub(super) const COUNTED_AS_PROBLEM: &[&str] = &[
    "error TS", "go: cannot ", "error: Failed to spawn", "make: *** ", "** TEST FAILED **",
    "** BUILD FAILED **", "[warn] Code style issues found", "✖ failing tests:", "level=error",
    "Error: unknown flag: ", "error: unknown option ", "Missing required argument",
    "This is not the tsc command",
];

/// Beginnings of the Go compiler's errors, after their position.
pub(super) const GO_ERRORS: &[&str] = &[
    "undefined: ", "cannot use ", "not enough ", "too many ", "missing return", "declared and not used",
    "syntax error", "assignment mismatch", "invalid operation", "unknown field ",
];

/// Beginnings of commands that print stored text.
pub(super) const SHOWING: &[&str] = &[
    "cat ", "nl ", "sed -n", "git show", "git diff", "git log", "git blame", "rg ",
    "ast-grep ", "gh api ", "gh run view", "gh pr view", "curl ", "xargs sed",
];

/// Programs that decide the exit code of a pipe, whatever came before them.
pub(super) const FILTERS: &[&str] = &[
    "grep", "egrep", "rg", "wc", "awk", "cut", "sort", "uniq", "sed", "xargs", "jq", "Select-Object",
];

/// Phrases before an exit code (Claude Code 2.1, Codex 0.169, Gemini CLI 0.61, pi 0.50, OpenHands SDK 1).
pub(super) const EXIT_CODES: &[&str] = &[
    "Exit code ", "exited with code ", "Exit Code: ",
    "\"exit_code\":", "exit code: ", "exit code ", "exit status ",
];

/// Beginnings of outputs that tell a failure without being marked as failed.
pub(super) const FAILED_EDITS: &[&str] = &[
    "Your proposed edit has introduced new syntax error", "<tool_use_error>", "apply_patch verification failed", "Error:", "error:", "failed",
];

/// Parts of a compiler's or linter's error line that name the kind of error.
pub(super) const ERROR_NUMBERS: &[&str] = &["error[E", "): error ", ": error TS", " - error TS", " error MD", "panicked at"];

/// Beginnings of lines that say what failed, was refused or conflicts.
pub(super) const FAILURES: &[&str] = &[
    "FAIL ", "FAILED ", "(fail)", "✗ ", "not ok ", "CONFLICT ", "! [rejected]", "! [remote rejected]",
];

/// Beginnings of lines that are labeled as errors.
pub(super) const ERROR_LABELS: &[&str] = &[
    "error:", "Error:", "ERROR:", "fatal:", "panic:", "npm ERR!", "npm error", "Uncaught ",
];

/// Parts of lines that say why something was not done.
pub(super) const REFUSALS: &[&str] = &[
    "command not found", "are ignored by one of your", "ermission denied", " error: ", ": not found", "ERROR ", "is not a valid statement",
];

/// Extensions that make a bare name a file rather than `object.member` or `e.g`.
pub(super) const FILE_ENDINGS: &[&str] = &[
    ".rs", ".ts", ".tsx", ".js", ".jsx", ".py", ".go", ".md", ".json", ".toml", ".yaml", ".yml", ".html",
    ".css", ".sh", ".java", ".kt", ".swift", ".cpp", ".hpp", ".rb", ".php", ".sql", ".txt",
];
