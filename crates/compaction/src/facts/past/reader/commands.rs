//! Commands and errors in an earlier summary.

use super::headings::{COMMITS, FILE_CHANGED, REPORTS, RESOLVED, UNCHECKED, UNCHECKED_ONCE};
use super::{SummaryReader, is_resolved};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::clip;
use crate::facts::voice::ToolTopic;
use crate::facts::work::command::is_read_only;
use crate::facts::work::errors::excuses::EXCUSES;
use crate::facts::work::outcome::Outcome;
use crate::facts::{Detail, Topic};

static COMMAND: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^`([^`]+)`\s*(…)?\s*(?:\([^`→]*\)\s*)?(?:→|->|:|—)\s*(.+)$");

/// A line about errors that says that there were none.
static NO_ERROR: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:no (?:(?:known|open|remaining|other|further|critical|compilation|compile|build|runtime|or|and) )*(?:errors?|issues?|failures?|problems?)",
    r"(?: (?:remain(?:ing)?|so far|found|encountered|reported|occurred)(?: (?:during|in|while) [^,;:.]{0,40})?)?",
    r"|all [\w ]{0,40} (?:completed|passed|succeeded)(?: successfully)?|none)\W*$",
));
static COMMIT: AsciiFirstRegex = AsciiFirstRegex::new(r"(?:^|, )([0-9a-f]{7,40}) on ([^\s:]+): ");

/// Where a file's part of a check's report begins.
static REPORTED_FILE: AsciiFirstRegex = AsciiFirstRegex::new(r"(?:^|, )([^\s,:;]+\.[A-Za-z]\w{0,6}): ");

impl SummaryReader<'_> {
    pub(super) fn command(&mut self, section: Topic, body: &str) {
        // "looked": in older summaries.
        if let Some(list) = ["read-only, ok: ", "looked, ok: "].iter().find_map(|it| body.strip_prefix(it)) {
            return self.read_only_commands(list);
        }
        if let Some(list) = body.strip_prefix(COMMITS).and_then(|it| it.strip_prefix(": ")) {
            return self.commits(list);
        }
        // Our format: it is read anew from the session.
        if body.starts_with(UNCHECKED) || body.contains(UNCHECKED_ONCE) {
            return;
        }
        if let Some((command, list)) = body.strip_prefix('`').and_then(|it| it.split_once(REPORTS)) {
            return self.reports(command.trim_end_matches('`'), list.trim_start_matches(": "));
        }
        let Some(found) = COMMAND.captures(body) else { return self.without_command(section, body) };
        let more = if found.get(2).is_some() { " …" } else { "" };
        let command = format!("{}{more}", found.get(1).map_or("", |it| it.as_str()));
        let command = command.as_str();
        let rest = found.get(3).map_or("", |it| it.as_str()).trim();
        if section == Topic::Errors {
            let ended = body[..body.len() - rest.len()].trim_end().ends_with('→');
            return self.error_of_command(command, rest, ended);
        }
        if section == Topic::Setup {
            return self.push_seen(ToolTopic::Setup, command, Detail::None);
        }
        // The message number is of a history that is gone.
        let (rest, resolved) = match rest.rsplit_once(" → resolved at #") {
            Some((rest, _)) => (rest, true),
            None => (rest, false),
        };
        let (state, error) = match rest.split_once(": ") {
            Some((state, error)) => (state, Some(error.to_string())),
            None => (rest, None),
        };
        let mut outcome = parse_outcome(state, error);
        if resolved {
            outcome.result = Some(outcome.result.map_or("resolved".into(), |it| it + ", resolved"));
        }
        let detail = Detail::Command { outcome, read_only: is_read_only(command) };
        self.push(Topic::Commands, command, detail);
    }

    /// A line of a section of commands or errors that names no command.
    fn without_command(&mut self, section: Topic, body: &str) {
        let topic = if section == Topic::Commands { Topic::Findings } else { section };
        if topic == Topic::Errors && NO_ERROR.is_match(body) {
            return;
        }
        let over = is_resolved(body);
        let resolved = over.then_some(self.number);
        let detail = match topic {
            Topic::Errors => Detail::Error { of: None, resolved, similar: None, excused: None },
            _ => Detail::None,
        };
        let text = clip(body, 400).0.to_string();
        // `- Fixed by …` below an error resolves it.
        if over
            && body.to_lowercase().starts_with("fix")
            && let Some(last) =
                self.facts.last_mut().filter(|it| it.topic == Topic::Errors && it.message == self.number)
        {
            if last.text.len() < 1_000 {
                last.text.reword(|it| format!("{it} {text}"));
            }
            last.detail = detail;
            return;
        }
        self.push(topic, &text, detail);
    }

    /// Our format: `command` → failed, exit 1: error message → unresolved. `ended`: the outcome precedes the message.
    fn error_of_command(&mut self, command: &str, rest: &str, ended: bool) {
        let (text, state) = rest.rsplit_once(" → ").unwrap_or((rest, ""));
        let outcome = text.split_once(": ").filter(|it| ended && it.0.starts_with("failed"));
        if let Some((state, _)) = outcome {
            let outcome = parse_outcome(state, None);
            let detail = Detail::Command { outcome, read_only: is_read_only(command) };
            self.push(Topic::Commands, command, detail);
        }
        let text = outcome.map_or(text, |it| it.1);
        let over = [RESOLVED, FILE_CHANGED].iter().any(|it| state.starts_with(it));
        let resolved = over.then_some(self.number);
        let similar = state.starts_with("a similar run went well").then_some(self.number);
        let called = ["reported as ", "called "]
            .iter()
            .find_map(|it| state.strip_prefix(it))
            .and_then(|it| it.split_whitespace().next());
        let excused = EXCUSES.iter().find(|it| called == Some(it.0)).map(|it| (self.number, it.0));
        let detail = Detail::Error { of: Some(command.into()), resolved, similar, excused };
        self.push(Topic::Errors, text, detail);
    }

    /// Our format: `git commit → ok: 1a2b3c4 on main: a subject [#7], 2b3c4d5 on main: another`.
    fn commits(&mut self, list: &str) {
        let starts: Vec<_> = COMMIT.captures_iter(list).collect();
        for (at, found) in starts.iter().enumerate() {
            let [whole, hash, branch] = [0, 1, 2].map(|it| found.get(it).map_or(0..0, |it| it.range()));
            let end = starts.get(at + 1).and_then(|it| it.get(0)).map_or(list.len(), |it| it.start());
            let subject = list[whole.end..end].trim_end();
            let subject = subject.rsplit_once(" [#").map_or(subject, |it| it.0);
            let result = Some(format!("committed {} on {}", &list[hash], &list[branch]));
            let outcome = Outcome { ok: Some(true), result, ..Outcome::default() };
            let command = format!("git commit -m \"{subject}\"");
            self.push(Topic::Commands, &command, Detail::Command { outcome, read_only: false });
        }
    }

    /// Our format: `a.ts: 3:1 an error; 7:2 another, b.ts: 1:1 an error`.
    fn reports(&mut self, command: &str, list: &str) {
        let starts: Vec<usize> =
            REPORTED_FILE.captures_iter(list).filter_map(|it| Some(it.get(1)?.start())).collect();
        for (at, start) in starts.iter().enumerate() {
            let end = starts.get(at + 1).copied().unwrap_or(list.len());
            let piece = list[*start..end].trim_end_matches(", ");
            self.push_seen(ToolTopic::Errors, piece, Detail::Diagnostics { by: command.to_owned() });
        }
    }

    /// Our format: ``read-only, ok: `a`, `b` ``.
    fn read_only_commands(&mut self, list: &str) {
        for command in list.split('`').skip(1).step_by(2) {
            let outcome = Outcome { ok: Some(true), ..Outcome::default() };
            let detail = Detail::Command { outcome, read_only: true };
            self.push(Topic::Commands, command, detail);
        }
    }
}

/// Parses the outcome in the lines that [`SummaryReader::command`] reads.
fn parse_outcome(state: &str, error: Option<String>) -> Outcome {
    let mut outcome = Outcome { error, ..Outcome::default() };
    let mut results = Vec::new();
    for word in state.split(", ") {
        match word {
            "ok" => outcome.ok = Some(true),
            "failed" => outcome.ok = Some(false),
            _ => match word.strip_prefix("exit ").and_then(|it| it.parse().ok()) {
                Some(code) => outcome.exit = Some(code),
                None if ["ran", "running when last seen", "no outcome seen"].contains(&word) => {}
                None => results.push(word),
            },
        }
    }
    outcome.result = (!results.is_empty()).then(|| results.join(", "));
    outcome
}
