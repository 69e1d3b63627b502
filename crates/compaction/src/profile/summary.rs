//! What a summary holds and how it looks.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::facts::Topic;
use history::error::{Error, ErrorKind, Result};
use history::named;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SummarySpec {
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub shape: SummaryShape,
    /// With XML, the element around all sections.
    pub root: Option<String>,
    pub sections: Vec<Section>,
    /// Upper bound in tokens, unless the budget says otherwise.
    #[serde(default = "default_max_tokens")]
    pub max_tokens: u64,
    /// Keep a section whose topics are empty (with "(none)"), because a reader expects it.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub keep_empty: bool,
    /// Lists only files that match one of these globs (`*` within a name, `**` across folders); empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_files: Vec<String>,
    /// Globs of the files that come first, the most important one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_files: Vec<String>,
    /// Renames what lines begin with: our word for what was done to a file, or for the state of a plan's
    /// step, and the system's word.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub words: BTreeMap<String, String>,
    /// Minutes of the time slices that the summary is divided into, each with a heading; 0: not divided.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub slice_minutes: u64,
}

fn default_max_tokens() -> u64 {
    2_000
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SummaryShape {
    /// `## Title` and bullets.
    #[default]
    Markdown,
    /// `<name>` … `</name>`, text escaped.
    Xml,
    /// `Title:` and bullets.
    Plain,
}

impl SummaryShape {
    /// A section with its title. `body`: its lines, each with a line break at its end.
    pub(crate) fn section(self, title: &str, body: &str) -> String {
        match self {
            Self::Markdown => format!("\n## {title}\n{body}"),
            Self::Plain => format!("\n{title}:\n{body}"),
            Self::Xml => format!("<{title}>\n{body}</{title}>\n"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Section {
    /// Heading or element name.
    pub title: String,
    /// Topics of the ledger that go into it, in order.
    pub holds: Vec<Topic>,
    /// Every message of the user that it holds is quoted, even if another section repeats it.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub every: bool,
    /// Of rules, only prohibitions; the others go to another section that holds rules.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub forbidden_only: bool,
    /// Steps of the plan are numbered.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub numbered: bool,
}

/// The texts that a model is asked with: names of Markdown files beside the profiles, such as `NAME/system.md`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct PromptFiles {
    /// The summarizer's system prompt.
    pub system: Option<String>,
    /// The request after the messages, followed by the format of every summary.
    pub ask: Option<String>,
    /// Used instead of `ask` if the messages contain an earlier summary to merge.
    pub again: Option<String>,
    /// The prompt of a second call that checks the first draft.
    pub verify: Option<String>,
    /// Which model writes the summary: pairs of the session's model and the model to ask; `*` is any other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<(String, String)>,
    /// What names in `models` stand for, where they are not models themselves: name, model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<(String, String)>,
    /// The summarizer whose models these are. They are asked only there, and only if the user names no model.
    pub provider: Option<String>,
    /// Maximum characters of each output, from its beginning, that the model is shown; `None`: all.
    pub output_chars: Option<usize>,
    /// Retries of a failed request, unless the user sets them.
    pub retries: Option<u32>,
}

impl PromptFiles {
    /// The system's name for the model that summarizes a session of `model`; `None` if it has none.
    pub fn model_name(&self, model: &str) -> Option<&str> {
        let find = |name: &str| self.models.iter().find(|(it, _)| it == name).map(|(_, to)| to.as_str());
        find(model).or_else(|| find("*"))
    }

    /// That model, with its alias resolved.
    pub fn asked_model(&self, model: &str) -> Option<&str> {
        let name = self.model_name(model)?;
        Some(self.aliases.iter().find(|(it, _)| it == name).map_or(name, |(_, to)| to.as_str()))
    }
}

named! {
    /// How deep a summary goes. Never changes what is pinned.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum SummaryStyle {
        /// Pinned facts and one line for the rest.
        Brief = "brief",
        #[default]
        Detailed = "detailed",
        /// Files, commands, errors and identifiers first.
        Technical = "technical",
    }
}

impl FromStr for SummaryStyle {
    type Err = Error;

    /// Parses the name used in JSON.
    fn from_str(name: &str) -> Result<Self> {
        Self::find(name).ok_or_else(|| {
            let what = format!("expected brief, detailed or technical, found {name:?}");
            Error::new(ErrorKind::Arguments, what)
        })
    }
}
