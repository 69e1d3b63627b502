//! What sessions cost: the requests that each format records, the bill over them, and what is said where something is
//! missing or wrong.

use std::process::Command;

use epitome::cost::{Bill, Prices};
use epitome::sessions::requests::{Requests, requests};
use epitome::sessions::{self, MemorySource};
use serde_json::{Value, json};

fn of(name: &str, text: &str) -> Requests {
    let source = MemorySource::new(name, text);
    requests(&source, &sessions::read(&source, None).unwrap()).unwrap()
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|it| format!("{it}\n")).collect()
}

fn sent(requests: &Requests) -> Vec<u64> {
    requests.all.iter().map(|it| it.usage.sent()).collect()
}

/// A row of Claude Code: `number` orders rows, minutes apart.
fn row(number: usize, kind: &str, message: Value, more: Value) -> Value {
    let parent = number.checked_sub(1).map(|it| format!("00000000-0000-4000-8000-{it:012}"));
    let mut out = json!({
        "parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/p", "version": "2.1.0",
        "sessionId": "11111111-1111-4111-8111-111111111111", "type": kind, "message": message,
        "uuid": format!("00000000-0000-4000-8000-{number:012}"),
        "timestamp": format!("2026-10-24T10:{:02}:00.000Z", number),
    });
    for (key, value) in more.as_object().unwrap() {
        out[key] = value.clone();
    }
    out
}

fn prompt(number: usize, text: &str) -> Value {
    row(number, "user", json!({"role": "user", "content": text}), json!({}))
}

fn reply(number: usize, id: &str, model: &str, usage: Value, more: Value) -> Value {
    let message = json!({"id": id, "role": "assistant", "model": model, "content": [{"type": "text", "text": "done"}], "usage": usage});
    row(number, "assistant", message, more)
}

fn usage(read: u64, write: u64) -> Value {
    json!({"input_tokens": 3, "cache_read_input_tokens": read, "cache_creation_input_tokens": write, "output_tokens": 100,
           "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": write}})
}

const OPUS: &str = "claude-opus-4-6";

fn claude_code() -> String {
    lines(&[
        prompt(0, "first   question\nof two"),
        reply(1, "m1", OPUS, usage(0, 30_000), json!({})),
        // The same response in a second row, with a later figure.
        reply(2, "m1", OPUS, usage(0, 30_010), json!({})),
        reply(3, "s1", "claude-haiku-4-5", usage(0, 9_000), json!({"isSidechain": true})),
        prompt(4, "second question"),
        reply(5, "m2", OPUS, usage(30_010, 2_000), json!({})),
        row(
            6,
            "system",
            Value::Null,
            json!({"subtype": "compact_boundary", "content": "Conversation compacted"}),
        ),
        prompt(7, "third question"),
        reply(8, "m3", OPUS, usage(20_000, 5_000), json!({})),
    ])
}

#[test]
fn claude_codes_requests_are_those_of_all_branches() {
    let found = of("a.jsonl", &claude_code());
    assert_eq!(sent(&found), [30_013, 9_003, 32_013, 25_003]);
    assert_eq!(found.prompts, ["first question of two", "second question", "third question"]);
    assert_eq!(found.compactions, 1);
    assert_eq!(
        found.all.iter().map(|it| it.prompt).collect::<Vec<_>>(),
        [Some(0), Some(0), Some(1), Some(2)]
    );
    assert_eq!(found.all.iter().map(|it| it.side).collect::<Vec<_>>(), [false, true, false, false]);
    assert_eq!(found.all.iter().map(|it| it.compacted).collect::<Vec<_>>(), [false, false, false, true]);
    assert_eq!(found.all[0].usage.cache_write_hour, 30_010);
    // Sent when the prompt came, answered a minute later.
    assert_eq!(found.all[2].at.unwrap() - found.all[2].sent_at.unwrap(), 60_000);
}

#[test]
fn codexs_reports_are_counted_once() {
    let report = |total: u64, input: u64, cached: u64| {
        let tokens = json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": 50, "total_tokens": input + 50});
        json!({"timestamp": "2026-10-24T10:00:05.000Z", "type": "event_msg", "payload": {"type": "token_count", "info": {
            "total_token_usage": {"input_tokens": total, "total_tokens": total}, "last_token_usage": tokens}}})
    };
    let line = |kind: &str, payload: Value| json!({"timestamp": "2026-10-24T10:00:00.000Z", "type": kind, "payload": payload});
    let found = of(
        "rollout-a.jsonl",
        &lines(&[
            line(
                "session_meta",
                json!({"id": "22222222-2222-4222-8222-222222222222", "timestamp": "2026-10-24T10:00:00.000Z", "cwd": "/p"}),
            ),
            line("turn_context", json!({"model": "gpt-5.5"})),
            line(
                "response_item",
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>x</environment_context>"}]}),
            ),
            line(
                "response_item",
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}),
            ),
            report(20_050, 20_000, 0),
            report(20_050, 20_000, 0),
            report(41_000, 20_900, 19_840),
            line("compacted", json!({"message": "", "replacement_history": []})),
            report(46_000, 5_000, 0),
        ]),
    );
    assert_eq!(sent(&found), [20_000, 20_900, 5_000]);
    assert_eq!(found.prompts, ["hello"]);
    assert_eq!(found.all[1].usage.cache_read, 19_840);
    assert!(found.all[2].compacted && found.compactions == 1);
    assert!(found.all.iter().all(|it| it.model.as_deref() == Some("gpt-5.5")));
}

#[test]
fn gemini_clis_and_opencodes_requests_are_read() {
    let gemini = json!({"sessionId": "s", "projectHash": "h", "startTime": "2026-10-24T10:00:00.000Z", "lastUpdated": "2026-10-24T10:00:00.000Z", "messages": [
        {"id": "1", "timestamp": "2026-10-24T10:00:00.000Z", "type": "user", "content": "hi"},
        {"id": "1", "timestamp": "2026-10-24T10:00:00.000Z", "type": "user", "content": "hi"},
        {"id": "3", "timestamp": "2026-10-24T10:00:01.000Z", "type": "user", "content": [{"functionResponse": {"id": "c", "name": "t", "response": {"output": "o"}}}]},
        {"id": "2", "timestamp": "2026-10-24T10:00:03.000Z", "type": "gemini", "content": "yes", "model": "gemini-2.5-pro",
         "tokens": {"input": 12_000, "output": 10, "cached": 8_000, "thoughts": 5, "tool": 0, "total": 12_015}},
    ]});
    let found = of("session-a.json", &gemini.to_string());
    assert_eq!(
        (sent(&found), found.all[0].usage.cache_read, found.all[0].usage.output),
        (vec![12_000], 8_000, 15)
    );
    assert_eq!(
        (found.prompts.as_slice(), found.all[0].sent_at.unwrap() % 60_000),
        (["hi".to_owned()].as_slice(), 1_000)
    );
    let tokens = |input: u64| json!({"input": input, "output": 5, "reasoning": 0, "cache": {"read": 1_000, "write": 0}});
    let opencode = json!({"info": {"id": "ses_1", "version": "1.14.0", "title": "t", "directory": "/p", "projectID": "p", "time": {"created": 1, "updated": 2}}, "messages": [
        {"info": {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": 1_000}}, "parts": [{"id": "prt_1", "messageID": "msg_1", "sessionID": "ses_1", "type": "text", "text": "go"}]},
        {"info": {"id": "msg_2", "sessionID": "ses_1", "role": "assistant", "modelID": "gpt-5.4", "providerID": "openai", "time": {"created": 2_000, "completed": 3_000}, "tokens": tokens(999)},
         "parts": [{"id": "prt_2", "messageID": "msg_2", "sessionID": "ses_1", "type": "step-finish", "tokens": tokens(500)},
                   {"id": "prt_3", "messageID": "msg_2", "sessionID": "ses_1", "type": "step-finish", "tokens": tokens(700)}]},
    ]});
    let found = of("a.json", &opencode.to_string());
    assert_eq!(sent(&found), [1_500, 1_700]);
    assert_eq!((found.all[0].sent_at, found.all[0].at), (Some(2_000), Some(3_000)));
}

#[test]
fn the_bill_says_where_the_money_went() {
    let bill = Bill::of(&of("a.jsonl", &claude_code()), &Prices::default());
    let total = bill.total;
    assert_eq!((total.requests, total.unpriced, bill.side.requests), (4, 0, 1));
    let expected = (9.0 * 5.0 + 3.0 * 1.0) / 1e6
        + 50_010.0 * 0.5 / 1e6
        + (37_010.0 * 10.0 + 9_000.0 * 2.0) / 1e6
        + (300.0 * 25.0 + 100.0 * 5.0) / 1e6;
    assert!((total.dollars() - expected).abs() < 1e-9, "{} {expected}", total.dollars());
    assert_eq!(bill.turns.len(), 3);
    assert_eq!(bill.dearest(1)[0].0, Some(0));
    let (count, again) = bill.again[&epitome::cost::replay::MissCause::Compaction];
    assert_eq!((count, again.tokens), (1, 5_003));
}

#[test]
fn odd_figures_and_times_break_nothing() {
    use epitome::cost::policy::{Policy, Remainder, run};
    use history::Usage;
    let most = Usage::MOST;
    let mut all = Vec::new();
    for (number, at) in [None, Some(i64::MIN), Some(i64::MAX), Some(0), Some(-1)].into_iter().enumerate() {
        for tokens in [0, 1, most, 4_095] {
            let usage = Usage {
                input: tokens,
                cache_read: tokens / 2,
                cache_write: tokens,
                cache_write_hour: most,
                ..Usage::default()
            };
            let model = [None, Some(OPUS.into()), Some("gpt-5.5".into()), Some("".into())]
                [(number + tokens as usize) % 4]
                .clone();
            all.push(sessions::requests::Request {
                sent_at: at,
                at,
                model,
                usage,
                compacted: tokens == 1,
                ..Default::default()
            });
        }
    }
    let requests = Requests { all, ..Requests::default() };
    assert_eq!(Bill::of(&requests, &Prices::default()).total.requests, 20);
    let kept = Remainder { overhead: most, share: 2.0, minimum: 9, maximum: 3 };
    for policy in [Policy::Own, Policy::Never, Policy::AtShare(0.0), Policy::AtExpiry(0.0), Policy::Before(3)]
    {
        for window in [None, Some(0), Some(200_000)] {
            let it = run(&requests.all, policy, window, &kept, &Prices::default());
            assert!(it.amounts.requests >= 20 && it.amounts.dollars().is_finite(), "{policy:?} {it:?}");
        }
    }
}

/// `epitome cost` over a session that stands in a file.
fn cost(text: &str, config: &str) -> Value {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("session.jsonl");
    std::fs::write(&file, text).unwrap();
    let folder = home.path().join(".config/epitome");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), config).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_epitome"))
        .args(["cost", "--json", "--now", "2026-10-24T10:30:00Z"])
        .arg(&file)
        .env_clear()
        .env("HOME", home.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_command_names_its_prices_and_what_comes_next() {
    let answer = cost(&claude_code(), "");
    assert_eq!((&answer["contract"], &answer["currency"]), (&json!(1), &json!("USD")));
    assert!(
        answer["prices"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["date"].is_string() && it["source"].is_string())
    );
    assert_eq!(answer["prices"].as_array().unwrap().len(), 2);
    assert_eq!(answer["dearest"][0]["prompt"], "first question of two");
    // Written for an hour at 10:07.
    assert_eq!(answer["next"]["warm_until"], "2026-10-24T11:07:00.000Z");
    assert!(answer["next"]["why"].as_str().unwrap().contains("prices of 2026-10-24"));
}

#[test]
fn input_is_divided_among_what_it_carried() {
    let call = json!({"content": [{"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "cat log"}}]});
    let mut calls = reply(1, "m1", OPUS, usage(0, 20_000), json!({}));
    calls["message"]["content"] = call["content"].clone();
    let output = json!([{"type": "tool_result", "tool_use_id": "c", "content": "one line of the log\n".repeat(4_000)}]);
    let text = lines(&[
        prompt(0, "read the log"),
        calls,
        row(2, "user", json!({"role": "user", "content": output}), json!({})),
        reply(3, "m2", OPUS, usage(20_000, 20_000), json!({})),
        prompt(4, "and now?"),
        reply(5, "m3", OPUS, usage(40_000, 200), json!({})),
    ]);
    let answer = cost(&text, "");
    let parts = answer["by_content"].as_array().unwrap();
    let sum = |field: &str| parts.iter().map(|it| it["spent"][field].as_f64().unwrap()).sum::<f64>();
    assert!((sum("tokens") - (20_003 + 40_003 + 40_203) as f64).abs() <= parts.len() as f64);
    let input =
        ["input", "cache_read", "cache_write"].map(|it| answer["spent"][it]["dollars"].as_f64().unwrap());
    assert!((sum("dollars") - input.iter().sum::<f64>()).abs() < 0.001);
    let tokens =
        |name: &str| parts.iter().find(|it| it["category"] == name).unwrap()["spent"]["tokens"].as_u64();
    // Carried by the second and the third request, not by the first.
    assert!(tokens("tool_outputs") > Some(35_000) && tokens("tool_outputs") < Some(80_000), "{parts:?}");
    assert!(tokens("user") < Some(100) && tokens("system") > Some(20_000), "{parts:?}");
    // Behind a compaction only what was sent since.
    let summary = json!({"role": "user", "content": "This session is being continued. The log was read."});
    let text = lines(&[
        prompt(0, "read the log"),
        reply(1, "m1", OPUS, usage(0, 30_000), json!({})),
        row(
            2,
            "system",
            Value::Null,
            json!({"subtype": "compact_boundary", "content": "Conversation compacted", "parentUuid": null}),
        ),
        row(3, "user", summary, json!({"isCompactSummary": true, "isVisibleInTranscriptOnly": true})),
        prompt(4, "and now?"),
        reply(5, "m2", OPUS, usage(20_000, 5_000), json!({})),
    ]);
    let since = cost(&text, "");
    let since: u64 =
        since["by_content"].as_array().unwrap().iter().filter_map(|it| it["spent"]["tokens"].as_u64()).sum();
    assert!(since.abs_diff(25_003) <= 8, "{since}");
}

#[test]
fn what_has_no_price_is_counted_in_tokens_and_said() {
    let session = |model: &str| lines(&[prompt(0, "a"), reply(1, "m", model, usage(0, 30_000), json!({}))]);
    let warned = |answer: &Value, what: &str| answer["warnings"].to_string().contains(what);
    let unknown = cost(&session("some-model"), "");
    assert_eq!(
        (&unknown["spent"]["unpriced"], &unknown["spent"]["total"]["tokens"]),
        (&json!(1), &json!(30_103))
    );
    assert!(unknown["spent"]["total"].get("dollars").is_none());
    assert!(unknown["unpriced"][0]["why"].as_str().unwrap().contains("unknown"));
    assert!(warned(&unknown, "tokens only"));
    // Mixed: what has a price is counted, and how much has none is said.
    let mixed = lines(&[
        prompt(0, "a"),
        reply(1, "m", OPUS, usage(0, 30_000), json!({})),
        reply(2, "n", "some-model", usage(0, 30_000), json!({})),
    ]);
    let mixed = cost(&mixed, "");
    assert_eq!((&mixed["spent"]["requests"], &mixed["spent"]["unpriced"]), (&json!(2), &json!(1)));
    assert!(mixed["spent"]["total"]["dollars"].as_f64().unwrap() > 0.3);
    for (config, why) in [
        ("[cost.prices.claude-opus-4-6]\ninput = 0\noutput = 0", "zero"),
        ("[cost.prices.claude-opus-4-6]\ninput = 4\noutput = 20\ncurrency = \"EUR\"", "EUR"),
    ] {
        let answer = cost(&session(OPUS), config);
        assert!(answer["unpriced"][0]["why"].as_str().unwrap().contains(why), "{answer}");
        assert!(answer["spent"]["total"].get("dollars").is_none());
    }
    let own = cost(
        &session(OPUS),
        "[cost.prices.claude-opus-4-6]\ninput = 1\nwrite-hour = 2\noutput = 3\ndate = \"2026-11-01\"",
    );
    assert_eq!(
        own["prices"][0],
        json!({"model": "claude-opus-4-6", "date": "2026-11-01", "source": "config.toml"})
    );
    assert_eq!(own["spent"]["cache_write"]["dollars"], json!(0.06));
}

#[test]
fn without_usage_or_with_a_clock_that_jumps_it_says_so() {
    let bare = lines(&[
        prompt(0, "a"),
        row(
            1,
            "assistant",
            json!({"id": "m", "role": "assistant", "model": OPUS, "content": [{"type": "text", "text": "b"}]}),
            json!({}),
        ),
    ]);
    let answer = cost(&bare, "");
    assert_eq!(answer["spent"]["requests"], 0);
    assert!(answer["warnings"].to_string().contains("no usage"), "{answer}");
    assert_eq!(answer["next"]["why"], "the session records no usage");
    let back = json!({"timestamp": "2026-10-23T10:00:00.000Z"});
    let jumps = lines(&[
        prompt(0, "a"),
        reply(1, "m", OPUS, usage(0, 30_000), json!({})),
        reply(2, "n", OPUS, usage(30_000, 10), back),
    ]);
    assert!(cost(&jumps, "")["warnings"].to_string().contains("clock"));
    // Figures that no request has are no report.
    let huge = lines(&[prompt(0, "a"), reply(1, "m", OPUS, usage(u64::MAX, u64::MAX), json!({}))]);
    assert_eq!(cost(&huge, "")["spent"]["requests"], 0);
}

/// What `epitome hook` tells the model at a time, as Claude Code calls it for a session in `home`.
fn hook(home: &std::path::Path, event: &str, now: &str) -> String {
    use std::io::Write;
    let file = home.join(".claude/projects/-p/11111111-1111-4111-8111-111111111111.jsonl");
    let event = json!({"session_id": "11111111-1111-4111-8111-111111111111", "transcript_path": file, "cwd": home,
        "hook_event_name": event, "prompt": "x"});
    let mut child = Command::new(env!("CARGO_BIN_EXE_epitome"))
        .args(["hook", "--now", now])
        .env_clear()
        .env("HOME", home)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// A home with a session of Claude Code whose last request sent so many tokens at 10:04, cached for an hour.
fn home_with(context: u64) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".claude/projects/-p");
    std::fs::create_dir_all(&folder).unwrap();
    let long = "A long answer of many words about the work. ".repeat(context as usize / 14);
    let text = lines(&[
        prompt(0, "first"),
        row(
            1,
            "assistant",
            json!({"id": "m1", "role": "assistant", "model": OPUS, "content": [{"type": "text", "text": long}], "usage": usage(0, 20_000)}),
            json!({}),
        ),
        prompt(2, "second"),
        reply(3, "m2", OPUS, usage(20_000, context - 20_003), json!({})),
    ]);
    std::fs::write(folder.join("11111111-1111-4111-8111-111111111111.jsonl"), text).unwrap();
    home
}

#[test]
fn an_expired_cache_is_a_reason_to_compact_once() {
    let home = home_with(130_000);
    let said = |event, now| hook(home.path(), event, now);
    assert_eq!(said("UserPromptSubmit", "2026-10-24T10:30:00Z"), "", "the cache is warm");
    assert_eq!(said("PostToolUse", "2026-10-24T12:00:00Z"), "", "nothing expires within a turn");
    let first = said("UserPromptSubmit", "2026-10-24T12:00:00Z");
    assert!(
        first.contains("65 % full")
            && first.contains("has expired")
            && first.contains("prices of 2026-10-24"),
        "{first}"
    );
    assert_eq!(said("UserPromptSubmit", "2026-10-24T12:01:00Z"), "", "once is enough");
}

#[test]
fn a_context_that_was_compacted_since_is_no_reason_for_a_reminder() {
    let home = home_with(170_000);
    let said = |event, now| hook(home.path(), event, now);
    assert_eq!(said("PostCompact", "2026-10-24T10:20:00Z"), "");
    assert_eq!(said("UserPromptSubmit", "2026-10-24T10:30:00Z"), "");
    let again = home_with(170_000);
    assert_eq!(hook(again.path(), "PostCompact", "2026-10-24T10:00:00Z"), "");
    let full = hook(again.path(), "UserPromptSubmit", "2026-10-24T10:30:00Z");
    assert!(full.contains("85 % full"), "reported after the compaction: {full}");
}

#[test]
fn the_reminder_says_what_compacting_costs_unless_it_is_switched_off() {
    let home = home_with(170_000);
    let said = hook(home.path(), "UserPromptSubmit", "2026-10-24T10:30:00Z");
    assert!(said.contains("85 % full") && said.contains("Costs: next request $"), "{said}");
    assert!(said.contains("pays off after"), "{said}");
    for (context, now) in [(170_000, "2026-10-24T10:30:00Z"), (130_000, "2026-10-24T12:00:00Z")] {
        let home = home_with(context);
        let folder = home.path().join(".config/epitome");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), "[cost]\nenabled = false\n").unwrap();
        let said = hook(home.path(), "UserPromptSubmit", now);
        assert!(!said.contains("$") && said.contains("% full") == (context == 170_000), "{said}");
    }
}

/// `epitome COMMAND --json` over a session of [`home_with`], at a time.
fn json_of(home: &std::path::Path, command: &[&str], now: &str) -> Value {
    let file = home.join(".claude/projects/-p/11111111-1111-4111-8111-111111111111.jsonl");
    let output = Command::new(env!("CARGO_BIN_EXE_epitome"))
        .args(command)
        .args(["--json", "--now", now])
        .arg(&file)
        .env_clear()
        .env("HOME", home)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn estimate_and_preview_say_when_a_compaction_pays() {
    let home = home_with(130_000);
    let warm = json_of(home.path(), &["estimate"], "2026-10-24T10:30:00Z");
    let cold = json_of(home.path(), &["estimate"], "2026-10-24T12:00:00Z");
    let pays = |it: &Value| it["cost"]["pays_after_requests"].as_u64().unwrap();
    assert!(pays(&warm) > 1 && pays(&cold) == 1, "{} {}", warm["cost"], cold["cost"]);
    assert_eq!((&warm["advice"]["level"], &cold["advice"]["level"]), (&json!("room"), &json!("soon")));
    assert!(cold["advice"]["why"].as_str().unwrap().contains("cache has expired"), "{}", cold["advice"]);
    let dollars = |it: &Value, key: &str| it["cost"][key].as_f64().unwrap();
    assert!(dollars(&warm, "next_dollars") < dollars(&warm, "after_first_dollars"));
    assert!(dollars(&cold, "next_dollars") > dollars(&cold, "after_first_dollars"));
    let preview = json_of(home.path(), &["compact"], "2026-10-24T12:00:00Z");
    assert_eq!(preview["next_cost"]["pays_after_requests"], 1, "{}", preview["next_cost"]);
    assert_eq!(preview["next_cost"]["next_dollars"], cold["cost"]["next_dollars"]);
}

#[test]
fn a_prune_says_what_it_loses_of_the_cache() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".claude/projects/-p");
    std::fs::create_dir_all(&folder).unwrap();
    // An early output, then 60,000 tokens of answers behind it that the cache holds.
    let call = json!([{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/p/a"}}]);
    let result =
        json!([{"type": "tool_result", "tool_use_id": "t1", "content": "line of text\n".repeat(1_500)}]);
    let answer = "A long answer of many words about the work. ".repeat(600);
    let mut rows = vec![
        prompt(0, "read it"),
        row(
            1,
            "assistant",
            json!({"id": "m0", "role": "assistant", "model": OPUS, "content": call, "usage": usage(0, 20_000)}),
            json!({}),
        ),
        row(2, "user", json!({"role": "user", "content": result}), json!({"toolUseResult": "x"})),
    ];
    for turn in 0..10 {
        let message = json!({"id": format!("n{turn}"), "role": "assistant", "model": OPUS,
            "content": [{"type": "text", "text": answer}], "usage": usage(25_000 + 6_000 * turn, 6_000)});
        rows.push(row(3 + 2 * turn as usize, "assistant", message, json!({})));
        rows.push(prompt(4 + 2 * turn as usize, "go on"));
    }
    std::fs::write(folder.join("11111111-1111-4111-8111-111111111111.jsonl"), lines(&rows)).unwrap();
    let prune = |now| json_of(home.path(), &["prune", "--protect", "0"], now);
    let warm = prune("2026-10-24T10:25:00Z");
    assert_eq!(warm["status"], "planned", "{warm}");
    assert!(warm["warnings"].to_string().contains("cache is lost"), "{warm}");
    assert!(warm["pays_after_requests"].as_u64().unwrap() > 3);
    let cold = prune("2026-10-24T20:00:00Z");
    assert!(!cold["warnings"].to_string().contains("cache is lost"), "{cold}");
    assert_eq!(cold["pays_after_requests"], 1);
}
