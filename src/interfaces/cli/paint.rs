//! Colors, bars and tables for terminals.

use unicode_segmentation::UnicodeSegmentation;

use crate::interfaces::terminal::{LineMode, visible};

/// Whether to print colors, and the width of the terminal.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    /// A random number after the escape character in our own color codes until they are printed, so that
    /// escape sequences in other text are not taken for ours. `None`: no color.
    mark: Option<u64>,
    columns: Option<usize>,
}

impl Paint {
    /// `columns`: the terminal's width; `None` if there is no terminal or its width is unknown.
    pub fn new(colour: bool, columns: Option<usize>) -> Self {
        // The standard library's hashers have random seeds.
        let mark = || std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), ());
        Self { mark: colour.then(mark), columns }
    }

    fn code(self, code: &str, text: &str) -> String {
        match self.mark {
            Some(mark) => format!("\u{1b}{mark:016x}[{code}m{text}\u{1b}{mark:016x}[0m"),
            None => text.to_owned(),
        }
    }

    /// The text to print: our colors as real escape sequences, everything else through [`visible`].
    pub(super) fn visible(self, text: &str, form: LineMode) -> String {
        let Some(mark) = self.mark else { return visible(text, form).into_owned() };
        let own = format!("\u{1b}{mark:016x}");
        let parts: Vec<_> = text.split(&own).map(|it| visible(it, form)).collect();
        parts.join("\u{1b}")
    }

    pub fn strong(self, text: &str) -> String {
        self.code("1", text)
    }

    pub fn faint(self, text: &str) -> String {
        self.code("2", text)
    }

    pub fn good(self, text: &str) -> String {
        self.code("32", text)
    }

    pub fn warn(self, text: &str) -> String {
        self.code("33", text)
    }

    /// A bar of `width` columns, filled to `share` (0 to 1).
    pub fn bar(self, share: f64, width: usize) -> String {
        self.filled(share, width, "36")
    }

    /// Like [`Self::bar`], for something that should not fill up: red from 80 %.
    pub fn gauge(self, share: f64, width: usize) -> String {
        self.filled(share, width, if share >= 0.8 { "31" } else { "36" })
    }

    fn filled(self, share: f64, width: usize, colour: &str) -> String {
        let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
        let (full, rest) = (eighths / 8, eighths % 8);
        let mut out = "█".repeat(full);
        if rest > 0 {
            out.extend([" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(rest).copied());
        }
        let used = full + usize::from(rest > 0);
        format!("{}{}", self.code(colour, &out), self.faint(&"░".repeat(width.saturating_sub(used))))
    }
}

/// Bytes in readable form: 950 B, 8.2 kB, 182 kB, 1.2 MB.
pub(super) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..10_000 => format!("{:.1} kB", count as f64 / 1e3),
        10_000..1_000_000 => format!("{} kB", (count + 500) / 1_000),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

/// The shortest distinct prefixes of these ids, of at least eight characters.
pub(super) fn short_ids<'a>(ids: impl Iterator<Item = &'a str> + Clone) -> Vec<&'a str> {
    let shared = |one: &str, other: &str| one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let all = ids.clone();
    let short = |id: &'a str| {
        let same = all.clone().filter(|it| *it != id).map(|it| shared(id, it)).max().unwrap_or(0);
        id.get(..(same + 1).max(8)).unwrap_or(id)
    };
    ids.map(short).collect()
}

/// Aligned columns; the first row is the header. Width is counted in graphemes, CJK ones as two columns.
/// Lines are cut to the terminal's width.
fn table(rows: &[Vec<String>], paint: Paint) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|at| rows.iter().filter_map(|it| it.get(at)).map(|it| width(it)).max().unwrap_or(0))
        .collect();
    let row = |(number, cells): (usize, &Vec<String>)| {
        let mut line = String::new();
        for (at, cell) in cells.iter().enumerate() {
            line.push_str(cell);
            if at + 1 < cells.len() {
                line.push_str(&" ".repeat(widths[at] - width(cell) + 2));
            }
        }
        let line = match paint.columns {
            Some(columns) => cut(&line, columns),
            None => line,
        };
        if number == 0 { paint.faint(&line) } else { line }
    };
    rows.iter().enumerate().map(row).collect()
}

/// Width to which the last column is cut before other columns are hidden.
const LAST: usize = 32;

/// Like [`table`], but while the rows are wider than the terminal (with the last column cut to [`LAST`]),
/// hides columns in the order of `dispensable`. Also returns the names of the hidden ones.
pub(super) fn fitted(rows: &[Vec<String>], dispensable: &[&str], paint: Paint) -> (Vec<String>, Vec<String>) {
    let mut rows = rows.to_vec();
    let mut gone = Vec::new();
    let line = |line: &str, row: &[String]| {
        let last = row.last().map_or(0, |it| width(it.trim_end()));
        width(line.trim_end()) - last.saturating_sub(LAST)
    };
    let wide = |rows: &[Vec<String>]| {
        let most = table(rows, Paint::new(false, None)).iter().zip(rows).map(|(it, row)| line(it, row)).max();
        paint.columns.is_some_and(|columns| most.unwrap_or(0) > columns)
    };
    for name in dispensable {
        let Some(at) = rows.first().and_then(|it| it.iter().position(|it| it == name)) else { continue };
        if !wide(&rows) {
            break;
        }
        for row in rows.iter_mut().filter(|it| it.len() > at) {
            row.remove(at);
        }
        gone.push((*name).to_owned());
    }
    (table(&rows, paint), gone)
}

/// Wraps a text to the terminal's width, between words; further lines are indented.
pub(super) fn wrapped(text: &str, paint: Paint) -> Vec<String> {
    const INDENT: &str = "  ";
    let Some(columns) = paint.columns.filter(|it| *it > 20) else { return vec![text.to_owned()] };
    let mut out = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let size = width(word);
        if used > 0 && used + 1 + size > columns {
            out.push(INDENT.to_owned());
            used = INDENT.len();
        } else if used > 0 {
            if let Some(line) = out.last_mut() {
                line.push(' ');
            }
            used += 1;
        }
        if let Some(line) = out.last_mut() {
            line.push_str(word);
        }
        used += size;
    }
    out
}

/// Cuts a line to `columns` columns, ending in `…`; color codes are kept whole.
fn cut(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let (mut out, mut used) = (String::new(), 0);
    for (number, piece) in line.split('\u{1b}').enumerate() {
        let text = match piece.split_once('m').filter(|_| number > 0) {
            Some((code, text)) => {
                out.push_str(&format!("\u{1b}{code}m"));
                text
            }
            None => piece,
        };
        for it in text.graphemes(true) {
            used += width(it);
            if used < columns {
                out.push_str(it);
            }
        }
    }
    out.push('…');
    out
}

/// Width on a terminal, not counting color codes.
pub(super) fn width(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().map_or(0, columns);
    first + parts.map(|it| it.split_once('m').map_or(0, |(_, rest)| columns(rest))).sum::<usize>()
}

fn columns(text: &str) -> usize {
    let wide = |it: &str| {
        it.chars().next().is_some_and(|it| matches!(it as u32, 0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE30..=0xFE6F | 0xFF00..=0xFF60 | 0xFFE0..=0xFFE6 | 0x1F300..=0x1FAFF | 0x20000..=0x3FFFD))
    };
    text.graphemes(true).map(|it| if wide(it) { 2 } else { 1 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_colours_reach_the_terminal() {
        let paint = Paint::new(true, None);
        let text = format!("{} \u{1b}[31mred\u{1b}[0m", paint.strong("\u{1b}[2Jours"));
        assert_eq!(paint.visible(&text, LineMode::Line), "\u{1b}[1m␛[2Jours\u{1b}[0m ␛[31mred␛[0m");
        let plain = Paint::new(false, None);
        assert_eq!(plain.visible(&plain.strong("\u{1b}[1m"), LineMode::Line), "␛[1m");
        assert_eq!(width(&paint.gauge(0.5, 20)), 20);
    }

    #[test]
    fn a_table_fits_the_terminal_and_is_whole_without_one() {
        let rows: Vec<Vec<String>> = ["name tokens ms", "one 10k 4", "another 20k 12"]
            .iter()
            .map(|it| it.split(' ').map(str::to_owned).collect())
            .collect();
        let fit = |columns| fitted(&rows, &["ms", "nothing", "tokens"], Paint::new(false, columns));
        assert_eq!(
            fit(None),
            (
                vec!["name     tokens  ms".into(), "one      10k     4".into(), "another  20k     12".into()],
                vec![]
            )
        );
        assert_eq!(fit(Some(19)).1, Vec::<String>::new());
        assert_eq!(
            fit(Some(18)),
            (
                vec!["name     tokens".into(), "one      10k".into(), "another  20k".into()],
                vec!["ms".to_owned()]
            )
        );
        assert_eq!(fit(Some(3)).0, ["na…", "one", "an…"]);
    }

    #[test]
    fn text_is_broken_between_words() {
        let text = "now: 52 of 100 tokens; nothing is said of 日本語 here";
        assert_eq!(wrapped(text, Paint::new(false, None)), [text]);
        let lines = wrapped(text, Paint::new(false, Some(24)));
        assert_eq!(lines, ["now: 52 of 100 tokens;", "  nothing is said of", "  日本語 here"]);
    }
}
