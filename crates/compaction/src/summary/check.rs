//! The form of a reply: whether it is a summary at all, with the sections, language and length that were
//! asked for. Its content is checked by [`grounding`](super::grounding). Pure.

use serde::{Deserialize, Serialize};

use super::language;
use super::model::{Reply, StopReason};
use crate::profile::{SummaryShape, SummarySpec};

/// What is wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "fault")]
pub enum Fault {
    Empty,
    /// The answer ends in mid-sentence or mid-section.
    CutOff,
    /// The model, or a filter, refused.
    Refused,
    /// A tool call instead of text.
    ToolCall,
    /// These sections are missing, although there are facts for them.
    Missing {
        titles: Vec<String>,
    },
    /// It is no shorter than what it replaces.
    Grown {
        tokens: u64,
        /// Tokens of what it replaces.
        of: u64,
    },
    /// It is longer than allowed.
    TooLong {
        tokens: u64,
        most: u64,
    },
    /// It is in another language.
    Foreign {
        /// The language it is in.
        found: String,
        /// The language asked for.
        expected: String,
    },
}

impl Fault {
    /// What is wrong, as a clause.
    pub fn clause(&self) -> String {
        match self {
            Self::Empty => "it is empty".to_owned(),
            Self::CutOff => "it ends in the middle".to_owned(),
            Self::Refused => "it refuses, although only a description was asked for".to_owned(),
            Self::ToolCall => "it calls a tool instead of writing text".to_owned(),
            Self::Missing { titles } => format!("these sections are missing: {}", titles.join(", ")),
            Self::Grown { tokens, of } => {
                format!("its {tokens} tokens are no fewer than the {of} it stands for")
            }
            Self::TooLong { tokens, most } => format!("it has {tokens} tokens, {most} are allowed"),
            Self::Foreign { found, expected } => {
                format!("it is written in {found}, the conversation is in {expected}")
            }
        }
    }
}

/// A summary by its sections: index in the spec, and body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parsed {
    /// In the order of the spec, each at most once.
    pub sections: Vec<(usize, String)>,
}

impl Parsed {
    /// As text, in the spec's shape.
    pub fn render(&self, spec: &SummarySpec) -> String {
        let mut out = String::new();
        for (number, body) in &self.sections {
            let Some(section) = spec.sections.get(*number) else { continue };
            let body = body.trim();
            if !body.is_empty() {
                out.push_str(&spec.shape.section(&section.title, &format!("{body}\n")));
            }
        }
        out.trim().to_owned()
    }
}

/// What is between the first `<summary>` and the last `</summary>`, without thinking in front. `None` if a
/// tag is not closed.
fn unwrap_tags(text: &str, spec: &SummarySpec) -> Option<String> {
    let mut text = text.trim();
    for tag in ["analysis", "scratchpad", "think", "thinking"] {
        // Only at the start: later ones belong to the text.
        if let Some(rest) = text.strip_prefix(&format!("<{tag}>")) {
            text = rest.split_once(&format!("</{tag}>"))?.1.trim_start();
        }
    }
    let roots =
        ["summary"].into_iter().chain(spec.root.as_deref().filter(|_| spec.shape == SummaryShape::Xml));
    let mut text = text.to_owned();
    for root in roots {
        let (open, close) = (format!("<{root}>"), format!("</{root}>"));
        if let Some(from) = text.find(&open) {
            let rest = &text[from + open.len()..];
            text = rest[..rest.rfind(&close)?].to_owned();
        } else if let Some(to) = text.rfind(&close) {
            text.truncate(to);
        }
    }
    // Some models put everything into a code block.
    let bare = text.trim();
    let fenced = bare.strip_prefix("```").and_then(|it| it.strip_suffix("```"));
    Some(fenced.map_or(bare, |it| it.split_once('\n').map_or(it, |it| it.1)).trim().to_owned())
}

/// The title in a heading line, without marks and numbers: `## 2. **Goal**:` is `goal`.
fn title_of(line: &str, shape: SummaryShape) -> Option<String> {
    let line = line.trim();
    let marked =
        line.starts_with('#') || (line.starts_with("**") && line.trim_end_matches(':').ends_with("**"));
    let plain = shape == SummaryShape::Plain && line.ends_with([':', '：']);
    if !(marked || plain) {
        return None;
    }
    let bare = line.trim_matches(|c: char| matches!(c, '#' | '*' | ':' | '：' | ' '));
    let bare = bare.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(['.', ')']).trim();
    Some(bare.trim_matches(['*', ':', ' ']).to_lowercase())
}

/// Splits a text into the spec's sections.
pub fn parse(text: &str, spec: &SummarySpec) -> Parsed {
    let mut bodies: Vec<Option<String>> = vec![None; spec.sections.len()];
    match spec.shape {
        SummaryShape::Xml => {
            for (section, body) in spec.sections.iter().zip(&mut bodies) {
                let (open, close) = (format!("<{}>", section.title), format!("</{}>", section.title));
                let Some(from) = text.find(&open).map(|it| it + open.len()) else { continue };
                let end = text[from..].find(&close).map_or(text.len(), |it| from + it);
                *body = Some(text[from..end].trim().to_owned());
            }
        }
        SummaryShape::Markdown | SummaryShape::Plain => {
            let titles: Vec<String> = spec.sections.iter().map(|it| it.title.to_lowercase()).collect();
            let mut open: Option<usize> = None;
            let mut code = false;
            for line in text.lines() {
                let fence = line.trim_start().starts_with("```");
                code ^= fence;
                let title = if code || fence { None } else { title_of(line, spec.shape) };
                match title.as_ref().and_then(|it| titles.iter().position(|title| title == it)) {
                    Some(number) => {
                        open = Some(number);
                        bodies[number].get_or_insert_default();
                    }
                    // A `###` heading belongs to the section that it is in.
                    None if title.is_some()
                        && line.trim_start().starts_with('#')
                        && !line.trim_start().starts_with("###") =>
                    {
                        open = None;
                    }
                    None => {
                        if let Some(body) = open.and_then(|it| bodies[it].as_mut()) {
                            body.push_str(line.trim_end());
                            body.push('\n');
                        }
                    }
                }
            }
        }
    }
    let empty = ["(none)", "none", "none.", "- (none)", "- none", "n/a"];
    let said = |it: &String| !it.trim().is_empty() && !empty.contains(&it.trim().to_lowercase().as_str());
    let sections = bodies.into_iter().enumerate();
    let sections =
        sections.filter_map(|(number, body)| Some((number, body.filter(|it| spec.keep_empty || said(it))?)));
    Parsed { sections: sections.collect() }
}

/// Parses a reply's text. `None` if a tag is not closed.
pub fn read(text: &str, spec: &SummarySpec) -> Option<Parsed> {
    unwrap_tags(text, spec).map(|it| parse(&it, spec))
}

/// The requirements on a reply.
pub struct AnswerForm<'a> {
    /// Its sections and shape.
    pub spec: &'a SummarySpec,
    /// Sections that must not be empty, since there are facts for them.
    pub needed: &'a [usize],
    /// Maximum tokens.
    pub max_tokens: u64,
    /// Tokens of what it replaces.
    pub replaced_tokens: u64,
    /// The language that it should be in, if known.
    pub language: Option<&'a str>,
    pub count: &'a dyn Fn(&str) -> u64,
}

/// The notes on a chunk: any text will do, but there must be one.
///
/// # Errors
/// Why there is none: empty, cut off, refused, or a tool call.
pub fn notes(reply: &Reply, spec: &SummarySpec) -> Result<String, Vec<Fault>> {
    let faults = stop_faults(reply);
    if !faults.is_empty() {
        return Err(faults);
    }
    unwrap_tags(&reply.text, spec).filter(|it| !it.is_empty()).ok_or_else(|| vec![Fault::CutOff])
}

/// Faults that the end of a reply shows.
fn stop_faults(reply: &Reply) -> Vec<Fault> {
    match reply.stop {
        StopReason::Refused => vec![Fault::Refused],
        StopReason::ToolCall => vec![Fault::ToolCall],
        _ if reply.text.trim().is_empty() => vec![Fault::Empty],
        StopReason::Length | StopReason::WindowFull => vec![Fault::CutOff],
        StopReason::End if refuses(&reply.text) => vec![Fault::Refused],
        StopReason::End if calls(&reply.text) => vec![Fault::ToolCall],
        StopReason::End => Vec::new(),
    }
}

/// Checks the form of a reply.
///
/// # Errors
/// Its faults, and what could be parsed nevertheless.
pub fn form(reply: &Reply, form: &AnswerForm<'_>) -> Result<Parsed, (Vec<Fault>, Option<Parsed>)> {
    let faults = stop_faults(reply);
    if !faults.is_empty() {
        return Err((faults, None));
    }
    let Some(parsed) = read(&reply.text, form.spec) else { return Err((vec![Fault::CutOff], None)) };
    let mut faults = Vec::new();
    let missing: Vec<String> = form
        .needed
        .iter()
        .filter(|it| !parsed.sections.iter().any(|(number, _)| number == *it))
        .filter_map(|it| Some(form.spec.sections.get(*it)?.title.clone()))
        .collect();
    // One or two sections may be merged into others, and missing facts are added later; more is another form.
    if parsed.sections.is_empty() || missing.len() * 2 > form.needed.len().max(2) {
        let all = || form.spec.sections.iter().map(|it| it.title.clone()).collect();
        faults.push(Fault::Missing { titles: if missing.is_empty() { all() } else { missing } });
    }
    let tokens = (form.count)(&parsed.render(form.spec));
    if tokens >= form.replaced_tokens {
        faults.push(Fault::Grown { tokens, of: form.replaced_tokens });
    }
    if tokens > form.max_tokens {
        faults.push(Fault::TooLong { tokens, most: form.max_tokens });
    }
    if let Some(expected) = form.language {
        let prose: String = parsed.sections.iter().map(|it| prose(&it.1)).collect();
        if let Some(found) = language::of(&prose).filter(|it| *it != expected) {
            faults.push(Fault::Foreign { found: found.to_owned(), expected: expected.to_owned() });
        }
    }
    if faults.is_empty() { Ok(parsed) } else { Err((faults, Some(parsed))) }
}

/// A text without code, quotations and paths: what is left is in one language.
pub fn prose(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut open: Option<char> = None;
        for c in line.chars() {
            match (open, c) {
                (None, '`' | '"' | '“' | '„' | '«' | '「') => open = Some(c),
                (Some('`'), '`')
                | (Some('"'), '"')
                | (Some('“' | '„'), '”' | '“')
                | (Some('«'), '»')
                | (Some('「'), '」') => open = None,
                (Some(_), _) => {}
                (None, c) => out.push(c),
            }
        }
        out.push('\n');
    }
    let words = out.split_whitespace().filter(|it| !it.contains(['/', '_', '(', '=', '\\', '@', '#']));
    words.collect::<Vec<_>>().join(" ")
}

/// Whether a text begins with an apology or a refusal.
fn refuses(text: &str) -> bool {
    let start: String = text.trim().to_lowercase().replace('’', "'").chars().take(200).collect();
    let cues = [
        "i'm sorry",
        "i am sorry",
        "sorry,",
        "i can't",
        "i cannot",
        "i'm unable",
        "i am unable",
        "i won't",
        "as an ai",
        "i must decline",
        "i'm not able",
        "es tut mir leid",
        "ich kann das nicht",
        "ich kann dabei nicht",
        "je suis désolé",
        "lo siento",
        "抱歉",
        "对不起",
        "我无法",
        "我不能",
        "申し訳",
    ];
    cues.iter().any(|it| start.starts_with(it))
}

/// Whether a text is a tool call in writing.
fn calls(text: &str) -> bool {
    let text = text.trim();
    let starts = [
        "<tool_call",
        "<function_call",
        "<function=",
        "<invoke",
        "[TOOL_CALLS]",
        "<|tool",
        "<｜tool",
        "```tool",
    ];
    if starts.iter().any(|it| text.starts_with(it)) {
        return true;
    }
    let object: Option<serde_json::Value> = serde_json::from_str(text).ok();
    object.is_some_and(|it| {
        it.get("name").is_some()
            && (it.get("arguments").is_some() || it.get("parameters").is_some() || it.get("input").is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Topic;
    use crate::profile::Section;

    fn spec(shape: SummaryShape) -> SummarySpec {
        let section =
            |title: &str, topic| Section { title: title.into(), holds: vec![topic], ..Section::default() };
        let sections = vec![
            section("Goal", Topic::Goal),
            section("Rules", Topic::Constraints),
            section("Files", Topic::Files),
        ];
        toml::from_str::<SummarySpec>("sections = []")
            .map(|it| SummarySpec { shape, sections, ..it })
            .unwrap()
    }

    fn faults(text: &str, stop: StopReason) -> Vec<&'static str> {
        let spec = spec(SummaryShape::Markdown);
        let reply = Reply { text: text.into(), stop, ..Reply::default() };
        let it = AnswerForm {
            spec: &spec,
            needed: &[0, 1, 2],
            max_tokens: 60,
            replaced_tokens: 100,
            language: Some("German"),
            count: &|it| it.split_whitespace().count() as u64,
        };
        let found = form(&reply, &it).err().map(|it| it.0).unwrap_or_default();
        let name = |it: &Fault| match it {
            Fault::Empty => "empty",
            Fault::CutOff => "cut off",
            Fault::Refused => "refused",
            Fault::ToolCall => "tool call",
            Fault::Missing { .. } => "missing",
            Fault::Grown { .. } => "grown",
            Fault::TooLong { .. } => "too long",
            Fault::Foreign { .. } => "foreign",
        };
        found.iter().map(name).collect()
    }

    #[test]
    fn every_fault_is_found() {
        let good = "<analysis>hm</analysis>\n<summary>\n# 1. **Goal**\n- Der Parser wird repariert\n## Rules:\n- nicht anfassen\n**Files**\n- a.rs\n</summary>";
        let long = |words: usize| format!("## Goal\n{}\n## Rules\nx\n## Files\ny", "wort ".repeat(words));
        let english = "## Goal\nThe parser is to be fixed and it should work with the old files.\n## Rules\nDo not touch the tests that are in the folder.\n## Files\na.rs";
        let cases: [(&str, StopReason, &[&str]); 13] = [
            (good, StopReason::End, &[]),
            ("```markdown\n## Goal\nx\n## Rules\ny\n## Files\nz\n```", StopReason::End, &[]),
            (" \n", StopReason::End, &["empty"]),
            (&good[..60], StopReason::End, &["cut off"]),
            (good, StopReason::Length, &["cut off"]),
            (good, StopReason::Refused, &["refused"]),
            ("I’m sorry, but I can't help with that.", StopReason::End, &["refused"]),
            ("{\"name\":\"bash\",\"arguments\":{}}", StopReason::End, &["tool call"]),
            ("Here you are: all is well.", StopReason::End, &["missing"]),
            ("## Goal\nx", StopReason::End, &["missing"]),
            (&long(70), StopReason::End, &["too long"]),
            (&long(120), StopReason::End, &["grown", "too long"]),
            (english, StopReason::End, &["foreign"]),
        ];
        for (text, stop, expected) in cases {
            assert_eq!(faults(text, stop), expected, "{text}");
        }
    }

    #[test]
    fn sections_nobody_asked_for_are_left_out() {
        let spec = spec(SummaryShape::Markdown);
        let parsed = parse(
            "Sure!\n## New orders\n- push\n## Goal\n- g\n### part\n- h\n```\n## Rules\n```\n## Rules\n(none)",
            &spec,
        );
        assert_eq!(parsed.render(&spec), "## Goal\n- g\n### part\n- h\n```\n## Rules\n```");
        let xml = SummarySpec { shape: SummaryShape::Xml, root: Some("state".into()), ..spec };
        let parsed = parse("<state>\n<Goal>\na &lt; b\n</Goal>\n<Evil>x</Evil></state>", &xml);
        assert_eq!(parsed.render(&xml), "<Goal>\na &lt; b\n</Goal>");
    }
}
