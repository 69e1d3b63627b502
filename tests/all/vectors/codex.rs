//! Codex: what survives, how it is cut, where the context stands, the limit.

use epitome::compaction;
use epitome::compaction::plan::{Cause, ModelLimits, Op};
use epitome::compaction::profile::{Cut, Keep, Pass, Profile};
use epitome::history::{Kind, Message, Role};
use epitome::tokens::middle::{by_tokens, bytes4, split, within_bytes};

use super::{Rows, Wish, call, due, history, laid_out, model, plan, profile, result, row, texts, user};

const NEW: &str = "codex@0.169";

pub(crate) fn rows() -> Rows {
    let mut out = Rows::new();
    cuts(&mut out);
    kept(&mut out);
    layouts(&mut out);
    let limits = |window| ModelLimits { window: Some(window), ..ModelLimits::default() };
    row(&mut out, "codex.limit.nine-tenths", move || {
        let profile = profile(NEW);
        assert_eq!(compaction::plan::threshold(&profile, &limits(272_000)), Some(244_800));
        assert_eq!(compaction::plan::threshold(&profile, &limits(11)), Some(9));
    });
    row(&mut out, "codex.limit.configured", move || {
        let set = |tokens: u64| {
            profile(NEW)
                .honouring(&move |key| (key == "codex:model_auto_compact_token_limit").then(|| tokens.into()))
        };
        assert!(due(&set(20_000), limits(272_000), 20_000));
        // It cannot exceed nine tenths.
        assert_eq!(compaction::plan::threshold(&set(1_000_000), &limits(272_000)), Some(244_800));
        // Without a window the configured limit alone holds.
        assert_eq!(compaction::plan::threshold(&set(20_000), &ModelLimits::default()), Some(20_000));
    });
    row(&mut out, "codex.limit.0_46", move || {
        assert_eq!(compaction::plan::threshold(&profile("codex@0.46"), &limits(272_000)), Some(272_000));
        assert_eq!(compaction::plan::threshold(&profile("codex@0.46"), &limits(1_000_000)), Some(350_000));
    });
    row(&mut out, "codex.constant.user-messages", || {
        for name in ["codex", "codex@0.46", NEW] {
            let profile = profile(name);
            let Keep::UserMessages(rule) = &profile.summarize().unwrap().keep else { panic!("{name}") };
            assert_eq!(rule.tokens, 20_000, "{name}");
        }
    });
    row(&mut out, "codex.constant.retries", || {
        // The article tells of ten; the program of that day and of today has five.
        let retries = |name| profile(name).summarize().unwrap().prompts.retries;
        assert_eq!([retries("codex"), retries("codex@0.46"), retries(NEW)], [Some(10), Some(5), Some(5)]);
    });
    row(&mut out, "codex.constant.backoff", || {
        for name in ["codex", "codex@0.46", NEW] {
            assert!(profile(name).deviations.iter().any(|it| it.contains("200 ms")), "{name}");
        }
    });
    row(&mut out, "codex.prompt.configured", || {
        let profile =
            profile(NEW).honouring(&|key| (key == "codex:compact_prompt").then(|| " say it briefly ".into()));
        assert_eq!(profile.summarize().unwrap().prompts.ask.as_deref(), Some("say it briefly"));
    });
    out
}

fn cuts(out: &mut Rows) {
    let one = "this is an example of a long output that should be truncated".to_owned();
    let two = format!("{one}\nalso some other line");
    let faces = format!("{}\nsecond line with text\n", "😀".repeat(10));
    let token_cases: [(String, usize, &str); 5] = [
        ("abcdef".into(), 0, "…2 tokens truncated…"),
        ("example output".into(), 1, "ex…3 tokens truncated…ut"),
        (one, 5, "this is an…10 tokens truncated… truncated"),
        (two, 10, "this is an example o…11 tokens truncated…also some other line"),
        (faces, 8, "😀😀😀😀…8 tokens truncated… line with text\n"),
    ];
    for (number, (text, tokens, expected)) in token_cases.into_iter().enumerate() {
        row(out, format!("codex.cut.tokens-{}", number + 1), move || {
            assert_eq!(by_tokens(&text, tokens), expected)
        });
    }
    let five = "😀".repeat(5);
    let splits: [(String, usize, usize, (usize, &str, &str)); 7] = [
        ("hello world".into(), 5, 5, (1, "hello", "world")),
        ("abc".into(), 0, 0, (3, "", "")),
        ("abcdef".into(), 4, 4, (0, "abcd", "ef")),
        ("😀abc😀".into(), 5, 5, (1, "😀a", "c😀")),
        (five.clone(), 1, 1, (5, "", "")),
        (five.clone(), 7, 7, (3, "😀", "😀")),
        (five, 8, 8, (1, "😀😀", "😀😀")),
    ];
    for (number, (text, head, tail, expected)) in splits.into_iter().enumerate() {
        row(out, format!("codex.cut.split-{}", number + 1), move || {
            assert_eq!(split(&text, head, tail), expected)
        });
    }
    for (bytes, tokens) in [(0, 0), (5, 2)] {
        row(out, format!("codex.cut.estimate-{bytes}"), move || assert_eq!(bytes4(bytes), tokens));
    }
    row(out, "codex.cut.empty", || assert_eq!(by_tokens("", 0), ""));
    let lines = || (1..=20).map(|it| format!("{it:03}\n")).collect::<String>();
    row(out, "codex.cut.0_46-lines", move || {
        let expected = "001\n002\n003\n004\n…12 tokens truncated…\n017\n018\n019\n020\n";
        assert_eq!(within_bytes(&lines(), 64), (expected.to_owned(), Some(20)));
    });
    row(out, "codex.cut.0_46-no-room", move || {
        assert_eq!(within_bytes(&lines(), 0), ("…20 tokens truncated…".to_owned(), Some(20)));
    });
}

/// The user messages that stay.
fn stay(name: &str, texts_of: &[&str]) -> Vec<String> {
    let mut messages: Vec<Message> = texts_of.iter().map(|it| user(it)).collect();
    messages.push(model(&"x".repeat(400)));
    let history = history(messages);
    let found = laid_out(&history, &plan(&profile(name), &history, Wish::default()));
    texts(&found).into_iter().filter(|it| !it.ends_with('S')).collect()
}

fn kept(out: &mut Rows) {
    let fenced = [
        ("agents", "# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>"),
        ("environment", " <ENVIRONMENT_CONTEXT>cwd</environment_context>\n"),
        ("shell", "<user_shell_command>ls</user_shell_command>"),
        ("aborted", "<turn_aborted>x</turn_aborted>"),
        ("subagent", "<subagent_notification>x</subagent_notification>"),
        ("internal", "<codex_internal_context source=\"goal\">x</codex_internal_context>"),
        ("goal", "<goal_context>x</goal_context>"),
        ("plugins", "<recommended_plugins>x</recommended_plugins>"),
        ("summary", "Another language model started to solve this problem and so on\nold"),
    ];
    for (name, text) in fenced {
        row(out, format!("codex.kept.not-{name}"), move || assert_eq!(stay(NEW, &["real", text]), ["real"]));
    }
    row(out, "codex.kept.starts-and-ends", || {
        let text = "see <environment_context>x</environment_context>";
        assert_eq!(stay(NEW, &[text]), [text]);
    });
    row(out, "codex.kept.user-instructions-now", || {
        let text = "<user_instructions>x</user_instructions>";
        assert_eq!(stay(NEW, &[text]), [text]);
    });
    row(out, "codex.kept.user-instructions-0_46", || {
        for name in ["codex", "codex@0.46"] {
            let history =
                history(vec![user("<USER_INSTRUCTIONS>x</user_instructions>"), user("real"), model("y")]);
            let found =
                texts(&laid_out(&history, &plan(&profile(name), &history, Wish::default()))).join("\n");
            assert!(found.contains("real") && !found.to_lowercase().contains("user_instructions"), "{found}");
        }
    });
    row(out, "codex.kept.third-party-summary", || {
        assert_eq!(stay(NEW, &["a summary by somebody else"]), ["a summary by somebody else"]);
    });
    row(out, "codex.kept.parts-without-separator", || {
        let parts =
            vec![epitome::history::Part::Text("ab".into()), epitome::history::Part::Text("cd".into())];
        let history = history(vec![Message::new(Role::User, Kind::Said, parts), model("y")]);
        let mut profile = profile(NEW);
        // Four bytes are one token; a separator would be a fifth, and the message would be cut.
        budget(&mut profile, 1);
        let plan = plan(&profile, &history, Wish::default());
        let found = texts(&laid_out(&history, &plan));
        assert!(found.len() == 2 && !found[0].contains("truncated"), "{found:?}");
    });
    row(out, "codex.kept.image-only", || {
        // The program keeps it as an empty text, which no API takes; kept out here, listed as a deviation.
        let media = epitome::history::Media {
            kind: epitome::history::MediaKind::Image,
            mime: "image/png".into(),
            data: "AAAA".into(),
            size: None,
        };
        let image = Message::new(Role::User, Kind::Said, vec![epitome::history::Part::Media(media)]);
        let history = history(vec![image, user("real"), model("y")]);
        let found = texts(&laid_out(&history, &plan(&profile(NEW), &history, Wish::default())));
        assert_eq!((found.len(), found[0].as_str()), (2, "real"));
        assert!(profile(NEW).deviations.iter().any(|it| it.contains("only an attachment")));
    });
    row(out, "codex.kept.budget-0", || {
        let mut profile = profile(NEW);
        budget(&mut profile, 0);
        let history = history(vec![user("a"), user("b"), model("y")]);
        assert_eq!(laid_out(&history, &plan(&profile, &history, Wish::default())).len(), 1);
    });
    row(out, "codex.kept.newest-first", || {
        // 16 tokens: the newest message whole, the one before cut, the oldest gone.
        let mut profile = profile(NEW);
        budget(&mut profile, 16);
        let long = "word ".repeat(200);
        let history = history(vec![user("oldest"), user(&long), user("newest"), model("y")]);
        let found = texts(&laid_out(&history, &plan(&profile, &history, Wish::default())));
        assert_eq!(found.len(), 3);
        assert!(found[0].contains("tokens truncated…"), "{}", found[0]);
        assert_eq!(found[1], "newest");
    });
    row(out, "codex.kept.limit-16", || {
        let mut profile = profile(NEW);
        budget(&mut profile, 16);
        let history = history(vec![user(&"word ".repeat(200)), model("y")]);
        let found = texts(&laid_out(&history, &plan(&profile, &history, Wish::default())));
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], by_tokens(&"word ".repeat(200), 16));
    });
    row(out, "codex.kept.nothing-else", || {
        let messages =
            vec![user("a"), call("c", "shell"), result("c", "out"), model("said"), user("b"), model("x")];
        let history = history(messages);
        let found = texts(&laid_out(&history, &plan(&profile(NEW), &history, Wish::default())));
        assert_eq!(found[..2], ["a", "b"]);
        assert_eq!(found.len(), 3);
    });
    row(out, "codex.bridge.joined", || {
        for name in ["codex", "codex@0.46"] {
            let history = history(vec![user("one"), model("x"), user("two"), model("y")]);
            let found = texts(&laid_out(&history, &plan(&profile(name), &history, Wish::default())));
            assert_eq!(found.len(), 1);
            assert!(found[0].contains("\n\none\n\ntwo\n\n") && found[0].ends_with("\n\nS"), "{}", found[0]);
        }
    });
    row(out, "codex.bridge.none", || {
        let history = history(vec![model("x"), model("y")]);
        let found = texts(&laid_out(&history, &plan(&profile("codex@0.46"), &history, Wish::default())));
        assert!(found[0].contains("\n\n(none)\n\n"));
    });
    row(out, "codex.bridge.cut", || {
        let long: String = (0..20_000).map(|it| format!("line {it}\n")).collect();
        let history = history(vec![user(&long), model("y")]);
        let found =
            |name| texts(&laid_out(&history, &plan(&profile(name), &history, Wish::default()))).remove(0);
        let seed = found("codex");
        assert!(seed.contains("... [tokens truncated] ...") && seed.len() < 81_000);
        assert!(found("codex@0.46").contains(&within_bytes(&long, 80_000).0));
    });
    row(out, "codex.bridge.not-in-a-bridge", || {
        for name in ["codex", "codex@0.46"] {
            let first = history(vec![user("one"), model("x"), user("two"), model("y")]);
            let bridge = laid_out(&first, &plan(&profile(name), &first, Wish::default()));
            let second = history([bridge, vec![user("three"), model("z")]].concat());
            let found = texts(&laid_out(&second, &plan(&profile(name), &second, Wish::default())));
            assert_eq!(found.len(), 1);
            assert!(found[0].contains("\n\none\n\ntwo\n\nthree\n\n"), "{}", found[0]);
            assert_eq!(found[0].matches("The user gave you instructions").count(), 1);
        }
    });
}

fn budget(profile: &mut Profile, tokens: u64) {
    for pass in &mut profile.passes {
        if let Pass::Summarize(step) = pass
            && let Keep::UserMessages(kept) = &mut step.keep
        {
            kept.tokens = tokens;
            assert_eq!(kept.cut, Cut::Tokens);
        }
    }
}

fn layouts(out: &mut Rows) {
    let context = || {
        vec![
            Message::text(Role::System, Kind::Context, "dev"),
            Message::text(Role::User, Kind::Context, "env"),
        ]
    };
    let talk = || vec![user("one"), model("x"), user("two"), model("y")];
    let shape = |found: &[Message]| -> Vec<String> {
        found.iter().map(|it| if it.kind == Kind::Summary { "S".to_owned() } else { it.plain() }).collect()
    };
    row(out, "codex.layout.manual", move || {
        let history = history([context(), talk()].concat());
        let found = laid_out(&history, &plan(&profile(NEW), &history, Wish::default()));
        assert_eq!(shape(&found), ["one", "two", "S", "dev", "env"]);
    });
    row(out, "codex.layout.mid-turn", move || {
        let history = history([context(), talk()].concat());
        let wish = Wish { cause: Cause::Auto, ..Wish::default() };
        let found = laid_out(&history, &plan(&profile(NEW), &history, wish));
        assert_eq!(shape(&found), ["one", "dev", "env", "two", "S"]);
        // Once more over its own result and a new turn: the context is found where it now stands.
        let next = super::history([found, vec![user("three"), model("z")]].concat());
        let found = laid_out(&next, &plan(&profile(NEW), &next, wish));
        assert_eq!(shape(&found), ["one", "two", "dev", "env", "three", "S"]);
    });
    row(out, "codex.layout.no-user-message", move || {
        let history = history([context(), vec![model("x"), model("y")]].concat());
        let wish = Wish { cause: Cause::Auto, ..Wish::default() };
        let found = laid_out(&history, &plan(&profile(NEW), &history, wish));
        assert_eq!(shape(&found), ["dev", "env", "S"]);
    });
    row(out, "codex.layout.bridge", move || {
        let history = history([context(), talk()].concat());
        let found = laid_out(&history, &plan(&profile("codex@0.46"), &history, Wish::default()));
        assert_eq!(shape(&found), ["dev", "env", "S"]);
    });
    for name in ["codex", "codex@0.46", NEW] {
        row(out, format!("codex.too-long.oldest.{name}"), move || {
            let messages = vec![
                user("a"),
                call("c", "shell"),
                result("c", &"x".repeat(4_000)),
                model("b"),
                user("d"),
                model("e"),
            ];
            let limits = ModelLimits { window: Some(1_500), ..ModelLimits::default() };
            let wish = Wish { cause: Cause::Overflow, limits, ..Wish::default() };
            let plan = plan(&profile(name), &history(messages), wish);
            // The first message goes, then the call with its output: the rest fits.
            let need = plan.need.clone().unwrap();
            assert_eq!((need.from, need.shown_from), (0, 3));
            assert!(plan.ops.iter().any(|it| matches!(it, Op::Skip { from: 0, to: 3, .. })));
        });
    }
}
