use super::*;
use history::{Call, MediaKind, Meta, Reasoning, Usage};

const PROSE: &str =
    "The parser keeps a stack of open brackets and reports the first one that is never closed. ";

fn user(text: &str) -> Message {
    Message::text(Role::User, Kind::Said, text)
}

fn output(text: &str) -> Message {
    let it = Output::new("c", text);
    Message::new(Role::Tool, Kind::Said, vec![Part::Output(it)])
}

fn reply(text: &str, sent: u64) -> Message {
    let usage = Usage { input: 1, cache_read: sent - 1, output: 50, ..Usage::default() };
    Message { usage: Some(usage), ..Message::text(Role::Assistant, Kind::Said, text) }
}

fn history(model: &str, messages: Vec<Message>) -> History {
    History::new(messages, Meta { model: (!model.is_empty()).then(|| model.into()), ..Meta::default() })
}

/// Six requests of a session whose tokens are really `factor` times what the priors say, plus 10,000 of
/// overhead.
fn session(factor: f64) -> History {
    let prior = TokenCounter::new(&history("claude-opus-4-5", vec![]), Tokenizer::Auto, None);
    let shape = TokenCounter { basis: Basis::Shape, ..prior };
    let (mut messages, mut sum) = (vec![user(&PROSE.repeat(20))], 0);
    for step in 0..6 {
        sum += messages[step * 2..].iter().map(|it| shape.message(it)).sum::<u64>();
        messages.push(reply("Looking further.", 10_000 + (sum as f64 * factor) as u64));
        messages.push(output(&PROSE.repeat(60 * (step + 1))));
    }
    history("claude-opus-4-5", messages)
}

/// The same with the outputs of its first requests cleared.
fn cleared(session: History) -> History {
    let (meta, mut messages) = (session.meta.clone(), session.into_messages());
    for message in &mut messages[..8] {
        for part in &mut message.parts {
            if let Part::Output(output) = part {
                (output.text, output.cleared) = ("[cleared]".into(), true);
            }
        }
    }
    History::new(messages, meta)
}

fn filled_by(counter: &TokenCounter, history: &History) -> Filled {
    counter.filled(&counter.messages(history.messages()))
}

#[test]
fn what_was_cleared_after_the_last_report_is_not_counted_as_overhead() {
    let whole = session(1.0);
    let left = cleared(whole.clone());
    let (before, after) =
        (TokenCounter::new(&whole, Tokenizer::Auto, None), TokenCounter::new(&left, Tokenizer::Auto, None));
    let gone = filled_by(&before, &whole).messages - filled_by(&after, &left).messages;
    assert!(gone > 5_000, "{gone}");
    assert!(after.overhead().abs_diff(10_000) < 1_000, "{}", after.overhead());
    // A client that reports again after clearing is believed again.
    let mut messages = left.into_messages();
    let sent = after.overhead() + after.messages(&messages).iter().sum::<u64>();
    messages.push(reply("Done.", sent));
    let again = history("claude-opus-4-5", messages);
    let counter = TokenCounter::new(&again, Tokenizer::Auto, None);
    assert_eq!(counter.reported(), Some((13, sent + 50)));
}

#[test]
fn agrees_with_the_last_report() {
    for factor in [0.8, 1.0, 1.3] {
        let history = session(factor);
        let counter = TokenCounter::new(&history, Tokenizer::Auto, None);
        let tokens = counter.messages(history.messages());
        let last = history.messages()[11].usage.unwrap();
        assert_eq!(counter.reported(), Some((11, last.context())));
        assert_eq!(counter.method().anchor, Some(11));
        assert_eq!(counter.method().kind, MethodKind::Reported);
        assert_eq!(counter.overhead() + tokens[..11].iter().sum::<u64>(), last.sent());
        assert!((counter.scale / factor - 1.0).abs() < 0.05, "{} for {factor}", counter.scale);
        assert!(counter.overhead().abs_diff(10_000) < 1_000, "{} for {factor}", counter.overhead());
        assert_eq!(counter.by_category(&history).total(), counter.overhead() + tokens.iter().sum::<u64>());
    }
}

#[test]
fn believes_the_overhead_it_is_given() {
    let history = session(1.0);
    let counter = TokenCounter::new(&history, Tokenizer::Auto, Some(8_000));
    let before: u64 = counter.messages(&history.messages()[..11]).iter().sum();
    assert_eq!(counter.overhead(), 8_000);
    let sent = history.messages()[11].usage.unwrap().sent();
    assert!((8_000 + before).abs_diff(sent) < 20, "{before} of {sent}");
}

#[test]
fn one_report_is_enough() {
    let history = history("gpt-5.5", vec![user(PROSE), reply("Yes.", 12_345)]);
    let counter = TokenCounter::new(&history, Tokenizer::Auto, None);
    assert_eq!(counter.overhead() + counter.message(&history.messages()[0]), 12_345);
    assert_eq!(counter.scale, 1.0);
}

/// Reports from before the summary, on making it, or on something else are not believed.
#[test]
fn stale_reports_are_not_believed() {
    let at = |at: i64, message: Message| Message { at: Some(at), ..message };
    let summary = Message { kind: Kind::Summary, ..reply("All that was.", 150_000) };
    let kept =
        vec![at(10, summary), at(5, user(PROSE)), at(6, reply("Kept.", 150_000)), at(11, user("Go on."))];
    let mut messages = kept.clone();
    assert_eq!(TokenCounter::new(&history("claude-opus-4-5", kept), Tokenizer::Auto, None).reported(), None);
    messages.push(at(12, reply("New.", 9_000)));
    let known = history("claude-opus-4-5", messages);
    let counter = TokenCounter::new(&known, Tokenizer::Auto, None);
    assert_eq!(counter.reported(), Some((4, 9_050)));
    assert!(counter.overhead() < 9_000);
    let small = history("claude-opus-4-5", vec![user(&PROSE.repeat(100)), reply("Hm.", 30)]);
    let counter = TokenCounter::new(&small, Tokenizer::Auto, None);
    assert_eq!((counter.reported(), counter.method().kind), (None, MethodKind::Heuristic));
}

/// Messages that are no longer sent do not eat up the overhead.
#[test]
fn overhead_does_not_vanish() {
    let mut messages = session(1.0).into_messages();
    messages.push(reply("The client dropped some of it.", 18_000));
    let history = history("claude-opus-4-5", messages);
    let counter = TokenCounter::new(&history, Tokenizer::Auto, None);
    let before: u64 = counter.messages(&history.messages()[..13]).iter().sum();
    assert_eq!(counter.overhead() + before - counter.hidden(), 18_000);
    assert!(counter.overhead() > 4_000, "{}", counter.overhead());
}

/// A plugin prunes what the model sees: the report is the truth about the context, and text that will be sent costs
/// what it always did.
#[test]
fn what_was_not_sent_is_hidden_and_does_not_make_text_cheap() {
    let whole = session(1.0);
    let whole_counter = TokenCounter::new(&whole, Tokenizer::Auto, None);
    let full = filled_by(&whole_counter, &whole);
    let mut messages = whole.into_messages();
    let sent = (full.overhead + full.messages) / 3;
    messages.push(reply("Pruned.", sent));
    let pruned = history("claude-opus-4-5", messages);
    let counter = TokenCounter::new(&pruned, Tokenizer::Auto, None);
    let filled = filled_by(&counter, &pruned);
    assert_eq!(counter.reported(), Some((13, sent + 50)));
    assert_eq!(counter.implausible_report(), None);
    assert_eq!(
        filled.overhead + filled.messages,
        sent + counter.message(&pruned.messages()[13]),
        "the context is what was reported and what came since"
    );
    assert!(counter.hidden() > full.messages / 3, "{} of {}", counter.hidden(), full.messages);
    let text = PROSE.repeat(100);
    assert!(counter.str(&text) * 100 >= whole_counter.str(&text) * 85, "{}", counter.str(&text));
    // With the overhead given, too.
    let given = TokenCounter::new(&pruned, Tokenizer::Auto, Some(10_000));
    let filled = filled_by(&given, &pruned);
    assert_eq!(filled.overhead, 10_000);
    assert_eq!(filled.overhead + filled.messages, sent + given.message(&pruned.messages()[13]));
}

/// Counts by another tokenizer are converted, do not anchor, and are ignored once the model's own has
/// counted.
#[test]
fn reports_of_another_model_do_not_anchor() {
    let mut messages = session(1.0).into_messages();
    for message in messages.iter_mut().filter(|it| it.usage.is_some()) {
        message.model = Some("claude-sonnet-4-6".into());
    }
    let before = history("claude-sonnet-4-6", messages.clone());
    let known = filled_by(&TokenCounter::new(&before, Tokenizer::Auto, None), &before);
    let switched = TokenCounter::for_model(&before, Some("claude-opus-4-8"), Tokenizer::Auto, None);
    let filled = filled_by(&switched, &before);
    let grown = (filled.overhead + filled.messages) as f64 / (known.overhead + known.messages) as f64;
    assert!((1.3..1.55).contains(&grown), "{grown}");
    assert_eq!((switched.reported(), switched.method().anchor), (None, None));
    assert_eq!(switched.method().kind, MethodKind::Heuristic);
    assert!(switched.method().margin_percent >= 15.0);
    let answer = reply("Here.", 60_000);
    messages.push(Message { model: Some("claude-opus-4-8".into()), ..answer });
    let after = history("claude-opus-4-8", messages);
    assert_eq!(TokenCounter::new(&after, Tokenizer::Auto, None).reported(), Some((13, 60_050)));
}

/// What came since the last report is only estimated.
#[test]
fn the_margin_grows_with_what_was_not_reported() {
    let mut messages = session(1.0).into_messages();
    let short = TokenCounter::new(&history("claude-opus-4-5", messages.clone()), Tokenizer::Auto, None);
    let short = short.method().margin_percent;
    assert!((5.0..=7.0).contains(&short), "{short}");
    messages.push(output(&PROSE.repeat(3_000)));
    let long = TokenCounter::new(&history("claude-opus-4-5", messages), Tokenizer::Auto, None);
    assert!((2.0 * short..=40.0).contains(&long.method().margin_percent), "{:?}", long.method());
}

#[test]
fn one_response_can_be_several_messages() {
    let thought = Reasoning { text: "".into(), signature: Some("s".repeat(400).into()) };
    let thought = Message::new(Role::Assistant, Kind::Said, vec![Part::Reasoning(thought)]);
    let history = history("gpt-5.5", vec![user(PROSE), thought, reply("Yes.", 20_000), user("More.")]);
    let counter = TokenCounter::new(&history, Tokenizer::Auto, None);
    assert_eq!(counter.overhead() + counter.message(&history.messages()[0]), 20_000);
}

#[test]
fn without_reports_it_counts() {
    let mut known = history("gpt-5.5", vec![user(PROSE)]);
    known.meta.system = Some(PROSE.into());
    let counter = TokenCounter::new(&known, Tokenizer::Auto, None);
    let text = exact::count(Encoding::O200k, PROSE);
    assert!(counter.overhead().abs_diff(text) <= 1);
    assert_eq!(counter.method().kind, MethodKind::Exact);
    assert_eq!(TokenCounter::new(&known, Tokenizer::Auto, Some(7)).overhead(), 7);
    let fixed = TokenCounter::new(&known, Tokenizer::Fixed(Estimator::O200k), None);
    assert_eq!((fixed.overhead(), fixed.message(&known.messages()[0])), (text, text));
    // Another maker's tokenizer is known only by a factor.
    let claude = history("claude-opus-4-5", vec![user(PROSE)]);
    let claude = TokenCounter::new(&claude, Tokenizer::Auto, None);
    assert_eq!(claude.method().kind, MethodKind::Heuristic);
    assert!(claude.message(&user(PROSE)) > text);
}

#[test]
fn categories_hold_everything() {
    let media = Media { kind: MediaKind::Image, mime: "image/png".into(), data: "".into(), size: None };
    let call = Call {
        id: "c".into(),
        name: "read".into(),
        input: r#"{"path":"src/lib.rs"}"#.into(),
        freeform: false,
        signature: None,
    };
    let answer = Output { media: [media.clone()].into(), ..Output::new("c", PROSE) };
    let thought = Reasoning { text: PROSE.into(), signature: None };
    let messages = vec![
        Message::text(Role::User, Kind::Summary, PROSE),
        Message::text(Role::User, Kind::Context, PROSE),
        Message::new(Role::User, Kind::Said, vec![Part::Text(PROSE.into()), Part::Media(media)]),
        Message::new(
            Role::Assistant,
            Kind::Said,
            vec![Part::Reasoning(thought), Part::Text(PROSE.into()), Part::Call(call)],
        ),
        Message::new(Role::User, Kind::Said, vec![Part::Output(answer)]),
    ];
    let history = history("claude-opus-4-5", messages);
    for estimator in Estimator::ALL.map(Tokenizer::Fixed).into_iter().chain([Tokenizer::Auto]) {
        let counter = TokenCounter::new(&history, estimator, Some(100));
        let it = counter.by_category(&history);
        let tokens: u64 = counter.messages(history.messages()).iter().sum();
        assert_eq!(it.total(), tokens + 100, "{estimator:?}");
        for (name, found) in [
            ("system", it.system - 100),
            ("user", it.user),
            ("assistant", it.assistant),
            ("reasoning", it.reasoning),
            ("calls", it.tool_calls),
            ("outputs", it.tool_outputs),
            ("media", it.media),
            ("summary", it.summary),
        ] {
            // Codex, and Gemini CLI of 2025, count nothing for an image that is only a reference.
            assert!(found > 0 || name == "media", "{estimator:?}: {name}");
        }
    }
}

#[test]
fn what_gemini_answered_costs_what_was_reported_of_it() {
    let prompt = || user(&PROSE.repeat(20));
    let cost = |model: &str, output: u64, reasoning: u64| {
        let usage = Usage { input: 500, output, reasoning, ..Usage::default() };
        let answer = Message { usage: Some(usage), ..Message::text(Role::Assistant, Kind::Said, "Done.") };
        let history = history(model, vec![prompt(), answer]);
        TokenCounter::new(&history, Tokenizer::Auto, None).message(&history.messages()[1])
    };
    let by_text = cost("claude-opus-4-5", 900, 0);
    assert!(by_text < 20, "{by_text}");
    // Thoughts that no part shows.
    assert!((700..1_300).contains(&cost("gemini-3-flash", 900, 0)));
    // Thoughts that are reported separately are not sent again, and no reply is that long.
    assert!(cost("gemini-3-flash", 900, 880) < 20);
    assert!(cost("gemini-3-flash", u64::MAX, 0) < 20);
}
