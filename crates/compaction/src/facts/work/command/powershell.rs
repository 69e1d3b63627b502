//! Lines of PowerShell, whose expressions and blocks are not the words of a shell.

use super::read_only::{calls_method, cmdlet_is_read_only, program_is_read_only};
use crate::facts::text::ascii_first::AsciiFirstRegex;

/// Words before a condition or block.
const KEYWORDS: [&str; 14] = [
    "begin", "catch", "do", "else", "elseif", "end", "finally", "for", "foreach", "if", "process", "return",
    "try", "while",
];
/// Short names of cmdlets that change nothing.
const ALIASES: [&str; 12] =
    ["%", "?", "fl", "ft", "gc", "gci", "gm", "group", "measure", "select", "sls", "where"];
/// Cmdlets that only change the directory of the line.
const MOVES: [&str; 3] = ["Pop-Location", "Push-Location", "Set-Location"];
/// Types whose static methods and properties change nothing that lasts.
const HARMLESS_TYPES: [&str; 7] = ["console", "convert", "datetime", "encoding", "math", "regex", "string"];

/// What begins and what follows a here-string that is only written to a file, by a pipe or through a variable.
static BEGINS_TEXT: AsciiFirstRegex = AsciiFirstRegex::new(r"^\s*(?:\$\w+\s*=\s*)?@(['\x22])[ \t]*\r?\n");
static WRITES_TEXT: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)^\s*[|;\n]\s*(?:Set-Content|Add-Content|Out-File)\b[^|;&\n]*$");

/// Whether a line of PowerShell only writes a here-string to a file.
pub(super) fn only_writes_text(line: &str) -> bool {
    let Some(begin) = BEGINS_TEXT.captures(line) else { return false };
    let quote = &begin[1];
    // With the line break before it, which also precedes the end of an empty text.
    let text = &line[begin[0].len() - 1..];
    let Some((text, rest)) = text.split_once(&format!("\n{quote}@")) else { return false };
    // In double quotes, `$(…)` runs a command.
    WRITES_TEXT.is_match(rest.trim_end()) && (quote == "'" || !text.contains("$("))
}

/// Whether a line of PowerShell changes nothing: wherever a command can begin, there is a cmdlet or program that only
/// reads, a keyword or a value. `None` for a line without cmdlets.
pub(super) fn is_read_only(line: &str) -> Option<bool> {
    let mut scan = Scan { rest: line, at_command: true, has_cmdlet: false };
    let harmless = scan.run();
    scan.has_cmdlet.then_some(harmless)
}

fn changes_nothing(expression: &str) -> bool {
    Scan { rest: expression, at_command: true, has_cmdlet: false }.run()
}

fn is_harmless(name: &str) -> bool {
    let name = name.rsplit('.').next().unwrap_or(name);
    HARMLESS_TYPES.iter().any(|it| it.eq_ignore_ascii_case(name))
}

struct Scan<'a> {
    rest: &'a str,
    /// Whether a command can begin here.
    at_command: bool,
    has_cmdlet: bool,
}

impl Scan<'_> {
    /// Whether all of the rest changes nothing. What cannot be told may change something.
    fn run(&mut self) -> bool {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\r']);
            let Some(first) = self.rest.chars().next() else { return true };
            let behind = &self.rest[first.len_utf8()..];
            match first {
                '|' | ';' | '{' | '(' | '\n' | '=' | '}' => (self.rest, self.at_command) = (behind, true),
                '[' => {
                    let (name, rest) = behind.split_once(']').unwrap_or((behind, ""));
                    let is_type = name.chars().all(|it| it.is_ascii_alphanumeric() || it == '.');
                    match rest.strip_prefix("::").filter(|_| is_type) {
                        Some(_) if !is_harmless(name) => return false,
                        Some(member) => self.rest = member,
                        None => self.rest = behind,
                    }
                    self.at_command = false;
                }
                ')' | ']' | ',' | '+' | '*' | '!' => (self.rest, self.at_command) = (behind, false),
                '#' => self.rest = behind.find('\n').map_or("", |it| &behind[it..]),
                '`' => self.rest = behind.get(1..).unwrap_or_default(),
                '@' if behind.starts_with(['\'', '"']) => {
                    let end = format!("\n{}@", &behind[..1]);
                    self.rest = behind.split_once(&end).map_or("", |it| it.1);
                    self.at_command = false;
                }
                '\'' | '"' => {
                    let escaped = |at: usize| first == '"' && behind[..at].ends_with('`');
                    let Some((end, _)) = behind.match_indices(first).find(|it| !escaped(it.0)) else {
                        return false;
                    };
                    let embedded = behind[..end].split("$(").skip(1).filter(|_| first == '"');
                    if !embedded.map(|it| it.rsplit_once(')').map_or(it, |it| it.0)).all(changes_nothing) {
                        return false;
                    }
                    (self.rest, self.at_command) = (&behind[end + 1..], false);
                }
                '&' if behind.starts_with('&') => (self.rest, self.at_command) = (&behind[1..], true),
                '>' => {
                    let to = behind.trim_start_matches(['>', ' ']);
                    let Some(rest) = ["$null", "&1", "NUL"].iter().find_map(|it| to.strip_prefix(*it)) else {
                        return false;
                    };
                    self.rest = rest;
                }
                // The call operator runs what a variable or text names.
                '&' | '<' => return false,
                _ => {
                    if !self.word() {
                        return false;
                    }
                }
            }
        }
    }

    fn word(&mut self) -> bool {
        let ends = |it: char| it.is_whitespace() || "|;{}()[],='\"`&".contains(it);
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let (word, behind) = self.rest.split_at(end.max(1));
        let command = self.at_command;
        (self.rest, self.at_command) = (behind, false);
        if calls_method(word) {
            return false;
        }
        let is = |it: &&str| it.eq_ignore_ascii_case(word);
        self.at_command = !command && word == "in";
        if !command
            || word.starts_with(['$', '@', '-', ':'])
            || word.starts_with(|it: char| it.is_ascii_digit())
        {
            return true;
        }
        if KEYWORDS.iter().any(is) {
            self.at_command = true;
            return true;
        }
        if let Some((verb, noun)) = word.split_once('-')
            && verb.starts_with(|it: char| it.is_ascii_uppercase())
            && noun.starts_with(|it: char| it.is_ascii_uppercase())
        {
            self.has_cmdlet = true;
            return cmdlet_is_read_only(word) || MOVES.iter().any(is);
        }
        if ALIASES.iter().any(is) {
            return true;
        }
        let end = self.rest.find(['|', ';', '{', '(', '\n', ')', '}', '>']).unwrap_or(self.rest.len());
        let arguments = self.rest[..end].split_whitespace();
        program_is_read_only(&std::iter::once(word).chain(arguments).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_only_look_are_told_from_those_that_may_change_something() {
        for (line, expected) in [
            ("$s=90;$e=115;(Get-Content a.md)[$s..$e] | % { $_ }", Some(true)),
            (
                "$i=1; Get-Content a.ts | % { if($_ -match 'setError\\s*:'){ Write-Output \"line:$i\" }; $i++ }",
                Some(true),
            ),
            (
                "(Get-Content a.ts | Select-String -Pattern \"x|y\" -SimpleMatch).LineNumber | Sort-Object",
                Some(true),
            ),
            (
                "$l = Get-Content a; $n=($l | Select-String '^## B' | Select-Object -First 1).LineNumber; $l[($n-1)..$n] -join \"`n\"",
                Some(true),
            ),
            ("[Console]::OutputEncoding=[System.Text.Encoding]::UTF8; Get-Content -Raw a.md", Some(true)),
            ("foreach ($f in Get-ChildItem src) { \"$($f.Name): $((Get-Content $f).Count)\" }", Some(true)),
            ("git log --oneline | Select-Object -First 3; Get-Location", Some(true)),
            ("Set-Location app; Get-Content a 2>$null", Some(true)),
            ("Get-ChildItem *.log | % { rm $_ }", Some(false)),
            ("Get-Content a | Set-Content b", Some(false)),
            ("Get-Content a > b.txt", Some(false)),
            ("$x = Get-Content a; [IO.File]::WriteAllText('a', $x)", Some(false)),
            ("Get-Content a | ForEach-Object { \"$(Remove-Item $_)\" }", Some(false)),
            ("Get-Process a | % { $_.Kill() }", Some(false)),
            ("Get-Item a; [Environment]::SetEnvironmentVariable('A', 'b', 'User')", Some(false)),
            ("$t = Get-Content a; npm test; Write-Output $t", Some(false)),
            ("Get-Content a; & $exe", Some(false)),
            ("$x = @'\nGet-Content a\n'@; Set-Content b $x", Some(false)),
            ("cat a | grep b", None),
            ("npm run build && ls", None),
        ] {
            assert_eq!(is_read_only(line), expected, "{line}");
        }
    }
}
