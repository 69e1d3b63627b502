//! Configuration, resolved from file, environment and options. The only module that reads the environment.
//!
//! Precedence: options, then `EPITOME_*`, then `config.toml` in the configuration directory. Files in a
//! project are not read: a hostile repository must not be able to send a history anywhere.

mod environment;
mod file;
pub mod profiles;
mod summarizer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::agents::{self, Env};
use crate::store::{StoreAt, TeamStore};
use compaction::profile::Profile;
use cost::Prices;
use history::error::{Error, ErrorKind, Result};
use history::secrets::Redactor;
use profiles::{BUILT_IN, meant};
use serde::Deserialize;
use tokens::Tokenizer;

pub use environment::{Environment, ancestors};
pub use file::byte_size;
use file::{ConfigFile, VaultWritten, age, size};
pub use summarizer::{Choice, Override, Summarizers};

/// A team's server.
#[derive(Clone, PartialEq, Eq)]
pub struct Vault {
    pub url: String,
    pub token: Option<String>,
}

impl std::fmt::Debug for Vault {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Vault {
    fn resolve(written: &VaultWritten, environment: &Environment) -> Result<Option<Self>> {
        let url = environment.get("EPITOME_VAULT_URL").map(str::to_owned).or_else(|| written.url.clone());
        let Some(url) = url else { return Ok(None) };
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).map(|it| it.trim().to_owned()).map_err(|error| {
                let place = path.display().to_string();
                Error::new(ErrorKind::Arguments, "vault.token-file: expected a file with a token")
                    .at(place, None)
                    .because(error)
            })
        };
        let token = match environment.get("EPITOME_VAULT_TOKEN") {
            Some(token) => Some(token.to_owned()),
            None => written.token_file.as_ref().map(read).transpose()?,
        };
        Ok(Some(Self { url, token }))
    }
}

/// Section `[hooks]`: what hooks do.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct UserHooks {
    /// Whether hooks remind the model when the context is nearly full.
    pub reminder: bool,
    /// Whether hooks block the agent's own compaction, if possible.
    pub block_compaction: bool,
    /// The user's command to run before a compaction, with the event `started` on standard input. If it
    /// fails, nothing is compacted.
    pub before: Option<String>,
    /// The user's command to run afterwards, with the event `compacted` or `failed`.
    pub after: Option<String>,
    /// Time limit of each command.
    pub timeout_seconds: u64,
}

impl UserHooks {
    pub(crate) fn limit(&self) -> std::time::Duration {
        std::time::Duration::from_secs(self.timeout_seconds)
    }
}

impl Default for UserHooks {
    fn default() -> Self {
        // The agents' own default for hooks (Gemini CLI, Claude Code: 60 s).
        Self { reminder: true, block_compaction: false, before: None, after: None, timeout_seconds: 60 }
    }
}

/// Where a value comes from, for `doctor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueOrigin {
    Default,
    /// `config.toml`.
    File,
    Environment,
    Option,
}

#[derive(Debug, Clone)]
pub struct Config {
    /// The environment from which it was resolved.
    pub environment: Environment,
    /// The folder of `config.toml` and of the user's `prompts/`.
    pub config_dir: PathBuf,
    pub data_dir: PathBuf,
    pub store: StoreAt,
    /// Where a team's store keeps its packs: `s3://bucket/prefix` or `file:///directory`.
    pub blobs: String,
    /// The team's server to which archived sessions are pushed, if any.
    pub vault: Option<Vault>,
    /// Removes private passages, secrets, and the user's own patterns from stored text.
    pub redactor: Redactor,
    /// The owner of the archive: the local user.
    pub owner: String,
    /// The profile to use if none is named.
    pub profile: String,
    /// The tokenizer to use if none is named.
    pub tokenizer: Tokenizer,
    /// Context windows of models, which override the built-in table.
    pub windows: BTreeMap<String, u64>,
    pub summarizers: Summarizers,
    /// Whether advice, reminders and answers include costs.
    pub costs: bool,
    /// Prices of models; the user's own override the built-in table.
    pub prices: Prices,
    /// The user's own profiles: name → TOML.
    pub profiles: BTreeMap<String, String>,
    /// Whether hooks archive sessions.
    pub keep_sessions: bool,
    /// Days after which archived sessions are deleted, unless a compaction needs them; default: never.
    pub max_age_days: Option<u32>,
    /// Maximum bytes of the archive; default: no limit.
    pub max_bytes: Option<u64>,
    /// What the environment tells about agents and their folders.
    pub agents: Env,
    pub hooks: UserHooks,
    pub origins: BTreeMap<&'static str, ValueOrigin>,
}

impl Config {
    /// Reads `config.toml` and resolves it.
    ///
    /// # Errors
    ///
    /// If the file is not TOML, or has an unknown key or a value out of range.
    pub fn load(environment: Environment) -> Result<Self> {
        let config_dir = environment.config_dir();
        resolve(file::read(&config_dir.join("config.toml"))?, environment, config_dir)
    }

    /// Overrides the configured store by this folder or `postgres://` address.
    pub fn keep_in(&mut self, place: PathBuf) {
        self.store = store_at(place, &self.blobs, &self.environment);
        self.origins.insert("store.path", ValueOrigin::Option);
        self.origins.insert("store.persistence", ValueOrigin::Option);
    }

    /// The folder of user configurations (`~/.config`), which contains ours.
    pub fn programs_dir(&self) -> &Path {
        self.config_dir.parent().unwrap_or(&self.config_dir)
    }

    /// The current project: its directory with symbolic links resolved, as agents record it.
    pub fn project(&self) -> String {
        crate::files::canonical(&self.agents.cwd).display().to_string()
    }

    /// The value of an agent's setting: `env:NAME`, or `AGENT:path.in.its.file`.
    pub fn agent_setting(&self, from: &str) -> Option<serde_json::Value> {
        match from.split_once(':')? {
            ("env", name) => self.environment.get(name).map(Into::into),
            (agent, path) => agents::settings::own::value(&self.agents, self.programs_dir(), agent, path),
        }
    }

    /// A model's context window, in tokens: from `[windows]`, or the published one.
    pub fn window(&self, model: &str) -> Option<u64> {
        self.windows.get(model).copied().or_else(|| tokens::window(model).map(|it| it.context))
    }

    /// The context window of a session's model, in tokens: from `[windows]`, or from the settings of the
    /// session's agent.
    pub fn model_window(&self, meta: &history::Meta, model: &str) -> Option<u64> {
        self.windows.get(model).copied().or_else(|| {
            let agent = agents::named(meta.agent.as_deref()?)?;
            agent.model_window(&self.agents, self.programs_dir(), model)
        })
    }

    /// The built-in profiles and the user's own.
    ///
    /// # Errors
    ///
    /// If one of the user's profiles is invalid.
    pub fn all_profiles(&self) -> Result<Vec<Profile>> {
        let mut all = profiles::all_built_in()?;
        for name in self.profiles.keys() {
            all.push(self.profile(name)?);
        }
        Ok(all)
    }

    /// The profile to use if none is named.
    ///
    /// # Errors
    ///
    /// As for [`Config::profile`].
    pub fn default_profile(&self) -> Result<Profile> {
        self.profile(&self.profile)
    }

    /// A profile by name (the user's own or built-in) or as a `.toml` file.
    ///
    /// # Errors
    ///
    /// If there is no profile of that name, or the file is not valid.
    pub fn profile(&self, name: &str) -> Result<Profile> {
        if let Some(text) = self.profiles.get(name) {
            let place = format!("config.toml, [profiles.{name}]");
            // The text was serialized again, so its line numbers are not the file's.
            return profiles::parse(text, &place).map_err(|error| error.at(place.as_str(), None));
        }
        if let Some(name) = meant(name) {
            return profiles::built_in(name);
        }
        if !name.ends_with(".toml") {
            let own = self.profiles.keys().map(String::as_str);
            let names: Vec<&str> = own.chain(BUILT_IN.iter().map(|it| it.0)).collect();
            let what = format!("expected a profile ({}) or a .toml file, found {name:?}", names.join(", "));
            return Err(Error::new(ErrorKind::Arguments, what));
        }
        let text = std::fs::read_to_string(name).map_err(|error| {
            Error::new(ErrorKind::Arguments, "reading a profile").at(name, None).because(error)
        })?;
        profiles::parse(&text, name)
    }
}

fn is_database(place: &str) -> bool {
    place.starts_with("postgres://") || place.starts_with("postgresql://")
}

fn store_at(place: PathBuf, blobs: &str, environment: &Environment) -> StoreAt {
    match place.to_str().filter(|it| is_database(it)) {
        Some(address) => StoreAt::Team(TeamStore {
            database: address.to_owned(),
            blobs: blobs.to_owned(),
            variables: environment.variables.clone(),
        }),
        None => StoreAt::Path(place),
    }
}

/// `path` equals `default` unless the user has set it.
fn chosen_store(
    path: &str,
    default: &str,
    blobs: &str,
    persistence: &str,
    environment: &Environment,
) -> Result<StoreAt> {
    let is_one_place = path == "none" || is_database(path) || Path::new(path).is_absolute();
    if path != default && !is_one_place {
        let what = format!(
            "store.path: expected an absolute path, found {path:?}, which would be another store in every directory"
        );
        return Err(Error::new(ErrorKind::Arguments, what));
    }
    match persistence {
        // `path = "none"` also means no store.
        "disk" if path == "none" => Ok(StoreAt::Nowhere),
        "disk" => Ok(store_at(PathBuf::from(path), blobs, environment)),
        "none" => Ok(StoreAt::Nowhere),
        other => {
            let what = format!("store.persistence: expected \"disk\" or \"none\", found {other:?}");
            Err(Error::new(ErrorKind::Arguments, what))
        }
    }
}

fn resolve(written: ConfigFile, environment: Environment, config_dir: PathBuf) -> Result<Config> {
    let data_dir = environment.data_dir();
    let mut origins = BTreeMap::new();
    let mut choose = |key: &'static str, variable: &str, written: Option<String>, default: &str| {
        let (value, origin) = match (environment.get(variable), written) {
            (Some(value), _) => (value.to_owned(), ValueOrigin::Environment),
            (None, Some(value)) => (value, ValueOrigin::File),
            (None, None) => (default.to_owned(), ValueOrigin::Default),
        };
        origins.insert(key, origin);
        value
    };
    let profile = choose("profile", "EPITOME_PROFILE", written.profile, "epitome");
    let tokenizer = choose("tokenizer", "EPITOME_TOKENIZER", written.tokenizer, "auto").parse()?;
    let path = written.store.path.map(|it| it.display().to_string());
    let default = data_dir.display().to_string();
    let path = choose("store.path", "EPITOME_STORE", path, &default);
    let blobs = choose("store.blobs", "EPITOME_BLOBS", written.store.blobs, "");
    let persistence = choose("store.persistence", "EPITOME_PERSISTENCE", written.store.persistence, "disk");
    let store = chosen_store(&path, &default, &blobs, &persistence, &environment)?;
    let mut profiles = BTreeMap::new();
    for (name, value) in written.profiles {
        let text = toml::to_string(&value)
            .map_err(|error| Error::new(ErrorKind::Arguments, format!("profile {name}")).because(error))?;
        profiles.insert(name, text);
    }
    let vault = Vault::resolve(&written.vault, &environment)?;
    let summarizers = Summarizers::resolve(written.summarizer, &environment)?;
    let prices = Prices::new(written.cost.prices).map_err(|it| Error::new(ErrorKind::Arguments, it))?;
    Ok(Config {
        summarizers,
        costs: written.cost.enabled.unwrap_or(true),
        prices,
        agents: environment.agents(),
        environment,
        config_dir,
        data_dir,
        store,
        blobs,
        vault,
        redactor: Redactor::new(&written.store.private)?,
        owner: "local".to_owned(),
        profile,
        tokenizer,
        windows: written.windows,
        profiles,
        keep_sessions: written.store.keep_sessions.unwrap_or(true),
        max_age_days: written.store.max_age.as_deref().map(age).transpose()?,
        max_bytes: written.store.max_bytes.as_deref().map(size).transpose()?,
        hooks: written.hooks,
        origins,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Environment { variables, cwd: PathBuf::from("/here") }
    }

    #[test]
    fn the_later_wins() {
        let written = ConfigFile { profile: Some("codex".into()), ..ConfigFile::default() };
        let config = resolve(written.clone(), environment(&[("HOME", "/h")]), "/c".into()).unwrap();
        assert_eq!((config.profile.as_str(), config.origins["profile"]), ("codex", ValueOrigin::File));
        assert_eq!(config.store, StoreAt::Path("/h/.local/share/epitome".into()));
        let set =
            environment(&[("HOME", "/h"), ("EPITOME_PROFILE", "gemini-cli"), ("XDG_DATA_HOME", "relative")]);
        let config = resolve(written, set, "/c".into()).unwrap();
        assert_eq!(
            (config.profile.as_str(), config.origins["profile"]),
            ("gemini-cli", ValueOrigin::Environment)
        );
        assert_eq!(config.data_dir, PathBuf::from("/h/.local/share/epitome"));
    }

    #[test]
    fn the_store_is_one_place_whatever_the_directory() {
        for path in ["data", "~/data", "./data"] {
            let set = environment(&[("HOME", "/h"), ("EPITOME_STORE", path)]);
            let error = resolve(ConfigFile::default(), set, "/c".into()).unwrap_err();
            assert!(error.to_string().contains("expected an absolute path"), "{error}");
        }
    }

    #[test]
    fn what_variables_hold_is_not_shown() {
        let set = environment(&[("HOME", "/h"), ("SOME_API_KEY", "secret")]);
        let shown = format!("{:?}", resolve(ConfigFile::default(), set, "/c".into()).unwrap());
        assert!(shown.contains("SOME_API_KEY") && !shown.contains("secret"), "{shown}");
    }
}
