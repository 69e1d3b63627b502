//! Registration: what stands in each agent's settings while we are installed.
//!
//! **Invariants.** Installing twice is installing once. Uninstalling leaves every byte as it was, also where a file or a
//! section had to be made. Files that do not parse are refused, not mended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::seat::files::{self as seat_files, CLAUDE_SWITCH};
use super::{Agent, Env, codex, gemini_cli, sections, settings};
use history::error::{Error, Kind, Result};

/// The name under which the server is registered.
pub const NAME: &str = "epitome";

const PLUGIN: &str = include_str!("opencode/plugin.js");

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub program: PathBuf,
    /// Whether hooks are registered too.
    pub hooks: bool,
    /// Whether we compact in the agent's place.
    pub seat: bool,
    /// Percent of the window from which Claude Code shall compact at the end of a turn; 0: only when it wants to.
    pub compact_at: u8,
    /// Whether Gemini CLI shall run the tools without asking.
    pub trust: bool,
    /// Whether what stands there under our name is known to be ours.
    pub ours: bool,
    /// No provider can be asked: every call is done within seconds.
    pub offline: bool,
}

/// A file before and after. `None`: not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub path: PathBuf,
    pub before: Option<String>,
    /// As it will be.
    pub after: Option<String>,
}

/// Sections that installing had to make, by file: joined keys; an empty one stands for the file itself, one that begins
/// with `OBJECT` for the whole object in a file that held only the white space behind it.
pub type Made = BTreeMap<String, Vec<String>>;

const OBJECT: &str = "{}";

/// In [`Made`], in front of the keys of a value that installing set to `"1"`.
const SWITCH: &str = "=";

/// Seconds until the hook that compacts in Gemini CLI is ended from outside; it ends itself before.
const GEMINI_LIMIT: u32 = 9;

/// The event at which we compact in Gemini CLI.
const GEMINI_SEAT: &str = "AfterAgent";

/// The hook events that are used: what they do and what they cost.
pub fn events(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::ClaudeCode => {
            &["SessionStart", "PreCompact", "PostCompact", "UserPromptSubmit", "PostToolUse"]
        }
        Agent::Codex => &["SessionStart", "PreCompact", "PostCompact", "UserPromptSubmit", "PostToolUse"],
        Agent::GeminiCli => &["SessionStart", "PreCompress", "BeforeAgent"],
        Agent::OpenCode => &[],
    }
}

/// What the hooks do and cost, in three lines.
pub fn explained(agent: Agent) -> [&'static str; 3] {
    match agent {
        Agent::ClaudeCode | Agent::Codex => [
            "before a compaction: archives the session and names what must survive (at most 1,000 tokens; under 2 s)",
            "after it: adds what the summary left out, once (at most 1,500 tokens)",
            "each turn: one line when the context passes 80 % (a few milliseconds; off with [hooks] reminder = false)",
        ],
        Agent::GeminiCli => [
            "before a compression check: archives the session (no tokens; runs every turn, nothing is stored twice)",
            "each turn: one line when the context passes 80 % (off with [hooks] reminder = false)",
            "at the start: notes which session it is (prints nothing)",
        ],
        Agent::OpenCode => [
            "before a compaction: archives the session, adds sections and what must survive to its prompt (under 2 s)",
            "after it: remembers the summary (no tokens)",
            "it is a plugin: OpenCode tries an npm install at each start when there is one (slow without a network)",
        ],
    }
}

/// What changes when we compact in the agent's place, and how to leave that, in three lines; nothing where we cannot yet.
pub fn seat_explained(agent: Agent) -> Option<[&'static str; 3]> {
    match agent {
        Agent::ClaudeCode => Some([
            "/compact and automatic compaction are answered by Epitome, at once, from the next start of Claude Code; no model is asked",
            "the original is archived first; `epitome undo` takes a compaction back",
            "to leave: epitome install claude-code --no-seat; if anything goes wrong, Claude Code compacts by itself",
        ]),
        Agent::OpenCode => Some([
            "/compact and automatic compaction use Epitome's summary; the model is still asked for one word",
            "the original is archived first; `epitome undo` takes a compaction back",
            "to leave: epitome install opencode --no-seat; if anything goes wrong, OpenCode compacts by itself",
        ]),
        Agent::GeminiCli => Some([
            "Epitome compacts at the end of a turn above the threshold, or with /epitome:compact; /compress stays Gemini CLI's own",
            "the original is archived first; `epitome undo` takes a compaction back",
            "to leave: epitome install gemini-cli --no-seat; if anything goes wrong, the session goes on as it is",
        ]),
        Agent::Codex => None,
    }
}

/// The files of our own that the seat needs beside the settings.
fn seat_files(env: &Env, agent: Agent, program: &Path, compact_at: u8) -> Vec<(PathBuf, String)> {
    match agent {
        Agent::ClaudeCode => {
            let folder = env.claude_config.clone().unwrap_or_else(|| env.home.join(".claude"));
            seat_files::claude_plugin(&folder, program, compact_at)
        }
        Agent::GeminiCli => vec![seat_files::gemini_command(&gemini_cli::home(env))],
        Agent::Codex | Agent::OpenCode => Vec::new(),
    }
}

/// The settings files: where the server stands, where the hooks do.
fn files(env: &Env, config: &Path, agent: Agent) -> (PathBuf, PathBuf) {
    match agent {
        Agent::ClaudeCode => match &env.claude_config {
            Some(folder) => (folder.join(".claude.json"), folder.join("settings.json")),
            None => (env.home.join(".claude.json"), env.home.join(".claude/settings.json")),
        },
        Agent::Codex => (codex::home(env).join("config.toml"), codex::home(env).join("config.toml")),
        Agent::GeminiCli => {
            (gemini_cli::home(env).join("settings.json"), gemini_cli::home(env).join("settings.json"))
        }
        Agent::OpenCode => {
            let folder = config.join("opencode");
            let jsonc = folder.join("opencode.jsonc");
            let server = if jsonc.exists() { jsonc } else { folder.join("opencode.json") };
            (server, folder.join("plugins/epitome.js"))
        }
    }
}

fn text_of(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.is_symlink() => {
            let what =
                "expected settings, found a symbolic link to nothing; make its target or remove the link";
            Err(Error::new(Kind::Input, what).at(path.display().to_string(), None))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::new(Kind::Input, "reading settings")
            .at(path.display().to_string(), None)
            .because(error)),
    }
}

/// That an agent is on this machine: a folder of its own, or its program on the `PATH`. Settings that nobody reads help
/// nobody.
///
/// # Errors
/// [`Kind::Refused`] if it is not.
pub fn expect_agent(env: &Env, config: &Path, agent: Agent) -> Result<()> {
    let (folder, program) = match agent {
        Agent::ClaudeCode => {
            (env.claude_config.clone().unwrap_or_else(|| env.home.join(".claude")), "claude")
        }
        Agent::Codex => (codex::home(env), "codex"),
        Agent::GeminiCli => (gemini_cli::home(env), "gemini"),
        Agent::OpenCode => (config.join("opencode"), "opencode"),
    };
    let (server, _) = files(env, config, agent);
    let endings: &[&str] = if cfg!(windows) { &[".exe", ".cmd", ".bat"] } else { &[""] };
    let runs = |it: &PathBuf| endings.iter().any(|ending| it.join(format!("{program}{ending}")).is_file());
    let sessions = super::reach::home(env, agent);
    if [&folder, &server, &sessions].into_iter().any(|it| it.exists()) || env.path.iter().any(runs) {
        return Ok(());
    }
    let what = format!(
        "{} is not installed here: expected {} or `{program}` on the PATH, found neither; install it, start it once, and run \
         this again",
        agent.title(),
        folder.display()
    );
    Err(Error::new(Kind::Refused, what))
}

/// What installing changes, and the sections it makes. `config`: the folder of user configurations.
pub fn install(env: &Env, config: &Path, agent: Agent, wanted: &Wanted) -> Result<(Vec<Change>, Made)> {
    let (server, hooks) = files(env, config, agent);
    let mut made = Made::new();
    if agent == Agent::Codex {
        let change = codex_change(&server, wanted, &mut made)?;
        return Ok((vec![change], made));
    }
    let mut edited: BTreeMap<PathBuf, Change> = BTreeMap::new();
    let section = if agent == Agent::OpenCode { "mcp" } else { "mcpServers" };
    let entry = entry(agent, wanted);
    edit(&mut edited, &mut made, &server, |text, made| {
        let text = section_of(text, &[], section, "{}", made)?;
        if settings::get(&text, &[section, NAME]) == Some(&entry) {
            return Some(text);
        }
        let text = settings::remove(&text, &[section, NAME]).unwrap_or(text);
        settings::insert(&text, &[section], NAME, &entry)
    })?;
    let before = edited.get(&server).and_then(|it| it.before.as_deref()).unwrap_or_default();
    if !wanted.ours && settings::get(before, &[section, NAME]).is_some_and(|it| it != entry) {
        return Err(by_hand(agent, &server));
    }
    if agent == Agent::OpenCode {
        let plugin = seat_files::with_program(PLUGIN, &wanted.program);
        let plugin = plugin.replace("\"@SEAT@\"", if wanted.seat { "true" } else { "false" });
        let before = text_of(&hooks)?;
        let first = |text: &str| text.lines().next().map(str::to_owned);
        if before.as_deref().is_some_and(|it| first(it) != first(PLUGIN)) {
            let what = "expected no plugin of our name, or ours, found another; rename it";
            return Err(Error::new(Kind::Refused, what).at(hooks.display().to_string(), None));
        }
        let after = if wanted.hooks || wanted.seat { Some(plugin) } else { None };
        edited.insert(hooks.clone(), Change { path: hooks, before, after });
    } else {
        let command = command(&wanted.program);
        edit(&mut edited, &mut made, &hooks, |text, made| {
            let mut text = without_hooks(text, agent);
            if wanted.hooks {
                text = section_of(&text, &[], "hooks", "{}", made)?;
                for event in events(agent) {
                    text = section_of(&text, &["hooks"], event, "[]", made)?;
                    text = settings::push(&text, &["hooks", event], &hook(agent, &command))?;
                }
            }
            match agent {
                Agent::GeminiCli if wanted.seat => {
                    text = section_of(&text, &[], "hooks", "{}", made)?;
                    text = section_of(&text, &["hooks"], GEMINI_SEAT, "[]", made)?;
                    settings::push(&text, &["hooks", GEMINI_SEAT], &gemini_seat(&wanted.program))
                }
                Agent::ClaudeCode if wanted.seat => switched_on(&text, made),
                Agent::ClaudeCode | Agent::Codex | Agent::GeminiCli | Agent::OpenCode => Some(text),
            }
        })?;
    }
    for (path, text) in seat_files(env, agent, &wanted.program, wanted.compact_at) {
        let before = text_of(&path)?;
        if before.as_deref().is_some_and(|it| !seat_files::is_ours(it)) {
            let what = "expected no file of that name, or ours, found another; rename it, or use --no-seat";
            return Err(Error::new(Kind::Refused, what).at(path.display().to_string(), None));
        }
        if wanted.seat || before.is_some() {
            edited.insert(path.clone(), Change { path, before, after: wanted.seat.then_some(text) });
        }
    }
    Ok((edited.into_values().collect(), made))
}

/// Settings of Claude Code with its function hooks switched on, unless the user has said something about them.
fn switched_on(text: &str, made: &mut Vec<String>) -> Option<String> {
    let text = section_of(text, &[], "env", "{}", made)?;
    if settings::get(&text, &["env", CLAUDE_SWITCH]).is_some() {
        return Some(text);
    }
    made.push(format!("{SWITCH}env/{CLAUDE_SWITCH}"));
    settings::insert(&text, &["env"], CLAUDE_SWITCH, "\"1\"")
}

/// Where Codex looks for prompts of the user.
pub fn codex_prompts(env: &Env, config: &Path) -> PathBuf {
    files(env, config, Agent::Codex).0.with_file_name("prompts")
}

/// What uninstalling changes; `made` is what installing had to make.
pub fn uninstall(env: &Env, config: &Path, agent: Agent, made: &Made) -> Result<Vec<Change>> {
    let (server, hooks) = files(env, config, agent);
    let mut out: Vec<Change> = Vec::new();
    let mut paths = vec![server];
    if !paths.contains(&hooks) {
        paths.push(hooks);
    }
    for path in paths {
        let Some(before) = text_of(&path)? else { continue };
        if before.trim().is_empty() {
            continue;
        }
        let sections = made.get(&path.display().to_string()).map(Vec::as_slice).unwrap_or_default();
        let mut after = match agent {
            Agent::Codex => sections::remove(&before, is_our_section),
            Agent::OpenCode if path.extension().is_some_and(|it| it == "js") => String::new(),
            Agent::ClaudeCode | Agent::GeminiCli | Agent::OpenCode => {
                settings::check(&before).map_err(|error| error.at(path.display().to_string(), None))?;
                let text = without_hooks(&before, agent);
                let section = if agent == Agent::OpenCode { "mcp" } else { "mcpServers" };
                settings::remove(&text, &[section, NAME]).unwrap_or(text)
            }
        };
        // What was made goes when nothing else came into it; the innermost first.
        for section in sections.iter().rev().filter(|it| !it.is_empty() && !it.starts_with(OBJECT)) {
            let switch = section.strip_prefix(SWITCH);
            let keys: Vec<&str> = switch.unwrap_or(section).split('/').collect();
            let empty = settings::get(&after, &keys).is_some_and(|it| match switch {
                Some(_) => it == "\"1\"",
                None => matches!(it.replace(char::is_whitespace, "").as_str(), "{}" | "[]"),
            });
            if empty && let Some(shorter) = settings::remove(&after, &keys) {
                after = shorter;
            }
        }
        let ours = sections.iter().any(String::is_empty);
        let nothing = after.trim().is_empty() || after.replace(char::is_whitespace, "") == "{}";
        let plugin = agent == Agent::OpenCode && path.extension().is_some_and(|it| it == "js");
        let blank = sections.iter().find_map(|it| it.strip_prefix(OBJECT));
        let after = match blank {
            Some(blank) if nothing => Some(blank.to_owned()),
            _ if (ours && nothing) || plugin => None,
            _ => Some(after),
        };
        if after.as_deref() != Some(&before) {
            out.push(Change { path, before: Some(before), after });
        }
    }
    for (path, _) in seat_files(env, agent, Path::new(""), 0) {
        if let Some(before) = text_of(&path)?.filter(|it| seat_files::is_ours(it)) {
            out.push(Change { path, before: Some(before), after: None });
        }
    }
    Ok(out)
}

/// Whether we compact in an agent's place.
pub fn seated(env: &Env, config: &Path, agent: Agent) -> bool {
    let (_, hooks) = files(env, config, agent);
    let text = |path: &Path| text_of(path).ok().flatten().unwrap_or_default();
    match agent {
        Agent::ClaudeCode => {
            seat_files(env, agent, Path::new(""), 0).iter().all(|it| seat_files::is_ours(&text(&it.0)))
        }
        Agent::GeminiCli => {
            settings::elements(&text(&hooks), &["hooks", GEMINI_SEAT]).iter().any(|it| is_ours(it))
        }
        Agent::OpenCode => text(&hooks).contains("const SEAT = true"),
        Agent::Codex => false,
    }
}

/// Whether the server stands in an agent's settings, and whether hooks do.
pub fn installed(env: &Env, config: &Path, agent: Agent) -> (bool, bool) {
    let (server, hooks) = files(env, config, agent);
    let text = |path: &Path| text_of(path).ok().flatten().unwrap_or_default();
    match agent {
        Agent::Codex => {
            let text = text(&server);
            let server = |path: &[String], _: &str| path == ["mcp_servers", NAME];
            let hook = |path: &[String], text: &str| is_our_hook(path, text);
            (sections::any(&text, server), sections::any(&text, hook))
        }
        Agent::OpenCode => (settings::get(&text(&server), &["mcp", NAME]).is_some(), hooks.exists()),
        Agent::ClaudeCode | Agent::GeminiCli => {
            let hooks = text(&hooks);
            let ours =
                |event: &&str| settings::elements(&hooks, &["hooks", event]).iter().any(|it| is_ours(it));
            (settings::get(&text(&server), &["mcpServers", NAME]).is_some(), events(agent).iter().any(ours))
        }
    }
}

/// Plugins of others that may compact in an agent's place.
pub fn other_seats(env: &Env, config: &Path, agent: Agent) -> Vec<PathBuf> {
    let (folder, depth, word) = match agent {
        Agent::ClaudeCode => (
            env.claude_config.clone().unwrap_or_else(|| env.home.join(".claude")).join("skills"),
            2,
            "session.compact",
        ),
        Agent::OpenCode => (config.join("opencode/plugins"), 0, "experimental.session.compacting"),
        Agent::Codex | Agent::GeminiCli => return Vec::new(),
    };
    let is_code = |it: &PathBuf| it.extension().is_some_and(|it| it == "ts" || it == "js" || it == "mjs");
    let theirs = |it: &PathBuf| {
        let text = std::fs::read_to_string(it).unwrap_or_default();
        text.contains(word) && !seat_files::is_ours(&text)
    };
    super::files(&folder, depth).into_iter().map(|it| it.path).filter(is_code).filter(theirs).collect()
}

/// Edits a JSON file that may be changed already, or may have to be made.
fn edit(
    edited: &mut BTreeMap<PathBuf, Change>,
    made: &mut Made,
    path: &Path,
    with: impl FnOnce(&str, &mut Vec<String>) -> Option<String>,
) -> Result<()> {
    let sections = made.entry(path.display().to_string()).or_default();
    let change = match edited.remove(path) {
        Some(change) => change,
        None => {
            let before = text_of(path)?;
            Change { path: path.to_owned(), after: before.clone(), before }
        }
    };
    let text = match &change.after {
        Some(text) if !text.trim().is_empty() => text.clone(),
        Some(blank) => {
            sections.push(format!("{OBJECT}{blank}"));
            "{}\n".to_owned()
        }
        None => {
            sections.push(String::new());
            "{}\n".to_owned()
        }
    };
    let at = || path.display().to_string();
    settings::check(&text).map_err(|error| error.at(at(), None))?;
    let after = with(&text, sections).ok_or_else(|| {
        Error::new(
            Kind::Input,
            "expected objects and lists where settings have them, found something else; nothing was changed",
        )
        .at(at(), None)
    })?;
    settings::check(&after).map_err(|error| error.at(at(), None))?;
    edited.insert(path.to_owned(), Change { after: Some(after), ..change });
    Ok(())
}

/// The text with a section of that name, made if it was not there.
fn section_of(text: &str, path: &[&str], name: &str, empty: &str, made: &mut Vec<String>) -> Option<String> {
    let whole = [path, &[name]].concat();
    if settings::get(text, &whole).is_some() {
        return Some(text.to_owned());
    }
    made.push(whole.join("/"));
    settings::insert(text, path, name, empty)
}

fn without_hooks(text: &str, agent: Agent) -> String {
    let mut text = text.to_owned();
    for event in events(agent).iter().chain([&GEMINI_SEAT]) {
        text = settings::remove_elements(&text, &["hooks", event], is_ours);
    }
    text
}

/// Whether a hook entry calls us, wherever we lay.
fn is_ours(element: &str) -> bool {
    let commands = |it: &serde_json::Value| {
        let all = it["hooks"].as_array().cloned().unwrap_or_default();
        all.iter().any(|it| it["command"].as_str().is_some_and(is_our_command))
    };
    serde_json::from_str(element).is_ok_and(|it| commands(&it))
}

fn command(program: &Path) -> String {
    format!("{} hook", super::reach::quoted(&program.to_string_lossy()))
}

/// Gemini CLI (0.61) refuses the prompt when a hook ends with 2 or more, and so when the program is gone: 127. The shell
/// must become the program: the client ends only what it started, and would wait for a child that hangs.
fn unless_gone(command: &str) -> String {
    let program = command.strip_suffix(" hook").unwrap_or(command);
    if cfg!(windows) { command.to_owned() } else { format!("[ -x {program} ] || exit 0; exec {command}") }
}

fn gemini_seat(program: &Path) -> String {
    let program = super::reach::quoted(&program.to_string_lossy());
    // The time limit holds also where the program itself hangs: Gemini CLI's own was seen not to end a child of the hook.
    let command = if cfg!(windows) {
        format!("{program} seat gemini-cli")
    } else {
        format!(
            "exec 3<&0; {program} seat gemini-cli <&3 & p=$!; (sleep {GEMINI_LIMIT}; kill -9 $p) </dev/null >/dev/null 2>&1 3<&- & \
             wait $p || echo '{{}}'; kill $! 2>/dev/null"
        )
    };
    // Milliseconds.
    let hook = json!({"type": "command", "name": NAME, "command": command, "timeout": 20_000});
    json!({ "hooks": [hook] }).to_string()
}

fn entry(agent: Agent, wanted: &Wanted) -> String {
    let program = wanted.program.display().to_string();
    let value = match agent {
        Agent::OpenCode => {
            json!({"type": "local", "command": [program, "serve", "--stdio"], "enabled": true})
        }
        Agent::GeminiCli => {
            let mut entry = json!({"command": program, "args": ["serve", "--stdio"]});
            if wanted.trust {
                history::json::set(&mut entry, "trust", true);
            }
            // Of each call and of the start, for which a session waits: 10 minutes where nothing is said.
            if wanted.offline {
                history::json::set(&mut entry, "timeout", 20_000);
            }
            entry
        }
        Agent::ClaudeCode | Agent::Codex => {
            json!({"type": "stdio", "command": program, "args": ["serve", "--stdio"]})
        }
    };
    value.to_string()
}

fn hook(agent: Agent, command: &str) -> String {
    // Gemini CLI counts milliseconds, the others seconds.
    let hook = match agent {
        Agent::GeminiCli => {
            let command = unless_gone(command);
            json!({"type": "command", "name": NAME, "command": command, "timeout": 5_000})
        }
        Agent::ClaudeCode | Agent::Codex | Agent::OpenCode => {
            json!({"type": "command", "command": command, "timeout": 10})
        }
    };
    json!({ "hooks": [hook] }).to_string()
}

fn codex_change(path: &Path, wanted: &Wanted, made: &mut Made) -> Result<Change> {
    let before = text_of(path)?;
    if before.is_none() {
        made.entry(path.display().to_string()).or_default().push(String::new());
    }
    let text = before.clone().unwrap_or_default();
    let refuse = |what: String| Error::new(Kind::Input, what).at(path.display().to_string(), None);
    let parsed = |text: &str| {
        let parsed = toml::from_str::<toml::Table>(text.trim_start_matches('\u{feff}'));
        parsed.map_err(|error| refuse(format!("expected TOML, found: {}", error.message())))
    };
    let registered = |text: &str| Ok(parsed(text)?.get("mcp_servers").and_then(|it| it.get(NAME)).is_some());
    let ours = wanted.ours || sections::is_framed(&text);
    if registered(&text)? && !ours {
        return Err(by_hand(Agent::Codex, path));
    }
    let text = sections::remove(&text, is_our_section);
    // Ours is a section; this is not.
    if registered(&text)? {
        return Err(by_hand(Agent::Codex, path));
    }
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let program = wanted.program.display().to_string();
    let mut block =
        format!("[mcp_servers.{NAME}]\ncommand = {}\nargs = [\"serve\", \"--stdio\"]\n", quoted(&program));
    if wanted.hooks {
        let command = quoted(&command(&wanted.program));
        for event in events(Agent::Codex) {
            block.push_str(&format!(
                "[[hooks.{event}]]\n[[hooks.{event}.hooks]]\ntype = \"command\"\ncommand = {command}\ntimeout = 10\n"
            ));
        }
    }
    let after = sections::append_block(&text, &block);
    parsed(&after).map_err(|error| {
        refuse(format!("what there is cannot be added to ({}); add this by hand:\n{block}", error.detail()))
    })?;
    Ok(Change { path: path.to_owned(), before, after: Some(after) })
}

/// Whether a section of Codex's settings was put there by installing.
fn is_our_section(path: &[String], text: &str) -> bool {
    path.starts_with(&["mcp_servers".to_owned(), NAME.to_owned()]) || is_our_hook(path, text)
}

fn is_our_hook(path: &[String], text: &str) -> bool {
    let [hooks, event, list] = path else { return false };
    let Ok(parsed) = toml::from_str::<toml::Table>(text) else { return false };
    let command =
        parsed.get(hooks).and_then(|it| it.get(event)).and_then(|it| it.get(list)?.get(0)?.get("command"));
    hooks == "hooks" && list == "hooks" && command.and_then(toml::Value::as_str).is_some_and(is_our_command)
}

/// Whether a hook's command calls us, wherever we lie.
fn is_our_command(command: &str) -> bool {
    (command.ends_with(" hook") || command.contains(" seat gemini-cli")) && command.contains("epitome")
}

/// A server of our name that we did not register, and would not know how to put back.
fn by_hand(agent: Agent, path: &Path) -> Error {
    let remedy = match agent {
        Agent::Codex => "codex mcp remove epitome",
        Agent::ClaudeCode => "claude mcp remove epitome",
        Agent::GeminiCli => "gemini mcp remove -s user epitome",
        Agent::OpenCode => "take \"epitome\" out of \"mcp\"",
    };
    let what = format!("a server named epitome is registered by hand already; remove it first: {remedy}");
    Error::new(Kind::Refused, what).at(path.display().to_string(), None)
}

/// What to write by hand for clients that we do not edit: name, file and text.
pub fn snippet(client: &str, program: &Path) -> Option<(&'static str, String)> {
    let program = program.display().to_string();
    let args = json!(["serve", "--stdio"]);
    let pretty = |value: serde_json::Value| serde_json::to_string_pretty(&value).unwrap_or_default();
    Some(match client {
        "cursor" => {
            ("~/.cursor/mcp.json", pretty(json!({"mcpServers": {NAME: {"command": program, "args": args}}})))
        }
        "vscode" => (
            ".vscode/mcp.json",
            pretty(json!({"servers": {NAME: {"type": "stdio", "command": program, "args": args}}})),
        ),
        "zed" => (
            "~/.config/zed/settings.json",
            pretty(json!({"context_servers": {NAME: {"command": program, "args": args}}})),
        ),
        "goose" => (
            "~/.config/goose/config.yaml",
            format!(
                "extensions:\n  {NAME}:\n    name: {NAME}\n    type: stdio\n    cmd: {}\n    args: [serve, --stdio]\n    enabled: true\n    timeout: 300",
                json!(program)
            ),
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: [&str; 12] = [
        "{}",
        "{ }\n",
        "",
        " \n\t\r\n",
        "{\n  // mine\n  \"mcpServers\": {\"other\": {\"command\": \"y\"}},\n  \"mcp\": {\"x\": {}}, /* , */\n  \"hooks\" : {\"PreCompact\":[ {\"hooks\":[{\"command\":\"z\"}]} ], },\n  \"model\":\"x\" }",
        "{\r\n  \"mcpServers\": {\r\n  },\r\n  \"mcp\": {},\r\n  \"hooks\": {\"SessionStart\": []}\r\n}\r\n",
        "\u{feff}{\"model\": \"x\"}",
        "{\"hooks\": {\"SessionStart\": [{\"matcher\": \"*\", \"hooks\": [{\"command\": \"/opt/other hook\"}]}], \"BeforeAgent\": []}}",
        "// first\n{\"mcpServers\": {}, \"mcp\": {}, \"a\": \"}{\\\"//\"}\n// last",
        "{\"mcpServers\":{\"epitome2\":{}},\"mcp\":{\"epitome2\":{}}}\n\n\n",
        "{\n\t\"ключ\": \"é\u{1F600}\",\n\t\"mcpServers\": {\n\t\t\"a\": {}, // trailing\n\t},\n}",
        "{\"hooks\":{},\"mcpServers\":{},\"mcp\":{}}",
    ];
    const TOML: [&str; 9] = [
        "",
        "\n",
        "# mine\nmodel = \"x\"\n[mcp_servers.other]\ncommand = \"y\"\n[[hooks.PreCompact]]\n[[hooks.PreCompact.hooks]]\ntype = \"command\"\ncommand = \"z\"",
        "model = \"x\"\r\n[projects.\"/p q\"]\r\ntrust_level = \"trusted\"\r\n",
        "a = 1 # no line break at the end",
        "[features]\nhooks = true\n\n\n",
        "text = \"\"\"\n# epitome: begin\n\"\"\"\n",
        "[tui]\n  theme = 'é'\n  [tui.sub]\n  x = [1,\n 2, # two\n ]\n",
        "\u{feff}model = \"x\"\n",
    ];

    /// Installing, again, and uninstalling, as the command does it.
    fn round(env: &Env, config: &Path, agent: Agent, hooks: bool, seat: bool) -> Vec<PathBuf> {
        let program = "/opt/my tools/epitome".into();
        let wanted = Wanted { program, hooks, seat, trust: false, ours: false, offline: true, compact_at: 0 };
        let write = |changes: &[Change]| {
            for it in changes {
                match &it.after {
                    Some(text) => {
                        std::fs::create_dir_all(it.path.parent().unwrap()).unwrap();
                        std::fs::write(&it.path, text).unwrap();
                    }
                    None => drop(std::fs::remove_file(&it.path)),
                }
            }
        };
        let (changes, made) = install(env, config, agent, &wanted).unwrap();
        write(&changes);
        let plugin = agent == Agent::OpenCode && seat;
        assert_eq!(installed(env, config, agent), (true, hooks || plugin), "{agent:?}");
        assert_eq!(seated(env, config, agent), seat && agent != Agent::Codex, "{agent:?}");
        let (again, more) = install(env, config, agent, &wanted).unwrap();
        assert!(again.iter().all(|it| it.before == it.after), "{agent:?} {again:?}");
        assert!(more.values().all(Vec::is_empty), "{more:?}");
        // A newer one, elsewhere, takes its place.
        let moved = Wanted { program: "/new/epitome".into(), ours: true, ..wanted };
        write(&install(env, config, agent, &moved).unwrap().0);
        let undone = uninstall(env, config, agent, &made).unwrap();
        write(&undone);
        assert_eq!(installed(env, config, agent), (false, false));
        assert!(!seated(env, config, agent));
        changes.into_iter().map(|it| it.path).collect()
    }

    #[test]
    fn every_byte_is_as_before() {
        for agent in Agent::ALL {
            for (hooks, seat) in [(true, true), (true, false), (false, true), (false, false)] {
                let home = tempfile::tempdir().unwrap();
                let env = Env { home: home.path().to_owned(), ..Env::default() };
                let config = home.path().join(".config");
                // Nothing there.
                for path in round(&env, &config, agent, hooks, seat) {
                    assert!(!path.exists(), "{path:?}");
                }
                // Something there, of all kinds.
                let (server, other) = files(&env, &config, agent);
                let texts = if agent == Agent::Codex { &TOML[..] } else { &JSON[..] };
                for text in texts {
                    for path in [&server, &other] {
                        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                        std::fs::write(path, text).unwrap();
                    }
                    if agent == Agent::OpenCode {
                        std::fs::remove_file(&other).unwrap();
                    }
                    round(&env, &config, agent, hooks, seat);
                    for path in [&server, &other].into_iter().filter(|it| it.exists()) {
                        assert_eq!(std::fs::read_to_string(path).unwrap(), *text, "{agent:?}");
                    }
                    assert_eq!(other.exists(), agent != Agent::OpenCode);
                }
            }
        }
    }

    #[test]
    fn what_was_registered_by_hand_is_not_touched() {
        for agent in Agent::ALL {
            let home = tempfile::tempdir().unwrap();
            let env = Env { home: home.path().to_owned(), ..Env::default() };
            let (server, _) = files(&env, home.path(), agent);
            let text = match agent {
                Agent::Codex => "[mcp_servers.epitome]\ncommand = \"mine\"\n",
                _ => "{\"mcpServers\":{\"epitome\":{\"command\":\"mine\"}},\"mcp\":{\"epitome\":{}}}",
            };
            std::fs::create_dir_all(server.parent().unwrap()).unwrap();
            std::fs::write(&server, text).unwrap();
            let wanted = Wanted {
                program: "/e".into(),
                hooks: true,
                seat: true,
                trust: true,
                ours: false,
                offline: true,
                compact_at: 0,
            };
            let error = install(&env, home.path(), agent, &wanted).unwrap_err();
            assert!(error.full().contains("by hand"), "{agent:?} {error}");
        }
    }

    #[test]
    fn what_does_not_parse_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let env = Env { home: home.path().to_owned(), ..Env::default() };
        let wanted = Wanted {
            program: "/e".into(),
            hooks: true,
            seat: true,
            trust: true,
            ours: false,
            offline: true,
            compact_at: 0,
        };
        for (agent, text) in [
            (Agent::ClaudeCode, "{\"a\":"),
            (Agent::GeminiCli, "[]"),
            (Agent::Codex, "a = "),
            (Agent::GeminiCli, "{\"hooks\":3}"),
        ] {
            let (server, _) = files(&env, home.path(), agent);
            std::fs::create_dir_all(server.parent().unwrap()).unwrap();
            std::fs::write(&server, text).unwrap();
            let error = install(&env, home.path(), agent, &wanted).unwrap_err();
            assert!(error.place().is_some(), "{agent:?} {error}");
            assert_eq!(std::fs::read_to_string(&server).unwrap(), text);
        }
    }
}
