//! The ledger and the offline summary: small sessions written as text, and the laws that hold for all.

use std::collections::BTreeSet;

use epitome::compaction::facts::{self, Detail, Fact, Ledger, Voice};
use epitome::compaction::profile::{SummaryShape, SummarySpec, SummaryStyle};
use epitome::compaction::summary::offline::{self, OfflineRequest};
use epitome::history::{
    Call, History, Kind, Message, Meta, Opaque, Output, Part, Refusal, Role, RolledBack, Text,
};
use proptest::prelude::*;

use crate::corpus;

mod done;
mod findings;
mod places;
mod said;

/// A session from text: `@user`, `@model`, `@context`, `@summary`, `@call NAME ID`, `@free NAME ID`, `@out ID [failed|refused|denied]` or
/// `@out ID cleared EXIT-CODE`, each with the lines below it. `@with NAME ID` adds a call to the message before it.
pub(crate) fn session(text: &str) -> History {
    let mut messages: Vec<Message> = Vec::new();
    let mut open: Option<(&str, String)> = None;
    let mut close = |open: Option<(&str, String)>| {
        let Some((head, body)) = open else { return };
        let body = body.trim_end();
        let words: Vec<&str> = head.split(' ').collect();
        let call = |freeform: bool| {
            let call = Call {
                id: words[2].into(),
                name: words[1].into(),
                input: Text::new(body),
                freeform,
                signature: None,
            };
            Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)])
        };
        if words[0] == "with" {
            messages.last_mut().unwrap().parts.extend(call(false).parts);
            return;
        }
        messages.push(match words[0] {
            "user" => Message::text(Role::User, Kind::Said, body),
            "model" => Message::text(Role::Assistant, Kind::Said, body),
            "context" => Message::text(Role::User, Kind::Context, body),
            "summary" => Message::text(Role::User, Kind::Summary, body),
            "call" => call(false),
            "free" => call(true),
            "out" => {
                let denied = words.get(2) == Some(&"denied");
                let refused = denied || words.get(2) == Some(&"refused");
                let failed = refused || words.get(2) == Some(&"failed");
                let reason = Some(body).filter(|it| !denied && !it.is_empty()).map(Into::into);
                let refusal = refused.then(|| Box::new(Refusal { reason, by_settings: denied }));
                let cleared = words.get(2) == Some(&"cleared");
                let exit = words.get(3).map(|it| it.parse().unwrap());
                let output = Output { failed, refusal, cleared, exit, ..Output::new(words[1], body) };
                Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)])
            }
            other => panic!("unknown {other}"),
        });
    };
    for line in text.lines() {
        if let Some(head) = line.strip_prefix('@').filter(|it| it.starts_with(char::is_alphabetic)) {
            close(open.take());
            open = Some((head, String::new()));
        } else if let Some((_, body)) = &mut open {
            body.push_str(line);
            body.push('\n');
        }
    }
    close(open);
    History::new(messages, Meta { cwd: Some("/repo".into()), ..Meta::default() })
}

fn shown(fact: &Fact) -> String {
    let mut out = format!("{:?} #{} {:?}: {}", fact.topic, fact.message, fact.voice(), fact.text);
    if fact.detail != Detail::None {
        out += &format!("\n    {:?}", fact.detail);
    }
    out
}

pub(crate) fn spec() -> SummarySpec {
    epitome::profiles::built_in("epitome").unwrap().summarize().unwrap().summary.clone()
}

/// What the profile asks by default of a region.
pub(crate) fn asked(
    spec: &SummarySpec,
    region: std::ops::Range<usize>,
    max_tokens: u64,
) -> OfflineRequest<'_> {
    OfflineRequest {
        region,
        cleared: &[],
        kept: &[],
        spec,
        max_tokens,
        budget_for_shares: None,
        style: SummaryStyle::Detailed,
        focus: None,
        pins: &[],
        header: None,
    }
}

/// A rough counter: four bytes a token, rounded up.
fn count(text: &str) -> u64 {
    text.len().div_ceil(4) as u64
}

pub(crate) fn summary(
    history: &History,
    ledger: &Ledger,
    spec: &SummarySpec,
    budget: u64,
    pins: &[String],
) -> String {
    let whole = asked(spec, 0..history.messages().len(), budget);
    let ask = OfflineRequest { pins, header: Some("Head."), ..whole };
    offline::write(history, ledger, &ask, &count)
}

#[test]
fn cases() {
    insta::glob!("../cases/facts", "*.txt", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let history = session(&text);
        let ledger = facts::read(&history);
        let facts: Vec<String> = ledger.facts.iter().map(shown).collect();
        let page = summary(&history, &ledger, &spec(), 100_000, &[]);
        insta::assert_snapshot!(format!("{}\n\n-----\n{page}", facts.join("\n")));
    });
}

#[test]
fn a_step_that_the_end_names_by_its_number_alone_is_told() {
    let history = session(concat!(
        "@user\nMend the pump.\n",
        "@call TaskCreate a\n{\"subject\":\"Oil the seal\"}\n@out a\nTask #1 created\n",
        "@call TaskCreate b\n{\"subject\":\"Paint the lid\"}\n@out b\nTask #2 created\n",
        "@model\nI begin with the seal.\n",
        "@call TaskUpdate c\n{\"taskId\":\"1\",\"status\":\"in_progress\"}\n@out c\nUpdated task #1\n",
        "@call TaskUpdate d\n{\"taskId\":\"2\",\"subject\":\"Paint the lid\"}\n@out d\nUpdated task #2\n",
    ));
    let ledger = facts::read(&history);
    let page = offline::write(&history, &ledger, &asked(&spec(), 0..6, 10_000), &count);
    assert!(page.contains("doing: Oil the seal") && !page.contains("Paint the lid"), "{page}");
}

/// The end that stays tells only its own change.
#[test]
fn a_file_that_the_end_changes_again_was_changed_before_it() {
    let edit = |at: usize| {
        format!(
            "@call Edit e{at}\n{{\"file_path\":\"/repo/src/gauge.rs\",\"old_string\":\"a\",\"new_string\":\"b\"}}\n@out e{at}\nThe file has been updated.\n"
        )
    };
    let history =
        session(&format!("@user\nMend the gauge.\n{}{}@user\nAnd again.\n{}", edit(1), edit(2), edit(3)));
    let ledger = facts::read(&history);
    let page = |region| offline::write(&history, &ledger, &asked(&spec(), region, 10_000), &count);
    assert!(page(0..5).contains("edited: src/gauge.rs [#4]"), "{}", page(0..5));
    let whole = page(0..history.messages().len());
    assert_eq!(whole.matches("src/gauge.rs").count(), 1, "{whole}");
}

/// Each compaction reads only the summary before it and what came since.
#[test]
fn five_compactions_lose_no_rule_and_no_goal_and_bring_nothing_back() {
    let work: String = (0..12)
        .map(|it| format!("@call Read r{it}\n{{\"file_path\":\"/repo/src/part{it}.rs\"}}\n@out r{it}\nfn part_{it}() {{}}\n"))
        .collect();
    let plan = |limiter: &str, header: &str| {
        let todos = serde_json::json!({"todos": [
            {"content": "Write the limiter", "status": limiter},
            {"content": "Document the retry header", "status": header}]});
        format!("@call TodoWrite t\n{todos}\n@out t\nTodos updated\n")
    };
    let asked = "@user\nAdd a limiter to the login route of the shop.\nNever touch src/legacy.rs.\n";
    let since = [
        format!("{asked}{}", plan("in_progress", "pending")),
        plan("completed", "in_progress"),
        plan("completed", "completed"),
        "@model\nThe login route has its limiter, and the header is documented.\n".to_owned(),
        String::new(),
    ];
    let mut page = String::new();
    for (cycle, since) in since.iter().enumerate() {
        let earlier = if page.is_empty() { String::new() } else { format!("@summary\n{page}\n") };
        let history = session(&format!("{earlier}{since}{work}"));
        page = summary(&history, &facts::read(&history), &spec(), 300, &[]);
        for kept in ["Never touch src/legacy.rs", "Add a limiter to the login route"] {
            assert!(page.contains(kept), "cycle {cycle}: {kept}\n{page}");
        }
        for (item, done) in [("Write the limiter", 1), ("Document the retry header", 2)] {
            let told = |it: &&str| it.contains(item) && !it.contains("done:");
            assert_eq!(cycle >= done, !page.lines().any(|it| told(&it)), "cycle {cycle}: {item}\n{page}");
        }
    }
}

#[test]
fn a_long_goal_keeps_one_line_in_the_smallest_room_five_times() {
    let detail = "The rate is read in one place and used in three others. ".repeat(40);
    let files: String = (0..40)
        .map(|it| format!("@call Edit e{it}\n{{\"file_path\":\"/repo/src/part{it}.rs\",\"old_string\":\"a\",\"new_string\":\"b\"}}\n@out e{it}\nThe file has been updated successfully.\n"))
        .collect();
    let mut page = String::new();
    for cycle in 0..5 {
        let begins = match cycle {
            0 => format!("@user\nAdd a limiter to the login route of the shop. {detail}\n@user\ncontinue\n"),
            _ => format!("@summary\n{page}\n"),
        };
        let history = session(&format!("{begins}{files}"));
        page = summary(&history, &facts::read(&history), &spec(), 160, &[]);
        assert!(page.contains("Add a limiter to the login route"), "cycle {cycle}\n{page}");
    }
}

#[test]
fn what_a_turn_changed_that_was_rolled_back_is_told() {
    let mut history = session("@user\nMend the gauge.\n@model\nI look at it.");
    let changed = vec!["/repo/src/gauge.rs".to_owned(), "notes.md".to_owned()];
    history.meta.rolled_back = Some(RolledBack { turns: 2, changed });
    let page = summary(&history, &facts::read(&history), &spec(), 10_000, &[]);
    let told =
        "/repo; 2 turns were rolled back; what they changed may still be on disk: src/gauge.rs, notes.md";
    assert!(page.contains(told), "{page}");
}

#[test]
fn a_request_is_cut_to_the_room_instead_of_left_out() {
    let long = "The limiter counts the visits of an hour in each region of the shop. ".repeat(60);
    let history = session(&format!("@user\n{long}\n@model\nI look at it."));
    let ledger = facts::read(&history);
    let mut before = 0;
    for room in [40, 80, 160, 320, 640] {
        let page = summary(&history, &ledger, &spec(), room, &[]);
        assert!(count(&page) <= room, "{room}\n{page}");
        assert!(page.contains("The limiter counts the visits"), "{room}\n{page}");
        assert!(page.len() > before, "no more in {room} tokens than in less\n{page}");
        before = page.len();
    }
}

#[test]
fn what_a_long_listing_showed_stands_in_one_line_until_the_next_compaction() {
    let listing: String = (0..9).map(|it| format!("src/deep/part{it}.rs\n")).collect();
    let talk: String = (0..35).map(|it| format!("@user\nWhy {it}?\n@model\nBecause of {it}.\n")).collect();
    let page = |text: &str| {
        let history = session(text);
        let spec = spec();
        let whole = asked(&spec, 0..history.messages().len(), 10_000);
        let ask = OfflineRequest { budget_for_shares: Some(10_000), ..whole };
        offline::write(&history, &facts::read(&history), &ask, &count)
    };
    let first = page(&format!(
        "@user\nRead the parts.\n@call Glob g\n{{\"pattern\":\"src/**\"}}\n@out g\n{listing}@call Read r\n{{\"file_path\":\"/repo/src/deep/part3.rs\"}}\n@out r\nfn three() {{}}\n{talk}"
    ));
    let listed: Vec<&str> = first.lines().filter(|it| it.starts_with("- listed")).collect();
    assert_eq!(listed.len(), 1, "{first}");
    assert!(listed[0].contains("part0.rs") && listed[0].contains("part8.rs"), "{first}");
    assert!(!listed[0].contains("part3.rs") && first.contains("- read: src/deep/part3.rs"), "{first}");
    let second = page(&format!("@summary\n{first}\n@user\nGo on.\n"));
    assert!(!second.contains("part0.rs") && second.contains("part3.rs"), "{second}");
}

#[test]
fn gives_way_in_order() {
    let text = include_str!("../cases/facts/decisions.txt");
    let history = session(text);
    let ledger = facts::read(&history);
    let pages = [0, 10, 50, 90, 150].map(|budget| {
        let page = summary(&history, &ledger, &spec(), budget, &["keep me".into()]);
        format!("=== {budget} tokens, {} used\n{page}", count(&page))
    });
    insta::assert_snapshot!(pages.join("\n"));
}

#[test]
fn writes_the_other_shapes() {
    let history = session("@user\nKeep <b> & \"c\".\n@call Bash c\n{\"command\":\"x && y\"}\n@out c\nok");
    let ledger = facts::read(&history);
    let xml =
        SummarySpec { shape: SummaryShape::Xml, root: Some("state".into()), keep_empty: true, ..spec() };
    let xml = summary(&history, &ledger, &xml, 10_000, &["a < b".into()]);
    let plain =
        summary(&history, &ledger, &SummarySpec { shape: SummaryShape::Plain, ..spec() }, 10_000, &[]);
    insta::assert_snapshot!(format!("{xml}\n-----\n{plain}"));
}

#[test]
fn styles_change_depth_but_not_what_is_pinned() {
    let history = session(include_str!("../cases/facts/files.txt"));
    let ledger = facts::read(&history);
    let spec = spec();
    let pins = ["the pin".to_string()];
    let write = |style| {
        let whole = asked(&spec, 0..history.messages().len(), 5_000);
        let ask = OfflineRequest { style, focus: Some("parser"), pins: &pins, ..whole };
        offline::write(&history, &ledger, &ask, &count)
    };
    let [brief, detailed, technical] =
        [SummaryStyle::Brief, SummaryStyle::Detailed, SummaryStyle::Technical].map(write);
    for page in [&brief, &detailed, &technical] {
        assert!(
            page.contains("the pin")
                && page.contains("Tidy up the parser")
                && page.contains("created, edited: src/new.rs")
        );
    }
    assert!(brief.len() < detailed.len());
    assert!(!brief.contains("read: README.md") && technical.contains("read: README.md"));
}

/// One long prompt is told whole rather than cut and half repeated as rules, where there is room for one of the two.
#[test]
fn a_prompt_says_its_own_rules() {
    let rules: String = (0..12).map(|it| format!("Never touch module number {it} of the plant. ")).collect();
    let history = session(&format!("@user\nBuild the pump control as described here. {rules}"));
    let ledger = facts::read(&history);
    let rules = |page: &str| page.matches("- \"Never touch").count();
    let tight = summary(&history, &ledger, &spec(), 300, &[]);
    assert!(tight.contains("number 0 of") && tight.contains("number 11 of") && rules(&tight) == 0, "{tight}");
    let wide = summary(&history, &ledger, &spec(), 3_000, &[]);
    assert_eq!(rules(&wide), 12, "{wide}");
}

#[test]
fn only_the_region_is_told() {
    let history = session("@user\nfirst request here\n@model\nfine\n@user\nsecond request here");
    let ledger = facts::read(&history);
    let page = offline::write(&history, &ledger, &asked(&spec(), 0..2, 1_000), &count);
    assert!(page.contains("first request") && !page.contains("second request"), "{page}");
}

#[test]
fn storms_and_giants_are_bounded() {
    let storm: String = (0..3_000).map(|it| format!("Never touch module number {it} again.\n")).collect();
    let giant = "x".repeat(10_000_000);
    let mut messages = vec![
        Message::text(Role::User, Kind::Said, storm.as_str()),
        Message::text(Role::User, Kind::Said, giant.as_str()),
        Message::text(Role::Assistant, Kind::Said, "word ".repeat(400_000).as_str()),
    ];
    let output = Output { failed: true, ..Output::new("c", Text::new("error: no\n".repeat(500_000))) };
    let call = Call {
        id: "c".into(),
        name: "Bash".into(),
        input: "{\"command\":\"make\"}".into(),
        freeform: false,
        signature: None,
    };
    messages.push(Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)]));
    messages.push(Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)]));
    let history = History::new(messages, Meta::default());
    let ledger = facts::read(&history);
    assert_eq!(ledger.about(facts::Topic::Constraints).count(), 3_000);
    let page = summary(&history, &ledger, &spec(), 2_000, &[]);
    assert!(count(&page) <= 2_000 && page.contains("module number 2999"), "{page}");
}

/// Whether an error is gone that was not seen again is not known better after a compaction.
#[test]
fn what_may_be_gone_stays_so() {
    let line = "- `git fetch` → failed: fatal: no such host → a similar run went well at #7 [#3]";
    let history = session(&format!("@summary\n## Errors\n{line}"));
    let page = summary(&history, &facts::read(&history), &spec(), 1_000, &[]);
    assert!(page.contains("no such host → a similar run went well [#0]"), "{page}");
}

/// What a second reading of our own summary must not lose.
#[test]
fn five_compactions_keep_the_facts() {
    let request = regex::Regex::new("- to #[0-9]+: ").unwrap();
    let ended = regex::Regex::new("its run at #[0-9]+ failed otherwise|run again at #[0-9]+").unwrap();
    for case in ["decisions", "files", "commands", "plan", "rules", "identifiers"] {
        let path = format!("{}/tests/cases/facts/{case}.txt", env!("CARGO_MANIFEST_DIR"));
        let mut history = session(&std::fs::read_to_string(path).unwrap());
        let lines = |page: &str| -> BTreeSet<String> {
            let text: String = page.split(" [#").map(|it| it.split_once(']').map_or(it, |it| it.1)).collect();
            let text = text.replace(" (superseded by)", " (superseded)");
            // Of an earlier summary's command it is unknown whether it ran again.
            let text = text.replace("not run again in this form", "status unknown");
            let text = ended.replace_all(&text, "status unknown");
            let text = request.replace_all(&text, "- ");
            text.lines().filter(|it| it.starts_with("- ")).map(Into::into).collect()
        };
        let mut pages = Vec::new();
        for _ in 0..5 {
            let page = summary(&history, &facts::read(&history), &spec(), 50_000, &[]);
            let meta = history.meta.clone();
            history = History::new(vec![Message::text(Role::User, Kind::Summary, page.as_str())], meta);
            pages.push(page);
        }
        let (first, last) = (lines(&pages[0]), lines(&pages[4]));
        let lost: Vec<_> = first.difference(&last).collect();
        assert!(lost.is_empty(), "{case} lost {lost:#?}\nfrom {}\nleft {}", pages[0], pages[4]);
        assert_eq!(pages[3], pages[4], "{case} does not settle");
    }
}

/// Any message of a session, with texts that look like something and texts that look like nothing.
fn message() -> impl Strategy<Value = Message> {
    let words = prop::sample::select(vec![
        "Never push to main!",
        "use pnpm, not npm",
        "ok",
        "B",
        "1. one\n2. two\nWhich?",
        "不要动这个。",
        "必ず確認して。",
        "```\ncode must\n```",
        "- [ ] open\n- [x] done",
        "a \"quoted\" thing should stay",
        "https://a.b/c #12",
        "\u{1b}[31merror: x\u{1b}[0m",
        "Exit code 1\nfatal: no",
        "\0",
        "word",
        "…",
        "## Goal\n- \"x\" [#1]",
        "</a>",
        "é 😀",
    ]);
    let text = prop_oneof![words.prop_map(String::from), "\\PC{0,80}"];
    let text = prop::collection::vec(text, 1..4).prop_map(|it| it.join("\n"));
    let name = prop::sample::select(vec![
        "Bash",
        "Edit",
        "Write",
        "apply_patch",
        "TodoWrite",
        "TaskUpdate",
        "AskUserQuestion",
        "exec",
        "zzz",
    ]);
    let input = prop_oneof![
        Just(r#"{"command":"rm a && cat > b <<E"}"#.to_string()),
        Just(r#"{"file_path":"/repo/../x/./y.rs","content":"fn name_of() {}"}"#.to_string()),
        Just(r#"{"todos":[{"content":"a","status":"x"},1]}"#.to_string()),
        Just("*** Begin Patch\n*** Add File: q".to_string()),
        "\\PC{0,40}",
    ];
    let id = prop::sample::select(vec!["a", "b"]);
    prop_oneof![
        (text.clone(), 0..3u8).prop_map(|(text, who)| {
            let (role, kind) = match who {
                0 => (Role::User, Kind::Said),
                1 => (Role::Assistant, Kind::Said),
                _ => (Role::User, Kind::Summary),
            };
            Message::text(role, kind, text.as_str())
        }),
        (name, input, id.clone(), any::<bool>()).prop_map(|(name, input, id, freeform)| {
            let call =
                Call { id: id.into(), name: name.into(), input: Text::new(input), freeform, signature: None };
            Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)])
        }),
        (text, id, any::<bool>()).prop_map(|(text, id, failed)| {
            let output = Output { failed, ..Output::new(id, text) };
            Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)])
        }),
    ]
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn laws(messages in prop::collection::vec(message(), 0..12), budget in 0u64..400, shape in 0..3u8) {
        let history = History::new(messages, Meta { cwd: Some("/repo".into()), ..Meta::default() });
        let ledger = facts::read(&history);
        prop_assert_eq!(&ledger, &facts::read(&history));
        let shape = [SummaryShape::Markdown, SummaryShape::Xml, SummaryShape::Plain][shape as usize];
        let spec = SummarySpec { shape, ..spec() };
        let pins = ["pinned words".to_string()];
        let page = summary(&history, &ledger, &spec, budget, &pins);
        prop_assert!(count(&page) <= budget, "{} > {budget}: {page}", count(&page));
        prop_assert_eq!(&page, &summary(&history, &ledger, &spec, budget, &pins));
        prop_assert!(budget < 40 || page.contains("pinned words"));
        let said: String = history
            .messages()
            .iter()
            .filter(|it| it.role == Role::User || it.role == Role::Tool)
            .flat_map(|it| {
                let outputs = it.outputs().map(|it| it.text.as_str().to_string()).collect::<Vec<_>>();
                std::iter::once(it.plain()).chain(outputs)
            })
            .map(|it| flat(&it) + "\n")
            .collect();
        for fact in &ledger.facts {
            prop_assert!(fact.message < history.messages().len().max(1), "{fact:?} has no source");
            if fact.voice() == Voice::User {
                let text = flat(&fact.text);
                let whole = said.contains(&text) || text.split("\" … \"").all(|it| said.contains(it));
                prop_assert!(whole || fact.text.as_str() == "approved", "not said: {fact:?}");
            }
        }
    }
}

#[test]
fn holds_on_real_sessions() {
    let spec = spec();
    for path in corpus::of_corpus("facts::holds_on_real_sessions", &corpus::KINDS) {
        let Some(history) = corpus::history(&path) else { continue };
        let name = path.display();
        let ledger = facts::read(&history);
        assert!(ledger.facts.iter().all(|it| it.message < history.messages().len()), "{name}");
        // What people said, also before a sealed compaction, and what they answered when a tool asked them.
        let messages = history.messages();
        let said: Vec<String> = messages
            .iter()
            .chain(messages.iter().filter_map(|it| it.replaced.as_deref()).flatten())
            .filter(|it| it.role != Role::Assistant && it.kind != Kind::Context)
            .flat_map(|it| it.outputs().map(|it| flat(it.text.as_str())).chain([flat(&it.plain())]))
            .collect();
        for fact in ledger.facts.iter().filter(|it| it.voice() == Voice::User) {
            let text = flat(&fact.text);
            // The name of a slash command stands apart from its arguments in the client's message.
            let arguments = fact.text.split_once('\n').map(|it| flat(it.1));
            let command = || fact.text.starts_with('/') && !text.contains(' ');
            let is_said = |text: &String| said.iter().any(|it| it.contains(text));
            let verbatim = is_said(&text)
                || fact.text.as_str() == "approved"
                || command()
                || arguments.is_some_and(|it| is_said(&it));
            assert!(verbatim, "{name}: not said: {fact:?}");
        }
        for budget in [0, 50, 300, 2_000, 20_000] {
            let page = summary(&history, &ledger, &spec, budget, &[]);
            assert!(count(&page) <= budget, "{name}: {} > {budget}", count(&page));
            assert_eq!(page, summary(&history, &ledger, &spec, budget, &[]), "{name}");
        }
    }
}

#[test]
fn a_users_spec_chooses_files_and_slices_time() {
    let mut messages = Vec::new();
    for (number, path) in ["src/a.rs", "docs/b.md", "src/deep/c.rs", "web/d.ts"].iter().enumerate() {
        let input = format!(r#"{{"file_path":"/repo/{path}","old_string":"x","new_string":"y"}}"#);
        let call = Call {
            id: number.to_string().into(),
            name: "Edit".into(),
            input: input.as_str().into(),
            freeform: false,
            signature: None,
        };
        let output = Output::new(number.to_string(), "ok");
        messages.push(Message::text(Role::User, Kind::Said, format!("change {path}")));
        messages.push(Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)]));
        messages.push(Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)]));
    }
    for (number, message) in (0i64..).zip(&mut messages) {
        message.at = Some(1_700_000_000_000 + number * 10 * 60_000);
    }
    let history = History::new(messages, Meta { cwd: Some("/repo".into()), ..Meta::default() });
    let ledger = facts::read(&history);
    let mut spec = spec();
    spec.only_files = vec!["src/**/*.rs".into(), "*.ts".into()];
    let text = summary(&history, &ledger, &spec, 500, &[]);
    let files = text.split("## Files").nth(1).unwrap().split("##").next().unwrap();
    assert!(files.contains("a.rs") && files.contains("c.rs") && files.contains("d.ts"), "{text}");
    assert!(!files.contains("b.md"), "{text}");
    spec.slice_minutes = 60;
    let sliced = summary(&history, &ledger, &spec, 500, &[]);
    assert!(
        sliced.starts_with("# Minutes 0 to 60\nHead.") && sliced.contains("# Minutes 60 to 120\n"),
        "{sliced}"
    );
    assert!(count(&sliced) <= 500);
    let late = sliced.split("# Minutes 60 to 120").nth(1).unwrap();
    assert!(late.contains("web/d.ts") && !late.contains("src/a.rs"), "{sliced}");
    // What comes first stays when space is short.
    spec.slice_minutes = 0;
    spec.only_files = Vec::new();
    spec.first_files = vec!["docs/**".into()];
    let shown = (60..200).step_by(10).map(|budget| summary(&history, &ledger, &spec, budget, &[]));
    let first = shown.filter_map(|it| it.split("## Files").nth(1).map(str::to_owned)).next().unwrap();
    assert!(first.contains("b.md"), "{first}");
}

#[test]
fn a_prompt_that_stands_behind_the_summary_is_only_begun_in_it() {
    let plan =
        "Replace the seal of the pump, then measure its pressure at both ends of the pipe. ".repeat(20);
    let history = session(&format!(
        "@user\n{plan}Use two screws for each seal.\n@call Bash b\n{{\"command\":\"make\"}}\n@out b\nok\n@model\nThe first seal is replaced."
    ));
    let ledger = facts::read(&history);
    let write = |kept: &[usize]| {
        let spec = spec();
        let whole = asked(&spec, 0..history.messages().len(), 4_000);
        let ask = OfflineRequest { kept, ..whole };
        offline::write(&history, &ledger, &ask, &count)
    };
    let (whole, begun) = (write(&[]), write(&[0]));
    assert!(whole.contains(plan.trim()), "{whole}");
    assert!(begun.contains("- \"Replace the seal of the pump,") && !begun.contains(plan.trim()), "{begun}");
    assert!(!begun.contains("## Asked for in this task"), "{begun}");
}
