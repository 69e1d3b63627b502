//! The prompts of a dialogue with a model.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::check::Fault;
use crate::profile::{SummaryShape, SummarySpec, SummaryStyle};

/// A prompt, by its role in a dialogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptText {
    System,
    /// The transcript, and what to write about it.
    Ask,
    /// Added if the transcript contains an earlier summary.
    Again,
    /// A part of the transcript, and what to note about it.
    Chunk,
    /// Notes on parts, to be merged.
    Fold,
    Repair,
    /// A summary that is too long, to be shortened.
    Shorten,
    Verify,
    /// Sent after the session's own messages, instead of a transcript.
    Prefix,
    /// For the calling agent's own model.
    Host,
}

/// The program's text of each prompt, with `{names}` to fill in.
pub type PromptTexts = fn(PromptText) -> &'static str;

/// A profile's own prompts, which replace or extend ours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptOverrides {
    /// Appended to our system prompt.
    pub system: Option<String>,
    /// Put in front of the format that we ask for.
    pub ask: Option<String>,
    /// Used instead of `ask` if the transcript contains an earlier summary.
    pub again: Option<String>,
    /// The prompt of a second call that checks the first draft.
    pub verify: Option<String>,
}

/// What is filled into a prompt.
pub struct Fill<'a> {
    pub texts: PromptTexts,
    /// The word in the lines around each excerpt, so that the transcript cannot pass for instructions.
    pub fence: &'a str,
    pub transcript: &'a str,
    pub spec: &'a SummarySpec,
    /// Maximum tokens of the answer.
    pub tokens: u64,
    /// The language to write in, if known.
    pub language: Option<&'a str>,
    pub style: SummaryStyle,
    /// What the user asked to focus on.
    pub focus: Option<&'a str>,
    /// What the user pinned.
    pub pins: &'a [String],
    pub faults: &'a [Fault],
    /// Number of the part, and about how many there are.
    pub part: (usize, usize),
    /// The profile's own request, filled in.
    pub asked: String,
}

/// A prompt with everything filled in. Filled-in text is not expanded: `{tokens}` in a transcript stays.
pub fn filled(text: PromptText, fill: &Fill<'_>) -> String {
    template((fill.texts)(text), fill)
}

/// A profile's own prompt with everything filled in.
pub fn template(text: &str, fill: &Fill<'_>) -> String {
    static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\{([a-z]+)\}").ok());
    let filling = |name: &Captures<'_>| value(&name[1], fill).unwrap_or_else(|| name[0].to_owned());
    let text = text.trim_end();
    NAME.as_ref().map_or(text.into(), |it| it.replace_all(text, filling)).into_owned()
}

fn value(name: &str, fill: &Fill<'_>) -> Option<String> {
    Some(match name {
        "fence" => fill.fence.to_owned(),
        "transcript" => fill.transcript.to_owned(),
        "sections" => sections(fill.spec),
        "tokens" => fill.tokens.to_string(),
        // Models count words better than tokens; four words are about six tokens if some are paths.
        "words" => (fill.tokens * 2 / 3).max(20).to_string(),
        "language" => fill.language.unwrap_or("the language in which the user writes").to_owned(),
        "style" => match fill.style {
            SummaryStyle::Brief => {
                "brief; rules, decisions, files and open steps first, one line for the rest".to_owned()
            }
            SummaryStyle::Detailed => "detailed; everything that fits".to_owned(),
            SummaryStyle::Technical => "technical; files, commands, errors and identifiers first".to_owned(),
        },
        "focus" => fill.focus.map(|it| format!("\nLook above all at: {it}")).unwrap_or_default(),
        "pins" => match fill.pins {
            [] => String::new(),
            pins => format!("\nKnown to be kept already, so need not be said: {}", pins.join("; ")),
        },
        "asked" if fill.asked.is_empty() => String::new(),
        "asked" => format!("{}\n\n", fill.asked),
        "empty" if fill.spec.keep_empty => "Keep a section that has nothing to say, with (none)".to_owned(),
        "empty" => "Leave out a section that has nothing to say".to_owned(),
        "faults" => fill.faults.iter().map(Fault::clause).collect::<Vec<_>>().join("; "),
        "number" => fill.part.0.to_string(),
        "of" => fill.part.1.to_string(),
        _ => return None,
    })
}

/// The sections as they should look, each with a description of its content.
fn sections(spec: &SummarySpec) -> String {
    let mut out = Vec::new();
    for section in &spec.sections {
        let holds: Vec<&str> =
            section.holds.iter().map(|it| it.row().asked).filter(|it| !it.is_empty()).collect();
        let (title, holds) = (&section.title, holds.join("; "));
        out.push(match spec.shape {
            SummaryShape::Markdown => format!("## {title}\n({holds})"),
            SummaryShape::Plain => format!("{title}:\n({holds})"),
            SummaryShape::Xml => format!("<{title}>\n({holds})\n</{title}>"),
        });
    }
    out.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_not_looked_at_again() {
        let spec: SummarySpec =
            toml::from_str("sections = [{title = \"Goal\", holds = [\"goal\"]}]").unwrap();
        let fill = Fill {
            texts: |_| "",
            fence: "f00d",
            transcript: "{tokens} {sections}",
            spec: &spec,
            tokens: 90,
            language: None,
            style: SummaryStyle::Brief,
            focus: Some("the {parser}"),
            pins: &[],
            faults: &[Fault::Empty],
            part: (1, 2),
            asked: String::new(),
        };
        assert_eq!(
            template("{transcript}|{tokens}|{unknown}|{ {faults}", &fill),
            "{tokens} {sections}|90|{unknown}|{ it is empty"
        );
    }
}
