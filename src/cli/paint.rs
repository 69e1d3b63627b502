//! Colour, bars and columns for people.

use unicode_segmentation::UnicodeSegmentation;

/// Colour, or none.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    colour: bool,
}

impl Paint {
    /// With colour or without.
    pub fn new(colour: bool) -> Self {
        Self { colour }
    }

    fn code(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// What matters.
    pub fn strong(self, text: &str) -> String {
        self.code("1", text)
    }

    /// What does not.
    pub fn faint(self, text: &str) -> String {
        self.code("2", text)
    }

    /// Good.
    pub fn good(self, text: &str) -> String {
        self.code("32", text)
    }

    /// Look here.
    pub fn warn(self, text: &str) -> String {
        self.code("33", text)
    }

    /// A bar of `width` columns, filled to `share` (0 to 1).
    pub fn bar(self, share: f64, width: usize) -> String {
        let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
        let (full, rest) = (eighths / 8, eighths % 8);
        let mut out = "█".repeat(full);
        if rest > 0 {
            out.extend([" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(rest).copied());
        }
        let used = full + usize::from(rest > 0);
        let bar = if share >= 0.8 { self.code("31", &out) } else { self.code("36", &out) };
        format!("{bar}{}", self.faint(&"░".repeat(width.saturating_sub(used))))
    }
}

/// A size for people: 950, 8.2k, 182k, 1.2M.
pub(super) fn size(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..10_000 => format!("{:.1}k", tokens as f64 / 1e3),
        10_000..1_000_000 => format!("{}k", (tokens + 500) / 1_000),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

/// Columns, aligned; the first row is the head. Widths count graphemes, CJK ones double.
pub(super) fn table(rows: &[Vec<String>], paint: Paint) -> Vec<String> {
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
        if number == 0 { paint.faint(&line) } else { line }
    };
    rows.iter().enumerate().map(row).collect()
}

/// Columns on a terminal.
pub(super) fn width(text: &str) -> usize {
    let wide = |it: &str| {
        it.chars().next().is_some_and(|it| matches!(it as u32, 0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE30..=0xFE6F | 0xFF00..=0xFF60 | 0xFFE0..=0xFFE6 | 0x1F300..=0x1FAFF | 0x20000..=0x3FFFD))
    };
    text.graphemes(true).map(|it| if wide(it) { 2 } else { 1 }).sum()
}
