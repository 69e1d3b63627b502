//! The model's answer to the last request. If a session ends with it, at least its beginning, headings and
//! end are kept: a model that sees the request alone would carry it out again.

use crate::plan::draft::{Draft, Segment, boundary_to, is_head, number, total_of};
use crate::plan::outputs::{ends, thousands};
use history::{Kind, Message, Part, Role, Text};
use std::ops::Range;

/// Tokens below which nothing readable is left of an answer.
pub(in crate::plan) const MIN_TOKENS: u64 = 50;

/// Position of the last unit, if it is text of the model without any call.
pub(in crate::plan) fn position(draft: &Draft<'_>) -> Option<usize> {
    let said = |it: &Segment| draft.message(it).is_some_and(|it| !is_head(it));
    let last = draft.items.iter().rposition(said)?;
    let start = boundary_to(draft, last);
    let words = |it: &Message| {
        let calls = |part: &Part| matches!(part, Part::Call(_) | Part::Output(_));
        it.role == Role::Assistant && it.kind == Kind::Said && !it.parts.iter().any(calls)
    };
    let answers = draft.items[start..=last].iter().all(|it| draft.message(it).is_some_and(words));
    let says = |it: &Message| it.texts().any(|it| !it.as_str().trim().is_empty());
    (answers && draft.message(&draft.items[last]).is_some_and(says)).then_some(start)
}

/// Cuts the answer at `start` so that it and what follows fit into `room` tokens. Returns whether it could.
pub(in crate::plan) fn shorten(draft: &mut Draft<'_>, start: usize, room: u64) -> bool {
    let is_head = |it: &Segment| draft.message(it).is_some_and(is_head);
    let end = draft.items[start..].iter().position(is_head).map_or(draft.items.len(), |it| start + it);
    let room = room.saturating_sub(total_of(draft, end..draft.items.len()));
    let messages = draft.items[start..end].iter().filter_map(|it| draft.message(it));
    let plain = messages.map(Message::plain).filter(|it| !it.is_empty()).collect::<Vec<_>>().join("\n\n");
    let Some(message) = number(draft, end - 1).filter(|_| room >= MIN_TOKENS) else { return false };
    let handle = (draft.request.handle)(&plain);
    let recall = draft.request.recall.replace("{handle}", &handle);
    let size = draft.counter.text(&Text::new(plain.as_str()));
    let mut keep = (plain.chars().count() as u64 * room / size.max(1)) as usize;
    // The kept characters may cost more tokens than the average, so shrink until it fits.
    for _ in 0..8 {
        let text = abridged(&plain, keep, &recall);
        let made = Message::text(Role::Assistant, Kind::Said, text.as_str());
        let after = draft.counter.message(&made);
        if after <= room {
            draft.items.splice(start..end, [Segment::Made(made)]);
            draft.message_ops.push(super::of_message(
                message,
                (size, after),
                text,
                handle,
                format!("the answer to the last request has {size} tokens; {room} fit"),
            ));
            return true;
        }
        keep = (keep as u64 * room * 9 / (after * 10)) as usize;
    }
    false
}

/// The beginning and end of a text, `keep` characters in all, whole lines where possible; between them a note
/// and the headings of the omitted part, which take at most a quarter of `keep`.
fn abridged(text: &str, keep: usize, recall: &str) -> String {
    let most = keep / 4;
    let listed =
        |first: &str, last: &str| super::listed(headings(text, first.len()..text.len() - last.len()), most);
    let Some((first, last)) = sides(text, keep - most) else { return text.to_owned() };
    // Characters that the headings do not use go to both ends.
    let taken = listed(first, last).chars().count();
    let Some((first, last)) = sides(text, keep - taken) else { return text.to_owned() };
    let omitted = thousands(text[first.len()..text.len() - last.len()].chars().count() as u64);
    let (headings, first, last) = (listed(first, last), first.trim_end(), last.trim_start_matches('\n'));
    format!("{first}\n[… {omitted} characters left out; whole: {recall}]\n{headings}{last}")
}

/// Both ends of a text, at most `keep` characters in all, without cut lines where possible.
fn sides(text: &str, keep: usize) -> Option<(&str, &str)> {
    let (first, last, _) = ends(text, keep, 0.4)?;
    let first = first.rfind('\n').filter(|at| *at > first.len() / 2).map_or(first, |at| &first[..at]);
    let last = last.find('\n').filter(|at| *at < last.len() / 2).map_or(last, |at| &last[at + 1..]);
    Some((first, last))
}

/// The headings outside code blocks that begin within a range of a text.
fn headings(text: &str, within: Range<usize>) -> impl Iterator<Item = &str> {
    let (mut at, mut fenced) = (0, false);
    text.split_inclusive('\n').filter_map(move |whole| {
        let begins = at;
        at += whole.len();
        let line = whole.trim();
        fenced ^= line.starts_with("```");
        let level = line.len() - line.trim_start_matches('#').len();
        let marked = (1..=6).contains(&level) && line[level..].starts_with(' ');
        let bold = line.len() > 4 && line.starts_with("**") && line.trim_end_matches(':').ends_with("**");
        (!fenced && within.contains(&begins) && (marked || bold)).then_some(line)
    })
}

#[cfg(test)]
pub(in crate::plan) mod tests {
    use super::*;
    use crate::plan::{Moment, PlanRequest, apply, plan};
    use crate::profile::Profile;
    use history::{Call, History, Meta, Output};
    use tokens::{TokenCounter, Tokenizer};

    pub(in crate::plan) const PROFILE: &str = r#"
        name = "short"
        about = "keeps the end"
        follows = "nobody"
        [[pass]]
        do = "summarize"
        when = "due"
        keep = { budget = { share = 0.15, minimum = 1_000, maximum = 32_000, summary = 0.7 } }
        layout = ["head", "summary", { ack-prompt = "Understood." }, "tail"]
        summary = { max-tokens = 22_400, sections = [{ title = "Goal", holds = ["goal", "last"] }] }
    "#;

    fn session(answer: &str) -> History {
        let output = Output::new("1", "a brick ".repeat(5_000));
        let (id, name) = ("1".into(), "read".into());
        let call = Call { id, name, input: "{}".into(), freeform: false, signature: None };
        let messages = vec![
            Message::text(Role::User, Kind::Said, "Report how the kiln is built."),
            Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)]),
            Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)]),
            Message::text(Role::Assistant, Kind::Said, answer),
        ];
        History::new(messages, Meta::default())
    }

    /// Role, kind and text of the messages that a session becomes.
    pub(in crate::plan) fn compacted(history: &History, budget: u64) -> Vec<(Role, Kind, String)> {
        let profile = Profile::parse(PROFILE, "short.toml", &[]).unwrap();
        let counter = TokenCounter::new(history, Tokenizer::Auto, None);
        let handle = |_: &str| "0000000000".to_owned();
        let request = PlanRequest { budget: Some(budget), ..PlanRequest::new(&profile, &handle) };
        let plan = plan(history, &counter, &request, &Moment::default());
        assert!(plan.act, "{}", plan.reason.text);
        let done = apply(history, &counter, &plan, Some("The kiln.")).unwrap();
        assert!(done.tokens <= budget, "{} tokens of {budget}", done.tokens);
        done.history.messages().iter().map(|it| (it.role, it.kind, it.plain())).collect()
    }

    fn kinds(messages: &[(Role, Kind, String)]) -> Vec<(Role, Kind)> {
        messages.iter().map(|it| (it.0, it.1)).collect()
    }

    #[test]
    fn the_answer_to_the_last_request_stays_behind_it() {
        let said = [
            (Role::User, Kind::Summary),
            (Role::Assistant, Kind::Ack),
            (Role::User, Kind::Said),
            (Role::Assistant, Kind::Said),
        ];
        // Longer than what the summary's usual share would leave.
        let whole = "It has one flue. ".repeat(60);
        let short = compacted(&session(&whole), 1_000);
        assert_eq!(kinds(&short), said);
        assert_eq!(short[3].2, whole);
        let long =
            format!("It has two flues.\n\n{}\n\nThe door is left to do.", "Brick by brick. ".repeat(900));
        let short = compacted(&session(&long), 1_000);
        assert_eq!(kinds(&short), said);
        assert!(short[3].2.starts_with("It has two flues.\n"), "{}", short[3].2);
        assert!(short[3].2.ends_with("\nThe door is left to do."), "{}", short[3].2);
    }

    #[test]
    fn without_room_for_the_answer_the_request_goes_too() {
        let short = compacted(&session(&"It has one flue. ".repeat(900)), 100);
        assert_eq!(kinds(&short), [(Role::User, Kind::Summary)]);
    }

    #[test]
    fn the_middle_of_a_report_leaves_its_headings() {
        let part =
            |title: &str| format!("{title}\n\n{}\n```\n# no heading\n```\n\n", "Words of it. ".repeat(40));
        let text = format!(
            "The kiln fires.\n\n{}{}{}The glaze is left to do.",
            part("## Bricks"),
            part("**Flue:**"),
            part("## Glaze")
        );
        let short = abridged(&text, 600, "recall it");
        assert!(short.starts_with("The kiln fires.\n\n## Bricks\n"), "{short}");
        assert!(short.ends_with("The glaze is left to do."), "{short}");
        assert!(short.contains("; whole: recall it]\n**Flue:**\n## Glaze\n"), "{short}");
        assert_eq!(short.matches("# no heading").count(), 1, "{short}");
        assert_eq!(abridged("Short.", 600, ""), "Short.");
    }
}
