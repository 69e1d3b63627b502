//! Names in texts, found by their shape: URLs, hashes, tickets, versions, ports, branches, settings.

use std::collections::HashSet;
use std::ops::Range;

use super::symbols::MAX_PER_MESSAGE;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, without_markers};
use crate::facts::voice::ToolTopic;
use crate::facts::work::files::mentions::is_kept_by_tools;
use crate::facts::work::paths::file_name;
use crate::facts::{Detail, Fact, Name};

static KINDS: [(Name, AsciiFirstRegex); 9] = [
    kind(
        Name::Url,
        r"\bhttps?://[^\s<>)\]{}'\x22`|\\\u{3000}-\u{9fff}\u{ac00}-\u{d7af}\u{ff00}-\u{ffef}]+[^\s<>)\]{}'\x22`|\\\u{3000}-\u{9fff}\u{ac00}-\u{d7af}\u{ff00}-\u{ffef}.,;:!?*]",
    ),
    kind(Name::Id, r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{24}\b"),
    kind(
        Name::Ticket,
        r"(?i)\b(?:PR|pull request|issue|MR|bug|ticket)s? ?#?\d{1,6}\b|(?-i)\bCVE-\d{4}-\d{4,7}\b|\b[A-Z][A-Z]{1,9}-\d{1,6}\b|(?:^|[\s(`*|,])(#\d{2,5})\b|\[(#\d{2,5})\]\(",
    ),
    // Two numbers alone (`1.2`) need the name of a package or program, and a plain word before a version
    // (`gauge-x v1.2`) counts only if it is written like one.
    kind(
        Name::Version,
        concat!(
            r"@?[A-Za-z][\w./-]*(?:@[\^~]?v?|==)\d+\.\d+(?:\.\d+)*(?:-[\w.]+|\.?[A-Za-z]+\d+)?\b",
            r"|[\x22'][@A-Za-z][A-Za-z\d./-]*[\x22']: ?[\x22'][\^~]?\d+\.\d+(?:\.\d+)*(?:-[\w.]+)?[\x22']|[\x22'][@A-Za-z][\w./-]*[\x22']: ?[\x22'](?:[\^~]\d+\.\d+(?:\.\d+)*|\d+\.\d+\.\d+)(?:-[\w.]+)?[\x22']",
            r"|\b[a-z](?:[\w./-]*:|\w*[-_\d][\w./-]*) [\^~]\d+\.\d+\.\d+(?:-[\w.]+)?\b|\b[a-z][\w./-]*[:=]v?\d+\.\d+\.\d+(?:-[\w.]+|\.?[A-Za-z]+\d+)?\b",
            r"|(?i)\b(?:go|java|node|php|python|ruby|rust|swift|typescript) v?\d+\.\d+(?:\.\d+)*\b(?-i)",
            r"|(?m:^)[ \t]*[A-Za-z]\w*[-_./][\w./-]*\w v\d+\.\d+(?:\.\d+)*(?:-[\w.]+|\.?[A-Za-z]+\d+)?\b",
            r"|\bv\d+\.\d+(?:\.\d+)*(?:-[\w.]+|\.?[A-Za-z]+\d+)?\b|\b\d+\.\d+\.\d+(?:\.\d+)*(?:-[\w.]+|\.?[A-Za-z]+\d+)?\b",
        ),
    ),
    kind(Name::Port, r"(?i)(?:\bport[ :=]+|localhost:|127\.0\.0\.1:|0\.0\.0\.0:)\d{2,5}\b"),
    kind(Name::Hash, r"\b(?:sha256:)?[0-9a-f]{7,64}\b"),
    kind(
        Name::Branch,
        r"(?i)(?:\bbranch(?:es)?(?: named| called)? [`'\x22]?|git (?:checkout|switch)(?: -[bc])? |git push (?:-u )?origin |origin/)([A-Za-z][\w.-]*/?[\w./-]*\w)",
    ),
    kind(
        Name::Setting,
        r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]{2,}=[^\s'\x22`;$()]{1,80}|[`'\x22]?\b[a-z]+(?:[A-Z][a-z0-9]*|_[a-z0-9]+)+[`'\x22]? ?[:=] ?\d+(?:\.\d+)?\b",
    ),
    kind(Name::Colour, r"#[0-9A-Fa-f]{6}\b"),
];

const fn kind(name: Name, pattern: &'static str) -> (Name, AsciiFirstRegex) {
    (name, AsciiFirstRegex::new(pattern))
}

/// The name of the new ticket in the output of a command that creates one.
static TICKET_CREATED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\bcreated (?:new )?(?:issue|bead|task|epic|bug|feature)?:? *([a-z]\w*-[a-z0-9.]*\d[a-z0-9.]*|[a-z]\w*-[a-z0-9]{2,5})\b|\x22id\x22: ?\x22([a-z]\w*-[\w.]+)\x22",
);

/// What stands before the id of a background task, which has the shape of a hash.
static TASK_ID: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)(?:\btask(?: id)?:? ?[`(]?|\boriginal run: ?[`(]?|<task-id>|\bbackground with id: )$",
);

/// The names that were read, each once.
#[derive(Default)]
pub(super) struct Names {
    pub(super) facts: Vec<Fact>,
    seen: HashSet<(Name, String)>,
}

impl Names {
    fn add(&mut self, number: usize, kind: Name, text: &str) {
        let text = trimmed(kind, text.trim().trim_start_matches('('));
        if !is_informative(kind, text) {
            return;
        }
        // `PR #9`, `PRs #9` and `#9` are one.
        let key = match (kind, text.split_once('#')) {
            (Name::Ticket, Some((_, number))) => number,
            _ => text,
        };
        if self.seen.insert((kind, key.to_string())) {
            let detail = Detail::Name(kind);
            self.facts.push(Fact::from_tools(ToolTopic::Identifiers, number, text.into(), detail));
        }
    }

    pub(super) fn add_all(&mut self, number: usize, text: &str) {
        for (kind, pattern) in KINDS.iter() {
            for found in pattern.captures_iter(text).take(MAX_PER_MESSAGE) {
                let Some(it) = found.get(1).or_else(|| found.get(2)).or_else(|| found.get(0)) else {
                    continue;
                };
                if !is_name(*kind, text, it.range()) {
                    continue;
                }
                let line_before = text[..it.start()].rsplit('\n').next().unwrap_or_default();
                let package = package_before(line_before, it.as_str()).filter(|_| *kind == Name::Version);
                let named = package.map(|package| format!("{package} {}", it.as_str()));
                self.add(number, *kind, named.as_deref().unwrap_or(it.as_str()));
            }
        }
    }

    /// Reads only commit hashes, and new tickets and pull requests. `makes`: the command creates tickets.
    pub(super) fn add_printed(&mut self, number: usize, output: &str, makes: bool) {
        let text = clip(output, 2_000).0;
        if makes {
            for found in TICKET_CREATED.captures_iter(text).take(MAX_PER_MESSAGE) {
                found
                    .get(1)
                    .or_else(|| found.get(2))
                    .into_iter()
                    .for_each(|it| self.add(number, Name::Ticket, it.as_str()));
            }
            let addresses = text.lines().filter(|it| it.starts_with("https://")).take(MAX_PER_MESSAGE);
            addresses.for_each(|it| self.add_all(number, it));
        }
        for line in text.lines().filter(|it| it.starts_with('[') && it.contains("] ")).take(3) {
            if let Some(hash) = KINDS.iter().filter(|it| it.0 == Name::Hash).find_map(|it| it.1.find(line)) {
                self.add(number, Name::Hash, hash.as_str());
            }
        }
        if text.len() < 400 && text.trim_start().starts_with("https://") {
            self.add_all(number, text);
        }
    }
}

/// The package or program whose version follows: `React 19.2.3`, `` `better-auth` v1.4.10 ``.
fn package_before<'a>(line: &'a str, version: &str) -> Option<&'a str> {
    /// Words that stand before a version and name nothing.
    const NO_NAMES: [&str; 32] = [
        "after",
        "as",
        "before",
        "by",
        "in",
        "install",
        "installed",
        "need",
        "needs",
        "of",
        "requires",
        "since",
        "tagged",
        "until",
        "use",
        "with",
        "and",
        "at",
        "bump",
        "bumped",
        "for",
        "from",
        "now",
        "on",
        "published",
        "release",
        "released",
        "tag",
        "to",
        "update",
        "updated",
        "version",
    ];
    let bare = version.strip_prefix('v').unwrap_or(version).starts_with(|it: char| it.is_ascii_digit());
    let before = line.strip_suffix(' ').filter(|_| bare)?.trim_end_matches(['`', '*']);
    let word = before.rsplit(|it: char| !(it.is_ascii_alphanumeric() || "@-._/+".contains(it))).next()?;
    let names =
        word.starts_with(|it: char| it.is_ascii_uppercase() || it == '@') || word.contains(['-', '.']);
    let is_name = names
        && (2..=40).contains(&word.len())
        && word.starts_with(|it: char| it.is_ascii_alphabetic() || it == '@')
        && word.ends_with(|it: char| it.is_ascii_alphanumeric() || it == '+')
        && !NO_NAMES.iter().any(|it| it.eq_ignore_ascii_case(word));
    is_name.then_some(word)
}

/// The part of a macOS screenshot's file name before the time.
static SHOT: AsciiFirstRegex = AsciiFirstRegex::new(r"\b\d{4}-\d\d-\d\d\\? at\\? $");

/// Whether what has the shape of a name at `at` is one, and not part of a longer one or a number that counts
/// something else.
fn is_name(kind: Name, text: &str, at: Range<usize>) -> bool {
    let (before, name, behind) = (&text[..at.start], &text[at.clone()], &text[at.end..]);
    let line = before.rsplit('\n').next().unwrap_or_default();
    let last_word = before.trim_end().rsplit(|it: char| !it.is_alphanumeric()).next().unwrap_or_default();
    let begins_with_digit = |it: &str| it.starts_with(|it: char| it.is_ascii_digit());
    // Part of a longer number than the pattern matches.
    let is_cut = || behind.strip_prefix('.').is_some_and(begins_with_digit);
    if is_signature(text, at.start) || is_kept_by_tools(word_around(text, &at)) {
        return false;
    }
    match kind {
        Name::Hash => {
            let inside = |at: Option<char>| at.is_some_and(|c| c.is_alphanumeric() || "-_/%".contains(c));
            let alone = !inside(before.chars().next_back()) && !inside(behind.chars().next());
            // After `#`, eight digits are a color; after a digit and a point, part of a number.
            let in_number =
                before.strip_suffix('.').is_some_and(|it| it.ends_with(|c: char| c.is_ascii_digit()));
            // The id of a sub-agent: `Agent a291e03: …`.
            let of_agent = last_word.eq_ignore_ascii_case("agent") && before.ends_with(' ');
            alone && !in_number && !of_agent && !before.ends_with('#') && !TASK_ID.is_match(line)
        }
        Name::Setting => {
            // A script may print one of several values.
            let line_behind = behind.lines().next().unwrap_or_default();
            let prints = |it: &&str| before.trim_end_matches(['"', '\'', ' ']).ends_with(it);
            let echoed = !line_behind.contains('>')
                && !line_behind.contains("tee ")
                && ["echo", "printf"].iter().any(prints);
            // An operand: `width = 128 * 8`.
            let operand = behind.trim_start().starts_with(['×', '*', '^']);
            // A flag: `lsof -iTCP:3456`.
            let flag = before.ends_with('-') && name.contains(':');
            !echoed && !operand && !flag && !is_cut() && !is_style_declaration(text, at.start, name)
        }
        Name::Version => {
            // A glob: `git tag --list 'v0.5*'`.
            let glob = behind.starts_with('*') && !behind.starts_with("**") && !before.ends_with('*');
            // What a template gives as an example: `[e.g., Python 3.11]`.
            let example = ["[e.g.", "Example:"].iter().any(|it| line.contains(it));
            // The number of a section at the beginning of its line: `1.2.1. The history`.
            let section = behind.starts_with(". ") && without_markers(line).is_empty();
            !glob && !example && !section && !is_cut() && !is_other_version(before, name)
        }
        Name::Ticket => {
            /// What reviews and plans number in the same way as tickets.
            const NUMBERED: [&str; 12] = [
                "as", "comment", "finding", "findings", "item", "line", "option", "point", "question", "row",
                "rule", "step",
            ];
            // Numbering: `1) issues 2) risks`.
            let numbers = name.contains(' ')
                && behind.starts_with(')')
                && !name.contains('#')
                && before.rfind('(') <= before.rfind(')');
            // `PUMP-FIXES-2026-07-27.md`, `finding #12`, and a heading: `Issue 1`.
            let heads_line = line.trim_matches(['#', '*', ' ']).is_empty();
            let other = before.ends_with(['-', '_'])
                || before.ends_with('/') && !name.contains('-')
                || name.starts_with('#') && NUMBERED.contains(&last_word.to_lowercase().as_str())
                || heads_line && name.to_lowercase().strip_prefix("issue ").is_some_and(|it| it.len() == 1);
            !numbers && !other
        }
        Name::Branch => {
            // `two branches byte-for-byte alike`, `a multi-branch non-relay sync`
            let counted =
                last_word == "branches" && !name.contains('/') && !["main", "master", "dev"].contains(&name);
            !counted && !before.trim_end().ends_with("multi-branch")
        }
        Name::Url | Name::Id | Name::Port | Name::Colour => true,
    }
}

/// Whether a number is no version, or that of something else: `test 6.6.1`, `alex/v0.3.0-review`, and the time of a
/// screenshot: `at 10.36.37`.
fn is_other_version(before: &str, name: &str) -> bool {
    // "Please test 6.6.1" asks to test a version.
    const BEFORE_VERB: [&str; 5] = ["", "and", "please", "then", "to"];
    let is_noun = |before: &str| {
        let lower = before.trim_end().to_lowercase();
        lower.rsplit(|it: char| !it.is_alphanumeric()).next().is_some_and(|it| !BEFORE_VERB.contains(&it))
    };
    let is_number = name.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    let of_path = before.ends_with('/')
        && name.contains('-')
        && !before.ends_with("/download/")
        && !before.ends_with("/tag/");
    of_path || is_number && (before.strip_suffix("test ").is_some_and(is_noun) || SHOT.is_match(before))
}

/// The word that contains a name, such as a path or URL.
fn word_around<'t>(text: &'t str, name: &Range<usize>) -> &'t str {
    let apart = |c: char| c.is_whitespace() || "\"'`()<>,;".contains(c);
    let start = text[..name.start].rfind(apart).map_or(0, |at| at + 1);
    let end = text[name.end..].find(apart).map_or(text.len(), |at| name.end + at);
    text.get(start..end).unwrap_or_default()
}

/// Whether the line at `at` is an agent's signature in a commit or pull request.
fn is_signature(text: &str, at: usize) -> bool {
    let line = text[..at].rsplit('\n').next().unwrap_or_default();
    ["Co-Authored-By:", "Co-authored-by:", "Generated with ["].iter().any(|it| line.contains(it))
}

/// A name without adjacent characters that do not belong to it.
fn trimmed(kind: Name, text: &str) -> &str {
    let text = match kind {
        Name::Version => text.trim_start_matches(['-', '.', '/']),
        // A backtick whose pair is after the match.
        Name::Setting if text.matches('`').count() == 1 => text.trim_start_matches('`'),
        // Tracking parameters are not part of the address.
        Name::Url => text.split_once("?utm_").or(text.split_once("&utm_")).map_or(text, |it| it.0),
        _ => text,
    };
    text.trim_end_matches(['.', ',', ')'])
}

/// Whether a name ends like a file: `git checkout src/client.rs` names no branch.
fn is_file(name: &str) -> bool {
    file_name(name).rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && (1..=5).contains(&ending.len())
            && ending.bytes().all(|it| it.is_ascii_alphabetic())
    })
}

/// Whether a text ends with an IPv4 address, perhaps in quotation marks.
fn is_address(text: &str) -> bool {
    let text = text.trim_end_matches(['"', '\'']);
    let numbers = text.rsplit(|c: char| !(c.is_ascii_digit() || c == '.')).next().unwrap_or_default();
    numbers.matches('.').count() > 2
}

fn setting_key(setting: &str) -> &str {
    setting.split([':', '=']).next().unwrap_or_default().trim_matches(['`', '\'', '"', ' '])
}

/// Whether the line at `at` is a style declaration, which configures nothing.
fn is_style_declaration(text: &str, at: usize, setting: &str) -> bool {
    const STYLES: [&str; 12] = [
        "zIndex",
        "maxWidth",
        "minWidth",
        "maxHeight",
        "minHeight",
        "lineHeight",
        "letterSpacing",
        "rowGap",
        "columnGap",
        "strokeWidth",
        "shadowOpacity",
        "shadowRadius",
    ];
    const FAMILIES: [&str; 5] = ["margin", "padding", "border", "font", "flex"];
    let key = setting_key(setting);
    let family = |it: &str| key.strip_prefix(it).is_some_and(|it| it.starts_with(char::is_uppercase));
    let before = text[..at].rsplit('\n').next().unwrap_or_default();
    let declares = before.trim().is_empty() || before.contains('{');
    declares && (STYLES.contains(&key) || FAMILIES.iter().any(|it| family(it)))
}

/// Whether it is an English word with a number, though its letters could be hexadecimal: `face640`.
fn is_numbered_word(text: &str) -> bool {
    const WORDS: [&str; 7] = ["face", "feed", "cafe", "fade", "bead", "dead", "beef"];
    let number = WORDS.iter().find_map(|it| text.strip_prefix(it));
    number.is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()))
}

/// Whether a match is specific enough: a hash needs digits and letters, a branch more than a word.
fn is_informative(kind: Name, text: &str) -> bool {
    match kind {
        Name::Hash => {
            // SHA-1, full or abbreviated, or SHA-256; 24 digits are a MongoDB id.
            matches!(text.len(), 7..=23 | 25..=40 | 64 | 71)
                && text.bytes().any(|b| b.is_ascii_digit())
                && text.bytes().any(|b| b.is_ascii_lowercase())
                && text != "ed25519"
                && !is_numbered_word(text)
        }
        Name::Branch => {
            text.contains(['/', '-'])
                && text.len() >= 5
                && !text.ends_with(['.', '/'])
                && !text.contains("..")
                && !is_file(text)
                || text == "dev"
        }
        Name::Version => {
            !is_address(text)
                && !text.contains("..")
                && !text.trim_start_matches(['"', '\'']).starts_with("version")
                && (text.contains(char::is_alphabetic) || text.matches('.').count() > 1)
                && !text.starts_with("0.0.0.0")
                && !text.starts_with("127.")
                && !text.starts_with("192.168.")
                && text.len() <= 60
        }
        Name::Ticket => {
            let name = text.split('-').next().unwrap_or_default();
            // The first two number the requirements of a specification: `FR-001`.
            const NO_TRACKERS: [&str; 28] = [
                "FR", "NFR", "GPL", "AGPL", "PDF", "UTF", "SHA", "ISO", "GPT", "GLM", "AES", "RSA", "MD",
                "ES", "TLS", "IEEE", "PHASE", "STEP", "PART", "STAGE", "ROUND", "MINOR", "MAJOR", "NOTE",
                "NIT", "BLOCKER", "CRITICAL", "FINDING",
            ];
            // A shade of grey: `#666`.
            let grey = ["#000", "#333", "#444", "#555", "#666", "#777", "#888", "#999"].contains(&text);
            // Numbering: `bug 1`.
            let (word, number) = text.split_once(' ').unwrap_or_default();
            let numbered =
                number.len() == 1 && ["bug", "issue", "ticket"].contains(&word.to_lowercase().as_str());
            // `SC-001` numbers a criterion, `SC-1234` is a story.
            let counted = ["REQ-0", "SC-0"].iter().any(|it| text.starts_with(it));
            !counted && !NO_TRACKERS.contains(&name) && !grey && !numbered
        }
        Name::Url => {
            let host = text.split('/').nth(2).unwrap_or_default();
            text.len() <= 300
                // A template, cut at its variable: `https://x.io/$` of `https://x.io/${id}`.
                && !text.contains('$')
                && !text.contains("/...")
                && !text.ends_with(['@', '=', '&'])
                && (host.contains(['.', ':']) || host == "localhost")
                && !text.contains("example.com")
                // A line of a stack trace: `http://localhost:5173/src/a.js?t=1:12:5`.
                && !text.contains("/node_modules/")
                && !is_position(text.splitn(4, '/').nth(3).unwrap_or_default())
                && !host.contains('[')
                && ![".example", ".test", ".invalid"].iter().any(|it| host.ends_with(it))
        }
        // Not parameters of the agents' own tools.
        Name::Setting => {
            let value = text[setting_key(text).len()..].trim_start_matches(['=', ':', ' ', '`']);
            !["arXiv", "session_id", "cell_id", "yield_time_ms", "max_output_tokens"]
                .contains(&setting_key(text))
                && !value.is_empty()
                // What a counter begins with.
                && (value != "0" || text.starts_with(char::is_uppercase))
                && !value.starts_with(['%', '='])
        }
        Name::Port | Name::Id | Name::Colour => true,
    }
}

/// Whether a path ends in a line number.
fn is_position(path: &str) -> bool {
    path.rsplit_once(':').is_some_and(|it| !it.1.is_empty() && it.1.bytes().all(|it| it.is_ascii_digit()))
}
