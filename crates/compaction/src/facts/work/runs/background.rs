//! Commands that run in the background, and those that the user ran in the client.

use crate::facts::work::Work;
use crate::facts::work::command::{Operation, ParsedCommand};
use crate::facts::work::outcome::{self, Outcome};
use crate::facts::{Detail, input_of};
use history::tools;
use history::{Call, Output};

/// Words of commands that run until they are stopped.
const SERVES: [&str; 12] = [
    "dev",
    "emulators:start",
    "http.server",
    "preview",
    "runserver",
    "serve",
    "server",
    "start",
    "tail",
    "up",
    "uvicorn",
    "watch",
];

impl Work<'_> {
    /// Drops checks and installations from before the last two requests if their end was not seen: they were last seen
    /// running, or printed nothing. Other jobs may still run.
    pub(in crate::facts::work) fn drop_old_checks(&mut self) {
        let Some(since) = self.turns.iter().rev().nth(1).copied() else { return };
        let serves =
            |it: &str| it.split(|it: char| it.is_whitespace() || it == '/').any(|it| SERVES.contains(&it));
        self.commands.retain(|it| {
            let Detail::Command { outcome: end, .. } = &it.detail else { return true };
            let checks = || ParsedCommand::of(&it.text).operations().iter().any(Operation::checks);
            let unseen = end.result.as_deref() == Some(outcome::PRINTED_NOTHING)
                || end.running.is_some() && !serves(&it.text) && checks();
            !unseen || it.message >= since
        });
    }

    pub(in crate::facts::work) fn read_background_output(
        &mut self,
        number: usize,
        call: &Call,
        output: &Output,
    ) {
        let input = input_of(call);
        let id = ["session_id", "task_id", "bash_id", "shell_id"].iter().find_map(|key| input.get(key));
        let Some(session) = id.map(|it| it.to_string().trim_matches('"').to_string()) else { return };
        let Some(command) = self.background.get(&session).cloned() else { return };
        let text = output.text.as_str();
        // Codex could not reach the session, which may still run.
        if text.starts_with("write_stdin failed: ") {
            return;
        }
        // That it could not be stopped is no failure of the command.
        if output.failed && ["stop", "kill"].iter().any(|it| call.name.to_lowercase().contains(it)) {
            if ["not running", "not found", "completed", "already"].iter().any(|it| text.contains(it)) {
                self.background.remove(&session);
                let unknown = Output::new("", String::new());
                self.record_outcome(number, &command, Outcome::default(), &unknown);
            }
            return;
        }
        // Claude Code prints the task's state around what it printed.
        let task = element(text, "task_id").and_then(|_| element(text, "output")).map(|printed| Output {
            text: printed.trim().into(),
            ends: [].into(),
            exit: element(text, "exit_code").and_then(|it| it.parse().ok()),
            ..output.clone()
        });
        let output = task.as_ref().unwrap_or(output);
        let mut outcome = outcome::read(output, &command, self.unmarked_means_success == Some(true));
        if outcome.running.is_some() || text.contains("<status>running</status>") {
            return;
        }
        self.background.remove(&session);
        // Claude Code, whose tools have capitalized names, states an exit code once the task ended.
        if call.name.contains(|it: char| it.is_ascii_uppercase()) && outcome.exit.is_none() && !output.failed
        {
            outcome = Outcome { ok: None, ..outcome };
        }
        self.record_outcome(number, &command, outcome, output);
    }

    /// Reads messages of the client: the files that OpenCode attaches, and of Claude Code commands that the user ran and
    /// results of background commands.
    pub(in crate::facts::work) fn read_client_text(&mut self, number: usize, text: &str) {
        const ATTACHED: &str = "Called the Read tool with the following input: ";
        if let Some(rest) = text.strip_prefix(ATTACHED) {
            let call = Call {
                id: "".into(),
                name: "read".into(),
                input: rest.lines().next().unwrap_or_default().into(),
                freeform: false,
                signature: None,
            };
            let output = Output::new("", text);
            tools::actions(&call).iter().for_each(|it| self.record_file_action(number, it, &output));
        }
        if let Some(command) = element(text, "bash-input") {
            self.user_command = Some(command.trim().to_owned());
        }
        if let Some(printed) = element(text, "bash-stdout")
            && let Some(command) = self.user_command.take()
        {
            let printed = format!("{printed}\n{}", element(text, "bash-stderr").unwrap_or_default());
            let output =
                Output::new("", printed.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"));
            let outcome = outcome::read(&output, &command, false);
            self.record_outcome(number, &command, outcome, &output);
        }
        // One message may notify of several.
        for notice in text.split("<task-notification>").skip(1) {
            let Some(summary) = element(notice, "summary") else { continue };
            let code = summary.rsplit_once("exit code ").map(|it| it.1.trim_end_matches([')', '.']));
            let outcome = match code.and_then(|it| it.parse::<i32>().ok()) {
                Some(code) => Outcome { ok: Some(code == 0), exit: Some(code), ..Outcome::default() },
                // A monitor's: its stream ended.
                None if element(notice, "status") == Some("completed") => Outcome::default(),
                None if element(notice, "status") == Some("killed") => {
                    Outcome { result: Some(outcome::KILLED.to_owned()), ..Outcome::default() }
                }
                None => continue,
            };
            if let Some(command) = element(notice, "task-id").and_then(|it| self.background.remove(it)) {
                // The code is that of the last program of a pipe.
                let parsed = ParsedCommand::of(&command);
                let hides = parsed.hides_failure() || parsed.ends_in_viewer() || parsed.masks_exit_code();
                let hidden = outcome.ok == Some(true) && hides;
                let outcome = if hidden { Outcome::default() } else { outcome };
                self.record_outcome(number, &command, outcome, &Output::new("", String::new()));
            }
        }
    }
}

/// The text of the first XML element with that name.
fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = text.split_once(&format!("<{name}>"))?.1;
    Some(rest.split_once(&format!("</{name}>")).map_or(rest, |it| it.0))
}
