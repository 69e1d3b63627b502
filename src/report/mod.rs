//! The report page: one HTML file that needs no network and runs no script. Built from values.

mod chart;
pub mod scorecard;
mod side;

use std::fmt::Write as _;

use history::named;
use score::Class;
use tokens::Categories;

/// Titles of the categories, and their colors in the style sheet, in the order of [`Categories::named`].
const CATEGORIES: [(&str, &str); 8] = [
    ("system, tools, context", "system"),
    ("summaries", "summary"),
    ("user", "user"),
    ("assistant", "assistant"),
    ("reasoning", "reasoning"),
    ("tool calls", "calls"),
    ("tool outputs", "outputs"),
    ("media", "media"),
];

named! {
    /// What becomes of a message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Fate {
        /// It stays word for word.
        Kept = "kept",
        /// It stays, an output in it is cleared or shortened.
        Cleared = "cleared",
        /// The summary stands in its place.
        Summarized = "summarized",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportEntry {
    /// Its number in the original; `None` for a new message.
    pub number: Option<usize>,
    /// The role or the tool: `user`, `Bash`.
    pub who: String,
    pub tokens: Categories,
    pub text: String,
    pub fate: Fate,
    /// Whether it is the summary; then `text` is the whole summary, in Markdown.
    pub summary: bool,
}

/// Something that happened to the context earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineMark {
    /// The message at which it is marked.
    pub message: usize,
    pub what: String,
    /// For a compaction before the first message: the context before and after it, in tokens, as the agent
    /// recorded them.
    pub past: Option<(u64, Option<u64>)>,
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Remains {
        /// Neither in the result nor in the archive.
        Lost = "lost",
        /// Only in the archive, behind a handle.
        Recoverable = "only in the archive",
        /// Said in what replaces the messages.
        Kept = "kept in the summary",
        /// It stands in the messages that stay.
        InTail = "in the messages that stay",
    }
}

impl Remains {
    fn class(self) -> &'static str {
        match self {
            Self::Lost => "is-lost",
            Self::Recoverable => "is-back",
            Self::Kept => "is-kept",
            Self::InTail => "is-tail",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFact {
    pub class: Class,
    /// The fact in one line.
    pub text: String,
    /// The messages that contain it.
    pub messages: Vec<usize>,
    pub remains: Remains,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub title: String,
    /// Agent, model, dates: shown below the title.
    pub about: Vec<String>,
    /// The profile that the compaction follows.
    pub profile: String,
    /// The model's window in tokens, if known.
    pub window: Option<u64>,
    /// Tokens of system prompt and tools outside the messages.
    pub overhead: u64,
    /// How tokens were counted.
    pub counted: String,
    pub marks: Vec<TimelineMark>,
    pub before: Vec<ReportEntry>,
    /// The messages after the compaction; empty if nothing would be done.
    pub after: Vec<ReportEntry>,
    /// Why nothing would be done.
    pub reason: String,
    /// Weighted share of the facts that the new messages still contain.
    pub kept: Option<f64>,
    pub facts: Vec<ReportFact>,
}

impl Page {
    pub fn html(&self) -> String {
        let mut out = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        // Session text may be hostile: allow only this file's own styles.
        out.push_str("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n");
        let title = escape(&self.title);
        let _ =
            write!(out, "<title>{title} · epitome</title>\n<style>\n{}</style>\n", include_str!("style.css"));
        let _ = write!(out, "</head>\n<body>\n<main>\n<h1>{title}</h1>\n");
        let about: Vec<String> = self.about.iter().map(|it| escape(it)).collect();
        let _ = writeln!(out, "<div class=\"soft\">{}</div>", about.join(" · "));
        self.figures(&mut out);
        chart::context(&mut out, self);
        self.facts(&mut out);
        side::sides(&mut out, self);
        let _ = writeln!(
            out,
            "<footer class=\"soft small\">Made by epitome, offline. {} Facts are matched by their words; whether a model will use them is not measured.</footer>\n</main>\n</body>\n</html>",
            escape(&self.counted)
        );
        out
    }

    fn figures(&self, out: &mut String) {
        let total = |of: &[ReportEntry]| of.iter().map(|it| it.tokens.total()).sum::<u64>();
        let (before, after) = (total(&self.before), total(&self.after));
        out.push_str("<section class=\"figures\">\n");
        let box_of = |out: &mut String, big: String, small: String, gauge: String| {
            let _ = writeln!(
                out,
                "<div class=\"figure\"><b>{big}</b><span class=\"soft\">{small}</span>{gauge}</div>"
            );
        };
        let bars = |wide: f64, narrow: f64| {
            format!(
                "<div class=\"gauge\"><span style=\"width:{:.1}%\"></span><span style=\"width:{:.1}%\"></span></div>",
                wide.min(1.0) * 100.0,
                narrow.min(1.0) * 100.0
            )
        };
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        if self.after.is_empty() {
            box_of(out, size(before), "tokens of messages".into(), String::new());
            box_of(out, "nothing to do".into(), escape(&self.reason), String::new());
        } else {
            let saved = 100.0 * (1.0 - share(after, before));
            let big = format!("{}<i>→</i>{}", size(before), size(after));
            box_of(out, big, format!("tokens of messages, −{saved:.0} %"), bars(1.0, share(after, before)));
            match self.kept {
                Some(kept) => {
                    let small = "of the summarized facts are kept (weighted)".to_owned();
                    box_of(out, format!("{:.0} %", (kept * 100.0).floor()), small, bars(0.0, kept));
                }
                None => {
                    box_of(out, "–".into(), "the removed messages contain no facts".into(), String::new());
                }
            }
        }
        match self.window {
            Some(window) => {
                let used = |it: u64| share(it + self.overhead, window);
                let then = if self.after.is_empty() { before } else { after };
                let arrow = if self.after.is_empty() {
                    String::new()
                } else {
                    format!("<i>→</i>{:.0} %", used(after) * 100.0)
                };
                let big = format!("{:.0} %{arrow}", used(before) * 100.0);
                let small = format!("of the window of {} tokens", size(window));
                box_of(out, big, small, bars(used(before), used(then)));
            }
            None => {
                box_of(out, "?".into(), "the model's window is unknown".into(), String::new());
            }
        }
        out.push_str("</section>\n");
    }

    fn facts(&self, out: &mut String) {
        if self.facts.is_empty() || self.after.is_empty() {
            return;
        }
        out.push_str("<section class=\"card\">\n<h2>What becomes of the facts</h2>\n");
        out.push_str("<div class=\"soft small\">Rules, decisions, files, commands, errors: read from the original by the scorer, looked for in the result. Open a line to see them; numbers lead to the messages.</div>\n<ul class=\"legend\">");
        for it in [Remains::InTail, Remains::Kept, Remains::Recoverable, Remains::Lost] {
            let _ = write!(out, "<li><i class=\"{}\"></i>{}</li>", it.class(), it.name());
        }
        out.push_str("</ul>\n");
        for class in Class::ALL {
            let mut facts: Vec<&ReportFact> = self.facts.iter().filter(|it| it.class == class).collect();
            if facts.is_empty() {
                continue;
            }
            // Lost facts first: they matter most to the reader.
            facts.sort_by_key(|it| it.remains);
            let count = |remains: Remains| facts.iter().filter(|it| it.remains == remains).count();
            let mut name = class.name().to_owned();
            if let Some(first) = name.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            let gone = count(Remains::Lost) + count(Remains::Recoverable);
            let _ = write!(
                out,
                "<details class=\"class\"><summary><span class=\"name\">{name}</span><span class=\"bar\">"
            );
            for it in [Remains::InTail, Remains::Kept, Remains::Recoverable, Remains::Lost] {
                if count(it) > 0 {
                    let _ =
                        write!(out, "<span class=\"{}\" style=\"flex:{}\"></span>", it.class(), count(it));
                }
            }
            let _ = write!(
                out,
                "</span><span class=\"share\">{} of {}</span></summary>\n<ul class=\"list\">",
                facts.len() - gone,
                facts.len()
            );
            for fact in facts.iter().take(LISTED) {
                let _ = write!(
                    out,
                    "<li><i class=\"{}\" title=\"{}\"></i><span>{}</span><nav>",
                    fact.remains.class(),
                    fact.remains.name(),
                    escape(&fact.text)
                );
                // Link the first message and the newest two.
                let newest = fact.messages.len().saturating_sub(2).max(1);
                for it in fact.messages.iter().take(1).chain(fact.messages.iter().skip(newest)) {
                    let _ = write!(out, " <a href=\"#m{it}\">#{it}</a>");
                }
                out.push_str("</nav></li>");
            }
            if facts.len() > LISTED {
                let _ = write!(
                    out,
                    "<li><i></i><span>… and {} more</span><nav></nav></li>",
                    facts.len() - LISTED
                );
            }
            out.push_str("</ul></details>\n");
        }
        out.push_str("</section>\n");
    }
}

/// Maximum facts listed per class.
const LISTED: usize = 150;

/// Escapes a text for HTML content or a quoted attribute. Drops control characters, which could hide text.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for it in text.chars() {
        match it {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(it),
            // Bidirectional controls would reorder the page.
            '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {}
            _ if it.is_control() => {}
            _ => out.push(it),
        }
    }
    out
}

/// `1 turn`, `2 turns`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A number in readable form: 950, 8.2k, 182k, 1.2M.
pub(crate) fn size(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..10_000 => format!("{:.1}k", tokens as f64 / 1e3),
        10_000..1_000_000 => format!("{}k", (tokens + 500) / 1_000),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: usize, text: &str, fate: Fate) -> ReportEntry {
        ReportEntry {
            number: Some(number),
            who: "user".into(),
            tokens: Categories { user: 100, ..Categories::default() },
            text: text.into(),
            fate,
            summary: false,
        }
    }

    fn page(text: &str) -> Page {
        let summary = ReportEntry {
            number: None,
            summary: true,
            ..entry(0, &format!("## Goal\n- {text} `a` [#0]"), Fate::Kept)
        };
        Page {
            title: text.into(),
            about: vec![text.into()],
            profile: "epitome".into(),
            window: Some(1_000),
            overhead: 10,
            counted: String::new(),
            marks: vec![
                TimelineMark { message: 1, what: text.into(), past: None },
                TimelineMark { message: 0, what: text.into(), past: Some((900, None)) },
            ],
            before: vec![
                entry(0, text, Fate::Summarized),
                entry(1, text, Fate::Cleared),
                entry(2, text, Fate::Kept),
            ],
            after: vec![summary, entry(2, text, Fate::Kept)],
            reason: String::new(),
            kept: Some(0.5),
            facts: vec![ReportFact {
                class: Class::UserRule,
                text: text.into(),
                messages: vec![0, 1, 2],
                remains: Remains::Lost,
            }],
        }
    }

    #[test]
    fn nothing_of_a_session_becomes_markup() {
        let hostile = "<script>alert('x')</script>\"'&<img src=x onerror=y>\u{202E}[#1]";
        let html = page(hostile).html();
        assert!(!html.contains("<script"), "{html}");
        assert!(!html.contains("<img"));
        assert!(!html.contains('\u{202E}'));
        assert!(!html.contains("http://") && !html.contains("https://"));
    }

    #[test]
    fn numbers_lead_to_messages_that_are_there() {
        let html = page("plain").html();
        let targets: Vec<&str> =
            html.split("href=\"#").skip(1).filter_map(|it| it.split('"').next()).collect();
        assert!(targets.len() > 4, "{targets:?}");
        for target in targets {
            assert!(html.contains(&format!("id=\"{target}\"")), "{target}");
        }
    }

    #[test]
    fn empty_histories_have_a_page() {
        let html =
            Page { before: Vec::new(), after: Vec::new(), facts: Vec::new(), window: None, ..page("x") }
                .html();
        assert!(html.contains("nothing to do"));
        assert!(!html.contains("NaN"));
    }
}
