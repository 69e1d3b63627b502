//! The edit that turns the caller's messages into the compacted ones: `history[..from] + with +
//! history[to..]`.

use serde_json::Value;

use crate::answers::ReplaceInfo;
use sessions::parse::raw::{Fields, list};
use sessions::wire::KEYS;

/// The smallest edit between two arrays of messages (or objects that contain one): a common prefix and suffix
/// are kept.
pub(crate) fn replace(before: &[u8], after: &[u8]) -> Option<ReplaceInfo> {
    let (before, after) = (std::str::from_utf8(before).ok()?, std::str::from_utf8(after).ok()?);
    let (before, after) = (array(before)?, array(after)?);
    let shorter = before.len().min(after.len());
    let from = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count();
    let tail = tail.min(shorter - from);
    let with: Option<Vec<Value>> =
        after[from..after.len() - tail].iter().map(|it| serde_json::from_str(it).ok()).collect();
    Some(ReplaceInfo { from, to: before.len() - tail, with: with? })
}

fn array(text: &str) -> Option<Vec<&str>> {
    list(text).or_else(|| Fields::of(text).and_then(|it| KEYS.iter().find_map(|key| it.list(key))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keeps_both_ends() {
        let edit = replace(b"[1,2,3,4,5]", br#"[1,"summary",5]"#).unwrap();
        assert_eq!(edit, ReplaceInfo { from: 1, to: 4, with: vec!["summary".into()] });
        let edit = replace(br#"{"system":"x","messages":[1,2]}"#, br#"{"messages":[2]}"#).unwrap();
        assert_eq!(edit, ReplaceInfo { from: 0, to: 1, with: vec![] });
        assert_eq!(replace(b"nonsense", b"[]"), None);
    }

    proptest! {
        #[test]
        fn splicing_gives_the_result(before in proptest::collection::vec(0..3u8, 0..12), after in proptest::collection::vec(0..3u8, 0..12)) {
            let json = |it: &[u8]| serde_json::to_vec(it).unwrap();
            let ReplaceInfo { from, to, with } = replace(&json(&before), &json(&after)).unwrap();
            prop_assert!(from <= to && to <= before.len());
            let with: Vec<u8> = with.iter().map(|it| it.as_u64().unwrap() as u8).collect();
            prop_assert_eq!([&before[..from], &with[..], &before[to..]].concat(), after);
        }
    }
}
