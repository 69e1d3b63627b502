//! A provider behind TLS, or with HTTP/2 alone. The certificates in `tls/` are of an authority made for these tests.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;

fn file(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/gateway/tls").join(name)
}

/// A provider on a port of 127.0.0.1 that answers each request with two events, and keeps what reaches it.
fn provider(protocols: &[&str]) -> (u16, Arc<Mutex<Vec<Message>>>) {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let certificates =
        CertificateDer::pem_file_iter(file("server.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let mut config = ServerConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
    let (config, seen) = (Arc::new(config), Arc::new(Mutex::new(Vec::new())));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, kept) = (listener.local_addr().unwrap().port(), seen.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (config, kept) = (config.clone(), kept.clone());
            std::thread::spawn(move || {
                let stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
                let mut reader = BufReader::new(stream);
                while let Some(request) = Message::read(&mut reader, |_| {}, false) {
                    kept.lock().unwrap().push(request);
                    let head =
                        b"HTTP/1.1 200 OK\r\nX-Own: 1\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nfirst\n\r\n";
                    let _ = reader.get_mut().write_all(head);
                    let _ = reader.get_mut().write_all(b"7\r\nsecond\n\r\n0\r\n\r\n");
                }
            });
        }
    });
    (port, seen)
}

/// A gateway that trusts those authorities alone.
fn gateway(port: u16, authorities: &str) -> Web {
    Web::start(|_, command| {
        command.args(["--upstream", &format!("https://127.0.0.1:{port}")]);
        command.env_remove("SSL_CERT_DIR").env("SSL_CERT_FILE", file(authorities));
    })
}

/// What a refused request is answered with.
fn refused(web: &Web) -> String {
    let headers = [("Authorization", "Bearer sk-secret")];
    let answer = post(web.port, "/v1/responses", &headers, &codex(&conversation("x"), true));
    assert_eq!(
        (answer.status(), answer.json()["error"]["code"].as_str()),
        (502, Some("upstream_unreachable"))
    );
    assert!(!answer.text().contains("secret"));
    answer.json()["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_provider_behind_tls_gets_the_same_bytes() {
    for protocols in [&[][..], &["h2", "http/1.1"]] {
        let (port, seen) = provider(protocols);
        let web = gateway(port, "ca.pem");
        let body = codex(&with(conversation("tls"), message("user", "compaction_trigger é\u{2028}")), true);
        for number in 0..20 {
            let number = number.to_string();
            let headers = [("X-Number", number.as_str()), ("AUTHORIZATION", "Bearer sk-1"), ("x-Same", "1")];
            let answer = post(web.port, "/v1/responses?x=%2F", &headers, &body);
            assert_eq!((answer.status(), answer.text().as_str()), (200, "first\nsecond\n"));
            assert_eq!(answer.headers, ["X-Own: 1"]);
            let sent = request("POST", "/v1/responses?x=%2F", &headers, body.to_string().as_bytes());
            let expected = Message::read(&mut &sent[..], |_| {}, false).unwrap();
            assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), [expected], "{protocols:?} {number}");
        }
        let made =
            item(&post(web.port, "/v1/responses", &[], &codex(&with(conversation("tls"), trigger()), true)));
        assert_eq!(made["type"], "compaction");
        assert!(seen.lock().unwrap().is_empty());
    }
}

#[test]
fn a_certificate_of_nobody_is_refused_and_the_way_out_is_named() {
    let (port, seen) = provider(&[]);
    let what = refused(&gateway(port, "other-ca.pem"));
    assert!(what.contains("certificate") && what.contains("SSL_CERT_FILE"), "{what}");
    assert!(seen.lock().unwrap().is_empty(), "nothing is sent to it");
}

#[test]
fn a_provider_with_http_2_alone_is_an_error_that_says_so() {
    let (port, _) = provider(&["h2"]);
    let what = refused(&gateway(port, "ca.pem"));
    assert!(what.contains("HTTP/2 is not supported"), "{what}");
    // Without TLS: its first frames, which are no answer of HTTP/1.1.
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}", plain.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for mut stream in plain.incoming().flatten() {
            let _ = stream.read(&mut [0; 65_536]);
            let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100];
            let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
            let _ = stream.write_all(&[&settings[..], &goaway].concat());
        }
    });
    let what = refused(&to(&url));
    assert!(what.contains("HTTP/2 is not supported"), "{what}");
}
