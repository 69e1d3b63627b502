//! Prompts, which clients show as slash commands: our own, the profiles' prompts for a summary, and the
//! user's files in the configuration directory.
//!
//! A file `prompts/NAME.md` may begin with `description` and `argument-hint` between two lines `---`.
//! `$ARGUMENTS` in its text stands for everything that was typed, `$1` to `$9` for single words: the format
//! of coding agents' own commands.

use crate::config::profiles::{self, BUILT_IN, prompt};
use std::path::Path;
use std::sync::LazyLock;
use std::time::SystemTime;

use regex::{Captures, Regex};
use rmcp::model::{JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

/// Maximum size of a prompt file, in bytes; larger ones are ignored.
const LARGEST: u64 = 64 * 1024;
/// Maximum number of the user's prompts.
const MOST: usize = 100;
/// Placeholders in a prompt file.
static PLACE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\$(ARGUMENTS|[1-9])").ok());

struct Own {
    name: &'static str,
    about: &'static str,
    /// Name, description, whether it is required.
    argument: Option<(&'static str, &'static str, bool)>,
    /// The text with an argument, which replaces `{}`.
    with: &'static str,
    without: &'static str,
}

const OWN: [Own; 3] = [
    Own {
        name: "compact",
        about: "Compact this session without losing what matters",
        argument: Some(("focus", "What the summary should focus on", false)),
        with: "Compact this session: call summarize_history with {\"focus\": {}, \"to\": \"session\"}. Then tell me how many \
               tokens it had and has, which facts were lost if any, and what its `next` says to do.",
        without: "Compact this session: call summarize_history with {\"to\": \"session\"}. Then tell me how many tokens it had \
                  and has, which facts were lost if any, and what its `next` says to do.",
    },
    Own {
        name: "handoff",
        about: "Write the first prompt of a new session with a goal",
        argument: Some(("goal", "What the new session should do", true)),
        with: "I want to continue in a new session with this goal: {}. Call summarize_history with that goal as \
               `focus` and give me its summary, preceded by the goal, as one text that I can paste as the first \
               prompt of the new session.",
        without: "I want to continue in a new session. Call summarize_history and give me its summary as one text \
                  that I can paste as the first prompt of the new session.",
    },
    Own {
        name: "context",
        about: "How full the context is and what fills it",
        argument: None,
        with: "",
        without: "Call estimate_tokens and tell me in a few lines how full the context is, what fills it most, and whether now \
                  is a good moment to compact.",
    },
];

/// A profile's prompt for a summary, to be used with the model of the running session.
struct ProfilePrompt {
    name: String,
    profile: &'static str,
    text: String,
}

/// The argument of a [`ProfilePrompt`]: name and description.
const FOCUS: (&str, &str) = ("focus", "What the summary should focus on");

/// One prompt per system, from its profile without `@version`.
fn profile_prompts() -> Vec<ProfilePrompt> {
    let text = |name: &str| {
        let profile = profiles::built_in(name).ok()?;
        let prompts = &profile.summarize()?.prompts;
        let system = prompts.system.as_ref().map(|it| format!("{}\n\n", prompt(it).trim()));
        Some(system.unwrap_or_default() + prompt(prompts.ask.as_ref()?).trim())
    };
    let systems = BUILT_IN.iter().map(|(name, _)| *name).filter(|it| !it.contains('@'));
    systems
        .filter_map(|profile| {
            Some(ProfilePrompt { name: format!("compact-{profile}"), profile, text: text(profile)? })
        })
        .collect()
}

/// All prompts: built-in ones first, then the profiles', then the user's by name.
pub(super) fn list(folder: &Path) -> Vec<Prompt> {
    let argument = |(name, what, required): (&str, &str, bool)| {
        PromptArgument::new(name).with_description(what).with_required(required)
    };
    let own =
        OWN.iter().map(|it| Prompt::new(it.name, Some(it.about), it.argument.map(|it| vec![argument(it)])));
    let asked = profile_prompts().into_iter().map(|it| {
        let about = format!("Have the model write a summary, with the prompt of {}", it.profile);
        Prompt::new(it.name, Some(about), Some(vec![argument((FOCUS.0, FOCUS.1, false))]))
    });
    let user = user_files(folder).into_iter().map(|(name, file)| {
        let hint = file.hint.as_deref().unwrap_or("What to say");
        let takes = PLACE.as_ref().is_some_and(|it| it.is_match(&file.text));
        Prompt::new(name, file.description, takes.then(|| vec![argument(("arguments", hint, false))]))
    });
    own.chain(asked).chain(user).collect()
}

/// The built-in and the user's prompts as prompt files (name and text) for Codex, which does not show a
/// server's prompts.
pub(crate) fn files(folder: &Path) -> Vec<(String, String)> {
    let file = |name: &str, description: Option<&str>, hint: Option<&str>, text: &str| {
        let mut head = String::new();
        for (key, value) in [("description", description), ("argument-hint", hint)] {
            head.push_str(&value.map(|it| format!("{key}: {}\n", Value::from(it))).unwrap_or_default());
        }
        (format!("epitome-{name}.md"), format!("---\n{head}---\n{text}\n"))
    };
    let own = OWN.iter().map(|it| match it.argument {
        None => file(it.name, Some(it.about), None, it.without),
        Some((hint, _, _)) => {
            let text = it.with.replace("{}", "\"$ARGUMENTS\"");
            file(it.name, Some(it.about), Some(hint), &text)
        }
    });
    let user = user_files(folder);
    let user =
        user.iter().map(|(name, it)| file(name, it.description.as_deref(), it.hint.as_deref(), &it.text));
    own.chain(user).collect()
}

/// The messages of a prompt; `None` if the name is unknown, an error if a required argument is missing.
pub(super) fn get(
    folder: &Path,
    name: &str,
    arguments: &JsonObject,
) -> Option<Result<Vec<PromptMessage>, String>> {
    let given =
        |name: &str| arguments.get(name).and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty());
    let message = |text: String| vec![PromptMessage::new_text(Role::User, text)];
    if let Some(own) = OWN.iter().find(|it| it.name == name) {
        return Some(match own.argument {
            None => Ok(message(own.without.to_owned())),
            Some((argument, what, required)) => match given(argument) {
                Some(value) => Ok(message(own.with.replace("{}", &Value::from(value).to_string()))),
                None if required => Err(format!("expected the argument {argument} ({what}), found none")),
                None => Ok(message(own.without.to_owned())),
            },
        });
    }
    if let Some(it) = profile_prompts().into_iter().find(|it| it.name == name) {
        let focus = given(FOCUS.0).map(|it| format!("\n\nFocus above all on: {it}")).unwrap_or_default();
        return Some(Ok(message(it.text + &focus)));
    }
    let (_, file) = user_files(folder).into_iter().find(|(it, _)| it == name)?;
    Some(Ok(message(filled(&file.text, given("arguments").unwrap_or_default()))))
}

/// A value that changes whenever a prompt file is added, removed or written.
pub(super) fn stamp(folder: &Path) -> Vec<(String, Option<SystemTime>)> {
    let mut out: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .take(MOST * 2)
        .map(|it| {
            (it.file_name().to_string_lossy().into_owned(), it.metadata().and_then(|it| it.modified()).ok())
        })
        .collect();
    out.sort();
    out
}

#[derive(Debug, PartialEq)]
struct PromptFile {
    description: Option<String>,
    hint: Option<String>,
    text: String,
}

fn user_files(folder: &Path) -> Vec<(String, PromptFile)> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.file_stem().and_then(|it| it.to_str()).unwrap_or_default().to_owned();
        let plain = !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it));
        let fits = std::fs::metadata(&path).is_ok_and(|it| it.is_file() && it.len() <= LARGEST);
        if !plain
            || !fits
            || path.extension().is_none_or(|it| it != "md")
            || OWN.iter().any(|it| it.name == name)
            || name.strip_prefix("compact-").is_some_and(|it| BUILT_IN.iter().any(|(name, _)| *name == it))
        {
            continue;
        }
        if let Ok(text) = std::fs::read_to_string(&path) {
            out.push((name, parsed(&text)));
        }
    }
    out.sort_by(|one, other| one.0.cmp(&other.0));
    out.truncate(MOST);
    out
}

fn parsed(text: &str) -> PromptFile {
    let text = text.trim_start_matches('\u{feff}');
    let mut file = PromptFile { description: None, hint: None, text: text.trim().to_owned() };
    let mut lines = text.split_inclusive('\n');
    if lines.next().map(str::trim_end) != Some("---") {
        return file;
    }
    let mut at = text.find('\n').map_or(text.len(), |it| it + 1);
    for line in lines {
        at += line.len();
        if line.trim_end() == "---" {
            file.text = text[at..].trim().to_owned();
            return file;
        }
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim().trim_matches(['"', '\'']).to_owned();
        match key.trim() {
            "description" => file.description = Some(value),
            "argument-hint" => file.hint = Some(value),
            _ => {}
        }
    }
    // The closing `---` is missing: treat everything as text.
    PromptFile { description: None, hint: None, ..file }
}

/// Replaces the placeholders in `text`; placeholders in `typed` are not expanded.
fn filled(text: &str, typed: &str) -> String {
    let words: Vec<&str> = typed.split_whitespace().collect();
    let filling = |place: &Captures<'_>| match place[1].parse::<usize>() {
        Ok(number) => words.get(number - 1).copied().unwrap_or_default().to_owned(),
        Err(_) => typed.to_owned(),
    };
    PLACE.as_ref().map_or(text.into(), |it| it.replace_all(text, filling)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_prompt_files() {
        let file = parsed(
            "---\r\ndescription: \"Goes: on\"\r\nargument-hint: [topic]\r\nmodel: x\r\n---\r\n\r\nSay $1.\r\n",
        );
        assert_eq!(file.description.as_deref(), Some("Goes: on"));
        assert_eq!(file.hint.as_deref(), Some("[topic]"));
        assert_eq!(file.text, "Say $1.");
        assert_eq!(parsed("---\nno end").text, "---\nno end");
        assert_eq!(parsed("plain").text, "plain");
    }

    #[test]
    fn fills_in_once() {
        assert_eq!(
            filled("$1 and $2, all: $ARGUMENTS, cost $5.0 $x $", "a $1 b"),
            "a and $1, all: a $1 b, cost .0 $x $"
        );
        assert_eq!(filled("$1|$ARGUMENTS|", ""), "||");
    }

    #[test]
    fn the_profiles_ask_in_their_own_words() {
        let folder = tempfile::tempdir().unwrap();
        let asked = profile_prompts();
        assert!(asked.len() >= 6, "{}", asked.len());
        for it in &asked {
            let given = JsonObject::from_iter([("focus".to_owned(), Value::from("the tests"))]);
            let said = get(folder.path(), &it.name, &given).unwrap().unwrap();
            let said = serde_json::to_string(&said).unwrap();
            assert!(said.len() > 200 && said.contains("Focus above all on: the tests"), "{}", it.name);
        }
    }

    #[test]
    fn files_say_what_the_prompts_say() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tidy.md"), "---\ndescription: Tidy: up\n---\nTidy $1.").unwrap();
        let files = files(folder.path());
        let names: Vec<&str> = files.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(
            names,
            ["epitome-compact.md", "epitome-handoff.md", "epitome-context.md", "epitome-tidy.md"]
        );
        let tidy = parsed(&files[3].1);
        assert_eq!((tidy.description.as_deref(), tidy.text.as_str()), (Some("Tidy: up"), "Tidy $1."));
        let handoff = parsed(&files[1].1);
        assert!(handoff.text.contains("this goal: \"$ARGUMENTS\""), "{}", handoff.text);
    }

    #[test]
    fn our_prompts_stand_first_and_cannot_be_replaced() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("compact.md"), "mine").unwrap();
        std::fs::write(folder.path().join("tidy.md"), "Tidy $ARGUMENTS").unwrap();
        std::fs::write(folder.path().join("notes.txt"), "no").unwrap();
        let names: Vec<String> = list(folder.path()).into_iter().map(|it| it.name).collect();
        assert_eq!(names[..3], ["compact", "handoff", "context"]);
        assert_eq!(names.last().unwrap(), "tidy");
        let missing = get(folder.path(), "handoff", &JsonObject::new()).unwrap().unwrap_err();
        assert!(missing.contains("goal"), "{missing}");
        assert!(get(folder.path(), "nope", &JsonObject::new()).is_none());
        assert!(get(folder.path(), "../x", &JsonObject::new()).is_none());
    }
}
