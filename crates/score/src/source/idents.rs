//! Identifiers: hashes, URLs, versions, ports, issue numbers, colors, numbers with a key.

use std::collections::{BTreeMap, HashMap};

use crate::own_words::{before_quoted_files, outside_transcripts, own_words};
use crate::probe::{Class, Fact, Probe};
use crate::source::error_line::printed;
use crate::text::{Shape, Word, ending, normal, rows, words};
use history::tools::{self, Meaning};
use history::{History, Kind, Part, Role};

/// Identifiers in what user and model said, and in the outputs of commits and pull requests.
pub(crate) fn probes(source: &History) -> Vec<Probe> {
    let mut found: BTreeMap<(Option<String>, String), Vec<usize>> = BTreeMap::new();
    // Calls that make commits or pull requests, and whether they amend.
    let mut making: HashMap<&str, bool> = HashMap::new();
    let mut newest: Option<String> = None;
    for (number, message) in source.messages().iter().enumerate() {
        if message.kind != Kind::Said {
            continue;
        }
        let texts = outside_transcripts(before_quoted_files(message));
        for text in texts {
            let text = match message.role {
                Role::User if message.is_prompt() => own_words(text),
                Role::Assistant => text.to_owned(),
                Role::User | Role::System | Role::Tool => continue,
            };
            for row in rows(&text).iter().filter(|it| it.shape != Shape::Code) {
                for (key, value) in in_row(&row.text) {
                    push(&mut found, key, value, number);
                }
            }
        }
        for part in &message.parts {
            match part {
                Part::Call(call) => {
                    const MAKE: [&str; 4] =
                        ["git commit", "gh pr create", "gh issue create", "gh release create"];
                    let actions = tools::actions(call);
                    let runs = actions.iter().filter(|it| it.meaning == Meaning::Run);
                    let commands: Vec<&str> = runs.filter_map(|it| it.command.as_deref()).collect();
                    if commands.iter().any(|it| MAKE.iter().any(|made| it.contains(made))) {
                        making.insert(&call.id, commands.iter().any(|it| it.contains("--amend")));
                    }
                }
                Part::Output(output) if !output.failed && !output.cleared => {
                    let Some(amends) = making.remove(&*output.id) else { continue };
                    for line in output.text.as_str().lines().take(200) {
                        if let Some(hash) = committed(printed(line)) {
                            // An amended commit is gone, unless it is named again.
                            let gone = newest.replace(hash.clone()).filter(|_| amends);
                            gone.and_then(|it| found.remove(&(None, it)));
                            push(&mut found, None, hash, number);
                        } else if line.trim().starts_with("https://") && !line.trim().contains(' ') {
                            push(&mut found, None, line.trim().to_string(), number);
                        }
                    }
                }
                Part::Text(_) | Part::Output(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }
    found
        .into_iter()
        .map(|((key, value), messages)| Probe {
            class: Class::Identifier,
            messages,
            fact: Fact::Identifier { key, value },
        })
        .collect()
}

fn push(
    found: &mut BTreeMap<(Option<String>, String), Vec<usize>>,
    key: Option<String>,
    value: String,
    number: usize,
) {
    let messages = found.entry((key, value)).or_default();
    if messages.last() != Some(&number) {
        messages.push(number);
    }
}

/// The hash in `[branch 1a2b3c4] subject`, git's output for a commit.
fn committed(line: &str) -> Option<String> {
    let inside = line.trim().strip_prefix('[')?.split_once(']')?.0;
    let hash = inside.rsplit(' ').next()?;
    is_hash(hash).then(|| hash.to_string())
}

/// Maximum bytes of a URL that is an identifier; a longer one carries data.
const LONGEST_URL: usize = 2_000;

/// Bytes before a number in which its key is looked for: a key has at most 40, and little stands between.
const KEY_REACH: usize = 100;

/// Identifiers of a row with their keys.
fn in_row(row: &str) -> Vec<(Option<String>, String)> {
    let mut out = Vec::new();
    let all = words(row);
    let mut taken: Vec<(usize, usize)> = Vec::new();
    let mut from = 0;
    while let Some(found) = row[from..].find("http") {
        let at = from + found;
        from = at + "http".len();
        if let Some(url) = url_at(row, at) {
            // A URL within another is part of it: each byte is looked at once.
            from = at + url.len();
            taken.push((at, from));
            // Tracking parameters are not part of the address.
            let place = ["?utm_", "&utm_"].iter().fold(url, |url, it| url.split(it).next().unwrap_or(url));
            // Where a program was, in a stack trace: `http://localhost:5173/src/a.js:12:5`.
            let in_trace = place.contains("/node_modules/")
                || place.rsplit_once(':').is_some_and(|(before, line)| {
                    before.matches('/').count() > 2 && line.bytes().all(|it| it.is_ascii_digit())
                });
            // A module that a development server serves, with the time of its last change.
            let is_module = place.contains("://localhost:") && place.contains("?t=");
            if url.len() <= LONGEST_URL && !in_trace && !is_module {
                out.push((None, place.to_string()));
            }
        }
    }
    for (index, word) in all.iter().enumerate() {
        // URLs are in the order of the row.
        let url = taken.partition_point(|it| it.0 <= word.at).checked_sub(1).map(|it| taken[it]);
        if url.is_some_and(|(_, to)| word.at < to) {
            continue;
        }
        let before = index.checked_sub(1).map(|it| all[it].text.trim_start_matches(['#', '$']));
        let next = row[word.at + word.text.len()..].chars().next();
        if let Some(found) = one(row, word, before, next) {
            out.push(found);
        }
    }
    out
}

/// The URL that starts at byte `at`.
pub(crate) fn url_at(row: &str, at: usize) -> Option<&str> {
    let rest = row.get(at..)?;
    if !rest.starts_with("http://") && !rest.starts_with("https://") {
        return None;
    }
    let end = rest
        .find(|c: char| {
            c.is_whitespace()
                || matches!(c, '"' | '\'' | '`' | '<' | '>' | ')' | ']' | '}' | '|' | '\\')
                || !c.is_ascii()
        })
        .unwrap_or(rest.len());
    let url = rest[..end].trim_end_matches(['.', ',', ';', ':', '*', '_', '!', '?']);
    (url.len() > 11).then_some(url)
}

/// Whether a word is an abbreviated or whole hash: 7 to 64 hex digits, with both numbers and letters.
pub(crate) fn is_hash(word: &str) -> bool {
    (7..=64).contains(&word.len())
        && word.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
        && word.contains(|c: char| c.is_ascii_digit())
        && word.contains(|c: char| c.is_ascii_alphabetic())
}

fn one(
    row: &str,
    word: &Word<'_>,
    before: Option<&str>,
    next: Option<char>,
) -> Option<(Option<String>, String)> {
    let text = word.text;
    let key = before.filter(|it| it.chars().any(char::is_alphabetic) && it.len() <= 40).map(normal);
    if is_hash(text) && !row[..word.at].ends_with('#') {
        return Some((None, text.to_string()));
    }
    // Six hex digits with both numbers and letters are a color without its `#`.
    let sorts = [char::is_ascii_digit as fn(&char) -> bool, char::is_ascii_alphabetic];
    if text.len() == 6
        && text.chars().all(|c| c.is_ascii_hexdigit())
        && sorts.iter().all(|sort| text.chars().any(|c| sort(&c)))
        && text.chars().filter(char::is_ascii_digit).count() >= 2
    {
        return Some((None, text.to_string()));
    }
    if let Some(rest) = text.strip_prefix('#') {
        let hex = rest.chars().all(|c| c.is_ascii_hexdigit());
        let digits = rest.chars().all(|c| c.is_ascii_digit());
        // A color, or the number of an issue or pull request.
        if hex && rest.len() == 6 || digits && (2..=6).contains(&rest.len()) {
            return Some((None, text.to_string()));
        }
        return None;
    }
    if let Some((host, port)) = text.split_once(':')
        && (host == "localhost" || host == "127.0.0.1" || host == "0.0.0.0")
    {
        let port: String = port.chars().take_while(char::is_ascii_digit).collect();
        return (port.len() >= 2).then(|| (None, format!("{host}:{port}")));
    }
    if is_version(text) {
        return version(text, key);
    }
    if let Some((name, value)) = text.split_once('=') {
        let named =
            name.len() > 1 && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
        let number = value.starts_with(|c: char| c.is_ascii_digit());
        return (named && number).then(|| (Some(name.to_string()), value.to_string()));
    }
    let digits = text.chars().all(|c| c.is_ascii_digit());
    if digits && text.len() >= 2 && next != Some('%') {
        return number(row, word, key?);
    }
    None
}

/// A version, with the word before it if it is not clearly a version by itself.
fn version(text: &str, key: Option<String>) -> Option<(Option<String>, String)> {
    #[rustfmt::skip]
    const VERSIONED: [&str; 14] = [
        "go", "python", "node", "rust", "java", "version", "ruby", "php", "swift", "版本", "toolchain", "typescript",
        "npm", "edition",
    ];
    if text.matches('.').count() >= 2 || text.starts_with('v') {
        return Some((None, text.to_string()));
    }
    let key = key.filter(|it| VERSIONED.contains(&it.to_lowercase().as_str()))?;
    Some((Some(key), text.to_string()))
}

/// A number that its key makes an identifier.
fn number(row: &str, word: &Word<'_>, key: String) -> Option<(Option<String>, String)> {
    let text = word.text;
    let lower = key.to_lowercase();
    // A number is a fact if its key says that it is a port, a pull request or an issue, or if the key is an
    // identifier directly before `=` or `:`.
    let near = ending(&row[..word.at], KEY_REACH);
    let between = near.rsplit(key.as_str()).next().unwrap_or_default().trim();
    let assigned = (between == "=" || between == ":" || between == "`:" || between == "` =")
        && (key.contains('_') || key.chars().skip(1).any(char::is_uppercase));
    let lower =
        if lower == "is" && near.to_lowercase().ends_with("port is ") { "port".into() } else { lower };
    if ["port", "端口", "ポート", "포트", "puerto", "порт"].contains(&lower.as_str()) || assigned {
        return Some((Some(if key == "is" { lower } else { key }), text.to_string()));
    }
    if ["pr", "issue", "pull"].contains(&lower.as_str()) {
        return Some((None, format!("#{text}")));
    }
    None
}

/// `1.2`, `v1.2.3`, `2.0.0-rc.1`.
pub(crate) fn is_version(text: &str) -> bool {
    let bare = text.strip_prefix('v').unwrap_or(text);
    let core = bare.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = core.split('.').collect();
    (2..=3).contains(&parts.len())
        && parts.iter().all(|it| !it.is_empty() && it.len() <= 5 && it.chars().all(|c| c.is_ascii_digit()))
        && bare.len() < 40
}
