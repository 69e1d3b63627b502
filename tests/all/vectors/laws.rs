//! Laws of all profiles: what is printed reads back as the same; one after the other over a growing session, nothing
//! nests, stands alone or is lost.

use std::path::PathBuf;

use epitome::compact::{self, Cause, Item, Limits, Moment, Plan, Request};
use epitome::facts;
use epitome::format::{self, Format, Memory, validate};
use epitome::history::{History, Kind, Message};
use epitome::profile::{BUILT_IN, Pass, Profile, Style};
use epitome::summarizer::offline;
use epitome::tokens::{Ruler, Tokenizer};

fn corpus(test: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "tests find their data by it")]
    let found = std::env::var_os("EPITOME_CORPUS").map(PathBuf::from);
    let found = found.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"));
    if found.is_dir() {
        return Some(found);
    }
    eprintln!("SKIPPED: {test}: no corpus (set EPITOME_CORPUS)");
    None
}

fn sessions(corpus: &std::path::Path) -> Vec<(String, History)> {
    let mut out = Vec::new();
    for folder in ["claude-code", "codex", "gemini", "openai-messages", "opencode", "pi", "sweagent-traj"] {
        for entry in std::fs::read_dir(corpus.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{folder}/{}", path.file_name().unwrap().to_string_lossy());
            if let Ok(session) =
                format::read(&Memory::new(name.as_str(), std::fs::read(&path).unwrap()), None)
            {
                out.push((name, session.history));
            }
        }
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

fn plan(profile: &Profile, history: &History, ruler: &Ruler, cause: Cause) -> Plan {
    let model = history.meta.model.as_deref();
    let known = model.and_then(epitome::tokens::window);
    let limits = Limits {
        model,
        window: history.meta.window.filter(|it| *it > 0).or(known.map(|it| it.context)),
        output: known.map(|it| it.output),
        ..Limits::default()
    };
    let request = Request {
        profile,
        prune_only: false,
        auto: false,
        budget: None,
        keep: None,
        summary_tokens: None,
        protect: None,
        exclude_tools: &[],
        only: &[],
        limits,
        snapshot: None,
        handle: &|_| "0000000000".to_owned(),
        recall: "epitome recall {handle}",
    };
    compact::plan(history, ruler, &request, &Moment { cause, ..Moment::default() })
}

#[test]
fn printed_renamed_and_loaded_it_plans_the_same() {
    let Some(corpus) = corpus("printed_renamed_and_loaded_it_plans_the_same") else { return };
    let pairs: Vec<(Profile, Profile)> = BUILT_IN
        .iter()
        .map(|(name, _)| {
            let built_in = Profile::built_in(name).unwrap();
            let printed = built_in.to_toml().unwrap();
            let renamed = printed.replacen(&format!("name = \"{name}\""), "name = \"mine\"", 1);
            assert_ne!(renamed, printed);
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), renamed).unwrap();
            let text = std::fs::read_to_string(file.path()).unwrap();
            let loaded = Profile::parse(&text, "mine.toml").unwrap();
            assert_eq!(Profile { name: "mine".into(), ..built_in.clone() }, loaded, "{name}");
            (built_in, loaded)
        })
        .collect();
    let mut compared = 0;
    for (name, history) in sessions(&corpus) {
        let ruler = Ruler::new(&history, Tokenizer::Auto, None);
        for (built_in, loaded) in &pairs {
            for cause in [Cause::Manual, Cause::Auto, Cause::Overflow] {
                let [ours, theirs] = [built_in, loaded].map(|it| {
                    let plan = plan(it, &history, &ruler, cause);
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
    ruler: &Ruler,
    plan: &Plan,
    pins: &[String],
    end: Option<&str>,
) -> Option<String> {
    let need = plan.need.as_ref()?;
    let spec = profile
        .passes
        .iter()
        .find_map(|it| if let Pass::Summarize(it) = it { Some(&it.summary) } else { None })?;
    let ask = offline::Ask {
        region: need.from..need.to,
        cleared: &[],
        spec,
        budget: need.budget,
        style: Style::default(),
        focus: None,
        pins,
        header: end,
    };
    Some(offline::write(history, &facts::read(history), &ask, &|text| ruler.text(&text.into())))
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

#[test]
fn chained_nothing_nests_stands_alone_or_is_lost() {
    const PIN: &str = "the port is 4711 and must not change";
    let mut failures = Vec::new();
    let mut runs = 0;
    for start in 0..BUILT_IN.len() {
        let mut messages: Vec<Message> = Vec::new();
        for step in 0..5 {
            messages.extend(turns(step));
            let history = super::history(messages);
            let (name, _) = BUILT_IN[(start + step) % BUILT_IN.len()];
            let profile = Profile::built_in(name).unwrap();
            let ruler = Ruler::new(&history, Tokenizer::Auto, None);
            let plan = plan(&profile, &history, &ruler, Cause::Manual);
            let place = format!("{name} as number {} of the chain from {}", step + 1, BUILT_IN[start].0);
            // Pinned once, with the first: later ones carry it on.
            let pins = if step == 0 { vec![PIN.to_owned()] } else { Vec::new() };
            let last = plan.layout.last().and_then(|it| match it {
                Item::Old(at) => Some(history.messages()[*at].clone()),
                Item::Made(message) => Some(message.clone()),
                Item::Summary { .. } => None,
            });
            let end = last.and_then(|it| compact::end_mark(&[it])).map(|it| format!("Compacted. [end {it}]"));
            let summary = summary(&profile, &history, &ruler, &plan, &pins, end.as_deref());
            let outcome = match compact::apply(&history, &ruler, &profile, &plan, summary.as_deref()) {
                Ok(outcome) if plan.act => outcome,
                Ok(_) => panic!("{place}: {}", plan.reason.text),
                Err(rejected) => panic!("{place}: {}", rejected.reason),
            };
            runs += 1;
            let after = &outcome.history;
            let summaries = after.messages().iter().filter(|it| it.kind == Kind::Summary).count();
            if summaries > 1 {
                failures.push(format!("{place}: {summaries} summaries"));
            }
            let (messages_after, _) = format::messages(after, Format::Anthropic);
            for it in validate::check(Format::Anthropic, &messages_after) {
                failures.push(format!("{place}: {}: {}", it.rule, it.what));
            }
            let all: Vec<String> = after.messages().iter().map(super::text).collect();
            let all = all.join("\n");
            if !all.contains(PIN) {
                failures.push(format!(
                    "{place}: the pin is lost; before: {:?}",
                    history
                        .messages()
                        .iter()
                        .map(super::text)
                        .filter(|it| it.contains(PIN))
                        .collect::<Vec<_>>()
                ));
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
            let again = self::plan(
                &profile,
                &renumbered,
                &Ruler::new(&renumbered, Tokenizer::Auto, None),
                Cause::Manual,
            );
            if again.act {
                failures.push(format!("{place}: acts on its own outcome: {}", again.reason.text));
            }
            messages = outcome.history.into_messages();
        }
    }
    println!("{runs} compactions in {} chains", BUILT_IN.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
