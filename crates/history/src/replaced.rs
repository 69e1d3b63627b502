//! The messages that a compaction replaced, where its own text is sealed and the session still holds them.

use crate::{History, Message};

/// A history with the messages that its newest sealed compaction replaced in the place of it, and for each message the
/// number of the one it comes from; nothing if there is none. What the compaction kept beside its text stands once.
pub fn expanded(history: &History) -> Option<(History, Vec<usize>)> {
    let old = history.messages();
    let (sealed, replaced) =
        old.iter().enumerate().rev().find_map(|(at, it)| Some((at, it.replaced.as_deref()?)))?;
    let mut origins = vec![sealed; replaced.len()];
    let mut others = Vec::new();
    for (number, kept) in old[..sealed].iter().enumerate().rev() {
        let same = (0..replaced.len()).rfind(|at| origins[*at] == sealed && replaced[*at].says_same(kept));
        match same {
            Some(at) => origins[at] = number,
            None => others.push(number),
        }
    }
    // What was cut short is the oldest that was kept; instructions come first too.
    others.reverse();
    origins.splice(0..0, others.iter().copied());
    origins.extend(sealed + 1..old.len());
    let messages: Vec<Message> =
        (others.iter().map(|it| &old[*it])).chain(replaced).chain(&old[sealed + 1..]).cloned().collect();
    Some((History::new(messages, history.meta.clone()), origins))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Meta, Opaque, Part, Role};

    fn prompt(text: &str) -> Message {
        Message::text(Role::User, Kind::Said, text)
    }

    fn reply(text: &str) -> Message {
        Message::text(Role::Assistant, Kind::Said, text)
    }

    #[test]
    fn stands_in_the_place_of_the_sealed_text() {
        let context = Message::text(Role::User, Kind::Context, "<environment_context>");
        let replaced =
            vec![context.clone(), prompt("First."), reply("One."), prompt("Second."), reply("Two.")];
        let opaque = Opaque { api: "api".into(), kind: "compaction".into(), raw: "{}".into() };
        let mut sealed = Message::new(Role::Assistant, Kind::Summary, vec![Part::Opaque(opaque)]);
        sealed.replaced = Some(replaced.into());
        let messages = vec![prompt("Cut…"), prompt("Second."), context, sealed, prompt("Third.")];
        let history = History::new(messages, Meta::default());

        let (whole, origins) = expanded(&history).unwrap();
        let texts: Vec<String> = whole.messages().iter().map(Message::plain).collect();
        assert_eq!(texts, ["Cut…", "<environment_context>", "First.", "One.", "Second.", "Two.", "Third."]);
        assert_eq!(origins, [0, 2, 3, 3, 1, 3, 4]);
        assert!(expanded(&whole).is_none());
    }
}
