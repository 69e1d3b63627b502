//! The `min_kept` check: how many of the facts a compaction must keep.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::answers::LostInfo;
use crate::engine::Amount;
use history::error::{Error, ErrorKind, Result};
use score::{self, Class, Loss, Score};
use serde::{Serialize, Serializer};

/// Minimum shares of facts to keep, 0 to 1: of all facts by weight, and of single classes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MinKept {
    /// Minimum share of all facts.
    pub all: Option<f64>,
    pub classes: BTreeMap<Class, f64>,
}

impl FromStr for MinKept {
    type Err = Error;

    /// Reads `0.9`, `90%`, `U=0.95,F=0.9`, or both: `0.9,U=1`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = |found: &str| {
            let classes: Vec<String> =
                Class::ALL.iter().map(|it| format!("{}={}", it.letter(), it.name())).collect();
            let what = format!(
                "expected a share (0.9, 90%), also per class ({}), for example U=0.95,F=0.9; found {found:?}",
                classes.join(", ")
            );
            Error::new(ErrorKind::Arguments, what)
        };
        let share = |text: &str| match text.parse() {
            Ok(Amount::Share(share)) => Ok(share),
            // `Amount` reads `1` as one token; here it can only mean all facts.
            Ok(Amount::Tokens(1)) => Ok(1.0),
            Ok(Amount::Tokens(_)) | Err(_) => Err(wrong(text)),
        };
        let mut out = Self::default();
        for part in text.split(',').map(str::trim) {
            match part.split_once('=') {
                None => out.all = Some(share(part)?),
                Some((name, value)) => {
                    let same = |it: &Class| it.letter().eq_ignore_ascii_case(name.trim());
                    let class = Class::ALL.into_iter().find(same).ok_or_else(|| wrong(part))?;
                    out.classes.insert(class, share(value)?);
                }
            }
        }
        Ok(out)
    }
}

impl fmt::Display for MinKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classes = self.classes.iter().map(|(class, least)| format!("{}={least}", class.letter()));
        let parts: Vec<String> = self.all.iter().map(f64::to_string).chain(classes).collect();
        f.write_str(&parts.join(","))
    }
}

impl Serialize for MinKept {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl MinKept {
    /// Which minimums a score misses, as text; `None` if it misses none.
    pub(crate) fn missed(&self, score: &Score) -> Option<String> {
        let short = |name: &str, kept: Option<f64>, least: f64| {
            let kept = kept.filter(|it| *it < least)?;
            // Rounded down: 89.9 % must not be called 90.
            Some(format!(
                "{:.1} % of {name} (required: {:.1} %)",
                (kept * 1000.0).floor() / 10.0,
                least * 100.0
            ))
        };
        let all = self.all.and_then(|least| short("the facts", score.kept, least));
        let of_class = |(class, least): (&Class, &f64)| {
            short(class.name(), score.classes.get(class).and_then(score::Tally::share), *least)
        };
        let missed: Vec<String> = all.into_iter().chain(self.classes.iter().filter_map(of_class)).collect();
        (!missed.is_empty()).then(|| missed.join(", "))
    }

    /// Whether a minimum applies to a lost fact.
    fn concerns(&self, loss: &Loss) -> bool {
        self.all.is_some() || self.classes.contains_key(&loss.class)
    }

    /// The lost facts to which a minimum applies.
    pub(crate) fn lost(&self, score: &Score) -> Vec<LostInfo> {
        score.lost.iter().filter(|it| self.concerns(it)).map(lost).collect()
    }
}

pub(crate) fn lost(it: &Loss) -> LostInfo {
    LostInfo {
        class: it.class.name().to_owned(),
        text: it.text.clone(),
        messages: it.messages.clone(),
        recoverable: it.recoverable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_shares_of_all_and_of_classes() {
        assert_eq!("90%".parse::<MinKept>().unwrap(), MinKept { all: Some(0.9), ..MinKept::default() });
        let both = "0.8, u=1,F=0.9".parse::<MinKept>().unwrap();
        assert_eq!(both.all, Some(0.8));
        assert_eq!(both.classes, BTreeMap::from([(Class::UserRule, 1.0), (Class::File, 0.9)]));
        for wrong in ["", "2", "U", "Z=0.9", "U=0", "U=1.5", "0.9,,"] {
            assert_eq!(wrong.parse::<MinKept>().unwrap_err().kind(), ErrorKind::Arguments, "{wrong}");
        }
    }
}
