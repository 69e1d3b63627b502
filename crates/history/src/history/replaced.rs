//! The messages that an encrypted compaction replaced, if the session still holds them.

use std::collections::HashMap;

use crate::{History, Message, Role};

/// A history in which the newest sealed compaction is replaced by the messages that it stands for, and for
/// each message its index in `history`: that of the compaction for those that were not also kept. `None`
/// without such a compaction.
pub fn expanded(history: &History) -> Option<(History, Vec<usize>)> {
    let old = history.messages();
    let (sealed, replaced) =
        old.iter().enumerate().rev().find_map(|(at, it)| Some((at, it.replaced.as_deref()?)))?;
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, it) in replaced.iter().enumerate() {
        if matches!(it.role, Role::User | Role::System) {
            places.entry(it.plain()).or_default().push(at);
        }
    }
    let mut origins = vec![sealed; replaced.len()];
    let mut oldest = replaced.len();
    // Kept messages without an equal replaced one: instructions come first, a shortened prompt is the oldest
    // kept one.
    let (mut first, mut cut) = (Vec::new(), Vec::new());
    for (number, kept) in old[..sealed].iter().enumerate().rev() {
        match places.get_mut(&kept.plain()).and_then(Vec::pop) {
            Some(at) => {
                origins[at] = number;
                oldest = if kept.is_prompt() { oldest.min(at) } else { oldest };
            }
            None if kept.is_prompt() => cut.insert(0, number),
            None => first.insert(0, number),
        }
    }
    let own = |numbers: &[usize]| numbers.iter().map(|it| old[*it].clone()).collect::<Vec<Message>>();
    let (before, behind) = replaced.split_at(oldest);
    let messages = [&own(&first), before, &own(&cut), behind, &old[sealed + 1..]].concat();
    origins.splice(oldest..oldest, cut);
    origins.splice(0..0, first);
    origins.extend(sealed + 1..old.len());
    Some((History::new(messages, history.meta.clone()), origins))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Meta, Opaque, Part};

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
        let manual = Message::text(Role::System, Kind::Context, "Manual");
        let messages = vec![manual, prompt("Cut…"), prompt("Second."), context, sealed, prompt("Third.")];
        let history = History::new(messages, Meta::default());

        let (whole, origins) = expanded(&history).unwrap();
        let texts: Vec<String> = whole.messages().iter().map(Message::plain).collect();
        assert_eq!(
            texts,
            ["Manual", "<environment_context>", "First.", "One.", "Cut…", "Second.", "Two.", "Third."]
        );
        assert_eq!(origins, [0, 3, 4, 4, 1, 2, 4, 5]);
        assert!(expanded(&whole).is_none());
    }
}
