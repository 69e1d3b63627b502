//! Client of the team's server.

use std::time::Duration;

use reqwest::{Client, StatusCode, Url};

use crate::config::Vault;
use crate::llm::http::{client, is_loopback, runtime};
use history::error::{Error, ErrorKind, Result};

/// Maximum time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Maximum time to send a session and read the answer.
const TOTAL: Duration = Duration::from_secs(300);

/// What is sent with a session's bytes.
#[derive(Debug)]
pub struct SessionLabel<'a> {
    pub session: &'a str,
    pub project: &'a str,
    /// When it was last written, in milliseconds since 1970.
    pub at: i64,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Delivery {
    Stored,
    /// The server will never accept this session; its reason.
    Refused(String),
}

/// If the server cannot be reached, the error is [`ErrorKind::Io`], and sending again is safe.
#[derive(Debug)]
pub struct VaultClient {
    client: Client,
    url: Url,
    token: Option<String>,
    runtime: tokio::runtime::Runtime,
}

impl VaultClient {
    pub fn new(vault: &Vault) -> Result<Self> {
        let url: Url =
            vault.url.parse().map_err(|_| wrong("an address such as https://vault.example.org"))?;
        let is_here = is_loopback(&url);
        match url.scheme() {
            "https" => {}
            "http" if is_here => {}
            _ => return Err(wrong("https://, since the token would be sent unencrypted")),
        }
        let doing = "setting up a connection to the vault";
        let client = client(is_here).connect_timeout(CONNECT).timeout(TOTAL).build();
        let client = client.map_err(|it| Error::new(ErrorKind::Io, doing).because(it.without_url()))?;
        let runtime = runtime(doing)?;
        Ok(Self { client, url, token: vault.token.clone(), runtime })
    }

    /// Sends a session. Sending the same bytes again stores no second copy.
    pub fn send(&self, about: &SessionLabel<'_>, bytes: Vec<u8>) -> Result<Delivery> {
        let away = |found: String| {
            let what =
                "expected the server to store it; it stays in the archive, and the next push continues";
            Error::new(ErrorKind::Io, format!("pushing {}: {what}, found {found}", about.session))
        };
        let mut url = self.url.clone();
        url.set_path(&format!("{}/sessions", self.url.path().trim_end_matches('/')));
        url.query_pairs_mut()
            .clear()
            .append_pair("session", about.session)
            .append_pair("project", about.project)
            .append_pair("at", &about.at.to_string());
        let request = self.client.put(url).header("content-type", "application/octet-stream").body(bytes);
        let request = match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let answer = self.runtime.block_on(async {
            let answer = request.send().await?;
            let status = answer.status();
            Ok::<_, reqwest::Error>((status, answer.text().await.unwrap_or_default()))
        });
        let (status, text) = answer.map_err(|error| away("none".to_owned()).because(error.without_url()))?;
        match status {
            StatusCode::CREATED => Ok(Delivery::Stored),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let what = "expected a token that the server knows (EPITOME_VAULT_TOKEN, or token-file under [vault])";
                let what = format!("pushing {}: {what}, found it refused", about.session);
                Err(Error::new(ErrorKind::Refused, what))
            }
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
                Ok(Delivery::Refused(format!("HTTP {}: {}", status.as_u16(), shown(&text))))
            }
            _ => Err(away(format!("HTTP {}", status.as_u16()))),
        }
    }
}

fn wrong(expected: &str) -> Error {
    Error::new(ErrorKind::Arguments, format!("vault.url: expected {expected}"))
}

/// The beginning of a response, on one line.
fn shown(text: &str) -> String {
    history::one_line(text).chars().take(200).collect()
}
