//! The process environment, read once.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::agents::{self, Env};

/// The environment as a value, so that tests can make their own.
#[derive(Clone, Default)]
pub struct Environment {
    pub variables: BTreeMap<String, String>,
    pub cwd: PathBuf,
}

impl std::fmt::Debug for Environment {
    /// Only the names of variables: their values may be API keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.variables.keys().collect();
        f.debug_struct("Environment").field("variables", &names).field("cwd", &self.cwd).finish()
    }
}

impl Environment {
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn of_process() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { variables, cwd: std::env::current_dir().unwrap_or_default() }
    }

    /// A variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|it| !it.is_empty())
    }

    /// A variable as an absolute path; relative paths are ignored, as the XDG specification demands.
    fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from).filter(|it| it.is_absolute())
    }

    pub fn home(&self) -> PathBuf {
        self.path("HOME").or_else(|| self.path("USERPROFILE")).unwrap_or_else(|| self.cwd.clone())
    }

    pub(super) fn agents(&self) -> Env {
        let set = |name: &str| self.get(name).is_some();
        let inside = agents::ALL.into_iter().find(|it| it.info().variables.inside.iter().any(|it| set(it)));
        let session = agents::ALL.into_iter().find_map(|it| self.get(it.info().variables.session?));
        let project = agents::ALL.into_iter().find_map(|it| self.path(it.info().variables.project?));
        Env {
            home: self.home(),
            path: self.get("PATH").map(|it| std::env::split_paths(it).collect()).unwrap_or_default(),
            cwd: project.unwrap_or_else(|| self.cwd.clone()),
            variables: self.variables.clone(),
            inside,
            session: session.map(str::to_owned),
        }
    }

    /// `$XDG_CONFIG_HOME/epitome`, `~/.config/epitome` (macOS too), `%APPDATA%\epitome`.
    pub(super) fn config_dir(&self) -> PathBuf {
        self.folder("APPDATA", "XDG_CONFIG_HOME", ".config")
    }

    /// `$XDG_DATA_HOME/epitome`, `~/.local/share/epitome`, `%LOCALAPPDATA%\epitome`.
    pub(super) fn data_dir(&self) -> PathBuf {
        self.folder("LOCALAPPDATA", "XDG_DATA_HOME", ".local/share")
    }

    fn folder(&self, windows: &str, xdg: &str, below_home: &str) -> PathBuf {
        let of_windows = self.path(windows).filter(|_| cfg!(windows));
        let folder = of_windows.or_else(|| self.path(xdg));
        folder.unwrap_or_else(|| self.home().join(below_home)).join("epitome")
    }
}

/// Ids of ancestor processes, nearest first: the shells through which an agent starts a hook, and the agent.
pub fn ancestors() -> Vec<u32> {
    const MOST: usize = 6;
    let mut out = Vec::new();
    #[cfg(unix)]
    {
        let mut process = std::os::unix::process::parent_id();
        while process > 1 && out.len() < MOST {
            out.push(process);
            // `pid (name) state parent …`; the name may contain anything, so parse after the last `)`.
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            process = rest.split_whitespace().nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        }
    }
    out
}
