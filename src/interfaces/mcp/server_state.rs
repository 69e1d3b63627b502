//! Shared server state: the configuration, the store (opened on first use, because a client waits a second at
//! most for the handshake), and the rules on who may access what.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedSemaphorePermit;

use super::metrics::Metrics;
use super::tools::arguments::hint_words;
use super::tools::arguments::{Arguments, with_argument_name};
use crate::agents::{self, AgentRef};
use crate::config::Config;
use crate::engine::{self, Engine, Listener, Opened, SessionRef};
use crate::store::{Face, Handle, Scope, SearchScope, Store};
use history::error::{Error, ErrorKind, Result};
use sessions::Format;
use tokens::Tokenizer;

#[derive(Clone)]
pub(crate) struct Caller {
    /// Owner of the archive and memories that the call uses.
    pub(crate) owner: String,
    /// The calling agent and session, if the client sends them with each call.
    pub(crate) session: Option<(AgentRef, String)>,
    /// Receives the call's events, if the client asked for progress.
    pub(crate) listener: Option<Listener>,
    /// Permit for the memory of the request's body; released when the request is done.
    pub(crate) _body_permit: Option<Arc<OwnedSemaphorePermit>>,
}

impl Caller {
    pub(crate) fn of(owner: &str) -> Self {
        Self { owner: owner.to_owned(), session: None, listener: None, _body_permit: None }
    }
}

/// Access rules of a server that is not only for the local user.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remote {
    /// Only sessions below these folders may be read from the server's disk. Symbolic links are resolved, so
    /// that none leads out.
    pub(crate) roots: Vec<PathBuf>,
}

pub(crate) struct ServerState {
    pub(crate) config: Config,
    /// Replaces the clock, for tests and `--now`; ms since 1970.
    now: Option<i64>,
    pub(crate) remote: Option<Remote>,
    pub(crate) metrics: Arc<Metrics>,
    store: Mutex<Option<Arc<Store>>>,
}

impl ServerState {
    pub(crate) fn new(config: Config, now: Option<i64>, remote: Option<Remote>) -> Self {
        Self { config, now, remote, metrics: Arc::default(), store: Mutex::new(None) }
    }

    pub(crate) fn now(&self) -> i64 {
        self.now.unwrap_or_else(|| jiff::Timestamp::now().as_millisecond())
    }

    /// The local user, who also owns what the command line stores.
    pub(crate) fn local(&self) -> Caller {
        Caller::of(&self.config.owner)
    }

    /// Opens the store once; after a failure the next call tries again.
    pub(crate) fn store(&self) -> Result<Arc<Store>> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = &*store {
            return Ok(open.clone());
        }
        let open = engine::open_store(&self.config)?;
        *store = Some(open.clone());
        Ok(open)
    }

    pub(crate) fn engine(&self, caller: &Caller) -> Result<Engine> {
        let mut config = self.config.clone();
        config.owner.clone_from(&caller.owner);
        if let Some((agent, session)) = &caller.session {
            config.agents.inside = Some(*agent);
            config.agents.session = Some(session.clone());
        }
        let face = if self.remote.is_some() { Face::Server } else { Face::Mcp };
        let (store, listener) = (self.store()?, caller.listener.clone());
        Ok(Engine { config, store, now: self.now(), listener, face, hint_words })
    }

    /// Opens the session that a call's arguments name.
    pub(crate) fn open(&self, engine: &Engine, arguments: &Arguments) -> Result<Opened> {
        self.open_by(&|what, format| engine::open(engine, what, format, None), engine, arguments)
    }

    /// The same, but reads only what is needed to count tokens with this tokenizer.
    pub(crate) fn open_measured(
        &self,
        engine: &Engine,
        arguments: &Arguments,
        tokenizer: Tokenizer,
    ) -> Result<Opened> {
        self.open_by(
            &|what, format| engine::open_measured(engine, what, format, None, tokenizer),
            engine,
            arguments,
        )
    }

    fn open_by(&self, open: &Open<'_>, engine: &Engine, arguments: &Arguments) -> Result<Opened> {
        let format = arguments.text("format")?.map(|it| Format::named(&it)).transpose();
        let format = format.map_err(|error| with_argument_name("format", &error))?;
        if let Some(messages) = arguments.messages("messages")? {
            let mut opened = open(&SessionRef::Inline(messages), format)?;
            if self.remote.is_none() {
                // Messages from a local caller belong to the current project.
                opened.session.history.meta.cwd.get_or_insert_with(|| self.config.project().into());
            }
            return Ok(opened);
        }
        let name = arguments.text("session")?;
        match (&self.remote, name.as_deref()) {
            (Some(remote), name) => open_remote(open, engine, remote, name, format),
            (None, Some("-")) => Err(Error::of_argument(
                "session",
                "expected a file, an id or a handle, found -; standard input is the protocol's",
            )),
            (None, Some(name)) => open(&SessionRef::Named(name.to_owned()), format),
            (None, None) => open(&SessionRef::Unnamed, format),
        }
    }

    /// The scope of a handle that the caller may read within `wanted`; a remote caller may read only its own.
    pub(crate) fn readable(
        &self,
        engine: &Engine,
        handle: &str,
        wanted: Option<SearchScope>,
    ) -> Result<Scope> {
        match self.remote {
            Some(_) => engine.store.locate(handle, &engine.config.owner),
            None => engine::readable(engine, handle, wanted),
        }
    }

    /// Where to archive the caller's data if no session names a project.
    pub(crate) fn scope(&self, caller: &Caller) -> Scope {
        let project = match &self.remote {
            Some(_) => String::new(),
            None => self.config.project(),
        };
        Scope { owner: caller.owner.clone(), project }
    }

    /// The path of a new file in our data directory, for a result that goes to a file.
    pub(crate) fn result_file(&self, what: &str, extension: &str) -> Result<PathBuf> {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let folder = self.config.data_dir.join("results");
        make_private(&folder)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let plain: String =
            what.chars().filter(|it| it.is_ascii_alphanumeric() || *it == '-').take(64).collect();
        Ok(folder.join(format!("{plain}-{}-{}-{number}.{extension}", self.now(), std::process::id())))
    }
}

fn make_private(folder: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| {
        Error::new(ErrorKind::Io, "making a folder for results").at_path(folder).because(error)
    })
}

/// The error for `current` and `latest` on a server that cannot see the caller's machine.
const ELSEWHERE: &str = "this server runs remotely and cannot see your agent's sessions. Pass `messages`, or store a \
history with PUT /sessions (same token) and pass the handle it returns as `session`. To work on live sessions, install \
locally: epitome install claude-code (or codex, gemini-cli, opencode)";

/// Opens a session once its reference is known.
type Open<'a> = dyn Fn(&SessionRef, Option<Format>) -> Result<Opened> + 'a;

fn open_remote(
    open: &Open<'_>,
    engine: &Engine,
    remote: &Remote,
    name: Option<&str>,
    format: Option<Format>,
) -> Result<Opened> {
    let name = match name {
        None | Some("current" | "latest") => return Err(Error::new(ErrorKind::Refused, ELSEWHERE)),
        Some(name) => name,
    };
    if Handle::parse(name).is_some()
        && let Ok(scope) = engine.store.locate(name, &engine.config.owner)
    {
        let bytes = engine.store.restore(&scope, name)?;
        return open(&SessionRef::Inline(bytes), format);
    }
    // The same message for a missing and a forbidden file, so that callers cannot probe this disk.
    let refused = || {
        let what = "expected a handle of yours, or a session file below a folder this server allows, found neither; \
                    pass `messages`, or PUT /sessions and pass its handle";
        Error::new(ErrorKind::Refused, what).at(name, None)
    };
    let (path, id) = match agents::split_address(name) {
        Some((_, path, id)) => (path, Some(id)),
        None => (Path::new(name), None),
    };
    let allowed = remote.roots.iter().find_map(|root| {
        let found = std::fs::canonicalize(root.join(path)).ok()?;
        found.starts_with(root).then_some(found)
    });
    let found = allowed.ok_or_else(refused)?;
    let found = found.to_str().ok_or_else(refused)?;
    let address = id.map_or_else(|| found.to_owned(), |id| format!("{found}#{id}"));
    open(&SessionRef::Named(address), format)
}
