//! Profiles in the engine: what is told meanwhile, the user's own commands, the agents' own settings, what is
//! remembered, and all of them side by side.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use epitome::compaction::plan::Cause;
use epitome::compaction::profile::{Pass, Profile};
use epitome::compaction::summary::model::Api;
use epitome::config::{Choice, Config, Environment};
use epitome::engine::{self, Ask, Engine, Event, Opened, SessionRef, To, Writer};
use epitome::profiles::BUILT_IN;
use epitome::store::StoreAt;
use epitome::store::{MemoryFilter, MemoryKind, Scope};
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
    Engine::at(config, NOW).unwrap()
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

#[test]
fn what_happens_is_told_with_the_real_percentage() {
    let home = tempfile::tempdir().unwrap();
    let mut engine = engine(home.path(), &[], &[]);
    let heard = listening(&mut engine);
    let opened = open(&engine, &session(home.path(), 20));
    let wish = with(ask("supermemory"), |it| {
        it.counting.window = Some(100_000);
        it.options.trigger = Some(Cause::Auto);
    });
    let context = engine::estimate(&engine, &opened, &wish, None).unwrap().context;
    let made = engine::compact(&engine, &opened, &wish).unwrap();
    assert_eq!(made.answer().status.name(), "compacted", "{}", made.answer().reason);
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
    let made = engine::compact(&engine, &opened, &Ask { to: To::Plan, ..ask("codex") }).unwrap();
    assert_eq!(made.answer().status.name(), "planned");
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
    assert_eq!(
        engine::compact(&engine, &opened, &ask("opencode")).unwrap().answer().status.name(),
        "compacted"
    );
    let read =
        |path: &Path| -> serde_json::Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    assert_eq!(
        (read(&before)["event"].as_str(), read(&before)["profile"].as_str()),
        (Some("started"), Some("opencode"))
    );
    assert_eq!(read(&after)["event"], "compacted");

    engine.config.hooks.before = Some("echo not now >&2; exit 3".to_owned());
    let heard = listening(&mut engine);
    let refused = engine::compact(&engine, &opened, &ask("opencode")).unwrap();
    assert_eq!(
        (refused.answer().status.name(), refused.answer().reason_code.as_str()),
        ("rejected", "hook_refused")
    );
    assert!(
        refused.answer().reason.contains("not now") && refused.bytes().is_none(),
        "{}",
        refused.answer().reason
    );
    assert_eq!(names(&heard), ["started", "failed"]);

    engine.config.hooks.before = Some("exec sleep 60".to_owned());
    engine.config.hooks.limit = std::time::Duration::from_millis(50);
    let refused = engine::compact(&engine, &opened, &ask("opencode")).unwrap();
    assert!(refused.answer().reason.contains("took longer"), "{}", refused.answer().reason);
}

#[test]
#[cfg(unix)]
fn the_users_commands_run_once_around_what_the_hosts_answer_writes() {
    let home = tempfile::tempdir().unwrap();
    let mut engine = engine(home.path(), &[], &[]);
    let [before, after] = ["before", "after"].map(|it| home.path().join(it));
    engine.config.hooks.before = Some(format!("cat >> {}", before.display()));
    engine.config.hooks.after = Some(format!("cat >> {}", after.display()));
    let runs = |path: &Path| std::fs::read_to_string(path).unwrap_or_default().lines().count();
    let heard = listening(&mut engine);
    let opened = open(&engine, &session(home.path(), 20));
    let wish = with(ask("opencode"), |it| it.writer.summarizer = Choice::Host);
    let asked = engine::compact(&engine, &opened, &wish).unwrap().answer();
    assert_eq!(asked.status.name(), "needs_answer", "{}", asked.reason);
    // What does not do is asked for once more; what does not do twice is replaced by the offline summary.
    let asked = engine::answered(&engine, &asked.handle.unwrap(), "Sure!", |_| Ok(None)).unwrap().0.answer();
    assert_eq!(asked.status.name(), "needs_answer", "{}", asked.reason);
    assert_eq!((runs(&before), runs(&after), names(&heard)), (0, 0, Vec::new()), "nothing is written yet");
    let handle = asked.handle.unwrap();

    let command = engine.config.hooks.before.replace("echo not now >&2; exit 1".to_owned());
    let refused = engine::answered(&engine, &handle, "Sure!", |_| Ok(None)).unwrap().0;
    assert_eq!(refused.answer().reason_code, "hook_refused", "{}", refused.answer().reason);
    assert!(refused.bytes().is_none() && refused.answer().reason.contains("not now"));
    assert_eq!(names(&heard), ["started", "failed"]);
    assert_eq!(runs(&after), 0);

    engine.config.hooks.before = command;
    let done = engine::answered(&engine, &handle, "Sure!", |_| Ok(None)).unwrap().0;
    assert_eq!(done.answer().status.name(), "compacted", "{}", done.answer().reason);
    assert_eq!((runs(&before), runs(&after)), (1, 1));
    assert_eq!(names(&heard)[2..], ["started", "asked", "compacted"], "the offline one is asked for");
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
        let wish = with(Ask { to: To::Plan, ..Ask::new(profile) }, |it| {
            it.options.auto = auto;
            it.counting.window = Some(100_000);
        });
        engine::compact(&engine, &opened, &wish).unwrap().answer()
    };
    let built_in = |name: &str| epitome::profiles::built_in(name).unwrap();
    // Due at a half, not at nine tenths.
    let found = run(built_in("gemini-cli"), true);
    assert_eq!((found.status.name(), found.native_status.as_str()), ("noop", "NOOP"), "{}", found.reason);
    assert!(found.reason.contains("the threshold is 90000"), "{}", found.reason);
    assert_eq!(run(built_in("gemini-cli"), false).native_status, "COMPRESSED");
    let mine = run(engine.config.profile("mine").unwrap(), true);
    assert_eq!(mine.status.name(), "planned", "{}", mine.reason);
    for name in ["opencode@1.18", "claude-code"] {
        let found = run(built_in(name), true);
        assert_eq!((found.status.name(), found.reason_code.as_str()), ("noop", "switched_off"), "{name}");
        assert_eq!(run(built_in(name), false).status.name(), "planned", "{name}");
    }
    let triggers = engine::estimate(
        &engine,
        &opened,
        &with(ask("epitome"), |it| it.counting.window = Some(100_000)),
        None,
    )
    .unwrap()
    .triggers;
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
    let made = engine::compact(&engine, &opened, &ask("supermemory")).unwrap();
    assert_eq!(made.answer().status.name(), "compacted", "{}", made.answer().reason);
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
    engine::compact(&engine, &open(&engine, &session(other.path(), 20)), &ask("opencode")).unwrap();
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
    engine::keep_snapshot(&engine, history, history.messages().len(), "All modules keep the clock.").unwrap();
    let made = engine::compact(&engine, &opened, &ask("claude-code")).unwrap();
    assert_eq!(made.answer().status.name(), "compacted", "{}", made.answer().reason);
    let first = made.history().unwrap().messages()[0].plain();
    assert!(first.ends_with("All modules keep the clock."), "{first}");
    assert_eq!(names(&heard), ["started", "compacted"], "no summary is asked for");
    // It does not cover what came after: then one is written.
    let longer = open(&engine, &session(home.path(), 21));
    assert!(engine::compact(&engine, &longer, &ask("claude-code")).unwrap().answer().summary.is_some());
}

#[test]
fn a_stored_snapshot_holds_no_secret() {
    const SECRET: &str = "AKIAIOSFODNN7EXAMPLQ";
    let home = tempfile::tempdir().unwrap();
    let engine = engine(home.path(), &[], &[]);
    let opened = open(&engine, &session(home.path(), 20));
    let history = &opened.session.history;
    let text = format!("aws_access_key_id = {SECRET}. All modules keep the clock.");
    engine::keep_snapshot(&engine, history, history.messages().len(), &text).unwrap();
    let project = home.path().join("project").display().to_string();
    let scope = Scope { owner: engine.config.owner.clone(), project };
    let name = format!("snapshot/{}", history.meta.session.as_deref().unwrap());
    let mark = engine.store.marked(&scope, &name).unwrap().unwrap();
    assert!(mark.value.contains("[REDACTED") && !mark.value.contains(SECRET), "{}", mark.value);
    // It is used all the same.
    let made = engine::compact(&engine, &opened, &ask("claude-code")).unwrap();
    assert!(made.history().unwrap().messages()[0].plain().ends_with("All modules keep the clock."));
}

#[test]
fn a_window_smaller_than_what_is_fixed_is_said_and_nothing_loops() {
    let home = tempfile::tempdir().unwrap();
    let engine = engine(home.path(), &[], &[]);
    let opened = open(&engine, &session(home.path(), 20));
    for (name, _) in BUILT_IN {
        for auto in [true, false] {
            let wish = with(ask(name), |it| {
                it.counting.window = Some(5_000);
                it.counting.overhead = Some(8_000);
                it.options.auto = auto;
            });
            let found = engine::compact(&engine, &opened, &wish).unwrap().answer();
            assert_eq!(found.status.name(), "noop", "{name}");
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
    let mut profile = epitome::profiles::built_in("claude-code").unwrap();
    profile.passes.retain(|it| matches!(it, Pass::Collapse(_)));
    let Pass::Collapse(step) = &mut profile.passes[0] else { panic!() };
    step.on = true;
    let made = engine::compact(&engine, &opened, &Ask { to: To::Bytes, ..Ask::new(profile) }).unwrap();
    assert_eq!(made.answer().status.name(), "compacted", "{}", made.answer().reason);
    let line = made.history().unwrap().messages()[0].plain();
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
    let answer = engine::compare(&engine, &opened, &ask("epitome")).unwrap();
    assert!(answer.tokens_before >= 50_000, "{}", answer.tokens_before);
    let names: Vec<&str> = answer.rows.iter().map(|it| it.profile.as_str()).collect();
    assert_eq!(names, BUILT_IN.iter().map(|it| it.0).collect::<Vec<_>>());
    let mut seen = Vec::new();
    for row in &answer.rows {
        assert_eq!(row.status.name(), "planned", "{}: {}", row.profile, row.reason);
        assert!(row.tokens_after < row.tokens_before && !row.due_reason.is_empty(), "{}", row.profile);
        let said = (row.split, row.pruned, row.messages_after, row.kept, row.lost);
        // Two rows that round to the same figures say the same to whoever reads them.
        let again = seen
            .iter()
            .any(|(it, tokens)| *it == said && row.tokens_after.abs_diff(*tokens) * 200 <= row.tokens_before);
        assert_eq!(again, row.same_as.is_some(), "{}", row.profile);
        assert_eq!(row.same_as.is_some(), !row.why_same.is_empty());
        seen.push((said, row.tokens_after));
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

fn text(messages: &[Value]) -> String {
    serde_json::to_string(messages).unwrap()
}

/// Compacts as `wish` says with an engine whose Gemini is a script; what was asked, and what came of it.
async fn scripted(
    home: &Path,
    config: &str,
    wish: Ask,
    text: String,
    does: impl Fn(usize) -> Does + Send + Sync + 'static,
) -> (Vec<server::Request>, epitome::engine::Compacted, Vec<Event>) {
    let (address, log) = server::serve(move |number, _| does(number)).await;
    let base = format!("http://{address}");
    let variables = [("GEMINI_API_KEY", server::KEY), ("GOOGLE_GEMINI_BASE_URL", base.as_str())];
    let mut engine = engine(home, &variables, &[(".config/epitome/config.toml", config)]);
    let heard = listening(&mut engine);
    let made =
        tokio::task::spawn_blocking(move || engine::compact(&engine, &open(&engine, &text), &wish).unwrap());
    let made = made.await.unwrap();
    let requests = log.requests.lock().unwrap().clone();
    let heard = heard.lock().unwrap().clone();
    (requests, made, heard)
}

/// By Gemini, which writes what it is told to.
fn by_gemini(name: &str) -> Ask {
    let summarizer = Choice::Provider("gemini".to_owned());
    with(ask(name), |it| {
        it.writer = Writer { summarizer, trusted: true, ..Writer::default() };
        it.counting.window = Some(20_000);
    })
}

/// The turns of a request to Gemini: who, and what.
fn turns(request: &server::Request) -> Vec<(String, String)> {
    let all = request.body["contents"].as_array().unwrap().iter();
    let said = |it: &Value| it["parts"][0]["text"].as_str().unwrap().to_owned();
    all.map(|it| (it["role"].as_str().unwrap().to_owned(), said(it))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_asked_in_the_profiles_own_words_and_checks_its_draft() {
    let home = tempfile::tempdir().unwrap();
    let answer = |_| Does::Sends(server::stream(Api::Gemini, SNAPSHOT));
    let wish =
        with(by_gemini("gemini-cli@0.61"), |it| it.counting.model = Some("gemini-3.5-flash".to_owned()));
    let messages = contents(0, 20);
    let (requests, made, _) = scripted(home.path(), "", wish.clone(), text(&messages), answer).await;
    assert_eq!(made.answer().status.name(), "compacted", "{}", made.answer().reason);
    assert!(made.warnings.iter().all(|it| !it.contains("offline")), "{:?}", made.warnings);
    assert_eq!(requests.len(), 2, "a draft and its check");
    let prompt = |name: &str| epitome::profiles::prompt(name).trim_end().to_owned();
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
    let summary = made.history().unwrap().messages()[0].plain();
    assert!(summary.contains("<state_snapshot>") && !summary.contains("Let me see."), "{summary}");

    // A snapshot is there already: it is merged, by other words.
    let after: Vec<Value> = serde_json::from_slice(made.bytes().unwrap()).unwrap();
    let longer = [after, contents(20, 20)].concat();
    let (requests, made, _) = scripted(home.path(), "", wish.clone(), text(&longer), answer).await;
    assert_eq!(made.answer().status.name(), "compacted", "{}", made.answer().reason);
    let first = turns(&requests[0]);
    assert!(first[0].1.contains(&prompt("gemini-cli@0.61/again.md")));
    assert!(!first[0].1.contains(&prompt("gemini-cli@0.61/ask.md")));
    assert!(first[0].1.contains(" earlier record]"));

    // The user's own model wins; a profile without a second call makes none.
    let config = "[summarizer.gemini]\nmodel = \"gemini-2.5-pro\"\n";
    let wish = Ask { profile: epitome::profiles::built_in("gemini-cli").unwrap(), ..wish };
    let (requests, _, _) = scripted(home.path(), config, wish, text(&messages), answer).await;
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
        let wish = with(by_gemini(name), |it| it.options.trigger = Some(Cause::Overflow));
        let (requests, _, _) = scripted(home().path(), "", wish, text(&messages), answer).await;
        let said = &turns(&requests[0])[0].1;
        assert!(said.contains(shown) && said.contains(words), "{name}: {said}");
        assert_eq!(said.contains("Look at module 0."), name == "learn-claude-code", "{name}");
    }
    // Its own step for an overflow: the five messages that stay are not summarised.
    let wish = with(by_gemini("learn-claude-code"), |it| it.options.trigger = Some(Cause::Overflow));
    let (requests, _, _) = scripted(home().path(), "", wish, text(&messages), answer).await;
    assert!(!turns(&requests[0])[0].1.contains("Look at module 19."));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_retry_is_told_and_a_profile_says_how_many() {
    let home = tempfile::tempdir().unwrap();
    let refuses = |_| Does::Sends(server::refusal(Api::Gemini, 503));
    let (requests, made, heard) =
        scripted(home.path(), "", by_gemini("claude-code"), text(&contents(0, 20)), refuses).await;
    assert_eq!(requests.len(), 3, "two retries");
    let retries: Vec<(u32, u32)> = heard
        .iter()
        .filter_map(|it| if let Event::Retry { number, of, .. } = it { Some((*number, *of)) } else { None })
        .collect();
    assert_eq!(retries, [(1, 2), (2, 2)]);
    assert!(matches!(heard.first(), Some(Event::Started { .. })));
    assert!(matches!(heard.last(), Some(Event::Compacted { .. })), "the offline summary stands in");
    assert!(made.warnings.iter().any(|it| it.contains("offline")), "{:?}", made.warnings);
    let config = "[summarizer]\ntries = 1\n";
    let (requests, _, heard) =
        scripted(home.path(), config, by_gemini("claude-code"), text(&contents(0, 20)), refuses).await;
    assert_eq!(requests.len(), 1);
    assert!(!heard.iter().any(|it| matches!(it, Event::Retry { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_wrote_is_used_even_if_it_cannot_be_counted() {
    let home = tempfile::tempdir().unwrap();
    let (address, log) = server::serve(|_, _| Does::Sends(server::stream(Api::Gemini, SNAPSHOT))).await;
    let base = format!("http://{address}");
    let variables = [("GEMINI_API_KEY", server::KEY), ("GOOGLE_GEMINI_BASE_URL", base.as_str())];
    let engine = engine(home.path(), &variables, &[]);
    // Nothing small can be noted any more; originals still can be archived.
    let database = rusqlite::Connection::open(home.path().join("store/epitome.db")).unwrap();
    database
        .execute_batch(
            "CREATE TRIGGER full BEFORE INSERT ON mark BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
        )
        .unwrap();
    let made = tokio::task::spawn_blocking(move || {
        engine::compact(&engine, &open(&engine, &text(&contents(0, 20))), &by_gemini("gemini-cli")).unwrap()
    });
    let made = made.await.unwrap();
    assert_eq!(log.requests.lock().unwrap().len(), 1);
    assert_eq!(made.answer().status.name(), "compacted", "{}", made.answer().reason);
    assert!(made.answer().summarizer.starts_with("gemini/"), "{}", made.answer().summarizer);
    let warned = made.warnings.iter().find(|it| it.contains("could not be counted"));
    assert!(warned.is_some_and(|it| it.contains("the disk is full")), "{:?}", made.warnings);
}

#[test]
fn over_mcp_what_happens_is_progress() {
    let mut client = crate::mcp::Client::legacy();
    let arguments = json!({"messages": contents(0, 20), "profile": "supermemory", "window": 20_000});
    let call = |token: Value| {
        let mut params = json!({"name": "summarize_history", "arguments": arguments});
        if !token.is_null() {
            params["_meta"] = json!({"progressToken": token});
        }
        json!({"jsonrpc": "2.0", "id": 90, "method": "tools/call", "params": params})
    };
    client.send(&call(json!("p1")));
    let mut said = Vec::new();
    let answer = loop {
        let message = client.read();
        if message["id"] == 90 {
            break message;
        }
        assert_eq!(
            (message["method"].as_str(), message["params"]["progressToken"].as_str()),
            (Some("notifications/progress"), Some("p1"))
        );
        said.push(message["params"].clone());
    };
    assert_eq!(answer["result"]["structuredContent"]["status"], "compacted", "{answer}");
    let words: Vec<&str> = said.iter().map(|it| it["message"].as_str().unwrap()).collect();
    let told: Vec<&&str> = words.iter().filter(|it| **it != "working on the session").collect();
    assert_eq!(told.len(), 3, "{words:?}");
    assert!(told[0].starts_with("Preemptive Compaction: Context at "), "{told:?}");
    assert!(told[1].starts_with("asking offline for a summary of at most "), "{told:?}");
    assert!(told[2].starts_with("Compaction Complete"), "{told:?}");
    let steps: Vec<f64> = said.iter().map(|it| it["progress"].as_f64().unwrap()).collect();
    assert!(steps.windows(2).all(|it| it[0] < it[1]), "{steps:?}");
    // Who asks for no progress gets none.
    client.send(&call(Value::Null));
    assert_eq!(client.read()["id"], 90);
}

#[test]
fn in_plain_messages_a_summary_is_known_as_one() {
    use epitome::history::Kind;
    use epitome::sessions::Format;
    const PIN: &str = "the port is 4711 and must not change";
    let home = tempfile::tempdir().unwrap();
    let engine = engine(home.path(), &[], &[]);
    let opened = open(&engine, &serde_json::to_string(&contents(0, 20)).unwrap());
    for (name, _) in BUILT_IN {
        for api in Format::ALL.into_iter().filter(|it| it.is_wire()) {
            let place = format!("{name} as {}", api.name());
            let wish =
                with(Ask { messages_as: Some(api), ..ask(name) }, |it| it.options.pin = vec![PIN.to_owned()]);
            let made = engine::compact(&engine, &opened, &wish).unwrap();
            assert_eq!(made.answer().status.name(), "compacted", "{place}: {}", made.answer().reason);
            let written: Vec<Value> = serde_json::from_slice(made.bytes().unwrap()).unwrap();
            let again = Format::named(api.name()).unwrap();
            let bytes = serde_json::to_vec(&written).unwrap();
            let read = engine::open(&engine, &SessionRef::Inline(bytes), Some(again), None).unwrap();
            let messages = read.session.history.messages();
            let summaries = messages.iter().filter(|it| it.kind == Kind::Summary).count();
            assert_eq!(
                summaries,
                1,
                "{place}: {:?}",
                messages.iter().map(|it| it.plain()).collect::<Vec<_>>()
            );
            let plain: Vec<String> =
                messages.iter().filter(|it| it.is_prompt()).map(|it| it.plain()).collect();
            assert!(!plain.iter().any(|it| it == "What did we do so far?"), "{place}: {plain:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_reads_what_the_plan_shortens_and_opencodes_reads_the_beginning() {
    let output = |letter: &str| format!("{}END", letter.repeat(170_000));
    let part = |role: &str, part: Value| json!({"role": role, "parts": [part]});
    let mut messages = vec![part("user", json!({"text": "Look for it."}))];
    for letter in ["a", "b"] {
        messages.push(part("model", json!({"functionCall": {"name": "grep", "args": {"pattern": letter}}})));
        let response = json!({"name": "grep", "response": {"output": output(letter)}});
        messages.push(part("user", json!({"functionResponse": response})));
        messages.push(part("model", json!({"text": "Found."})));
        messages.push(part("user", json!({"text": "Go on."})));
    }
    messages.extend(contents(0, 20));
    let answer = |_| Does::Sends(server::stream(Api::Gemini, "nothing of use"));
    let asked = async |name: &str| {
        let home = tempfile::tempdir().unwrap();
        let wish = with(by_gemini(name), |it| it.counting.window = Some(1_048_576));
        let (requests, made, _) = scripted(home.path(), "", wish, text(&messages), answer).await;
        (turns(&requests[0])[0].1.clone(), made)
    };
    // What stands in the new history is cut; the summarizer reads all of it.
    let (said, _) = asked("gemini-cli@0.61").await;
    assert!(said.contains(&output("a")), "{}", said.len());
    let (said, _) = asked("opencode@1.18").await;
    assert!(
        said.contains(&format!("{}\n[truncated]", "a".repeat(2_000))) && !said.contains(&"a".repeat(2_001))
    );
    assert!(!said.contains("END"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_model_wrote_of_a_session_is_not_asked_for_twice() {
    let home = tempfile::tempdir().unwrap();
    let written = format!(
        "<summary>\n{}</summary>",
        epitome::profiles::built_in("codex").unwrap().summarize().unwrap().summary.sections.iter().fold(
            String::new(),
            |out, it| format!(
                "{out}## {}\n- Please look at the modules; src/module_1.rs was changed\n",
                it.title
            )
        )
    );
    let answer = move |_| Does::Sends(server::stream(Api::Gemini, &written));
    let session = session(home.path(), 20);
    let wish = || by_gemini("codex");
    let (requests, made, _) = scripted(home.path(), "", wish(), session.clone(), answer.clone()).await;
    assert_eq!(requests.len(), 1);
    assert!(made.answer().summarizer.starts_with("gemini/"), "{:?}", made.warnings);
    // The profile that looks for a stored one first finds it; what was asked for besides must be said anew.
    let wish = || by_gemini("claude-code");
    let (requests, made, heard) = scripted(home.path(), "", wish(), session.clone(), answer.clone()).await;
    assert_eq!((requests.len(), made.answer().status.name()), (0, "compacted"), "{}", made.answer().reason);
    assert!(made.answer().reason.contains("stored snapshot"), "{}", made.answer().reason);
    assert!(made.answer().summary.unwrap().contains("src/module_1.rs was changed"));
    assert!(!heard.iter().any(|it| matches!(it, Event::Asked { .. })));
    let pinned = with(wish(), |it| it.options.pin = vec!["the port is 4711".to_owned()]);
    let (requests, made, _) = scripted(home.path(), "", pinned, session, answer).await;
    assert!(!requests.is_empty() && made.answer().summary.unwrap().contains("the port is 4711"));
}

#[test]
fn files_come_back_from_disk_only_when_asked_and_only_from_the_project() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    std::fs::create_dir_all(project.join("src")).unwrap();
    std::fs::write(project.join("src/a.rs"), "as it is on disk").unwrap();
    std::fs::write(home.path().join("secret.txt"), "outside of the project").unwrap();
    let text = {
        let row = |number: usize, kind: &str, content: Value| {
            json!({"type": kind, "uuid": format!("u{number}"), "parentUuid": (number > 0).then(|| format!("u{}", number - 1)),
                "sessionId": "5e55", "cwd": &project, "isSidechain": false, "userType": "external", "version": "2.1.0",
                "timestamp": "2025-11-14T22:13:20.000Z", "message": {"role": kind, "id": format!("m{number}"), "content": content}})
        };
        let mut rows = vec![row(0, "user", json!("Look at the files."))];
        for (number, path) in ["src/a.rs", "../secret.txt"].iter().enumerate() {
            let path = project.join(path);
            rows.push(row(2 * number + 1, "assistant", json!([{"type": "tool_use", "id": format!("t{number}"), "name": "Read", "input": {"file_path": path}}])));
            rows.push(row(2 * number + 2, "user", json!([{"type": "tool_result", "tool_use_id": format!("t{number}"), "content": "as it was read"}])));
        }
        rows.push(row(5, "assistant", json!([{"type": "text", "text": "I read them. ".repeat(2_000)}])));
        rows.iter().map(|it| format!("{it}\n")).collect::<String>()
    };
    let engine_in = |cwd: &Path| {
        let mut engine = engine(home.path(), &[], &[]);
        engine.config.agents.cwd = cwd.to_owned();
        engine
    };
    let said = |engine: &Engine, from_disk: bool| {
        let made = engine::compact(
            engine,
            &open(engine, &text),
            &with(ask("claude-code"), |it| it.options.files_from_disk = from_disk),
        )
        .unwrap();
        let all = made.history().unwrap();
        all.messages().iter().map(|it| it.plain()).collect::<Vec<_>>().join("\n")
    };
    let there = engine_in(&project);
    let kept = said(&there, false);
    assert!(kept.contains("a.rs\nas it was read") && !kept.contains("on disk"), "{kept}");
    let kept = said(&there, true);
    assert!(kept.contains("a.rs\nas it is on disk") && !kept.contains("outside of the project"), "{kept}");
    assert!(kept.contains("secret.txt\nas it was read"), "{kept}");
    // A session file that somebody else made does not choose the folder.
    let kept = said(&engine_in(&home.path().join("elsewhere")), true);
    assert!(!kept.contains("on disk"), "{kept}");
}

#[test]
fn the_profile_in_the_readme_works() {
    let readme = include_str!("../../README.md");
    let (_, behind) = readme.split_once("```toml\n").unwrap();
    let (text, _) = behind.split_once("```").unwrap();
    let home = tempfile::tempdir().unwrap();
    let engine = engine(home.path(), &[], &[]);
    let file = home.path().join("mine.toml");
    std::fs::write(&file, text).unwrap();
    let profile = engine.config.profile(file.to_str().unwrap()).unwrap();
    assert_eq!((profile.name.as_str(), profile.trigger.share), ("mine", Some(0.4)));
    assert_eq!(profile.native.compacted, "COMPRESSED", "what it does not say is as in the one it extends");
    let opened = open(&engine, &session(home.path(), 20));
    let made =
        engine::compact(&engine, &opened, &Ask { to: To::Bytes, ..Ask::new(profile) }).unwrap().answer();
    assert_eq!(
        (made.status.name(), made.native_status.as_str()),
        ("compacted", "COMPRESSED"),
        "{}",
        made.reason
    );
    let summary = made.summary.unwrap();
    assert!(summary.contains("## Files") && summary.contains("src/module_1.rs"), "{summary}");
    // A name that nobody knows: the user's own are listed too.
    let config = "[profiles.mine]\nextends = \"codex\"\nname = \"mine\"\n[profiles.bad]\nextends = \"codex\"\nnmae = 3\n";
    let engine = self::engine(home.path(), &[], &[(".config/epitome/config.toml", config)]);
    let error = engine.config.profile("mein").unwrap_err().to_string();
    assert!(error.contains("(mine, ") || error.contains("(bad, mine, epitome, "), "{error}");
    let error = engine.config.profile("bad").unwrap_err().to_string();
    assert!(error.contains("config.toml, [profiles.bad]") && error.contains("nmae"), "{error}");
}

#[test]
fn gemini_clis_hook_before_a_compression_keeps_the_original_and_says_nothing() {
    let home = tempfile::tempdir().unwrap();
    let engine = engine(home.path(), &[], &[]);
    let file = home.path().join("session-2026-05-28T20-26-3d0c7a52.jsonl");
    let id = "3d0c7a52-6f1e-4c58-9a41-0b8e5f2c7d10";
    let bytes = include_bytes!("../../examples/sessions/gemini-cli.jsonl");
    std::fs::write(&file, bytes).unwrap();
    for trigger in ["manual", "auto"] {
        let said = json!({"session_id": id, "transcript_path": file, "cwd": home.path(),
            "hook_event_name": "PreCompress", "timestamp": "2026-05-28T20:40:00.000Z", "trigger": trigger});
        let event = epitome::agents::hooks::read(&said.to_string(), None).unwrap();
        let text = engine::hook(&engine, &event).unwrap();
        // It is advisory, and fires at every check: no word of ours, and nothing that would block.
        assert_eq!((text.as_str(), event.answer(&text).as_str()), ("", ""), "{trigger}");
        let project = std::fs::canonicalize(home.path()).unwrap().display().to_string();
        let scope = Scope { owner: engine.config.owner.clone(), project };
        let handle = engine.store.marked(&scope, &format!("before/{id}")).unwrap().unwrap().value;
        let scope = engine.store.locate(&handle, &engine.config.owner).unwrap();
        assert_eq!(engine.store.restore(&scope, &handle).unwrap(), bytes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_remembered_of_the_project_goes_into_the_next_summary() {
    use epitome::store::NewMemory;
    let home = tempfile::tempdir().unwrap();
    let session = session(home.path(), 20);
    {
        let engine = engine(home.path(), &[], &[]);
        let project = home.path().join("project").display().to_string();
        let scope = Scope { owner: engine.config.owner.clone(), project };
        for number in 0..12 {
            let note = NewMemory {
                content: format!("The build wants flag number {number}."),
                ..NewMemory::default()
            };
            engine.store.remember(&scope, &note, NOW + number).unwrap();
        }
        let summary =
            engine::compact(&engine, &open(&engine, &session), &ask("supermemory")).unwrap().answer().summary;
        let summary = summary.unwrap();
        let said = |it: i32| summary.contains(&format!("flag number {it}."));
        assert!((2..12).all(said) && !said(0) && !said(1), "the newest ten: {summary}");
    }
    let home = home.path();
    let (requests, _, _) = scripted(home, "", by_gemini("supermemory"), session, |_| {
        Does::Sends(server::stream(Api::Gemini, "nothing of use"))
    })
    .await;
    assert!(turns(&requests[0])[0].1.contains("The build wants flag number 11."));
}
