//! What a compaction says of why it ran.

use serde_json::{Value, json};

use crate::apply::{answer, epitome, home};
use crate::mcp::{self, Client};

/// A session of which the profile's own trigger says that it is due.
const DUE: [&str; 4] = ["--window", "32k", "--profile", "epitome"];

#[test]
fn auto_is_told_and_written_as_auto() {
    let marks = [
        ("claude-code", r#""trigger":"auto""#, r#""trigger":"manual""#),
        ("opencode", r#""auto":true"#, r#""auto":false"#),
    ];
    for (agent, automatic, manual) in marks {
        let home = home(agent);
        let example = mcp::example(if agent == "opencode" { "opencode.json" } else { "claude-code.jsonl" });
        let written = home.path().join("written");
        for (flags, said, mark, other) in [
            (&["--auto"][..], "auto", automatic, manual),
            (&[], "manual", manual, automatic),
            (&["--auto", "--trigger", "manual"], "manual", manual, automatic),
            (&["--trigger", "overflow"], "overflow", automatic, manual),
        ] {
            let mut words =
                vec!["compact", example.to_str().unwrap(), "--json", "--out", written.to_str().unwrap()];
            words.extend(DUE);
            words.extend(flags);
            let answer = answer(&epitome(home.path(), &words));
            assert_eq!(
                (&answer["status"], &answer["trigger"]),
                (&json!("compacted"), &json!(said)),
                "{answer}"
            );
            let text = std::fs::read_to_string(&written).unwrap();
            assert!(text.contains(mark) && !text.contains(other), "{agent} {flags:?}");
            std::fs::remove_file(&written).unwrap();
        }
    }
}

#[test]
fn tools_know_auto_and_the_least_that_is_kept() {
    let mut client = Client::legacy();
    let session = mcp::example("claude-code.jsonl");
    let call = |more: Value| {
        let mut arguments = json!({"session": session, "window": "32k"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let done = client.call("summarize_history", call(json!({"auto": true, "to": "file"})));
    assert_eq!(done["status"], "compacted", "{done}");
    let written = std::fs::read_to_string(done["output"].as_str().unwrap()).unwrap();
    assert!(written.contains(r#""trigger":"auto""#), "{done}");
    let refused = client.call("summarize_history", call(json!({"min_kept": "1", "budget": "600"})));
    assert_eq!(
        (&refused["status"], &refused["reason_code"]),
        (&json!("rejected"), &json!("lost_too_much")),
        "{refused}"
    );
    let wrong = client.refusal("summarize_history", call(json!({"min_kept": "much"})));
    assert!(wrong.contains("min_kept"), "{wrong}");
}
