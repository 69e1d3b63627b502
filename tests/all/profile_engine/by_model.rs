//! A summary by a provider's model, which is a script here.

use std::path::Path;

use epitome::compaction::plan::Cause;
use epitome::compaction::summary::model::Api;
use epitome::config::Choice;
use epitome::engine::{self, Ask, Event, Writer};
use epitome::store::NewMemory;
use serde_json::{Value, json};

use super::{NOW, ask, contents, engine_at, listening, open, scope, session, text, with};
use crate::summarizer::server::{self, Does};

const SNAPSHOT: &str = "<scratchpad>Let me see.</scratchpad>\n<state_snapshot>\n<overall_goal>\nLook at the modules\n\
    </overall_goal>\n<active_constraints>\n- Never change the ports\n</active_constraints>\n<key_knowledge>\n- they keep \
    the clock\n</key_knowledge>\n<task_state>\n- [TODO] the next module\n</task_state>\n</state_snapshot>";

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
    let mut engine = engine_at(home, &variables, &[(".config/epitome/config.toml", config)]);
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
    assert!(made.about.warnings.iter().all(|it| !it.contains("offline")), "{:?}", made.about.warnings);
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
    assert!(made.about.warnings.iter().any(|it| it.contains("offline")), "{:?}", made.about.warnings);
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
    let engine = engine_at(home.path(), &variables, &[]);
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
    let warned = made.about.warnings.iter().find(|it| it.contains("could not be counted"));
    assert!(warned.is_some_and(|it| it.contains("the disk is full")), "{:?}", made.about.warnings);
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
    assert!(made.answer().summarizer.starts_with("gemini/"), "{:?}", made.about.warnings);
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

#[tokio::test(flavor = "multi_thread")]
async fn what_is_remembered_of_the_project_goes_into_the_next_summary() {
    let home = tempfile::tempdir().unwrap();
    let session = session(home.path(), 20);
    {
        let engine = engine_at(home.path(), &[], &[]);
        let scope = scope(&engine, home.path());
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
