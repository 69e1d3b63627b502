//! Programs of others, and ours, as processes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::folder;

/// What `NAME --version` says, or that it is not there.
pub fn version(name: &str) -> String {
    let out = Command::new(name).arg("--version").output();
    let found =
        out.ok().map(|it| String::from_utf8_lossy(&it.stdout).trim().trim_start_matches('v').to_owned());
    found.map_or("not installed".to_owned(), |it| it.rsplit(' ').next().unwrap_or_default().to_owned())
}

/// A script of `benches/peers`.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers").join(name)
}

/// The core package of Gemini CLI, if it was installed.
pub fn gemini() -> Result<PathBuf, String> {
    let found = folder().join("node_modules/@google/gemini-cli-core");
    if found.exists() { Ok(found) } else { Err("Gemini CLI is not installed; `just bench-peers`".to_owned()) }
}

/// The program that counts with other crates, if it was built.
pub fn counters() -> Result<PathBuf, String> {
    let found = folder().join("release/peers");
    if found.exists() { Ok(found) } else { Err("tiktoken-rs is not built; `just bench-peers`".to_owned()) }
}

/// Ours, with a home of its own in which nothing is.
pub fn ours(arguments: &[&str], home: &Path) -> Command {
    let mut it = Command::new(env!("CARGO_BIN_EXE_epitome"));
    it.args(arguments)
        .env_clear()
        .env("HOME", home)
        .env("XDG_DATA_HOME", home.join("data"))
        .current_dir(home);
    it
}

/// Runs it once: seconds, and what it printed.
pub fn run(command: &mut Command) -> Result<(f64, String), String> {
    let begun = Instant::now();
    let out =
        command.stdin(Stdio::null()).output().map_err(|it| format!("{:?}: {it}", command.get_program()))?;
    let seconds = begun.elapsed().as_secs_f64();
    if !out.status.success() {
        let said: String = String::from_utf8_lossy(&out.stderr).chars().take(200).collect();
        return Err(format!("{:?} failed: {said}", command.get_program()));
    }
    Ok((seconds, String::from_utf8_lossy(&out.stdout).into_owned()))
}

/// The peak of its memory in MB, by `time -f %M`.
pub fn peak(command: &Command) -> Result<f64, String> {
    let report = folder().join("peak");
    let mut timed = Command::new("/usr/bin/time");
    timed.args(["-f", "%M", "-o"]).arg(&report).arg(command.get_program()).args(command.get_args());
    timed.env_clear();
    timed.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    if let Some(directory) = command.get_current_dir() {
        timed.current_dir(directory);
    }
    run(&mut timed)?;
    let text = std::fs::read_to_string(report).map_err(|it| it.to_string())?;
    text.trim().parse::<f64>().map(|it| it / 1024.0).map_err(|_| format!("peak memory: found {text:?}"))
}
