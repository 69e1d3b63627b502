//! A compaction is answered here, and what comes of it is opened on its way back.

use std::io::Write;

use serde_json::json;

use super::*;

const ANNA: &str = "anna-0123456789abcdef";
const BEN: &str = "ben-fedcba9876543210";

fn log(web: &Web) -> Vec<Value> {
    let path = web.home.path().join(".local/share/epitome/seat.jsonl");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

fn is_whole(text: &str, word: &str) {
    assert_eq!(text.matches("Earlier conversation compacted").count(), 1, "{text}");
    assert!(
        text.contains(&format!("migrations/{word}/")) && text.contains(&format!("TAIL-{word}")),
        "{text}"
    );
    assert!(text.contains("--apply"), "the way back is named: {text}");
}

#[test]
fn a_local_compaction_is_answered() {
    let provider = Provider::plain();
    let web = provider.gateway();
    let body = codex(&with(conversation("lexer"), local_prompt()), false);
    let said = item(&post(web.port, "/v1/responses", &[("Thread-Id", "0-1")], &body));
    assert_eq!((said["type"].as_str(), said["role"].as_str()), (Some("message"), Some("assistant")));
    let text = said["content"][0]["text"].as_str().unwrap().to_owned();
    is_whole(&text, "lexer");
    assert!(text.len() < body.to_string().len() / 2);
    assert!(provider.take().is_empty(), "no model was asked");
    assert_eq!((log(&web)[0]["client"].as_str(), log(&web)[0]["failed"].as_str()), (Some("codex"), None));
    // Four more in a row, as Codex puts them: prompts, then the summary behind words of its own.
    let mut items =
        vec![message("user", "Fix the parser of lexer. Never change anything under migrations/lexer/.")];
    items.push(message(
        "user",
        &format!("Another language model started to solve this problem and produced a summary:\n{text}"),
    ));
    for round in 0..4 {
        items.push(message("user", &format!("SEAT-R{round} next round")));
        items.extend(conversation("lexer").into_iter().skip(3));
        let body = codex(&with(items.clone(), local_prompt()), false);
        let said = item(&post(web.port, "/v1/responses", &[], &body));
        let text = said["content"][0]["text"].as_str().unwrap();
        is_whole(text, "lexer");
        items.retain(|it| it["role"] == "user" && !it.to_string().contains("Earlier conversation compacted"));
        items.push(message(
            "user",
            &format!("Another language model started to solve this problem and produced a summary:\n{text}"),
        ));
    }
    // The same words where the model has tools are somebody's prompt.
    let body = codex(&with(conversation("lexer"), local_prompt()), true);
    assert_eq!(post(web.port, "/v1/responses", &[], &body).text(), "PROVIDER");
    assert_eq!(provider.take()[0].json(), body);
}

#[test]
fn a_remote_compaction_is_a_capsule_that_is_opened_again() {
    let provider = Provider::plain();
    let web = provider.gateway();
    let items = conversation("cache");
    let body = codex(&with(items.clone(), trigger()), true).to_string();
    let gzip = {
        let mut it = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        it.write_all(body.as_bytes()).unwrap();
        it.finish().unwrap()
    };
    let zstd = zstd::encode_all(body.as_bytes(), 3).unwrap();
    let mut capsules = Vec::new();
    for (coding, body) in [("identity", body.as_bytes()), ("zstd", &zstd), ("gzip", &gzip)] {
        let request = request("POST", "/backend-api/codex/responses", &[("content-encoding", coding)], body);
        let item = item(&exchange(web.port, &request));
        assert_eq!(item["type"], "compaction");
        capsules.push(item);
    }
    assert!(provider.take().is_empty());
    let capsule = &capsules[0];
    let sealed = capsule["encrypted_content"].as_str().unwrap();
    assert!(sealed.starts_with("EPITOME1.") && !sealed.contains("migrations"));
    // What Codex sends next: the prompts, the item, what came after.
    let next = vec![items[2].clone(), capsule.clone(), message("user", "go on")];
    let body = format!("{{ \"model\": \"m\",\"input\":{} , \"n\": 1.0}}", json!(next));
    let zstd = zstd::encode_all(body.as_bytes(), 3).unwrap();
    let mut opened = Vec::new();
    for (coding, sent) in [("identity", body.as_bytes()), ("zstd", &zstd)] {
        let sent = request("POST", "/v1/responses", &[("Content-Encoding", coding), ("X-Kept", "1")], sent);
        assert_eq!(exchange(web.port, &sent).text(), "PROVIDER");
        let arrived = provider.take().remove(0);
        assert!(arrived.headers.contains(&"X-Kept: 1".to_owned()));
        assert!(!arrived.headers.iter().any(|it| it.to_ascii_lowercase().starts_with("content-encoding")));
        opened.push(arrived.body);
    }
    assert_eq!(opened[0], opened[1]);
    let text: Value = serde_json::from_slice(&opened[0]).unwrap();
    let summary = text["input"][1]["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        (text["input"][1]["type"].as_str(), text["input"][1]["role"].as_str()),
        (Some("message"), Some("user"))
    );
    is_whole(summary, "cache");
    // Nothing else is another byte.
    assert_eq!(
        String::from_utf8_lossy(&opened[0]),
        body.replace(&capsule.to_string(), &text["input"][1].to_string())
    );
    // The next compaction takes it over.
    let again = with(with(next, items.last().unwrap().clone()), trigger());
    let again = item(&post(web.port, "/v1/responses", &[], &codex(&again, true)));
    assert_eq!(again["type"], "compaction");
    post(web.port, "/v1/responses", &[], &codex(&[again], true));
    is_whole(provider.take()[0].json()["input"][0]["content"][0]["text"].as_str().unwrap(), "cache");
}

#[test]
fn compactions_at_once_are_all_answered() {
    let provider = Provider::plain();
    let web = provider.gateway();
    let words: Vec<String> = (0..12).map(|it| format!("w{}", it % 6)).collect();
    std::thread::scope(|scope| {
        for word in &words {
            let web = &web;
            scope.spawn(move || {
                // Two of each: the same conversation twice at the same moment.
                let body = codex(&with(conversation(word), local_prompt()), false);
                let made = item(&post(web.port, "/v1/responses", &[], &body));
                is_whole(made["content"][0]["text"].as_str().unwrap(), word);
            });
        }
    });
    assert!(provider.take().is_empty(), "no model was asked");
    assert!(log(&web).len() == 12 && log(&web).iter().all(|it| it["failed"].is_null()), "{:?}", log(&web));
}

#[test]
fn a_capsule_is_opened_for_its_owner_alone() {
    let provider = Provider::plain();
    let url = format!("http://127.0.0.1:{}", provider.port);
    let web = Web::start(|home, command| {
        let file = home.join("tokens");
        std::fs::write(&file, format!("anna:{ANNA}\nben:{BEN}\n")).unwrap();
        command.args(["--upstream", &url, "--token-file"]).arg(file);
    });
    let of = |token: &'static str| [("X-Epitome-Token", token), ("Authorization", "Bearer sk-provider")];
    let body = codex(&with(conversation("anna"), trigger()), true);
    let capsule = item(&post(web.port, "/v1/responses", &of(ANNA), &body));
    let next = |capsule: &Value| codex(&[capsule.clone(), message("user", "go on")], true);
    assert_eq!(post(web.port, "/v1/responses", &of(ANNA), &next(&capsule)).text(), "PROVIDER");
    let arrived = provider.take().remove(0);
    is_whole(&arrived.text(), "anna");
    assert!(arrived.headers.contains(&"Authorization: Bearer sk-provider".to_owned()));
    assert!(!arrived.headers.iter().any(|it| it.contains(ANNA)), "our token goes to nobody");
    // Another's, and forged ones, go nowhere and are not opened.
    let sealed = capsule["encrypted_content"].as_str().unwrap();
    let (front, tag) = sealed.rsplit_once('.').unwrap();
    for (token, forged) in [
        (BEN, sealed.to_owned()),
        (ANNA, format!("{front}.{}", tag.chars().rev().collect::<String>())),
        (ANNA, "EPITOME1.".to_owned()),
        (ANNA, format!("{front}x.{tag}")),
    ] {
        let item = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": forged});
        let refused = post(web.port, "/v1/responses", &of(token), &next(&item));
        assert_eq!(refused.status(), 400, "{}", refused.text());
        assert!(!refused.text().contains("migrations"));
    }
    // The same in a request for a compaction.
    let nested = codex(&[capsule.clone(), message("user", "go on"), trigger()], true);
    assert_eq!(post(web.port, "/v1/responses", &of(BEN), &nested).status(), 400);
    assert!(provider.take().is_empty());
    // What another provider sealed passes.
    let theirs = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABEPITOME1.x"});
    let body = next(&theirs);
    assert_eq!(post(web.port, "/v1/responses", &of(BEN), &body).text(), "PROVIDER");
    assert_eq!(provider.take()[0].json(), body);
    // Nobody, and somebody whose only token is ours.
    assert_eq!(post(web.port, "/v1/responses", &[], &body).status(), 401);
    assert_eq!(
        post(web.port, "/v1/responses", &[("Authorization", "Bearer sk-provider")], &body).status(),
        401
    );
    let bearer = format!("Bearer {ANNA}");
    assert_eq!(post(web.port, "/v1/responses", &[("Authorization", &bearer)], &body).status(), 403);
    assert!(provider.take().is_empty());
}

#[test]
fn the_endpoint_needs_no_provider() {
    let web = Web::start(|_, _| {});
    let mut items = conversation("solo");
    items.insert(3, json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}));
    items.insert(4, json!({"type": "from_the_future", "deep": [{"x": null}]}));
    items.insert(5, json!({"type": "message", "role": "user", "content": [
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}, {"type": "input_text", "text": "see"}]}));
    let answer = post(web.port, "/v1/responses/compact", &[], &json!({"model": "gpt-5.2", "input": items}));
    let answer = answer.json();
    assert_eq!(answer["object"], "response.compaction");
    assert_eq!(answer["output"].as_array().unwrap().len(), 1);
    assert_eq!(answer["output"][0]["role"], "user");
    is_whole(answer["output"][0]["content"][0]["text"].as_str().unwrap(), "solo");
    for wrong in
        [json!({"input": []}), json!({"input": [message("developer", "x")]}), json!({"input": "x"}), json!(3)]
    {
        let refused = post(web.port, "/v1/responses/compact", &[], &wrong);
        assert!((400..500).contains(&refused.status()), "{wrong}: {}", refused.text());
    }
    assert_eq!(post(web.port, "/v1/responses", &[], &codex(&items, true)).status(), 404);
}

#[test]
fn messages_of_other_apis_are_compacted_as_their_own() {
    let web = Web::start(|_, _| {});
    let numbers = |round: usize| (0..400).map(|it| format!("{}\n", 1000 * round + it)).collect::<String>();
    let rule = "Fix the parser. Never change anything under migrations/x/.";
    let end = "The test TAIL-x fails in parser.rs, line 12; that is next.";
    let (mut anthropic, mut chat) = (vec![json!({"role": "user", "content": rule})], vec![]);
    chat.push(json!({"role": "system", "content": "You are a coding agent."}));
    chat.push(json!({"role": "user", "content": rule}));
    for round in 0..12 {
        let (id, input) = (format!("call_{round}"), json!({"cmd": format!("seq {round}000 {round}399")}));
        anthropic.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "exec", "input": input}]}));
        anthropic.push(
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": numbers(round)}]}),
        );
        let call = json!({"id": id, "type": "function", "function": {"name": "exec", "arguments": input.to_string()}});
        chat.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        chat.push(json!({"role": "tool", "tool_call_id": id, "content": numbers(round)}));
    }
    for list in [&mut anthropic, &mut chat] {
        list.push(json!({"role": "assistant", "content": end}));
    }
    for (path, messages) in [("/v1/messages/compact", anthropic), ("/v1/chat/completions/compact", chat)] {
        let body = json!({"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": messages});
        let answer = post(web.port, path, &[], &body);
        assert_eq!(answer.status(), 200, "{path}: {}", answer.text());
        let new = answer.json()["messages"].as_array().unwrap().clone();
        let text = json!(new).to_string();
        assert_eq!(text.matches("Earlier conversation compacted").count(), 1, "{path}: {text}");
        assert!(
            text.contains("migrations/x/") && text.contains("TAIL-x") && !text.contains("3377"),
            "{path}: {text}"
        );
        assert!(text.len() * 3 < json!(messages).to_string().len() * 2, "{path}");
        assert_eq!(new[0]["role"] == "system", path.contains("chat"), "{path}: {text}");
        // What came back can be compacted again, once something was added.
        let mut more = new;
        more.push(json!({"role": "user", "content": "And the tests?"}));
        more.push(json!({"role": "assistant", "content": "They pass. ".repeat(1_500)}));
        let again = post(web.port, path, &[], &json!({"model": "m", "messages": more})).text();
        assert_eq!(again.matches("Earlier conversation compacted").count(), 1, "{path}: {again}");
        assert!(again.contains("migrations/x/") && again.contains("And the tests?"), "{path}: {again}");
        for wrong in [json!({"messages": "x"}), json!({"input": []}), json!({"messages": []}), json!([])] {
            let refused = post(web.port, path, &[], &wrong);
            assert!((400..500).contains(&refused.status()), "{path} {wrong}: {}", refused.text());
        }
    }
}

#[test]
fn what_cannot_be_compacted_is_passed_on_as_it_came() {
    let provider = Provider::plain();
    let url = format!("http://127.0.0.1:{}", provider.port);
    // Nothing may be archived, so nothing is compacted.
    let web = Web::start(|home, command| {
        let folder = home.join(".config/epitome");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), "[store]\npersistence = \"none\"\n").unwrap();
        command.args(["--upstream", &url]);
    });
    for body in [
        codex(&with(conversation("x"), local_prompt()), false),
        codex(&with(conversation("x"), trigger()), true),
        codex(&[trigger()], true),
        codex(&[message("developer", "x"), local_prompt()], false),
    ] {
        let zstd = zstd::encode_all(body.to_string().as_bytes(), 3).unwrap();
        assert_eq!(post(web.port, "/v1/responses", &[], &body).text(), "PROVIDER");
        let coded = request("POST", "/v1/responses", &[("Content-Encoding", "zstd")], &zstd);
        assert_eq!(exchange(web.port, &coded).text(), "PROVIDER");
        let arrived: Vec<Vec<u8>> = provider.take().into_iter().map(|it| it.body).collect();
        assert_eq!(arrived, [body.to_string().into_bytes(), zstd], "each once, unchanged");
    }
    assert_eq!(log(&web).len(), 8);
    assert!(log(&web).iter().all(|it| it["failed"].is_string()));
}
