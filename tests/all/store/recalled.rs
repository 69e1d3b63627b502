//! What `recall` finds first in an archive: what the user said and what was decided, not what only repeats the words.

use serde_json::{Value, json};

use super::program::{answer, command, keep};

/// A session in which the cache is talked about, decided on, printed by tools, searched for by us and summarised.
fn session(project: &std::path::Path) -> String {
    let (mut out, mut parent, mut number) = (String::new(), Value::Null, 0);
    let mut line = |kind: &str, meta: bool, content: Value| {
        number += 1;
        let uuid = format!("00000000-0000-4000-8000-{number:012}");
        let mut message = json!({"role": kind, "content": content});
        if kind == "assistant" {
            (message["id"], message["model"]) = (json!(format!("m{number}")), json!("claude-x"));
        }
        let mut row = json!({"parentUuid": parent, "isSidechain": false, "cwd": project, "sessionId": "cached", "version": "2.1.328",
            "type": kind, "message": message, "uuid": uuid, "timestamp": format!("2026-01-01T00:{:02}:{:02}.000Z", number / 60, number % 60)});
        if meta {
            row["isMeta"] = json!(true);
        }
        parent = json!(uuid);
        out.push_str(&format!("{row}\n"));
    };
    let filler = "The gate listens on its port and answers. ".repeat(60);
    line(
        "user",
        true,
        json!("<system-reminder>We always decide about the cache in AGENTS.md.</system-reminder>"),
    );
    line("user", false, json!("Make the build faster."));
    line(
        "assistant",
        false,
        json!([{"type": "text", "text": format!("The cache could be keyed by content or by path. {filler}")}]),
    );
    line("user", false, json!("Key the cache by path, never by content: paths are stable here."));
    line("assistant", false, json!([{"type": "text", "text": "Agreed: the cache is keyed by path."}]));
    for turn in 0..8 {
        let id = format!("t{turn}");
        line(
            "assistant",
            false,
            json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "cat cache.log"}}]),
        );
        let output = format!("cache hit {turn}\n").repeat(120) + &filler;
        line("user", false, json!([{"type": "tool_result", "tool_use_id": id, "content": output}]));
    }
    line(
        "assistant",
        false,
        json!([{"type": "tool_use", "id": "own", "name": "mcp__epitome__recall", "input": {"query": "what did we decide about the cache"}}]),
    );
    line(
        "user",
        false,
        json!([{"type": "tool_result", "tool_use_id": "own", "content": "{\"hits\":[],\"text\":\"decide cache\"}"}]),
    );
    line("assistant", false, json!([{"type": "text", "text": format!("Next the lints. {filler}")}]));
    line("user", false, json!("Go on with the lints."));
    line("assistant", false, json!([{"type": "text", "text": "Done."}]));
    out
}

#[test]
fn what_was_decided_comes_first_and_what_only_repeats_it_last() {
    let folder = tempfile::tempdir().unwrap();
    let home = std::fs::canonicalize(folder.path()).unwrap();
    let project = home.join("p");
    std::fs::create_dir_all(&project).unwrap();
    let path = keep(&home, &project, "claude-code", "cached", session(&project).as_bytes());
    let run = |arguments: &[&str]| {
        answer(&command(&home, &project, &[arguments, &["--json"]].concat()).output().unwrap())
    };
    let done = run(&["compact", path.to_str().unwrap(), "--budget", "1500", "--apply"]);
    assert_eq!(done["status"], "compacted", "{done}");
    let hits = |query: &str| -> Vec<(String, String)> {
        let found = run(&["recall", query, "--limit", "20"]);
        let hit = |it: &Value| {
            (it["kind"].as_str().unwrap().to_owned(), it["snippet"]["text"].as_str().unwrap().to_owned())
        };
        found["hits"].as_array().unwrap().iter().map(hit).collect()
    };
    for query in ["what did we decide about the cache", "Which cache decision was made?"] {
        let found = hits(query);
        assert!(found[0].1.contains("[user] Key the cache by path, never by content"), "{query}: {found:#?}");
        assert!(found[1].1.contains("Agreed: the cache is keyed by path"), "{query}: {found:#?}");
        assert!(
            found.iter().all(|it| !it.1.contains("mcp__epitome__recall") && !it.1.contains("AGENTS.md")),
            "{found:#?}"
        );
        let summary = found.iter().position(|it| it.0 == "compaction");
        assert!(summary.is_none_or(|it| it + 1 == found.len()), "{found:#?}");
    }
    // Without the word for it, the user's own words still come before the many outputs.
    assert!(hits("the cache")[0].1.contains("[user] Key the cache by path"));
    // Nothing holds all words: most of them will do, and it is said.
    let some = run(&["recall", "cache path invalidation"]);
    assert_eq!(some["partial"], true, "{some}");
    assert!(some["hits"][0]["snippet"]["text"].as_str().unwrap().contains("cache"), "{some}");
    // All pages together hold everything once.
    let all = hits("the cache").len();
    let mut paged = 0;
    while paged < all {
        let page = run(&["recall", "the cache", "--limit", "2", "--offset", &paged.to_string()]);
        let found = page["hits"].as_array().unwrap().len();
        assert!(found > 0, "{page}");
        paged += found;
    }
    assert_eq!(paged, all);
}

#[test]
fn what_a_sealed_compaction_replaced_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let home = std::fs::canonicalize(folder.path()).unwrap();
    let line = |kind: &str, payload: Value| {
        format!("{}\n", json!({"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload}))
    };
    let message = |role: &str, kind: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
    let user = |text: &str| message("user", "input_text", text);
    let reply = |text: &str| line("response_item", message("assistant", "output_text", text));
    let sealed = json!({"type": "compaction", "id": "c1", "encrypted_content": "E"});
    let filler = "The gate listens on its port and answers. ".repeat(200);
    let session = [
        line("session_meta", json!({"id": "sealed", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": home})),
        line("response_item", user("Mend the pump of the plant.")),
        reply("The gasket of the pump was worn out."),
        line(
            "compacted",
            json!({"message": "", "replacement_history": [user("Mend the pump of the plant."), sealed]}),
        ),
        line("response_item", user("And now the gate.")),
        reply(&filler),
        line("response_item", user("Go on.")),
        reply("Done."),
    ];
    let path = keep(&home, &home, "codex", "sealed", session.concat().as_bytes());
    let run = |arguments: &[&str]| {
        answer(&command(&home, &home, &[arguments, &["--json"]].concat()).output().unwrap())
    };
    let done = run(&["compact", path.to_str().unwrap(), "--budget", "600", "--apply"]);
    assert_eq!(done["status"], "compacted", "{done}");
    let found = run(&["recall", "gasket"]);
    let hit = &found["hits"][0];
    assert_eq!(hit["range"], "m1", "{found}");
    let read = run(&["recall", hit["handle"].as_str().unwrap(), "--range", "m1"]);
    assert!(read["text"].as_str().unwrap().contains("[assistant] The gasket of the pump"), "{read}");
    let found = run(&["recall", "pump plant"]);
    assert!(found["hits"].as_array().unwrap().iter().any(|it| it["range"] == "m0"), "{found}");
}
