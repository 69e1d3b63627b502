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
    /// Of files, only those that one of these globs fits (`*` within a name, `**` across folders); empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_files: Vec<String>,
    /// Globs of the files that come first, the most important one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_files: Vec<String>,
    /// What lines begin with instead: our word for what was done to a file, or for a step of the plan, and the
    /// system's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub words: BTreeMap<String, String>,
    /// Minutes of the stretches into which what is summarised is cut, each under its own heading. 0: not cut.
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

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Section {
    /// Heading or element name.
    pub title: String,
    /// What of the ledger goes into it, in order.
    pub holds: Vec<Topic>,
    /// Every message of the user that it holds is quoted in it, whatever other sections say of it.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub every: bool,
    /// Of rules, only those that forbid; the others go to another section that holds them.
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
    /// What it is asked for after the messages, in front of the form that every summary has.
    pub ask: Option<String>,
    /// Instead of that where an earlier summary is among the messages, to be merged.
    pub again: Option<String>,
    /// A second call that checks the first draft.
    pub verify: Option<String>,
    /// Which model is asked: the session's model, and the one in its place; `*` is any other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<(String, String)>,
    /// The models that names in `models` stand for, where they are no models themselves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<(String, String)>,
    /// Whose models these are: the name of a summarizer. Asked only there, and only if the user names no model.
    pub provider: Option<String>,
    /// Maximum characters of the beginning of each output that the model is shown; otherwise all.
    pub output_chars: Option<usize>,
    /// Further tries of a request that failed, unless the user says how many.
    pub retries: Option<u32>,
}

impl PromptFiles {
    /// What the system calls the model that is asked for a summary in a session of `model`; nothing where it does not
    /// say.
    pub fn model_name(&self, model: &str) -> Option<&str> {
        let find = |name: &str| self.models.iter().find(|(it, _)| it == name).map(|(_, to)| to.as_str());
        find(model).or_else(|| find("*"))
    }

    /// The model of that name.
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

    /// Reads the name that it has in JSON.
    fn from_str(name: &str) -> Result<Self> {
        Self::find(name).ok_or_else(|| {
            let what = format!("expected brief, detailed or technical, found {name:?}");
            Error::new(ErrorKind::Arguments, what)
        })
    }
}
