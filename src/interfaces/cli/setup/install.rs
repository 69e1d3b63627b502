//! `epitome install`, `epitome uninstall`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::gateway;
use crate::agents::install::apply::{differ, put_in, take_out};
use crate::agents::install::records::Records;
use crate::agents::install::{self, FileChange, InstallPlan, InstallRequest, Made, Registration};
use crate::agents::{self, AgentRef};
use crate::config::Config;
use crate::interfaces::cli::Screen;
use history::error::{Error, ErrorKind, Result};

#[derive(Debug, Args)]
pub struct InstallArgs {
    /// claude-code, codex, gemini-cli, opencode or pi; for cursor, vscode, goose and zed, prints what to add by hand
    agent: String,
    /// Do not install hooks
    #[arg(long)]
    no_hooks: bool,
    /// Leave compaction to the agent; removes what an earlier install added
    #[arg(long)]
    no_seat: bool,
    /// Codex: install the MCP prompts as prompt files, since Codex does not show MCP prompts
    #[arg(long)]
    prompts: bool,
    /// Gemini CLI: run the tools without asking
    #[arg(long)]
    trust: bool,
    /// Codex: set its base URL to `epitome serve --http … --upstream …`, which then answers its compactions
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = gateway::DEFAULT, conflicts_with = "no_seat")]
    gateway: Option<String>,
    /// Claude Code in a terminal: also compact when a turn ends with this much of the window used [default: off]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..100), conflicts_with = "no_seat")]
    compact_at: Option<u8>,
    /// Claude Code: show how full the context is in its status line; your own status line is never replaced
    #[arg(long)]
    statusline: bool,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub struct UninstallArgs {
    /// claude-code, codex, gemini-cli, opencode or pi
    agent: String,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn install(config: &Config, arguments: &InstallArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let program = program(config)?;
    if let Some((file, text)) = install::snippet(&arguments.agent, &program) {
        if !screen.json(&json!({"file": file, "text": text}))? {
            screen.note(&format!("add this to {file}:"))?;
            screen.block(&text)?;
        }
        return Ok(0);
    }
    expect_taken(arguments)?;
    let (agent, of) = named(&arguments.agent)?;
    install::expect_agent(&config.agents, config.programs_dir(), agent, of)?;
    let ours = Records::read(&config.data_dir).agents.contains_key(agent.name());
    let wanted = InstallRequest {
        program,
        hooks: !arguments.no_hooks,
        seat: !arguments.no_seat,
        trust: arguments.trust,
        offline: config.summarizers.is_offline(),
        entry_is_ours: ours,
        compact_at: arguments.compact_at.unwrap_or(0),
        status_line: arguments.statusline,
    };
    let plan = plan(config, arguments, agent, of, &wanted)?;
    if !arguments.dry_run {
        put_in(&config.data_dir, agent.name(), &plan)?;
    }
    show(screen, &plan.changes, arguments.dry_run)?;
    if agent.info().has_gateway && arguments.no_seat {
        gateway::open_capsules(config, arguments.dry_run, screen)?;
    }
    let other =
        install::other_status_line(&config.agents, config.programs_dir(), of).filter(|_| wanted.status_line);
    if let Some(path) = other {
        tracing::warn!(
            "{} already has a status line, which is kept; let it run `epitome statusline` to show ours in it",
            path.display()
        );
    }
    if screen.json {
        return Ok(0);
    }
    explain(&wanted, of, agent, arguments.gateway.as_deref(), screen)?;
    Ok(0)
}

/// The changes of an installation, including the gateway and prompt files.
fn plan(
    config: &Config,
    arguments: &InstallArgs,
    agent: AgentRef,
    of: &Registration,
    wanted: &InstallRequest,
) -> Result<InstallPlan> {
    let mut plan = install::install(&config.agents, config.programs_dir(), of, wanted)?;
    match (&arguments.gateway, plan.changes.first_mut()) {
        (Some(url), Some(settings)) => gateway::put(settings, url)?,
        (None, _) if agent.info().has_gateway && arguments.no_seat => {
            gateway::take_out(config, &mut plan.changes, false);
        }
        _ => {}
    }
    if arguments.prompts {
        add_prompts(config, agent, of, &mut plan);
    }
    Ok(plan)
}

/// Refuses options that do not apply to the agent.
fn expect_taken(arguments: &InstallArgs) -> Result<()> {
    let can =
        |which: fn(&Registration) -> bool| agents::names(|it| it.info().registration.is_some_and(which));
    let agent = agents::named(&arguments.agent);
    let registered = agent.and_then(|it| it.info().registration);
    let options: [(&str, bool, fn(&Registration) -> bool); 3] = [
        ("--no-hooks", arguments.no_hooks && registered.is_some(), |it| !it.events.is_empty()),
        ("--compact-at", arguments.compact_at.is_some(), |it| it.has_threshold),
        ("--statusline", arguments.statusline, |it| it.status_line.is_some()),
    ];
    for (option, given, takes_it) in options {
        if given && !registered.is_some_and(takes_it) {
            let what = format!("{option}: expected {}, found {}", can(takes_it), arguments.agent);
            return Err(Error::new(ErrorKind::Arguments, what));
        }
    }
    let (Some(agent), Some(registered)) = (agent, registered) else { return Ok(()) };
    if arguments.prompts && registered.prompts.is_none() {
        let what = format!(
            "--prompts: {} needs no files; only {} does",
            agent.name(),
            can(|it| it.prompts.is_some())
        );
        return Err(Error::new(ErrorKind::Arguments, what));
    }
    if arguments.gateway.is_some() && !agent.info().has_gateway {
        let only = agents::names(|it| it.info().has_gateway);
        let what = format!("--gateway: {} needs none; only {only} does", agent.name());
        return Err(Error::new(ErrorKind::Arguments, what));
    }
    Ok(())
}

/// Prints what the hooks and the seat will do.
fn explain(
    wanted: &InstallRequest,
    registration: &Registration,
    agent: AgentRef,
    gateway: Option<&str>,
    screen: &mut Screen<'_>,
) -> Result<()> {
    if wanted.hooks {
        for (event, what) in registration.events {
            screen.note(&format!("hook  {event}: {what}"))?;
        }
    }
    if wanted.seat {
        for line in registration.seat_explained.into_iter().flatten() {
            screen.note(&format!("seat  {line}"))?;
        }
        if agent.info().has_gateway {
            for line in gateway::explanation(gateway) {
                screen.note(&format!("seat  {line}"))?;
            }
        }
    }
    if let Some(note) = (registration.note)(wanted) {
        screen.note(note)?;
    }
    Ok(())
}

pub(crate) fn uninstall(config: &Config, arguments: &UninstallArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let (agent, of) = named(&arguments.agent)?;
    let made = Records::read(&config.data_dir).agents.remove(agent.name()).unwrap_or_default();
    let mut changes = install::uninstall(&config.agents, config.programs_dir(), of, &made)?;
    let prompts = of.prompts.map(|it| it(&config.agents, config.programs_dir()));
    for path in made.keys().map(PathBuf::from).filter(|it| it.parent() == prompts.as_deref()) {
        let before = std::fs::read_to_string(&path).ok();
        changes.push(FileChange { path, before, after: None });
    }
    if agent.info().has_gateway {
        let file = agents::gateway::settings(&config.agents).display().to_string();
        let made_file = made.get(&file).is_some_and(|it| it.contains(&Made::File));
        gateway::take_out(config, &mut changes, made_file);
    }
    if !arguments.dry_run {
        take_out(&config.data_dir, agent.name(), &changes)?;
    }
    show(screen, &changes, arguments.dry_run)?;
    if agent.info().has_gateway {
        gateway::open_capsules(config, arguments.dry_run, screen)?;
    }
    Ok(0)
}

/// Adds the server's prompts as files; a file of the same name that is not ours is kept.
fn add_prompts(config: &Config, agent: AgentRef, of: &Registration, plan: &mut InstallPlan) {
    let Some(folder) = of.prompts.map(|it| it(&config.agents, config.programs_dir())) else { return };
    let known = Records::read(&config.data_dir).agents.remove(agent.name()).unwrap_or_default();
    for (name, text) in crate::interfaces::mcp::prompt_files(&config.config_dir.join("prompts")) {
        let path = folder.join(name);
        let place = path.display().to_string();
        let before = std::fs::read_to_string(&path).ok();
        if before.is_some() && !known.contains_key(&place) {
            continue;
        }
        plan.made.insert(place, vec![Made::File]);
        plan.changes.push(FileChange { path, before, after: Some(text) });
    }
}

fn named(name: &str) -> Result<(AgentRef, &'static Registration)> {
    agents::named(name).and_then(|it| Some((it, it.info().registration?))).ok_or_else(|| {
        let known = agents::names(|it| it.info().registration.is_some());
        let what = format!(
            "expected an agent ({known}; cursor, vscode, goose and zed for what to add by hand), found {name:?}"
        );
        Error::new(ErrorKind::Arguments, what)
    })
}

/// This program's path as called: a version manager's link rather than its target, which an update moves.
fn program(config: &Config) -> Result<PathBuf> {
    let real = std::env::current_exe()
        .map_err(|error| Error::new(ErrorKind::Io, "finding the path of this program").because(error))?;
    let called = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let cwd = &config.environment.cwd;
    let places = match called.components().count() {
        0 | 1 => config.agents.path.iter().map(|it| cwd.join(it).join(&called)).collect(),
        _ => vec![cwd.join(&called)],
    };
    let target = std::fs::canonicalize(&real).ok();
    let same = |it: &PathBuf| target.is_some() && std::fs::canonicalize(it).ok() == target;
    // The path must contain our name, by which our entries are recognized.
    let named = |it: &PathBuf| it.to_string_lossy().contains(install::NAME);
    let found = places.into_iter().filter(named).find(same);
    Ok(found.map_or(real, |it| it.components().collect()))
}

/// A created or removed file is shown in full only up to this many lines.
const SHOWN_WHOLE: usize = 20;

fn show(screen: &mut Screen<'_>, changes: &[FileChange], dry_run: bool) -> Result<()> {
    let changed: Vec<&FileChange> = changes.iter().filter(differ).collect();
    let paths: Vec<String> = changed.iter().map(|it| it.path.display().to_string()).collect();
    if screen.json(&json!({"changed": paths, "dry_run": dry_run}))? {
        return Ok(());
    }
    if changed.is_empty() {
        return screen.line("nothing to change");
    }
    let paint = screen.paint;
    for it in changed {
        let what = match (&it.before, &it.after, dry_run) {
            (_, None, false) => "removed",
            (_, None, true) => "would be removed",
            (None, _, false) => "created",
            (None, _, true) => "would be created",
            (_, _, false) => "changed",
            (_, _, true) => "would change",
        };
        screen.line(&format!("{}  {what}", paint.strong(&it.path.display().to_string())))?;
        let (before, after) =
            (it.before.as_deref().unwrap_or_default(), it.after.as_deref().unwrap_or_default());
        let lines = before.lines().count().max(after.lines().count());
        if (it.before.is_none() || it.after.is_none()) && lines > SHOWN_WHOLE && !dry_run {
            continue;
        }
        for line in before.lines().filter(|it| !after.lines().any(|other| other == *it)) {
            screen.line(&paint.warn(&format!("  - {line}")))?;
        }
        for line in after.lines().filter(|it| !before.lines().any(|other| other == *it)) {
            screen.line(&paint.good(&format!("  + {line}")))?;
        }
    }
    Ok(())
}
