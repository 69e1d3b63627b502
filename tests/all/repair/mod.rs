//! Damaged sessions, mended: each kind of damage in each agent's form, made here from the examples.

mod agents;
mod apply;
mod clients;
mod damages;
mod undamaged;

use std::collections::BTreeSet;

use epitome::history::Message;
use epitome::sessions::repair::{Damage, Repair, repair};
use epitome::sessions::{self, Format, MemorySource, Source, validate};
use serde_json::Value;

pub(crate) const AGENTS: [&str; 4] = ["claude-code", "codex", "gemini-cli", "opencode"];

/// The handle that notes name in these tests.
const HANDLE: &str = "0123456789";

fn repaired(source: &dyn Source, format: Format) -> (Repair, Vec<u8>) {
    let found = repair(source, format, &|_| HANDLE.into()).unwrap();
    let mended = found.mended(source);
    let bytes = mended.bytes(0..mended.len()).unwrap();
    (found, bytes)
}

/// What a session says, message by message; nothing if it cannot be read.
fn texts(bytes: &[u8], format: Format) -> Vec<String> {
    let read = sessions::read(&MemorySource::new("session", bytes), Some(format));
    read.map(|it| it.history.messages().iter().map(Message::plain).collect()).unwrap_or_default()
}

/// What a strict provider would refuse of what the client sends: pairs, roles, empty texts, ids, names and signatures by
/// the validator, and the sizes of images by this.
fn refused(agent: &str, bytes: &[u8]) -> Vec<String> {
    let format = match agent {
        "opencode" => Format::ANTHROPIC,
        _ => Format::named(agent).unwrap().api(),
    };
    let messages = match clients::request(agent, bytes) {
        Ok(messages) => messages,
        Err(why) => return vec![format!("not opened: {why}")],
    };
    let found = validate::check(format, messages.to_string().as_bytes());
    let mut out: Vec<String> = found.into_iter().map(|it| format!("{}: {}", it.rule, it.what)).collect();
    attachments(&messages, format, &mut out);
    out
}

/// What of the attachments of a request is refused: each by itself, and all together.
fn attachments(messages: &Value, format: Format, out: &mut Vec<String>) {
    let (all, most) = (images(messages, format, out), request_limit(format));
    if all > most {
        out.push(format!("attachments of {all} characters, at most {most}"));
    }
}

/// Characters of the attachments of a request.
fn request_limit(format: Format) -> usize {
    match format.name() {
        "anthropic" => 32 << 20,
        "gemini" => 20 << 20,
        _ => 50 << 20,
    }
}

/// Finds attachments wherever they stand; how many characters they have.
fn images(value: &Value, format: Format, out: &mut Vec<String>) -> usize {
    match value {
        Value::Array(all) => all.iter().map(|it| images(it, format, out)).sum(),
        Value::Object(fields) => {
            let url =
                fields.get("image_url").and_then(Value::as_str).and_then(|it| it.split_once(";base64,"));
            let data = fields.get("data").and_then(Value::as_str).or(url.map(|it| it.1));
            let mime = fields.get("media_type").or_else(|| fields.get("mimeType")).and_then(Value::as_str);
            let mime = mime.or(url.map(|it| it.0.trim_start_matches("data:")));
            let mut length = 0;
            if let (Some(data), Some(mime)) = (data, mime) {
                length += data.len();
                let most = match (format.name(), mime) {
                    ("anthropic", it) if it != "application/pdf" => 5 << 20,
                    _ => request_limit(format),
                };
                if data.is_empty() || data.len() > most {
                    out.push(format!("{mime} of {} characters", data.len()));
                }
                let size = sessions::media::image_size(data).unwrap_or_default();
                if format == Format::ANTHROPIC && size.0.max(size.1) > 8_000 {
                    out.push(format!("{mime} of {size:?} px"));
                }
                let own = sessions::media::image_type(data);
                if format == Format::ANTHROPIC && own.is_some_and(|it| it != mime) {
                    out.push(format!("{mime} is {own:?}"));
                }
            }
            length + fields.values().map(|it| images(it, format, out)).sum::<usize>()
        }
        _ => 0,
    }
}

/// Texts of one session that another one does not have, whatever stands around them.
fn missing<'a>(of: &'a [String], from: &[String]) -> Vec<&'a str> {
    let all = from.join("\n");
    of.iter().flat_map(|it| it.lines()).filter(|it| !it.trim().is_empty() && !all.contains(*it)).collect()
}

#[test]
fn every_kind_of_damage_is_found_and_mended() {
    let mut table = Vec::new();
    let mut wrong = Vec::new();
    for agent in AGENTS {
        let whole = damages::example(agent);
        let format = Format::named(agent).unwrap();
        let before = texts(&whole, format);
        assert_eq!(refused(agent, &whole), Vec::<String>::new(), "{agent}");
        for damage in Damage::ALL {
            let Some(made) = damages::made(agent, *damage) else { continue };
            let cell = format!("{} of {agent}", damage.name());
            let source = MemorySource::new(damages::file_name(agent), made.bytes.as_slice());
            let (found, mended) = repaired(&source, format);
            let mut check = |holds: bool, what: String| {
                if !holds {
                    wrong.push(format!("{cell}: {what}"));
                }
            };
            check(found.counts.contains_key(damage), format!("found {:?}", found.counts));
            check(found.is_needed() && mended != made.bytes, "nothing was mended".into());
            let expected: BTreeSet<_> = [*damage].into_iter().chain(made.also.iter().copied()).collect();
            let more: Vec<_> = found.counts.keys().filter(|it| !expected.contains(it)).collect();
            check(more.is_empty(), format!("also found {more:?}"));
            let (again, same) =
                repaired(&MemorySource::new(damages::file_name(agent), mended.as_slice()), format);
            check(!again.is_needed() && same == mended, format!("again {:?}", again.counts));
            let left = refused(agent, &mended);
            check(left.is_empty(), format!("refused: {left:?}"));
            let read = sessions::read(&MemorySource::new("mended", mended.as_slice()), Some(format)).unwrap();
            check(read.notes.is_empty(), format!("notes: {:?}", read.notes));
            let after = texts(&mended, format);
            let lost = missing(&before, &after);
            check(lost.len() <= made.lost, format!("lost {lost:?}"));
            let readable = texts(&made.bytes, format);
            let dropped: Vec<_> = missing(&readable, &after)
                .into_iter()
                .filter(|it| !made.spoilt.iter().any(|s| it.contains(s)))
                .collect();
            check(dropped.is_empty(), format!("was readable: {dropped:?}"));
            let was = refused(agent, &made.bytes);
            let was = was.first().map_or("accepted".to_owned(), |it| format!("refused: {it:.90}"));
            table.push(format!(
                "{:<12}{:<20}{:>3} of {:>3} messages read before, {:>3} after; {was}",
                agent,
                damage.name(),
                readable.len(),
                before.len(),
                after.len()
            ));
        }
    }
    println!("{}", table.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_agent_has_twenty_kinds_or_says_which_cannot_be() {
    for agent in AGENTS {
        let count = Damage::ALL.iter().filter(|it| damages::made(agent, **it).is_some()).count();
        let least = if agent == "opencode" { 15 } else { 20 };
        assert!(count >= least, "{agent}: {count}");
    }
}
