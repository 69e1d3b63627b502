//! Where profiles and their systems were found to differ, case by case. S: a seed; R: a reference, by its section.

use epitome::compaction;
use epitome::compaction::facts;
use epitome::compaction::plan::{Cause, ModelLimits, Op};
use epitome::compaction::profile::Profile;
use epitome::compaction::summary::offline;
use epitome::history::{Call, History, Kind, Message, Meta, Part, Role};
use epitome::profiles::BUILT_IN;
use epitome::sessions::Format;
use epitome::tokens::middle::within_bytes;
use epitome::tokens::{TokenCounter, Tokenizer};

use super::{
    Rows, Wish, apply, call, history, laid_out, model, output, plan, profile, read, result, results, row,
    text, user,
};

/// By itself, in a window.
fn by_itself(window: u64) -> Wish<'static> {
    let limits = ModelLimits { window: Some(window), window_given: true, ..ModelLimits::default() };
    Wish { auto: true, cause: Cause::Auto, limits, ..Wish::default() }
}

fn cleared(plan: &compaction::plan::Plan) -> Vec<usize> {
    plan.ops
        .iter()
        .filter_map(|it| match it {
            Op::Clear(it) | Op::Shorten(it) => Some(it.message),
            Op::Drop { .. }
            | Op::Summarize { .. }
            | Op::Collapse { .. }
            | Op::Skip { .. }
            | Op::Move { .. } => None,
        })
        .collect()
}

/// A prompt, and as many rounds of a call and its output.
fn rounds(outputs: &[String]) -> Vec<Message> {
    let round =
        |(it, text): (usize, &String)| [call(&it.to_string(), "read_file"), result(&it.to_string(), text)];
    [vec![user("go")], outputs.iter().enumerate().flat_map(round).collect()].concat()
}

pub(crate) fn rows() -> Rows {
    let mut out = Rows::new();
    learn(&mut out);
    opencode(&mut out);
    gemini(&mut out);
    codex(&mut out);
    supermemory(&mut out);
    summaries(&mut out);
    deviations(&mut out);
    out
}

fn learn(out: &mut Rows) {
    // S 002 "Putting It All Together": budget, snip and micro run; then, if the estimate is still above the threshold, the
    // history is summarised.
    for name in ["learn-claude-code", "learn-claude-code@7891c25"] {
        row(out, format!("learn.summary.only-if-needed.{name}"), move || {
            let outputs: Vec<String> = (0..10).map(|_| "x".repeat(8_600)).collect();
            let plan = plan(&profile(name), &history(rounds(&outputs)), by_itself(200_000));
            assert!(plan.act && plan.need.is_none(), "{}", plan.reason.text);
            assert_eq!(cleared(&plan), [2, 4, 6, 8, 10, 12, 14]);
            // Three outputs of 20,000 stay, which is still too much.
            let outputs: Vec<String> = (0..10).map(|_| "x".repeat(20_000)).collect();
            let plan = self::plan(&profile(name), &history(rounds(&outputs)), by_itself(200_000));
            assert!(plan.act && plan.need.is_some(), "{}", plan.reason.text);
        });
    }
    // S 002 L2: all tool results are collected, persisted ones too, and all but the newest three are looked at.
    row(out, "learn.micro.persisted-count", || {
        let calls: Vec<Part> = (0..5).map(|it| call(&it.to_string(), "bash").parts.remove(0)).collect();
        let outputs = (0..5).map(|it| output(&it.to_string(), &"x".repeat(100_000))).collect();
        let calls = Message::new(Role::Assistant, Kind::Said, calls);
        let history = history(vec![user("go"), calls, results(outputs)]);
        let plan = plan(&profile("learn-claude-code"), &history, Wish { prune: true, ..Wish::default() });
        let after = laid_out(&history, &plan);
        let kinds: Vec<&str> = after[2]
            .outputs()
            .map(|it| match it.text.as_str() {
                it if it.starts_with("<persisted-output>") => "persisted",
                it if it.starts_with("[Earlier tool result") => "cleared",
                _ => "whole",
            })
            .collect();
        // Largest first, ties in order: three are persisted until 206,000 characters are 200,000; of all five the first
        // two are not among the newest three.
        assert_eq!(kinds, ["cleared", "cleared", "persisted", "persisted", "whole"]);
    });
}

fn opencode(out: &mut Rows) {
    // S 000 prune(): `part.state.status === "completed"`.
    for name in ["opencode", "opencode@1.18", "supermemory@2.0"] {
        row(out, format!("opencode.prune.failed-stays.{name}"), move || {
            let outputs = ["x".repeat(200_000), "y".repeat(200_000), "z".repeat(200_000)];
            let mut messages = rounds(&outputs);
            let Part::Output(it) = &mut messages[4].parts[0] else { panic!() };
            it.failed = true;
            messages.extend([user("two"), user("three")]);
            let asked = Wish { prune: true, ..Wish::default() };
            // Each alone is beyond 40,000 tokens.
            assert_eq!(cleared(&plan(&profile(name), &history(messages), asked)), [2, 6]);
            // Nor is it counted: 30,000 tokens that failed protect nothing and are not gained.
            let mut messages = rounds(&["x".repeat(120_000), "y".repeat(120_000), "z".repeat(120_000)]);
            for at in [2, 4] {
                let Part::Output(it) = &mut messages[at].parts[0] else { panic!() };
                it.failed = true;
            }
            messages.extend([user("two"), user("three")]);
            assert!(!plan(&profile(name), &history(messages), asked).act);
        });
    }
    // R OpenCode 1.5, step 12: the continue message of an automatic compaction; none after a manual one.
    for (name, says) in [
        ("opencode", "Continue if you have next steps"),
        ("opencode@1.18", "Continue if you have next steps, "),
    ] {
        row(out, format!("opencode.continue.automatic.{name}"), move || {
            let history = history(vec![user("a"), model(&"x".repeat(400)), user("b"), model("c")]);
            let last = |cause| {
                let plan = plan(&profile(name), &history, Wish { cause, ..Wish::default() });
                laid_out(&history, &plan).pop().unwrap()
            };
            assert!(last(Cause::Auto).kind == Kind::Continue && text(&last(Cause::Auto)).starts_with(says));
            assert_ne!(last(Cause::Manual).kind, Kind::Continue);
        });
    }
}

fn gemini(out: &mut Rows) {
    // R Gemini 2.8 and 2.6: a function response counts by the length of its JSON, whatever the script.
    row(out, "gemini.mask.japanese", || {
        let outputs: Vec<String> = (0..5).map(|_| "あ".repeat(22_500)).collect();
        let masked = |outputs: &[String]| {
            let mut profile = profile("gemini-cli@0.61");
            profile.passes.drain(..2);
            let messages = [rounds(outputs), vec![model("done")]].concat();
            cleared(&plan(&profile, &history(messages), Wish { prune: true, ..Wish::default() }))
        };
        assert!(masked(&outputs).is_empty());
        // Fifteen are 84,000 tokens: the ninth from the end crosses 50,000, and seven make more than 30,000.
        let outputs: Vec<String> = (0..15).map(|_| "あ".repeat(22_500)).collect();
        assert_eq!(masked(&outputs), [2, 4, 6, 8, 10, 12, 14]);
    });
    // R Gemini 2.1 and 2.3, step 6: no split is NOOP, and the masking that follows each turn takes place all the same.
    row(out, "gemini.mask.though-nothing-to-compress", || {
        let outputs: Vec<String> = (0..15).map(|_| "x".repeat(30_000)).collect();
        let messages = [rounds(&outputs), vec![call("last", "read_file")]].concat();
        let history = history(messages);
        let plan_of = |wish| plan(&profile("gemini-cli@0.61"), &history, wish);
        let found = plan_of(by_itself(100_000));
        assert!(found.act && found.need.is_none(), "{}", found.reason.text);
        assert!(
            laid_out(&history, &found)[2]
                .outputs()
                .all(|it| it.text.as_str().starts_with("<tool_output_masked>"))
        );
        // By hand there is no masking.
        assert!(!plan_of(Wish::default()).act);
    });
    // R Gemini 2.3, steps 4 and 6: outputs are truncated first, and what is left is split.
    row(out, "gemini.truncate.before-split", || {
        let mut messages = rounds(&["x".repeat(400_000)]);
        for turn in 0..30 {
            messages.extend([model("so"), user(&format!("turn {turn} {}", "y".repeat(3_000)))]);
        }
        // What makes the output not fit.
        messages.extend([call("n", "read_file"), result("n", &"z".repeat(39_000)), model("done")]);
        let history = history(messages);
        let split = |name| plan(&profile(name), &history, Wish::default()).split.unwrap();
        let (with, without) = (split("gemini-cli@0.61"), split("gemini-cli"));
        // By the sizes before, more than 70 % stand before the first prompt behind the output.
        assert_eq!(without, 4);
        assert!(with > 20, "{with}");
    });
    // S 000: everything but text is its JSON / 4, and the JSON holds the id where there is one.
    row(out, "gemini.estimate.ids", || {
        for (estimator, name) in [
            (profile("gemini-cli").estimator, "gemini-cli"),
            (profile("gemini-cli@0.61").estimator, "gemini-cli@0.61"),
        ] {
            let call = r#"{"functionCall":{"id":"read_file-1732300000000-0","name":"read_file","args":{"path":"a"}}}"#;
            let answer = r#"{"functionResponse":{"id":"read_file-1732300000000-0","name":"read_file","response":{"output":"abc"}}}"#;
            let json =
                format!(r#"[{{"role":"model","parts":[{call}]}},{{"role":"user","parts":[{answer}]}}]"#);
            let history = read(&json, Format::GEMINI);
            let counter = TokenCounter::new(&history, Tokenizer::Fixed(estimator.unwrap()), Some(0));
            let found: Vec<u64> = history.messages().iter().map(|it| counter.message(it)).collect();
            // 0.61 counts the name and the response alone.
            let response = r#"{"output":"abc"}"#.len() + "read_file".len();
            let answer = if name == "gemini-cli" { answer.len() } else { response };
            assert_eq!(found, [call.len() as u64 / 4, answer as u64 / 4], "{name}");
        }
    });
}

fn codex(out: &mut Rows) {
    // R Codex 1.7, C46: the marker counts against the budget, the line break behind it does not.
    row(out, "codex.cut.0_46-exact", || {
        let found = within_bytes(&"a".repeat(100), 32).0;
        assert_eq!(found, "aaa…24 tokens truncated…\naaaa");
        // Line breaks are looked for unless the budget falls inside of a character: then it is cut before that.
        let text = format!("\nxé{}", "b".repeat(96));
        assert_eq!(within_bytes(&text, 32).0, "\nx…24 tokens truncated…\nbbbb");
        let text = format!("\nxy{}", "b".repeat(97));
        assert!(within_bytes(&text, 32).0.starts_with("\n…"), "{}", within_bytes(&text, 32).0);
    });
    // R Codex 1.3, C46: limit = config `model_auto_compact_token_limit`, else the model's.
    row(out, "codex.limit.0_46-configured", || {
        let set = profile("codex@0.46")
            .honouring(&|key| (key == "codex:model_auto_compact_token_limit").then(|| 20_000.into()));
        let limits = ModelLimits { window: Some(272_000), ..ModelLimits::default() };
        assert_eq!(compaction::plan::threshold(&set, &limits), Some(20_000));
    });
}

fn supermemory(out: &mut Rows) {
    // S 004: only above 50,000 tokens, whatever the window.
    row(out, "supermemory.minimum.small-window", || {
        for name in ["supermemory", "supermemory@2.0"] {
            let limits = ModelLimits { window: Some(40_000), window_given: true, ..ModelLimits::default() };
            assert_eq!(compaction::plan::threshold(&profile(name), &limits), Some(50_000), "{name}");
        }
    });
}

/// The summary that is written without a model, of all messages.
fn summary(name: &str, messages: Vec<Message>, budget: u64) -> String {
    let meta = Meta { cwd: Some("/home/me/shop".into()), ..Meta::default() };
    let history = History::new(history(messages).into_messages(), meta);
    let profile: Profile = profile(name);
    let spec = &profile.summarize().unwrap().summary;
    let ask = crate::facts::asked(spec, 0..history.messages().len(), budget);
    offline::write(&history, &facts::read(&history), &ask, &|text| text.len().div_ceil(4) as u64)
}

/// The lines below a heading that holds these words, or inside of an element of that name.
fn section<'a>(summary: &'a str, title: &str) -> Vec<&'a str> {
    let opens = |it: &&str| it.trim_start_matches("## ") == title || *it == format!("<{title}>");
    let below = summary.lines().skip_while(|it| !opens(it)).skip(1);
    below
        .take_while(|it| !it.starts_with("## ") && !it.starts_with("</"))
        .filter(|it| !it.is_empty())
        .collect()
}

fn with_input(id: &str, name: &str, input: &str) -> Message {
    let call =
        Call { id: id.into(), name: name.into(), input: input.into(), freeform: false, signature: None };
    Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)])
}

fn summaries(out: &mut Rows) {
    let asked = [
        "Build a landing page for the bakery.",
        "Make the header blue.",
        "Never touch the payment form.",
        "Use tabs, and always run the tests before you commit.",
        "Now add an opening hours table.",
    ];
    let talk = move || -> Vec<Message> {
        asked.iter().flat_map(|it| [user(it), model("I did that, and it works.")]).collect()
    };
    // S 004: "User Requests: the user's original needs, as they were"; R Claude Code 3.2: all user messages.
    for (name, title) in
        [("supermemory", "1. User Requests (As-Is)"), ("claude-code", "6. All User Messages")]
    {
        row(out, format!("summary.every-request.{name}"), move || {
            let summary = summary(name, talk(), 2_000);
            let found = section(&summary, title).join("\n");
            for it in asked {
                assert!(found.contains(&format!("\"{it}\"")), "{it} in:\n{summary}");
            }
        });
        row(out, format!("summary.every-request.too-many.{name}"), move || {
            let messages = (0..400)
                .flat_map(|it| [user(&format!("Please do the thing with number {it}.")), model("Done.")]);
            let summary = summary(name, messages.collect(), 1_000);
            let found = section(&summary, title);
            assert!(summary.len() <= 4_000 && found.len() > 5, "{summary}");
            assert!(found.last().unwrap().starts_with("- omitted for lack of space: "), "{summary}");
        });
    }
    // S 004: what is explicitly forbidden, and attempts that failed.
    row(out, "summary.must-not.supermemory", move || {
        let summary = summary("supermemory", talk(), 2_000);
        let found = section(&summary, "5. MUST NOT Do (Critical Constraints)").join("\n");
        assert!(found.contains("Never touch the payment form"), "{summary}");
        assert!(!found.contains("header") && !found.contains("tabs"), "{summary}");
    });
    // S 000, phase 5: CWD, READ, MODIFIED, CREATED; [DONE], [IN PROGRESS], [TODO], numbered.
    for (name, files, plan) in [
        ("gemini-cli", "file_system_state", "current_plan"),
        ("gemini-cli@0.61", "artifact_trail", "task_state"),
    ] {
        row(out, format!("summary.snapshot-words.{name}"), move || {
            let todos = r#"{"todos":[{"description":"find uses","status":"completed"},{"description":"rewrite them","status":"in_progress"},{"description":"run the tests","status":"pending"}]}"#;
            let messages = vec![
                user("Move the shop to the new API."),
                with_input("a", "read_file", r#"{"file_path":"/home/me/shop/package.json"}"#),
                result("a", "{}"),
                with_input(
                    "b",
                    "replace",
                    r#"{"file_path":"/home/me/shop/src/auth.ts","old_string":"a","new_string":"b"}"#,
                ),
                result("b", "Successfully modified file: /home/me/shop/src/auth.ts (1 replacements)."),
                with_input("c", "write_file", r#"{"file_path":"/home/me/shop/src/new.ts","content":"x"}"#),
                result("c", "Successfully created and wrote to new file: /home/me/shop/src/new.ts."),
                with_input("d", "write_todos", todos),
                result("d", "ok"),
                model("I rewrote the first."),
            ];
            let summary = summary(name, messages, 2_000);
            let found = section(&summary, files).join("\n");
            assert!(
                section(&summary, "file_system_state")[0].starts_with("- CWD: /home/me/shop"),
                "{summary}"
            );
            for it in ["- READ: package.json", "- MODIFIED: src/auth.ts", "- CREATED: src/new.ts"] {
                assert!(found.contains(it), "{it} in:\n{summary}");
            }
            let steps = section(&summary, plan);
            for (number, it) in
                ["[DONE] find uses", "[IN PROGRESS] rewrite them", "[TODO] run the tests"].iter().enumerate()
            {
                assert!(steps[number].starts_with(&format!("{}. {it}", number + 1)), "{it} in:\n{summary}");
            }
            // Read back from the summary, each is what it was.
            let earlier = History::new(
                vec![Message::text(Role::User, Kind::Summary, summary.as_str())],
                Meta::default(),
            );
            let ledger = facts::read(&earlier);
            let about =
                |topic| ledger.about(topic).map(|it| it.text.to_string()).collect::<Vec<_>>().join(", ");
            assert!(about(facts::Topic::Done).contains("find uses"), "{}", about(facts::Topic::Done));
            assert_eq!(about(facts::Topic::Active), "rewrite them");
            assert_eq!(about(facts::Topic::Open), "run the tests");
            let files: Vec<String> = ledger
                .about(facts::Topic::Files)
                .map(|it| format!("{} {:?}", it.text, it.detail).split(", to").next().unwrap().to_owned())
                .collect();
            assert!(
                files.iter().any(|it| it.starts_with("src/auth.ts") && it.ends_with("op: Edited")),
                "{files:?}"
            );
            assert!(
                files.iter().any(|it| it.starts_with("src/new.ts") && it.ends_with("op: Created")),
                "{files:?}"
            );
        });
        row(out, format!("summary.plan-in-prose.{name}"), move || {
            let told = "Here is the plan:\n1. Move the parser into its own crate.\n2. Write tests for every error path.\n3. Update the documentation.";
            let summary = summary(
                name,
                vec![
                    user("Refactor the parser."),
                    model(told),
                    user("Good, go on."),
                    model("I moved the parser."),
                ],
                2_000,
            );
            let steps = section(&summary, plan).join("\n");
            assert!(steps.contains("Write tests for every error path"), "{summary}");
            let knowledge = section(&summary, "key_knowledge").join("\n");
            assert!(!knowledge.contains("Write tests"), "{summary}");
        });
    }
}

fn deviations(out: &mut Rows) {
    let says = |name: &str, words: &str| profile(name).deviations.iter().any(|it| it.contains(words));
    row(out, "deviation.shorter-than-placeholder", move || {
        for name in ["opencode", "opencode@1.18", "supermemory@2.0", "claude-code"] {
            assert!(says(name, "shorter than the placeholder"), "{name}");
        }
        // Three outputs of four characters each stay, the large ones go.
        let messages = [
            rounds(&["tiny".into(), "x".repeat(200_000), "y".repeat(200_000)]),
            vec![user("two"), user("three")],
        ];
        let plan =
            plan(&profile("opencode"), &history(messages.concat()), Wish { prune: true, ..Wish::default() });
        assert_eq!(cleared(&plan), [4, 6]);
    });
    row(out, "deviation.empty-sections", move || {
        assert!(says("claude-code", "asks for all nine"));
        let summary = summary("claude-code", vec![user("Say hello to the world."), model("Hello.")], 2_000);
        assert!(!summary.contains("4. Errors and Fixes"), "{summary}");
    });
    row(out, "deviation.too-long", move || {
        for name in ["codex", "codex@0.46", "codex@0.169", "claude-code"] {
            assert!(says(name, "70 % of its size"), "{name}");
        }
    });
    row(out, "deviation.larger-outcome", move || {
        for (name, _) in BUILT_IN.iter().filter(|it| it.0 != "epitome") {
            // Gemini CLI does the same, and has a status for it: gemini.compress.inflated.
            if name.starts_with("gemini-cli") {
                assert!(!says(name, "more tokens than its input"), "{name}");
                continue;
            }
            assert!(says(name, "more tokens than its input"), "{name}");
            let (profile, history) =
                (profile(name), history(rounds(&["x".repeat(4_000), "y".repeat(4_000)])));
            let plan = plan(&profile, &history, Wish::default());
            assert!(plan.need.is_some(), "{name}: {}", plan.reason.text);
            let rejected = apply(&profile, &history, &plan, &"word ".repeat(100_000)).unwrap_err();
            assert_eq!(rejected.code, "grew", "{name}");
        }
    });
    row(out, "deviation.nothing-new", move || {
        for (name, _) in BUILT_IN.iter().filter(|it| it.0 != "epitome") {
            assert!(says(name, "nothing was said since the last compaction"), "{name}");
        }
    });
    row(out, "deviation.each-has-some", || {
        for (name, _) in BUILT_IN.iter().filter(|it| it.0 != "epitome") {
            assert!(!profile(name).deviations.is_empty(), "{name}");
        }
    });
}
