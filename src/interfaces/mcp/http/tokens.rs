//! Who may call: a file with one `name:token` per line, read again when it changes, so that removing a line
//! revokes the token.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use history::error::{Error, ErrorKind, Result};

/// Minimum length of a token: a shorter one could be guessed.
pub(super) const SHORTEST: usize = 16;

pub(super) struct TokenFile {
    path: PathBuf,
    known: Mutex<KnownTokens>,
}

/// The file as last read.
struct KnownTokens {
    changed: Option<(SystemTime, u64)>,
    /// Name and SHA-256 of each token: the tokens themselves are not kept.
    tokens: Vec<(String, [u8; 32])>,
}

impl TokenFile {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let changed = stamp(path);
        let tokens = read(path)?;
        warn_if_open(path);
        Ok(Self { path: path.to_owned(), known: Mutex::new(KnownTokens { changed, tokens }) })
    }

    /// The name of a token's owner. Takes equally long for a wrong token.
    pub(super) fn owner(&self, token: &str) -> Option<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = stamp(&self.path);
        if changed != known.changed {
            // If the file cannot be read, no token is accepted: it may have been changed to revoke one.
            known.tokens = read(&self.path).unwrap_or_else(|error| {
                tracing::error!("{}; all calls are refused until it can be read", error.full());
                Vec::new()
            });
            known.changed = changed;
        }
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let mut owner = None;
        for (name, expected) in &known.tokens {
            let difference = expected.iter().zip(&digest).fold(0, |all, (one, other)| all | (one ^ other));
            if std::hint::black_box(difference) == 0 {
                owner = Some(name.clone());
            }
        }
        owner
    }
}

fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.modified().ok()?, about.len()))
}

fn read(path: &Path) -> Result<Vec<(String, [u8; 32])>> {
    let place = || path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::new(ErrorKind::Arguments, "reading the tokens").at(place(), None).because(error)
    })?;
    let mut out: Vec<(String, [u8; 32])> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong =
            |what: String| Error::new(ErrorKind::Arguments, what).at(place(), Some(number as u64 + 1));
        let (name, token) = line.split_once(':').ok_or_else(|| {
            wrong("reading the tokens: expected name:token, found a line without a colon".to_owned())
        })?;
        let (name, token) = (name.trim(), token.trim());
        let plain = name.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.@".contains(&it));
        if name.is_empty() || !plain {
            return Err(wrong("reading the tokens: expected a name of letters, digits and -_.@".to_owned()));
        }
        if token.len() < SHORTEST {
            let what = format!(
                "reading the tokens: expected at least {SHORTEST} characters for {name}, found {}",
                token.len()
            );
            return Err(wrong(what));
        }
        if out.iter().any(|(it, _)| it == name) {
            return Err(wrong(format!("reading the tokens: expected each name once, found {name} again")));
        }
        out.push((name.to_owned(), Sha256::digest(token.as_bytes()).into()));
    }
    if out.is_empty() {
        let what = "reading the tokens: expected a line name:token, found none";
        return Err(Error::new(ErrorKind::Arguments, what).at(place(), None));
    }
    Ok(out)
}

#[cfg(unix)]
fn warn_if_open(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    if std::fs::metadata(path).is_ok_and(|it| it.permissions().mode() & 0o077 != 0) {
        tracing::warn!("{}: others on this machine can read the tokens; run chmod 600 on it", path.display());
    }
}

#[cfg(not(unix))]
fn warn_if_open(_path: &Path) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_revokes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        std::fs::write(&path, "# team\nanna:0123456789abcdef\n\nben: fedcba9876543210:x \n").unwrap();
        let tokens = TokenFile::open(&path).unwrap();
        assert_eq!(tokens.owner("0123456789abcdef").as_deref(), Some("anna"));
        assert_eq!(tokens.owner("fedcba9876543210:x").as_deref(), Some("ben"));
        assert_eq!(tokens.owner("0123456789abcdeF"), None);
        assert_eq!(tokens.owner(""), None);
        std::fs::write(&path, "anna:0123456789abcdef\n").unwrap();
        assert_eq!(tokens.owner("fedcba9876543210:x"), None);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(tokens.owner("0123456789abcdef"), None);
    }

    #[test]
    fn mistakes_have_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        for (text, line) in
            [("x", Some(1)), ("a:short", Some(1)), ("\na b:0123456789abcdef", Some(2)), ("", None)]
        {
            std::fs::write(&path, text).unwrap();
            let error = TokenFile::open(&path).err().unwrap();
            assert_eq!(error.place().unwrap().line, line, "{text:?}");
            assert!(!error.full().contains("short:"), "tokens are not shown");
        }
    }
}
