//! A session with what was archived of it, written into one file.

use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use std::path::Path;

use super::{companion_files, movable};
use crate::agents::{self, AgentRef, FoundSession};
use crate::answers::ExportAnswer;
use crate::engine::input::open::MAX_COMPACTIONS_SEARCHED;
use crate::engine::transfer::container::{
    self, Belongs, ContainerBody, ContainerCompaction, ContainerOriginal, ContainerSubAgent, Manifest, Names,
    Open, VERSION,
};
use crate::engine::{Engine, Opened};
use crate::files::Reading;
use crate::store::{AuditVerb, Compaction, Handle, ItemKind, Scope};
use history::error::{Error, ErrorKind, Result};
use sessions::Source;

/// Writes a session with what was archived of it into one file.
///
/// # Errors
///
/// The file exists, or an original is damaged.
pub fn export(engine: &Engine, opened: &Opened, path: &Path) -> Result<ExportAnswer> {
    let agent = movable(opened.session.format)?;
    let meta = &opened.session.history.meta;
    let id = meta.session.as_deref().ok_or_else(|| {
        Error::new(ErrorKind::Input, "exporting: expected a session with an id, found none in it")
    })?;
    let file = match &opened.path {
        Some(path) if path.exists() => path.file_name().map(|it| it.to_string_lossy().into_owned()),
        Some(_) | None => None,
    };
    let file = agent.session_file_name(&opened.session, &file.unwrap_or_else(|| format!("{id}.json")));
    let directory = opened.directory().map(|it| it.display().to_string());
    let home = engine.config.agents.home.display().to_string();
    let mut manifest = Manifest {
        version: VERSION,
        agent: agent.name().to_owned(),
        session: id.to_owned(),
        file,
        directory,
        home,
        ..Manifest::default()
    };
    let beside = companion_files(agent, opened)?;
    let sub_agents = sub_agents(engine, agent, opened, id);
    let files = 1 + beside.len() + sub_agents.len();
    let scope = &engine.scope(&opened.session.history);
    let mut originals: Vec<Handle> = Vec::new();
    for sub_agent in std::iter::once(None).chain(sub_agents.iter().map(|it| Some(it.id.as_str()))) {
        for compaction in &compactions(engine, scope, sub_agent.unwrap_or(id))? {
            let it = container_compaction(engine, scope, compaction, files, &mut originals)?;
            let sub_agent = sub_agent.map(str::to_owned);
            manifest.compactions.push(ContainerCompaction { sub_agent, ..it });
        }
    }
    let archived = |it: &Handle| engine.store.reader(scope, it.as_str()).map(|it| it as Box<dyn Read + '_>);
    let mut open: Vec<Open<'_>> = vec![Box::new(|| Ok(content(&*opened.source)))];
    open.extend(beside.iter().map(|(_, it)| Box::new(|| Ok(content(it))) as Open<'_>));
    open.extend(sub_agents.iter().map(|it| Box::new(|| content_of(it)) as Open<'_>));
    open.extend(originals.iter().map(|it| Box::new(move || archived(it)) as Open<'_>));
    let belongs = std::iter::once(Belongs::default())
        .chain(beside.iter().map(|it| Belongs { beside: Some(it.0.clone()), ..Belongs::default() }))
        .chain(sub_agents.iter().map(|it| Belongs { sub_agent: Some(named(it)), ..Belongs::default() }))
        .chain(std::iter::repeat(Belongs::default()));
    for (open, belongs) in open.iter().zip(belongs) {
        manifest.bodies.push(ContainerBody::of(open, belongs)?);
    }
    let bytes = container::write(path, &manifest, open)?;
    engine.audit(AuditVerb::Export, scope, Some(id), None);
    Ok(ExportAnswer {
        agent: agent.name().to_owned(),
        session_id: id.to_owned(),
        output: path.display().to_string(),
        bytes,
        files,
        compactions: manifest.compactions.len(),
        originals: originals.len(),
    })
}

/// The compactions of a session, and of the sessions that it continues.
fn compactions(engine: &Engine, scope: &Scope, id: &str) -> Result<Vec<Compaction>> {
    let mut all = engine.store.compactions(scope, None, MAX_COMPACTIONS_SEARCHED)?;
    let mut ids = vec![id.to_owned()];
    let mut next = 0;
    while let Some(id) = ids.get(next).cloned() {
        let made_it =
            |it: &&Compaction| it.applied.as_ref().is_some_and(|it| it.session.as_ref() == Some(&id));
        let before: Vec<_> = all.iter().filter(made_it).map(|it| it.session.id.clone()).collect();
        ids.extend(before.into_iter().filter(|it| !ids.contains(it)).collect::<BTreeSet<_>>());
        next += 1;
    }
    all.retain(|it| ids.contains(&it.session.id));
    Ok(all)
}

fn content(source: &dyn Source) -> Box<dyn Read + '_> {
    Box::new(Reading::of(source))
}

/// Sub-agents' sessions that the agent stores like any other, not beside this one.
fn sub_agents(engine: &Engine, agent: AgentRef, opened: &Opened, id: &str) -> Vec<FoundSession> {
    let beside = opened.path.as_deref().map(|it| agent.companion_files(it)).unwrap_or_default();
    let mut found = agents::sub_agents(&engine.config.agents, agent, id);
    found.retain(|it| !beside.contains(&it.path));
    found
}

fn named(found: &FoundSession) -> ContainerSubAgent {
    let name = match found.agent.info().database {
        Some(_) => None,
        None => found.path.file_name().map(|it| it.to_string_lossy().into_owned()),
    };
    ContainerSubAgent {
        session: found.id.clone(),
        file: name.unwrap_or_else(|| format!("{}.json", found.id)),
    }
}

fn content_of(found: &FoundSession) -> Result<Box<dyn Read>> {
    match found.agent.info().database {
        Some(database) => Ok(Box::new(Cursor::new(database.export(&found.path, &found.id)?))),
        None => {
            let file = crate::files::open(&found.path).map_err(|error| {
                Error::new(ErrorKind::Input, "opening the session of a sub-agent")
                    .at_path(&found.path)
                    .because(error)
            })?;
            Ok(Box::new(file))
        }
    }
}

/// A compaction with its originals. `bodies`: the originals collected so far, whose bodies begin at index
/// `first`.
fn container_compaction(
    engine: &Engine,
    scope: &Scope,
    compaction: &Compaction,
    first: usize,
    bodies: &mut Vec<Handle>,
) -> Result<ContainerCompaction> {
    let names = |handle: Handle| -> Result<Names> {
        Ok(Names { handle, also: engine.store.aliases(scope, handle.as_str())? })
    };
    let mut body = |handle: Handle| {
        first
            + bodies.iter().position(|it| *it == handle).unwrap_or_else(|| {
                bodies.push(handle);
                bodies.len() - 1
            })
    };
    let mut originals = Vec::new();
    if let Some(handle) = compaction.original {
        originals.push(ContainerOriginal {
            names: names(handle)?,
            kind: ItemKind::Session,
            message: None,
            call_id: None,
            tool: None,
            tokens: compaction.about.tokens_before,
            body: body(handle),
        });
    }
    for it in &compaction.removed {
        originals.push(ContainerOriginal {
            names: names(it.handle)?,
            kind: it.kind,
            message: it.message,
            call_id: it.call_id.clone(),
            tool: it.tool.clone(),
            tokens: it.tokens,
            body: body(it.handle),
        });
    }
    Ok(ContainerCompaction {
        sub_agent: None,
        names: names(compaction.handle)?,
        at: compaction.at,
        about: compaction.about.clone(),
        originals,
    })
}
