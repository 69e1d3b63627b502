//! A session carried over: to another agent, or to a new session that starts with a brief.

use crate::agents::AgentRef;
use crate::agents::write_back::shell;
use crate::engine::write_back::{Installed, agent_of};
use crate::engine::{Engine, Opened, compact::memories};
use history::error::{Error, ErrorKind, Result};
use history::{History, Message, Role};
use sessions;
use tokens::Estimator;

/// Maximum tokens (o200k) of a brief.
const BRIEF: u64 = 3_000;

/// Makes a new session of `agent` that starts with `after`; also returns warnings on what its format cannot
/// express.
pub(crate) fn carry(
    engine: &Engine,
    opened: &Opened,
    after: &History,
    agent: AgentRef,
) -> Result<(Installed, Vec<String>)> {
    let to = agent.format();
    let cwd = opened.directory().unwrap_or_else(|| engine.config.agents.cwd.clone());
    let mut meta = after.meta.clone();
    let (env, programs) = (&engine.config.agents, engine.config.programs_dir());
    if opened.session.format != to
        && let Some(model) = agent.default_model(env, programs, &cwd)
    {
        meta.model = Some(model.into());
    }
    let after = &History::new(after.messages().to_vec(), meta);
    let written = sessions::carry(&*opened.source, &opened.session, after, to)?;
    let again = sessions::read(&written.over(&*opened.source), Some(to))?;
    crate::engine::write_back::readback::check_carried(after, &again.history)?;
    let id = written.session.clone().unwrap_or_default();
    let name = written.file_name.clone().unwrap_or_default();
    let placed = agent.new_session_path(env, &cwd, &name)?;
    let path = placed.clone().unwrap_or_else(|| engine.config.data_dir.join("carried").join(&name));
    if let Some(folder) = path.parent() {
        crate::files::make_folder(folder, "making the folder of a session")?;
    }
    crate::files::create(&path, &written.bytes(&*opened.source)?, &path)?;
    let file = placed.is_none().then_some(&*path);
    let resume = shell::resume_command(env, agent, &[], file, &id, Some(&cwd));
    Ok((Installed::new(&path, id, resume), written.warnings))
}

/// A brief of a session, focused on a goal: the first prompt of a new session.
///
/// # Errors
///
/// The store cannot be read.
pub fn brief(engine: &Engine, opened: &Opened, goal: &str) -> Result<String> {
    use compaction::facts::Topic::{
        Active, Commands, Constraints, Current, Decisions, Directory, Done, Errors, Files, Findings, Goal,
        Identifiers, Last, Open, Tried, Untested,
    };
    let history = &opened.session.history;
    let sections = [
        ("Must hold", &[Constraints, Decisions][..]),
        ("Where it stands", &[Goal, Current, Active, Open, Last, Untested]),
        ("Files, and why", &[Directory, Files]),
        ("Commands and errors", &[Commands, Errors]),
        ("Tried and given up", &[Tried]),
        ("Found out", &[Findings, Done]),
        ("Identifiers", &[Identifiers]),
    ];
    let id = history.meta.session.as_deref();
    let session = id.map_or("an earlier session".to_owned(), |id| format!("the session {id}"));
    let start =
        format!("# Task\n\n{goal}\n\nWhat follows is from {session}; its files may have changed since.\n\n");
    let budget = BRIEF.checked_sub(Estimator::O200k.text(&start) + 8).ok_or_else(|| {
        let what = format!("handing off: expected a goal of less than {BRIEF} tokens, found a longer one");
        Error::new(ErrorKind::Arguments, what)
    })?;
    let text = memories::pins_and_facts(engine, history, &sections, budget, Some(goal))?;
    Ok(format!("{start}{}\n", text.trim_end()))
}

/// A new session of `agent` (the session's own if none is named) whose first prompt is `brief`.
///
/// # Errors
///
/// The agent's folder cannot be written.
pub fn hand_off(
    engine: &Engine,
    opened: &Opened,
    brief: &str,
    agent: Option<AgentRef>,
) -> Result<crate::answers::HandoffAnswer> {
    let agent = agent.map_or_else(|| agent_of(opened.session.format), Ok)?;
    let said = |role, text: &str| Message::text(role, history::Kind::Said, text);
    let messages =
        vec![said(Role::User, brief), said(Role::Assistant, "Understood. I will go on from there.")];
    let after = History::new(messages, opened.session.history.meta.clone());
    let (it, warnings) = carry(engine, opened, &after, agent)?;
    Ok(crate::answers::HandoffAnswer {
        brief: brief.to_owned(),
        tokens: Estimator::O200k.text(brief),
        session_id: Some(it.session_id),
        output: Some(it.output),
        resume: Some(it.resume),
        warnings,
    })
}
