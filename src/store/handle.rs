//! Handles, the short names of what is stored, and the digests that they are made from. Pure.

use std::fmt;

use sha2::{Digest as _, Sha256};

use history::error::{Error, ErrorKind, Result};
use sessions::Source;

/// Crockford's base32 in lower case: no `i`, `l`, `o`, `u`, so nothing in it is read as something else.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Owner and project, within which handles are looked up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// The user, as the engine names them.
    pub owner: String,
    /// The project, as a rule the path of its root; empty for none.
    pub project: String,
}

/// Ten characters of `ALPHABET`, 50 bits: about nine tokens, few because every placeholder holds one.
///
/// Every handle has a digit and a letter, so that no word and no number in a query is taken for one. It is a
/// name, not a secret: [`Scope`] decides who may read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle([u8; Handle::LEN]);

impl Handle {
    /// Characters in a handle.
    pub const LEN: usize = 10;

    /// The handle that content has in a project, unless another content has it already.
    pub fn of(scope: &Scope, content: &Digest) -> Self {
        Self::nth(&identity("original", scope, &[&content.0]), 0)
    }

    /// The `n`th choice for `identity`: more than one is needed only when two identities share 50 bits.
    pub(super) fn nth(identity: &Digest, n: usize) -> Self {
        (0u32..)
            .filter_map(|salt| {
                let mut hasher = Sha256::new();
                hasher.update(identity.0);
                hasher.update(salt.to_le_bytes());
                let hash: [u8; 32] = hasher.finalize().into();
                let bits = hash[..8].iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
                let mut text = [0; Self::LEN];
                for (place, byte) in text.iter_mut().enumerate() {
                    *byte = ALPHABET[(bits >> (place * 5) & 31) as usize];
                }
                Self::accepted(text)
            })
            .nth(n)
            // Unreachable in practice: nearly all of the 2^32 salts give an accepted handle.
            .unwrap_or(Self([b'0'; Self::LEN]))
    }

    /// The handle that `text` spells, or `None` when it cannot be one. Upper case is read as lower case.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; Self::LEN] = text.trim().to_ascii_lowercase().into_bytes().try_into().ok()?;
        if bytes.iter().all(|it| ALPHABET.contains(it)) { Self::accepted(bytes) } else { None }
    }

    fn accepted(text: [u8; Self::LEN]) -> Option<Self> {
        let digits = text.iter().filter(|it| it.is_ascii_digit()).count();
        (digits > 0 && digits < Self::LEN).then_some(Self(text))
    }

    pub fn as_str(&self) -> &str {
        // Always ASCII: `nth` and `parse` only accept characters of `ALPHABET`.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({self})")
    }
}

impl std::str::FromStr for Handle {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            let what = format!(
                "expected a handle of {} characters such as 3k9w2m7qxa, found {shown:?}; `epitome recall` \
                 lists the newest ones",
                Self::LEN
            );
            Error::new(ErrorKind::Arguments, what)
        })
    }
}

impl serde::Serialize for Handle {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for Handle {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of a source's first `len` bytes, read piece by piece.
    ///
    /// # Errors
    /// What [`Source::read_at`] gives.
    pub fn of_source(source: &dyn Source, len: u64) -> Result<Self> {
        const BLOCK: u64 = 1 << 20;
        let (mut hasher, mut at) = (Sha256::new(), 0);
        while at < len {
            let end = len.min(at + BLOCK);
            hasher.update(source.bytes(at..end)?);
            at = end;
        }
        Ok(Self(hasher.finalize().into()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The identity of an item: the digest of its sort, its scope and `fields`, each preceded by its length.
pub(super) fn identity(what: &str, scope: &Scope, fields: &[&[u8]]) -> Digest {
    let mut hasher = Sha256::new();
    let own = [what.as_bytes(), scope.owner.as_bytes(), scope.project.as_bytes()];
    for field in own.iter().chain(fields) {
        hasher.update((field.len() as u64).to_le_bytes());
        hasher.update(field);
    }
    Digest(hasher.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(owner: &str, project: &str) -> Scope {
        Scope { owner: owner.into(), project: project.into() }
    }

    #[test]
    fn differs_by_owner_project_and_content() {
        let digest = Digest::of(b"x");
        let handle = Handle::of(&scope("me", "/a"), &digest);
        assert_eq!(handle, Handle::of(&scope("me", "/a"), &digest));
        for other in [scope("you", "/a"), scope("me", "/b"), scope("me/", "a")] {
            assert_ne!(handle, Handle::of(&other, &digest));
        }
        assert_ne!(handle, Handle::of(&scope("me", "/a"), &Digest::of(b"y")));
    }

    #[test]
    fn reads_back_what_it_writes_and_takes_no_word_for_one() {
        for n in 0..200u32 {
            let handle = Handle::of(&scope("me", "/a"), &Digest::of(&n.to_le_bytes()));
            assert_eq!(Handle::parse(&handle.to_string()), Some(handle));
            assert_eq!(Handle::parse(&handle.to_string().to_uppercase()), Some(handle));
        }
        for word in
            ["", "x", "0123456789", "abandonded", "javascript", "3k9w2m7qxaa", "3k9w2m7qx", "3k9w2m7qx\u{e9}"]
        {
            assert_eq!(Handle::parse(word), None, "{word}");
        }
    }

    #[test]
    fn other_choices_differ() {
        let identity = Digest::of(b"x");
        assert_ne!(Handle::nth(&identity, 0), Handle::nth(&identity, 1));
    }
}
