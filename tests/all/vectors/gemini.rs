//! Gemini CLI: the split, the estimates, the budget of outputs, the mask, the statuses, the tables.

use epitome::compaction;
use epitome::compaction::plan::{Cause, ModelLimits, share_split};
use epitome::compaction::profile::{NextRule, Pass};
use epitome::history::Message;
use epitome::history::error::Hint;
use epitome::sessions::Format;
use epitome::tokens::{Estimator, TokenCounter, Tokenizer};

use super::{
    Rows, Wish, apply, due, history, laid_out, model, output, plan, profile, read, results, row, text, user,
};

const SENTENCES: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];

fn u(text: &str) -> String {
    format!(r#"{{"role":"user","parts":[{{"text":"{text}"}}]}}"#)
}

fn m(text: &str) -> String {
    format!(r#"{{"role":"model","parts":[{{"text":"{text}"}}]}}"#)
}

/// User and model in turn.
fn talk(count: usize) -> Vec<String> {
    let say = |at: usize| format!("This is the {} message.", SENTENCES[at]);
    (0..count).map(|at| if at % 2 == 0 { u(&say(at)) } else { m(&say(at)) }).collect()
}

const FC: &str = r#"{"role":"model","parts":[{"functionCall":{"name":"foo","args":{}}}]}"#;

fn fr(chars: usize) -> String {
    let text = "x".repeat(chars);
    format!(
        r#"{{"role":"user","parts":[{{"functionResponse":{{"name":"foo","response":{{"output":"{text}"}}}}}}]}}"#
    )
}

fn split(contents: &[String], share: f64) -> usize {
    if contents.is_empty() {
        return share_split(&[], &[], share);
    }
    let history = read(&format!("[{}]", contents.join(",")), Format::GEMINI);
    let messages: Vec<&Message> = history.messages().iter().collect();
    assert_eq!(messages.len(), contents.len(), "one message each");
    for (message, content) in messages.iter().zip(contents) {
        assert_eq!(compaction::plan::json_len(message), content.encode_utf16().count() as u64, "{content}");
    }
    json_share_split(&messages, share)
}

fn json_share_split(messages: &[&Message], share: f64) -> usize {
    let sizes: Vec<u64> = messages.iter().map(|it| compaction::plan::json_len(it)).collect();
    share_split(messages, &sizes, share)
}

pub(crate) fn rows() -> Rows {
    let mut out = Rows::new();
    for (number, share) in [(1, 0.0), (2, 1.0)] {
        row(&mut out, format!("gemini.split.{number}"), move || {
            // A profile with such a share is refused when it is read; 1 is refused as the share of what goes.
            let text = format!(
                "extends = \"gemini-cli\"\nname = \"x\"\n[[pass]]\ndo = \"summarize\"\nkeep = {{ share-behind = {share:?} }}\nlayout = [\"summary\"]\n[pass.summary]\nsections = [{{ title = \"a\", holds = [\"goal\"] }}]\n"
            );
            let error = epitome::profiles::parse(&text, "x").unwrap_err().to_string();
            assert!(error.contains("share-behind"), "{error}");
        });
    }
    let fifth: Vec<String> = (1..=5).flat_map(|it| [u(&format!("U{it}")), m(&format!("M{it}"))]).collect();
    let file =
        r#"{"role":"model","parts":[{"fileData":{"fileUri":"derp","mimeType":"text/plain"}}]}"#.to_owned();
    let cases: Vec<(usize, Vec<String>, f64, usize)> = vec![
        (3, vec![], 0.5, 0),
        (4, talk(5), 0.5, 4),
        (5, talk(5), 0.9, 4),
        (6, talk(4), 0.8, 4),
        (7, [talk(3), vec![FC.to_owned()]].concat(), 0.99, 2),
        (8, vec![u("Message 1")], 0.5, 0),
        (9, vec![u("Message 1"), file, u("Message 2")], 0.5, 2),
        (10, fifth, 0.7, 8),
        (11, vec![u("do it"), FC.into(), fr(100), FC.into(), fr(100), m("done")], 0.7, 6),
        (12, vec![u("do it"), FC.into(), fr(100), FC.into()], 0.7, 0),
        (13, vec![u("do it"), FC.into(), fr(100)], 0.7, 0),
        (14, vec![m("hi"), u("x"), m("y")], 0.7, 3),
        (
            15,
            [r#"{"role":"user"}"#, r#"{"role":"model"}"#, r#"{"role":"user"}"#].map(str::to_owned).to_vec(),
            0.5,
            2,
        ),
        (16, vec![u("日本語のメッセージ"), m("返事"), u("次"), m("了解")], 0.7, 4),
        (17, talk(2), 0.7, 2),
        (18, talk(3), 0.7, 2),
    ];
    for (number, contents, share, expected) in cases {
        row(&mut out, format!("gemini.split.{number}"), move || {
            assert_eq!(split(&contents, share), expected)
        });
    }
    estimates(&mut out);
    row(&mut out, "gemini.status.gemini-cli@0.61", || {
        let native = profile("gemini-cli@0.61").native;
        assert_eq!(native.compacted, "COMPRESSED");
        assert_eq!(native.grew, "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT");
        assert_eq!(native.uncounted, "COMPRESSION_FAILED_TOKEN_COUNT_ERROR");
        assert_eq!(native.empty, "COMPRESSION_FAILED_EMPTY_SUMMARY");
        assert_eq!((native.noop.as_str(), native.shortened.as_str()), ("NOOP", "CONTENT_TRUNCATED"));
        // The older ones know four.
        let native = profile("gemini-cli").native;
        assert!(native.empty.is_empty() && native.shortened.is_empty());
        assert_eq!(native, profile("gemini-cli@0.20").native);
    });
    compress(&mut out);
    tables(&mut out);
    out
}

fn estimates(out: &mut Rows) {
    let new = Estimator::GeminiCli061;
    let texts: [(&str, String, u64); 8] = [
        ("hello", "Hello world!".into(), 3),
        ("cjk", "你好".into(), 3),
        ("mixed", "Hi你好".into(), 3),
        ("japanese", "日本語テキスト".into(), 10),
        ("emoji", "😀".into(), 3),
        ("long-ascii", "a".repeat(200_000), 50_000),
        ("below-cliff", "あ".repeat(100_000), 150_000),
        ("above-cliff", "あ".repeat(100_001), 25_000),
    ];
    for (name, text, tokens) in texts {
        row(out, format!("gemini.estimate.{name}"), move || assert_eq!(new.text(&text), tokens));
    }
    row(out, "gemini.estimate.empty", move || assert_eq!(new.text(""), 0));
    let parts: [(&str, String, u64); 5] = [
        ("call", r#"{"functionCall":{"name":"foo","args":{"bar":"baz"}}}"#.into(), 13),
        (
            "response",
            format!(
                r#"{{"functionResponse":{{"name":"my_tool","response":{{"output":"{}"}}}}}}"#,
                "x".repeat(6000)
            ),
            1505,
        ),
        ("image", r#"{"inlineData":{"mimeType":"image/png","data":"abcd"}}"#.into(), 3000),
        ("pdf", r#"{"inlineData":{"mimeType":"application/pdf","data":"abcd"}}"#.into(), 25_800),
        ("audio", r#"{"inlineData":{"mimeType":"audio/mp3","data":"abcd"}}"#.into(), 13),
    ];
    for (name, part, tokens) in parts {
        row(out, format!("gemini.estimate.{name}"), move || {
            let call = r#"{"role":"model","parts":[{"functionCall":{"name":"my_tool","args":{}}}]},"#;
            let before = if name == "response" { call } else { "" };
            let role = if name == "call" { "model" } else { "user" };
            let json = format!(r#"[{before}{{"role":"{role}","parts":[{part}]}}]"#);
            let history = read(&json, Format::GEMINI);
            let counter = TokenCounter::new(&history, Tokenizer::Fixed(new), Some(0));
            assert_eq!(counter.message(history.messages().last().unwrap()), tokens);
        });
    }
    row(out, "gemini.estimate.text-and-image", move || {
        let json = r#"[{"role":"user","parts":[{"text":"Hello"},{"inlineData":{"mimeType":"image/png","data":"abcd"}}]}]"#;
        let history = read(json, Format::GEMINI);
        let counter = TokenCounter::new(&history, Tokenizer::Fixed(new), Some(0));
        assert_eq!(counter.message(&history.messages()[0]), 3001);
    });
    row(out, "gemini.estimate.dec2025", || {
        let old = Estimator::GeminiCli;
        assert_eq!((old.text("Hello world!"), old.text("你好"), old.text("日本語テキスト")), (3, 2, 9));
    });
}

/// 100 prompts and answers: large enough for anything.
fn long() -> Vec<Message> {
    (0..100)
        .flat_map(|it| [user(&format!("question {it} {}", "x".repeat(400))), model(&"y".repeat(400))])
        .collect()
}

fn compress(out: &mut Rows) {
    for name in ["gemini-cli", "gemini-cli@0.20", "gemini-cli@0.61"] {
        row(out, format!("gemini.compress.noop-empty.{name}"), move || {
            let profile = profile(name);
            assert!(!plan(&profile, &history(vec![]), Wish::default()).act);
            assert_eq!(profile.native.noop, "NOOP");
        });
        row(out, format!("gemini.compress.below-threshold.{name}"), move || {
            let wish = Wish { auto: true, cause: Cause::Auto, ..Wish::default() };
            let plan = plan(&profile(name), &history(long()), wish);
            assert_eq!((plan.act, plan.reason.code), (false, "below_threshold"));
        });
        row(out, format!("gemini.compress.at-threshold.{name}"), move || {
            let limits = ModelLimits { window: Some(1_048_576), ..ModelLimits::default() };
            let profile = profile(name);
            assert!(due(&profile, limits, 524_288) && !due(&profile, limits, 524_287));
        });
        row(out, format!("gemini.compress.force.{name}"), move || {
            let (profile, history) = (profile(name), history(long()));
            let plan = plan(&profile, &history, Wish::default());
            let after = laid_out(&history, &plan);
            assert_eq!(
                (text(&after[0]).as_str(), text(&after[1]).as_str()),
                ("S", "Got it. Thanks for the additional context!")
            );
            // The walk stops at the prompt before which 70 % stand.
            let messages: Vec<&Message> = history.messages().iter().collect();
            assert_eq!(plan.split, Some(json_share_split(&messages, 0.7)));
            assert_eq!((plan.split, after.len()), (Some(142), 60));
        });
        row(out, format!("gemini.compress.inflated.{name}"), move || {
            let (profile, history) = (profile(name), history(long()));
            let plan = plan(&profile, &history, Wish::default());
            let rejected = apply(&profile, &history, &plan, &"word ".repeat(100_000)).unwrap_err();
            assert_eq!(rejected.code, "grew");
            assert_eq!(profile.native.grew, "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT");
            // Equal counts are a success.
            let same = apply(&profile, &history, &plan, &"word".repeat(100)).unwrap();
            assert!(same.tokens < plan.tokens_before);
        });
        row(out, format!("gemini.compress.pending-loop.{name}"), move || {
            let loops = vec![
                user("do it"),
                super::call("a", "foo"),
                super::result("a", &"x".repeat(9000)),
                super::call("b", "foo"),
            ];
            let plan = plan(&profile(name), &history(loops), Wish::default());
            assert_eq!((plan.act, plan.reason.code), (false, "nothing_to_compact"));
        });
    }
    row(out, "gemini.compress.empty-summary", || {
        let (profile, history) = (profile("gemini-cli@0.61"), history(long()));
        let plan = plan(&profile, &history, Wish::default());
        assert_eq!(apply(&profile, &history, &plan, " \n").unwrap_err().code, "empty");
        assert_eq!(profile.native.empty, "COMPRESSION_FAILED_EMPTY_SUMMARY");
    });
    row(out, "gemini.compress.explicit-threshold", || {
        let value = |key: &str| (key == "gemini-cli:model.compressionThreshold").then(|| 0.7.into());
        let profile = profile("gemini-cli").honouring(&value);
        let limits = ModelLimits { window: Some(1_000), ..ModelLimits::default() };
        assert!(!due(&profile, limits, 699) && due(&profile, limits, 700));
        // Nothing sensible: the default holds.
        let zero = super::profile("gemini-cli").honouring(&|_| Some(0.into()));
        assert!(due(&zero, limits, 500));
    });
    row(out, "gemini.compress.two-calls", || {
        let prompts = |name| profile(name).summarize().unwrap().prompts.clone();
        assert!(prompts("gemini-cli@0.61").verify.is_some() && prompts("gemini-cli@0.20").verify.is_none());
        assert!(prompts("gemini-cli@0.61").again.is_some());
    });
    row(out, "gemini.compress.older-outputs-shortened", || {
        // Two outputs of 170,000 characters: the newer is within 50,000 tokens, the older is not.
        let large = "x".repeat(170_000);
        let messages = vec![
            user("one"),
            super::call("a", "grep"),
            results(vec![output("a", &large)]),
            model("so"),
            user("two"),
            super::call("b", "grep"),
            results(vec![output("b", &large)]),
            model("done"),
        ];
        let history = history(messages);
        let plan = plan(&profile("gemini-cli@0.61"), &history, Wish { prune: true, ..Wish::default() });
        let shortened: Vec<usize> = plan.ops.iter().filter_map(op_message).collect();
        assert_eq!(shortened, [2]);
        let after = text(&laid_out(&history, &plan)[2]);
        assert!(after.starts_with(
            "Output too large. Showing first 8,000 and last 32,000 characters. For full output see: "
        ));
        assert!(after.contains("\n\n... [130,000 characters omitted] ...\n\n"));
        let lines: Vec<usize> = after.lines().map(str::len).collect();
        assert_eq!((lines[1], *lines.last().unwrap()), (8_000, 32_000));
    });
    row(out, "gemini.compress.short-output-stays", || {
        // Over the budget, but not above 40,000 characters: returned as it is.
        let messages = (0..8).flat_map(|it| {
            let id = it.to_string();
            [
                user("next"),
                super::call(&id, "grep"),
                results(vec![output(&id, &"x".repeat(39_000))]),
                model("so"),
            ]
        });
        let messages: Vec<Message> = messages.collect();
        let mut profile = profile("gemini-cli@0.61");
        profile.passes.truncate(1);
        assert!(!plan(&profile, &history(messages), Wish { prune: true, ..Wish::default() }).act);
    });
    row(out, "gemini.compress.placeholder", || {
        let mut profile = profile("gemini-cli@0.61");
        profile.passes.truncate(1);
        let Pass::Outputs(step) = &mut profile.passes[0] else { panic!() };
        step.select = epitome::compaction::profile::Select::Unfit(0);
        let epitome::compaction::profile::Replace::Ends(ends) = &mut step.replace else { panic!() };
        ends.chars = 10;
        let text = "a".repeat(3000);
        let history = history(vec![user("x"), super::call("a", "t"), results(vec![output("a", &text)])]);
        let plan = plan(&profile, &history, Wish { prune: true, ..Wish::default() });
        let after = super::text(&laid_out(&history, &plan)[2]);
        assert!(after.contains("first 2 and last 8"), "{after}");
        assert!(after.contains("[2,990 characters omitted]"), "{after}");
    });
    row(out, "gemini.mask.vector", || {
        // 60k (oldest), 20k, 10k (latest): only the 60k one is masked.
        let outputs = [(60_000, "a"), (20_000, "b"), (10_000, "c")];
        let mut messages = vec![user("go")];
        for (tokens, id) in outputs {
            messages
                .extend([super::call(id, "read_file"), results(vec![output(id, &"x".repeat(tokens * 4))])]);
        }
        messages.push(model("done"));
        let mut profile = profile("gemini-cli@0.61");
        profile.passes.drain(..2);
        let history = history(messages);
        let plan = plan(&profile, &history, Wish { prune: true, ..Wish::default() });
        assert_eq!(plan.ops.iter().filter_map(op_message).collect::<Vec<_>>(), [2]);
        let after = super::text(&laid_out(&history, &plan)[2]);
        assert!(
            after.starts_with("<tool_output_masked>\nxxx") && after.ends_with("\n</tool_output_masked>"),
            "{after}"
        );
        assert!(
            after.contains("... [TRUNCATED] ...")
                && after.contains("Output too large. Full output available at: ")
        );
    });
    row(out, "gemini.mask.shell-lines", || {
        let lines: Vec<String> = (0..20_000).map(|it| format!("line {it} with some words")).collect();
        let messages = vec![
            user("go"),
            super::call("a", "run_shell_command"),
            results(vec![output("a", &lines.join("\n"))]),
            super::call("b", "read_file"),
            results(vec![output("b", &"x".repeat(204_000))]),
            model("done"),
        ];
        let mut profile = profile("gemini-cli@0.61");
        profile.passes.drain(..2);
        let history = history(messages);
        let plan = plan(&profile, &history, Wish { prune: true, ..Wish::default() });
        let after = super::text(&laid_out(&history, &plan)[2]);
        assert!(
            after.contains("line 9 with some words\n... [19980 lines omitted] ...\nline 19990")
                || after.contains("[19,980 lines omitted]"),
            "{after}"
        );
    });
    row(out, "gemini.next.required", || {
        next("gemini-cli", [(None, true), (Some(400), false), (Some(500), true)])
    });
    row(out, "gemini.next.ends-before", || {
        next("gemini-cli@0.20", [(None, true), (Some(400), true), (Some(500), false)])
    });
    row(out, "gemini.next.ends-after", || {
        next("gemini-cli@0.61", [(None, true), (Some(400), true), (Some(500), true)])
    });
}

fn op_message(op: &compaction::plan::Op) -> Option<usize> {
    match op {
        compaction::plan::Op::Clear(it) | compaction::plan::Op::Shorten(it) => Some(it.message),
        _ => None,
    }
}

/// A context of 520 of 1,000 tokens, so 480 are left: 95 % of them are 456.
fn next(name: &str, cases: [(Option<u64>, bool); 3]) {
    let profile = profile(name);
    let history = history(vec![user(&"x".repeat(2080)), model("")]);
    for (next, expected) in cases {
        let limits = ModelLimits { window: Some(1_000), window_given: true, next, ..ModelLimits::default() };
        let found = super::verdict(&profile, &history, &limits, &compaction::plan::Moment::default());
        assert_eq!(found.due, expected, "{next:?}: {}", found.reason);
        assert_eq!(found.hint, next.is_none().then_some(Hint::GiveNext), "{}", found.reason);
    }
    assert_eq!(profile.trigger.next.unwrap().rule == NextRule::EndsAfter, name.ends_with("0.61"));
}

fn tables(out: &mut Rows) {
    let limits: [(&str, &str, u64); 6] = [
        ("gemini-cli@0.20", "gemini-1.5-pro", 2_097_152),
        ("gemini-cli@0.20", "gemini-2.0-flash-preview-image-generation", 32_000),
        ("gemini-cli@0.20", "anything", 1_048_576),
        ("gemini-cli@0.61", "gemini-1.5-pro", 1_048_576),
        ("gemini-cli@0.61", "gemma-4-31b-it", 256_000),
        ("gemini-cli@0.61", "anything", 1_048_576),
    ];
    for (name, model, window) in limits {
        row(out, format!("gemini.limits.{name}.{model}"), move || {
            let limits = ModelLimits { model: Some(model), ..ModelLimits::default() };
            assert_eq!(compaction::plan::threshold(&profile(name), &limits), Some(window / 2));
        });
    }
    let aliases = [
        ("gemini-3-pro-preview", "chat-compression-3-pro"),
        ("gemini-3.1-pro-preview", "chat-compression-3-pro"),
        ("gemini-3-flash-preview", "chat-compression-3-flash"),
        ("gemini-3.5-flash", "chat-compression-3-flash"),
        ("gemini-3.8-flash", "chat-compression-3-flash"),
        ("gemini-3-flash", "chat-compression-3-flash"),
        ("gemini-3.1-flash-lite", "chat-compression-3.1-flash-lite"),
        ("gemini-3.5-flash-lite", "chat-compression-3.1-flash-lite"),
        ("gemini-2.5-flash-lite", "chat-compression-2.5-flash-lite"),
        ("gemini-2.5-pro", "chat-compression-2.5-pro"),
        ("gemini-2.5-flash", "chat-compression-2.5-flash"),
        ("anything", "chat-compression-default"),
    ];
    for (model, alias) in aliases {
        row(out, format!("gemini.alias.{model}"), move || {
            let profile = profile("gemini-cli@0.61");
            assert_eq!(profile.summarize().unwrap().prompts.model_name(model), Some(alias));
        });
    }
}
