//! A network between a server and what it stands on that fails: PostgreSQL, and S3 where `s3s-fs` is installed.

use std::collections::BTreeMap;
use std::io::{Read, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::faults::{open, put, scope, walk};
use super::server::server;
use epitome::history::error::ErrorKind;
use epitome::store::TeamStore;

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Weather {
    Fair,
    /// So many requests are answered with 500, then it is fair.
    Errors(u32),
    /// The answer ends after so many bytes.
    Half(usize),
    /// It is closed at once.
    Cut,
}

/// Passes connections on, as the weather is.
struct Proxy {
    address: SocketAddr,
    shared: Arc<Mutex<(Weather, Vec<TcpStream>)>>,
}

impl Proxy {
    fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new((Weather::Fair, Vec::new())));
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let shared = of_thread.clone();
                std::thread::spawn(move || pass(client, target, &shared));
            }
        });
        Self { address, shared }
    }

    /// From now on, and for the connections that are open: those are closed.
    fn turns(&self, weather: Weather) {
        let mut shared = self.shared.lock().unwrap();
        shared.0 = weather;
        for it in shared.1.drain(..) {
            let _ = it.shutdown(Shutdown::Both);
        }
    }
}

fn pass(mut client: TcpStream, target: SocketAddr, shared: &Mutex<(Weather, Vec<TcpStream>)>) {
    let (weather, server) = {
        let mut shared = shared.lock().unwrap();
        let weather = shared.0;
        if let Weather::Errors(left) = weather {
            shared.0 = if left > 1 { Weather::Errors(left - 1) } else { Weather::Fair };
        }
        let Ok(server) = TcpStream::connect(target) else { return };
        shared.1.extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
        (weather, server)
    };
    let limit = match weather {
        Weather::Cut => {
            let _ = client.shutdown(Shutdown::Both);
            return;
        }
        Weather::Errors(_) => {
            let mut head = [0; 16 << 10];
            let _ = client.read(&mut head);
            let _ = client.write_all(
                b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
            let _ = client.shutdown(Shutdown::Both);
            return;
        }
        Weather::Half(limit) => limit as u64,
        Weather::Fair => u64::MAX,
    };
    let (mut up, mut from) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut up);
        let _ = up.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut server.take(limit), &mut client);
    let _ = client.shutdown(Shutdown::Both);
}

#[test]
fn a_database_behind_a_network_that_fails() {
    let Some(server) = server() else {
        eprintln!("SKIPPED: a_database_behind_a_network_that_fails: no PostgreSQL installed");
        return;
    };
    let direct = server.empty();
    let proxy = Proxy::to(format!("127.0.0.1:{}", server.port).parse().unwrap());
    let far = TeamStore {
        database: direct.database.replace(&server.port.to_string(), &proxy.address.port().to_string()),
        ..direct.clone()
    };
    let store = open(&far).unwrap();
    let bytes = super::super::chunks::noise(5, 200_000);
    let handle = put(&store, &scope("me"), "s", &bytes).unwrap();
    for weather in [Weather::Cut, Weather::Half(3), Weather::Half(400), Weather::Half(900)] {
        proxy.turns(weather);
        let error = put(&store, &scope("me"), "t", &bytes[..100_000]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "an outage, not damage, {weather:?}: {}", error.full());
        assert!(error.full().contains("nothing was changed"), "{weather:?}: {}", error.full());
        let near = open(&direct).unwrap();
        assert_eq!(near.stats().unwrap().items["session"], 1, "{weather:?}");
        proxy.turns(Weather::Fair);
        assert!(store.restore(&scope("me"), &handle).unwrap() == bytes, "{weather:?}");
    }
    let other = put(&store, &scope("me"), "t", &bytes[..100_000]).unwrap();
    assert!(store.restore(&scope("me"), &other).unwrap() == bytes[..100_000]);
}

/// An S3 server of the tests' own.
struct S3 {
    child: Child,
    folder: tempfile::TempDir,
    address: SocketAddr,
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn s3() -> Option<S3> {
    let named = std::env::var_os("EPITOME_S3S").map(PathBuf::from);
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|it| it.join("s3s-fs"));
    let program = named.into_iter().chain(found).find(|it| it.is_file())?;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("archive")).unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let child = Command::new(program)
        .args(["--host", "127.0.0.1", "--port", &address.port().to_string()])
        .args(["--access-key", "key", "--secret-key", "secret"])
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let is_there = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        TcpStream::connect(address).is_ok()
    });
    assert!(is_there, "s3s-fs did not start");
    Some(S3 { child, folder, address })
}

#[test]
fn objects_in_s3_behind_a_network_that_fails() {
    let (Some(server), Some(s3)) = (server(), s3()) else {
        eprintln!("SKIPPED: objects_in_s3: no PostgreSQL, or no s3s-fs (set EPITOME_S3S)");
        return;
    };
    let proxy = Proxy::to(s3.address);
    let endpoint = format!("http://{}", proxy.address);
    let variables = [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ];
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let place = TeamStore { blobs: "s3://archive/of/team".into(), variables, ..server.empty() };
    let store = open(&place).unwrap();
    let bytes = super::super::chunks::noise(6, 3 << 20);
    let handle = put(&store, &scope("me"), "s", &bytes).unwrap();
    assert!(store.restore(&scope("me"), &handle).unwrap() == bytes);
    let folder = s3.folder.path().join("archive/of/team/packs");
    let objects = walk(&folder).len();
    assert!(objects >= 3, "{objects}");
    // A failure that passes is not noticed.
    proxy.turns(Weather::Errors(2));
    let grown = [&bytes[..], &super::super::chunks::noise(7, 100_000)].concat();
    let second = put(&store, &scope("me"), "s", &grown).unwrap();
    for weather in [Weather::Errors(1_000), Weather::Half(40), Weather::Cut] {
        proxy.turns(weather);
        let more = super::super::chunks::noise(8, 200_000);
        let error = put(&store, &scope("me"), "t", &more).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store, "{weather:?}");
        assert!(error.full().contains("object storage"), "{weather:?}: {}", error.full());
        assert!(!error.full().contains("secret"), "{}", error.full());
        let error = store.restore(&scope("me"), &handle).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store, "{weather:?}");
        assert_eq!(store.stats().unwrap().items["session"], 2);
        proxy.turns(Weather::Fair);
        assert!(store.restore(&scope("me"), &handle).unwrap() == bytes, "{weather:?}");
    }
    assert!(store.restore(&scope("me"), &second).unwrap() == grown);
    assert_eq!(store.check().unwrap().problems, Vec::<String>::new());
    // Objects are listed and let go of there, too.
    std::fs::write(folder.join("orphan"), b"x").unwrap();
    let later = jiff::Timestamp::now().as_millisecond() + 25 * 60 * 60 * 1_000;
    store.collect(&epitome::store::Retention::default(), later, false).unwrap();
    assert!(!folder.join("orphan").exists());
    assert!(store.restore(&scope("me"), &handle).unwrap() == bytes);
}
