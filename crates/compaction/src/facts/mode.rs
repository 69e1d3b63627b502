//! Plan mode: whether the session ends in a mode in which the agent only reads and plans.

use std::collections::HashMap;

use super::voice::ToolTopic;
use super::{Detail, Fact};
use history::tools::{self, Meaning};
use history::{Call, History, Kind, Message, Output, Role};

/// Prefix of our line about plan mode. An earlier summary with this line says that plan mode was on.
pub(in crate::facts) const PLANNING: &str = "mode: plan mode";

/// Prefixes of Claude Code's texts to the model that plan mode is on (`true`) or was left (`false`).
const REMINDERS: [(&str, bool); 3] =
    [("Plan mode is active", true), ("## Exited Plan Mode", false), ("You have exited plan mode", false)];

/// The mode in which the session ends, if it is plan mode.
///
/// Some formats record the mode in which a prompt was sent; the model enters and leaves plan mode by calls.
pub(in crate::facts) fn read(history: &History) -> Option<Fact> {
    let last_prompt = history.last_prompt();
    let (mut planning, mut plan) = (false, None);
    let mut open: HashMap<&str, &Call> = HashMap::new();
    for (number, message) in history.messages().iter().enumerate() {
        if last_prompt == Some(number) {
            planning = history.meta.planning.unwrap_or(planning);
        }
        planning = told_by(message).unwrap_or(planning);
        open.extend(message.calls().map(|it| (&*it.id, it)));
        for output in message.outputs() {
            let Some(call) = open.remove(&*output.id).filter(|_| !output.failed) else { continue };
            plan = plan_file(call).or(plan);
            match entered(call, output) {
                Some(false) => (planning, plan) = (false, None),
                Some(true) => planning = true,
                None => {}
            }
        }
    }
    let client = |it: &Message| it.role == Role::System || it.kind == Kind::Context;
    let first = history.messages().iter().position(|it| !client(it)).unwrap_or(0);
    let file = plan.map_or(String::new(), |it| format!("; plan file: {it}"));
    let text = format!("plan mode (make no changes until it ends){file}");
    planning.then(|| Fact::from_tools(ToolTopic::Mode, first, text, Detail::None))
}

/// What a message of the client, or an earlier summary, says about the mode.
fn told_by(message: &Message) -> Option<bool> {
    let says = |it: &str| match message.kind {
        Kind::Context => {
            let text = it.trim_start();
            let text = text.strip_prefix("<system-reminder>").unwrap_or(text).trim_start();
            REMINDERS.iter().find(|it| text.starts_with(it.0)).map(|it| it.1)
        }
        Kind::Summary => {
            it.lines().any(|it| it.trim_start_matches(['-', ' ']).starts_with(PLANNING)).then_some(true)
        }
        Kind::Said | Kind::Marker | Kind::Ack | Kind::Continue => None,
    };
    message.texts().filter_map(|it| says(it.as_str())).last()
}

/// `true` if a successful call entered plan mode, `false` if it left it with the user's approval.
fn entered(call: &Call, output: &Output) -> Option<bool> {
    let name: String = call.name.to_lowercase().split('_').collect();
    match &*name {
        "enterplanmode" | "planenter" => Some(true),
        "exitplanmode" | "planexit" if says_approved(output.text.as_str()) => Some(false),
        _ => None,
    }
}

/// Whether the output of a call that presents a plan says that the user approved it.
pub(super) fn says_approved(output: &str) -> bool {
    let lower = output.to_lowercase();
    ["approved", "start coding"].iter().any(|it| {
        lower.match_indices(it).any(|(at, _)| !["not ", "n't "].iter().any(|no| lower[..at].ends_with(no)))
    })
}

/// The path of a plan that a call writes: a Markdown file in the client's `plans` directory.
fn plan_file(call: &Call) -> Option<String> {
    let writes = |it: &tools::Action| matches!(it.meaning, Meaning::Create | Meaning::Edit);
    let path = tools::actions(call).into_iter().filter(writes).find_map(|it| it.path)?;
    let plain = path.replace('\\', "/");
    (plain.contains("/plans/") && plain.ends_with(".md")).then_some(path)
}
