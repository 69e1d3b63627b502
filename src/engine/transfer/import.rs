//! Imports a session: one that was exported, or an agent's session file.

use std::io::{BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use super::{companion_files, movable};
use crate::agents::write_back::shell;
use crate::agents::{self, AgentRef};
use crate::answers::ImportAnswer;
use crate::engine::input::open::read;
use crate::engine::transfer::carry;
use crate::engine::transfer::container::{self, ContainerSubAgent, Unpacked};
use crate::engine::transfer::moved::{Directories, Moved};
use crate::engine::write_back::Installed;
use crate::engine::{Engine, Opened};
use crate::files::{File, Reading};
use crate::store::{self, AuditVerb, Batch, Scope, SessionOrigin};
use history::error::{Error, ErrorKind, Result};
use sessions::{Format, Source};

#[derive(Debug, Clone, Default)]
pub struct ImportTo {
    /// Another agent than the session's own.
    pub agent: Option<AgentRef>,
    /// Into the current directory, not the one that the session records.
    pub here: bool,
}

/// A session that is about to be put where its agent finds it.
struct Incoming<'a> {
    agent: AgentRef,
    id: String,
    file: String,
    /// Its directory where it comes from, and the user's home there.
    directory: Option<String>,
    home: Option<String>,
    source: Box<dyn Source + Send + 'a>,
    beside: Vec<(String, Box<dyn Source + Send + 'a>)>,
    sub_agents: Vec<(ContainerSubAgent, Box<dyn Source + Send + 'a>)>,
    /// The container with its archived originals; `None` for a file that was not exported.
    unpacked: Option<&'a Unpacked>,
}

/// Where an import puts a session and those of its sub-agents.
struct Places {
    path: PathBuf,
    sub_agents: Vec<PathBuf>,
}

/// Where a session continues: its directory, its scope in the archive, and how old directories map to new
/// ones.
struct Destination {
    cwd: PathBuf,
    scope: Scope,
    directories: Directories,
}

struct Imported {
    installed: Installed,
    /// Number of directories replaced in the records.
    directories_changed: u64,
    originals: usize,
    warnings: Vec<String>,
}

/// Puts a session where its agent finds it: one that was exported, or an agent's session file.
///
/// # Errors
///
/// The file is no export and no session, or another file is where it would go; nothing is written then.
pub fn import(engine: &Engine, path: &Path, to: &ImportTo) -> Result<ImportAnswer> {
    let file = File::open(path)?;
    if !container::is_container(&file) {
        let opened = read(Box::new(file), None, Some(path.to_owned()))
            .map_err(|error| Error::new(error.kind(), error.detail()).at_path(path))?;
        return put(engine, &loose(opened, path)?, to);
    }
    let unpacked = container::unpack(path, &engine.config.data_dir)?;
    let manifest = &unpacked.manifest;
    let agent = movable(Format::named(&manifest.agent)?)?;
    let body = |number| Box::new(unpacked.body(number)) as Box<dyn Source + Send + '_>;
    let bodies = || manifest.bodies.iter().zip((0..).map(body));
    let incoming = Incoming {
        agent,
        id: manifest.session.clone(),
        file: manifest.file.clone(),
        directory: manifest.directory.clone(),
        home: Some(manifest.home.clone()),
        source: body(0),
        beside: bodies().filter_map(|(it, body)| Some((it.belongs.beside.clone()?, body))).collect(),
        sub_agents: bodies().filter_map(|(it, body)| Some((it.belongs.sub_agent.clone()?, body))).collect(),
        unpacked: Some(&unpacked),
    };
    put(engine, &incoming, to)
}

/// A session file that was not exported, of any agent that sessions can be moved to.
fn loose(opened: Opened, path: &Path) -> Result<Incoming<'static>> {
    let agent = movable(opened.session.format)?;
    let id = opened.session.history.meta.session.as_deref().map(str::to_owned).ok_or_else(|| {
        let what = "importing: expected a session with an id, found none in it";
        Error::new(ErrorKind::Input, what).at_path(path)
    })?;
    let name = path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    let file = agent.session_file_name(&opened.session, &name);
    let beside = companion_files(agent, &opened)?;
    Ok(Incoming {
        agent,
        id,
        file,
        directory: opened.session.history.meta.cwd.as_deref().map(str::to_owned),
        home: None,
        beside: beside.into_iter().map(|(name, it)| (name, Box::new(it) as Box<dyn Source + Send>)).collect(),
        sub_agents: Vec::new(),
        source: opened.source,
        unpacked: None,
    })
}

fn put(engine: &Engine, incoming: &Incoming<'_>, to: &ImportTo) -> Result<ImportAnswer> {
    let cwd = target(engine, incoming, to)?;
    let directory = cwd.display().to_string();
    let directories = directories(engine, incoming, &cwd)?;
    let destination = Destination { cwd, scope: engine.scope_of(directory.as_str()), directories };
    let agent = to.agent.unwrap_or(incoming.agent);
    let imported = if agent == incoming.agent {
        as_it_is(engine, incoming, &destination)?
    } else {
        carried(engine, incoming, agent, &destination)?
    };
    let Imported { installed, directories_changed, originals, warnings } = imported;
    engine.audit(AuditVerb::Import, &destination.scope, Some(&installed.session_id), None);
    Ok(ImportAnswer {
        agent: agent.name().to_owned(),
        session_id: installed.session_id,
        output: installed.output,
        directory,
        directories_changed,
        originals,
        resume: installed.resume,
        next: installed.next,
        warnings,
    })
}

/// Puts the session's files where its own agent finds them.
fn as_it_is(engine: &Engine, incoming: &Incoming<'_>, to: &Destination) -> Result<Imported> {
    let Destination { cwd, scope, directories } = to;
    // Checks that may refuse come first, before anything is archived.
    let places = places(engine, incoming, cwd)?;
    for (path, source) in files(incoming, &places) {
        if crate::files::has_other_content(&path, &mut moved(source, directories))? {
            let what = "expected no file of that name, found another one; nothing was imported";
            return Err(Error::new(ErrorKind::Refused, what).at_path(&path));
        }
    }
    let originals = archive(engine, scope, incoming, &places)?;
    let (mut directories_changed, mut mentions) = (0, 0);
    for (path, source) in files(incoming, &places) {
        if let Some(folder) = path.parent() {
            crate::files::make_folder(folder, "making the folder of a session")?;
        }
        let mut moved = moved(source, directories);
        crate::files::create_from(&path, &mut moved, &path)?;
        directories_changed += moved.fields;
        mentions += moved.mentions;
    }
    let old = incoming.directory.as_deref().unwrap_or_default();
    let mentioned =
        || format!("{mentions} records still mention {old}; the conversation itself is not changed");
    let (env, agent, path) = (&engine.config.agents, incoming.agent, &places.path);
    let file = agent.new_session_path(env, cwd, &incoming.file)?.is_none().then_some(&**path);
    let resume = shell::resume_command(env, agent, &places.sub_agents, file, &incoming.id, Some(cwd));
    let installed = Installed::new(path, incoming.id.clone(), resume);
    let warnings = (mentions > 0).then(mentioned).into_iter().collect();
    Ok(Imported { installed, directories_changed, originals, warnings })
}

/// Imports it as a session of another agent.
fn carried(engine: &Engine, incoming: &Incoming<'_>, agent: AgentRef, to: &Destination) -> Result<Imported> {
    let mut moved = moved(&*incoming.source, &to.directories);
    let mut bytes = Vec::new();
    moved.read_to_end(&mut bytes).map_err(store::unwrapped)?;
    let source = Box::new(sessions::MemorySource::new(incoming.file.as_str(), bytes));
    let opened = Opened { cwd: Some(to.cwd.clone()), ..read(source, Some(incoming.agent.format()), None)? };
    let files = incoming.sub_agents.iter().map(|(it, _)| PathBuf::from(&it.file));
    let places = Places { path: PathBuf::from(&incoming.file), sub_agents: files.collect() };
    let originals = archive(engine, &to.scope, incoming, &places)?;
    let mut warnings = Vec::new();
    if !incoming.sub_agents.is_empty() {
        warnings.push(format!(
            "the sessions of {} sub-agents were not imported: only {} can continue them",
            incoming.sub_agents.len(),
            incoming.agent.info().title
        ));
    }
    let (installed, lost) = carry::carry(engine, &opened, &opened.session.history, agent)?;
    warnings.extend(lost);
    Ok(Imported { installed, directories_changed: moved.fields, originals, warnings })
}

/// Reads a file with its directories replaced.
fn moved<'a>(source: &'a (dyn Source + Send), directories: &'a Directories) -> Moved<'a, impl BufRead> {
    Moved::new(BufReader::new(Reading::of(source)), directories)
}

/// The directory in which the session continues.
fn target(engine: &Engine, incoming: &Incoming<'_>, to: &ImportTo) -> Result<PathBuf> {
    match &incoming.directory {
        _ if to.here => Ok(crate::files::canonical(&engine.config.agents.cwd)),
        Some(directory) if Path::new(directory).is_dir() => Ok(PathBuf::from(directory)),
        Some(directory) => {
            let what = format!(
                "its directory {directory} does not exist here; --here imports it into the current one"
            );
            Err(Error::new(ErrorKind::Arguments, what))
        }
        None => Err(Error::new(
            ErrorKind::Arguments,
            "it records no directory; --here imports it into the current one",
        )),
    }
}

/// The directories that its records may name, each with its replacement here.
fn directories(engine: &Engine, incoming: &Incoming<'_>, cwd: &Path) -> Result<Directories> {
    let mut pairs = Vec::new();
    if let Some(old) = &incoming.directory {
        pairs.push((old.clone(), cwd.display().to_string()));
        let names = (incoming.agent.directory_name(Path::new(old)), incoming.agent.directory_name(cwd));
        if let (Some(old), Some(new)) = names {
            pairs.push((old, new));
        }
    }
    if let Some(home) = &incoming.home {
        pairs.push((home.clone(), engine.config.agents.home.display().to_string()));
    }
    Directories::new(incoming.agent.info().directory_fields, pairs)
}

/// The paths for the session and its sub-agents' sessions. Fails if a session with one of these ids exists
/// elsewhere.
fn places(engine: &Engine, incoming: &Incoming<'_>, cwd: &Path) -> Result<Places> {
    let env = &engine.config.agents;
    let plain = |it: &str| {
        let mut parts = Path::new(it).components();
        !it.is_empty() && !it.contains('\\') && parts.all(|it| matches!(it, Component::Normal(_)))
    };
    let sessions = || {
        let sub_agents = incoming.sub_agents.iter().map(|(it, _)| (&it.session, &it.file));
        std::iter::once((&incoming.id, &incoming.file)).chain(sub_agents)
    };
    if !sessions().all(|(_, file)| plain(file) && !file.contains('/'))
        || !incoming.beside.iter().all(|it| plain(&it.0))
    {
        let what =
            "importing: found a file name that points outside the session's folder; nothing was imported";
        return Err(Error::new(ErrorKind::Input, what));
    }
    let place = |(id, file): (&String, &String)| {
        let placed = incoming.agent.new_session_path(env, cwd, file)?;
        let path = placed.unwrap_or_else(|| engine.config.data_dir.join("imported").join(file));
        let same = |it: &Path| {
            std::fs::canonicalize(it).ok().is_some_and(|it| std::fs::canonicalize(&path).ok() == Some(it))
        };
        let found = agents::find(env, id).into_iter();
        match found.filter(|it| it.agent == incoming.agent).find(|it| !same(&it.path)) {
            None => Ok(path),
            Some(found) => {
                let what = format!("a session with the id {id} already exists; nothing was imported");
                Err(Error::new(ErrorKind::Refused, what).at(found.address(), None))
            }
        }
    };
    let mut paths = sessions().map(place).collect::<Result<Vec<_>>>()?;
    let sub_agents = paths.split_off(1);
    let path = paths.remove(0);
    Ok(Places { path, sub_agents })
}

/// The session's files, each with its destination. Its own comes last: once that is written, the import is
/// complete.
fn files<'a>(
    incoming: &'a Incoming<'_>,
    places: &'a Places,
) -> impl Iterator<Item = (PathBuf, &'a (dyn Source + Send))> {
    let folder = places.path.parent().unwrap_or(&places.path);
    let beside = incoming.beside.iter().map(move |(name, source)| (folder.join(name), &**source as _));
    let sub_agents = places.sub_agents.iter().cloned().zip(incoming.sub_agents.iter().map(|it| &*it.1 as _));
    beside.chain(sub_agents).chain([(places.path.clone(), &*incoming.source as _)])
}

/// Stores the exported originals and compactions in the archive of this directory. Returns the number of
/// originals.
fn archive(engine: &Engine, scope: &Scope, incoming: &Incoming<'_>, places: &Places) -> Result<usize> {
    let Some(unpacked) = incoming.unpacked else { return Ok(0) };
    let mut count = 0;
    for it in &unpacked.manifest.compactions {
        let bodies: Vec<_> = it.originals.iter().map(|it| unpacked.body(it.body)).collect();
        let originals = it.originals.iter().zip(&bodies).map(|(it, body)| store::Original {
            kind: it.kind,
            body: store::Body::Source(body),
            message: it.message,
            call_id: it.call_id.as_deref(),
            tool: it.tool.as_deref(),
            tokens: it.tokens,
        });
        let sub_agent = it.sub_agent.as_deref();
        let number = incoming.sub_agents.iter().position(|(it, _)| Some(it.session.as_str()) == sub_agent);
        let path = number.and_then(|it| places.sub_agents.get(it)).unwrap_or(&places.path);
        let batch = Batch {
            session: SessionOrigin {
                agent: incoming.agent.name().to_owned(),
                id: sub_agent.unwrap_or(&incoming.id).to_owned(),
                path: Some(path.display().to_string()),
                format: incoming.agent.format().name().to_owned(),
            },
            at: it.at,
            originals: originals.collect(),
            compaction: Some(it.about.clone()),
        };
        let stored = engine.store.put_all(scope, &batch)?;
        count += stored.handles.len();
        // The session's texts refer to them by the handles of the machine that it comes from.
        let new = stored.handles.into_iter().chain(stored.compaction);
        let old = it.originals.iter().map(|it| &it.names).chain([&it.names]);
        for (new, old) in new.zip(old) {
            let others: Vec<_> =
                std::iter::once(old.handle).chain(old.also.iter().copied()).filter(|it| *it != new).collect();
            engine.store.put_aliases(scope, new.as_str(), &others)?;
        }
    }
    Ok(count)
}
