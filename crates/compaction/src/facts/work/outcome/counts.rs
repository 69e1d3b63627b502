//! What test runners, linters and compilers count in their last lines.

use crate::facts::text::ascii_first::AsciiFirstRegex;

/// `3 passed`, `1 error`.
static COUNT: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(\d+) (passed|passing|pass|failed|failing|failures?|fail|skipped|skip|pending|todo|errors?|warnings?|issues?|problems?|refactoring opportunities|ignored)\b",
);
static TAP: AsciiFirstRegex = AsciiFirstRegex::new(r"(?m)^(?:#|ℹ) (pass|fail|skipped|todo) (\d+)\s*$");

/// Passed tests out of all (ExUnit 1.20).
static PASSED_OF_ALL: AsciiFirstRegex = AsciiFirstRegex::new(r"(?m)^Result: (\d+)/(\d+) passed\s*$");

/// Summary of a Swift test run that passed; captures the number of tests.
static SWIFT: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?m)^\W*Test run with ([1-9]\d*) tests? (?:in \d+ suites? )?passed\b");
/// Failures as Swift's test runners print them.
static SWIFT_FAILED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?m)^\W*Test run with \d+ tests? (?:in \d+ suites? )?failed\b|\bExecuted \d+ tests?, with [1-9]\d* failure",
);

/// Files with tests of which some failed (vitest, jest).
static FILES_FAILED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?m)^\s*Test (?:Files|Suites):?\s+([1-9]\d*) failed\b");
/// Beginnings of lines that summarize no run: list items, quotations, fields, table rows, issue numbers.
static NOT_A_SUMMARY: AsciiFirstRegex =
    AsciiFirstRegex::new(r#"^\s*(?:[-*•>|"'`{}]\s*[^\s\d=*-]|[-•>|"'`{}] ?\d|#\d|#+ [A-Z])"#);

/// Messages of checkers that found nothing to check (vale, biome, markdownlint, prettier, ESLint, Go, cargo,
/// pytest, jest, vitest).
static NOTHING_TO_CHECK: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"\bin 0 files\b|\b(?:[Cc]hecked|[Ll]inted|[Ss]canned|[Ll]inting:) 0 files?\b|\b0 files (?:checked|linted|scanned)\b",
    r"|\b[Nn]o files matching\b|\b[Nn]o tests? (?:to run|ran|found|files found)\b|(?m:^running 0 tests$)|\bcollected 0 items\b|^No projects matched\b|(?m:^No changed (?:source )?files\b.*\bskipping\b)",
));
/// How many files were linted, where the files of the summary are those with issues (markdownlint).
static LINTED: AsciiFirstRegex = AsciiFirstRegex::new(r"(?m)^Linting: [1-9]\d* files?\b");
/// A package or test that ran (Go).
static CHECKED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?m)^(?:ok\s+\S+\s+(?:\(cached\)|[\d.]+s)\s*(?:coverage.*)?$|\s*--- (?:PASS|FAIL)|FAIL\b)",
);
static PACKAGE_FAILED: AsciiFirstRegex = AsciiFirstRegex::new(r"(?m)^FAIL\t\S+\t[\d.]+s$");

/// Whether a checker says that there was nothing to check.
pub(super) fn checked_nothing(text: &str, counts: Option<&Counts>) -> bool {
    NOTHING_TO_CHECK.is_match(text)
        && !CHECKED.is_match(text)
        && !LINTED.is_match(text)
        && counts.is_none_or(|it| !it.any)
}

/// Whether packages were tested, and all of them passed (Go).
pub(super) fn packages_passed(text: &str) -> bool {
    let mut checked = CHECKED.find_iter(text).map(|it| it.as_str()).peekable();
    checked.peek().is_some() && checked.all(|it| it.starts_with("ok") || it.contains("--- PASS"))
}

/// Whether a package that was tested failed (Go).
pub(super) fn packages_failed(text: &str) -> bool {
    text.contains("FAIL\t") && PACKAGE_FAILED.is_match(text)
}

pub(super) struct Counts {
    pub(super) shown: String,
    /// Some count is above 0.
    any: bool,
    /// Some counts are issues, which are failures only for some checkers.
    pub(super) issues: bool,
    /// Some of the counts are tests that passed.
    pub(super) tests: bool,
    pub(super) failed: bool,
}

/// The counts of the last line that has any; result lines of several programs are added up. `again`: the same
/// tests ran more than once.
pub(super) fn counts_in(text: &str, again: bool) -> Option<Counts> {
    let mut totals = own_totals(text);
    let lines: Vec<&str> = text
        .lines()
        .filter(|it| it.len() < 400 && !it.trim_start().starts_with("error") && is_summary_line(it))
        .collect();
    let mut programs: Vec<&str> = lines.iter().copied().filter(|it| it.contains("test result:")).collect();
    if programs.is_empty() {
        programs = lines.iter().copied().filter(|it| it.trim_start().starts_with("Tests")).collect();
        if again {
            programs.drain(..programs.len().saturating_sub(1));
        }
        // Equal lines are one run, printed by two filters.
        programs.dedup();
    }
    let chosen = match (programs.is_empty(), totals.is_empty()) {
        (false, _) => programs.as_slice(),
        (true, false) => &[],
        // Some runners print each count on a line of its own.
        (true, true) => &lines[lines.len().saturating_sub(3)..],
    };
    for line in chosen {
        for found in COUNT.captures_iter(line) {
            let (Some(number), Some(what)) = (found.get(1), found.get(2)) else { continue };
            let Ok(number) = number.as_str().parse::<u64>() else { continue };
            let what = what.as_str().to_lowercase();
            match totals.iter_mut().find(|it| it.0 == what) {
                Some(total) if !programs.is_empty() => total.1 += number,
                Some(total) => total.1 = number,
                None => totals.push((what, number)),
            }
        }
    }
    let files =
        FILES_FAILED.captures_iter(text).last().and_then(|it| it.get(1)?.as_str().parse::<u64>().ok());
    let bad =
        |what: &str| what.starts_with("fail") || what.starts_with("error") || what.starts_with("problem");
    totals.retain(|(what, number)| *number > 0 || bad(what) || what.starts_with("issue"));
    // "18 problems (0 errors, 18 warnings)" is not a failure.
    let only_warned = totals.iter().any(|it| it.0.starts_with("error") && it.1 == 0);
    let fails = |what: &str| bad(what) && !(only_warned && what.starts_with("problem"));
    let failed = totals.iter().any(|(what, number)| *number > 0 && fails(what));
    let tests = totals.iter().any(|(what, _)| what.starts_with("pass"));
    let any = totals.iter().any(|it| it.1 > 0) || files.is_some();
    let issue = |what: &str| what.starts_with("issue") || what.starts_with("refactoring");
    let issues = totals.iter().any(|(what, number)| *number > 0 && issue(what));
    let mut shown: Vec<String> = totals.iter().map(|(what, number)| format!("{number} {what}")).collect();
    // A test file that could not be loaded fails without a failed test.
    if let Some(files) = files.filter(|_| !failed) {
        shown.push(format!("failed test files: {files}"));
    }
    let failed = failed || files.is_some();
    (!shown.is_empty()).then(|| Counts { shown: shown.join(", "), any, issues, tests, failed })
}

/// The totals of runners whose format [`COUNT`] does not fit: ExUnit, Swift, TAP, Node.js.
fn own_totals(text: &str) -> Vec<(String, u64)> {
    let share = PASSED_OF_ALL.captures_iter(text).last().and_then(|it| {
        let (passed, all) = (it.get(1)?.as_str().parse().ok()?, it.get(2)?.as_str().parse::<u64>().ok()?);
        Some(vec![("passed".to_owned(), passed), ("failed".to_owned(), all.saturating_sub(passed))])
    });
    let swift = || {
        let each = SWIFT.captures_iter(text).filter_map(|it| it.get(1)?.as_str().parse::<u64>().ok());
        let passed: u64 = each.sum();
        (passed > 0 && !SWIFT_FAILED.is_match(text)).then(|| vec![("passed".to_owned(), passed)])
    };
    let tap = || {
        let mut totals: Vec<(String, u64)> = Vec::new();
        for found in TAP.captures_iter(text) {
            let (Some(what), Some(number)) = (found.get(1), found.get(2)) else { continue };
            let what = match what.as_str() {
                "pass" => "passed",
                "fail" => "failed",
                other => other,
            };
            let number = number.as_str().parse().unwrap_or(0);
            match totals.iter_mut().find(|it| it.0 == what) {
                Some(total) => total.1 += number,
                None => totals.push((what.to_owned(), number)),
            }
        }
        totals
    };
    share.or_else(swift).unwrap_or_else(tap)
}

/// Whether a line is a runner's summary: counts, and few other words.
fn is_summary_line(line: &str) -> bool {
    /// Words that belong to such lines, beside the counts.
    const FRAME: [&str; 28] = [
        "test",
        "tests",
        "test files",
        "files",
        "file",
        "suites",
        "suite",
        "result",
        "ok",
        "failed",
        "total",
        "in",
        "and",
        "out",
        "of",
        "filtered",
        "measured",
        "finished",
        "found",
        "across",
        "ran",
        "fixable",
        "with",
        "ms",
        "s",
        "examples",
        "checks",
        "specs",
    ];
    /// Maximum other words.
    const OTHERS: usize = 3;
    let counts = COUNT.find_iter(line).filter(|it| {
        // In `FAIL=0` the name precedes the count; `"fail"` is a field; golangci-lint prints `1 issues:` as
        // heading.
        let behind = &line[it.end()..];
        !behind.starts_with(['=', ':', '"', '_', '-'])
            || it.start() == 0 && it.as_str().ends_with("issues") && behind == ":"
    });
    // Ruff counts the errors that it fixed.
    if counts.count() == 0 || NOT_A_SUMMARY.is_match(line) || line.ends_with(" fixed, 0 remaining).") {
        return false;
    }
    let rest = COUNT.replace_all(line, " ").to_lowercase();
    let words = rest.split(|c: char| !c.is_alphanumeric()).filter(|it| it.starts_with(char::is_alphabetic));
    words.filter(|it| !FRAME.contains(it)).count() <= OTHERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_runners_print() {
        for (text, shown, failed) in [
            (
                " Test Files  2 failed | 10 passed (12)\n      Tests  3 failed | 40 passed (43)",
                "3 failed, 40 passed",
                true,
            ),
            (
                " Test Files  1 failed | 10 passed (11)\n      Tests  40 passed (40)",
                "40 passed, failed test files: 1",
                true,
            ),
            (
                "Test Suites: 1 failed, 2 passed, 3 total\nTests:       9 passed, 9 total",
                "9 passed, failed test files: 1",
                true,
            ),
            ("Test Suites: 3 passed, 3 total\nTests:       9 passed, 9 total", "9 passed", false),
            ("===== 1 failed, 3 passed in 0.12s =====", "1 failed, 3 passed", true),
            ("✖ 10 problems (0 errors, 10 warnings)", "10 problems, 0 errors, 10 warnings", false),
            ("Finished in 0.1 seconds\n\nResult: 23/24 passed\nFailed: 1 test", "23 passed, 1 failed", true),
            (" 4 pass\n 0 fail\nRan 4 tests across 1 file.", "4 pass, 0 fail", false),
            ("ℹ pass 20\nℹ fail 0\n  Tests  1 failed | 47 passed (48)", "67 passed, 1 failed", true),
            ("  Tests  1 failed | 9 passed (10)\n\n  Tests  10 passed (10)", "1 failed, 19 passed", true),
            ("  Tests  48 passed (48)\n  Tests  43 passed (43)", "91 passed", false),
            ("  Tests  48 passed (48)\n  Tests  48 passed (48)", "48 passed", false),
            ("a.go:3:1: unused (wrapcheck)\n1 issues:\n* wrapcheck: 1", "1 issues", false),
            ("- 3 failed tests are left", "", false),
            ("#12 Mend 3 failing tests", "", false),
            ("| run | 3 failed |", "", false),
            ("{ \"said\": 3 errors", "", false),
        ] {
            let found = counts_in(text, false);
            assert_eq!(found.as_ref().map_or("", |it| &it.shown), shown, "{text}");
            assert_eq!(found.is_some_and(|it| it.failed), failed, "{text}");
        }
    }
}
