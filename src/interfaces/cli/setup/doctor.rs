//! `epitome doctor`: the configuration and where it comes from, the agents found, what else compacts, whether
//! the archive is intact; for each problem a remedy.

use std::path::Path;

use clap::Args;
use serde::Serialize;

use crate::agents::write_back::shell::quoted;
use crate::agents::{self, AgentRef, Problem, install};
use crate::answers::{Next, RepairStatus};
use crate::config::{Config, ValueOrigin};
use crate::engine::{self, Engine, RepairTo, SeatEntry, SessionRef, seat_log};
use crate::interfaces::cli::Screen;
use crate::store::StoreAt;
use history::error::Result;

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Session file or id: check only that session
    #[arg(conflicts_with = "fix")]
    session: Option<String>,
    /// Rewrite originals that an older version archived, in the current, smaller format
    #[arg(long)]
    fix: bool,
}

#[derive(Serialize)]
struct DoctorAnswer {
    config: Vec<Value>,
    agents: Vec<AgentState>,
    keys: Vec<&'static str>,
    store: StoreState,
    problems: Vec<Problem>,
}

#[derive(Serialize)]
struct Value {
    name: &'static str,
    value: String,
    from: &'static str,
}

#[derive(Serialize)]
struct AgentState {
    agent: &'static str,
    sessions: usize,
    server: bool,
    hooks: bool,
    /// Who compacts while it is running.
    seat: String,
    /// The result of the last compaction that it asked us for.
    #[serde(skip_serializing_if = "Option::is_none")]
    seat_last: Option<SeatEntry>,
    /// When the agent compacts by itself.
    own_compaction: String,
    folder: String,
}

#[derive(Serialize)]
struct StoreState {
    path: String,
    items: u64,
    bytes: u64,
    whole: bool,
    /// Number of originals that `--fix` rewrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed: Option<u64>,
}

/// The providers' usual variables; only whether they are set is shown.
const KEYS: [&str; 4] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"];

/// Shows what is wrong with one session, and the command that repairs it.
fn of_session(config: Config, now: i64, session: &str, screen: &mut Screen<'_>) -> Result<u8> {
    let engine = Engine::even_without_store(config, now)?;
    let mut answer =
        engine::repair(&engine, &SessionRef::Named(session.to_owned()), None, None, &RepairTo::Preview)?;
    if answer.status != RepairStatus::Sound {
        let command = format!("epitome repair {} --apply", quoted(session));
        answer.next = Next::user(format!("Repair it with: {command}"));
    }
    if !screen.json(&answer)? {
        crate::interfaces::cli::change::repair::show(&answer, screen)?;
        if !answer.next.what.is_empty() {
            screen.line(&answer.next.what)?;
        }
    }
    Ok(0)
}

pub(crate) fn run(config: Config, now: i64, arguments: &DoctorArgs, screen: &mut Screen<'_>) -> Result<u8> {
    if let Some(session) = &arguments.session {
        return of_session(config, now, session, screen);
    }
    let mut problems = Vec::new();
    let store_path = match &config.store {
        StoreAt::Path(path) => path.display().to_string(),
        StoreAt::Memory => "memory".to_owned(),
        StoreAt::Nowhere => "nowhere".to_owned(),
        StoreAt::Team(team) => format!("postgres://{}, {}", team.address(), team.blobs),
    };
    let values = vec![
        value(&config, "profile", config.profile.clone()),
        value(&config, "tokenizer", config.tokenizer.name().to_owned()),
        value(&config, "store.path", store_path.clone()),
        value(
            &config,
            "store.persistence",
            if config.store == StoreAt::Nowhere { "none" } else { "disk" }.to_owned(),
        ),
    ];
    if let Err(error) = config.default_profile() {
        problems.push(Problem { what: error.full(), remedy: "epitome profiles lists them".to_owned() });
    }
    let keys = KEYS.into_iter().filter(|it| config.environment.get(it).is_some()).collect();
    let folder = config.programs_dir();
    let env = &config.agents;
    let is_listed = |it: &AgentRef| it.info().registration.is_some() || it.home(env).exists();
    let listed = agents::ALL.into_iter().filter(is_listed);
    let agents = listed.map(|it| state(&config, folder, it, &mut problems)).collect();
    problems.extend(agents::ALL.into_iter().flat_map(|it| it.known_problems(env, folder)));
    let store = archive(&config, now, arguments, store_path, &mut problems)?;
    let answer = DoctorAnswer { config: values, agents, keys, store, problems };
    screen.answer(&answer, show)
}

/// What is registered with an agent, and who compacts in it. `folder`: the user's configurations
/// (`~/.config`).
fn state(config: &Config, folder: &Path, agent: AgentRef, problems: &mut Vec<Problem>) -> AgentState {
    let env = &config.agents;
    let registration = agent.info().registration;
    let (server, hooks) = registration.map_or((false, false), |it| install::installed(env, folder, it));
    let sessions = agents::list(env, Some(agent), None).len();
    let home = agent.home(env);
    let missing = registration.is_some_and(|it| !install::registered(env, folder, it));
    if (sessions > 0 || home.exists()) && missing {
        problems.push(Problem::new(
            format!("{} is installed, but Epitome is not registered with it", agent.info().title),
            format!("epitome install {}", agent.name()),
        ));
    }
    let (seat, seat_last) = seat(config, folder, agent, problems);
    AgentState {
        agent: agent.name(),
        sessions,
        server,
        hooks,
        seat,
        seat_last,
        own_compaction: agent.own_compaction(&|from| config.agent_setting(from)),
        folder: format!("{}{}", home.display(), if home.exists() { "" } else { " (none)" }),
    }
}

/// Checks the archive; with `--fix`, rewrites old formats first.
fn archive(
    config: &Config,
    now: i64,
    arguments: &DoctorArgs,
    path: String,
    problems: &mut Vec<Problem>,
) -> Result<StoreState> {
    let engine = match Engine::at(config.clone(), now) {
        Ok(engine) => engine,
        Err(error) => {
            problems.push(Problem::new(error.full(), "see [store] path in config.toml"));
            return Ok(StoreState { path, items: 0, bytes: 0, whole: false, fixed: None });
        }
    };
    let fixed = arguments.fix.then(|| engine.store.rewrite_old_format()).transpose()?;
    if fixed.is_some_and(|it| it > 0) {
        // Without this, the freed space stays in the database file.
        if let Err(error) = engine.store.vacuum() {
            problems.push(Problem::new(error.full(), "try again later: epitome memory gc"));
        }
    }
    let checked = engine.store.check()?;
    let remedy = "keep the file, and restore it from a backup";
    problems.extend(checked.problems.iter().map(|it| Problem::new(it.clone(), remedy)));
    let stats = engine.store.stats()?;
    if stats.old_format > 0 && fixed.is_none() {
        let what = format!("{} originals are stored in an older, larger format", stats.old_format);
        problems.push(Problem::new(what, "epitome doctor --fix"));
    }
    let whole = checked.problems.is_empty();
    Ok(StoreState { path, items: stats.items.values().sum(), bytes: stats.file_bytes, whole, fixed })
}

/// Who compacts in a running agent, and the result of the last time.
fn seat(
    config: &Config,
    folder: &Path,
    agent: AgentRef,
    problems: &mut Vec<Problem>,
) -> (String, Option<SeatEntry>) {
    if agent.info().has_gateway
        && let Some(reached) = super::gateway::probe(config)
    {
        let last = seat_log::newest(&config.data_dir, agent.name());
        return match reached {
            Ok(answers) => (format!("Epitome's gateway: {answers}"), last),
            Err((what, remedy)) => {
                problems.push(Problem { what, remedy });
                ("nobody: the gateway is not running".to_owned(), last)
            }
        };
    }
    let of = agent.info().registration;
    let ours = of.is_some_and(|it| install::has_seat(&config.agents, folder, it));
    let others = of.map(|it| install::other_seats(&config.agents, folder, it)).unwrap_or_default();
    let last = seat_log::newest(&config.data_dir, agent.name());
    if let Some(why) = last.as_ref().and_then(|it| it.failed.as_deref()).filter(|_| ours) {
        problems.push(Problem {
            what: format!("{}'s last compaction was left to the agent itself: {why}", agent.info().title),
            remedy:
                "nothing was lost; if it happens again, leave compaction to the agent: epitome install AGENT \
                     --no-seat"
                    .to_owned(),
        });
    }
    for other in others.iter().filter(|_| ours) {
        problems.push(Problem {
            what: format!("{} may compact in {} too", other.display(), agent.info().title),
            remedy: "keep only one of the two; epitome install AGENT --no-seat removes ours".to_owned(),
        });
    }
    let setting = |from: &str| config.agent_setting(from);
    let blocked_by = agent.seat_blocked_by(&config.agents, &setting).filter(|_| ours);
    let is_blocked = blocked_by.is_some();
    problems.extend(blocked_by);
    let name = match (ours, others.first()) {
        (true, _) if is_blocked => format!("{} (it does not call Epitome)", agent.info().title),
        (true, None) => "Epitome".to_owned(),
        (true, Some(_)) => "Epitome and another plugin".to_owned(),
        (false, Some(other)) => other.display().to_string(),
        (false, None) => agent.info().title.to_owned(),
    };
    (name, last)
}

fn value(config: &Config, name: &'static str, value: String) -> Value {
    let from = match config.origins.get(name) {
        Some(ValueOrigin::File) => "config.toml",
        Some(ValueOrigin::Environment) => "environment",
        Some(ValueOrigin::Option) => "--store",
        Some(ValueOrigin::Default) | None => "default",
    };
    Value { name, value, from }
}

fn show(answer: &DoctorAnswer, screen: &mut Screen<'_>) -> Result<()> {
    let paint = screen.paint;
    let rows = answer.config.iter().map(|it| vec![it.name.to_owned(), it.value.clone(), it.from.to_owned()]);
    screen.table(&["setting", "value", "from"], rows, &[])?;
    screen.line("")?;
    let yes = |it: bool| if it { "yes" } else { "no" }.to_owned();
    let head = ["agent", "sessions", "server", "hooks", "who compacts", "auto-compacts", "folder"];
    let rows = answer.agents.iter().map(|it| {
        let (agent, sessions) = (it.agent.to_owned(), it.sessions.to_string());
        let (server, hooks) = (yes(it.server), yes(it.hooks));
        vec![agent, sessions, server, hooks, it.seat.clone(), it.own_compaction.clone(), it.folder.clone()]
    });
    screen.table(&head, rows, &[])?;
    let keys = if answer.keys.is_empty() {
        "none (the offline summarizer needs none)".to_owned()
    } else {
        answer.keys.join(", ")
    };
    screen.line("")?;
    screen.line(&format!("keys     {keys}"))?;
    let state = if answer.store.whole { paint.good("OK") } else { paint.warn("damaged") };
    screen.line(&format!(
        "archive  {state}: {} items, {} in {}",
        answer.store.items,
        crate::interfaces::cli::paint::bytes(answer.store.bytes),
        answer.store.path
    ))?;
    if let Some(fixed) = answer.store.fixed {
        screen.line(&format!("         {fixed} originals rewritten"))?;
    }
    for it in &answer.problems {
        screen.line("")?;
        screen.line(&format!("{} {}", paint.warn("!"), it.what))?;
        screen.line(&format!("  {}", paint.strong(&it.remedy)))?;
    }
    Ok(())
}
