//! Checks a written session by reading it back before it is used.

use std::collections::BTreeSet;

use crate::engine::Opened;
use compaction::plan;
use history::error::{Error, ErrorKind, Result};
use history::{History, Message, Part};
use sessions::{self, Mode, Piece, Written};

/// `after` in the session's own format, checked by reading it back.
pub(crate) fn write_and_verify(opened: &Opened, after: &History, mode: Mode) -> Result<Written> {
    let mut written = sessions::write(&*opened.source, &opened.session, after, mode)?;
    let again = sessions::read(&written.over(&*opened.source), Some(opened.session.format))?;
    // What a client adds itself is not compared: Codex injects its context anew, OpenCode stores a summary as
    // a question and its answer.
    expect_same(&texts_and_outputs(after, after), &texts_and_outputs(&again.history, after))?;
    if let Some((messages, lost)) = regenerated(opened, after, &written)? {
        written.pieces = vec![Piece::New(messages)];
        written.warnings = lost;
    }
    Ok(written)
}

/// Plain messages are written as they were in the session. If that breaks a rule of their API that the
/// session did not break (a summary in front of a call, say), they are generated as for any other API:
/// returns the messages, and warnings on what that API cannot express.
fn regenerated(
    opened: &Opened,
    after: &History,
    written: &Written,
) -> Result<Option<(Vec<u8>, Vec<String>)>> {
    let api = opened.session.format;
    if !api.is_wire() {
        return Ok(None);
    }
    let found = sessions::validate::check(api, &written.bytes(&*opened.source)?);
    if found.is_empty() {
        return Ok(None);
    }
    let before = sessions::validate::check(api, &opened.source.whole()?);
    let rules: BTreeSet<&str> = before.iter().map(|it| it.rule).collect();
    if found.iter().all(|it| rules.contains(it.rule)) {
        return Ok(None);
    }
    let (messages, lost) = sessions::wire::messages_of(after, Some(api), api);
    match sessions::validate::check(api, &messages).first() {
        None => Ok(Some((messages, lost))),
        Some(first) => {
            let what = format!("checking what was written: it breaks {first}; nothing was replaced");
            Err(Error::new(ErrorKind::Bug, what))
        }
    }
}

/// Checks that a session written in another agent's format reads back as planned. The format may put an
/// output next to its call, before words that were in between, and may answer an open call with a note that
/// it was interrupted.
pub(crate) fn check_carried(expected: &History, found: &History) -> Result<()> {
    let answered: BTreeSet<&str> =
        expected.messages().iter().flat_map(Message::outputs).map(|it| &*it.id).collect();
    let calls = expected.messages().iter().flat_map(Message::calls).map(|it| &*it.id);
    let open: BTreeSet<&str> = calls.filter(|it| !answered.contains(it)).collect();
    let mut messages = found.messages().to_vec();
    for message in &mut messages {
        message.parts.retain(|it| !matches!(it, Part::Output(it) if open.contains(&*it.id)));
    }
    let sorted = |history: &History| {
        let mut all = texts_and_outputs(history, expected);
        all.sort_unstable();
        all
    };
    expect_same(&sorted(expected), &sorted(&History::new(messages, found.meta.clone())))
}

/// The texts and outputs of a history, in order. A client's own words count only if they are a summary in
/// `expected`: a format without summaries in that place stores them as the client's own words.
fn texts_and_outputs(history: &History, expected: &History) -> Vec<String> {
    let texts = |it: &Message| -> Vec<String> {
        let outputs = it.outputs().map(|it| it.text.as_str().trim().to_owned());
        it.texts().map(|it| it.as_str().trim().to_owned()).chain(outputs).collect()
    };
    let of = |such: &dyn Fn(&Message) -> bool| -> BTreeSet<String> {
        expected.messages().iter().filter(|it| such(it)).flat_map(texts).collect()
    };
    let own = |it: &Message| matches!(it.kind, history::Kind::Context | history::Kind::Marker);
    let (summaries, added) = (of(&|it| it.kind == history::Kind::Summary), of(&own));
    let mut out = Vec::new();
    for it in history.messages().iter().filter(|it| plan::counts(it)) {
        // Plain messages do not record who wrote a text: what was written as the client's reads back as the
        // user's.
        let wanted = |text: &String| {
            !text.is_empty() && (summaries.contains(text) || !(own(it) || added.contains(text)))
        };
        out.extend(texts(it).into_iter().filter(wanted));
    }
    out
}

fn expect_same(expected: &[String], found: &[String]) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    let at = expected.iter().zip(found).take_while(|(one, other)| one == other).count();
    let what = format!(
        "the written session does not read back as planned (text {at} of {} differs; {} were read); nothing was replaced. This is a bug in Epitome.",
        expected.len(),
        found.len()
    );
    Err(Error::new(ErrorKind::Bug, what))
}
