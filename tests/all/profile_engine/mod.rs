//! Profiles in the engine: what is told meanwhile, the user's own commands, the agents' own settings, what is
//! remembered, and all of them side by side.

mod by_model;
mod hooks;
mod settings;
mod stored;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use epitome::config::{Config, Environment};
use epitome::engine::{self, Ask, Engine, Event, Opened, SessionRef, To};
use epitome::store::{Scope, StoreAt};
use serde_json::{Value, json};
use tempfile::TempDir;

const NOW: i64 = 1_700_000_000_000;

/// An engine whose home is a folder of its own, with these variables and settings.
fn engine_at(home: &Path, variables: &[(&str, &str)], settings: &[(&str, &str)]) -> Engine {
    for (path, text) in settings {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut all = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    all.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let mut config = Config::load(Environment { variables: all, cwd: home.to_owned() }).unwrap();
    config.store = StoreAt::Path(home.join("store"));
    Engine::at(config, NOW).unwrap()
}

/// A Codex session of so many turns with tools, in a project below `home`.
fn session(home: &Path, turns: usize) -> String {
    let mut out = format!(
        "{}\n",
        json!({"timestamp": "2025-11-14T22:13:20.000Z", "type": "session_meta", "payload": {
            "id": "018bcfe5-687b-7000-8000-000000000001", "timestamp": "2025-11-14T22:13:20.000Z",
            "cwd": home.join("project"), "originator": "codex_cli_rs", "cli_version": "0.169.0"}})
    );
    let mut item = |payload: Value| {
        let line =
            json!({"timestamp": "2025-11-14T22:13:21.000Z", "type": "response_item", "payload": payload});
        out.push_str(&format!("{line}\n"));
    };
    let say = |role: &str, text: String| {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
    };
    for turn in 0..turns {
        let id = format!("call_{turn}");
        item(say(
            "user",
            format!("Please look at module {turn}. The port is {} and must not change.", 4000 + turn),
        ));
        item(json!({"type": "function_call", "name": "shell", "call_id": id,
            "arguments": format!("{{\"command\":[\"cat\",\"src/module_{turn}.rs\"]}}")}));
        item(json!({"type": "function_call_output", "call_id": id,
            "output": format!("fn part_{turn}() -> Clock {{ todo(); }}\n").repeat(300)}));
        item(say(
            "assistant",
            format!("Module {turn} keeps the clock; I changed src/module_{turn}.rs accordingly."),
        ));
    }
    out
}

fn open(engine: &Engine, text: &str) -> Opened {
    engine::open(engine, &SessionRef::Inline(text.as_bytes().to_vec()), None, None).unwrap()
}

fn listening(engine: &mut Engine) -> Arc<Mutex<Vec<Event>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&heard);
    engine.listener = Some(Arc::new(move |event: &Event| to.lock().unwrap().push(event.clone())));
    heard
}

fn names(heard: &Mutex<Vec<Event>>) -> Vec<String> {
    let name = |it: &Event| serde_json::to_value(it).unwrap()["event"].as_str().unwrap().to_owned();
    heard.lock().unwrap().iter().map(name).collect()
}

fn with(mut ask: Ask, change: impl FnOnce(&mut Ask)) -> Ask {
    change(&mut ask);
    ask
}

fn ask(name: &str) -> Ask {
    Ask { to: To::Bytes, ..Ask::new(epitome::profiles::built_in(name).unwrap()) }
}

/// A conversation as the Gemini API has it, so many turns from `first` on.
fn contents(first: usize, turns: usize) -> Vec<Value> {
    let say = |role: &str, text: String| json!({"role": role, "parts": [{"text": text}]});
    let turn = |it: usize| {
        [
            say("user", format!("Look at module {it}. Never change the port {}.", 4000 + it)),
            say(
                "model",
                format!("Module {it} keeps the clock. {}", "I read it from top to bottom. ".repeat(60)),
            ),
        ]
    };
    (first..first + turns).flat_map(turn).collect()
}

fn text(messages: &[Value]) -> String {
    serde_json::to_string(messages).unwrap()
}

/// An engine with a session of so many turns, and the folder that both are in.
fn ready(turns: usize) -> (TempDir, Engine, Opened) {
    let home = tempfile::tempdir().unwrap();
    let engine = engine_at(home.path(), &[], &[]);
    let opened = open(&engine, &session(home.path(), turns));
    (home, engine, opened)
}

/// Where the store keeps what is of the session's project.
fn scope(engine: &Engine, home: &Path) -> Scope {
    Scope { owner: engine.config.owner.clone(), project: home.join("project").display().to_string() }
}
