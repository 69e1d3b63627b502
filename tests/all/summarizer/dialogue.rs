//! The dialogue as a value: every path without a server.

use epitome::compaction::summary::check::Fault;
use epitome::compaction::summary::dialogue::{Dialogue, GaveUp, Step};
use epitome::compaction::summary::failure::{Failure, FailureCause};
use epitome::compaction::summary::model::{Reply, StopReason};
use epitome::compaction::summary::prompt::PromptOverrides;
use epitome::compaction::summary::request::SummaryRequest;

use super::Case;

/// Goes on with a dialogue until it needs another answer or is over; through its serialised form, as a host-run dialogue is.
fn next(dialogue: &mut Dialogue, material: &SummaryRequest<'_>) -> Step {
    *dialogue = serde_json::from_str(&serde_json::to_string(dialogue).unwrap()).unwrap();
    loop {
        match dialogue.next(material) {
            Step::Wait(..) => dialogue.waited(),
            other => return other,
        }
    }
}

fn reply(text: &str) -> Result<Reply, Failure> {
    Ok(Reply { text: text.into(), ..Reply::default() })
}

/// Plays answers in order; the last step.
fn play(material: &SummaryRequest<'_>, answers: &[Result<Reply, Failure>]) -> (Dialogue, Step) {
    let mut dialogue = Dialogue::new(1);
    for answer in answers {
        let Step::Ask(_) = next(&mut dialogue, material) else { panic!("{dialogue:?} does not ask") };
        dialogue.on_reply(material, answer.clone(), 10);
    }
    let step = next(&mut dialogue, material);
    (dialogue, step)
}

#[test]
fn bad_answers_are_repaired_once_and_then_given_up() {
    let case = Case::small();
    let good = case.good();
    let stopped = |stop| Ok(Reply { text: good.clone(), stop, ..Reply::default() });
    let bad = [
        reply("Sure, here you are."),
        reply("I'm sorry, but I can't help with that."),
        reply("{\"name\": \"bash\", \"arguments\": {}}"),
        reply(&good[..good.len() / 2]),
        reply(&format!("<summary>\n## Goal\n{}\n</summary>", "word ".repeat(9_000))),
        stopped(StopReason::Length),
        stopped(StopReason::Refused),
        stopped(StopReason::ToolCall),
        stopped(StopReason::WindowFull),
    ];
    for answer in bad {
        let (_, mended) = play(&case.material(), &[answer.clone(), reply(&good)]);
        assert!(matches!(&mended, Step::Done(text, _) if text.contains("vendor/")), "{answer:?}: {mended:?}");
        let (dialogue, over) = play(&case.material(), &[answer.clone(), answer.clone()]);
        assert!(matches!(&over, Step::GaveUp(GaveUp::Unusable(_))), "{answer:?}: {over:?}");
        assert_eq!(dialogue.requests, 2);
    }
}

#[test]
fn what_stays_too_long_is_cut_by_rank() {
    let case = Case::small();
    let long = case.good().replace(
        "</summary>",
        &format!(
            "\n## Findings\n{}\n</summary>",
            "- something about the parser in src/parse.rs\n".repeat(40)
        ),
    );
    let (_, step) = play(&case.material(), &[reply(&long), reply(&long)]);
    let Step::Done(text, notes) = step else { panic!("{step:?}") };
    assert!(super::count(&text) <= case.material().max_tokens + 8, "{}", super::count(&text));
    assert!(text.contains("vendor/") && notes.iter().any(|it| it.contains("lines were cut")), "{notes:?}");
}

#[test]
fn what_cannot_succeed_is_not_tried_again() {
    let case = Case::small();
    for cause in [
        FailureCause::Key,
        FailureCause::Forbidden,
        FailureCause::NotFound,
        FailureCause::Request,
        FailureCause::Tls,
        FailureCause::Redirect,
        FailureCause::TooMuch,
    ] {
        let (dialogue, step) = play(&case.material(), &[Err(Failure::new(cause, "no"))]);
        assert!(matches!(step, Step::GaveUp(GaveUp::Failed(_))), "{cause:?}: {step:?}");
        assert_eq!(dialogue.requests, 1);
    }
}

#[test]
fn an_input_that_never_fits_ends() {
    let case = Case::small();
    let material = case.material();
    let mut dialogue = Dialogue::new(1);
    for _ in 0..200 {
        match next(&mut dialogue, &material) {
            Step::Ask(_) => dialogue.on_reply(
                &material,
                Err(Failure::new(FailureCause::Overflow { sent: None, limit: None }, "too long")),
                1,
            ),
            Step::GaveUp(_) => return,
            other => panic!("{other:?}"),
        }
    }
    panic!("it never ends");
}

#[test]
fn empty_answers_mean_a_smaller_input_once() {
    let case = Case::small();
    let (dialogue, step) = play(&case.material(), &[reply(" "), reply(&case.good())]);
    assert!(matches!(step, Step::Done(..) | Step::Ask(_)), "{dialogue:?}");
    let mut dialogue = Dialogue::new(1);
    let material = case.material();
    let mut asked = 0;
    while let Step::Ask(_) = next(&mut dialogue, &material) {
        dialogue.on_reply(&material, reply(""), 1);
        asked += 1;
        assert!(asked < 10);
    }
    assert!(
        matches!(next(&mut dialogue, &material), Step::GaveUp(GaveUp::Unusable(faults)) if faults.contains(&Fault::Empty))
    );
}

#[test]
fn a_second_draft_replaces_the_first_only_if_it_can() {
    let mut case = Case::small();
    case.own = PromptOverrides { verify: Some("Look again.".into()), ..PromptOverrides::default() };
    let good = case.good();
    let better = good.replace(
        "</summary>",
        "\n## Findings\n- the parser in src/parse.rs failed on empty input\n</summary>",
    );
    let (dialogue, step) = play(&case.material(), &[reply(&good), reply(&better)]);
    assert!(matches!(&step, Step::Done(text, _) if text.contains("failed on empty input")), "{step:?}");
    assert_eq!(dialogue.requests, 2);
    for second in
        [reply(""), reply("All fine!"), Ok(Reply { stop: StopReason::ToolCall, ..Reply::default() })]
    {
        let (_, step) = play(&case.material(), &[reply(&good), second]);
        assert!(matches!(step, Step::Done(..)), "{step:?}");
    }
}

#[test]
fn bounds_end_a_talk() {
    let case = Case::small();
    let mut material = case.material();
    material.bounds.requests = 1;
    let (_, step) = play(&material, &[reply("no sections")]);
    assert!(
        matches!(&step, Step::GaveUp(why) if why.sentence(None).contains("limit of 1 requests")),
        "{step:?}"
    );
    material.bounds = Default::default();
    material.bounds.tokens = 10;
    let step = next(&mut Dialogue::new(1), &material);
    assert!(
        matches!(&step, Step::GaveUp(why) if why.sentence(None).contains("limit of 10 tokens")),
        "{step:?}"
    );
}

#[test]
fn secrets_and_private_passages_are_not_sent() {
    use epitome::history::Role;
    let key = "AKIAIOSFODNN7EXAMPLQ";
    let texts = format!("Use it. aws_access_key_id = {key} <private>my diary</private>");
    let case = Case::new(vec![super::said(Role::User, &texts), super::said(Role::Assistant, "ok")]);
    for host in [false, true] {
        let material = SummaryRequest { host, ..case.material() };
        let Step::Ask(ask) = Dialogue::new(1).next(&material) else { panic!() };
        assert!(!ask.text().contains(key) && !ask.text().contains("diary"), "{}", ask.text());
    }
}
