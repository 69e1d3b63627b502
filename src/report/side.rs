//! The messages before and after, side by side.

use std::fmt::Write as _;

use super::{CATEGORIES, Fate, Page, ReportEntry, escape, size};
use tokens::Categories;

/// Total characters of all messages, limited so that the page of a long session still opens at once.
const BUDGET: usize = 900_000;
/// Characters of a message shown before it is expanded.
const SHOWN: usize = 260;

pub(super) fn sides(out: &mut String, page: &Page) {
    if page.before.is_empty() {
        return;
    }
    if page.after.is_empty() {
        out.push_str("<div>\n");
        side(out, page, Side::Alone);
    } else {
        out.push_str("<div class=\"sides\">\n");
        side(out, page, Side::Before);
        side(out, page, Side::After);
    }
    out.push_str("</div>\n");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Nothing would be done: there is only one side.
    Alone,
    Before,
    After,
}

fn side(out: &mut String, page: &Page, side: Side) {
    let (title, entries) = match side {
        Side::Alone => ("The messages", &page.before),
        Side::Before => ("Before", &page.before),
        Side::After => ("After", &page.after),
    };
    let count = entries.len();
    let _ = write!(
        out,
        "<section class=\"card side\"><h2>{title}</h2><div class=\"soft small\">{count} messages</div>\n<div class=\"scroll\">\n"
    );
    for (at, entry) in entries.iter().enumerate() {
        message(out, entry, at, side, page.before.len());
    }
    out.push_str("</div></section>\n");
}

/// The color of the category with most of a message's tokens.
fn colour(tokens: &Categories) -> &'static str {
    let named = tokens.named().into_iter().zip(CATEGORIES).rev();
    named.max_by_key(|(it, _)| it.1).map_or("system", |(_, it)| it.1)
}

/// Writes one message. `at`: its index on its side, and its anchor if that is the side before. `messages`:
/// number of messages before.
fn message(out: &mut String, entry: &ReportEntry, at: usize, side: Side, messages: usize) {
    let (id, number) = match side {
        Side::Alone | Side::Before => (format!(" id=\"m{at}\""), Some(at)),
        Side::After => (String::new(), entry.number),
    };
    // Not `is-kept` and the like: those classes color facts.
    let faded = side == Side::Before && entry.fate == Fate::Summarized;
    let fate = if faded { " is-summarized" } else { "" };
    let colour = colour(&entry.tokens);
    let _ = write!(out, "<article class=\"m{fate}\"{id} style=\"--of:var(--{colour})\"><header>");
    match number {
        Some(number) => {
            let _ = write!(out, "<a href=\"#m{number}\">#{number}</a>");
        }
        None => out.push_str("<span class=\"tag\">new</span>"),
    }
    let _ = write!(out, "<b>{}</b>", escape(&entry.who));
    let tag = match (side == Side::Before, entry.fate) {
        (true, Fate::Kept) => "<span class=\"tag kept\">kept</span> ",
        (_, Fate::Cleared) => "<span class=\"tag cleared\">output cleared</span> ",
        (_, Fate::Kept | Fate::Summarized) => "",
    };
    let _ = write!(out, "<span class=\"end\">{tag}{}</span></header>", size(entry.tokens.total()));
    if entry.summary {
        prose(out, &entry.text, messages);
    } else {
        text(out, &entry.text, (BUDGET / messages).clamp(SHOWN, 4_000));
    }
    out.push_str("</article>\n");
}

fn text(out: &mut String, text: &str, most: usize) {
    let text = text.trim();
    let (short, cut) = head(text, SHOWN);
    if !cut {
        let _ = write!(out, "<p>{}</p>", escape(short));
        return;
    }
    let (long, more) = head(text, most);
    let rest = escape(long.get(short.len()..).unwrap_or_default());
    let _ = write!(
        out,
        "<details><summary><p>{}<span class=\"more\"> … more</span></p></summary><p>…{rest}{}</p></details>",
        escape(short),
        if more { " …" } else { "" }
    );
}

/// The first `most` characters of a text, and whether there are more.
fn head(text: &str, most: usize) -> (&str, bool) {
    match text.char_indices().nth(most) {
        Some((at, _)) => (&text[..at], true),
        None => (text, false),
    }
}

/// Renders a summary: headings, list items, inline code, and message numbers as links.
fn prose(out: &mut String, text: &str, messages: usize) {
    out.push_str("<div class=\"prose\">");
    for line in text.lines().filter(|it| !it.trim().is_empty()) {
        if let Some(title) = line.strip_prefix('#') {
            let _ = write!(out, "<h4>{}</h4>", escape(title.trim_start_matches('#').trim()));
        } else if let Some(point) = line.trim_start().strip_prefix("- ") {
            let _ = write!(out, "<div>{}</div>", inline(point, messages));
        } else {
            let _ = write!(out, "<p>{}</p>", inline(line, messages));
        }
    }
    out.push_str("</div>");
}

/// Renders inline code and message numbers in a line.
fn inline(line: &str, messages: usize) -> String {
    let mut out = String::new();
    let pieces: Vec<&str> = line.split('`').collect();
    for (at, piece) in pieces.iter().enumerate() {
        // An unpaired backtick is plain text.
        let code = at % 2 == 1 && at + 1 < pieces.len();
        if code {
            let _ = write!(out, "<code>{}</code>", escape(piece));
        } else {
            if at % 2 == 1 {
                out.push('`');
            }
            numbers(&mut out, piece, messages);
        }
    }
    out
}

fn numbers(out: &mut String, text: &str, messages: usize) {
    let mut rest = text;
    while let Some(at) = rest.find("#") {
        let digits = rest[at + 1..].chars().take_while(char::is_ascii_digit).count();
        let number = rest[at + 1..at + 1 + digits].parse::<usize>().ok().filter(|it| *it < messages);
        out.push_str(&escape(&rest[..at]));
        match number {
            Some(number) => {
                let _ = write!(out, "<a class=\"soft\" href=\"#m{number}\">#{number}</a>");
            }
            None => out.push_str(&escape(&rest[at..at + 1 + digits])),
        }
        rest = &rest[at + 1 + digits..];
    }
    out.push_str(&escape(rest));
}
