//! The content of `config.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::UserHooks;
use super::summarizer::SummarizerSection;
use cost::prices;
use history::error::{Error, ErrorKind, Result};

/// The content of `config.toml`; everything is optional.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct ConfigFile {
    pub(super) profile: Option<String>,
    pub(super) tokenizer: Option<String>,
    /// Model → window in tokens.
    pub(super) windows: BTreeMap<String, u64>,
    pub(super) store: StoreWritten,
    pub(super) hooks: UserHooks,
    pub(super) summarizer: SummarizerSection,
    pub(super) cost: CostWritten,
    pub(super) vault: VaultWritten,
    pub(super) profiles: BTreeMap<String, toml::Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct StoreWritten {
    /// A folder, or the `postgres://` address of a team's database.
    pub(super) path: Option<PathBuf>,
    /// Where a team's store keeps its packs.
    pub(super) blobs: Option<String>,
    pub(super) persistence: Option<String>,
    /// Regular expressions for text to remove from stored memories and summaries.
    pub(super) private: Vec<String>,
    /// Archive changed sessions when a session starts or ends; default true.
    pub(super) keep_sessions: Option<bool>,
    /// Delete archived sessions older than this: `365d`, `52w`.
    pub(super) max_age: Option<String>,
    /// Delete the oldest archived sessions while the archive is larger than this: `20GB`.
    pub(super) max_bytes: Option<String>,
}

/// Section `[cost]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct CostWritten {
    /// Include costs in advice and answers; default true.
    pub(super) enabled: Option<bool>,
    /// Model → its prices, which override the built-in table.
    pub(super) prices: BTreeMap<String, prices::WrittenRates>,
}

/// Section `[vault]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct VaultWritten {
    /// The URL of a team's server.
    pub(super) url: Option<String>,
    /// A file that contains only the token for it.
    pub(super) token_file: Option<PathBuf>,
}

/// Reads the file; a missing one counts as empty.
pub(super) fn read(path: &Path) -> Result<ConfigFile> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text, path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(ConfigFile::default()),
        Err(error) => {
            Err(Error::new(ErrorKind::Arguments, "reading the configuration").at_path(path).because(error))
        }
    }
}

fn parse(text: &str, path: &Path) -> Result<ConfigFile> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|it| 1 + text[..it.start.min(text.len())].matches('\n').count() as u64);
        let what = format!("reading the configuration: {}", error.message());
        Error::new(ErrorKind::Arguments, what).at(path.display().to_string(), line)
    })
}

/// Parses an age such as `90d` or `12w`; returns days.
pub(super) fn age(text: &str) -> Result<u32> {
    let days = |unit, days| text.strip_suffix(unit)?.parse::<u32>().ok()?.checked_mul(days);
    days('d', 1).or_else(|| days('w', 7)).ok_or_else(|| {
        let what = format!("store.max-age: expected an age such as 90d or 12w, found {text:?}");
        Error::new(ErrorKind::Arguments, what)
    })
}

pub(super) fn size(text: &str) -> Result<u64> {
    byte_size(text)
        .map_err(|it| Error::new(ErrorKind::Arguments, format!("store.max-bytes: {it}, found {text:?}")))
}

/// Parses a size in bytes such as `1000`, `500MB` or `2GB` (1 KB = 1024 bytes).
///
/// # Errors
///
/// If the text is not a size.
pub fn byte_size(text: &str) -> Result<u64, String> {
    let upper = text.trim().to_ascii_uppercase();
    let units = [
        ("KB", 1u64 << 10),
        ("MB", 1 << 20),
        ("GB", 1 << 30),
        ("K", 1 << 10),
        ("M", 1 << 20),
        ("G", 1 << 30),
    ];
    let unit = units.into_iter().find_map(|(name, size)| Some((upper.strip_suffix(name)?, size)));
    let (number, unit) = unit.unwrap_or((upper.as_str(), 1));
    let number: Option<u64> = number.trim().parse().ok();
    number.and_then(|it| it.checked_mul(unit)).ok_or_else(|| "expected bytes such as 500MB or 2GB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_have_a_place() {
        let error = parse("profile = \"x\"\n[stor]\n", Path::new("/c/config.toml")).unwrap_err();
        assert_eq!(error.place().unwrap().line, Some(2));
        assert!(error.to_string().contains("unknown field `stor`"), "{error}");
    }
}
