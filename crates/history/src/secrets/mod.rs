//! What must not be stored or sent: passages that the user marked private, and what looks like a secret.
//!
//! The patterns of secrets are data (`patterns.toml`). Masking a masked text changes nothing.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;
use regex::Regex;
use serde::Deserialize;

use crate::error::{Error, ErrorKind, Result};

/// Replaces a private passage (as in opencode-supermemory 2.0).
pub const REDACTED: &str = "[REDACTED]";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    rule: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    name: String,
    words: Vec<String>,
    #[serde(deserialize_with = "pattern")]
    pattern: Regex,
    #[serde(default)]
    digit: bool,
    #[serde(default)]
    entropy: f64,
}

fn pattern<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Regex, D::Error> {
    Regex::new(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

/// The built-in rules. A test reads them, so that they are never empty.
static RULES: LazyLock<Rules> =
    LazyLock::new(|| toml::from_str(include_str!("patterns.toml")).unwrap_or_default());

/// `text` with everything that looks like a secret replaced by `[REDACTED:rule]`. Borrowed if there is
/// nothing.
pub fn mask(text: &str) -> Cow<'_, str> {
    let found = secrets(text);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let masked = found.into_iter().map(|(range, name)| (range, format!("[REDACTED:{name}]")));
    Cow::Owned(crate::edited(text, masked))
}

/// The ranges of secrets, in order and without overlap.
fn secrets(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let folded = text.to_ascii_lowercase();
    let images = LazyLock::<Vec<Range<usize>>, _>::new(|| encoded(text));
    let mut found: Vec<(Range<usize>, &'static str)> = Vec::new();
    for rule in &RULES.rule {
        if !rule.words.iter().any(|it| memmem::find(folded.as_bytes(), it.as_bytes()).is_some()) {
            continue;
        }
        for captures in rule.pattern.captures_iter(text) {
            let Some(secret) = captures.name("secret").or_else(|| captures.get(0)) else { continue };
            let random = !rule.digit || secret.as_str().bytes().any(|it| it.is_ascii_digit());
            let image = images.iter().any(|it| it.start <= secret.start() && secret.end() <= it.end);
            if random && !image && entropy(secret.as_str()) >= rule.entropy {
                found.push((secret.range(), &rule.name));
            }
        }
    }
    // The sort is stable: of two at the same position, the earlier rule's comes first.
    found.sort_by_key(|(range, _)| range.start);
    let mut end = 0;
    found.retain(|(range, _)| {
        let free = range.start >= end;
        if free {
            end = range.end;
        }
        free
    });
    found
}

/// Entropy in bits per byte.
fn entropy(text: &str) -> f64 {
    let mut times = [0u32; 256];
    text.bytes().for_each(|it| times[it as usize] += 1);
    let all = text.len() as f64;
    let bits = |times: u32| f64::from(times) / all * (all / f64::from(times)).log2();
    times.into_iter().filter(|it| *it > 0).map(bits).sum()
}

/// The data of `data:` URLs: the bytes of an image may look like anything.
fn encoded(text: &str) -> Vec<Range<usize>> {
    memmem::find_iter(text.as_bytes(), b";base64,")
        .map(|at| {
            let from = at + ";base64,".len();
            let data = |it: &u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'=');
            from..from + text.as_bytes()[from..].iter().take_while(|it| data(it)).count()
        })
        .collect()
}

/// Removes from a text what must not be stored: `<private>…</private>`, the user's own patterns, secrets.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    patterns: Vec<Regex>,
}

static TAG: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("(?i)<(/?)private>").ok());
static MASK: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\[REDACTED(?::[a-z0-9-]+)?\]").ok());

impl Redactor {
    /// With additional patterns of the user.
    ///
    /// # Errors
    /// [`ErrorKind::Arguments`] for a pattern that is no regular expression.
    pub fn new(patterns: &[impl AsRef<str>]) -> Result<Self> {
        let compiled = patterns.iter().map(|it| {
            Regex::new(it.as_ref()).map_err(|error| {
                let found = format!("expected a regular expression, found {:?}", it.as_ref());
                Error::new(ErrorKind::Arguments, format!("reading the patterns of private text: {found}"))
                    .because(error)
            })
        });
        Ok(Self { patterns: compiled.collect::<Result<_>>()? })
    }

    /// `text` as it may be stored.
    pub fn redact(&self, text: &str) -> String {
        let mut out = private_cut(text);
        for pattern in &self.patterns {
            out = pattern.replace_all(&out, REDACTED).into_owned();
        }
        mask(&out).into_owned()
    }

    /// Whether nothing is left of a redacted text but marks and punctuation.
    pub fn is_all_private(&self, cut: &str) -> bool {
        match &*MASK {
            Some(mask) => mask.replace_all(cut, "").chars().all(|it| !it.is_alphanumeric()),
            None => false,
        }
    }
}

/// Redacts what is between `<private>` and `</private>`, in any case and over any number of lines. Nested
/// ones end with the outermost; one that is never closed extends to the end.
fn private_cut(text: &str) -> String {
    let Some(tag) = &*TAG else { return REDACTED.into() };
    let mut out = String::new();
    let (mut depth, mut at) = (0u32, 0);
    for found in tag.captures_iter(text) {
        let (Some(whole), Some(slash)) = (found.get(0), found.get(1)) else { continue };
        match (slash.is_empty(), depth) {
            (true, 0) => {
                out.push_str(&text[at..whole.start()]);
                out.push_str(REDACTED);
                depth = 1;
            }
            (true, _) => depth += 1,
            (false, 0) => continue,
            (false, _) => depth -= 1,
        }
        at = whole.end();
    }
    if depth == 0 {
        out.push_str(&text[at..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Random-looking text of a length, as keys are made of. It is generated, so that no scanner takes this
    /// file for a leak.
    fn random(alphabet: &str, len: usize) -> String {
        let alphabet: Vec<char> = alphabet.chars().collect();
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            alphabet[(state % alphabet.len() as u64) as usize]
        };
        (0..len).map(|_| next()).collect()
    }

    const HEX: &str = "0123456789abcdef";
    const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    const MIXED: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    fn shapes() -> Vec<(&'static str, String, &'static str)> {
        let mixed = |len| random(MIXED, len);
        vec![
            ("AKIA", random(UPPER, 16), "aws-access-key"),
            ("ASIA", random(UPPER, 16), "aws-access-key"),
            ("ghp_", mixed(36), "github-token"),
            ("ghs_", mixed(36), "github-token"),
            ("github_pat_", format!("{}_{}", mixed(22), mixed(59)), "github-token"),
            ("glpat-", mixed(20), "gitlab-token"),
            ("xoxb-", format!("{}-{}", random("0123456789", 12), mixed(24)), "slack-token"),
            ("sk-", mixed(48), "openai-key"),
            ("sk-proj-", format!("{}_{}-{}", mixed(40), mixed(30), mixed(20)), "openai-key"),
            ("sk-ant-api03-", format!("{}-{}", mixed(60), mixed(30)), "anthropic-key"),
            ("sk-or-v1-", random(HEX, 64), "openrouter-key"),
            ("AIza", mixed(35), "google-key"),
            ("sk_live_", mixed(24), "stripe-key"),
            ("rk_test_", mixed(24), "stripe-key"),
            ("npm_", mixed(36), "npm-token"),
            ("pypi-", format!("AgEIcHlwaS5vcmc{}", mixed(70)), "pypi-token"),
            ("hf_", mixed(34), "huggingface-token"),
            ("gsk_", mixed(52), "groq-key"),
            ("SG.", format!("{}.{}", mixed(22), mixed(43)), "sendgrid-key"),
            ("dop_v1_", random(HEX, 64), "digitalocean-token"),
            ("eyJ", format!("{}.eyJ{}.{}", mixed(33), mixed(60), mixed(43)), "jwt"),
        ]
    }

    #[test]
    fn known_shapes_are_masked_wherever_they_stand() {
        for (prefix, rest, name) in shapes() {
            let key = format!("{prefix}{rest}");
            let mask_ = format!("[REDACTED:{name}]");
            for (before, after) in
                [("", ""), ("key is ", "."), ("export X=\"", "\"\n"), ("{\"k\":\"", "\"}"), ("日", "本")]
            {
                let got = mask(&format!("{before}{key}{after}")).into_owned();
                assert!(got == format!("{before}{mask_}{after}") || before == "日", "{name}: {got}");
                assert!(!got.contains(&rest) || before == "日", "{name}: {got}");
            }
        }
    }

    #[test]
    fn secrets_by_their_place_are_masked() {
        let key = random(MIXED, 40);
        for (text, name) in [
            (format!("AWS_SECRET_ACCESS_KEY={key}"), "assigned-secret"),
            (format!("client_secret: \"{key}\","), "assigned-secret"),
            (format!("{{\"apiKey\": \"{key}\"}}"), "assigned-secret"),
            (format!("https://x.example/?access_token={key}&a=b"), "assigned-secret"),
            (format!("Authorization: Bearer {key}"), "bearer"),
            (format!("authorization: Basic {key}="), "basic-auth"),
            (format!("postgres://app:{key}@db.example:5432/x"), "url-password"),
            (format!("https://hooks.slack.com/services/T0ABC/B0DEF/{key}"), "slack-token"),
        ] {
            let got = mask(&text);
            assert!(!got.contains(&key) && got.contains(&format!("[REDACTED:{name}]")), "{got}");
        }
        let pem = |kind: &str| format!("-----BEGIN {kind}-----\n{key}\n{key}\n-----END {kind}-----");
        for kind in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
            assert_eq!(mask(&format!("a {} b", pem(kind))), "a [REDACTED:private-key] b");
            assert_eq!(
                mask(&format!("a {} b", pem(kind).replace('\n', "\\n"))),
                "a [REDACTED:private-key] b"
            );
        }
        assert!(!mask(&format!("-----BEGIN PRIVATE KEY-----\n{key}\n{key}")).contains(&key));
    }

    #[test]
    fn near_misses_stay() {
        let image = format!(
            "data:image/png;base64,{}/AKIA{}+/AIza{}/",
            random(MIXED, 80),
            random(UPPER, 16),
            random(MIXED, 35)
        );
        let base64 = random(&format!("{MIXED}+/"), 4_000);
        let upper = random(UPPER, 30);
        for text in [
            "commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "id 123e4567-e89b-12d3-a456-426614174000",
            "\"integrity\": \"sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==\"",
            "class=\"sk-folding-cube sk-cube-1-of-4\"",
            "OPENAI_API_KEY=sk-your-api-key-goes-here",
            "api_key = os.environ[\"OPENAI_API_KEY\"]",
            "token = get_token_from_vault_v2(path)",
            "const apiKey = process.env.SERVICE_API_KEY_2;",
            "PASSWORD=${DB_PASSWORD_1}",
            "https://user:${TOKEN}@host/x and http://localhost:8080/@scope/pkg",
            "git@github.com:owner/repo.git",
            "ssh://git@host:22/x",
            "max_tokens: 4096, token_count: 123456",
            "Bearer authentication is described in RFC 6750",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@host",
            "npm_config_registry=https://registry.npmjs.org/ npm_lifecycle_event",
            "the toolu_01A09q90qw90lq917835lq9 call and call_abcDEF123456789012345678",
            "author: 0123456789abcdef0123456789abcdef01234567",
            image.as_str(),
            base64.as_str(),
            upper.as_str(),
        ] {
            assert_eq!(mask(text), text);
        }
    }

    #[test]
    fn private_passages_are_cut() {
        let redactor = Redactor::new(&[r"(?m)^ssn:.*$"]).unwrap();
        for (text, kept) in [
            ("a <private>b</private> c", "a [REDACTED] c"),
            ("a <PRIVATE>b\nb</Private> c <private>d</private>", "a [REDACTED] c [REDACTED]"),
            ("a <private>b <private>c</private> d</private> e", "a [REDACTED] e"),
            ("a <private>b", "a [REDACTED]"),
            ("a </private> b", "a </private> b"),
            ("x\nssn: 12\ny", "x\n[REDACTED]\ny"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(redactor.redact(text), kept);
            assert_eq!(redactor.redact(kept), kept);
        }
        assert!(
            redactor.is_all_private(&redactor.redact(" <private>all</private>\n<private>of it</private>. "))
        );
        assert!(!redactor.is_all_private(&redactor.redact("<private>all</private> but this")));
        assert_eq!(Redactor::new(&["("]).unwrap_err().kind(), ErrorKind::Arguments);
    }

    proptest! {
        #[test]
        fn masking_twice_changes_nothing(text in "(token=|sk-|://|@|:|<private>|</private>|[a-zA-Z0-9]{1,30}|[ \"'日=]){0,20}") {
            let redactor = Redactor::default();
            let once = redactor.redact(&text);
            prop_assert_eq!(redactor.redact(&once), once);
        }
    }
}
