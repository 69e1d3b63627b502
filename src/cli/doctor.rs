//! `epitome doctor`: what is configured and from where, which agents are there, who else compacts, whether the archive is
//! whole; each with its remedy.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde::Serialize;

use super::Screen;
use crate::agents::{Agent, gemini_cli, install, own_settings, reach, settings};
use crate::answers::CONTRACT;
use crate::config::{Config, Origin, StoreAt};
use crate::engine::{Engine, SeatEntry, seat_log};
use history::error::Result;

#[derive(Serialize)]
struct Answer {
    contract: u32,
    config: Vec<Value>,
    agents: Vec<Found>,
    keys: Vec<&'static str>,
    store: Stored,
    problems: Vec<Problem>,
}

#[derive(Serialize)]
struct Value {
    name: &'static str,
    value: String,
    from: &'static str,
}

#[derive(Serialize)]
struct Found {
    agent: &'static str,
    sessions: usize,
    server: bool,
    hooks: bool,
    /// Who compacts when it is running.
    seat: String,
    /// What became of the last compaction that it asked us for.
    #[serde(skip_serializing_if = "Option::is_none")]
    seat_last: Option<SeatEntry>,
    /// When the agent compacts by itself.
    own_compaction: String,
    folder: String,
}

#[derive(Serialize)]
struct Stored {
    path: String,
    items: u64,
    bytes: u64,
    whole: bool,
}

#[derive(Serialize)]
struct Problem {
    what: String,
    remedy: String,
}

/// The providers' usual variables; only whether they are set is ever said.
const KEYS: [&str; 4] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"];

pub(super) fn run(config: Config, now: i64, screen: &mut Screen<'_>) -> Result<u8> {
    let mut problems = Vec::new();
    let values = vec![
        value(&config, "profile", config.profile.clone()),
        value(&config, "tokenizer", config.tokenizer.clone()),
        value(
            &config,
            "store.path",
            match &config.store {
                StoreAt::Path(path) => path.display().to_string(),
                StoreAt::Nowhere => "nowhere".to_owned(),
            },
        ),
        value(
            &config,
            "store.persistence",
            if config.store == StoreAt::Nowhere { "none" } else { "disk" }.to_owned(),
        ),
    ];
    if let Err(error) = config.profile(&config.profile) {
        problems.push(Problem { what: error.full(), remedy: "epitome profiles lists them".to_owned() });
    }
    let keys = KEYS.into_iter().filter(|it| config.environment.get(it).is_some()).collect();
    let folder = config.config_dir.parent().map_or_else(|| config.config_dir.clone(), Path::to_owned);
    let agents = Agent::ALL.map(|agent| {
        let (server, hooks) = install::installed(&config.agents, &folder, agent);
        let sessions = crate::agents::list(&config.agents, Some(agent), None).len();
        let home = reach::home(&config.agents, agent);
        if (sessions > 0 || home.exists()) && !server {
            problems.push(Problem {
                what: format!("{} is installed, but Epitome is not registered with it", agent.title()),
                remedy: format!("epitome install {}", agent.name()),
            });
        }
        let (seat, seat_last) = seat(&config, &folder, agent, &mut problems);
        let own_compaction = own_settings::own_compaction(agent, &|from| config.agent_setting(from));
        let folder =
            if home.exists() { home.display().to_string() } else { format!("{} (none)", home.display()) };
        Found { agent: agent.name(), sessions, server, hooks, seat, seat_last, own_compaction, folder }
    });
    others(&config, &folder, &mut problems);
    let store = match Engine::new(config.clone(), now) {
        Ok(engine) => {
            let checked = engine.store.check(true)?;
            let stats = engine.store.stats()?;
            for it in &checked.problems {
                problems.push(Problem {
                    what: it.clone(),
                    remedy: "keep the file, and restore it from a backup".to_owned(),
                });
            }
            let whole = checked.problems.is_empty();
            Stored {
                path: values[2].value.clone(),
                items: stats.items.values().sum(),
                bytes: stats.file_bytes,
                whole,
            }
        }
        Err(error) => {
            problems
                .push(Problem { what: error.full(), remedy: "see [store] path in config.toml".to_owned() });
            Stored { path: values[2].value.clone(), items: 0, bytes: 0, whole: false }
        }
    };
    let answer = Answer { contract: CONTRACT, config: values, agents: agents.into(), keys, store, problems };
    if !screen.json(&answer)? {
        show(&answer, screen)?;
    }
    Ok(0)
}

/// Claude Code has function hooks from this version on.
const CLAUDE_SINCE: [u32; 3] = [2, 1, 274];
/// From this one on OpenCode's plugins have another interface.
const OPENCODE_UNTIL: u32 = 2;

/// Who compacts in a running agent, and how that went the last time.
fn seat(
    config: &Config,
    folder: &Path,
    agent: Agent,
    problems: &mut Vec<Problem>,
) -> (String, Option<SeatEntry>) {
    if agent == Agent::Codex
        && let Some(reached) = super::gateway::reached(config)
    {
        let last = seat_log::newest(&config.data_dir, agent.name());
        return match reached {
            Ok(answers) => (format!("Epitome's gateway: {answers}"), last),
            Err((what, remedy)) => {
                problems.push(Problem { what, remedy });
                ("nobody: the gateway is not there".to_owned(), last)
            }
        };
    }
    let ours = install::seated(&config.agents, folder, agent);
    let others = install::other_seats(&config.agents, folder, agent);
    let last = seat_log::newest(&config.data_dir, agent.name());
    if let Some(why) = last.as_ref().and_then(|it| it.failed.as_deref()).filter(|_| ours) {
        problems.push(Problem {
            what: format!("{}'s last compaction was left to it: {why}", agent.title()),
            remedy: "nothing was lost; if it happens again, epitome install AGENT --no-seat leaves compaction to it".to_owned(),
        });
    }
    for other in others.iter().filter(|_| ours) {
        problems.push(Problem {
            what: format!("{} may compact in {} too", other.display(), agent.title()),
            remedy: "keep one of the two; ours goes with --no-seat".to_owned(),
        });
    }
    let unheard = unheard(config, agent).filter(|_| ours);
    let deaf = unheard.is_some();
    problems.extend(unheard);
    let name = match (ours, others.first()) {
        (true, _) if deaf => format!("{} (it does not ask ours)", agent.title()),
        (true, None) => "Epitome".to_owned(),
        (true, Some(_)) => "Epitome and another plugin".to_owned(),
        (false, Some(other)) => other.display().to_string(),
        (false, None) => agent.title().to_owned(),
    };
    (name, last)
}

/// Why an agent does not ask us although we are installed.
fn unheard(config: &Config, agent: Agent) -> Option<Problem> {
    match agent {
        Agent::ClaudeCode => {
            let [major, minor, patch] = newest_version(config).filter(|it| *it < CLAUDE_SINCE)?;
            Some(Problem {
                what: format!(
                    "Claude Code {major}.{minor}.{patch} does not let others compact: the hooks are used instead"
                ),
                remedy: "claude update".to_owned(),
            })
        }
        Agent::OpenCode => {
            let version = crate::agents::opencode::newest_version(&config.agents)?;
            let major: u32 = version.split('.').next()?.parse().ok()?;
            (major >= OPENCODE_UNTIL).then(|| Problem {
                what: format!(
                    "OpenCode {version} asks plugins in another way than ours answers: it compacts by itself"
                ),
                remedy: "nothing is lost; a newer Epitome may know it".to_owned(),
            })
        }
        Agent::GeminiCli => {
            let off = config.agent_setting("gemini-cli:hooksConfig.enabled")? == false;
            off.then(|| Problem {
                what:
                    "Gemini CLI's hooks are switched off (hooksConfig.enabled = false): it compacts by itself"
                        .to_owned(),
                remedy: "take hooksConfig.enabled out of its settings.json".to_owned(),
            })
        }
        // The gateway is asked whether it is there.
        Agent::Codex => None,
    }
}

/// The end of a session in which its version is looked for, in bytes: sessions may be large.
const END: u64 = 256 << 10;

/// The version of Claude Code that wrote the newest session.
fn newest_version(config: &Config) -> Option<[u32; 3]> {
    let newest = crate::agents::list(&config.agents, Some(Agent::ClaudeCode), None).into_iter().next()?;
    let mut file = crate::files::open(&newest.path).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(END))).ok()?;
    let mut bytes = Vec::new();
    file.take(END).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let rest = text.rsplit_once("\"version\":\"")?.1;
    let mut numbers = rest.split('"').next()?.split('.').map(|it| it.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

fn value(config: &Config, name: &'static str, value: String) -> Value {
    let from = match config.origins.get(name) {
        Some(Origin::File) => "config.toml",
        Some(Origin::Environment) => "environment",
        Some(Origin::Option) => "--store",
        Some(Origin::Default) | None => "default",
    };
    Value { name, value, from }
}

/// Who else compacts, and what to switch off; upstream faults that lose sessions.
fn others(config: &Config, folder: &Path, problems: &mut Vec<Problem>) {
    let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let mut problem = |what: &str, remedy: &str| {
        problems.push(Problem { what: what.to_owned(), remedy: remedy.to_owned() });
    };
    for name in ["opencode.json", "opencode.jsonc"] {
        let file = text(&folder.join("opencode").join(name));
        let plugins = settings::elements(&file, &["plugin"]).join(" ");
        if plugins.contains("oh-my-opencode") {
            problem(
                "oh-my-opencode compacts too (context-window-limit-recovery)",
                "add \"context-window-limit-recovery\" to disabled_hooks in oh-my-opencode.json, or switch ours off",
            );
        }
        if plugins.contains("supermemory") {
            problem(
                "opencode-supermemory compacts too, at its compactionThreshold",
                "set compactionThreshold to 1 in supermemory.jsonc, or use our profile supermemory without it",
            );
        }
        if settings::get(&file, &["mcp", install::NAME]).is_some()
            && settings::get(&file, &["compaction", "auto"]) != Some("false")
        {
            problem(
                "OpenCode compacts by itself when the window is full",
                "\"compaction\": {\"auto\": false} in opencode.json, if you want only ours",
            );
        }
    }
    let gemini = text(&gemini_cli::home(&config.agents).join("settings.json"));
    if gemini_cli::home(&config.agents).exists()
        && settings::get(&gemini, &["general", "sessionRetention", "enabled"]) != Some("false")
    {
        problem(
            "Gemini CLI 0.61 can delete a session that was resumed in a later minute (its session retention)",
            "\"general\": {\"sessionRetention\": {\"enabled\": false}} in ~/.gemini/settings.json",
        );
    }
}

fn show(answer: &Answer, screen: &mut Screen<'_>) -> Result<()> {
    let paint = screen.paint;
    let table = |rows: &[Vec<String>]| super::paint::table(rows, paint);
    let mut rows = vec![["setting", "value", "from"].map(str::to_owned).to_vec()];
    rows.extend(
        answer.config.iter().map(|it| vec![it.name.to_owned(), it.value.clone(), it.from.to_owned()]),
    );
    for line in table(&rows) {
        screen.line(&line)?;
    }
    screen.line("")?;
    let yes = |it: bool| if it { "yes" } else { "no" }.to_owned();
    let mut rows = vec![
        ["agent", "sessions", "server", "hooks", "who compacts", "by itself", "folder"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(answer.agents.iter().map(|it| {
        let (agent, sessions) = (it.agent.to_owned(), it.sessions.to_string());
        let (server, hooks) = (yes(it.server), yes(it.hooks));
        vec![agent, sessions, server, hooks, it.seat.clone(), it.own_compaction.clone(), it.folder.clone()]
    }));
    for line in table(&rows) {
        screen.line(&line)?;
    }
    let keys = if answer.keys.is_empty() {
        "none (the offline summarizer needs none)".to_owned()
    } else {
        answer.keys.join(", ")
    };
    screen.line("")?;
    screen.line(&format!("keys     {keys}"))?;
    let state = if answer.store.whole { paint.good("OK") } else { paint.warn("damaged") };
    screen.line(&format!(
        "archive  {state}: {} items, {} KiB in {}",
        answer.store.items,
        answer.store.bytes.div_ceil(1024),
        answer.store.path
    ))?;
    for it in &answer.problems {
        screen.line("")?;
        screen.line(&format!("{} {}", paint.warn("!"), it.what))?;
        screen.line(&format!("  {}", paint.strong(&it.remedy)))?;
    }
    Ok(())
}
