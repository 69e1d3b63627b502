//! Where the store is kept.

use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreAt {
    /// `epitome.db` in this directory, which is created if it is missing.
    Path(PathBuf),
    /// In memory, for tests: behaves as if it were persistent.
    Memory,
    /// In memory, because the user wants nothing kept: [`Store::keeps`](super::Store::keeps) is false, and
    /// nothing may be replaced in place.
    Nowhere,
    /// On a team's server.
    Team(TeamStore),
}

/// A database and object storage that several servers share.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TeamStore {
    /// `postgres://user:password@host/database`.
    pub database: String,
    /// `s3://bucket/prefix` or `file:///directory`.
    pub blobs: String,
    /// The environment, for its `AWS_*` variables.
    pub variables: BTreeMap<String, String>,
}

impl TeamStore {
    /// Host and name of the database, without the password in front of them or in a parameter behind them.
    pub fn address(&self) -> &str {
        let address = self.database.split('?').next().unwrap_or_default();
        match address.rsplit_once('@') {
            Some((_, host)) => host,
            // The `@` comes after a `?`: the password may contain that, so show nothing.
            None if self.database.contains('@') => "",
            None => address.split_once("://").map_or("", |(_, host)| host),
        }
    }
}

impl std::fmt::Debug for TeamStore {
    /// Without passwords and keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TeamStore(postgres {}, {})", self.address(), self.blobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_of_a_team_is_shown() {
        for (address, shown) in [
            ("postgres://me:secret@host/db", "host/db"),
            ("postgres://me@host/db?password=secret", "host/db"),
            ("postgres://host/db?password=secret", "host/db"),
            ("postgres://me@host/db?password=a@secret", "host/db"),
            ("postgres://me:a?secret@host/db", ""),
        ] {
            let team = TeamStore { database: address.to_owned(), ..TeamStore::default() };
            assert_eq!(team.address(), shown, "{address}");
            assert!(!format!("{team:?}").contains("secret"), "{address}");
        }
    }
}
