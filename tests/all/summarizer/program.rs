//! The program itself: a provider that fails, one that answers, the calling agent's model in two calls, the user's editor.

use std::path::Path;
use std::process::{Command, Output};

use epitome::compaction::summary::model::Api;
use serde_json::Value;

use super::server::{Does, KEY, http, refusal, serve, stream};

fn epitome(home: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_epitome"))
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .envs(variables.iter().copied())
        .args(arguments)
        .output()
        .unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// A session of plain messages, long enough to be compacted.
fn session(home: &Path) -> String {
    let mut messages = vec![
        serde_json::json!({"role": "user", "content": "Fix the parser in src/parse.rs. Never touch the files in vendor/, they are not ours."}),
    ];
    for number in 0..60 {
        messages.push(serde_json::json!({"role": "assistant", "content": format!("Step {number}: {}", "I looked at the parser and wrote it down. ".repeat(20))}));
        messages.push(
            serde_json::json!({"role": "user", "content": format!("Go on with step {number}, please.")}),
        );
    }
    let path = home.join("session.json");
    std::fs::write(&path, serde_json::to_string(&messages).unwrap()).unwrap();
    path.to_str().unwrap().to_owned()
}

const WRITTEN: &str = "<summary>\n## Goal\n- Fix the parser in src/parse.rs\n## Rules\n- Never touch the files in vendor/\n## Last request and what is open\n- Go on with the steps\n## State of the work\n- the parser was looked at step by step\n</summary>";

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_refuses_leaves_the_offline_summary() {
    let home = tempfile::tempdir().unwrap();
    let session = session(home.path());
    let (address, log) = serve(|_, _| Does::Sends(refusal(Api::Anthropic, 401))).await;
    let base = format!("http://{address}");
    let variables = [("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", base.as_str())];
    let arguments = ["compact", &session, "--budget", "20%", "--json", "--summarizer", "anthropic"];
    for count in 1..=4 {
        let output = epitome(home.path(), &variables, &arguments);
        let answer = json(&output);
        assert_eq!(
            (answer["status"].as_str(), answer["summarizer"].as_str()),
            (Some("compacted"), Some("offline"))
        );
        let warnings = answer["warnings"].to_string();
        let expected =
            if count < 4 { "check the key in ANTHROPIC_API_KEY" } else { "failed 3 times in a row" };
        assert!(
            warnings.contains(expected) && warnings.contains("the offline summary was written"),
            "{warnings}"
        );
        let all = [output.stdout, output.stderr].concat();
        assert!(!String::from_utf8_lossy(&all).contains(KEY));
    }
    assert_eq!(log.requests.lock().unwrap().len(), 3);
    // Nothing is sent unasked, with a key or without.
    let answer = json(&epitome(home.path(), &variables, &["compact", &session, "--budget", "20%", "--json"]));
    assert_eq!(answer["summarizer"], "offline");
    let answer = json(&epitome(home.path(), &[], &arguments));
    assert!(
        answer["warnings"].to_string().contains("set it, or use --summarizer offline"),
        "{}",
        answer["warnings"]
    );
    assert_eq!(log.requests.lock().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_answers_is_named_with_what_it_took() {
    let home = tempfile::tempdir().unwrap();
    let session = session(home.path());
    let (address, _) = serve(|_, _| Does::Sends(stream(Api::Anthropic, WRITTEN))).await;
    let base = format!("http://{address}");
    let variables = [
        ("ANTHROPIC_API_KEY", KEY),
        ("ANTHROPIC_BASE_URL", base.as_str()),
        ("EDITOR", "sed -i s/vendor/vendors/"),
    ];
    let output = epitome(
        home.path(),
        &variables,
        &["compact", &session, "--budget", "20%", "--json", "--summarizer", "auto"],
    );
    let answer = json(&output);
    assert_eq!(answer["summarizer"], "anthropic/model-x-1", "{answer}");
    assert_eq!(
        answer["usage"],
        serde_json::json!({"requests": 1, "input": 100, "output": 50, "cache_read": 10})
    );
    assert!(answer["summary"].as_str().unwrap().contains("the parser was looked at step by step"));
    assert!(
        answer["warnings"].to_string().contains("100 tokens were sent to anthropic/"),
        "{}",
        answer["warnings"]
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains("asking the model"));
    let arguments = ["compact", &session, "--budget", "20%", "--json", "--summarizer", "anthropic", "--edit"];
    let summary = json(&epitome(home.path(), &variables, &arguments))["summary"].as_str().unwrap().to_owned();
    assert!(summary.contains("- Never touch the files in vendors/ [the user's own words]"), "{summary}");
}

#[test]
fn the_calling_agents_model_writes_in_two_calls() {
    let home = tempfile::tempdir().unwrap();
    let session = session(home.path());
    let asked = json(&epitome(
        home.path(),
        &[],
        &["compact", &session, "--budget", "20%", "--json", "--summarizer", "host"],
    ));
    assert_eq!(asked["status"], "needs_answer", "{asked}");
    assert!(asked["ask"].as_str().unwrap().contains("## Rules"));
    let handle = asked["handle"].as_str().unwrap();
    // The session goes on meanwhile.
    let mut messages: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&session).unwrap()).unwrap();
    messages.push(serde_json::json!({"role": "assistant", "content": "Something new was said."}));
    std::fs::write(&session, serde_json::to_string(&messages).unwrap()).unwrap();
    let answer = home.path().join("answer.md");
    std::fs::write(&answer, WRITTEN).unwrap();
    let arguments = ["compact", "--json", "--handle", handle, "--answer", answer.to_str().unwrap(), "--out"];
    let out = home.path().join("out.json");
    let done = json(&epitome(home.path(), &[], &[&arguments[..], &[out.to_str().unwrap()]].concat()));
    assert_eq!(
        (done["status"].as_str(), done["summarizer"].as_str()),
        (Some("compacted"), Some("host")),
        "{done}"
    );
    let written = std::fs::read_to_string(&out).unwrap();
    assert!(written.contains("looked at step by step") && written.contains("Something new was said."));
    // Another session under the same name is not answered for.
    std::fs::write(&session, "[{\"role\":\"user\",\"content\":\"something else\"}]").unwrap();
    let refused = epitome(home.path(), &[], &arguments[..6]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("start over"));
}

#[test]
fn what_the_first_call_said_holds_in_the_second() {
    let home = tempfile::tempdir().unwrap();
    let session = session(home.path());
    let file = home.path().join("answer.md");
    std::fs::write(&file, WRITTEN).unwrap();
    let asks = |more: &[&str]| {
        let first = ["compact", &session, "--budget", "5%", "--summarizer", "host"];
        epitome(home.path(), &[], &[&first[..], more].concat())
    };
    let answers = |handle: &str, more: &[&str]| {
        let second = ["compact", "--handle", handle, "--answer", file.to_str().unwrap()];
        epitome(home.path(), &[], &[&second[..], more].concat())
    };
    // As a person sees it: what is asked, and how it goes on.
    let handle = |output: &Output| {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("## Rules"), "{said}");
        said.split_once("--handle ").unwrap().1.split(' ').next().unwrap().to_owned()
    };
    // Where it goes.
    let out = home.path().join("out.json");
    let asked = handle(&asks(&["--out", out.to_str().unwrap()]));
    assert!(!out.exists());
    let done = answers(&asked, &[]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(std::fs::read_to_string(&out).unwrap().contains("looked at step by step"));
    let asked = handle(&asks(&["--out", "-"]));
    let written: Value = json(&answers(&asked, &[]));
    assert!(written.to_string().contains("looked at step by step"), "{written}");
    // What must be kept.
    let asked = json(&asks(&["--json", "--min-kept", "1"]));
    let asked = asked["handle"].as_str().unwrap();
    let lost = answers(asked, &["--json"]);
    assert_eq!((lost.status.code(), json(&lost)["reason_code"].as_str()), (Some(1), Some("lost_too_much")));
    // What is said again is not done, and that is said.
    for more in [
        &["--min-kept", "0.5"][..],
        &["--edit"],
        &["--auto"],
        &["--budget", "9%"],
        &["--as", "anthropic"],
        &["--summarizer", "offline"],
    ] {
        let refused = answers(asked, more);
        let why = String::from_utf8_lossy(&refused.stderr);
        let says = format!("found {}; the first call set", more[0]);
        assert!(refused.status.code() == Some(2) && why.contains(&says), "{more:?}: {why}");
    }
    let refused = asks(&["--edit"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("edit the file"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_would_cost_is_told_without_asking() {
    let home = tempfile::tempdir().unwrap();
    let messages = session(home.path());
    let (address, log) = serve(|_, _| Does::Sends(stream(Api::Anthropic, WRITTEN))).await;
    let base = format!("http://{address}");
    let variables = [("ANTHROPIC_API_KEY", KEY)];
    let asked =
        ["--budget", "20%", "--json", "--summarizer", "anthropic/claude-haiku-4-5", "--base-url", &base];
    let run = |session: &str, more: &[&str]| {
        json(&epitome(home.path(), &variables, &[&["compact", session], &asked[..], more].concat()))
    };
    let answer = run(&messages, &["--dry-run"]);
    assert_eq!(
        (answer["status"].as_str(), answer["summarizer"].as_str()),
        (Some("planned"), Some("offline"))
    );
    let cost = &answer["cost"];
    assert_eq!(cost["form"], "own", "{cost}");
    assert!(cost["own_dollars"].as_f64().unwrap() > 0.0 && cost["prefix_dollars"].is_null(), "{cost}");
    assert!(cost["prices"].as_str().unwrap().contains(", https://"), "{cost}");
    assert!(cost["why"].as_str().unwrap().contains("only the messages"), "{cost}");
    assert!(log.requests.lock().unwrap().is_empty());
    // A whole request of the same model: its prefix can be asked behind, and pays back.
    let list: Value = serde_json::from_str(&std::fs::read_to_string(&messages).unwrap()).unwrap();
    let whole = serde_json::json!({"model": "claude-haiku-4-5", "system": "You are a coding agent.", "messages": list});
    let request = home.path().join("request.json");
    std::fs::write(&request, whole.to_string()).unwrap();
    let request = request.to_str().unwrap();
    let cost = run(request, &["--dry-run"])["cost"].take();
    assert!(cost["prefix_dollars"].is_f64() && cost["pays_after_turns"].as_u64().unwrap() >= 1, "{cost}");
    assert!(log.requests.lock().unwrap().is_empty());
    // What was spent is told afterwards: 90 tokens in, 10 from the cache, 50 out.
    let cost = run(request, &[])["cost"].take();
    assert_eq!(cost["spent_dollars"], 0.0003, "{cost}");
    assert_eq!(log.requests.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_the_hour_hold() {
    let home = tempfile::tempdir().unwrap();
    let session = session(home.path());
    let (address, log) = serve(|_, _| Does::Sends(stream(Api::Anthropic, WRITTEN))).await;
    let base = format!("http://{address}");
    let variables = [("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", base.as_str())];
    let folder = home.path().join(".config/epitome");
    std::fs::create_dir_all(&folder).unwrap();
    let arguments = ["compact", &session, "--budget", "20%", "--json", "--summarizer", "anthropic"];
    let limits = [
        ("tokens-per-hour = 100", "limit of 100 tokens an hour"),
        ("dollars-per-hour = 0.0001", "limit of $0.0001 an hour"),
    ];
    for (limit, says) in limits {
        let before = log.requests.lock().unwrap().len();
        std::fs::write(folder.join("config.toml"), "").unwrap();
        let answer = json(&epitome(home.path(), &variables, &arguments));
        assert_eq!(answer["summarizer"], "anthropic/model-x-1", "{answer}");
        std::fs::write(folder.join("config.toml"), format!("[summarizer]\n{limit}\n")).unwrap();
        let answer = json(&epitome(home.path(), &variables, &arguments));
        assert_eq!(answer["summarizer"], "offline");
        assert!(answer["warnings"].to_string().contains(says), "{}", answer["warnings"]);
        assert_eq!(log.requests.lock().unwrap().len(), before + 1);
    }
    std::fs::write(folder.join("config.toml"), "[summarizer]\ndollars-per-call = 0.000001\n").unwrap();
    let answer = json(&epitome(home.path(), &variables, &arguments));
    assert_eq!(answer["summarizer"], "offline", "{}", answer["warnings"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_the_hour_that_cannot_be_counted_asks_nobody() {
    let home = tempfile::tempdir().unwrap();
    let session = session(home.path());
    let (address, log) = serve(|_, _| Does::Sends(stream(Api::Anthropic, WRITTEN))).await;
    let base = format!("http://{address}");
    let folder = home.path().join(".config/epitome");
    std::fs::create_dir_all(&folder).unwrap();
    // Instead of the store's folder: it cannot be opened.
    let broken = home.path().join("broken");
    std::fs::write(&broken, "no folder").unwrap();
    let run = |model: &str, limit: &str, more: &[(&str, &str)], store: &[&str]| {
        std::fs::write(folder.join("config.toml"), format!("[summarizer]\n{limit}\n")).unwrap();
        let variables = [&[("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", base.as_str())], more].concat();
        let arguments = ["compact", &session, "--budget", "20%", "--summarizer", model];
        let output = epitome(home.path(), &variables, &[&arguments[..], store].concat());
        let asked = !std::mem::take(&mut *log.requests.lock().unwrap()).is_empty();
        (String::from_utf8_lossy(&output.stdout).into_owned(), asked)
    };
    let none = [("EPITOME_PERSISTENCE", "none")];
    let model = "anthropic/claude-haiku-4-5";
    for limit in ["tokens-per-hour = 1000000", "dollars-per-hour = 5.0", "seconds-per-hour = 3600"] {
        for (more, store) in [(&none[..], &[][..]), (&[], &["--store", broken.to_str().unwrap()])] {
            let (said, asked) = run(model, limit, more, store);
            let name = limit.split(' ').next().unwrap();
            assert!(
                !asked && said.contains(&format!("summarizer.{name}: expected a persistent store")),
                "{said}"
            );
        }
        assert!(run(model, limit, &[], &[]).1, "{limit}: a store that keeps counts");
    }
    assert!(run(model, "", &none, &[]).1, "no limit");
    assert!(run("anthropic/of-no-known-price", "dollars-per-hour = 5.0", &none, &[]).1, "nothing to count");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_counts_what_the_session_has() {
    let home = tempfile::tempdir().unwrap();
    let session = session(home.path());
    let secret = "AKIAIOSFODNN7EXAMPLQ";
    let mut messages: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&session).unwrap()).unwrap();
    messages
        .push(serde_json::json!({"role": "assistant", "content": format!("aws_access_key_id = {secret}")}));
    std::fs::write(&session, serde_json::to_string(&messages).unwrap()).unwrap();
    let (address, log) = serve(|_, request| {
        let body: &[u8] = if request.head.contains("countTokens") {
            b"{\"totalTokens\": 4321}"
        } else {
            b"{\"input_tokens\": 4321}"
        };
        Does::Sends(http("200 OK", "application/json", "", body))
    })
    .await;
    let base = format!("http://{address}");
    let variables = [("ANTHROPIC_API_KEY", KEY), ("OPENAI_API_KEY", KEY), ("GEMINI_API_KEY", KEY)];
    let paths = [
        ("anthropic", "/v1/messages/count_tokens"),
        ("openai", "/v1/responses/input_tokens"),
        ("gemini", ":countTokens"),
    ];
    for (name, path) in paths {
        let method = format!("provider:{name}");
        let arguments = ["estimate", &session, "--method", &method, "--base-url", &base, "--json"];
        let output = epitome(home.path(), &variables, &arguments);
        let answer = json(&output);
        assert_eq!(
            (answer["tokens"].as_u64(), answer["method"]["kind"].as_str()),
            (Some(4321), Some("exact"))
        );
        assert!(answer["method"]["estimator"].as_str().unwrap().starts_with(name), "{answer}");
        let request = log.requests.lock().unwrap().last().unwrap().clone();
        assert!(request.head.contains(path), "{}", request.head);
        let body = request.body.to_string();
        assert!(body.contains("I looked at the parser") && !body.contains(secret), "{name}: {body}");
    }
    let output = epitome(home.path(), &[], &["estimate", &session, "--method", "provider", "--json"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("expected a provider's key"));
}
