//! Many owners at once: nobody reads another's, and memory does not grow. A few rounds in every `cargo test`; ten minutes
//! with `EPITOME_SOAK_SECONDS=600`, of a release build, by itself.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::*;

const TENANTS: usize = 64;

/// Memory of a process in KiB, where the system shows it; `VmRSS:` is what it holds, `VmHWM:` the most it held.
pub fn memory(process: u32, which: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|it| it.starts_with(which))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Mean memory over the last twentieth of each quarter of a run, of samples of time and KiB.
///
/// # Errors
/// A quarter without a sample, or one that is more than 3 % away from the first, which warms up.
fn quarters(samples: &[(Duration, u64)], run: Duration) -> Result<[u64; 4], String> {
    let mut means = [0; 4];
    for (mean, quarter) in means.iter_mut().zip(1..) {
        let end = run * quarter / 4;
        let last: Vec<u64> =
            samples.iter().filter(|it| it.0 <= end && it.0 + run / 20 > end).map(|it| it.1).collect();
        *mean = last.iter().sum::<u64>().checked_div(last.len() as u64).unwrap_or(0);
    }
    let first = means[0];
    if first > 0 && means.iter().all(|it| it.abs_diff(first) * 100 <= first * 3) {
        return Ok(means);
    }
    Err(format!("memory is not flat: {means:?} KiB at the end of each quarter"))
}

#[test]
fn memory_that_grows_is_told_from_memory_that_does_not() {
    let run = Duration::from_secs(600);
    let samples = |kib: fn(u64) -> u64| -> Vec<_> {
        (0..600).map(|second| (Duration::from_secs(second), kib(second))).collect()
    };
    let warms = samples(|second| 60_000 + 100 * second.min(100) + second % 7 * 100);
    assert!(quarters(&warms, run).is_ok());
    let leaks = samples(|second| 72_500 + second * 27_400 / 600);
    assert!(quarters(&leaks, run).is_err());
    let late = samples(|second| if second < 560 { 72_500 } else { 76_000 });
    assert!(quarters(&late, run).is_err());
    assert!(quarters(&warms[..500], run).is_err() && quarters(&[], run).is_err());
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
    let begun = Instant::now();
    let run = seconds.map(Duration::from_secs);
    let (done, samples) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for tenant in 0..TENANTS {
            let (web, provider, done, samples) = (&web, &provider, &done, &samples);
            scope.spawn(move || {
                for number in 0.. {
                    if run.map_or(number > 0, |it| begun.elapsed() > it) {
                        break;
                    }
                    round(web, tenant, number);
                    drop(provider.take());
                    done.fetch_add(1, Ordering::Relaxed);
                    if run.is_some()
                        && let Some(kib) = memory(web.id(), "VmRSS:")
                    {
                        samples.lock().unwrap().push((begun.elapsed(), kib));
                    }
                }
            });
        }
    });
    let rounds = done.load(Ordering::Relaxed);
    assert!(rounds >= TENANTS as u64);
    let samples = samples.into_inner().unwrap();
    if let (Some(run), false) = (run, samples.is_empty()) {
        let means = quarters(&samples, run);
        println!("{rounds} rounds of {TENANTS} owners; memory at the end of each quarter: {means:?} KiB");
        means.unwrap();
    }
}
