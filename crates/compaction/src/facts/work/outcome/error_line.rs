//! The line of an output that says what went wrong.

use std::collections::HashSet;

use super::exit_code;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, flat};

/// What kind of line states an error, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ErrorLine {
    /// A failed test: its name says more than what its assertion printed.
    Test,
    /// An error of a compiler, with the location.
    Compiler,
    /// A checker that crashed.
    Crash,
    Message,
    /// A phrase that a program which succeeds may print too.
    Phrase,
    /// Only marks a failure: beside an exit code of 0 it means nothing.
    Mark,
    /// A runner of hooks names the failed hook; the failure is printed below.
    Hook,
}

static ERROR_LINES: [(ErrorLine, AsciiFirstRegex); 7] = [
    (
        ErrorLine::Test,
        AsciiFirstRegex::new(
            r"(?m)^(?:\(fail\) |--- FAIL: |FAILED \S+::|test \S+ \.\.\. FAILED|not ok \d+ |\s*\d+ - \S+ \((?:Failed|Timeout)\)|\S+ > .+ FAILED$)",
        ),
    ),
    (
        ErrorLine::Compiler,
        AsciiFirstRegex::new(
            r"(?m)^\s*(?:(?:[A-Za-z]:)?[^\s:(]+|[A-Za-z]:\\[^:(\n]+)[(:]\d+(?:[,:]\d+\)?)?:? (?:- )?(?:fatal )?error\b(?:: | (?:TS|MD|BC|C|CA|CP|CS|FS|LNK|MSB|NETSDK|NU)\d{3})|^(?:vet(?:\.exe)?: )?\S+\.go:\d+:\d+: (?:undefined: |cannot use |not enough |too many |missing return|declared and not used|\x22[^\x22\n]+\x22 imported (?:as \w+ )?and not used|syntax error|assignment mismatch|invalid operation|unknown field )|^[A-Z]{1,4}\d{3,4} (?:\[\*\] )?[A-Z`]",
        ),
    ),
    (
        ErrorLine::Crash,
        AsciiFirstRegex::new(
            r"(?m)^Oops! Something went wrong! :\($|^\s*Exit code:\s+SIG(?:ABRT|BUS|FPE|ILL|SEGV)$",
        ),
    ),
    (
        ErrorLine::Message,
        AsciiFirstRegex::new(concat!(
            r"(?m)(?:^|\s)(?:(?:error(?:\[\w+\])?|Error|[a-z]\w*[a-z](?:Error|Exception)|\w+\.?\w*(?:Error|Exception)):(?:[^:\n]|$)|Error \[[A-Z][A-Z0-9_]+\]:|ERROR\b|fatal:|FATAL\b|Fatal error:|panic:",
            r"|error TS\d+|thread '.*' (?:\(\d+\) )?panicked|CONFLICT|! \[(?:remote )?rejected\]|AssertionError|SyntaxError|undefined reference",
            r"|npm (?:ERR!|error)|\[ERR_[A-Z0-9_]+\] |ERR_PNPM_[A-Z0-9_]+ |TypeError|OCI runtime exec failed|Error response from daemon: |exec format error|version solving failed|(?:Format|Code style) issues found in )|^Missing required (?:argument|option|flag|parameter|positional)",
        )),
    ),
    (
        ErrorLine::Phrase,
        AsciiFirstRegex::new(concat!(
            r"(?m)(?:command not found|[Nn]o such file or directory|[Pp]ermission denied|[Nn]ot found|[Cc]annot |[Cc]ould not |[Ff]ailed to |[Uu]nable to |[Ii]llegal option",
            r"|unrecognized|unexpected argument|[Uu]nknown (?:flag|option|argument|command|subcommand)\b|is not recognized|is not a valid \w+|declared and not used|undefined:|timed out|rejected|[Aa]ssertion .*failed|did not match|build failed|non-fast-forward|^\S+\.\w+:\d+:\d+: \S)",
        )),
    ),
    (
        ErrorLine::Mark,
        AsciiFirstRegex::new(r"(?m)^\s*(?:FAIL\b|--- FAIL|✗|✖|❌|×|not ok\b|FAILED\b|E\s{2,})"),
    ),
    (
        ErrorLine::Hook,
        AsciiFirstRegex::new(r"(?m)^.*\.{3,}\s*Failed\s*$|^\w*make(?:\[\d+\])?: \*\*\* .*Error \d+$"),
    ),
];
/// Lines that say no more than that something failed.
static UNINFORMATIVE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:debugger attached.*|(?:categoryinfo|fullyqualifiederrorid) +: .*|failed to update packages|at line:\d+ char:\d+|dotenv@[\d.]+\] injecting env .*|_{3,} error .* _{3,}|\S*sh: line \d+: warning: here-document .*|warning: connection is not using a post-quantum .*|this session may be vulnerable to .store now, decrypt later. .*|the server may need to be upgraded\. see https://openssh\.com/.*|\d+(?:\.\d+)?m?s|now using node v[\d.]+ .*|wsl: .*|zoxide: detected a possible configuration issue|please ensure that zoxide .*|if the issue persists, consider filing .*|https://github\.com/ajeetdsouza/zoxide/issues|disable this message by setting _zo_doctor=0|(?-i:[A-Z][A-Z ]+[A-Z] {2,}ERROR)|waiting for the debugger.*|chunk id.*|wall time.*|> .*|\$ .*|warning: truncated output.*|\(eval\):\w+:\d+: no such hash table element.*|\[[\w:-]+\] \$ .*|error: script \S+ exited with code \d+|error: failed to push some refs to .*|husky - .*failed.*|read more about this behavior here: .*|\[\w+\] error task failed|exit code:? -?\d+|exception ignored while flushing sys\.stdout:|brokenpipeerror: .*|\[?err_pnpm_recursive_\w+\]?.*|/[^\s:]+:|done in [\d.]+m?s\b.*|start at +[\d:]+|duration +[\d.]+m?s\b.*|tests +no tests|error|fail(?:ed)?|errors?:|command exited with code \d+|process exited with code \d+|command aborted|\[?elifecycle\]?\s+command failed with exit code \d+\.?|npm (?:err!|error)(?: (?:errno|path|lifecycle|workspace|location|command)\b.*)?)\W*$",
);
/// Numbered lines of code, as viewers print them: not an error message.
static NUMBERED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^\s*\d+\s*(?:[|→\t]|:(?:\D|\d{1,2}(?:[^:\d]|$)|\d{3}|$))");
/// Numbered lines of code that a test runner quotes. A line that begins with a time is none of these.
static QUOTED: AsciiFirstRegex = AsciiFirstRegex::new(r"^\d+\s*(?:[|→\t]|: )");
/// Lines of code, diffs and logs: an error in them did not occur in this run.
static CODE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"^\s*(?:(?:[-+]\s*)?(?:\}?\s*(?:except|catch)\b|raise\b|throw\b|return\b|if\b|elif\b|const\b|let\b|var\b|//|\*\s|<!--|#\s)",
    r"|[-+] ?[\w$./-]+=|@@ )|^[\w./\\@\[\]-]+\.\w+[:-]\d+[:-](?:\d+:)?\s*(?:except|catch|raise|throw|return|if|const|let|var|//|#|\*)\b",
    // A field of a type: `error: DetailedError;`.
    r"|^\s*\w+\??: [\w<>\[\]| ]+;$",
    // A test that passed, perhaps by seeing an expected error.
    r"|^\W*(?:PASS(?:ED)?|ok \d+)\b",
    // What Apple's system libraries log about a program.
    r"|^\d{4}-\d\d-\d\d [\d:.]+[-+]\d{4} \S+\[\d+:\d+\] \[",
));
/// Progress lines, packages that passed or have no tests (Go), and separators.
static PROGRESS: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"^(?:[=*#~+_-]{3,}|[✓✔√?] |Progress: |(?:Test Files|Tests) {2,}\d|(?:ok  |\?   )\t|(?:Already|Switched to|On branch|HEAD is now|Building|Built|Compiling|Checking|Creating|Downloading|Downloaded|Fetching|Finished|Installed|Installing|",
    r"Locking|Prepared|Linting|Resolved|Resolving|Running|Starting|Uninstalled|Updating|Using|Audited|Collecting|Cloning|Generating|yarn run|make\[?\d*\]?: (?:Entering|Leaving))\b)",
));

/// Maximum bytes of a line that states an error: a longer one is a page or a record.
const LONGEST: usize = 4_000;

/// The first failed test as mocha lists it below the counts: suites, name, error.
static LISTED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?m)^ +\d+ failing\s*\n\s*\n? +1\) (\S.*(?:\n +\S.*){0,4}?):\s*\n(?:\s*\n)* +(\S.*)$",
);

/// Whether a line says more than that something failed.
pub(super) fn is_informative(line: &str) -> bool {
    !line.trim().is_empty() && !UNINFORMATIVE.is_match(line)
}

/// The first line of the most certain kind.
pub(super) fn error_line(text: &str) -> Option<(String, ErrorLine)> {
    if let Some(found) = LISTED.captures(text) {
        let below = &text[found.get(0).map_or(0, |it| it.end())..];
        // The values stand below an error that ends with a colon.
        let values = below.lines().map(str::trim).find(|it| !it.is_empty() && found[2].ends_with(':'));
        let told = format!("{}: {} {}", &found[1], &found[2], values.unwrap_or_default());
        return Some((flat(clip(&told, 220).0), ErrorLine::Test));
    }
    for (kind, pattern) in &ERROR_LINES {
        for found in pattern.find_iter(text).take(20) {
            // The match may begin with the preceding line break.
            let start = text[..found.end()].rfind('\n').map_or(0, |it| it + 1);
            let line = text[start..].lines().next().unwrap_or_default().trim();
            if !UNINFORMATIVE.is_match(line)
                && !NUMBERED.is_match(line)
                && !CODE.is_match(line)
                && line.len() <= LONGEST
                && !line.trim_start_matches(|it: char| !it.is_alphanumeric()).starts_with("0 errors")
                && !line.contains("(0 errors, ")
                && line.len() > 3
            {
                let (above, from) = text.split_at(start);
                let marked = line.starts_with(['×', '✖', '✗', '❌']);
                let before = marked.then(|| linter_location(above)).flatten();
                let told = before.map_or(line.to_string(), |it| format!("{it}: {line}"));
                let mut told = npm_error(line, from).unwrap_or(told);
                if matches!(kind, ErrorLine::Test | ErrorLine::Crash)
                    && let Some(cause) = cause(above, from)
                {
                    told.push_str(&format!(": {cause}"));
                }
                return Some((flat(clip(&told, 220).0), *kind));
            }
        }
    }
    None
}

/// The lines that state errors for certain, each once, in order: at most the first and last three.
pub fn error_lines(text: &str) -> Vec<&str> {
    const EACH: usize = 3;
    let certain = || ERROR_LINES.iter().filter(|it| it.0 <= ErrorLine::Message);
    let states = |it: &str| {
        it.len() <= LONGEST
            && certain().any(|(_, pattern)| pattern.is_match(it))
            && is_informative(it)
            && !NUMBERED.is_match(it)
            && !CODE.is_match(it)
    };
    let mut seen = HashSet::new();
    let mut out: Vec<&str> =
        text.lines().map(str::trim).filter(|it| states(it) && seen.insert(*it)).collect();
    if out.len() > 2 * EACH {
        out.drain(EACH..out.len() - EACH);
    }
    out
}

/// The cause of a failed test, whose line `from` begins with: bun prints it above, Go and TAP below.
fn cause<'a>(above: &'a str, from: &'a str) -> Option<&'a str> {
    /// Maximum lines between a test's name and its cause, which may include a stack trace.
    const NEAR: usize = 20;
    static CAUSE: AsciiFirstRegex =
        AsciiFirstRegex::new(r"^\s*(?:\w+(?:\.\w+)*(?:Error|Exception): |[Ee]rror: |\S+_test\.go:\d+: )\S");
    let of_a_test = |line: &&str| {
        ["(fail)", "(pass)", "--- ", "not ok ", "ok ", "=== "].iter().any(|it| line.starts_with(it))
    };
    let says = |line: &&str| line.len() < 400 && CAUSE.is_match(line) && !UNINFORMATIVE.is_match(line);
    let bun = from.starts_with("(fail)");
    let near: Vec<&str> = if bun {
        above.lines().rev().take(NEAR).collect()
    } else {
        from.lines().skip(1).take(NEAR).collect()
    };
    near.into_iter().take_while(|it| !of_a_test(it)).find(says).map(str::trim)
}

/// An npm error code, with the message on the line below.
fn npm_error(line: &str, rest: &str) -> Option<String> {
    let prefix = ["npm error ", "npm ERR! "].into_iter().find(|it| line.starts_with(it))?;
    line[prefix.len()..].strip_prefix("code ")?;
    let next = rest.lines().skip(1).find(|it| !UNINFORMATIVE.is_match(it))?;
    Some(format!("{line}: {}", next.strip_prefix(prefix)?))
}

/// Location and message of the panic in a failed Rust test, which include the test's name.
pub(super) fn panic_location(error: &str, text: &str) -> Option<String> {
    let name = error.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    let start = text.find(&format!("thread '{name}' "))?;
    let mut lines = text[start..].lines();
    let place = lines.next().filter(|it| it.contains("panicked at"))?;
    let why = lines.next().unwrap_or_default();
    Some(flat(clip(&format!("{place} {why}"), 220).0))
}

/// The exception at the end of the last Python traceback.
pub(super) fn raised(text: &str) -> Option<String> {
    let (_, below) = text.rsplit_once("Traceback (most recent call last):\n")?;
    let line = below.lines().find(|it| !it.starts_with(char::is_whitespace) && !it.is_empty())?;
    Some(flat(clip(line, 220).0))
}

/// The location on the line above a message, as linters print it: `src/a.ts:1:2 lint/rule ━━━`.
fn linter_location(text: &str) -> Option<&str> {
    let line = text
        .lines()
        .rev()
        .take(3)
        .map(|it| it.trim().trim_end_matches(['━', '─', ' ']))
        .find(|it| !it.is_empty())?;
    let line = line.strip_prefix("at ").unwrap_or(line);
    let first = line.split_whitespace().next()?;
    (line.len() < 200 && first.contains(['/', '.']) && !line.ends_with(['.', ':'])).then_some(line)
}

/// The first line that is informative and neither progress nor a mere address.
pub(super) fn first_line(text: &str) -> Option<String> {
    let address = |it: &str| it.starts_with("https://") && !it.contains(' ');
    // No separators, and no code that a test runner quotes.
    let words = |it: &str| it.len() > 3 && it.chars().filter(|it| it.is_alphabetic()).count() > 1;
    let says = |it: &&str| {
        words(it)
            && !QUOTED.is_match(it)
            && !UNINFORMATIVE.is_match(it)
            && !exit_code::is_stated(it)
            && !address(it)
    };
    let lines = || text.lines().map(str::trim).filter(says);
    let line = lines().find(|it| !PROGRESS.is_match(it)).or_else(|| lines().next())?;
    Some(flat(clip(line, 220).0))
}
