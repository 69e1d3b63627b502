//! Turns any history into messages that an API accepts: the rules of all four are applied here.
//!
//! The rules (structural rules as each API enforces them; [`crate::validate`] names them one by one):
//! calls are answered at once, all of a batch before anything else; a result has its call; ids are unique and of the
//! API's form; blocks of another API and thinking signed elsewhere stay out; attachments are whole or a stub.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::{Api, opaques};
use crate::media::is_base64;
use history::{Call, Kind, Media, Message, Output, Part, Role, Text};

/// The result of a call that was never answered although the conversation went on.
const NO_RESULT: &str = "[no result recorded]";
/// The first message of a history that does not begin with the user's, for APIs that require one.
const OPENING: &str = "[The conversation starts here.]";
/// What the assistant says between a summary and the next words of the user, where roles must alternate.
/// Without it both would be one message, in which the user's words could not be told from the summary again.
pub(super) const ACK: &str = "Understood.";

/// What an API requires of ids, names and roles.
struct Rules {
    /// Roles alternate, the first is the user's, and there is no system role.
    alternates: bool,
    /// Longest call id, in characters.
    id_max: usize,
    /// Call ids are `[a-zA-Z0-9_-]+`.
    id_plain: bool,
    name_max: usize,
    /// Tool names start with a letter or underscore.
    name_starts_plain: bool,
}

fn rules(api: Api) -> Rules {
    let rules =
        Rules { alternates: false, id_max: 64, id_plain: false, name_max: 64, name_starts_plain: false };
    match api {
        // `^[a-zA-Z0-9_-]+$` for ids is in the API's own error; names in its reference ("Tool use"). A
        // maximum length of ids is not documented, here or for Gemini; 128 is ours.
        Api::Anthropic => Rules { alternates: true, id_max: 128, id_plain: true, name_max: 128, ..rules },
        // "Expected a string with maximum length 40" (and 64 for names) in the API's own errors.
        Api::OpenAiChat => Rules { id_max: 40, ..rules },
        // "Invalid 'input[..].call_id': ... maximum length 64".
        Api::OpenAiResponses => rules,
        // "Must start with a letter or an underscore", at most 64 (`FunctionDeclaration.name`).
        Api::Gemini => Rules { alternates: true, id_max: 128, name_starts_plain: true, ..rules },
    }
}

/// How often something could not be expressed.
#[derive(Debug, Default)]
struct Losses {
    thoughts: usize,
    opaques: usize,
    media: usize,
    orphans: usize,
    unanswered: usize,
    ids: usize,
    names: usize,
    inputs: usize,
    opened: usize,
    acks: usize,
}

impl Losses {
    fn sentences(&self, api: Api) -> Vec<String> {
        let api = api.format().name();
        let all = [
            (
                self.thoughts,
                format!("thinking left out: {api} accepts only what it signed and what something follows"),
            ),
            (
                self.opaques,
                format!("blocks left out: {api} does not understand them, or their other half is missing"),
            ),
            (self.media, format!("attachments replaced by a line of text: {api} does not accept them there")),
            (self.orphans, "results without a call turned into user text".to_string()),
            (self.unanswered, format!("calls without a result answered with {NO_RESULT:?}")),
            (self.ids, "call ids rewritten: already used, or not valid for the API".to_string()),
            (self.names, "tool names rewritten: not valid for the API".to_string()),
            (self.inputs, "call inputs that are not a JSON object wrapped as {\"input\": …}".to_string()),
            (self.opened, format!("user message added at the start: {api} requires one")),
            (self.acks, "acknowledgments inserted between a summary and the user's next words".to_string()),
        ];
        all.into_iter().filter(|it| it.0 > 0).map(|(count, what)| format!("{count} × {what}")).collect()
    }
}

/// A call as it will be written, and the place of its output: (message, part).
struct Planned {
    id: Arc<str>,
    name: Arc<str>,
    answer: Option<(usize, usize)>,
}

/// What was decided about all messages before any is made.
struct Decisions {
    /// All calls in order of appearance.
    calls: Vec<Planned>,
    /// Outputs that have a call: (message, part).
    answers: HashSet<(usize, usize)>,
    /// Opaque blocks that are left out: (message, part).
    dropped: HashSet<(usize, usize)>,
}

/// The messages in a form that `api` accepts, and a sentence for each kind of loss. `native` is the API that
/// signed the thinking in them, if known.
pub(super) fn fit(messages: &[Message], api: Api, native: Option<Api>) -> (Vec<Message>, Vec<String>) {
    let rules = rules(api);
    let mut losses = Losses::default();
    let decisions = decide(messages, api, &rules, &mut losses);
    let mut fitted = Fitted {
        api,
        native,
        rules,
        decisions: &decisions,
        messages,
        out: vec![],
        batch: vec![],
        answered: false,
        next_call: 0,
        source: None,
        losses,
    };
    for (number, message) in messages.iter().enumerate() {
        for (index, part) in message.parts.iter().enumerate() {
            fitted.part(number, index, message, part);
        }
    }
    fitted.close(false);
    let sentences = fitted.losses.sentences(api);
    (fitted.out, sentences)
}

fn decide(messages: &[Message], api: Api, rules: &Rules, losses: &mut Losses) -> Decisions {
    let (dropped, mut used) = opaques::dropped(messages, api);
    let mut decisions = Decisions { calls: vec![], answers: HashSet::new(), dropped };
    let mut counters = HashMap::new();
    // The open calls of each id, with their batches: an id that recurs in a later batch means the later call.
    let mut open: HashMap<&str, VecDeque<(usize, usize)>> = HashMap::new();
    let mut batch = 0usize;
    for (number, message) in messages.iter().enumerate() {
        for (index, part) in message.parts.iter().enumerate() {
            match part {
                Part::Call(call) => {
                    let id = unique(&call.id, rules, &mut used, &mut counters);
                    let name = tool_name(&call.name, rules);
                    losses.ids += usize::from(*id != *call.id);
                    losses.names += usize::from(*name != *call.name);
                    let queue = open.entry(&call.id).or_default();
                    if queue.front().is_some_and(|it| it.0 != batch) {
                        queue.clear();
                    }
                    queue.push_back((batch, decisions.calls.len()));
                    decisions.calls.push(Planned { id, name, answer: None });
                }
                Part::Output(output) => {
                    batch += 1;
                    let call = open.get_mut(&*output.id).and_then(VecDeque::pop_front);
                    if let Some(call) = call.and_then(|it| decisions.calls.get_mut(it.1)) {
                        call.answer = Some((number, index));
                        decisions.answers.insert((number, index));
                    }
                }
                Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {
                    batch += usize::from(message.role != Role::Assistant);
                }
            }
        }
    }
    decisions
}

struct Fitted<'a> {
    api: Api,
    native: Option<Api>,
    rules: Rules,
    decisions: &'a Decisions,
    messages: &'a [Message],
    out: Vec<Message>,
    /// The calls of the assistant turn under construction, as indices into [`Decisions::calls`].
    batch: Vec<usize>,
    /// Whether an output of this batch was met: then what the assistant says next is a new turn.
    answered: bool,
    /// The index of the next call in [`Decisions::calls`].
    next_call: usize,
    /// The index of the message that the last part came from.
    source: Option<usize>,
    losses: Losses,
}

impl Fitted<'_> {
    fn part(&mut self, number: usize, index: usize, message: &Message, part: &Part) {
        let new_source = self.source.replace(number) != Some(number);
        match part {
            Part::Call(call) => {
                let planned = self.decisions.calls.get(self.next_call);
                let Some(planned) = planned else { return };
                let (id, name) = (planned.id.clone(), planned.name.clone());
                // Only Responses has calls with free text.
                let freeform = call.freeform && self.api == Api::OpenAiResponses;
                self.losses.inputs += usize::from(!freeform && !super::is_object(call));
                let ours = self.native == Some(self.api);
                let signature = call.signature.clone().filter(|it| ours && !it.is_empty());
                let call = Call { id, name, input: call.input.clone(), freeform, signature };
                self.assistant(new_source, message.kind, Part::Call(call));
                self.batch.push(self.next_call);
                self.next_call += 1;
            }
            Part::Output(output) => {
                if self.decisions.answers.contains(&(number, index)) {
                    // An output of an earlier batch was already moved up to its call, and ends nothing here.
                    self.answered |= !self.batch.is_empty();
                    return;
                }
                self.losses.orphans += 1;
                let text = format!("[result of an earlier call {}]\n{}", output.id, output.text.as_str());
                self.other(new_source, Role::User, message.kind, Part::Text(text.into()));
                for media in &output.media {
                    let media = self.attachment(media, true);
                    self.other(false, Role::User, message.kind, media);
                }
            }
            Part::Text(text) if text.as_str().trim().is_empty() => {}
            // A message from another agent of Codex is sent as its opaque item, which has the texts too.
            Part::Text(_) if self.api == Api::OpenAiResponses && is_from_agent(message) => {}
            Part::Text(_) => self.content(new_source, message, part.clone()),
            Part::Media(media) => {
                let media = self.attachment(media, matches!(message.role, Role::User | Role::Tool));
                self.content(new_source, message, media);
            }
            Part::Reasoning(it) => {
                let signed = it.signature.as_ref().is_some_and(|it| !it.is_empty());
                if signed && message.role == Role::Assistant && self.native == Some(self.api) {
                    self.assistant(new_source, message.kind, part.clone());
                } else {
                    self.losses.thoughts += 1;
                }
            }
            Part::Opaque(opaque) => {
                // A compaction must be first in its turn (Anthropic documentation, "Compaction").
                let late = *opaque.kind == *"compaction"
                    && self.api == Api::Anthropic
                    && !self.answered
                    && self.out.last().is_some_and(|it| it.role == Role::Assistant);
                if late || self.decisions.dropped.contains(&(number, index)) {
                    self.losses.opaques += 1;
                } else if self.api == Api::OpenAiResponses && opaque.kind.ends_with("_output") {
                    self.opaque_output(part.clone());
                } else {
                    self.content(new_source, message, part.clone());
                }
            }
        }
    }

    fn content(&mut self, new_source: bool, message: &Message, part: Part) {
        match message.role {
            Role::Assistant => self.assistant(new_source, message.kind, part),
            Role::System if !self.rules.alternates => {
                self.other(new_source, Role::System, message.kind, part);
            }
            Role::System | Role::User | Role::Tool => self.other(new_source, Role::User, message.kind, part),
        }
    }

    /// Adds to what the assistant says. Its turn is one message if roles alternate, and as long as calls are
    /// open.
    fn assistant(&mut self, new_source: bool, kind: Kind, part: Part) {
        if self.answered {
            self.close(true);
        }
        if self.rules.alternates && self.out.is_empty() {
            self.losses.opened += 1;
            self.out.push(Message::text(Role::User, Kind::Context, OPENING));
        }
        let goes_on = !new_source || self.rules.alternates || !self.batch.is_empty();
        match self.out.last_mut() {
            Some(last) if goes_on && last.role == Role::Assistant => last.parts.push(part),
            _ => self.out.push(Message::new(Role::Assistant, kind, vec![part])),
        }
    }

    /// Adds to what another role says.
    fn other(&mut self, new_source: bool, role: Role, kind: Kind, part: Part) {
        self.close(true);
        if self.rules.alternates
            && let Some(last) = self.out.last_mut()
            && last.role != Role::Assistant
        {
            if new_source && (last.kind == Kind::Summary) != (kind == Kind::Summary) {
                self.losses.acks += 1;
                self.out.push(Message::text(Role::Assistant, Kind::Ack, ACK));
            } else {
                last.parts.push(part);
                return;
            }
        }
        match self.out.last_mut() {
            Some(last) if !new_source && last.role == role => last.parts.push(part),
            _ => self.out.push(Message::new(role, kind, vec![part])),
        }
    }

    /// Adds an opaque output. Like any output it ends what the assistant says, but it leaves our open calls
    /// open.
    fn opaque_output(&mut self, part: Part) {
        self.drop_thoughts();
        match self.out.last_mut() {
            Some(last) if last.role == Role::Assistant => last.parts.push(part),
            _ => self.out.push(Message::new(Role::Tool, Kind::Said, vec![part])),
        }
        self.answered |= !self.batch.is_empty();
    }

    /// Removes thinking at the end, which leads to nothing.
    fn drop_thoughts(&mut self) {
        while let Some(last) = self.out.last_mut()
            && last.role == Role::Assistant
            && last.parts.last().is_none_or(is_thought)
        {
            if last.parts.pop().is_some() {
                self.losses.thoughts += 1;
            }
            if last.parts.is_empty() {
                self.out.pop();
            }
        }
    }

    /// Ends the assistant's turn: removes thinking at its end, and answers its calls. If nothing follows,
    /// calls may stay open: the caller is about to answer them.
    fn close(&mut self, more_follows: bool) {
        self.drop_thoughts();
        self.answered = false;
        let batch = std::mem::take(&mut self.batch);
        let has_answer = |it: &usize| self.decisions.calls.get(*it).is_some_and(|it| it.answer.is_some());
        // Gemini counts responses: all of a batch must be there, or none.
        let all = more_follows || (self.api == Api::Gemini && batch.iter().any(has_answer));
        let mut results = vec![];
        for number in batch {
            let Some(call) = self.decisions.calls.get(number) else { continue };
            let found = call.answer.and_then(|(message, part)| self.messages.get(message)?.parts.get(part));
            let output = match found {
                Some(Part::Output(found)) => self.output(found, call),
                _ if all => {
                    self.losses.unanswered += 1;
                    Output { name: Some(call.name.clone()), ..Output::new(call.id.clone(), NO_RESULT) }
                }
                _ => continue,
            };
            results.push(Part::Output(output));
        }
        if !results.is_empty() {
            self.out.push(Message::new(Role::Tool, Kind::Said, results));
        }
    }

    fn output(&mut self, found: &Output, call: &Planned) -> Output {
        let mut lines = vec![];
        let mut media = vec![];
        // Only the chat API takes no attachments in results.
        for it in &found.media {
            match self.attachment(it, self.api != Api::OpenAiChat) {
                Part::Media(it) => media.push(it),
                Part::Text(it) => lines.push(it),
                Part::Reasoning(_) | Part::Call(_) | Part::Output(_) | Part::Opaque(_) => {}
            }
        }
        let text = if lines.is_empty() {
            found.text.clone()
        } else {
            let all = Some(&found.text).filter(|it| !it.is_empty()).into_iter().chain(&lines);
            all.map(Text::as_str).collect::<Vec<_>>().join("\n").into()
        };
        Output {
            id: call.id.clone(),
            name: Some(call.name.clone()),
            text,
            media: media.into(),
            ..found.clone()
        }
    }

    /// The attachment itself if the API accepts it, else a line that describes it.
    fn attachment(&mut self, media: &Media, here: bool) -> Part {
        if here && is_intact(media) && self.api.takes(media) {
            return Part::Media(media.clone());
        }
        self.losses.media += 1;
        Part::Text(stub(media).into())
    }
}

fn is_from_agent(message: &Message) -> bool {
    message.parts.iter().any(|it| matches!(it, Part::Opaque(it) if *it.kind == *"agent_message"))
}

fn is_thought(part: &Part) -> bool {
    match part {
        Part::Reasoning(_) => true,
        Part::Opaque(it) => *it.kind == *"redacted_thinking" && *it.api == *Api::Anthropic.format().name(),
        Part::Text(_) | Part::Call(_) | Part::Output(_) | Part::Media(_) => false,
    }
}

/// Whether the data is whole base64 or a URL, not a fragment.
fn is_intact(media: &Media) -> bool {
    media.is_url() || is_base64(&media.data)
}

/// `[image image/png, 120 kB, left out]`: the replacement of an attachment.
fn stub(media: &Media) -> String {
    use history::MediaKind;
    let kind = match media.kind {
        MediaKind::Image => "image",
        MediaKind::Pdf => "document",
        MediaKind::Audio => "audio",
        MediaKind::Other => "file",
    };
    let mime = if media.mime.is_empty() { String::new() } else { format!(" {}", media.mime) };
    let size = if media.is_url() {
        "by address".to_string()
    } else {
        format!("{} kB", (media.data.len() as u64 * 3 / 4).div_ceil(1000))
    };
    format!("[{kind}{mime}, {size}, left out]")
}

/// `id` in the API's form, and different from all ids before it.
fn unique(
    id: &str,
    rules: &Rules,
    used: &mut HashSet<Arc<str>>,
    counters: &mut HashMap<String, usize>,
) -> Arc<str> {
    let fits = |it: char| !rules.id_plain || it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    let mut base: String =
        id.chars().take(rules.id_max + 1).map(|it| if fits(it) { it } else { '_' }).collect();
    if base.is_empty() {
        base.push_str("call");
    }
    if base.chars().count() > rules.id_max {
        // Room for a number: ids that differ only in what is cut off must stay different.
        base = base.chars().take(rules.id_max - 8).collect();
    }
    let mut out: Arc<str> = base.as_str().into();
    if used.contains(&out) {
        base = base.chars().take(rules.id_max - 8).collect();
        let counter = counters.entry(base.clone()).or_insert(1);
        while used.contains(&out) {
            *counter += 1;
            out = format!("{base}_{counter}").into();
        }
    }
    used.insert(out.clone());
    out
}

fn tool_name(name: &str, rules: &Rules) -> Arc<str> {
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    let mut out: String = name.chars().map(|it| if fits(it) { it } else { '_' }).collect();
    if out.is_empty() {
        out.push_str("tool");
    }
    if rules.name_starts_plain && !out.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_') {
        out.insert(0, '_');
    }
    out.truncate(rules.name_max);
    out.into()
}

/// The ids of the calls in messages of ours that take free text, for writing their outputs.
pub(crate) fn freeform_ids(messages: &[Message]) -> BTreeSet<Arc<str>> {
    messages.iter().flat_map(Message::calls).filter(|it| it.freeform).map(|it| it.id.clone()).collect()
}
