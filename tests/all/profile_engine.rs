//! Profiles in the engine: what is told meanwhile, the user's own commands, the agents' own settings, what is
//! remembered, and all of them side by side.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use epitome::compact::Cause;
use epitome::config::{Choice, Config, Environment, StoreAt};
use epitome::engine::{Ask, Engine, Event, Opened, SessionRef, To};
use epitome::profile::{BUILT_IN, Pass, Profile};
use epitome::store::{MemoryFilter, MemoryKind, Scope};
use epitome::summarizer::model::Api;
use serde_json::{Value, json};

use super::summarizer::server::{self, Does};

const NOW: i64 = 1_700_000_000_000;

/// An engine whose home is a folder of its own, with these variables and settings.
fn engine(home: &Path, variables: &[(&str, &str)], settings: &[(&str, &str)]) -> Engine {
    for (path, text) in settings {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut all = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    all.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let mut config = Config::load(Environment { variables: all, cwd: home.to_owned() }).unwrap();
    config.store = StoreAt::Path(home.join("store"));
    Engine::new(config, NOW).unwrap()
}

/// A Codex session of so many turns with tools, in a project below `home`.
fn session(home: &Path, turns: usize) -> String {
    let mut out = format!(
        "{}\n",
        serde_json::json!({"timestamp": "2025-11-14T22:13:20.000Z", "type": "session_meta", "payload": {
            "id": "018bcfe5-687b-7000-8000-000000000001", "timestamp": "2025-11-14T22:13:20.000Z",
            "cwd": home.join("project"), "originator": "codex_cli_rs", "cli_version": "0.169.0"}})
    );
    let mut item = |payload: serde_json::Value| {
        let line = serde_json::json!({"timestamp": "2025-11-14T22:13:21.000Z", "type": "response_item", "payload": payload});
        out.push_str(&format!("{line}\n"));
    };
    let say = |role: &str, text: String| {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        serde_json::json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
    };
    for turn in 0..turns {
        let id = format!("call_{turn}");
        item(say(
            "user",
            format!("Please look at module {turn}. The port is {} and must not change.", 4000 + turn),
        ));
        item(serde_json::json!({"type": "function_call", "name": "shell", "call_id": id,
            "arguments": format!("{{\"command\":[\"cat\",\"src/module_{turn}.rs\"]}}")}));
        item(serde_json::json!({"type": "function_call_output", "call_id": id,
            "output": format!("fn part_{turn}() -> Clock {{ todo(); }}\n").repeat(300)}));
        item(say(
            "assistant",
            format!("Module {turn} keeps the clock; I changed src/module_{turn}.rs accordingly."),
        ));
    }
    out
}

fn open(engine: &Engine, text: &str) -> Opened {
    engine.open(&SessionRef::Inline(text.as_bytes().to_vec()), None, None).unwrap()
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

fn ask(name: &str) -> Ask {
    Ask { to: To::Bytes, ..Ask::new(Profile::built_in(name).unwrap()) }
}

#[test]
fn what_happens_is_told_with_the_real_percentage() {
    let home = tempfile::tempdir().unwrap();
    let mut engine = engine(home.path(), &[], &[]);
    let heard = listening(&mut engine);
    let opened = open(&engine, &session(home.path(), 20));
    let wish = Ask { window: Some(100_000), cause: Cause::Auto, ..ask("supermemory") };
    let context = engine.estimate(&opened, &wish, None).unwrap().context;
    let made = engine.compact(&opened, &wish).unwrap();
    assert_eq!(made.answer.status, "compacted", "{}", made.answer.reason);
    assert_eq!(names(&heard), ["started", "asked", "compacted"]);
    let heard = heard.lock().unwrap();
    let Event::Started { percent, notice, profile, trigger, .. } = &heard[0] else {
        panic!("{:?}", heard[0])
    };
    assert_eq!(
        (profile.as_str(), trigger.as_str(), *percent),
        ("supermemory", "auto", Some(context / 1_000))
    );
    assert!(notice.contains(&format!("Context at {}%", context / 1_000)), "{notice}");
    let Event::Compacted { tokens_before, tokens_after, handle, notice, .. } = &heard[2] else { panic!() };
    assert!(tokens_after < tokens_before && handle.is_some() && notice.starts_with("Compaction Complete"));
}

#[test]
fn a_preview_tells_nothing_but_asks() {
    let home = tempfile::tempdir().unwrap();
    let mut engine =
        engine(home.path(), &[], &[(".config/epitome/config.toml", "[hooks]\nbefore = \"exit 1\"\n")]);
    let heard = listening(&mut engine);
    let opened = open(&engine, &session(home.path(), 20));
    let made = engine.compact(&opened, &Ask { to: To::Plan, ..ask("codex") }).unwrap();
    assert_eq!(made.answer.status, "planned");
    assert_eq!(names(&heard), ["asked"]);
}

#[test]
#[cfg(unix)]
fn the_users_commands_run_and_may_refuse() {
    let home = tempfile::tempdir().unwrap();
    let [before, after] = ["before", "after"].map(|it| home.path().join(it));
    let config =
        format!("[hooks]\nbefore = \"cat > {}\"\nafter = \"cat > {}\"\n", before.display(), after.display());
    let mut engine = engine(home.path(), &[], &[(".config/epitome/config.toml", &config)]);
    let opened = open(&engine, &session(home.path(), 20));
    assert_eq!(engine.compact(&opened, &ask("opencode")).unwrap().answer.status, "compacted");
    let read =
        |path: &Path| -> serde_json::Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    assert_eq!(
        (read(&before)["event"].as_str(), read(&before)["profile"].as_str()),
        (Some("started"), Some("opencode"))
    );
    assert_eq!(read(&after)["event"], "compacted");

    engine.config.hooks.before = Some("echo not now >&2; exit 3".to_owned());
    let heard = listening(&mut engine);
    let refused = engine.compact(&opened, &ask("opencode")).unwrap();
    assert_eq!(
        (refused.answer.status.as_str(), refused.answer.reason_code.as_str()),
        ("rejected", "hook_refused")
    );
    assert!(
        refused.answer.reason.contains("not now") && refused.bytes.is_none(),
        "{}",
        refused.answer.reason
    );
    assert_eq!(names(&heard), ["started", "failed"]);

    engine.config.hooks.before = Some("exec sleep 60".to_owned());
    engine.config.hooks.limit = std::time::Duration::from_millis(50);
    let refused = engine.compact(&opened, &ask("opencode")).unwrap();
    assert!(refused.answer.reason.contains("took longer"), "{}", refused.answer.reason);
}

#[test]
fn the_agents_own_settings_hold_under_auto_and_ours_win() {
    let home = tempfile::tempdir().unwrap();
    let settings = [
        (".gemini/settings.json", r#"{"model":{"compressionThreshold":0.9}}"#),
        (".config/opencode/opencode.json", r#"{"compaction":{"auto":false}}"#),
        (
            ".config/epitome/config.toml",
            "[profiles.mine]\nextends = \"gemini-cli\"\nname = \"mine\"\n[profiles.mine.trigger]\nshare = 0.2\n",
        ),
    ];
    let engine = engine(home.path(), &[("DISABLE_AUTO_COMPACT", "1")], &settings);
    let opened = open(&engine, &session(home.path(), 20));
    let run = |profile: Profile, auto: bool| {
        let wish = Ask { auto, window: Some(100_000), to: To::Plan, ..Ask::new(profile) };
        engine.compact(&opened, &wish).unwrap().answer
    };
    let built_in = |name: &str| Profile::built_in(name).unwrap();
    // Due at a half, not at nine tenths.
    let found = run(built_in("gemini-cli"), true);
    assert_eq!((found.status.as_str(), found.native_status.as_str()), ("noop", "NOOP"), "{}", found.reason);
    assert!(found.reason.contains("of 90000 tokens"), "{}", found.reason);
    assert_eq!(run(built_in("gemini-cli"), false).native_status, "COMPRESSED");
    let mine = run(engine.config.profile("mine").unwrap(), true);
    assert_eq!(mine.status, "planned", "{}", mine.reason);
    for name in ["opencode@1.18", "claude-code"] {
        let found = run(built_in(name), true);
        assert_eq!((found.status.as_str(), found.reason_code.as_str()), ("noop", "switched_off"), "{name}");
        assert_eq!(run(built_in(name), false).status, "planned", "{name}");
    }
    let triggers =
        engine.estimate(&opened, &Ask { window: Some(100_000), ..ask("epitome") }, None).unwrap().triggers;
    assert_eq!(triggers["claude-code"].reason_code, "switched_off");
    assert_eq!(triggers["gemini-cli"].at, Some(90_000));
    assert_eq!(triggers.len(), BUILT_IN.len());
}

#[test]
fn a_summary_is_remembered_without_what_is_private() {
    let home = tempfile::tempdir().unwrap();
    let engine = engine(home.path(), &[], &[]);
    let text = session(home.path(), 20)
        .replace("Please look at module 3.", "Please look <private>at my salary</private>.");
    let opened = open(&engine, &text);
    let made = engine.compact(&opened, &ask("supermemory")).unwrap();
    assert_eq!(made.answer.status, "compacted", "{}", made.answer.reason);
    let project = home.path().join("project").display().to_string();
    let scope = Scope { owner: engine.config.owner.clone(), project };
    let found = engine.store.memories(&scope, &MemoryFilter::default()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, MemoryKind::Conversation);
    assert!(found[0].content.starts_with("[Session Summary]\n"), "{}", found[0].content);
    assert!(!found[0].content.contains("salary"));
    // Another profile remembers nothing.
    let other = tempfile::tempdir().unwrap();
    let engine = self::engine(other.path(), &[], &[]);
    engine.compact(&open(&engine, &session(other.path(), 20)), &ask("opencode")).unwrap();
    let scope = Scope { project: other.path().join("project").display().to_string(), ..scope };
    assert!(engine.store.memories(&scope, &MemoryFilter::default()).unwrap().is_empty());
}

#[test]
fn a_stored_snapshot_takes_the_place_of_a_summary() {
    let home = tempfile::tempdir().unwrap();
    let mut engine = engine(home.path(), &[], &[]);
    let heard = listening(&mut engine);
    let opened = open(&engine, &session(home.path(), 20));
    let history = &opened.session.history;
    engine.keep_snapshot(history, history.messages().len(), "All modules keep the clock.").unwrap();
    let made = engine.compact(&opened, &ask("claude-code")).unwrap();
    assert_eq!(made.answer.status, "compacted", "{}", made.answer.reason);
    let first = made.history.unwrap().messages()[0].plain();
    assert!(first.ends_with("All modules keep the clock."), "{first}");
    assert_eq!(names(&heard), ["started", "compacted"], "no summary is asked for");
    // It does not cover what came after: then one is written.
    let longer = open(&engine, &session(home.path(), 21));
    assert!(engine.compact(&longer, &ask("claude-code")).unwrap().answer.summary.is_some());
}

#[test]
fn a_window_smaller_than_what_is_fixed_is_said_and_nothing_loops() {
    let home = tempfile::tempdir().unwrap();
    let engine = engine(home.path(), &[], &[]);
    let opened = open(&engine, &session(home.path(), 20));
    for (name, _) in BUILT_IN {
        for auto in [true, false] {
            let wish = Ask { window: Some(5_000), overhead: Some(8_000), auto, ..ask(name) };
            let found = engine.compact(&opened, &wish).unwrap().answer;
            assert_eq!(found.status, "noop", "{name}");
            assert!(
                found.reason.contains("system prompt and tools alone") || found.reason.contains("characters"),
                "{name}: {}",
                found.reason
            );
        }
    }
}

#[test]
fn collapsed_turns_are_archived_under_their_handles() {
    let home = tempfile::tempdir().unwrap();
    let engine = engine(home.path(), &[], &[]);
    let opened = open(&engine, &session(home.path(), 6));
    let mut profile = Profile::built_in("claude-code").unwrap();
    profile.passes.retain(|it| matches!(it, Pass::Collapse(_)));
    let Pass::Collapse(step) = &mut profile.passes[0] else { panic!() };
    step.on = true;
    let made = engine.compact(&opened, &Ask { to: To::Bytes, ..Ask::new(profile) }).unwrap();
    assert_eq!(made.answer.status, "compacted", "{}", made.answer.reason);
    let line = made.history.unwrap().messages()[0].plain();
    assert!(line.starts_with("[turn collapsed: Please look at module 0."), "{line}");
    let handle = line.trim_end_matches(']').rsplit(' ').next().unwrap().to_owned();
    let scope = Scope {
        owner: engine.config.owner.clone(),
        project: home.path().join("project").display().to_string(),
    };
    let original = String::from_utf8(engine.store.restore(&scope, &handle).unwrap()).unwrap();
    assert!(original.contains("Please look at module 0.") && original.contains("fn part_0()"), "{handle}");
}

#[test]
fn side_by_side_no_row_repeats_another_without_a_reason() {
    let home = tempfile::tempdir().unwrap();
    let engine = engine(home.path(), &[], &[]);
    let opened = open(&engine, &session(home.path(), 20));
    let answer = engine.compare(&opened, &ask("epitome")).unwrap();
    assert!(answer.tokens_before >= 50_000, "{}", answer.tokens_before);
    let names: Vec<&str> = answer.rows.iter().map(|it| it.profile.as_str()).collect();
    assert_eq!(names, BUILT_IN.iter().map(|it| it.0).collect::<Vec<_>>());
    let mut seen = Vec::new();
    for row in &answer.rows {
        assert_eq!(row.status, "planned", "{}: {}", row.profile, row.reason);
        assert!(row.tokens_after < row.tokens_before && !row.due_reason.is_empty(), "{}", row.profile);
        let said = (row.split, row.pruned, row.tokens_after, row.messages_after, row.kept, row.lost);
        assert_eq!(seen.contains(&said), row.same_as.is_some(), "{}", row.profile);
        assert_eq!(row.same_as.is_some(), !row.why_same.is_empty());
        seen.push(said);
    }
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

const SNAPSHOT: &str = "<scratchpad>Let me see.</scratchpad>\n<state_snapshot>\n<overall_goal>\nLook at the modules\n\
    </overall_goal>\n<active_constraints>\n- Never change the ports\n</active_constraints>\n<key_knowledge>\n- they keep \
    the clock\n</key_knowledge>\n<task_state>\n- [TODO] the next module\n</task_state>\n</state_snapshot>";

/// Compacts as `wish` says with an engine whose Gemini is a script; what was asked, and what came of it.
async fn scripted(
    home: &Path,
    config: &str,
    wish: Ask,
    messages: &[Value],
    does: impl Fn(usize) -> Does + Send + Sync + 'static,
) -> (Vec<server::Request>, epitome::engine::Compacted, Vec<Event>) {
    let (address, log) = server::serve(move |number, _| does(number)).await;
    let base = format!("http://{address}");
    let variables = [("GEMINI_API_KEY", server::KEY), ("GOOGLE_GEMINI_BASE_URL", base.as_str())];
    let mut engine = engine(home, &variables, &[(".config/epitome/config.toml", config)]);
    let heard = listening(&mut engine);
    let text = serde_json::to_string(messages).unwrap();
    let made = tokio::task::spawn_blocking(move || engine.compact(&open(&engine, &text), &wish).unwrap());
    let made = made.await.unwrap();
    let requests = log.requests.lock().unwrap().clone();
    let heard = heard.lock().unwrap().clone();
    (requests, made, heard)
}

/// By Gemini, which writes what it is told to.
fn by_gemini(name: &str) -> Ask {
    let summarizer = Choice::Provider("gemini".to_owned());
    Ask { summarizer, trusted: true, window: Some(20_000), ..ask(name) }
}

/// The turns of a request to Gemini: who, and what.
fn turns(request: &server::Request) -> Vec<(String, String)> {
    let all = request.body["contents"].as_array().unwrap().iter();
    let text = |it: &Value| it["parts"][0]["text"].as_str().unwrap().to_owned();
    all.map(|it| (it["role"].as_str().unwrap().to_owned(), text(it))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_asked_in_the_profiles_own_words_and_checks_its_draft() {
    let home = tempfile::tempdir().unwrap();
    let answer = |_| Does::Sends(server::stream(Api::Gemini, SNAPSHOT));
    let wish = Ask { model: Some("gemini-3.5-flash".to_owned()), ..by_gemini("gemini-cli@0.61") };
    let messages = contents(0, 20);
    let (requests, made, _) = scripted(home.path(), "", wish.clone(), &messages, answer).await;
    assert_eq!(made.answer.status, "compacted", "{}", made.answer.reason);
    assert!(made.answer.warnings.iter().all(|it| !it.contains("offline")), "{:?}", made.answer.warnings);
    assert_eq!(requests.len(), 2, "a draft and its check");
    let prompt = |name: &str| epitome::profile::prompt(name).trim_end().to_owned();
    // The model that the program asks for a session of that one.
    assert!(requests[0].head.contains("gemini-3-flash-preview"), "{}", requests[0].head);
    let system = requests[0].body["systemInstruction"].to_string()
        + &requests[0].body["system_instruction"].to_string();
    assert!(system.contains("You turn the conversation so far into one XML snapshot."), "{system}");
    let first = turns(&requests[0]);
    assert!(first.len() == 1 && first[0].1.contains(&prompt("gemini-cli@0.61/ask.md")), "{first:?}");
    assert!(first[0].1.contains("<overall_goal>") && first[0].1.contains("Keep a section"), "{first:?}");
    let second = turns(&requests[1]);
    assert_eq!(second.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(), ["user", "model", "user"]);
    assert_eq!(second[0].1, first[0].1, "the same head");
    assert!(second[1].1.contains("Look at the modules"));
    assert_eq!(second[2].1.trim_end(), prompt("gemini-cli@0.61/verify.md"));
    let summary = made.history.as_ref().unwrap().messages()[0].plain();
    assert!(summary.contains("<state_snapshot>") && !summary.contains("Let me see."), "{summary}");

    // A snapshot is there already: it is merged, by other words.
    let after: Vec<Value> = serde_json::from_slice(&made.bytes.unwrap()).unwrap();
    let longer = [after, contents(20, 20)].concat();
    let (requests, made, _) = scripted(home.path(), "", wish.clone(), &longer, answer).await;
    assert_eq!(made.answer.status, "compacted", "{}", made.answer.reason);
    let first = turns(&requests[0]);
    assert!(first[0].1.contains(&prompt("gemini-cli@0.61/again.md")));
    assert!(!first[0].1.contains(&prompt("gemini-cli@0.61/ask.md")));
    assert!(first[0].1.contains(" earlier record]"));

    // The user's own model wins; a profile without a second call makes none.
    let config = "[summarizer.gemini]\nmodel = \"gemini-2.5-pro\"\n";
    let wish = Ask { profile: Profile::built_in("gemini-cli").unwrap(), ..wish };
    let (requests, _, _) = scripted(home.path(), config, wish, &messages, answer).await;
    assert_eq!(requests.len(), 1);
    assert!(requests[0].head.contains("gemini-2.5-pro"), "{}", requests[0].head);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_overflow_the_oldest_are_not_shown_and_the_pass_for_it_is_asked() {
    // A home for each: what failed three times in a row is left alone.
    let home = || tempfile::tempdir().unwrap();
    let answer = |_| Does::Sends(server::stream(Api::Gemini, "<summary>\nnothing of use\n</summary>"));
    let messages = contents(0, 20);
    for (name, shown, words) in [
        ("codex", "Look at module 19.", "Needs tests"),
        ("claude-code", "Look at module 19.", "9. Optional Next Step"),
        ("learn-claude-code", "Look at module 0.", "Current goal"),
    ] {
        let wish = Ask { cause: Cause::Overflow, ..by_gemini(name) };
        let (requests, _, _) = scripted(home().path(), "", wish, &messages, answer).await;
        let said = &turns(&requests[0])[0].1;
        assert!(said.contains(shown) && said.contains(words), "{name}: {said}");
        assert_eq!(said.contains("Look at module 0."), name == "learn-claude-code", "{name}");
    }
    // Its own step for an overflow: the five messages that stay are not summarised.
    let wish = Ask { cause: Cause::Overflow, ..by_gemini("learn-claude-code") };
    let (requests, _, _) = scripted(home().path(), "", wish, &messages, answer).await;
    assert!(!turns(&requests[0])[0].1.contains("Look at module 19."));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_retry_is_told_and_a_profile_says_how_many() {
    let home = tempfile::tempdir().unwrap();
    let refuses = |_| Does::Sends(server::refusal(Api::Gemini, 503));
    let (requests, made, heard) =
        scripted(home.path(), "", by_gemini("claude-code"), &contents(0, 20), refuses).await;
    assert_eq!(requests.len(), 3, "two retries");
    let retries: Vec<(u32, u32)> = heard
        .iter()
        .filter_map(|it| if let Event::Retry { number, of, .. } = it { Some((*number, *of)) } else { None })
        .collect();
    assert_eq!(retries, [(1, 2), (2, 2)]);
    assert!(matches!(heard.first(), Some(Event::Started { .. })));
    assert!(matches!(heard.last(), Some(Event::Compacted { .. })), "the offline summary stands in");
    assert!(made.answer.warnings.iter().any(|it| it.contains("offline")), "{:?}", made.answer.warnings);
    let config = "[summarizer]\ntries = 1\n";
    let (requests, _, heard) =
        scripted(home.path(), config, by_gemini("claude-code"), &contents(0, 20), refuses).await;
    assert_eq!(requests.len(), 1);
    assert!(!heard.iter().any(|it| matches!(it, Event::Retry { .. })));
}
