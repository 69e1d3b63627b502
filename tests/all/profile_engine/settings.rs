//! Whose settings hold, what a window is too small for, and all profiles side by side.

use epitome::compaction::profile::Profile;
use epitome::engine::{self, Ask, SessionRef, To};
use epitome::history::Kind;
use epitome::profiles::BUILT_IN;
use epitome::sessions::Format;
use serde_json::Value;

use super::{ask, contents, engine_at, open, ready, session, with};

#[test]
fn the_agents_own_settings_hold_under_auto_and_ours_win() {
    let home = tempfile::tempdir().unwrap();
    let settings = [
        (".gemini/settings.json", r#"{"model":{"compressionThreshold":0.9}}"#),
        (".config/opencode/opencode.json", r#"{"compaction":{"auto":false}}"#),
        (
            ".config/epitome/config.toml",
            "[profiles.mine]\nextends = \"gemini-cli\"\nname = \"mine\"\n[profiles.mine.trigger]\nshare = 0.2\n",
        ),
    ];
    let engine = engine_at(home.path(), &[("DISABLE_AUTO_COMPACT", "1")], &settings);
    let opened = open(&engine, &session(home.path(), 20));
    let run = |profile: Profile, auto: bool| {
        let wish = with(Ask { to: To::Plan, ..Ask::new(profile) }, |it| {
            it.options.auto = auto;
            it.counting.window = Some(100_000);
        });
        engine::compact(&engine, &opened, &wish).unwrap().answer()
    };
    let built_in = |name: &str| epitome::profiles::built_in(name).unwrap();
    // Due at a half, not at nine tenths.
    let found = run(built_in("gemini-cli"), true);
    assert_eq!((found.status.name(), found.native_status.as_str()), ("noop", "NOOP"), "{}", found.reason);
    assert!(found.reason.contains("the threshold is 90000"), "{}", found.reason);
    assert_eq!(run(built_in("gemini-cli"), false).native_status, "COMPRESSED");
    let mine = run(engine.config.profile("mine").unwrap(), true);
    assert_eq!(mine.status.name(), "planned", "{}", mine.reason);
    for name in ["opencode@1.18", "claude-code"] {
        let found = run(built_in(name), true);
        assert_eq!((found.status.name(), found.reason_code.as_str()), ("noop", "switched_off"), "{name}");
        assert_eq!(run(built_in(name), false).status.name(), "planned", "{name}");
    }
    let triggers = engine::estimate(
        &engine,
        &opened,
        &with(ask("epitome"), |it| it.counting.window = Some(100_000)),
        None,
    )
    .unwrap()
    .triggers;
    assert_eq!(triggers["claude-code"].reason_code, "switched_off");
    assert_eq!(triggers["gemini-cli"].at, Some(90_000));
    assert_eq!(triggers.len(), BUILT_IN.len());
}

#[test]
fn a_window_smaller_than_what_is_fixed_is_said_and_nothing_loops() {
    let (_home, engine, opened) = ready(20);
    for (name, _) in BUILT_IN {
        for auto in [true, false] {
            let wish = with(ask(name), |it| {
                it.counting.window = Some(5_000);
                it.counting.overhead = Some(8_000);
                it.options.auto = auto;
            });
            let found = engine::compact(&engine, &opened, &wish).unwrap().answer();
            assert_eq!(found.status.name(), "noop", "{name}");
            assert!(
                found.reason.contains("system prompt and tools alone") || found.reason.contains("characters"),
                "{name}: {}",
                found.reason
            );
        }
    }
}

#[test]
fn side_by_side_no_row_repeats_another_without_a_reason() {
    let (_home, engine, opened) = ready(20);
    let answer = engine::compare(&engine, &opened, &ask("epitome")).unwrap();
    assert!(answer.tokens_before >= 50_000, "{}", answer.tokens_before);
    let names: Vec<&str> = answer.rows.iter().map(|it| it.profile.as_str()).collect();
    assert_eq!(names, BUILT_IN.iter().map(|it| it.0).collect::<Vec<_>>());
    let mut seen = Vec::new();
    for row in &answer.rows {
        assert_eq!(row.status.name(), "planned", "{}: {}", row.profile, row.reason);
        assert!(row.tokens_after < row.tokens_before && !row.due_reason.is_empty(), "{}", row.profile);
        let said = (row.split, row.pruned, row.messages_after, row.kept, row.lost);
        // Two rows that round to the same figures say the same to whoever reads them.
        let again = seen
            .iter()
            .any(|(it, tokens)| *it == said && row.tokens_after.abs_diff(*tokens) * 200 <= row.tokens_before);
        assert_eq!(again, row.same_as.is_some(), "{}", row.profile);
        assert_eq!(row.same_as.is_some(), !row.why_same.is_empty());
        seen.push((said, row.tokens_after));
    }
}

#[test]
fn in_plain_messages_a_summary_is_known_as_one() {
    const PIN: &str = "the port is 4711 and must not change";
    let home = tempfile::tempdir().unwrap();
    let engine = engine_at(home.path(), &[], &[]);
    let opened = open(&engine, &serde_json::to_string(&contents(0, 20)).unwrap());
    for (name, _) in BUILT_IN {
        for api in Format::ALL.into_iter().filter(|it| it.is_wire()) {
            let place = format!("{name} as {}", api.name());
            let wish =
                with(Ask { messages_as: Some(api), ..ask(name) }, |it| it.options.pin = vec![PIN.to_owned()]);
            let made = engine::compact(&engine, &opened, &wish).unwrap();
            assert_eq!(made.answer().status.name(), "compacted", "{place}: {}", made.answer().reason);
            let written: Vec<Value> = serde_json::from_slice(made.bytes().unwrap()).unwrap();
            let again = Format::named(api.name()).unwrap();
            let bytes = serde_json::to_vec(&written).unwrap();
            let read = engine::open(&engine, &SessionRef::Inline(bytes), Some(again), None).unwrap();
            let messages = read.session.history.messages();
            let summaries = messages.iter().filter(|it| it.kind == Kind::Summary).count();
            assert_eq!(
                summaries,
                1,
                "{place}: {:?}",
                messages.iter().map(|it| it.plain()).collect::<Vec<_>>()
            );
            let plain: Vec<String> =
                messages.iter().filter(|it| it.is_prompt()).map(|it| it.plain()).collect();
            assert!(!plain.iter().any(|it| it == "What did we do so far?"), "{place}: {plain:?}");
        }
    }
}

#[test]
fn the_profile_in_the_readme_works() {
    let readme = include_str!("../../../README.md");
    let (_, behind) = readme.split_once("```toml\n").unwrap();
    let (text, _) = behind.split_once("```").unwrap();
    let home = tempfile::tempdir().unwrap();
    let engine = engine_at(home.path(), &[], &[]);
    let file = home.path().join("mine.toml");
    std::fs::write(&file, text).unwrap();
    let profile = engine.config.profile(file.to_str().unwrap()).unwrap();
    assert_eq!((profile.name.as_str(), profile.trigger.share), ("mine", Some(0.4)));
    assert_eq!(profile.native.compacted, "COMPRESSED", "what it does not say is as in the one it extends");
    let opened = open(&engine, &session(home.path(), 20));
    let made =
        engine::compact(&engine, &opened, &Ask { to: To::Bytes, ..Ask::new(profile) }).unwrap().answer();
    assert_eq!(
        (made.status.name(), made.native_status.as_str()),
        ("compacted", "COMPRESSED"),
        "{}",
        made.reason
    );
    let summary = made.summary.unwrap();
    assert!(summary.contains("## Files") && summary.contains("src/module_1.rs"), "{summary}");
    // A name that nobody knows: the user's own are listed too.
    let config = "[profiles.mine]\nextends = \"codex\"\nname = \"mine\"\n[profiles.bad]\nextends = \"codex\"\nnmae = 3\n";
    let engine = engine_at(home.path(), &[], &[(".config/epitome/config.toml", config)]);
    let error = engine.config.profile("mein").unwrap_err().to_string();
    assert!(error.contains("(mine, ") || error.contains("(bad, mine, epitome, "), "{error}");
    let error = engine.config.profile("bad").unwrap_err().to_string();
    assert!(error.contains("config.toml, [profiles.bad]") && error.contains("nmae"), "{error}");
}
