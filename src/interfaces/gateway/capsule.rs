//! Capsules: the `encrypted_content` of our compaction items. A capsule is the summary, compressed, signed
//! with a key of this machine and bound to its owner. It is not secret: it is stored in the session next to
//! the conversation.

use std::io::Read;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as ALPHABET;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use history::error::{Error, ErrorKind, Result};

pub use crate::agents::gateway::CAPSULE as MARK;

/// Maximum size of an opened summary, in bytes: a compressed text may expand to any size.
const LARGEST: u64 = 16 << 20;
const KEY: usize = 32;

/// Signs and opens capsules.
pub struct CapsuleKey(hmac::Key);

impl CapsuleKey {
    /// Opens the key in this folder; created on first use, readable only by its owner.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be read or created; [`ErrorKind::Store`] if the file is not a key.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("gateway.key");
        let fail =
            |error| Error::new(ErrorKind::Io, "opening the gateway's key").at_path(&path).because(error);
        if !path.exists() {
            std::fs::create_dir_all(folder).map_err(fail)?;
            let mut fresh = [0; KEY];
            SystemRandom::new()
                .fill(&mut fresh)
                .map_err(|_| Error::new(ErrorKind::Io, "making the gateway's key: no random bytes"))?;
            // The first one wins, so gateways started at the same time use the same key.
            match crate::files::create(&path, &fresh, &path) {
                Err(error) if error.kind() != ErrorKind::Refused => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        let bytes = std::fs::read(&path).map_err(fail)?;
        if bytes.len() != KEY {
            let what = format!(
                "expected a key of {KEY} bytes, found {}; remove the file to make a new one",
                bytes.len()
            );
            return Err(Error::new(ErrorKind::Store, what).at_path(&path));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// Makes a capsule for this owner. It contains the archived original's handle in plain text, if the
    /// summary names one, so that `undo` finds a compaction without opening it.
    pub fn seal(&self, owner: &str, summary: &str) -> Result<String> {
        let content = zstd::encode_all(summary.as_bytes(), 3)
            .map_err(|error| Error::new(ErrorKind::Io, "compressing a summary").because(error))?;
        let named = summary.split_once("epitome restore ").map_or("", |it| it.1);
        let handle = named.split(|it: char| !it.is_ascii_alphanumeric()).next().unwrap_or_default();
        let tag = hmac::sign(&self.0, &signed(owner, handle, &content));
        Ok(format!("{MARK}{handle}.{}.{}", ALPHABET.encode(&content), ALPHABET.encode(tag)))
    }

    /// The summary in a capsule.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] if this key did not sign it for this owner.
    pub fn open_capsule(&self, owner: &str, capsule: &str) -> Result<String> {
        let refused = || {
            let what = "a compaction item of this session was not made by this gateway for you, so it cannot be \
                        opened; resume a session of your own, or undo the compaction (epitome restore)";
            Error::new(ErrorKind::Refused, what)
        };
        let parts: Vec<&str> = capsule.strip_prefix(MARK).ok_or_else(refused)?.split('.').collect();
        let [handle, content, tag] = parts.as_slice() else { return Err(refused()) };
        let decoded = |text: &str| ALPHABET.decode(text).map_err(|_| refused());
        let (content, tag) = (decoded(content)?, decoded(tag)?);
        hmac::verify(&self.0, &signed(owner, handle, &content), &tag).map_err(|_| refused())?;
        let mut summary = String::new();
        zstd::Decoder::new(content.as_slice())
            .and_then(|it| it.take(LARGEST).read_to_string(&mut summary))
            .map_err(|error| Error::new(ErrorKind::Input, "reading a summary").because(error))?;
        Ok(summary)
    }
}

/// The signed bytes. Lengths come first, so that different fields never give the same bytes.
fn signed(owner: &str, handle: &str, content: &[u8]) -> Vec<u8> {
    let len = |it: &str| (it.len() as u64).to_le_bytes();
    [MARK.as_bytes(), &len(owner), &len(handle), owner.as_bytes(), handle.as_bytes(), content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_owner_opens_a_capsule_of_this_key() {
        let folder = tempfile::tempdir().unwrap();
        let key = CapsuleKey::open(folder.path()).unwrap();
        let text =
            "Earlier conversation compacted: epitome restore 0a1b2c3d4e --apply \u{1F600}\n".repeat(100);
        let capsule = key.seal("anna", &text).unwrap();
        assert!(capsule.starts_with(&format!("{MARK}0a1b2c3d4e.")) && capsule.is_ascii());
        assert_eq!(key.open_capsule("anna", &capsule).unwrap(), text);
        // A second instance reads the same key.
        assert_eq!(CapsuleKey::open(folder.path()).unwrap().open_capsule("anna", &capsule).unwrap(), text);
        let other = tempfile::tempdir().unwrap();
        let other = CapsuleKey::open(other.path()).unwrap();
        assert!(other.open_capsule("anna", &capsule).is_err());
        for owner in ["ben", "", "ann", "anna "] {
            assert_eq!(key.open_capsule(owner, &capsule).unwrap_err().kind(), ErrorKind::Refused);
        }
        // No changed byte is accepted.
        for at in 0..capsule.len() {
            let mut forged = capsule.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            assert!(key.open_capsule("anna", std::str::from_utf8(&forged).unwrap()).is_err(), "{at}");
        }
        for broken in
            ["", MARK, "EPITOME1..", "EPITOME1...", &capsule[..capsule.len() - 1], &format!("{capsule}A")]
        {
            assert!(key.open_capsule("anna", broken).is_err(), "{broken}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_key_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let keys: Vec<CapsuleKey> = std::thread::scope(|scope| {
            let all: Vec<_> =
                (0..8).map(|_| scope.spawn(|| CapsuleKey::open(folder.path()).unwrap())).collect();
            all.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let capsule = keys[0].seal("a", "x").unwrap();
        assert!(keys.iter().all(|it| it.open_capsule("a", &capsule).is_ok()));
        let path = folder.path().join("gateway.key");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "short").unwrap();
        assert!(CapsuleKey::open(folder.path()).is_err());
    }
}
