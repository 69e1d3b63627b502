//! The built-in profiles and prompts, from `prompts/`.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use compaction::profile::Profile;
use compaction::summary::prompt::PromptText;
use history::error::{Error, ErrorKind, Result};

macro_rules! profiles {
    ($($name:literal),* $(,)?) => {
        /// The built-in profiles: name and text, in the order of the table.
        pub const BUILT_IN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../prompts/", $name, "/profile.toml")))),*];
    };
}

profiles!(
    "epitome",
    "claude-code",
    "codex",
    "codex@0.46",
    "codex@0.169",
    "gemini-cli",
    "gemini-cli@0.20",
    "gemini-cli@0.61",
    "opencode",
    "opencode@1.18",
    "learn-claude-code",
    "learn-claude-code@7891c25",
    "supermemory",
    "supermemory@2.0",
);

macro_rules! prompts {
    ($($name:literal),* $(,)?) => {
        const PROMPTS: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../prompts/", $name)))),*];
    };
}

prompts!(
    "claude-code/system.md",
    "claude-code/ask.md",
    "codex/ask.md",
    "codex@0.169/ask.md",
    "gemini-cli/system.md",
    "gemini-cli/ask.md",
    "gemini-cli@0.61/system.md",
    "gemini-cli@0.61/ask.md",
    "gemini-cli@0.61/again.md",
    "gemini-cli@0.61/verify.md",
    "opencode/system.md",
    "opencode/ask.md",
    "opencode@1.18/system.md",
    "opencode@1.18/ask.md",
    "opencode@1.18/again.md",
    "learn-claude-code/ask.md",
    "supermemory/ask.md",
);

/// Maps people's names for a system, without case, blanks and punctuation, to built-in profiles.
static MEANT: LazyLock<HashMap<String, &'static str>> = LazyLock::new(|| {
    let others: HashMap<String, Vec<String>> =
        toml::from_str(include_str!("../../prompts/names.toml")).unwrap_or_default();
    let mut out = HashMap::new();
    for (name, _) in BUILT_IN {
        let (system, version) = name.split_once('@').unwrap_or((name, ""));
        let names = others.get(system).into_iter().flatten().map(String::as_str).chain([system]);
        out.extend(names.map(|it| (plain(it) + &plain(version), *name)));
    }
    out
});

fn plain(name: &str) -> String {
    name.chars().filter(|it| it.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The built-in profile that a name means: `Gemini CLI`, `claude`, `codex cli 0.46`.
pub fn meant(name: &str) -> Option<&'static str> {
    MEANT.get(&plain(name)).copied()
}

/// The built-in profile with that name, or that people mean by it (see [`meant`]).
pub fn built_in(name: &str) -> Result<Profile> {
    // Each is parsed only once per process, since an estimate uses all of them.
    static PARSED: [OnceLock<Profile>; BUILT_IN.len()] = [const { OnceLock::new() }; BUILT_IN.len()];
    let found = meant(name).and_then(|meant| BUILT_IN.iter().zip(&PARSED).find(|((it, _), _)| *it == meant));
    let ((name, text), parsed) = found.ok_or_else(|| {
        let names: Vec<_> = BUILT_IN.iter().map(|(it, _)| *it).collect();
        let what = format!("expected a profile ({}) or a .toml file, found {name:?}", names.join(", "));
        Error::new(ErrorKind::Arguments, what)
    })?;
    if let Some(profile) = parsed.get() {
        return Ok(profile.clone());
    }
    let profile = parse(text, name)?;
    Ok(parsed.get_or_init(|| profile).clone())
}

pub fn all_built_in() -> Result<Vec<Profile>> {
    BUILT_IN.iter().map(|(name, _)| built_in(name)).collect()
}

/// Parses and checks a profile, which may extend a built-in one. `place`: its name in errors.
pub fn parse(text: &str, place: &str) -> Result<Profile> {
    Profile::parse(text, place, BUILT_IN)
}

/// Our own prompts for a model that writes summaries.
pub fn text(text: PromptText) -> &'static str {
    match text {
        PromptText::System => include_str!("../../prompts/summarizer/system.md"),
        PromptText::Ask => include_str!("../../prompts/summarizer/ask.md"),
        PromptText::Again => include_str!("../../prompts/summarizer/again.md"),
        PromptText::Chunk => include_str!("../../prompts/summarizer/chunk.md"),
        PromptText::Fold => include_str!("../../prompts/summarizer/fold.md"),
        PromptText::Repair => include_str!("../../prompts/summarizer/repair.md"),
        PromptText::Shorten => include_str!("../../prompts/summarizer/shorten.md"),
        PromptText::Verify => include_str!("../../prompts/summarizer/verify.md"),
        PromptText::Prefix => include_str!("../../prompts/summarizer/prefix.md"),
        PromptText::Host => include_str!("../../prompts/summarizer/host.md"),
    }
}

/// The built-in prompt that a profile names, or else the given text itself.
pub fn prompt(name: &str) -> &str {
    PROMPTS.iter().find(|(it, _)| *it == name).map_or(name, |(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use compaction::profile::{Pass, SummarySpec, SummaryStyle};
    use compaction::summary::prompt::{Fill, filled};

    use super::*;

    #[test]
    fn people_are_understood() {
        for (said, name) in [
            ("gemini", "gemini-cli"),
            ("Gemini CLI", "gemini-cli"),
            ("gemini_cli@0.61", "gemini-cli@0.61"),
            ("Gemini 0.61", "gemini-cli@0.61"),
            ("claude", "claude-code"),
            ("Claude Code", "claude-code"),
            ("OpenCode", "opencode"),
            ("open code", "opencode"),
            ("codex cli", "codex"),
            ("Codex-CLI 0.46", "codex@0.46"),
            ("learn claude code", "learn-claude-code"),
            ("opencode-supermemory", "supermemory"),
            ("Epitome", "epitome"),
        ] {
            assert_eq!(meant(said), Some(name), "{said}");
        }
        for said in ["", "aider", "gemini.toml", "codex@9", "code"] {
            assert_eq!(meant(said), None, "{said}");
        }
        // Every line of names.toml belongs to a system, and no name is used twice.
        let others: HashMap<String, Vec<String>> =
            toml::from_str(include_str!("../../prompts/names.toml")).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for (system, names) in &others {
            assert_eq!(meant(system), Some(system.as_str()));
            assert!(names.iter().all(|it| meant(it) == Some(system) && seen.insert(plain(it))), "{system}");
        }
    }

    #[test]
    fn every_prompt_that_a_profile_names_is_there_and_used() {
        let mut used = std::collections::BTreeSet::new();
        for (name, _) in BUILT_IN {
            for pass in built_in(name).unwrap().passes {
                let Pass::Summarize(step) = pass else { continue };
                let prompts = step.prompts;
                for it in [prompts.system, prompts.ask, prompts.again, prompts.verify].into_iter().flatten() {
                    assert_ne!(prompt(&it), it, "{name} names {it}, which is not there");
                    used.insert(it);
                }
            }
        }
        let unused: Vec<_> = PROMPTS.iter().filter(|it| !used.contains(it.0)).map(|it| it.0).collect();
        assert_eq!(unused, Vec::<&str>::new());
    }

    #[test]
    fn every_text_is_filled_in_whole() {
        let spec: SummarySpec =
            toml::from_str("sections = [{title = \"Goal\", holds = [\"goal\"]}]").unwrap();
        let fill = Fill {
            texts: text,
            fence: "f00d",
            transcript: "T",
            spec: &spec,
            tokens: 90,
            language: None,
            style: SummaryStyle::Brief,
            focus: None,
            pins: &[],
            faults: &[],
            part: (1, 2),
            asked: String::new(),
        };
        for text in [
            PromptText::System,
            PromptText::Ask,
            PromptText::Again,
            PromptText::Chunk,
            PromptText::Fold,
            PromptText::Repair,
            PromptText::Shorten,
            PromptText::Verify,
            PromptText::Prefix,
            PromptText::Host,
        ] {
            let filled = filled(text, &fill);
            assert!(!filled.is_empty() && !filled.contains('{'), "{text:?}: {filled}");
        }
        assert!(
            filled(PromptText::Ask, &fill).contains("## Goal\n(what the work is for, in the user's words)")
        );
        let own = Fill { asked: "Say {it} in verse.".into(), ..fill };
        for text in [PromptText::Ask, PromptText::Prefix, PromptText::Host] {
            assert!(filled(text, &own).contains("Say {it} in verse.\n\n"), "{text:?}");
        }
    }
}
