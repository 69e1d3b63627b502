//! A profile: one system's way to compact, as data. Names no system.

use serde::{Deserialize, Serialize};

use crate::facts::Topic;

/// How the summary is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SummarySpec {
    /// Markdown headings or XML elements.
    #[serde(default)]
    pub shape: Shape,
    /// With XML, the element around all sections.
    #[serde(default)]
    pub root: Option<String>,
    /// Its sections, in order.
    pub sections: Vec<Section>,
    /// Upper bound in tokens, unless the budget says otherwise.
    #[serde(default = "default_max_tokens")]
    pub max_tokens: u64,
    /// Keep a section whose topics are empty (with "(none)"), because a reader expects it.
    #[serde(default)]
    pub keep_empty: bool,
}

fn default_max_tokens() -> u64 {
    2_000
}

/// The shape of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// `## Title` and bullets.
    #[default]
    Markdown,
    /// `<name>` … `</name>`, text escaped.
    Xml,
    /// `Title:` and bullets.
    Plain,
}

/// A section of a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Section {
    /// Heading or element name.
    pub title: String,
    /// What of the ledger goes into it, in order.
    pub holds: Vec<Topic>,
}

/// How deep a summary goes. Never changes what is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// Pinned facts and one line for the rest.
    Brief,
    /// Everything that fits.
    #[default]
    Detailed,
    /// Files, commands, errors and identifiers first.
    Technical,
}
