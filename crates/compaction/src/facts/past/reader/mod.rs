//! Parses earlier summaries back into facts.

mod commands;
mod files;
pub(in crate::facts) mod headings;
mod names;

use crate::facts::mode;
use crate::facts::past::step_index::StepIndex;
use crate::facts::talk;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::rule::{polarity, rule_topic};
use crate::facts::text::typed::is_slash_command;
use crate::facts::text::{
    clip, ends_with_colon, has_marker, is_machine_output, sentences, without_announcement, without_bold,
    without_markers,
};
use crate::facts::topic::LineKind;
use crate::facts::voice::{EarlierSummary, ToolTopic};
use crate::facts::{Detail, Fact, FileOp, Polarity, Topic};
use files::is_path_only;
use headings::{
    ALL_COMPLETE, ANSWERED, ANSWERED_BEFORE, ANSWERED_BELOW, ANSWERED_LATER, ANSWERED_ONCE, BELOW,
    BELOW_ONCE, BOILERPLATE, BUT_LEFT, Heading, LOOKS, MORE_DONE, SAYS_NONE, STEP_BOXES, STEP_MARKS,
    SUFFIXES, heading_text, is_lettered, op_in, parse_heading, reply,
};
use history::{History, Kind, Message, Part};

/// A line in a list of rules that is not a rule.
static STATEMENT: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)\b(?:was|were|has been|have been|had)\b|^current\b|^`[^`]+`$");
static REFS: AsciiFirstRegex = AsciiFirstRegex::new(r"\s*\[#\d+(?:[,–-] ?#?\d+)*\]");

/// Whether a line of an earlier summary says that an error was resolved.
fn is_resolved(line: &str) -> bool {
    let lower = line.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    lower.starts_with("fix:") || words.any(|it| ["fixed", "resolved", "solved", "corrected"].contains(&it))
}

fn rule_detail(text: &str) -> Detail {
    Detail::Rule(polarity(text).unwrap_or(Polarity::Require))
}

/// Reads every summary in the history.
pub(in crate::facts) fn read(history: &History, base: Option<&str>, facts: &mut Vec<Fact>) {
    for (number, message) in history.messages().iter().enumerate() {
        let Some(earlier) = EarlierSummary::of(number, message) else { continue };
        for text in earlier.texts() {
            SummaryReader {
                earlier,
                number,
                base,
                topic: None,
                level: None,
                last_number: Some(0),
                in_rule_list: false,
                has_section: false,
                answered_ref: None,
                at_next_step: false,
                in_analysis: false,
                indent: 0,
                label: None,
                low_priority_section: false,
                tagged: None,
                under_heading: false,
                deferred: Vec::new(),
                facts,
            }
            .text(text);
        }
    }
    drop_of_older(history, facts);
    // The plan of a newer summary replaces that of an older one.
    let step = Fact::is_open_step;
    let newest = facts.iter().filter(|it| step(it)).map(|it| it.message).max();
    facts.retain(|it| !step(it) || Some(it.message) == newest);
}

/// Drops the facts of an older summary that comes after the newer one made from it, except rules that only
/// the older has. OpenCode keeps the messages since the summary before the last.
fn drop_of_older(history: &History, facts: &mut Vec<Fact>) {
    let made_at = |number: usize| history.messages()[number].at;
    let mut numbers: Vec<usize> = facts.iter().map(|it| it.message).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let newer = |number: usize| {
        let before = numbers.iter().take_while(|it| **it < number);
        before.copied().find(|it| made_at(*it).zip(made_at(number)).is_some_and(|(before, own)| before > own))
    };
    for (older, newer) in numbers.iter().filter_map(|it| Some((*it, newer(*it)?))) {
        let rule = |it: &Fact| matches!(it.topic, Topic::Constraints | Topic::Directives | Topic::Decisions);
        let newer_rules = facts.iter().filter(|it| it.message == newer && rule(it));
        let told = StepIndex::of(newer_rules.map(|it| it.text.as_str()));
        facts.retain(|it| it.message != older || rule(it) && !told.contains_similar(&it.text));
    }
}

/// Text of the fact about a compaction whose text is encrypted.
pub(crate) const UNREADABLE: &str = "an earlier compaction cannot be read";

/// Adds a fact for the last compaction that has no text: some APIs return encrypted items.
pub(in crate::facts) fn note_unreadable(history: &History, facts: &mut Vec<Fact>) {
    let sealed = |it: &Message| {
        it.kind == Kind::Summary
            && it.parts.iter().any(|it| matches!(it, Part::Opaque(_)))
            && it.texts().all(|it| it.as_str().trim().is_empty())
    };
    let last = history.messages().iter().enumerate().rev().find(|it| sealed(it.1));
    let Some((message, earlier)) = last.and_then(|(at, it)| Some((it, EarlierSummary::of(at, it)?))) else {
        return;
    };
    facts.retain(|it| it.topic != Topic::Goal || !it.text.starts_with(UNREADABLE));
    let rest = match message.replaced {
        Some(_) => "the messages it replaced were read from the session file, with details as space allows",
        None => "what only its text said is missing here",
    };
    facts.push(earlier.fact(Topic::Goal, &format!("{UNREADABLE}; {rest}"), Detail::None));
}

/// A summary without the name tag that some agents put before its first line, `[Name] `. What follows may be a heading
/// or a pinned fact.
fn without_name_tag(text: &str) -> &str {
    let tag = text.trim_start().strip_prefix('[').and_then(|it| it.split_once("] "));
    let name = |it: &str| it.len() <= 20 && it.chars().all(|it| it.is_alphanumeric() || it == ' ');
    tag.filter(|it| name(it.0)).map_or(text, |it| it.1)
}

/// Maximum characters of a step to which the lines below it are added.
const MAX_STEP_CHARS: usize = 300;

/// Whether a subheading names an error: `Error 2: the lock is never released`.
fn is_error_heading(heading: &Heading) -> bool {
    heading.title.strip_prefix("error ").is_some_and(|it| it.starts_with(|it: char| it.is_ascii_digit()))
}

struct SummaryReader<'a> {
    earlier: EarlierSummary<'a>,
    number: usize,
    base: Option<&'a str>,
    /// Topic of the current section; `None` before the first.
    topic: Option<Topic>,
    /// Heading level of the current section.
    level: Option<usize>,
    /// Number of the last numbered heading; `None` where headings are marked with `#`, so that numbered lines are list
    /// items.
    last_number: Option<usize>,
    /// The current section is a list of rules.
    in_rule_list: bool,
    has_section: bool,
    /// The reference (`[#12]`) of the last request marked as answered; older summaries mark only its first
    /// line.
    answered_ref: Option<String>,
    /// The current section is Claude Code's "Optional Next Step".
    at_next_step: bool,
    /// The current section is an analysis, which the summary after it repeats.
    in_analysis: bool,
    /// Indentation of the last step, if it has a bullet: deeper lines belong to it.
    indent: usize,
    /// The last step is a subheading, to which the lines below it belong.
    under_heading: bool,
    /// Indentation and text of a line that ends with a colon, which is put before the lines below it.
    label: Option<(usize, String)>,
    /// Within pi's `<read-files>` or `<modified-files>`, where each line is a path.
    tagged: Option<FileOp>,
    /// The current section lists technologies, the first to go if space is short.
    low_priority_section: bool,
    /// Findings of such sections, which are put after all other facts.
    deferred: Vec<Fact>,
    facts: &'a mut Vec<Fact>,
}

/// A step that says that no step is left: "No next step needed", "The task has been completed:", "None requested".
static NOTHING_LEFT: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:no (?:\w+ )?(?:next|further|remaining|pending|outstanding) (?:steps?|actions?|tasks?|work)\b",
    r"|(?:the|all) (?:[\w-]+ ){0,2}(?:tasks?|work|requests?) (?:has|have|is|are) (?:been )?(?:now )?(?:fully |successfully )?(?:completed?|done|finished)\b",
    r"|none\W*$|none[.:,;(—–-]|none (?:[a-z]+ly |currently )?(?:[-—–]|at\b|remain|recommended|requested|required|needed|outstanding|pending|specified))",
));
/// The request that a step is derived from, which is no step: `Direct quote from the conversation:`, `User: "Mend it"`.
static QUOTES_REQUEST: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:(?:direct|relevant|exact|verbatim) quotes?(?: (?:from|of) [^:]*)?:|(?:the )?user:\s*[\x22“].*[\x22”]\W*(?:\([^)]*\)\W*)?$)",
);
/// What the user does, wants or said; not "prompts for user input".
static OF_USER: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\b(?:the user|per user|user (?:(?:will|must|should|does|has|explicitly|also) )?(?:\w+ed|said|told|forbade|says|wants?",
    r"|prefers?|runs?|insists?|asks|expects|requires|needs|feedback|instructions?|preferences?|requests?|corrections?))\b",
));

impl SummaryReader<'_> {
    fn text(mut self, text: &str) {
        // Claude Code's summaries begin with an analysis; the summary proper repeats it.
        let text = text.split_once("\nSummary:\n").map_or(text, |it| it.1);
        let text = without_name_tag(text);
        // Without headings all of the text is prose; with headings, what precedes the first is boilerplate.
        let has_section = text.lines().any(|it| {
            let lead = it.trim();
            let tag =
                lead.strip_prefix('<').and_then(|it| it.split_once('>')).map(|it| format!("<{}>", it.0));
            let opens = |it: &str| parse_heading(it, Some(1)).is_some_and(|it| it.section.is_some());
            !it.starts_with([' ', '\t']) && opens(lead) || tag.is_some_and(|it| opens(&it))
        });
        self.topic = (!has_section).then_some(Topic::Findings);
        let mut fenced = false;
        for line in text.lines() {
            let lead = line.trim();
            if lead.starts_with("```") {
                fenced = !fenced;
                if fenced {
                    self.label = None;
                    self.unannounce();
                }
            } else if !fenced && !lead.is_empty() {
                self.line(line);
            }
        }
        self.facts.append(&mut self.deferred);
    }

    fn line(&mut self, line: &str) {
        let lead = line.trim();
        if lead.starts_with("</") {
            self.tagged = None;
            return;
        }
        // `<goal>text</goal>` on one line.
        if let Some((name, rest)) = lead.strip_prefix('<').and_then(|it| it.split_once('>'))
            && let Some(body) = rest.strip_suffix(&format!("</{name}>"))
            && !body.contains('<')
        {
            self.line(&format!("<{name}>"));
            return self.line(body);
        }
        // Nested elements are indented; headings are not.
        let nested = line.starts_with([' ', '\t']) && !lead.starts_with('<');
        let item = is_lettered(lead) && self.level.is_some_and(|it| (1..=6).contains(&it));
        if !nested
            && !item
            && let Some(heading) = parse_heading(lead, self.last_number.map(|it| it + 1))
        {
            return self.heading(lead, &heading);
        }
        if !lead.contains(char::is_alphanumeric) {
            return;
        }
        // Pinned facts precede all sections; below a heading, a tool's text may begin the same way.
        if !self.has_section
            && let Some(pinned) = lead.strip_prefix("- pinned: ")
        {
            return self.push(
                Topic::Constraints,
                &REFS.replace_all(pinned, ""),
                Detail::Rule(Polarity::Require),
            );
        }
        let Some(topic) = self.topic else { return };
        let Some(labelled) = self.labelled(topic, line) else { return };
        let (line, lead) = (labelled.as_str(), labelled.trim());
        // What is indented below a bullet may be code.
        let code = nested && is_machine_output(lead) && !lead.starts_with(['-', '*']);
        let indent = line.len() - line.trim_start().len();
        let takes_details = |it: &Fact| match topic {
            Topic::Open | Topic::Active | Topic::Unconfirmed | Topic::Errors => true,
            // Finished steps take nested lines only below a colon, and not if they deleted or renamed files, which are
            // facts of their own.
            Topic::Done => {
                it.text.contains(':')
                    && it.text.chars().count() < MAX_STEP_CHARS
                    && !matches!(op_in(&it.text), Some(FileOp::Renamed | FileOp::Deleted))
            }
            _ => false,
        };
        if (nested && indent > self.indent || self.under_heading)
            && let Some(step) =
                self.facts.last_mut().filter(|it| it.topic == topic && it.message == self.number)
            && takes_details(step)
        {
            if !code && step.text.chars().count() < MAX_STEP_CHARS {
                let apart = if step.text.ends_with([':', '.', ';']) { " " } else { "; " };
                let more = without_bold(without_markers(lead));
                step.text.reword(|it| format!("{it}{apart}{more}"));
                if let Detail::Error { resolved: resolved @ None, .. } = &mut step.detail {
                    *resolved = is_resolved(&more).then_some(self.number);
                }
            }
            return;
        }
        if !self.in_analysis && !code {
            self.indent = if has_marker(lead) { indent } else { 0 };
            self.body(topic, lead);
        }
    }

    fn heading(&mut self, lead: &str, heading: &Heading) {
        let deeper = lead.starts_with('#') && self.level.is_some_and(|it| heading.level > it);
        // Below "Current work", a label in bold is about that work: `**Errors seen:**`.
        let label = heading.number.is_none()
            && !lead.starts_with(['#', '<'])
            && (self.last_number.is_some_and(|it| it > 0) || self.level.is_some_and(|it| heading.level > it));
        if label && self.topic == Some(Topic::Current) {
            return;
        }
        match self.topic.filter(|_| deeper) {
            Some(Topic::Files) if is_path_only(heading_text(lead)) => self.files(heading_text(lead)),
            Some(Topic::Errors) if is_error_heading(heading) => self.error_heading(heading_text(lead)),
            _ => self.open(heading),
        }
    }

    /// A subheading that names an error: `### Error 2: the lock is never released`.
    fn error_heading(&mut self, text: &str) {
        let numbered = text.split_once(": ").filter(|it| it.0.to_lowercase().starts_with("error "));
        let text = numbered.map_or(text, |it| it.1);
        let detail = Detail::Error { of: None, resolved: None, similar: None, excused: None };
        self.push(Topic::Errors, &without_bold(text), detail);
        self.under_heading = true;
    }

    fn open(&mut self, heading: &Heading) {
        self.label = None;
        self.under_heading = false;
        self.last_number = match heading.level {
            0 => Some(0),
            1..=6 => None,
            _ => heading.number.or(self.last_number),
        };
        let Some((word, topic)) = heading.section else {
            // An unknown heading ends the section, unless it is a subheading.
            if self.level.is_some_and(|it| heading.level <= it) {
                (self.topic, self.in_rule_list, self.low_priority_section) =
                    (Some(Topic::Findings), false, false);
            }
            return;
        };
        self.topic = Some(topic);
        self.level = Some(heading.level);
        self.tagged = match &*heading.title {
            "read-files" => Some(FileOp::Read),
            "modified-files" => Some(FileOp::Edited),
            _ => None,
        };
        self.in_rule_list = ["constraint", "preference"].iter().any(|it| heading.title.starts_with(it));
        self.has_section = true;
        self.in_analysis = word == "analysis";
        self.at_next_step = heading.title.contains("optional next step");
        self.low_priority_section = word == "concept";
        if let Some(rest) = heading.rest {
            self.body(topic, rest);
        }
    }

    /// A line with the label above it as a prefix, in sections where each line is a fact of its own; `None`
    /// if the line is itself a label.
    fn labelled(&mut self, topic: Topic, line: &str) -> Option<String> {
        let each = match topic.row().lines {
            LineKind::Prose => true,
            LineKind::Quoted => topic != Topic::UserMessages && topic != Topic::Last,
            LineKind::Step | LineKind::File | LineKind::Command | LineKind::Name => false,
        };
        let indent = line.len() - line.trim_start().len();
        let text = without_markers(line);
        if self.label.as_ref().is_some_and(|it| indent <= it.0) {
            self.label = None;
        }
        if each && text.len() < line.trim().len() && text.trim_end_matches('*').ends_with(':') {
            let outer = self.label.take().map(|it| it.1).unwrap_or_default();
            self.label = Some((indent, format!("{outer}{text} ")));
            return None;
        }
        let said = self.label.as_ref().filter(|_| each && !text.starts_with('"') && !is_machine_output(text));
        Some(said.map_or_else(|| line.to_owned(), |it| format!("{}- {}{text}", &line[..indent], it.1)))
    }

    /// Drops the sentence that introduces the code block that follows, and a step that says nothing without it: "Run:".
    fn unannounce(&mut self) {
        let empty = |it: &&mut Fact| {
            it.is_open_step()
                && it.message == self.number
                && it.text.ends_with(':')
                && it.text.split_whitespace().nth(1).is_none()
        };
        if self.facts.last_mut().filter(empty).is_some() {
            self.facts.pop();
        }
        let prose = |it: &&mut Fact| {
            matches!(it.topic, Topic::Findings | Topic::Current) && it.message == self.number
        };
        if let Some(last) = self.facts.last_mut().filter(prose) {
            let rest = without_announcement(&last.text).len();
            last.text.truncate(rest);
            if rest == 0 {
                self.facts.pop();
            }
        }
    }

    fn push(&mut self, topic: Topic, text: &str, detail: Detail) {
        // What a line introduces is a fact of its own, or code that is left out.
        let text = if topic == Topic::Findings { without_announcement(text.trim()) } else { text.trim() };
        if !text.is_empty() {
            let fact = self.earlier.fact(topic, text, detail);
            let behind = self.low_priority_section && topic == Topic::Findings;
            if behind { self.deferred.push(fact) } else { self.facts.push(fact) }
        }
    }

    fn push_quote(&mut self, topic: Topic, text: &str, detail: Detail) {
        let text = text.trim();
        if !text.is_empty() {
            self.facts.push(Fact::from_user(topic, self.number, self.earlier.quote(text), detail));
        }
    }

    fn push_seen(&mut self, topic: ToolTopic, text: &str, detail: Detail) {
        let text = text.trim();
        if !text.is_empty() {
            self.facts.push(Fact::from_tools(topic, self.number, text.into(), detail));
        }
    }

    /// A line of the current section.
    fn body(&mut self, topic: Topic, lead: &str) {
        let checked = ["- [x] ", "- [X] "].iter().any(|it| lead.starts_with(it));
        let body = without_markers(lead).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        // Quotations stay verbatim.
        let quotes = body.starts_with('"') || body.contains("→ \"");
        let body = if quotes { body } else { without_bold(&body) };
        // Our format: a goal or question that is marked as answered.
        let requests = matches!(topic, Topic::Goal | Topic::Last);
        let body = SUFFIXES.iter().find_map(|it| body.strip_suffix(it)).unwrap_or(&body);
        let worked = body.rsplit_once(MORE_DONE).filter(|it| it.1.ends_with(')'));
        let body = worked.map_or(body, |it| it.0);
        let [at, before, below] = ANSWERED_ONCE;
        let at = [ANSWERED, ANSWERED_BEFORE, ANSWERED_LATER, at, before]
            .iter()
            .find_map(|it| body.rsplit_once(it));
        let at = at.filter(|it| it.1.ends_with(')')).map(|it| it.0);
        let below = [ANSWERED_BELOW, below].iter().find_map(|it| body.strip_suffix(it));
        let replied = at.or(below).filter(|_| requests || topic == Topic::Decisions);
        let goal = replied.filter(|_| requests);
        let refs = REFS.find(body).map(|it| it.as_str().to_owned());
        if goal.is_some() {
            self.answered_ref.clone_from(&refs);
        }
        let answered = goal.is_some() || requests && refs.is_some() && refs == self.answered_ref;
        let body = REFS.replace_all(replied.unwrap_or(body), "").into_owned();
        let body = SUFFIXES.iter().fold(body.trim(), |it, suffix| it.strip_suffix(suffix).unwrap_or(it));
        let lower = body.to_lowercase();
        // Our format: the mode is read from the session, and the current request stands after the summary.
        let below = [BELOW, BELOW_ONCE].iter().any(|it| body.ends_with(it.trim_start()));
        let told = body.starts_with(mode::PLANNING) || below;
        let idle = BOILERPLATE.iter().any(|it| lower.starts_with(it));
        if told || idle || body.is_empty() || SAYS_NONE.is_match(body) {
            return;
        }
        let stepped = STEP_MARKS.iter().any(|it| body.starts_with(it.0));
        match topic {
            Topic::Goal if answered && body.starts_with('"') => self.quotation(Topic::UserMessages, body),
            Topic::Last | Topic::Current if stepped => self.step(topic, body, checked),
            Topic::Replies => self.prose(topic, reply(body)),
            _ => match topic.row().lines {
                LineKind::Quoted => self.quotation(topic, body),
                LineKind::Step => self.step(topic, body, checked),
                LineKind::File => self.files(body),
                LineKind::Command => self.command(topic, body),
                LineKind::Name => self.names(body),
                LineKind::Prose => self.prose(topic, body),
            },
        }
    }

    fn prose(&mut self, topic: Topic, body: &str) {
        let most = match topic {
            Topic::Approved => talk::approved::CHARS,
            topic if topic.is_statement() => talk::LONG_CHARS,
            _ => 1_000,
        };
        let rest = clip(body, most).0.to_string();
        if topic == Topic::Findings
            && let Some(polarity) = polarity(&rest).filter(|_| OF_USER.is_match(&rest))
        {
            self.push(Topic::Constraints, &rest, Detail::Rule(polarity));
            return;
        }
        self.push(topic, &rest, Detail::None);
    }

    /// The user's words, where they are in quotation marks; otherwise the summary's.
    fn quotation(&mut self, topic: Topic, body: &str) {
        // Our format: `asked: … → "answer"`.
        if topic == Topic::Decisions {
            let ours =
                |it: &str| ["asked: ", "refused: ", "denied by "].iter().any(|mark| it.starts_with(mark));
            let (asked, answer) = match body.split_once(" → ").filter(|it| ours(it.0)) {
                Some((asked, answer)) => (Some(asked), answer),
                None => (None, body),
            };
            let suffix =
                answer.rsplit_once(" (superseded").filter(|it| it.1.find(')') == Some(it.1.len() - 1));
            let (answer, over) = suffix.map_or((answer, false), |it| (it.0, true));
            let (said, means) = match answer.split_once("\" = ") {
                Some((said, means)) => (said, Some(means.trim().to_string())),
                None if answer.starts_with('"') => (answer.strip_suffix('"').unwrap_or(answer), None),
                None => (answer, None),
            };
            let text = said.strip_prefix('"').unwrap_or(said).to_string();
            let refused = asked.is_some_and(|it| it.starts_with("refused"));
            let plain =
                asked.map(|it| it.trim_start_matches("asked: ").trim_start_matches("refused: ").to_string());
            let (asked, means) = if refused { (None, plain) } else { (plain, means) };
            let detail = Detail::Choice { asked, means, refused, superseded: over.then_some(self.number) };
            if answer.starts_with('"') {
                self.push_quote(topic, &text, detail);
            } else {
                self.push(topic, &text, detail);
            }
            return;
        }
        let detail = |text: &str| match topic {
            Topic::Constraints | Topic::Directives => rule_detail(text),
            _ => Detail::None,
        };
        let command = body.split_once(" \"").map(|it| it.0).filter(|it| is_slash_command(it));
        let body = command.map_or(body, |it| &body[it.len() + 1..]);
        let starts = body.starts_with(['"', '“']);
        if starts && let Some(end) = body.rfind(['"', '”']).filter(|it| *it > 3) {
            // Up to the last quotation mark: the quote may contain others, as `"begin" … "end"` does.
            let first = body.chars().next().map_or(1, char::len_utf8);
            let text = &body[first..end];
            let text = command.map_or_else(|| text.to_owned(), |it| format!("{it}\n{text}"));
            if topic == Topic::UserMessages && talk::is_empty_prompt(&text) {
                return;
            }
            if topic == Topic::UserMessages {
                for rule in sentences(&text) {
                    if let Some(polarity) = polarity(rule) {
                        let topic = rule_topic(rule, polarity);
                        self.push_quote(topic, rule, Detail::Rule(polarity));
                    }
                }
            }
            let detail = detail(&text);
            self.push_quote(topic, &text, detail);
        } else {
            let text = clip(body, 1_200).0;
            // Other agents' summaries list further context among the rules.
            let rules = self.in_rule_list && !STATEMENT.is_match(text)
                || topic != Topic::Constraints
                || polarity(text).is_some()
                || text.to_lowercase().contains("user");
            let topic = if rules { topic } else { Topic::Findings };
            let detail = if rules { detail(text) } else { Detail::None };
            self.push(topic, text, detail);
        }
    }

    fn step(&mut self, topic: Topic, body: &str, checked: bool) {
        if topic.is_open_step() && NOTHING_LEFT.is_match(body) && !BUT_LEFT.is_match(body) {
            // What is listed below it is done, or a note.
            self.topic = Some(Topic::Findings);
            if body.contains(". ") && !ends_with_colon(body) {
                self.push(Topic::Findings, clip(body, 400).0, Detail::None);
            }
            return;
        }
        if topic.is_open_step() && QUOTES_REQUEST.is_match(body) {
            return;
        }
        let complete = ALL_COMPLETE.is_match(body) && !BUT_LEFT.is_match(body);
        if self.at_next_step && (complete || LOOKS.is_match(body)) {
            return self.push(Topic::Current, clip(body, 400).0, Detail::None);
        }
        let lower = body.to_lowercase();
        let mut text = body;
        let mut topic = if checked { Topic::Done } else { topic };
        for (mark, marked) in STEP_MARKS.into_iter().chain(STEP_BOXES) {
            if lower.starts_with(mark) {
                text = &body[mark.len()..];
                topic = marked;
            }
        }
        let mut text = clip(text, 400).0.to_string();
        if topic == Topic::Done {
            if lower.contains("(partial") || lower.contains(" partially ") {
                topic = Topic::Active;
            }
            text = super::temporary::PENDING_NOTE.replace_all(&text, "").into_owned();
        }
        self.push(topic, &text, Detail::None);
    }
}
