//! Laws of all profiles: what is printed reads back as the same; one after the other over a growing session, nothing
//! nests, stands alone or is lost.

use epitome::compaction::facts;
use epitome::compaction::plan::{self, Cause, ModelLimits, Moment, Plan, PlanRequest};
use epitome::compaction::profile::{Pass, Profile};
use epitome::compaction::summary::offline;
use epitome::history::{History, Kind, Message};
use epitome::profiles::BUILT_IN;
use epitome::sessions::{self, Format, validate};
use epitome::tokens::{TokenCounter, Tokenizer};

use crate::corpus;

fn plan(profile: &Profile, history: &History, counter: &TokenCounter, cause: Cause) -> Plan {
    let model = history.meta.model.as_deref();
    let known = model.and_then(epitome::tokens::window);
    let limits = ModelLimits {
        model,
        window: history.meta.window.filter(|it| *it > 0).or(known.map(|it| it.context)),
        output: known.map(|it| it.output),
        ..ModelLimits::default()
    };
    let request = PlanRequest { limits, ..PlanRequest::new(profile, &|_| "0000000000".to_owned()) };
    plan::plan(history, counter, &request, &Moment { cause, ..Moment::default() })
}

#[test]
fn printed_renamed_and_loaded_it_plans_the_same() {
    let sessions = corpus::of_corpus("printed_renamed_and_loaded_it_plans_the_same", &corpus::KINDS);
    if sessions.is_empty() {
        return;
    }
    let pairs: Vec<(Profile, Profile)> = BUILT_IN
        .iter()
        .map(|(name, _)| {
            let built_in = epitome::profiles::built_in(name).unwrap();
            let printed = built_in.to_toml().unwrap();
            let renamed = printed.replacen(&format!("name = \"{name}\""), "name = \"mine\"", 1);
            assert_ne!(renamed, printed);
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), renamed).unwrap();
            let text = std::fs::read_to_string(file.path()).unwrap();
            let loaded = epitome::profiles::parse(&text, "mine.toml").unwrap();
            assert_eq!(Profile { name: "mine".into(), ..built_in.clone() }, loaded, "{name}");
            (built_in, loaded)
        })
        .collect();
    let mut compared = 0;
    for path in sessions {
        let Some(history) = corpus::history(&path) else { continue };
        let name = path.display();
        let counter = TokenCounter::new(&history, Tokenizer::Auto, None);
        for (built_in, loaded) in &pairs {
            for cause in [Cause::Manual, Cause::Auto, Cause::Overflow] {
                let [ours, theirs] = [built_in, loaded].map(|it| {
                    let plan = plan(it, &history, &counter, cause);
                    let layout = format!("{:?}", plan.layout);
                    serde_json::to_string(&Plan { profile: String::new(), ..plan }).unwrap() + &layout
                });
                assert!(ours == theirs, "{name} {}", built_in.name);
                compared += 1;
            }
        }
    }
    println!("{compared} plans are the same byte for byte");
    assert!(compared >= 48 * BUILT_IN.len());
}

/// `end`: names the end of the history that this makes, as the engine's first line does.
fn summary(
    profile: &Profile,
    history: &History,
    counter: &TokenCounter,
    plan: &Plan,
    pins: &[String],
    end: Option<&str>,
) -> Option<String> {
    let need = plan.need.as_ref()?;
    let spec = profile
        .passes
        .iter()
        .find_map(|it| if let Pass::Summarize(it) = it { Some(&it.summary) } else { None })?;
    let whole = crate::facts::asked(spec, need.from..need.to, need.max_tokens);
    let ask = offline::OfflineRequest { pins, header: end, ..whole };
    Some(offline::write(history, &facts::read(history), &ask, &|text| counter.text(&text.into())))
}

/// Ten turns with tools, so many words each.
fn turns(number: usize) -> Vec<Message> {
    let mut out = Vec::new();
    for turn in 0..10 {
        let id = format!("c{number}_{turn}");
        out.push(super::user(&format!(
            "Please look at module {number}{turn} and say what it does with the clock."
        )));
        out.push(super::call(&id, "Read"));
        out.push(super::results(vec![super::output(
            &id,
            &format!("fn part_{number}_{turn}() {{}}\n").repeat(60),
        )]));
        out.push(super::model(&format!(
            "Module {number}{turn} keeps the time. {}",
            "It is long. ".repeat(30)
        )));
    }
    out
}

const PIN: &str = "the port is 4711 and must not change";

/// Which summaries of a chain name the end that they were made with, as ours do and those of others do not.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Marks {
    All,
    None,
    EverySecond,
}

/// Compacts a session that grew, by the profiles in this order; what fails. The first pins, later ones carry it on.
fn chain(names: &[&str], marks: Marks) -> Vec<String> {
    let mut failures = Vec::new();
    let mut messages: Vec<Message> = Vec::new();
    for (step, name) in names.iter().enumerate() {
        messages.extend(turns(step));
        let history = super::history(messages);
        let profile = epitome::profiles::built_in(name).unwrap();
        let counter = TokenCounter::new(&history, Tokenizer::Auto, None);
        let plan = plan(&profile, &history, &counter, Cause::Manual);
        let place = format!("{name} as number {} of {names:?}, marks: {marks:?}", step + 1);
        let pins = if step == 0 { vec![PIN.to_owned()] } else { Vec::new() };
        let marked = match marks {
            Marks::All => true,
            Marks::None => false,
            Marks::EverySecond => step % 2 == 0,
        };
        let end = plan::end_mark(&plan::behind(&history, &plan)).filter(|_| marked);
        let end = end.map(|it| format!("{} x. [end {it}]", sessions::SUMMARY_START));
        let summary = summary(&profile, &history, &counter, &plan, &pins, end.as_deref());
        let outcome = match plan::apply(&history, &counter, &plan, summary.as_deref()) {
            Ok(outcome) if plan.act => outcome,
            Ok(_) => panic!("{place}: {}", plan.reason.text),
            Err(rejected) => panic!("{place}: {}", rejected.text),
        };
        let after = &outcome.history;
        let summaries = after.messages().iter().filter(|it| it.kind == Kind::Summary).count();
        if summaries > 1 {
            failures.push(format!("{place}: {summaries} summaries"));
        }
        let (messages_after, _) = sessions::messages(after, Format::ANTHROPIC);
        for it in validate::check(Format::ANTHROPIC, &messages_after) {
            failures.push(format!("{place}: {}: {}", it.rule, it.what));
        }
        let all: Vec<String> = after.messages().iter().map(super::text).collect();
        let all = all.join("\n");
        if !all.contains(PIN) {
            let lines = history.messages().iter().map(super::text).collect::<Vec<_>>().join("\n");
            let before: Vec<&str> = lines.lines().filter(|it| it.contains(PIN)).collect();
            failures.push(format!("{place}: the pin is lost; before: {before:?}"));
            return failures;
        }
        for frame in [
            "This session is being continued",
            "The user gave you instructions before",
            "<state_snapshot>",
            "[Compacted]",
            "Another language model started",
        ] {
            if all.matches(frame).count() > 1 {
                failures.push(format!("{place}: {frame:?} nests"));
            }
        }
        // Forced on its own outcome with nothing new, it does nothing.
        let renumbered = super::history(after.messages().to_vec());
        let counter = TokenCounter::new(&renumbered, Tokenizer::Auto, None);
        let again = self::plan(&profile, &renumbered, &counter, Cause::Manual);
        if again.act && marked {
            failures.push(format!("{place}: acts on its own outcome: {}", again.reason.text));
        }
        messages = outcome.history.into_messages();
    }
    failures
}

#[test]
fn chained_nothing_nests_stands_alone_or_is_lost() {
    let names: Vec<&str> = BUILT_IN.iter().map(|it| it.0).collect();
    let mut chains: Vec<Vec<&str>> = Vec::new();
    for start in 0..names.len() {
        chains.push((0..5).map(|step| names[(start + step) % names.len()]).collect());
    }
    // To and fro between each and each other; without the variable, between ours and each other.
    let all = every_pair();
    for (number, one) in names.iter().enumerate() {
        let others = names[..number].iter().filter(|other| all || [*one, **other].contains(&"epitome"));
        chains.extend(others.flat_map(|other| [vec![*one, other, one], vec![*other, one, other]]));
    }
    let mut failures = Vec::new();
    for marks in [Marks::All, Marks::None, Marks::EverySecond] {
        failures.extend(chains.iter().flat_map(|it| chain(it, marks)));
    }
    println!("{} chains, {} compactions", 3 * chains.len(), 3 * chains.iter().map(Vec::len).sum::<usize>());
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

/// Whether somebody wants the long form.
fn every_pair() -> bool {
    #[expect(clippy::disallowed_methods, reason = "the long form is asked for by it")]
    let rounds = std::env::var_os("EPITOME_ROUNDS");
    rounds.is_some()
}
