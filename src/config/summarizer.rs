//! Section `[summarizer]`: who writes summaries.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::Environment;
use crate::llm::http::RequestLimits;
use compaction::summary::model::{Api, Endpoint, Key};
use compaction::summary::request::Bounds;
use history::error::{Error, ErrorKind, Result};

/// Who writes a summary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// No model: the ledger's facts as readable text.
    #[default]
    Offline,
    /// The calling agent's own model, in two calls.
    Host,
    /// The provider whose key is present; offline if there is none.
    Auto,
    Provider(String),
}

/// Model and address of a provider from the command line; these override the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Override {
    pub model: Option<String>,
    pub base_url: Option<String>,
}

/// The known providers, in the order in which `auto` looks for a key.
const PROVIDERS: [KnownProvider; 4] = [
    KnownProvider {
        name: "anthropic",
        api: Api::Anthropic,
        base_url: "https://api.anthropic.com",
        base_variable: "ANTHROPIC_BASE_URL",
        keys: &["ANTHROPIC_API_KEY"],
        model: "claude-haiku-4-5",
        model_prefixes: &["claude"],
    },
    KnownProvider {
        name: "openai",
        api: Api::OpenaiResponses,
        base_url: "https://api.openai.com/v1",
        base_variable: "OPENAI_BASE_URL",
        keys: &["OPENAI_API_KEY"],
        model: "gpt-5-mini",
        model_prefixes: &["gpt", "o3", "o4"],
    },
    KnownProvider {
        name: "gemini",
        api: Api::Gemini,
        base_url: "https://generativelanguage.googleapis.com",
        base_variable: "GOOGLE_GEMINI_BASE_URL",
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        model: "gemini-2.5-flash",
        model_prefixes: &["gemini"],
    },
    KnownProvider {
        name: "openai-compatible",
        api: Api::OpenaiChat,
        base_url: "",
        base_variable: "",
        keys: &[],
        model: "",
        model_prefixes: &[],
    },
];

struct KnownProvider {
    name: &'static str,
    api: Api,
    base_url: &'static str,
    base_variable: &'static str,
    keys: &'static [&'static str],
    model: &'static str,
    /// Prefixes of its models' names.
    model_prefixes: &'static [&'static str],
}

impl Choice {
    /// Parses `offline`, `host`, `auto` or a provider's name.
    ///
    /// # Errors
    ///
    /// If the name is none of these.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "offline" => Ok(Self::Offline),
            "host" => Ok(Self::Host),
            "auto" => Ok(Self::Auto),
            _ if PROVIDERS.iter().any(|it| it.name == name) => Ok(Self::Provider(name.to_owned())),
            _ => {
                let names: Vec<&str> = PROVIDERS.iter().map(|it| it.name).collect();
                let what = format!("expected offline, host, auto, {}, found {name:?}", names.join(", "));
                Err(Error::new(ErrorKind::Arguments, what))
            }
        }
    }
}

/// `[summarizer]` as in the file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SummarizerSection {
    r#use: Option<String>,
    /// The language of summaries; default: the conversation's.
    pub language: Option<String>,
    idle_seconds: Option<u64>,
    total_seconds: Option<u64>,
    /// Maximum attempts of one request.
    pub tries: Option<u32>,
    tokens_per_call: Option<u64>,
    /// Maximum tokens sent per hour, for all sessions together.
    pub tokens_per_hour: Option<u64>,
    /// Maximum US dollars per summary, if the price is known.
    pub dollars_per_call: Option<f64>,
    /// Maximum US dollars per hour, for models with a known price.
    pub dollars_per_hour: Option<f64>,
    /// Maximum seconds per hour spent waiting for providers.
    pub seconds_per_hour: Option<u64>,
    anthropic: Option<ProviderSection>,
    openai: Option<ProviderSection>,
    gemini: Option<ProviderSection>,
    openai_compatible: Option<ProviderSection>,
}

/// `[summarizer.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct ProviderSection {
    model: Option<String>,
    base_url: Option<String>,
    key_variable: Option<String>,
    api: Option<String>,
    window: Option<u64>,
    thinking: Option<u64>,
}

/// The resolved section `[summarizer]`.
#[derive(Debug, Clone, Default)]
pub struct Summarizers {
    /// For calls that do not name a summarizer.
    pub default: Choice,
    pub limits: RequestLimits,
    pub bounds: Bounds,
    /// The section as in the file, without its providers and `use`.
    pub written: SummarizerSection,
    /// The configured providers, among which calls over MCP may choose.
    named: BTreeMap<&'static str, ProviderSection>,
}

impl Summarizers {
    /// Whether no provider is configured, so that every call finishes within seconds.
    pub fn is_offline(&self) -> bool {
        self.default == Choice::Offline && self.named.is_empty()
    }

    pub(super) fn resolve(mut written: SummarizerSection, environment: &Environment) -> Result<Self> {
        let wrong =
            |error: Error| Error::new(ErrorKind::Arguments, format!("summarizer.use: {}", error.detail()));
        let default = environment.get("EPITOME_SUMMARIZER").map(str::to_owned).or(written.r#use.take());
        let default = default.map_or(Ok(Choice::Offline), |it| Choice::named(&it)).map_err(wrong)?;
        let sections = [
            &mut written.anthropic,
            &mut written.openai,
            &mut written.gemini,
            &mut written.openai_compatible,
        ];
        let given = sections.map(Option::take);
        let named = PROVIDERS.iter().zip(given).filter_map(|(known, it)| Some((known.name, it?))).collect();
        let seconds =
            |it: Option<u64>, default: Duration| it.map_or(default, |it| Duration::from_secs(it.max(1)));
        let (limits, bounds) = (RequestLimits::default(), Bounds::default());
        let total = seconds(written.total_seconds, Duration::from_millis(bounds.total_ms));
        Ok(Self {
            default,
            limits: RequestLimits {
                idle: seconds(written.idle_seconds, limits.idle),
                total: limits.total.min(total),
                ..limits
            },
            bounds: Bounds {
                tries: written.tries.unwrap_or(bounds.tries).max(1),
                total_ms: u64::try_from(total.as_millis()).unwrap_or(u64::MAX),
                tokens: written.tokens_per_call.unwrap_or(bounds.tokens),
                ..bounds
            },
            written,
            named,
        })
    }

    /// Whether the configuration allows sending a history to a provider.
    pub fn opens_the_world(&self) -> bool {
        !self.named.is_empty() || matches!(self.default, Choice::Auto | Choice::Provider(_))
    }

    /// Checks the choice of a caller that is not the user: only what the configuration names is allowed.
    ///
    /// # Errors
    ///
    /// If the configuration does not name the provider.
    pub fn allowed(&self, choice: Choice) -> Result<Choice> {
        let allowed = match &choice {
            Choice::Offline | Choice::Host => true,
            // Without a configured provider, `auto` means offline.
            Choice::Auto if !self.opens_the_world() => return Ok(Choice::Offline),
            Choice::Auto => true,
            Choice::Provider(name) => choice == self.default || self.named.contains_key(name.as_str()),
        };
        if allowed {
            return Ok(choice);
        }
        let mut names = vec!["offline", "host"];
        names.extend(self.named.keys());
        let what = format!(
            "summarizer: expected one that the user's configuration names ({}), found another; the user can add [summarizer.NAME] to config.toml",
            names.join(", ")
        );
        Err(Error::new(ErrorKind::Refused, what))
    }

    /// The endpoint of a provider, and the tokens that its model may think; `None` for offline and host, and
    /// for `auto` without a key. `trusted`: the user is asking; otherwise `auto` chooses only among
    /// configured providers.
    ///
    /// # Errors
    ///
    /// [`Provider`](ErrorKind::Provider) if there is no key; [`Arguments`](ErrorKind::Arguments) for an
    /// invalid base URL, model or API.
    pub fn endpoint(
        &self,
        choice: &Choice,
        environment: &Environment,
        trusted: bool,
        said: &Override,
    ) -> Result<Option<(Endpoint, u64)>> {
        match choice {
            Choice::Offline | Choice::Host => Ok(None),
            Choice::Provider(name) => match PROVIDERS.iter().find(|it| it.name == name) {
                Some(known) => self.of(known, environment, said).map(Some),
                None => Ok(None),
            },
            Choice::Auto => {
                let usable = |it: &&KnownProvider| {
                    let mine = self.named.get(it.name);
                    (trusted || mine.is_some() || self.default == Choice::Auto)
                        && (self.key(it, environment).is_some() || (it.keys.is_empty() && mine.is_some()))
                };
                PROVIDERS.iter().find(usable).map(|it| self.of(it, environment, said)).transpose()
            }
        }
    }

    /// The provider of a session's model, by the model's name.
    pub fn maker(model: &str) -> Option<Choice> {
        let name = model.rsplit('/').next().unwrap_or(model);
        let maker =
            PROVIDERS.iter().find(|it| it.model_prefixes.iter().any(|prefix| name.starts_with(prefix)))?;
        Some(Choice::Provider(maker.name.to_owned()))
    }

    /// The endpoint with this model, and the tokens that the model may think.
    pub fn with_model(&self, endpoint: Endpoint, model: &str) -> (Endpoint, u64) {
        let written = self.named.get(endpoint.provider.as_str());
        let table = tokens::window(model);
        let window = written.and_then(|it| it.window).or(table.map(|it| it.input.unwrap_or(it.context)));
        // Thinking comes before the text, and providers count it as output.
        let thinks = if table.is_some_and(|it| it.output >= 32_000) { 8_000 } else { 0 };
        let thinking = written.and_then(|it| it.thinking).unwrap_or(thinks);
        (Endpoint { model: model.to_owned(), window, ..endpoint }, thinking)
    }

    /// Whether the configuration names a model for a provider.
    pub fn names_model(&self, provider: &str) -> bool {
        self.named.get(provider).is_some_and(|it| it.model.is_some())
    }

    fn key(&self, known: &KnownProvider, environment: &Environment) -> Option<(String, Key)> {
        let named = self.named.get(known.name).and_then(|it| it.key_variable.as_deref());
        let mut names = named.map_or_else(|| known.keys.to_vec(), |it| vec![it]).into_iter();
        names.find_map(|it| Some((it.to_owned(), Key::new(environment.get(it)?.trim()))))
    }

    fn of(
        &self,
        known: &KnownProvider,
        environment: &Environment,
        said: &Override,
    ) -> Result<(Endpoint, u64)> {
        let written = self.named.get(known.name).cloned().unwrap_or_default();
        let place = format!("summarizer.{}", known.name);
        let base_url = said
            .base_url
            .clone()
            .or(written.base_url)
            .or_else(|| environment.get(known.base_variable).map(str::to_owned))
            .unwrap_or_else(|| known.base_url.to_owned());
        if !base_url.starts_with("http://") && !base_url.starts_with("https://") {
            let what = format!(
                "{place}.base-url: expected an address that begins with http:// or https://, such as http://localhost:11434/v1 (in config.toml, or --base-url)"
            );
            return Err(Error::new(ErrorKind::Arguments, what));
        }
        let model = said.model.clone().or(written.model).unwrap_or_else(|| known.model.to_owned());
        if model.is_empty() {
            let what = format!(
                "{place}.model: expected the name of a model, found none (in config.toml, or --summarizer \
                 {}/MODEL)",
                known.name
            );
            return Err(Error::new(ErrorKind::Arguments, what));
        }
        let api = match written.api.as_deref() {
            None => known.api,
            Some(name) => Api::find(name).ok_or_else(|| {
                let what = format!(
                    "{place}.api: expected anthropic, openai-responses, openai-chat or gemini, found {name:?}"
                );
                Error::new(ErrorKind::Arguments, what)
            })?,
        };
        let key = self.key(known, environment);
        let variable = written.key_variable.or_else(|| known.keys.first().map(|it| (*it).to_owned()));
        let (key_variable, key) = match key {
            Some((variable, key)) => (variable, Some(key)),
            None => (variable.unwrap_or_default(), None),
        };
        if key.is_none() && !key_variable.is_empty() {
            let what = format!(
                "asking {}: expected a key in {key_variable}, found none; set it, or use --summarizer offline",
                known.name
            );
            return Err(Error::new(ErrorKind::Provider, what));
        }
        let provider = known.name.to_owned();
        let endpoint =
            Endpoint { provider, api, base_url, model: String::new(), key, key_variable, window: None };
        Ok(self.with_model(endpoint, &model))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn of(text: &str, variables: &[(&str, &str)]) -> (Summarizers, Environment) {
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let environment = Environment { variables, cwd: PathBuf::from("/") };
        (Summarizers::resolve(toml::from_str(text).unwrap(), &environment).unwrap(), environment)
    }

    #[test]
    fn nothing_is_sent_unasked() {
        let (it, environment) = of("", &[("ANTHROPIC_API_KEY", "sk-x")]);
        assert_eq!(it.default, Choice::Offline);
        assert!(!it.opens_the_world());
        // Injected text cannot choose a provider, not even through `auto`.
        assert_eq!(it.allowed(Choice::Auto).unwrap(), Choice::Offline);
        assert!(it.allowed(Choice::Provider("anthropic".into())).is_err());
        assert_eq!(it.endpoint(&Choice::Auto, &environment, false, &Override::default()).unwrap(), None);
        let (endpoint, _) =
            it.endpoint(&Choice::Auto, &environment, true, &Override::default()).unwrap().unwrap();
        assert_eq!(
            (endpoint.provider.as_str(), endpoint.key_variable.as_str()),
            ("anthropic", "ANTHROPIC_API_KEY")
        );
    }

    #[test]
    fn a_provider_is_what_the_user_says() {
        let text = "use = \"openai-compatible\"\n[openai-compatible]\nbase-url = \"http://localhost:11434/v1\"\nmodel = \"qwen3\"\nwindow = 32768";
        let (it, environment) = of(text, &[]);
        let (endpoint, thinking) =
            it.endpoint(&it.default, &environment, false, &Override::default()).unwrap().unwrap();
        assert_eq!(
            (endpoint.label().as_str(), endpoint.window, thinking),
            ("openai-compatible/qwen3", Some(32_768), 0)
        );
        assert!(it.allowed(Choice::Provider("openai".into())).is_err());
        let (it, environment) = of(
            "[openai]\nkey-variable = \"MY_KEY\"",
            &[("OPENAI_API_KEY", "no"), ("OPENAI_BASE_URL", "https://gw/v1")],
        );
        let error = it
            .endpoint(&Choice::Provider("openai".into()), &environment, true, &Override::default())
            .unwrap_err();
        assert!(error.to_string().contains("MY_KEY"), "{error}");
    }
}
