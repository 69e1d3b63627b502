//! Attachments in kept messages that the API refuses. A single one would make every later request fail, so a
//! note takes its place.

use super::OutputOp;
use super::draft::{Draft, Replacement, Segment};
use history::{Media, Message, Output, Part, Text};
use tokens::TokenCounter;

pub fn attached(part: &Part) -> &[Media] {
    match part {
        Part::Media(it) => std::slice::from_ref(it),
        Part::Output(it) => &it.media,
        Part::Text(_) | Part::Reasoning(_) | Part::Call(_) | Part::Opaque(_) => &[],
    }
}

/// The attachments of messages, including those in outputs.
fn all<'a>(messages: impl Iterator<Item = &'a Message>) -> impl Iterator<Item = &'a Media> {
    messages.flat_map(|it| &it.parts).flat_map(attached)
}

/// The first attachment that the API refuses in a request with these messages: index of its message, and why.
pub fn refused(messages: &[Message], counter: &TokenCounter) -> Option<(usize, String)> {
    let count = all(messages.iter()).count();
    (messages.iter().enumerate()).find_map(|(at, message)| {
        all(std::iter::once(message)).find_map(|it| Some((at, counter.refuses(it, count)?)))
    })
}

/// Replaces the refused attachments in kept messages with notes.
pub(super) fn fit(draft: &mut Draft<'_>) {
    let kept: Vec<usize> = draft.items.iter().filter_map(Segment::old).collect();
    let messages = draft.history.messages();
    let count = all(kept.iter().map(|it| &messages[*it])).count();
    let places = kept.iter().flat_map(|at| (0..messages[*at].parts.len()).map(|part| (*at, part)));
    for at in places.collect::<Vec<_>>() {
        let part = &messages[at.0].parts[at.1];
        let Some((first, why)) =
            attached(part).iter().find_map(|it| Some((it, draft.counter.refuses(it, count)?)))
        else {
            continue;
        };
        let output = if let Part::Output(it) = part { Some(it) } else { None };
        if draft.replaced.contains_key(&at) {
            continue;
        }
        let handle = (draft.request.handle)(&first.data);
        let recall = draft.request.recall.replace("{handle}", &handle);
        let note = format!("[image left out: {why}; original: {recall}]");
        let (text, new) = match output {
            Some(output) => {
                let text = match output.text.as_str() {
                    "" => note,
                    text => format!("{text}\n{note}"),
                };
                let new = Output { text: Text::new(text.as_str()), media: [].into(), ..output.clone() };
                (text, Part::Output(new))
            }
            None => (note.clone(), Part::Text(note.into())),
        };
        let op = OutputOp {
            message: at.0,
            part: at.1,
            call_id: output.map(|it| it.id.to_string()).unwrap_or_default(),
            tool: output.map(|it| draft.tool(it).to_owned()).unwrap_or_default(),
            tokens_before: draft.counter.part(part),
            tokens_after: draft.counter.part(&new),
            text,
            handle,
            why: format!("the API refuses the image: {why}"),
        };
        draft.replaced.insert(at, (Replacement::Clear, op));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Moment, PlanRequest, apply, plan};
    use history::{Call, History, Kind, MediaKind, Meta, Role};
    use tokens::Tokenizer;

    fn image(width: u32) -> Media {
        let data = format!("data of {width}");
        Media {
            kind: MediaKind::Image,
            mime: "image/png".into(),
            data: data.into(),
            size: Some((width, 200)),
        }
    }

    fn session(model: &str) -> History {
        let mut messages = Vec::new();
        for turn in 0..30 {
            messages.push(Message::text(
                Role::User,
                Kind::Said,
                format!("Step {turn}: go on with the parser."),
            ));
            let text = "The parser keeps a stack of open brackets. ".repeat(40);
            messages.push(Message::text(Role::Assistant, Kind::Said, text));
        }
        let prompt = vec![
            Part::Text("What is wrong here?".into()),
            Part::Media(image(9_000)),
            Part::Media(image(800)),
        ];
        messages.push(Message::new(Role::User, Kind::Said, prompt));
        let input = r#"{"path":"shot.png"}"#.into();
        let call = Call { id: "c".into(), name: "Read".into(), input, freeform: false, signature: None };
        messages.push(Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)]));
        let output = Output { media: [image(8_500)].into(), ..Output::new("c", "a screenshot") };
        messages.push(Message::new(Role::User, Kind::Said, vec![Part::Output(output)]));
        for (number, message) in (0..).zip(&mut messages) {
            message.from = Some(number);
        }
        History::new(messages, Meta { model: Some(model.into()), ..Meta::default() })
    }

    /// The images left after a compaction, and all text of the two messages that hold some.
    fn kept(model: &str) -> (Vec<u32>, String) {
        let history = session(model);
        let counter = TokenCounter::new(&history, Tokenizer::Auto, None);
        let profile = crate::profile::read("epitome");
        let handle = |text: &str| format!("h{}", text.len());
        let plan = plan(&history, &counter, &PlanRequest::new(&profile, &handle), &Moment::default());
        let outcome =
            apply(&history, &counter, &plan, Some("Earlier conversation compacted: a parser.")).unwrap();
        let after = outcome.history.messages();
        let widths = all(after.iter()).filter_map(|it| it.size).map(|it| it.0).collect();
        let outputs = after.iter().flat_map(Message::outputs).map(|it| it.text.as_str().to_owned());
        let last = after.iter().rfind(|it| it.is_prompt()).map(Message::plain);
        (widths, outputs.chain(last).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn what_the_api_refuses_becomes_a_note_with_a_handle() {
        let (widths, text) = kept("claude-opus-4-5");
        assert_eq!(widths, [800]);
        for expected in [
            "9000×200",
            "8500×200",
            "a screenshot\n[image left out",
            "epitome recall h12",
            "What is wrong here?",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        // OpenAI scales them down itself.
        for (model, expected) in [("claude-opus-4-5", Some(60)), ("gpt-5.5", None)] {
            let history = session(model);
            let counter = TokenCounter::new(&history, Tokenizer::Auto, None);
            assert_eq!(refused(history.messages(), &counter).map(|it| it.0), expected, "{model}");
        }
    }
}
