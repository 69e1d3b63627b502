//! What the new history looks like, for each profile and each cause: numbered lines, as Codex's own tests have them.

use std::fmt::Write as _;

use epitome::compaction::plan::{Cause, ModelLimits, Op};
use epitome::history::{Call, History, Kind, Media, MediaKind, Message, Meta, Output, Part, Role, Text};
use epitome::profiles::BUILT_IN;

use super::{Wish, laid_out, plan, profile};

/// A session from lines: `user`, `model`, `context`, `system`, `summary`, `mark`, `image`, `call ID NAME`, `out ID`, each
/// with what it says behind a colon. `× N` at the end says it N times.
fn session(text: &str) -> History {
    let mut messages = Vec::new();
    for line in text.lines().filter(|it| !it.trim().is_empty() && !it.starts_with('#')) {
        let (head, body) = line.split_once(": ").unwrap_or((line, ""));
        let body = match body.rsplit_once(" × ") {
            Some((body, times)) => format!("{body} ").repeat(times.parse().unwrap()),
            None => body.to_owned(),
        };
        let words: Vec<&str> = head.split(' ').collect();
        let say = |role, kind| Message::text(role, kind, body.as_str());
        messages.push(match words[0] {
            "user" => say(Role::User, Kind::Said),
            "model" => say(Role::Assistant, Kind::Said),
            "context" => say(Role::User, Kind::Context),
            "system" => say(Role::System, Kind::Context),
            "summary" => say(Role::User, Kind::Summary),
            "mark" => say(Role::User, Kind::Marker),
            "image" => {
                let media = Media {
                    kind: MediaKind::Image,
                    mime: "image/png".into(),
                    data: "AAAA".into(),
                    size: None,
                };
                Message::new(
                    Role::User,
                    Kind::Said,
                    vec![Part::Text(body.as_str().into()), Part::Media(media)],
                )
            }
            "call" => {
                let input = Text::new(if body.is_empty() { "{}" } else { body.as_str() });
                let call = Call {
                    id: words[1].into(),
                    name: words[2].into(),
                    input,
                    freeform: false,
                    signature: None,
                };
                Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)])
            }
            "out" => {
                let output = Output::new(words[1], body.as_str());
                Message::new(Role::User, Kind::Said, vec![Part::Output(output)])
            }
            other => panic!("unknown {other}"),
        });
    }
    for (number, message) in (0..).zip(&mut messages) {
        message.from = Some(number);
    }
    History::new(messages, Meta::default())
}

fn line(message: &Message) -> String {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut out = format!("{role}/{:?}", message.kind).to_lowercase();
    for part in &message.parts {
        let text = match part {
            Part::Text(it) => it.as_str().replace('\n', "\\n"),
            Part::Call(it) => format!("call {} {}", it.id, it.name),
            Part::Output(it) => format!("out {} {}", it.id, it.text.as_str().replace('\n', "\\n")),
            Part::Media(it) => format!("media {}", it.mime),
            Part::Reasoning(_) | Part::Opaque(_) => String::new(),
        };
        let count = text.chars().count();
        let shown: String = if count > 90 {
            let chars: Vec<char> = text.chars().collect();
            let ends: [String; 2] = [chars[..50].iter().collect(), chars[count - 30..].iter().collect()];
            format!("{} … {} [{count}]", ends[0], ends[1])
        } else {
            text
        };
        write!(out, " | {shown}").unwrap();
    }
    out
}

#[test]
fn shapes() {
    insta::glob!("../../cases/shapes", "*.txt", |path| {
        let history = session(&std::fs::read_to_string(path).unwrap());
        let mut out = String::new();
        for (name, _) in BUILT_IN {
            let mut seen: Vec<(String, Cause)> = Vec::new();
            for cause in [Cause::Manual, Cause::Auto, Cause::Overflow] {
                let limits = ModelLimits {
                    window: Some(20_000),
                    window_given: true,
                    output: Some(4_000),
                    ..ModelLimits::default()
                };
                let plan = plan(&profile(name), &history, Wish { cause, limits, ..Wish::default() });
                let mut shape = String::new();
                if plan.act {
                    for (number, message) in laid_out(&history, &plan).iter().enumerate() {
                        writeln!(shape, "  {number:02}: {}", line(message)).unwrap();
                    }
                    for op in &plan.ops {
                        if let Op::Skip { from, to, .. } = op {
                            writeln!(shape, "  not shown to a model: {from}..{to}").unwrap();
                        }
                    }
                } else {
                    writeln!(shape, "  nothing ({}): {}", plan.reason.code, plan.reason.text).unwrap();
                }
                match seen.iter().find(|it| it.0 == shape) {
                    Some((_, as_before)) => {
                        writeln!(out, "{name}, {cause:?}: as {as_before:?}").unwrap();
                    }
                    None => {
                        write!(out, "{name}, {cause:?}\n{shape}").unwrap();
                        seen.push((shape, cause));
                    }
                }
            }
            out.push('\n');
        }
        insta::assert_snapshot!(out);
    });
}
