//! Who writes the summary of a plan: nobody (the offline summary), a provider, or the calling agent's model in two calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use super::{Amount, Ask, Edit, Engine, Event, Known, Measured, Opened, SessionRef, To, session_info};
use crate::answers::{Next, UsageInfo};
use crate::compact::{self, Cause, Need, Plan};
use crate::config::Choice;
use crate::engine::compact::Compacted;
use crate::error::{Error, Kind, Result};
use crate::format::{self, Format};
use crate::history::Text;
use crate::profile::{self, Profile, Shape, Style, Summarize, TooLong};
use crate::secrets::Veil;
use crate::store::{Batch, Body, Original, Scope, What};
use crate::summarizer::model::{Api, Endpoint, Prefix, Reply};
use crate::summarizer::price::{self, Form, Sizes};
use crate::summarizer::prompt::Own;
use crate::summarizer::render;
use crate::summarizer::run::{self, Progress, Sampling, Watch};
use crate::summarizer::talk::{self, Bounds, Material, RUNGS, Rung, Step, Talk};
use crate::tokens::Tokenizer;

/// What came of asking for a summary.
pub(super) enum Drafted {
    /// The offline one is to be written; why nobody else wrote it, if somebody was to.
    Offline(Vec<String>),
    /// It was written.
    Text(Draft),
    /// The calling agent's model is to write it.
    Asked {
        /// Under which its answer comes back.
        handle: String,
        /// What it is asked.
        ask: String,
        /// Who does what.
        next: Next,
    },
}

/// A summary that somebody wrote.
pub(super) struct Draft {
    pub(super) text: String,
    pub(super) who: String,
    pub(super) usage: UsageInfo,
    pub(super) notes: Vec<String>,
}

/// The answer of the calling agent's model, and what it answers.
pub(super) struct Heard {
    state: State,
    answer: String,
}

impl Heard {
    /// How many messages there were when it was asked.
    pub(super) fn count(&self) -> usize {
        self.state.count
    }
}

/// What is kept between the two calls of a host-run summary.
#[derive(Serialize, Deserialize)]
struct State {
    session: String,
    format: Option<String>,
    count: usize,
    digest: u64,
    region: (usize, usize),
    talk: Talk,
    ask: KeptAsk,
}

/// An [`Ask`] as it is kept.
#[derive(Serialize, Deserialize)]
struct KeptAsk {
    profile: Profile,
    model: Option<String>,
    window: Option<u64>,
    overhead: Option<u64>,
    tokenizer: String,
    budget: Option<Amount>,
    keep: Option<Amount>,
    focus: Option<String>,
    style: Style,
    pins: Vec<String>,
    cause: Cause,
    messages_as: Option<String>,
    protect: Option<u64>,
    exclude_tools: Vec<String>,
    only: Vec<String>,
    to: To,
}

/// Failed summaries in a row after which a provider is left alone for a while.
const BREAKER: u32 = 3;
/// For so long, in milliseconds.
const COOL_DOWN: i64 = 10 * 60 * 1_000;
/// A provider's cache lives for five minutes (Anthropic; OpenAI 5 to 10).
const CACHE_LIVES: i64 = 5 * 60 * 1_000;
/// Tokens of the first line, which stands above every summary.
const HEADER: u64 = 80;

impl Engine {
    /// The second call of a host-run summary: what the model wrote, under the handle that the first call gave.
    pub fn answered(&self, handle: &str, answer: &str, to: Option<To>) -> Result<(Compacted, Opened)> {
        let scope = self.store.locate(handle, &self.config.owner)?;
        let kept = self.store.ask(&scope, handle, self.now)?;
        let state: State = serde_json::from_str(&kept).map_err(|error| {
            let what =
                format!("answering {handle}: expected an ask of this version, found another; ask again");
            Error::new(Kind::Store, what).because(error)
        })?;
        let format = state.format.as_deref().map(Format::named).transpose()?;
        let opened = self.open(&SessionRef::Named(state.session.clone()), format, None)?;
        let mut ask = Ask::try_from(&state.ask)?;
        ask.to = to.unwrap_or(ask.to);
        let messages = opened.session.history.messages();
        let same = messages.len() >= state.count && {
            let some = crate::history::History::new(
                messages[..state.count].to_vec(),
                opened.session.history.meta.clone(),
            );
            compact::prefix(&some).digest == state.digest
        };
        if !same {
            let what = format!(
                "answering {handle}: expected a session that begins with the {} messages the summary was asked for, found another; ask again",
                state.count
            );
            return Err(Error::new(Kind::Changed, what));
        }
        let compacted =
            self.compact_from(&opened, &ask, Some(&Heard { state, answer: answer.to_owned() }))?;
        Ok((compacted, opened))
    }

    /// Has the summary of a plan written as `ask` says.
    pub(super) fn written_summary(
        &self,
        opened: &Opened,
        measured: &Measured<'_>,
        ask: &Ask,
        plan: &Plan,
        known: &Known,
        heard: Option<&Heard>,
    ) -> Result<Drafted> {
        let Some(need) = &plan.need else { return Ok(Drafted::Offline(Vec::new())) };
        let Some(step) = ask.profile.summarizing(need.pass) else {
            return Ok(Drafted::Offline(Vec::new()));
        };
        if ask.summarizer == Choice::Offline {
            return Ok(Drafted::Offline(Vec::new()));
        }
        let veil = Veil::default();
        let shown = need.shown_from..need.to;
        let mut passages = render::passages(measured.history, shown, &|text| veil.cut(text));
        if let Some(chars) = step.prompts.output_chars {
            for it in passages.iter_mut().filter(|it| it.output) {
                shorten(&mut it.text, chars);
            }
        }
        let frame = measured.ruler.text(&Text::new(format!("{}{}", step.before, step.after)));
        let prompt = |name: &Option<String>| name.as_deref().map(|it| profile::prompt(it).to_owned());
        let own = Own {
            system: prompt(&step.prompts.system),
            ask: prompt(&step.prompts.ask),
            again: prompt(&step.prompts.again),
            verify: prompt(&step.prompts.verify),
        };
        let summarizers = &self.config.summarizers;
        let tries = summarizers.tries.or(step.prompts.retries.map(|it| it + 1));
        let language =
            self.config.summarizers.language.as_deref().or_else(|| talk::language_of(measured.history));
        let pins: u64 = ask.pins.iter().map(|it| measured.ruler.str(it) + 6).sum();
        let material = Material {
            history: measured.history,
            ledger: known.ledger(measured.history),
            region: need.from..need.to,
            spec: &step.summary,
            budget: need.budget.saturating_sub(frame + HEADER + pins),
            style: ask.style,
            focus: ask.focus.as_deref(),
            pins: &ask.pins,
            language,
            own: &own,
            rungs: rungs(step),
            window: None,
            thinking: 0,
            prefix: None,
            host: ask.summarizer == Choice::Host,
            count: &|text| measured.ruler.str(text),
            passages: &passages,
            bounds: Bounds { tries: tries.unwrap_or(summarizers.bounds.tries), ..summarizers.bounds },
        };
        if let (Choice::Host, Some(sampling)) = (&ask.summarizer, &ask.sampling) {
            return self.by_sampling(&Material { host: false, ..material }, sampling, ask);
        }
        if material.host {
            return self.by_host(opened, measured, ask, plan, &material, heard);
        }
        let chosen = self.config.summarizers.endpoint(&ask.summarizer, &self.config.environment, ask.trusted);
        let (endpoint, thinking) = match chosen {
            Ok(Some(it)) => it,
            Ok(None) => {
                return Ok(Drafted::Offline(vec![
                    "no provider's key is present; the offline summary was written".to_owned(),
                ]));
            }
            // Without a key there still is a summary.
            Err(error) if error.kind() == Kind::Provider => {
                return Ok(Drafted::Offline(vec![offline_instead(&error.full())]));
            }
            Err(error) => return Err(error),
        };
        let (endpoint, thinking) = self.as_profiled(step, measured, endpoint, thinking);
        if let Some(why) = self.left_alone(&endpoint)? {
            return Ok(Drafted::Offline(vec![offline_instead(&why)]));
        }
        let prefix = self.cheaper_prefix(opened, measured, need, &material, &endpoint);
        let material = Material { window: endpoint.window, thinking, prefix: prefix.as_ref(), ..material };
        self.by_provider(&material, &endpoint, ask)
    }

    /// The endpoint with the model that the profile asks there, unless the user names one.
    fn as_profiled(
        &self,
        step: &Summarize,
        measured: &Measured<'_>,
        endpoint: Endpoint,
        thinking: u64,
    ) -> (Endpoint, u64) {
        let prompts = &step.prompts;
        if prompts.provider.as_ref() != Some(&endpoint.provider)
            || self.config.summarizers.names_model(&endpoint.provider)
        {
            return (endpoint, thinking);
        }
        let session = measured.limits.model.unwrap_or_default();
        match profile::asked_model(prompts, session) {
            Some(model) => self.config.summarizers.with_model(endpoint, model),
            None => (endpoint, thinking),
        }
    }

    fn by_provider(&self, material: &Material<'_>, endpoint: &Endpoint, ask: &Ask) -> Result<Drafted> {
        let mut talk = Talk::new(self.now.unsigned_abs());
        let limits = self.config.summarizers.limits;
        self.tell(&Event::Asked { summarizer: endpoint.label(), budget: material.budget });
        let watch = self.watching(&ask.watch, material.bounds.tries);
        let result = run::with_provider(&mut talk, material, endpoint, limits, &watch)?;
        self.count_sent(talk.sent)?;
        let usage = usage(&talk);
        match result {
            None => Err(called_off()),
            Some(Ok((text, notes))) => {
                self.store.unmark(&self.shared(), &failures(endpoint))?;
                let who = talk
                    .model
                    .as_deref()
                    .map_or_else(|| endpoint.label(), |it| format!("{}/{it}", endpoint.provider));
                let mut notes = notes;
                notes.extend(self.told(endpoint, &talk));
                Ok(Drafted::Text(Draft { text: pinned(text, material), who, usage, notes }))
            }
            Some(Err(why)) => {
                let before = self.store.marked(&self.shared(), &failures(endpoint))?;
                let count = before.and_then(|it| it.value.parse::<u32>().ok()).unwrap_or(0) + 1;
                self.store.mark(&self.shared(), &failures(endpoint), &count.to_string(), self.now)?;
                let mut notes = vec![offline_instead(&why.sentence(Some(endpoint)))];
                notes.extend(self.told(endpoint, &talk));
                Ok(Drafted::Offline(notes))
            }
        }
    }

    /// The caller's watch, which also tells the listener of each retry.
    fn watching(&self, watch: &Watch, tries: u32) -> Watch {
        let Some(listener) = self.listener.clone() else { return watch.clone() };
        let (progress, number) = (watch.progress.clone(), AtomicU32::new(0));
        let tell = move |it: &Progress| {
            match it {
                Progress::Waiting(why) => {
                    let number = number.fetch_add(1, Ordering::Relaxed) + 1;
                    listener(&Event::Retry { number, of: tries.saturating_sub(1), why: why.clone() });
                }
                // It answers: the next failure is another request's first.
                Progress::Writing(..) => number.store(0, Ordering::Relaxed),
                Progress::Asking(_) => {}
            }
            if let Some(progress) = &progress {
                progress(it);
            }
        };
        Watch { progress: Some(Arc::new(tell)), cancel: watch.cancel.clone() }
    }

    /// What was sent where, and what that cost, as far as the price is known.
    fn told(&self, endpoint: &Endpoint, talk: &Talk) -> Option<String> {
        if talk.requests == 0 {
            return None;
        }
        let cost = price::price(&endpoint.model)
            .map(|it| format!(", ${:.4}", it.of(talk.tokens)))
            .unwrap_or_default();
        let reported = talk.tokens.input + talk.tokens.cache_read + talk.tokens.cache_write;
        let sent = if reported > 0 { format!("{reported}") } else { format!("about {}", talk.sent) };
        let (label, host, requests) = (endpoint.label(), endpoint.host(), talk.requests);
        Some(format!("{sent} tokens were sent to {label} at {host} in {requests} requests{cost}"))
    }

    /// The calling client asks its own model for us.
    fn by_sampling(&self, material: &Material<'_>, sampling: &Sampling, ask: &Ask) -> Result<Drafted> {
        let mut talk = Talk::new(self.now.unsigned_abs());
        self.tell(&Event::Asked { summarizer: "host".to_owned(), budget: material.budget });
        let watch = self.watching(&ask.watch, material.bounds.tries);
        match run::with_line(&mut talk, material, sampling, &watch)? {
            None => Err(called_off()),
            Some(Ok((text, notes))) => {
                let who = talk.model.as_deref().map_or_else(|| "host".to_owned(), |it| format!("host/{it}"));
                Ok(Drafted::Text(Draft { text: pinned(text, material), who, usage: usage(&talk), notes }))
            }
            Some(Err(why)) => Ok(Drafted::Offline(vec![offline_instead(&why.sentence(None))])),
        }
    }

    fn by_host(
        &self,
        opened: &Opened,
        measured: &Measured<'_>,
        ask: &Ask,
        plan: &Plan,
        material: &Material<'_>,
        heard: Option<&Heard>,
    ) -> Result<Drafted> {
        let mut talk = heard.map_or_else(|| Talk::new(self.now.unsigned_abs()), |it| it.state.talk.clone());
        if let Some(heard) = heard {
            if heard.state.region != (material.region.start, material.region.end) {
                return Ok(Drafted::Offline(vec![
                    "the plan changed since the summary was asked for; the offline summary was written"
                        .to_owned(),
                ]));
            }
            talk.heard(material, Ok(Reply { text: heard.answer.clone(), ..Reply::default() }), 0);
        }
        match talk.next(material) {
            Step::Done(text, notes) => Ok(Drafted::Text(Draft {
                text: pinned(text, material),
                who: "host".to_owned(),
                usage: usage(&talk),
                notes,
            })),
            Step::GaveUp(why) => Ok(Drafted::Offline(vec![offline_instead(&why.sentence(None))])),
            // A host is not waited for.
            Step::Wait(..) => Ok(Drafted::Offline(Vec::new())),
            Step::Ask(asked) => {
                let state = State {
                    session: self.again(opened)?,
                    format: Some(opened.session.format.name().to_owned()),
                    count: measured.history.messages().len(),
                    digest: plan.made_for.digest,
                    region: (material.region.start, material.region.end),
                    talk,
                    ask: KeptAsk::from(ask),
                };
                let state = serde_json::to_string(&state)
                    .map_err(|error| Error::new(Kind::Bug, "keeping an ask").because(error))?;
                let handle =
                    self.store.put_ask(&self.scope(measured.history), &state, self.now)?.as_str().to_owned();
                let next = Next {
                    who: "model".to_owned(),
                    what: format!(
                        "write what `ask` says, then call again with handle {handle} and what you wrote as answer"
                    ),
                };
                // What was answered before stands in the caller's own context.
                let mut turns =
                    asked.turns.iter().filter(|it| it.speaker == crate::summarizer::model::Speaker::Us);
                let text = if heard.is_some() { turns.next_back() } else { turns.next() };
                Ok(Drafted::Asked { handle, ask: text.map(|it| it.text.clone()).unwrap_or_default(), next })
            }
        }
    }

    /// What the session can be opened by in the second call: its path, or the handle of a copy.
    fn again(&self, opened: &Opened) -> Result<String> {
        if let Some(path) = &opened.path {
            return Ok(path.display().to_string());
        }
        let info = session_info(opened);
        let whole = Original {
            what: What::Session,
            body: Body::Source(&*opened.source),
            message: None,
            call_id: None,
            tool: None,
            tokens: 0,
        };
        let batch = Batch {
            session: crate::store::SessionRef {
                agent: info.agent.unwrap_or_default(),
                id: info.id.unwrap_or_default(),
                path: None,
                format: info.format,
            },
            at: self.now,
            originals: vec![whole],
            compaction: None,
        };
        let stored = self.store.put_all(&self.scope(&opened.session.history), &batch)?;
        let handle = stored.handles.first().map(|it| it.as_str().to_owned());
        handle.ok_or_else(|| Error::new(Kind::Bug, "keeping a session: expected its handle, found none"))
    }

    /// The session's own request in front of the question, where the provider still has it in its cache and that is
    /// cheaper. Only plain messages of the provider's own API, with their system prompt, are what the agent sent.
    fn cheaper_prefix(
        &self,
        opened: &Opened,
        measured: &Measured<'_>,
        need: &Need,
        material: &Material<'_>,
        endpoint: &Endpoint,
    ) -> Option<Prefix> {
        let history = measured.history;
        let api = match endpoint.api {
            Api::Anthropic => Format::Anthropic,
            Api::OpenaiChat => Format::OpenAiChat,
            Api::OpenaiResponses => Format::OpenAiResponses,
            Api::Gemini => Format::Gemini,
        };
        // The whole request is the prefix: what it holds besides the region is what stays anyway.
        if opened.session.format != api || history.meta.model.as_deref() != Some(endpoint.model.as_str()) {
            return None;
        }
        let system = history.meta.system.as_ref()?;
        let warm = history.meta.times.is_some_and(|it| self.now - it.1 < CACHE_LIVES);
        let price = price::price(&endpoint.model)?;
        let own = material.passages.iter().map(|it| (material.count)(&it.text) + 12).sum();
        let sizes = Sizes {
            own,
            prefix: Some((measured.tokens + measured.overhead, warm)),
            output: need.budget,
            saved: measured.tokens.saturating_sub(need.budget),
            rewritten: need.budget,
        };
        if price::predict(price, price, &sizes).form != Form::Prefix {
            return None;
        }
        let (messages, _) = format::wire::messages_of(history, Some(opened.session.format), api);
        let json = |text: &str| serde_json::from_str(text).ok();
        // Secrets are in the provider's hands already, word for word, or nothing would be cached.
        Some(Prefix {
            system: json(system.as_str()).or_else(|| Some(system.as_str().into())),
            tools: history.meta.tools.as_ref().and_then(|it| json(it.as_str())),
            messages: serde_json::from_slice(&messages).ok()?,
        })
    }

    /// Marks that belong to no project.
    fn shared(&self) -> Scope {
        Scope { owner: self.config.owner.clone(), project: String::new() }
    }

    /// Why a provider is not asked now, if it is not.
    fn left_alone(&self, endpoint: &Endpoint) -> Result<Option<String>> {
        if let Some(mark) = self.store.marked(&self.shared(), &failures(endpoint))? {
            let count: u32 = mark.value.parse().unwrap_or(0);
            let left = mark.at + COOL_DOWN - self.now;
            if count >= BREAKER && left > 0 && left <= COOL_DOWN {
                return Ok(Some(format!(
                    "{} failed {count} times in a row and is left alone for {} s more",
                    endpoint.provider,
                    left / 1000 + 1
                )));
            }
        }
        let Some(most) = self.config.summarizers.tokens_per_hour else { return Ok(None) };
        let sent = self.sent_this_hour()?;
        Ok((sent >= most)
            .then(|| format!("the limit of {most} tokens an hour was reached ({sent} were sent)")))
    }

    fn sent_this_hour(&self) -> Result<u64> {
        let mark = self.store.marked(&self.shared(), SENT)?;
        let fresh = mark.filter(|it| (0..3_600_000).contains(&(self.now - it.at)));
        Ok(fresh.and_then(|it| it.value.parse().ok()).unwrap_or(0))
    }

    fn count_sent(&self, tokens: u64) -> Result<()> {
        let before = self.sent_this_hour()?;
        // The hour begins with the first request of it.
        let began =
            self.store.marked(&self.shared(), SENT)?.filter(|_| before > 0).map_or(self.now, |it| it.at);
        self.store.mark(&self.shared(), SENT, &(before + tokens).to_string(), began)
    }

    /// What the user made of the summary, their lines marked.
    pub(super) fn edited(
        &self,
        measured: &Measured<'_>,
        ask: &Ask,
        plan: &Plan,
        known: &Known,
        edit: &Edit,
    ) -> Result<Option<String>> {
        let Some(step) = plan.need.as_ref().and_then(|it| ask.profile.summarizing(it.pass)) else {
            return Ok(None);
        };
        let offline = || self.summary(measured, ask, step, known.ledger(measured.history), plan, None);
        let before = known.summary.clone().unwrap_or_else(offline);
        let after = (edit.0)(&before)?;
        Ok(Some(marked(&before, &after, step.summary.shape)))
    }
}

/// Leaves so many characters of the beginning, and says so (OpenCode 1.18).
fn shorten(text: &mut String, chars: usize) {
    if let Some((at, _)) = text.char_indices().nth(chars) {
        text.truncate(at);
        text.push_str("\n[truncated]");
    }
}

const SENT: &str = "summarizer.sent";

fn failures(endpoint: &Endpoint) -> String {
    format!("summarizer.failures.{}", endpoint.provider)
}

fn called_off() -> Error {
    Error::new(Kind::Provider, "the compaction was called off; nothing was changed")
}

fn offline_instead(why: &str) -> String {
    format!("{why}; the offline summary was written instead")
}

fn usage(talk: &Talk) -> UsageInfo {
    UsageInfo {
        requests: talk.requests,
        input: talk.tokens.input + talk.tokens.cache_read + talk.tokens.cache_write,
        output: talk.tokens.output,
        cache_read: talk.tokens.cache_read,
    }
}

/// The profile's ladder; in the end, parts.
fn rungs(step: &Summarize) -> &'static [Rung] {
    match step.too_long {
        TooLong::Fails => &RUNGS,
        TooLong::Oldest | TooLong::Rounds(_) => {
            &[Rung::Whole, Rung::Oldest(99), Rung::Outputs(2_000), Rung::Chunks]
        }
    }
}

/// A summary with what the user pinned, word for word, above it.
fn pinned(text: String, material: &Material<'_>) -> String {
    let lines: String = material.pins.iter().map(|it| format!("- pinned: {it}\n")).collect();
    match material.spec.root.as_deref().filter(|_| material.spec.shape == Shape::Xml) {
        _ if lines.is_empty() => text,
        Some(root) => text.replacen(&format!("<{root}>\n"), &format!("<{root}>\n{lines}"), 1),
        None => format!("{lines}\n{text}"),
    }
}

/// `after` with a mark behind every line that does not stand in `before`.
fn marked(before: &str, after: &str, shape: Shape) -> String {
    let old: std::collections::BTreeSet<&str> = before.lines().map(str::trim).collect();
    let frame = |line: &str| match shape {
        Shape::Markdown => line.starts_with('#'),
        Shape::Xml => line.starts_with('<'),
        Shape::Plain => line.ends_with(':'),
    };
    let line = |line: &str| match line.trim() {
        it if it.is_empty() || old.contains(it) || frame(it) => line.to_owned(),
        _ => format!("{line} [the user's own words]"),
    };
    after.trim().lines().map(line).collect::<Vec<_>>().join("\n")
}

impl From<&Ask> for KeptAsk {
    fn from(ask: &Ask) -> Self {
        Self {
            profile: ask.profile.clone(),
            model: ask.model.clone(),
            window: ask.window,
            overhead: ask.overhead,
            tokenizer: match ask.tokenizer {
                Tokenizer::Auto => "auto".to_owned(),
                Tokenizer::Fixed(it) => it.name().to_owned(),
            },
            budget: ask.budget,
            keep: ask.keep,
            focus: ask.focus.clone(),
            style: ask.style,
            pins: ask.pins.clone(),
            cause: ask.cause,
            messages_as: ask.messages_as.map(|it| it.name().to_owned()),
            protect: ask.protect,
            exclude_tools: ask.exclude_tools.clone(),
            only: ask.only.clone(),
            to: ask.to.clone(),
        }
    }
}

impl TryFrom<&KeptAsk> for Ask {
    type Error = Error;

    fn try_from(kept: &KeptAsk) -> Result<Self> {
        Ok(Self {
            model: kept.model.clone(),
            window: kept.window,
            overhead: kept.overhead,
            tokenizer: Tokenizer::named(&kept.tokenizer)?,
            budget: kept.budget,
            keep: kept.keep,
            focus: kept.focus.clone(),
            style: kept.style,
            pins: kept.pins.clone(),
            cause: kept.cause,
            messages_as: kept.messages_as.as_deref().map(Format::named).transpose()?,
            protect: kept.protect,
            exclude_tools: kept.exclude_tools.clone(),
            only: kept.only.clone(),
            to: kept.to.clone(),
            summarizer: Choice::Host,
            ..Self::new(kept.profile.clone())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_changed_is_marked() {
        let out = marked("## Goal\n- a\n- b", "## Goal\n- a\n- c\n\n## New\n", Shape::Markdown);
        assert_eq!(out, "## Goal\n- a\n- c [the user's own words]\n\n## New");
    }
}
