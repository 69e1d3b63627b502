//! Forwards requests, and returns the responses as they come: bodies, statuses, headers and their case. Only
//! hop-by-hop headers (RFC 9110, 7.6.1) are removed. Nothing of either is kept or logged.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{self, HeaderName};
use axum::http::uri::{Authority, PathAndQuery, Scheme};
use axum::http::{HeaderMap, Request, Response, StatusCode, Uri, Version};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls_platform_verifier::ConfigVerifierExt;

use super::answer;
use history::error::{Error, ErrorKind, Result};

/// Maximum time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Idle time after which we close a connection, before the provider does.
const IDLE: Duration = Duration::from_secs(15);

/// Hop-by-hop headers. `Upgrade` may stay: without a `Connection` header that names it, it has no effect (RFC
/// 9110, 7.8).
const HOP: [HeaderName; 7] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
];

/// The provider to which requests are forwarded.
pub struct Upstream {
    scheme: Scheme,
    authority: Authority,
    /// Put before every path; has no trailing slash.
    prefix: String,
    client: Client<HttpsConnector<HttpConnector>, Body>,
}

impl Upstream {
    /// # Errors
    /// [`ErrorKind::Arguments`] for anything but a plain `http` or `https` address.
    pub fn new(url: &str) -> Result<Self> {
        let wrong = |found: &str| {
            let what =
                format!("--upstream: expected an address such as https://api.openai.com, found {found}");
            Error::new(ErrorKind::Arguments, what)
        };
        let uri: Uri = url.parse().map_err(|_| wrong("none"))?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(wrong("one without http:// or https://"));
        };
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(wrong("another scheme"));
        }
        // The message must not show them: they may contain a secret.
        if authority.as_str().contains('@')
            || parts.path_and_query.as_ref().is_some_and(|it| it.query().is_some())
        {
            return Err(wrong("one with a password or a query"));
        }
        let prefix =
            parts.path_and_query.as_ref().map_or("", PathAndQuery::path).trim_end_matches('/').to_owned();
        if prefix.ends_with("/v1") {
            return Err(wrong(
                "one that ends in /v1; leave that out, since the clients' paths begin with it",
            ));
        }
        crate::llm::http::use_ring();
        let mut tls = if scheme == Scheme::HTTPS {
            rustls::ClientConfig::with_platform_verifier().map_err(|error| {
                Error::new(ErrorKind::Io, "reading this system's certificates").because(error)
            })?
        } else {
            // Without TLS no certificates are needed.
            let roots = rustls::RootCertStore::empty();
            rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
        };
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.enforce_http(false);
        // A provider that only supports HTTP/2 then fails in the handshake.
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let connector = HttpsConnector::from((tcp, Arc::new(tls)));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http1_preserve_header_case(true)
            .build(connector);
        Ok(Self { scheme, authority, prefix, client })
    }

    /// The host, for display.
    pub fn host(&self) -> &str {
        self.authority.as_str()
    }

    /// Forwards a request; returns the response, whose body is streamed.
    pub async fn pass(&self, mut request: Request<Body>) -> Response<Body> {
        let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(format!("{}{path}", self.prefix))
            .build();
        let Ok(uri) = uri else {
            let what = "this path cannot be forwarded";
            return answer::error(StatusCode::BAD_REQUEST, "invalid_request_error", what);
        };
        *request.uri_mut() = uri;
        *request.version_mut() = Version::HTTP_11;
        let headers = request.headers_mut();
        without_hop(headers);
        // It names our own address.
        headers.remove(header::HOST);
        match self.client.request(request).await {
            Ok(mut response) => {
                without_hop(response.headers_mut());
                *response.version_mut() = Version::HTTP_11;
                response.map(Body::new)
            }
            Err(error) => {
                let what = format!("cannot reach {}: {}{}", self.authority, chain(&error), advice(&error));
                tracing::warn!("forwarding a request: {what}");
                answer::error(StatusCode::BAD_GATEWAY, "upstream_unreachable", &what)
            }
        }
    }
}

/// Removes hop-by-hop headers, and those that `Connection` names.
fn without_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(','))
        .filter_map(|it| it.trim().parse().ok())
        .filter(|it| it != header::UPGRADE)
        .collect();
    for name in HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

/// Advice for an error that a setting causes.
fn advice(error: &(dyn std::error::Error + 'static)) -> &'static str {
    let mut causes = std::iter::successors(Some(error), |it| it.source());
    let other_protocol =
        causes.any(|it| it.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse));
    let text = chain(error);
    if other_protocol || text.contains("NoApplicationProtocol") {
        "; the gateway uses HTTP/1.1, and this provider answers in another protocol (HTTP/2 is not supported)"
    } else if text.contains("invalid peer certificate") {
        "; if the certificate is valid, start the gateway with SSL_CERT_FILE set to the file of its authority"
    } else {
        ""
    }
}

/// An error with its causes. hyper's messages contain no headers or bodies.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |it| it.source());
    causes.fold(error.to_string(), |all, it| format!("{all}: {it}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_is_a_plain_address() {
        for url in ["http://127.0.0.1:1", "https://api.openai.com", "http://host:80/prefix/"] {
            // Without system certificates, https fails.
            if let Err(error) = Upstream::new(url) {
                assert!(url.starts_with("https") && error.kind() == ErrorKind::Io, "{error}");
            }
        }
        assert_eq!(Upstream::new("http://host:80/prefix/").unwrap().prefix, "/prefix");
        for url in [
            "",
            "x",
            "ftp://host",
            "//host",
            "http://user:secret@host",
            "http://host?key=secret",
            "http://host/v1",
        ] {
            let error = Upstream::new(url).err().unwrap();
            assert!(error.kind() == ErrorKind::Arguments && !error.full().contains("secret"), "{error}");
        }
    }

    #[test]
    fn headers_of_the_connection_stay_here() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-one"),
            ("connection", "X-Two"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("te", "trailers"),
        ] {
            headers.append(name, value.parse().unwrap());
        }
        headers.append("x-three", "3".parse().unwrap());
        headers.append("x-three", "4".parse().unwrap());
        without_hop(&mut headers);
        assert_eq!(headers.len(), 2);
        assert_eq!(headers.get_all("x-three").iter().collect::<Vec<_>>(), ["3", "4"]);
    }
}
