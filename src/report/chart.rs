//! The chart of the context over the session: stacked areas by category.

use std::fmt::Write as _;

use super::{CATEGORIES, Fate, Page, TimelineMark, escape, size};
use tokens::Categories;

/// Maximum columns of the chart; with more messages, several share a column.
const STEPS: usize = 400;
/// Width and height of the drawing in its own units; it is stretched to fit.
const WIDE: f64 = 1000.0;
const HIGH: f64 = 1000.0;

/// Maximum earlier compactions drawn: the newest.
const PAST: usize = 6;

/// A column of the chart: the context after its messages.
struct Column {
    /// Number of the message after its last.
    to: usize,
    sum: Categories,
}

pub(super) fn context(out: &mut String, page: &Page) {
    if page.before.is_empty() {
        return;
    }
    let steps = steps(page);
    let top_sum: u64 = steps.last().map_or(0, |it| it.sum.total());
    let past: Vec<_> = page.marks.iter().filter_map(|it| Some((it, it.past?))).collect();
    let past = &past[past.len().saturating_sub(PAST)..];
    let top_sum = past.iter().map(|it| it.1.0).fold(top_sum, u64::max);
    // A window far above the context would flatten the chart: draw no line for it.
    let window = page.window.filter(|it| *it <= top_sum.saturating_mul(5) / 2);
    let top = (top_sum.max(window.unwrap_or(0)) as f64 * 1.06).max(1.0);
    let y = |tokens: u64| tokens as f64 / top;
    out.push_str("<section class=\"card\">\n<h2>The context, message by message</h2>\n");
    caption(out, page);
    legend(out, &steps);
    out.push_str("<div class=\"plot\">\n<div class=\"y\">");
    for line in grid(top) {
        let _ = write!(out, "<span style=\"bottom:{:.2}%\">{}</span>", y(line) * 100.0, size(line));
    }
    out.push_str("</div>\n");
    past_sawtooth(out, past, &y);
    out.push_str("<div class=\"area\">");
    areas(out, page, &steps, &y, top);
    if let Some(window) = window {
        let _ = write!(
            out,
            "<div class=\"ceiling\" style=\"bottom:{:.2}%\"><span>window {}</span></div>",
            y(window) * 100.0,
            size(window)
        );
    }
    for mark in page.marks.iter().filter(|it| it.past.is_none()) {
        let at = mark.message as f64 / page.before.len() as f64;
        let late = if at > 0.5 { " late" } else { "" };
        let _ = write!(
            out,
            "<div class=\"mark{late}\" style=\"left:{:.2}%\"><span>{}</span></div>",
            at * 100.0,
            escape(&mark.what)
        );
    }
    out.push_str("</div>\n<div class=\"then\">");
    column_after(out, page, &y);
    out.push_str("</div>\n");
    fate_strip(out, page);
    let last = page.before.len() - 1;
    let end = if page.after.is_empty() { "" } else { "after" };
    let _ = write!(
        out,
        "<div class=\"x\"><span>#0</span><span>{}</span><span>#{last}</span></div><div class=\"x end\">{end}</div>\n</div>\n",
        if page.after.is_empty() { "" } else { "what becomes of each message" }
    );
    if !page.after.is_empty() {
        fates(out, page);
    }
    out.push_str("</section>\n");
}

fn caption(out: &mut String, page: &Page) {
    let before = match page.marks.iter().filter(|it| it.past.is_some()).count() {
        0 => String::new(),
        1 => " At the left, the compaction made before, not to scale in time.".to_owned(),
        n if n > PAST => {
            format!(" At the left, the last {PAST} of {n} compactions made before, not to scale in time.")
        }
        n => format!(" At the left, {n} compactions made before, not to scale in time."),
    };
    let next = if page.after.is_empty() {
        String::new()
    } else {
        format!(" At the right, what the profile “{}” would make of it now.", escape(&page.profile))
    };
    let _ =
        writeln!(out, "<div class=\"soft small\">What the model is sent, as it grew.{before}{next}</div>");
}

/// The legend of the messages' fates.
fn fates(out: &mut String, page: &Page) {
    out.push_str("<ul class=\"legend\">");
    for fate in [Fate::Summarized, Fate::Cleared, Fate::Kept] {
        let count = page.before.iter().filter(|it| it.fate == fate).count();
        if count == 0 {
            continue;
        }
        let what = match fate {
            Fate::Kept => "kept word for word",
            Fate::Cleared => "kept, an output cleared or shortened",
            Fate::Summarized => "replaced by the summary",
        };
        let _ = write!(out, "<li><i class=\"fate-{}\"></i>{what} <b>{count}</b></li>", fate.name());
    }
    out.push_str("</ul>\n");
}

/// The context after each message, or after each of [`STEPS`] groups of messages.
fn steps(page: &Page) -> Vec<Column> {
    let all = page.before.len();
    let count = all.min(STEPS);
    let mut sum = Categories { system: page.overhead, ..Categories::default() };
    let mut out = vec![Column { to: 0, sum }];
    let mut at = 0;
    for step in 1..=count {
        let to = all * step / count;
        sum = page.before[at..to].iter().fold(sum, |sum, it| sum + it.tokens);
        at = to;
        out.push(Column { to, sum });
    }
    out
}

fn legend(out: &mut String, steps: &[Column]) {
    let Some(last) = steps.last() else { return };
    let all = last.sum.total();
    out.push_str("<ul class=\"legend\">");
    for ((title, colour), (_, tokens)) in CATEGORIES.into_iter().zip(last.sum.named()) {
        if tokens > 0 {
            let _ = write!(
                out,
                "<li><i style=\"background:var(--{colour})\"></i>{title} <b>{}</b> {:.0} %</li>",
                size(tokens),
                tokens as f64 * 100.0 / all.max(1) as f64
            );
        }
    }
    out.push_str("</ul>\n");
}

/// Grid lines: four or five round numbers of tokens.
fn grid(top: f64) -> Vec<u64> {
    let rough = top / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|it| it * power).into_iter().find(|it| *it >= rough);
    let step = step.unwrap_or(rough).max(1.0);
    (0..=5).map(|it| (f64::from(it) * step) as u64).filter(|it| (*it as f64) < top * 0.97).collect()
}

/// Begins an SVG that is stretched to fit.
fn begin_drawing(out: &mut String, high: f64, what: &str) {
    let _ = write!(
        out,
        "<svg viewBox=\"0 0 {WIDE} {high}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{what}\">"
    );
}

fn areas(out: &mut String, page: &Page, steps: &[Column], y: &dyn Fn(u64) -> f64, top: f64) {
    begin_drawing(out, HIGH, "context by category");
    let x = |to: usize| to as f64 * WIDE / page.before.len().max(1) as f64;
    for line in grid(top).into_iter().filter(|it| *it > 0) {
        let at = HIGH - y(line) * HIGH;
        let _ = write!(
            out,
            "<line x1=\"0\" x2=\"{WIDE}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"var(--line)\" vector-effect=\"non-scaling-stroke\"/>"
        );
    }
    let edge =
        |it: &Column, below: usize| HIGH - y(it.sum.named()[..below].iter().map(|it| it.1).sum()) * HIGH;
    for (index, (_, colour)) in CATEGORIES.into_iter().enumerate() {
        if steps.iter().all(|it| it.sum.named()[index].1 == 0) {
            continue;
        }
        let mut path = String::new();
        for step in steps {
            let _ = write!(path, "{:.1},{:.1} ", x(step.to), edge(step, index + 1));
        }
        for step in steps.iter().rev() {
            let _ = write!(path, "{:.1},{:.1} ", x(step.to), edge(step, index));
        }
        let _ = write!(out, "<polygon points=\"{}\" fill=\"var(--{colour})\"/>", path.trim_end());
    }
    // Transparent areas with tooltips; each column links to its message.
    for pair in steps.windows(2) {
        let [from, to] = pair else { continue };
        let Some(entry) = page.before.get(from.to) else { continue };
        let all = to.sum.total();
        let _ = write!(
            out,
            "<a href=\"#m{0}\"><rect x=\"{1:.1}\" width=\"{2:.1}\" y=\"0\" height=\"{HIGH}\" fill=\"transparent\"><title>#{0} {3}: +{4} tokens, context {5}</title></rect></a>",
            from.to,
            x(from.to),
            x(to.to) - x(from.to),
            escape(&entry.who),
            size(all - from.sum.total()),
            size(all)
        );
    }
    out.push_str("</svg>");
}

/// Earlier compactions as a sawtooth: only the context before and after each is known.
fn past_sawtooth(out: &mut String, past: &[(&TimelineMark, (u64, Option<u64>))], y: &dyn Fn(u64) -> f64) {
    let _ = write!(out, "<div class=\"past\" style=\"--n:{}\">", past.len());
    if !past.is_empty() {
        let wide = WIDE / past.len() as f64;
        begin_drawing(out, HIGH, "earlier compactions");
        let mut low = 0;
        for (number, (mark, (before, after))) in past.iter().enumerate() {
            let (from, to) = (number as f64 * wide, (number + 1) as f64 * wide);
            let (start, end) = (HIGH - y(low) * HIGH, HIGH - y(*before) * HIGH);
            let _ = write!(
                out,
                "<polygon class=\"tooth\" points=\"{from:.1},{HIGH} {from:.1},{start:.1} {to:.1},{end:.1} {to:.1},{HIGH}\"><title>{}</title></polygon>",
                escape(&mark.what)
            );
            low = after.unwrap_or(0);
        }
        out.push_str("</svg>");
        for (number, (_, (before, _))) in past.iter().enumerate() {
            let _ = write!(
                out,
                "<span style=\"left:{:.1}%;bottom:calc({:.2}% + 2px)\">{}</span>",
                (number + 1) as f64 * 100.0 / past.len() as f64,
                y(*before) * 100.0,
                size(*before)
            );
        }
    }
    out.push_str("</div>\n");
}

/// The context after the compaction, as one column.
fn column_after(out: &mut String, page: &Page, y: &dyn Fn(u64) -> f64) {
    if page.after.is_empty() {
        return;
    }
    let overhead = Categories { system: page.overhead, ..Categories::default() };
    let sum = page.after.iter().fold(overhead, |sum, it| sum + it.tokens);
    let mut below = 0;
    for ((title, colour), (_, tokens)) in CATEGORIES.into_iter().zip(sum.named()).filter(|(_, it)| it.1 > 0) {
        let _ = write!(
            out,
            "<div style=\"bottom:{:.2}%;height:{:.2}%;background:var(--{colour})\" title=\"{title} {}\"></div>",
            y(below) * 100.0,
            y(tokens) * 100.0,
            size(tokens)
        );
        below += tokens;
    }
    let _ = write!(out, "<b style=\"bottom:calc({:.2}% + 3px)\">{}</b>", y(below) * 100.0, size(below));
}

/// A strip below the chart: the fate of each message.
fn fate_strip(out: &mut String, page: &Page) {
    if page.after.is_empty() {
        return;
    }
    let all = page.before.len() as f64;
    out.push_str("<div class=\"strip\">");
    begin_drawing(out, 10.0, "what becomes of each message");
    let mut at = 0;
    for run in page.before.chunk_by(|a, b| a.fate == b.fate) {
        let fate = run.first().map_or(Fate::Kept, |it| it.fate);
        let _ = write!(
            out,
            "<a href=\"#m{at}\"><rect class=\"fate-{}\" x=\"{:.2}\" width=\"{:.2}\" y=\"0\" height=\"10\"><title>#{at} to #{}: {}</title></rect></a>",
            fate.name(),
            at as f64 * WIDE / all,
            run.len() as f64 * WIDE / all,
            at + run.len() - 1,
            fate.name()
        );
        at += run.len();
    }
    out.push_str("</svg></div>\n");
}
