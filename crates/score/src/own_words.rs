//! What a person typed in a prompt, without what clients, programs and others put there.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::{cues, program_words};
use history::{Message, Text};

/// Whether a text is the template of a command that was given no arguments.
pub(crate) fn is_bare_template(text: &str) -> bool {
    let between = |[start, end]: [&str; 2]| Some(text.split_once(start)?.1.split_once(end)?.0);
    cues::TEMPLATE_ARGUMENTS.into_iter().find_map(between).is_some_and(|it| it.trim().is_empty())
}

/// Without the context that editors put before what was typed, and the quotes that `opencode run` adds.
pub(crate) fn typed(text: &str) -> &str {
    let argument = text.trim().strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let text =
        argument.filter(|it| it.contains(' ') && !it.replace("\\\"", "").contains('"')).unwrap_or(text);
    let [start, end] = cues::BEFORE_OWN_WORDS;
    let behind = text.trim_start().strip_prefix(start).and_then(|it| it.split_once(end));
    let text = behind.map_or(text, |it| it.1);
    let between = |[start, end]: [&str; 2]| text.split_once(start)?.1.split_once(end);
    if let Some((arguments, _)) = cues::TEMPLATE_ARGUMENTS.into_iter().find_map(between) {
        return arguments;
    }
    let text = text.split_once(QUOTED_FILES).map_or(text, |(before, quoted)| {
        let after = quoted.rsplit_once("--- End of content ---").map_or("", |it| it.1);
        if before.trim().is_empty() { after } else { before }
    });
    text.split_once(cues::TYPED_AFTER).and_then(|it| it.1.split_once(':')).map_or(text, |it| it.1)
}

/// The line above the files that a prompt names, as Gemini CLI quotes them.
pub(crate) const QUOTED_FILES: &str = "--- Content from referenced files ---";

/// The texts of a message before the files that it names, which Gemini CLI quotes.
pub(crate) fn before_quoted_files(message: &Message) -> impl Iterator<Item = &str> {
    let quotes = |it: &&str| it.trim() == QUOTED_FILES;
    let texts = message.texts().map(Text::as_str).take_while(move |it| !quotes(it));
    texts.map(|it| it.split_once(QUOTED_FILES).map_or(it, |it| it.0))
}

/// The texts around the transcript of another session that a client shows in the user's name (Codex's reviews
/// of actions): what it quotes was not said here.
pub(crate) fn outside_transcripts<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut texts: Vec<&str> = texts.collect();
    let found = |it: &str, marks: [&str; 2]| marks.iter().filter_map(|mark| it.find(mark)).min();
    let last =
        |it: &str, marks: [&str; 2]| marks.iter().filter_map(|mark| Some(it.rfind(mark)? + mark.len())).max();
    let start = texts.iter().enumerate().find_map(|(at, it)| Some((at, found(it, TRANSCRIPT_STARTS)?)));
    let end = texts.iter().enumerate().rev().find_map(|(at, it)| Some((at, last(it, TRANSCRIPT_ENDS)?)));
    if let (Some(start), Some(end)) = (start, end)
        && start < end
    {
        let around = [&texts[start.0][..start.1], &texts[end.0][end.1..]];
        texts.splice(start.0..=end.0, around);
    }
    texts
}

const TRANSCRIPT_STARTS: [&str; 2] = [">>> TRANSCRIPT START", ">>> TRANSCRIPT DELTA START"];
const TRANSCRIPT_ENDS: [&str; 2] = [">>> TRANSCRIPT END", ">>> TRANSCRIPT DELTA END"];

/// The first paragraph of a text with an article from the web, which others wrote; of another text, all of it.
fn before_article(text: &str) -> &str {
    /// Minimum bytes of an article, and its first lines, among which the date stands.
    const LEAST: usize = 2_000;
    const TOP: usize = 20;
    let year = |it: &str| it.len() == 4 && it.bytes().all(|it| it.is_ascii_digit());
    let dated = |line: &str| {
        let chinese = line.split_once('年').is_some_and(|it| year(it.0) && it.1.contains('日'));
        let says = ["published ", "posted ", "updated "].iter().any(|it| line.to_lowercase().starts_with(it));
        chinese && line.chars().count() <= 32
            || says && line.split([' ', '-', ',']).any(year)
            || line.len() <= 100 && (line.contains(" min read") || line.contains(" minute read"))
    };
    let article = text.len() >= LEAST && text.lines().take(TOP).any(|it| dated(it.trim()));
    if article { text.split("\n\n").next().unwrap_or_default() } else { text }
}

/// The text before the pasted reply of a chatbot, which the heading of its web page shows.
fn before_chatbot(text: &str) -> &str {
    const NAMES: [&str; 5] = ["ChatGPT", "Gemini", "Claude", "Copilot", "Grok"];
    const SAID: [&str; 6] = [" said", " a dit", " dijo", " disse", " hat gesagt", " ha detto"];
    let heads = |line: &str| {
        let line = line.trim_end_matches([':', ' ', '\r', '\n']);
        NAMES.iter().any(|name| line.strip_prefix(name).is_some_and(|it| SAID.contains(&it)))
    };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if heads(line) {
            return &text[..at];
        }
        at += line.len();
    }
    text
}

/// The lines from the first paragraph to the last with a citation of Gemini's app outside of code; none if there is only one
/// citation.
fn cited_lines(text: &str) -> Range<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let count = |line: &str| -> usize {
        let outside = line.split('`').step_by(2);
        outside.map(|it| it.matches("[cite: ").count() + it.matches("[cite_start]").count()).sum()
    };
    let blank = |at: &usize| lines[*at].trim().is_empty();
    let cites = |at: &usize| count(lines[*at]) > 0;
    let (first, last) = ((0..lines.len()).find(cites), (0..lines.len()).rfind(cites));
    let all: usize = lines.iter().map(|it| count(it)).sum();
    match first.zip(last).filter(|_| all > 1) {
        Some((first, last)) => {
            let from = (0..first).rfind(blank).map_or(0, |it| it + 1);
            from..(last..lines.len()).find(blank).unwrap_or(lines.len())
        }
        None => 0..0,
    }
}

/// What a person says in their own words: without code, quotations, pasted logs, and what clients wrap in tags.
pub(crate) fn own_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let text = outside_transcripts(std::iter::once(typed(text))).join("\n");
    let text = before_chatbot(before_article(&text));
    let mut fenced = false;
    let mut tag: Option<&str> = None;
    let mut in_log = false;
    let mut in_diff = false;
    let closed: BTreeSet<&str> =
        text.lines().flat_map(|it| it.match_indices("</").map(|(at, _)| tag_name(&it[at + 2..]))).collect();
    let cited = cited_lines(text);
    // The comments of a pasted script are nobody's orders.
    let statement = |it: &&str| {
        ["ALTER ", "CREATE ", "DROP ", "INSERT "].iter().any(|of| it.trim_start().starts_with(of))
    };
    let is_sql = text.lines().filter(statement).nth(2).is_some();
    for (number, line) in text.lines().enumerate() {
        let bare = line.trim();
        if cited.contains(&number) || is_sql && bare.starts_with("--") {
            out.push('\n');
            continue;
        }
        if cues::ENDS_OWN_WORDS.iter().any(|it| bare.starts_with(it)) {
            break;
        }
        if bare.starts_with("~~~") || bare.matches("```").count() % 2 == 1 {
            // What is typed on the line of a fence is outside the block.
            let (before, after) = bare.split_once("```").unwrap_or_default();
            let typed = if fenced && after.contains(' ') { after } else { before };
            fenced = !fenced;
            in_log = false;
            out.push_str(typed);
            out.push('\n');
            continue;
        }
        in_diff = ["diff --git ", "@@ -", "=== DIFF"].iter().any(|it| line.starts_with(it))
            || in_diff
                && (bare.is_empty() || line.starts_with(['+', '-', ' ', '\t']) || line.starts_with("index "));
        if in_diff {
            out.push('\n');
            continue;
        }
        if let Some(name) = tag {
            if bare.contains("</") && bare.split("</").skip(1).any(|it| tag_name(it) == name) {
                tag = None;
            }
            continue;
        }
        if let Some(rest) = bare.strip_prefix('<') {
            let name = tag_name(rest);
            if !name.is_empty() && closed.contains(name) && !cues::OWN_TAGS.iter().any(|it| name.contains(it))
            {
                let here = format!("</{name}");
                if !bare.contains(&here) {
                    tag = Some(name);
                }
                continue;
            }
        }
        let wrapped_log = in_log && !bare.is_empty() && line.starts_with([' ', '\t']);
        in_log = !fenced && !bare.is_empty() && (is_log(bare) || wrapped_log);
        if !fenced && !in_log {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

fn tag_name(rest: &str) -> &str {
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).unwrap_or(rest.len());
    &rest[..end]
}

/// Whether a line was pasted from a program rather than written by a person.
fn is_log(line: &str) -> bool {
    let head: String = line.chars().take(24).collect();
    let digits = head.chars().filter(char::is_ascii_digit).count();
    let stamped = digits >= 6 && head.contains([':', '-', '/']) && !head.contains("http");
    let opens = program_words::LOG_OPENINGS.iter().any(|it| line.starts_with(it));
    let levels = ["|INFO|", "|DEBU|", "|WARN|", "|ERRO|", "level=", " INFO ", " WARN ", " ERROR ", " DEBUG "];
    let letters = line.chars().filter(|c| c.is_alphabetic() || *c == ' ').count();
    let total = line.chars().count();
    stamped
        || opens
        || levels.iter().any(|it| line.contains(it))
        || line.starts_with('>') && !line.starts_with(">=")
        || line.starts_with("at ")
            && line.contains([':', '('])
            && line.ends_with([')', '>', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
        || line.starts_with('[') && !line.starts_with("[ ]") && line.find("] ").is_some_and(|it| it < 30)
        || line.starts_with('(') && line.split(')').next().is_some_and(|it| it.contains(" pid="))
        || line.starts_with('{') && line.contains('"')
        || line.starts_with('"') && line.contains("\":")
        || total > 40 && letters * 10 < total * 6
}
