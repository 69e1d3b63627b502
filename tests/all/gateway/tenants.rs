//! Many owners at once: nobody reads another's, and memory does not grow. A few rounds in every `cargo test`; ten minutes
//! with `EPITOME_SOAK_SECONDS=600`, of a release build, by itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::*;

const TENANTS: usize = 64;

/// Memory of a process in KiB, where the system shows it.
fn memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|it| it.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// A round of one owner: a request that passes, a compaction, and the next request with its capsule.
fn round(web: &Web, tenant: usize, number: u64) {
    let word = format!("w{tenant}x{number}");
    let token = format!("tenant-token-{tenant:04}");
    let headers = [("X-Epitome-Token", token.as_str()), ("X-Tenant", word.as_str())];
    let items = conversation(&word);
    let passed = post(web.port, "/v1/responses", &headers, &codex(&items, true));
    assert_eq!(passed.text(), format!("for {word}"));
    let made = item(&post(web.port, "/v1/responses", &headers, &codex(&with(items, trigger()), true)));
    let next =
        post(web.port, "/v1/responses?next", &headers, &codex(&[made, message("user", "go on")], true));
    let seen = next.text();
    assert!(seen.contains(&format!("TAIL-{word} ")), "{seen}");
    let others = regex::Regex::new(r"\bw\d+x\d+\b").unwrap();
    assert!(others.find_iter(&seen).all(|it| it.as_str() == word), "{word}: {seen}");
}

#[test]
fn nobody_reads_anothers() {
    let seconds = std::env::var("EPITOME_SOAK_SECONDS").ok().and_then(|it| it.parse::<u64>().ok());
    let provider = Provider::start(|request, out| {
        let tenant = request.headers.iter().find_map(|it| it.strip_prefix("X-Tenant: ")).unwrap();
        // What the provider gets of the next request is shown to its client.
        let text = if request.first.contains("?next") { request.text() } else { format!("for {tenant}") };
        let _ = out
            .write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    });
    let url = format!("http://127.0.0.1:{}", provider.port);
    let web = Web::start(|home, command| {
        let file = home.join("tokens");
        let lines: String = (0..TENANTS).map(|it| format!("t{it}:tenant-token-{it:04}\n")).collect();
        std::fs::write(&file, lines).unwrap();
        command.args(["--upstream", &url, "--token-file"]).arg(file);
    });
    let until = seconds.map(|it| Instant::now() + Duration::from_secs(it));
    let (done, warm) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for tenant in 0..TENANTS {
            let (web, provider, done, warm) = (&web, &provider, &done, &warm);
            scope.spawn(move || {
                for number in 0.. {
                    if until.map_or(number > 0, |it| Instant::now() > it) {
                        break;
                    }
                    round(web, tenant, number);
                    drop(provider.take());
                    if done.fetch_add(1, Ordering::Relaxed) == 4 * TENANTS as u64 {
                        warm.store(memory(web.id()).unwrap_or(0), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let rounds = done.load(Ordering::Relaxed);
    assert!(rounds >= TENANTS as u64);
    if let (Some(_), Some(end), warm @ 1..) = (seconds, memory(web.id()), warm.load(Ordering::Relaxed)) {
        println!("{rounds} rounds of {TENANTS} owners; memory {warm} KiB when warm, {end} KiB at the end");
        assert!(end < warm * 3 / 2, "memory grew from {warm} to {end} KiB");
    }
}
