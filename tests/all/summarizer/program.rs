//! The program itself: a provider that fails, one that answers, the calling agent's model in two calls, the user's editor.

use std::path::Path;
use std::process::{Command, Output};

use epitome::summarizer::model::Api;
use serde_json::Value;

use super::server::{Does, KEY, refusal, serve, stream};

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
    assert!(String::from_utf8_lossy(&refused.stderr).contains("ask again"));
}
