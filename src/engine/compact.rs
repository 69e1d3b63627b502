//! The main job: plan, archive, summary, outcome, checks, and the result where it was asked for.

use std::collections::{BTreeMap, BTreeSet};

use super::summarize::{Drafted, Heard};
use super::{
    Amount, Ask, Engine, Event, Known, Measured, Opened, To, method_info, notes, pruned, session_info,
};
use crate::agents::reach::Job;
use crate::answers::{CONTRACT, CompactAnswer, FactCount, Next, UsageInfo};
use crate::compact::{self, Cause, Item, Op, Outcome, OutputOp, Plan};
use crate::error::{Error, Kind, Result};
use crate::facts::Ledger;
use crate::format::{self, Format, Mode};
use crate::history::{History, Kind as Why, Message, Part, Text};
use crate::profile::{Keep, Summarize};
use crate::score::{self, Score};
use crate::store::{
    Batch, Body, Digest, Handle, MemoryFilter, MemoryKind, MemoryScope, NewCompaction, Note, Original,
    SessionRef, What,
};
use crate::summarizer::offline;
use crate::tokens::Estimator;

/// Rules that are pinned in the memory have at most so many tokens (o200k) in a summary.
const PINNED: u64 = 1_000;

/// What a compaction came to: the answer for everybody, and the history for whoever goes on with it.
pub struct Compacted {
    /// What is said.
    pub answer: CompactAnswer,
    /// The new history, if there is one.
    pub history: Option<History>,
    /// What survived, if there is a new history.
    pub score: Option<Score>,
    /// The bytes, with [`To::Bytes`].
    pub bytes: Option<Vec<u8>>,
}

/// The handles of what was archived.
pub(super) struct Archived {
    /// Of the whole session.
    pub(super) session: String,
    /// Of the compaction.
    pub(super) compaction: String,
}

/// An outcome with what is said about it.
pub(super) struct Made {
    pub(super) plan: Plan,
    pub(super) outcome: Outcome,
    pub(super) summary: Option<String>,
    pub(super) score: Score,
}

impl Engine {
    /// Compacts a session as `ask` says, tells the listener, and runs the user's commands when something is written.
    pub fn compact(&self, opened: &Opened, ask: &Ask) -> Result<Compacted> {
        let ask = &self.honoured(ask);
        let measured = self.measure(&opened.session, ask);
        let writes = ask.to != To::Plan && self.plan(&measured, ask, None).act;
        if !writes {
            return self.made(opened, ask);
        }
        let started = self.started(opened, ask, &measured);
        self.tell(&started);
        if let Err(why) = self.before(&started) {
            let mut answer = self.blank(opened, ask, &measured);
            answer.status = "rejected".to_owned();
            answer.reason_code = "hook_refused".to_owned();
            answer.reason = why;
            self.tell(&Self::ended(ask, &answer, None));
            return Ok(Compacted { answer, history: None, score: None, bytes: None });
        }
        let made = self.made(opened, ask);
        let percent =
            measured.limits.window.map(|it| (measured.tokens + measured.overhead) * 100 / it.max(1));
        let ended = match &made {
            Ok(made) => Self::ended(ask, &made.answer, percent),
            Err(error) => Event::Failed { reason_code: "failed".to_owned(), reason: error.to_string() },
        };
        self.tell(&ended);
        if ask.auto || matches!(ended, Event::Compacted { .. }) {
            self.count_failure(measured.history, matches!(ended, Event::Failed { .. }))?;
        }
        let warning = self.after(&ended);
        made.map(|mut made| {
            made.answer.warnings.extend(warning);
            made
        })
    }

    /// Compacts a session, without any ado.
    pub(super) fn made(&self, opened: &Opened, ask: &Ask) -> Result<Compacted> {
        self.compact_from(opened, ask, None)
    }

    /// Compacts; with the answer of the calling agent's model, by the plan that it was asked for.
    pub(super) fn compact_from(
        &self,
        opened: &Opened,
        ask: &Ask,
        heard: Option<&Heard>,
    ) -> Result<Compacted> {
        let whole = &opened.session.history;
        let ask = &Ask { pins: self.pins(whole, ask)?, ..ask.clone() };
        let base = heard.map(|it| {
            let messages = whole.messages().iter().take(it.count()).cloned().collect();
            History::new(messages, whole.meta.clone())
        });
        let mut measured = self.measure_history(base.as_ref().unwrap_or(whole), ask);
        measured.grown = base.is_some().then_some(whole);
        let mut answer = self.blank(opened, ask, &measured);
        let plan = self.plan(&measured, ask, None);
        answer.split = plan.split;
        if !plan.act {
            answer.reason_code = plan.reason.code.to_owned();
            answer.reason = plan.reason.text;
            answer.native_status = ask.profile.native.noop.clone();
            if let To::Agent(agent) = ask.to {
                // There is nothing to compact, but it is to go over all the same.
                let it = self.carry(opened, measured.history, agent, &mut answer.warnings)?;
                answer.installed(it);
            }
            return Ok(Compacted { answer, history: None, score: None, bytes: None });
        }
        if ask.to == To::Session
            && let Some(why) = self.cooling_down(measured.history, ask.profile.trigger.cool_down)
        {
            answer.status = "rejected".to_owned();
            answer.reason_code = "cooling_down".to_owned();
            answer.reason = why;
            return Ok(Compacted { answer, history: None, score: None, bytes: None });
        }
        let handle = self.session_handle(opened)?;
        let mut known = Known::default();
        match self.written_summary(opened, &measured, ask, &plan, &known, heard)? {
            Drafted::Offline(why) => answer.warnings.extend(why),
            Drafted::Priced(cost) => {
                let what = "nobody was asked: the offline summary stands here for the model's";
                answer.warnings.push(what.to_owned());
                answer.cost = Some(cost);
            }
            Drafted::Text(drafted) => {
                answer.summarizer = drafted.who;
                answer.usage = drafted.usage;
                answer.cost = drafted.cost;
                answer.warnings.extend(drafted.notes);
                known.summary = Some(drafted.text);
            }
            Drafted::Asked { handle, ask, next } => {
                answer.status = "needs_answer".to_owned();
                answer.summarizer = "host".to_owned();
                answer.reason = plan.reason.text;
                answer.handle = Some(handle);
                answer.ask = Some(ask);
                answer.next = next;
                return Ok(Compacted { answer, history: None, score: None, bytes: None });
            }
        }
        if let Some(edit) = &ask.edit {
            known.summary = self.edited(&measured, ask, &plan, &known, edit)?;
        }
        let made = match self.make(&measured, ask, plan, &handle, &known) {
            Ok(made) => made,
            Err(rejected) => {
                answer.status = "rejected".to_owned();
                answer.native_status = match rejected.code {
                    "grew" => ask.profile.native.grew.clone(),
                    "empty" => ask.profile.native.empty.clone(),
                    "uncounted" => ask.profile.native.uncounted.clone(),
                    _ => String::new(),
                };
                answer.reason_code = rejected.code.to_owned();
                answer.reason = rejected.reason;
                return Ok(Compacted { answer, history: None, score: None, bytes: None });
            }
        };
        let Made { plan, outcome, summary, score } = made;
        let summary = summary.or_else(|| used_snapshot(&plan));
        answer.split = plan.split;
        answer.pruned = pruned(&plan.ops);
        answer.tokens_after = outcome.tokens;
        answer.messages_after = outcome.history.messages().len();
        answer.first_changed = Some(outcome.first_changed);
        answer.prefix_tokens = outcome.prefix_tokens;
        answer.facts = fact_counts(&score);
        answer.facts_kept = score.kept.map(round);
        answer.reason = plan.reason.text.clone();
        let missed = ask.min_kept.missed(&score);
        if !missed.is_empty() {
            answer.status = "rejected".to_owned();
            answer.reason_code = "lost_too_much".to_owned();
            answer.lost = ask.min_kept.lost(&score);
            let needed = self.budget_that_keeps(&measured, ask, outcome.tokens, &handle, &known);
            answer.budget_needed = needed;
            let remedy = match needed {
                Some(tokens) => format!("--budget {tokens} would keep it"),
                None => "no budget below the whole would keep it".to_owned(),
            };
            answer.reason = format!("this would keep {}; {remedy}", missed.join(", "));
            return Ok(Compacted { answer, history: None, score: Some(score), bytes: None });
        }
        let native = &ask.profile.native;
        let only_outputs = plan.ops.iter().all(|it| matches!(it, Op::Clear(_) | Op::Shorten(_)));
        let shortened = only_outputs && !native.shortened.is_empty();
        answer.native_status = if shortened { native.shortened.clone() } else { native.compacted.clone() };
        let api = ask.messages_as.unwrap_or(opened.session.format.api());
        let (messages, lost) = format::wire::messages_of(&outcome.history, Some(opened.session.format), api);
        answer.warnings.extend(lost);
        let broken = format::validate::check(api, &messages);
        if let Some(first) = broken.first() {
            answer.status = "rejected".to_owned();
            answer.reason_code = "invalid".to_owned();
            answer.reason =
                format!("the result breaks {}: message {}: {}", first.rule, first.message, first.what);
            return Ok(Compacted { answer, history: None, score: Some(score), bytes: None });
        }
        answer.valid_for = valid_for(&outcome.history);
        answer.status = "planned".to_owned();
        let mut bytes = None;
        if ask.to != To::Plan {
            let archived = self.archive(opened, &plan, ask, outcome.tokens, summary.as_deref())?;
            if !self.store.keeps() {
                let what = "nothing is archived (store.persistence = \"none\"): the handles in the result lead nowhere";
                answer.warnings.push(what.to_owned());
            }
            answer.handle = Some(archived.session);
            let made = |warnings: &mut Vec<String>| match ask.messages_as {
                Some(_) => Ok(messages),
                None => self.written(opened, &outcome.history, Mode::New, warnings).map(|it| it.0),
            };
            match &ask.to {
                To::File(path) => {
                    crate::files::install(path, &made(&mut answer.warnings)?)?;
                    answer.output = Some(path.display().to_string());
                }
                To::Bytes => bytes = Some(made(&mut answer.warnings)?),
                To::Agent(agent) => {
                    let it = self.carry(opened, &outcome.history, *agent, &mut answer.warnings)?;
                    answer.installed(it);
                }
                To::Session => {
                    let job = if only_outputs { Job::Prune } else { Job::Compact };
                    let after = &outcome.history;
                    let it = self.install(opened, after, job, &archived.compaction, &mut answer.warnings)?;
                    answer.installed(it);
                }
                To::Plan => {}
            }
            answer.status = "compacted".to_owned();
            self.remember(opened, ask, summary.as_deref(), &mut answer.warnings);
            if let (Some(written), Some(need)) = (&known.summary, &plan.need)
                && measured.history.meta.session.is_some()
                && let Err(error) = self.keep_snapshot(measured.history, need.to, written)
            {
                answer.warnings.push(format!("the summary could not be kept for the next time: {error}"));
            }
        }
        answer.summary = summary;
        Ok(Compacted { answer, history: Some(outcome.history), score: Some(score), bytes })
    }

    /// Remembers a summary for the project, where the profile does.
    fn remember(&self, opened: &Opened, ask: &Ask, summary: Option<&str>, warnings: &mut Vec<String>) {
        let (Some(rule), Some(summary)) = (&ask.profile.remember, summary) else { return };
        let history = &opened.session.history;
        let Some(session) = history.meta.session.as_deref() else { return };
        if summary.chars().count() < rule.least_chars {
            return;
        }
        if let Err(error) =
            self.store.remember(&self.memory_scope(history), &Note::summary(session, summary), self.now)
        {
            warnings.push(format!("the summary could not be remembered: {error}"));
        }
    }

    /// What the profile gives the summary of the project's memories, the newest first.
    pub(super) fn recalled(&self, history: &History, ask: &Ask) -> Vec<String> {
        let Some(rule) = &ask.profile.remember else { return Vec::new() };
        let filter = MemoryFilter {
            scope: Some(MemoryScope::Project),
            limit: Some(rule.recalled),
            ..MemoryFilter::default()
        };
        let found = self.store.memories(&self.memory_scope(history), &filter).unwrap_or_default();
        // A summary of a session is no fact about the project.
        let notes = found.into_iter().filter(|it| it.kind != MemoryKind::Conversation);
        notes.map(|it| it.content.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    /// What is carried word for word: what the caller says, and the rules that are pinned for user and project, the
    /// newest first, as far as they fit.
    fn pins(&self, history: &History, ask: &Ask) -> Result<Vec<String>> {
        let mut out = ask.pins.clone();
        let mut left = PINNED;
        for it in self.store.pinned(&self.memory_scope(history))? {
            let text = it.content.split_whitespace().collect::<Vec<_>>().join(" ");
            let tokens = Estimator::O200k.text(&text);
            if tokens <= left && !out.contains(&text) {
                left -= tokens;
                out.push(text);
            }
        }
        Ok(out)
    }

    fn blank(&self, opened: &Opened, ask: &Ask, measured: &Measured<'_>) -> CompactAnswer {
        let messages = measured.whole().messages().len();
        let some = measured.whole().messages().iter().filter(|it| compact::counts(it));
        let tokens = some.map(|it| measured.ruler.message(it)).sum();
        CompactAnswer {
            contract: CONTRACT,
            status: "noop".to_owned(),
            native_status: String::new(),
            reason_code: String::new(),
            reason: String::new(),
            profile: ask.profile.name.clone(),
            trigger: cause_name(ask.cause).to_owned(),
            summarizer: "offline".to_owned(),
            usage: UsageInfo::default(),
            cost: None,
            session: session_info(opened),
            tokens_before: tokens,
            tokens_after: tokens,
            overhead: measured.overhead,
            method: method_info(&measured.ruler),
            messages_before: messages,
            messages_after: messages,
            split: None,
            pruned: Vec::new(),
            summary: None,
            replace: None,
            messages: None,
            valid_for: Vec::new(),
            facts: BTreeMap::new(),
            facts_kept: None,
            lost: Vec::new(),
            budget_needed: None,
            first_changed: None,
            prefix_tokens: measured.tokens,
            handle: None,
            ask: None,
            output: None,
            session_id: None,
            resume: None,
            takes_effect: None,
            next: Next { who: "nobody".to_owned(), what: String::new() },
            warnings: notes(opened),
        }
    }

    /// The smallest of some larger budgets at which the gate lets a compaction pass; each is tried.
    fn budget_that_keeps(
        &self,
        measured: &Measured<'_>,
        ask: &Ask,
        refused: u64,
        handle: &str,
        known: &Known,
    ) -> Option<u64> {
        let budgets = [5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90].map(|it| measured.tokens * it / 100);
        budgets.into_iter().filter(|it| *it > refused).find(|budget| {
            let ask = Ask { budget: Some(Amount::Tokens(*budget)), ..ask.clone() };
            let plan = self.plan(measured, &ask, None);
            plan.act
                && self
                    .make(measured, &ask, plan, handle, known)
                    .is_ok_and(|it| ask.min_kept.missed(&it.score).is_empty())
        })
    }

    pub(super) fn plan(&self, measured: &Measured<'_>, ask: &Ask, summary_tokens: Option<u64>) -> Plan {
        self.with_request(measured, ask, false, summary_tokens, |request| {
            compact::plan(measured.history, &measured.ruler, request, &self.moment(measured.history, ask))
        })
    }

    /// Writes the summary and carries the plan out. Where the summary needs less than was reserved, the kept end
    /// grows; then the first line is written again with what it came to.
    pub(super) fn make(
        &self,
        measured: &Measured<'_>,
        ask: &Ask,
        mut plan: Plan,
        handle: &str,
        known: &Known,
    ) -> Result<Made, compact::Rejected> {
        let apply = |plan: &Plan, summary: Option<&str>| {
            compact::apply(measured.whole(), &measured.ruler, &ask.profile, plan, summary)
        };
        let score = |outcome: &Outcome| {
            let probes = known.probes(measured.whole());
            let count = |it: &Message| measured.ruler.message(it);
            score::score_probes(measured.whole(), probes, &outcome.history, &|_| true, &count)
        };
        let Some(step) = plan.need.as_ref().and_then(|it| ask.profile.summarizing(it.pass)) else {
            let outcome = apply(&plan, None)?;
            let score = score(&outcome);
            return Ok(Made { plan, outcome, summary: None, score });
        };
        let ledger = known.ledger(measured.history);
        let write = |plan: &Plan, header: &str| match &known.summary {
            Some(text) => format!("{header}\n{text}"),
            None => self.summary(measured, ask, step, ledger, plan, Some(header)),
        };
        // As long as the real one will be.
        let blank = header(
            measured.tokens,
            measured.tokens / 5,
            1.0,
            measured.history,
            handle,
            plan_end(measured, &plan),
        );
        let reserved = plan.need.as_ref().map_or(0, |it| it.budget);
        if known.summary.is_none() {
            self.tell(&Event::Asked { summarizer: "offline".to_owned(), budget: reserved });
        }
        let mut summary = write(&plan, &blank);
        let used = measured.ruler.text(&Text::new(format!("{}{summary}{}", step.before, step.after))) + 8;
        if used < reserved && matches!(step.keep, Keep::Budget(_)) {
            let wider = self.plan(measured, ask, Some(used));
            if wider.act && wider.need.is_some() {
                plan = wider;
                summary = write(&plan, &blank);
            }
        }
        let outcome = apply(&plan, Some(&summary))?;
        let found = score(&outcome);
        let header = header(
            measured.tokens,
            outcome.tokens,
            found.kept.unwrap_or(1.0),
            measured.history,
            handle,
            plan_end(measured, &plan),
        );
        let summary = summary.replacen(&blank, &header, 1);
        let outcome = apply(&plan, Some(&summary))?;
        Ok(Made { plan, outcome, summary: Some(summary), score: found })
    }

    pub(super) fn summary(
        &self,
        measured: &Measured<'_>,
        ask: &Ask,
        step: &Summarize,
        ledger: &Ledger,
        plan: &Plan,
        header: Option<&str>,
    ) -> String {
        let Some(need) = &plan.need else { return String::new() };
        let frame = measured.ruler.text(&Text::new(format!("{}{}", step.before, step.after)));
        let known = self.recalled(measured.history, ask);
        let known = known.iter().filter(|it| !ask.pins.contains(it));
        let pins: Vec<String> = ask.pins.iter().chain(known).cloned().collect();
        let cleared: Vec<usize> = plan
            .ops
            .iter()
            .filter_map(|op| if let Op::Clear(op) | Op::Shorten(op) = op { Some(op.message) } else { None })
            .collect();
        let asked = offline::Ask {
            region: need.from..need.to,
            cleared: &cleared,
            spec: &step.summary,
            budget: need.budget.saturating_sub(frame + 8),
            style: ask.style,
            focus: ask.focus.as_deref(),
            pins: &pins,
            header,
        };
        offline::write(measured.history, ledger, &asked, &|text| measured.ruler.text(&Text::new(text)))
    }

    /// Stores the whole session and every output that a plan replaces; synced when this returns.
    pub(super) fn archive(
        &self,
        opened: &Opened,
        plan: &Plan,
        ask: &Ask,
        tokens_after: u64,
        summary: Option<&str>,
    ) -> Result<Archived> {
        let history = &opened.session.history;
        let scope = self.scope(history);
        let texts: Vec<(&OutputOp, String)> = plan
            .ops
            .iter()
            .filter_map(|op| if let Op::Clear(op) | Op::Shorten(op) = op { Some(op) } else { None })
            .map(|op| (op, original_text(&history.messages()[op.message], op)))
            .collect();
        let turns: Vec<(usize, u64, String)> = plan
            .ops
            .iter()
            .filter_map(|op| match op {
                Op::Collapse { from, to, tokens, .. } => {
                    Some((*from, *tokens, compact::transcript(&history.messages()[*from..*to])))
                }
                Op::Clear(_)
                | Op::Shorten(_)
                | Op::Drop { .. }
                | Op::Summarize { .. }
                | Op::Skip { .. }
                | Op::Move { .. } => None,
            })
            .collect();
        let whole = Original {
            what: What::Session,
            body: Body::Source(&*opened.source),
            message: None,
            call_id: None,
            tool: None,
            tokens: plan.tokens_before,
        };
        let parts = texts.iter().map(|(op, text)| Original {
            what: if op.call_id.is_empty() { What::Message } else { What::Output },
            body: Body::Bytes(text.as_bytes()),
            message: Some(op.message as u32),
            call_id: Some(op.call_id.as_str()).filter(|it| !it.is_empty()),
            tool: Some(op.tool.as_str()).filter(|it| !it.is_empty()),
            tokens: op.tokens_before,
        });
        let turns = turns.iter().map(|(from, tokens, text)| Original {
            what: What::Message,
            body: Body::Bytes(text.as_bytes()),
            message: Some(*from as u32),
            call_id: None,
            tool: None,
            tokens: *tokens,
        });
        let info = session_info(opened);
        let batch = Batch {
            session: SessionRef {
                agent: info.agent.unwrap_or_default(),
                id: info.id.unwrap_or_default(),
                path: info.path,
                format: info.format,
            },
            at: self.now,
            originals: std::iter::once(whole).chain(parts).chain(turns).collect(),
            compaction: Some(NewCompaction {
                profile: ask.profile.name.clone(),
                trigger: cause_name(ask.cause).to_owned(),
                tokens_before: plan.tokens_before,
                tokens_after,
                summary: summary.unwrap_or_default().to_owned(),
            }),
        };
        let stored = self.store.put_all(&scope, &batch)?;
        let (Some(session), Some(compaction)) = (stored.handles.first(), stored.compaction) else {
            return Err(Error::new(Kind::Bug, "archiving a session: expected its handle, found none"));
        };
        Ok(Archived { session: session.as_str().to_owned(), compaction: compaction.as_str().to_owned() })
    }

    fn session_handle(&self, opened: &Opened) -> Result<String> {
        let bytes = opened.source.bytes(0..opened.source.len())?;
        Ok(Handle::of(&self.scope(&opened.session.history), &Digest::of(&bytes)).as_str().to_owned())
    }

    /// The bytes of `after` in the session's own format, read back before anybody gets them.
    pub(super) fn written(
        &self,
        opened: &Opened,
        after: &History,
        mode: Mode,
        warnings: &mut Vec<String>,
    ) -> Result<(Vec<u8>, format::Written)> {
        let written = format::write(&*opened.source, &opened.session, after, mode)?;
        let bytes = written.bytes(&*opened.source)?;
        let again = format::read(
            &format::Memory::new("what was written", bytes.as_slice()),
            Some(opened.session.format),
        )?;
        check_read_back(after, &again.history)?;
        warnings.extend(written.warnings.iter().cloned());
        Ok((bytes, written))
    }
}

impl CompactAnswer {
    /// Says where it went.
    fn installed(&mut self, it: super::install::Installed) {
        self.output = Some(it.output);
        self.session_id = Some(it.session_id);
        self.resume = Some(it.resume);
        self.takes_effect = Some(it.takes_effect.to_owned());
        self.next = it.next;
    }
}

pub(super) fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Manual => "manual",
        Cause::Auto => "auto",
        Cause::Overflow => "overflow",
    }
}

/// The text that an op takes out of a message.
fn original_text(message: &Message, op: &OutputOp) -> String {
    match message.parts.get(op.part) {
        Some(Part::Output(output)) if !op.call_id.is_empty() => output.text.as_str().to_owned(),
        Some(_) | None => message.plain(),
    }
}

/// What was read back must say what was to be written. What a client puts there itself is not compared: Codex injects
/// its context anew, OpenCode stores a summary as a question and its answer.
fn check_read_back(expected: &History, found: &History) -> Result<()> {
    compared(&said(expected, expected), &said(found, expected))
}

/// The same for another agent's format, which may put an output next to its call, before words that stood between, and
/// says that a call was interrupted where it has no output.
pub(super) fn check_carried(expected: &History, found: &History) -> Result<()> {
    let answered: BTreeSet<&str> =
        expected.messages().iter().flat_map(Message::outputs).map(|it| &*it.id).collect();
    let calls = expected.messages().iter().flat_map(Message::calls).map(|it| &*it.id);
    let open: BTreeSet<&str> = calls.filter(|it| !answered.contains(it)).collect();
    let mut messages = found.messages().to_vec();
    for message in &mut messages {
        message.parts.retain(|it| !matches!(it, Part::Output(it) if open.contains(&*it.id)));
    }
    let sorted = |history: &History| {
        let mut all = said(history, expected);
        all.sort_unstable();
        all
    };
    compared(&sorted(expected), &sorted(&History::new(messages, found.meta.clone())))
}

/// The words and outputs of a history, in order; of what a client says itself, only the summaries of `expected`: where
/// a format knows none in that place, they stand there as its own words.
fn said(history: &History, expected: &History) -> Vec<String> {
    let texts = |it: &Message| -> Vec<String> {
        let outputs = it.outputs().map(|it| it.text.as_str().trim().to_owned());
        it.texts().map(|it| it.as_str().trim().to_owned()).chain(outputs).collect()
    };
    let summaries: BTreeSet<String> =
        expected.messages().iter().filter(|it| it.kind == Why::Summary).flat_map(texts).collect();
    let own = |it: &Message| matches!(it.kind, Why::Context | Why::Marker);
    let mut out = Vec::new();
    for it in history.messages().iter().filter(|it| compact::counts(it)) {
        let wanted = |text: &String| !text.is_empty() && (!own(it) || summaries.contains(text));
        out.extend(texts(it).into_iter().filter(wanted));
    }
    out
}

fn compared(expected: &[String], found: &[String]) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    let at = expected.iter().zip(found).take_while(|(one, other)| one == other).count();
    let what = format!(
        "reading back what was written: expected {} texts, found {}; the first difference is at {at}; nothing was replaced",
        expected.len(),
        found.len()
    );
    Err(Error::new(Kind::Bug, what))
}

/// The summary of a plan that needs none because a stored one takes its place.
fn used_snapshot(plan: &Plan) -> Option<String> {
    let made = plan.layout.iter().find_map(|it| match it {
        Item::Made(message) if message.kind == Why::Summary && plan.need.is_none() => Some(message),
        Item::Made(_) | Item::Old(_) | Item::Summary { .. } => None,
    });
    made.map(Message::plain)
}

/// The end that an outcome of this plan will have, as the summary names it.
fn plan_end(measured: &Measured<'_>, plan: &Plan) -> Option<String> {
    if let Some(last) =
        measured.grown.and_then(|it| it.messages().get(measured.history.messages().len()..)?.last())
    {
        return compact::end_mark(std::slice::from_ref(last));
    }
    let last = match plan.layout.last()? {
        Item::Old(index) => &measured.history.messages()[*index],
        Item::Made(message) => message,
        Item::Summary { .. } => return None,
    };
    let shortened = plan.ops.iter().rev().find_map(|op| match op {
        Op::Clear(op) | Op::Shorten(op) if Some(op.message as u32) == last.from => Some(op.text.clone()),
        _ => None,
    });
    match shortened {
        Some(text) => {
            let mut message = last.clone();
            if let Some(Part::Output(it)) = message.parts.last_mut() {
                it.text = Text::new(text);
            }
            compact::end_mark(&[message])
        }
        None => compact::end_mark(std::slice::from_ref(last)),
    }
}

/// The first line: who compacted what, what is left, how to get the rest back.
fn header(
    before: u64,
    after: u64,
    kept: f64,
    history: &History,
    handle: &str,
    end: Option<String>,
) -> String {
    let k = |tokens: u64| match tokens {
        0..1000 => tokens.to_string(),
        1000..10_000 => format!("{:.1}k", tokens as f64 / 1000.0),
        _ => format!("{}k", (tokens + 500) / 1000),
    };
    let end = end.map(|it| format!(" [end {it}]")).unwrap_or_default();
    format!(
        "{} {} messages, {} → {} tokens; {:.0} % of its facts kept. Undo or whole: epitome restore {handle}{end}",
        format::SUMMARY_START,
        history.messages().len(),
        k(before),
        k(after),
        (kept * 100.0).floor(),
    )
}

pub(super) fn fact_counts(score: &Score) -> BTreeMap<String, FactCount> {
    score.classes.iter().map(|(class, it)| (class.name().to_owned(), fact_count(it))).collect()
}

pub(super) fn fact_count(it: &score::Tally) -> FactCount {
    FactCount { found: it.found, kept: it.kept, recoverable: it.recoverable, lost: it.lost }
}

/// The APIs that would accept a history.
fn valid_for(history: &History) -> Vec<String> {
    let apis = Format::ALL.into_iter().filter(|it| it.is_wire());
    apis.filter(|api| format::validate::check(*api, &format::messages(history, *api).0).is_empty())
        .map(|it| it.name().to_owned())
        .collect()
}

pub(super) fn round(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}
