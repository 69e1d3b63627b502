//! The main job: plan, archive, summary, outcome, checks, and the result where it was asked for.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::time::Duration;

use super::Compacted;
use super::install::overhead_mark;
use super::make::Made;
use super::spending::After;
use super::summarize::{Drafted, Heard};
use super::{Ask, Engine, Event, Known, Measured, Opened, To, method_info, pruned, session_info, warnings};
use crate::agents::reach::Job;
use crate::answers::{CONTRACT, CompactAnswer, FactCount, Next, Status, UsageInfo};
use crate::config::Choice;
use compaction::plan::{self, Cause, Plan};
use history::History;
use history::error::Result;
use history::parallel;
use score::{self, Score};
use sessions::{self, Format, Mode};

/// The `reason_code` of what the user's own command does not want done.
const HOOK_REFUSED: &str = "hook_refused";

impl Engine {
    /// Compacts a session as `ask` says, tells the listener, and runs the user's commands when something is written.
    pub fn compact(&self, opened: &Opened, ask: &Ask) -> Result<Compacted> {
        self.compact_heard(opened, &self.honoured(ask), None)
    }

    /// The same, by a profile that is honoured already; with the answer of the calling agent's model, by the plan that
    /// it was asked for.
    pub(super) fn compact_heard(
        &self,
        opened: &Opened,
        ask: &Ask,
        heard: Option<&Heard>,
    ) -> Result<Compacted> {
        let begun = OnceCell::new();
        let made = self.compact_from(opened, ask, heard, Some(&begun));
        // Nothing was to be written: of that nobody is told.
        let Some(Event::Started { percent, .. }) = begun.get() else { return made };
        let ended = match &made {
            Ok(made) => Self::ended(ask, &made.answer, *percent),
            Err(error) => Event::Failed { reason_code: "failed".to_owned(), reason: error.to_string() },
        };
        self.tell(&ended);
        if matches!(&ended, Event::Failed { reason_code, .. } if reason_code == HOOK_REFUSED) {
            return made;
        }
        let mut warnings = Vec::new();
        if (ask.auto || matches!(ended, Event::Compacted { .. }))
            && let Err(error) =
                self.count_failure(&opened.session.history, matches!(ended, Event::Failed { .. }))
        {
            // What was written is written.
            warnings.push(format!("whether it failed could not be noted: {error}"));
        }
        warnings.extend(self.after(&ended, Duration::MAX));
        made.map(|mut made| {
            made.answer.warnings.extend(warnings);
            made
        })
    }

    /// Compacts a session, without any ado.
    pub(super) fn made(&self, opened: &Opened, ask: &Ask) -> Result<Compacted> {
        self.compact_from(opened, ask, None, None)
    }

    /// Where something is to be written, tells that it begins, and asks the user's command. `Err` says why nothing may
    /// be done.
    fn begin(
        &self,
        opened: &Opened,
        ask: &Ask,
        measured: &Measured<'_>,
        begun: Option<&OnceCell<Event>>,
    ) -> Result<(), String> {
        let Some(begun) = begun.filter(|_| ask.to != To::Plan) else { return Ok(()) };
        let started = begun.get_or_init(|| self.started(opened, ask, measured));
        self.tell(started);
        self.before(started, Duration::MAX)
    }

    /// Compacts; with the answer of the calling agent's model, by the plan that it was asked for. `begun` is filled once
    /// something is to be written; without it nobody is told or asked.
    fn compact_from(
        &self,
        opened: &Opened,
        ask: &Ask,
        heard: Option<&Heard>,
        begun: Option<&OnceCell<Event>>,
    ) -> Result<Compacted> {
        let whole = &opened.session.history;
        let ask = &Ask { pins: self.pins(whole, &ask.pins)?, ..ask.clone() };
        let base = heard.map(|it| {
            let messages = whole.messages().iter().take(it.count()).cloned().collect();
            History::new(messages, whole.meta.clone())
        });
        let mut measured = self.measure_history(base.as_ref().unwrap_or(whole), ask, None);
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
            return Ok(Compacted::told(answer));
        }
        if ask.to == To::Session
            && let Some(why) = self.cooling_down(measured.history, ask.profile.trigger.cool_down)
        {
            return Ok(Compacted::told(answer.rejected("cooling_down", why)));
        }
        // Before anybody is paid. The calling agent's model is only asked by now: what it is asked for may never come.
        let asks = ask.summarizer == Choice::Host && ask.sampling.is_none();
        if !asks && let Err(why) = self.begin(opened, ask, &measured, begun) {
            return Ok(Compacted::told(answer.rejected(HOOK_REFUSED, why)));
        }
        let Some(known) = self.drafted(opened, &measured, ask, &plan, heard, &mut answer)? else {
            return Ok(Compacted::told(answer));
        };
        if asks && let Err(why) = self.begin(opened, ask, &measured, begun) {
            return Ok(Compacted::told(answer.rejected(HOOK_REFUSED, why)));
        }
        let handle = self.session_handle(opened)?;
        let made = match self.make(&measured, ask, plan, &handle, &known) {
            Ok(made) => made,
            Err(rejected) => {
                let native = &ask.profile.native;
                answer.native_status = match rejected.code {
                    "grew" => native.grew.clone(),
                    "empty" => native.empty.clone(),
                    "uncounted" => native.uncounted.clone(),
                    _ => String::new(),
                };
                return Ok(Compacted::told(answer.rejected(rejected.code, rejected.reason)));
            }
        };
        answer.made(&made);
        let missed = ask.min_kept.missed(&made.score);
        if !missed.is_empty() {
            answer.lost = ask.min_kept.lost(&made.score);
            let needed = self.budget_that_keeps(&measured, ask, made.outcome.tokens, &handle, &known);
            answer.budget_needed = needed;
            let remedy = match needed {
                Some(tokens) => format!("--budget {tokens} would keep it"),
                None => "no budget below the whole would keep it".to_owned(),
            };
            let why = format!("this would keep {}; {remedy}", missed.join(", "));
            let answer = answer.rejected("lost_too_much", why);
            return Ok(Compacted { score: Some(made.score), ..Compacted::told(answer) });
        }
        let native = &ask.profile.native;
        let shortened = made.only_outputs() && !native.shortened.is_empty();
        answer.native_status = if shortened { native.shortened.clone() } else { native.compacted.clone() };
        let api = ask.messages_as.unwrap_or(opened.session.format.api());
        let after = &made.outcome.history;
        let (valid_for, (messages, lost)) = parallel::join(
            || valid_for(after),
            || sessions::wire::messages_of(after, Some(opened.session.format), api),
        );
        if ask.messages_as.is_some() {
            answer.warnings.extend(lost);
        }
        if let Some(first) = sessions::validate::check(api, &messages).first() {
            let why = format!("the result breaks {}: message {}: {}", first.rule, first.message, first.what);
            let answer = answer.rejected("invalid", why);
            return Ok(Compacted { score: Some(made.score), ..Compacted::told(answer) });
        }
        answer.valid_for = valid_for;
        answer.status = Status::Planned;
        if self.config.costs {
            let asked = answer.cost.as_ref().and_then(|it| it.spent_dollars).unwrap_or(0.0);
            let after = After { tokens: made.outcome.tokens, prefix: made.outcome.prefix_tokens, asked };
            answer.next_cost = Some(self.next_cost(&measured, ask, Some(after)));
        }
        let bytes = match ask.to {
            To::Plan => None,
            To::File(_) | To::Bytes | To::Session | To::Agent(_) => {
                let bytes = self.put(opened, ask, &made, messages, &mut answer)?;
                answer.status = Status::Compacted;
                let overhead = measured.counter.overhead();
                self.note_overhead(measured.history, overhead, answer.session_id.as_deref());
                self.remember(opened, ask, made.summary.as_deref(), &mut answer.warnings);
                if let (Some(written), Some(need)) = (&known.summary, &made.plan.need)
                    && measured.history.meta.session.is_some()
                    && let Err(error) = self.keep_snapshot(measured.history, need.to, written)
                {
                    let what = format!("the summary could not be kept for the next time: {error}");
                    answer.warnings.push(what);
                }
                bytes
            }
        };
        answer.summary = made.summary;
        let (history, score) = (Some(made.outcome.history), Some(made.score));
        Ok(Compacted { answer, history, score, bytes, written: known.summary })
    }

    /// What is known before the summary is made part of an outcome: the text of a model, where one writes it. Nothing
    /// if it is asked for first.
    fn drafted(
        &self,
        opened: &Opened,
        measured: &Measured<'_>,
        ask: &Ask,
        plan: &Plan,
        heard: Option<&Heard>,
        answer: &mut CompactAnswer,
    ) -> Result<Option<Known>> {
        let mut known = Known::default();
        if ask.written.is_some() {
            known.summary.clone_from(&ask.written);
            return Ok(Some(known));
        }
        match self.written_summary(opened, measured, ask, plan, &known, heard)? {
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
                answer.status = Status::NeedsAnswer;
                answer.summarizer = "host".to_owned();
                answer.reason = plan.reason.text.clone();
                answer.handle = Some(handle);
                answer.ask = Some(ask);
                answer.next = next;
                return Ok(None);
            }
        }
        if let Some(edit) = &ask.edit {
            known.summary = self.edited(measured, ask, plan, &known, edit)?;
        }
        Ok(Some(known))
    }

    /// Archives what goes, and puts the outcome where it was asked for; the bytes, with [`To::Bytes`]. `messages`: the
    /// outcome as messages of an API, which is what is written where one was named.
    fn put(
        &self,
        opened: &Opened,
        ask: &Ask,
        made: &Made,
        messages: Vec<u8>,
        answer: &mut CompactAnswer,
    ) -> Result<Option<Vec<u8>>> {
        let after = &made.outcome.history;
        let archived = self.archive(opened, &made.plan, ask, made.outcome.tokens, made.summary.as_deref())?;
        if !self.store.keeps() {
            let what =
                "nothing is archived (store.persistence = \"none\"): the handles in the result lead nowhere";
            answer.warnings.push(what.to_owned());
        }
        answer.handle = Some(archived.session);
        let written = |warnings: &mut Vec<String>| match ask.messages_as {
            Some(_) => Ok(messages),
            None => self.written(opened, after, Mode::New, warnings).map(|it| it.0),
        };
        match &ask.to {
            To::File(path) => {
                crate::files::install(path, &written(&mut answer.warnings)?)?;
                answer.output = Some(path.display().to_string());
            }
            To::Bytes => return written(&mut answer.warnings).map(Some),
            To::Agent(agent) => {
                let it = self.carry(opened, after, *agent, &mut answer.warnings)?;
                answer.installed(it);
            }
            To::Session => {
                let job = if made.only_outputs() { Job::Prune } else { Job::Compact };
                let it = self.install(opened, after, job, &archived.compaction, &mut answer.warnings)?;
                answer.installed(it);
            }
            To::Plan => {}
        }
        Ok(None)
    }

    /// Notes what system prompt and tools take, for the estimates of a session that was installed.
    fn note_overhead(&self, history: &History, overhead: u64, installed: Option<&str>) {
        let Some(installed) = installed.filter(|_| overhead > 0) else { return };
        let scope = self.scope(history);
        for id in [Some(installed), history.meta.session.as_deref()].into_iter().flatten() {
            // Without it the next estimate knows less, and that is all.
            let _ = self.store.mark(&scope, &overhead_mark(id), &overhead.to_string(), self.now);
        }
    }

    fn blank(&self, opened: &Opened, ask: &Ask, measured: &Measured<'_>) -> CompactAnswer {
        let messages = measured.whole().messages().len();
        let some = measured.whole().messages().iter().filter(|it| plan::counts(it));
        let tokens = some.map(|it| measured.counter.message(it)).sum();
        CompactAnswer {
            contract: CONTRACT,
            status: Status::Noop,
            native_status: String::new(),
            reason_code: String::new(),
            reason: String::new(),
            profile: ask.profile.name.clone(),
            trigger: cause_name(ask.cause).to_owned(),
            summarizer: "offline".to_owned(),
            usage: UsageInfo::default(),
            cost: None,
            next_cost: None,
            session: session_info(opened),
            tokens_before: tokens,
            tokens_after: tokens,
            overhead: measured.overhead,
            method: method_info(&measured.counter),
            window: measured.limits.window,
            used_percent: percent(tokens + measured.overhead, measured.limits.window),
            used_percent_after: None,
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
            warnings: warnings(opened, measured),
        }
    }
}

impl CompactAnswer {
    /// Says that nothing was done, and why.
    fn rejected(self, code: &str, why: String) -> Self {
        Self { status: Status::Rejected, reason_code: code.to_owned(), reason: why, ..self }
    }

    /// Says what was made.
    fn made(&mut self, made: &Made) {
        self.split = made.plan.split;
        self.pruned = pruned(&made.plan.ops);
        self.tokens_after = made.outcome.tokens;
        self.used_percent_after = percent(made.outcome.tokens + self.overhead, self.window);
        if made.outcome.orphans > 0 {
            self.warnings.push(format!(
                "{} tool outputs were left out: each is a second output of a call that is summarised",
                made.outcome.orphans
            ));
        }
        self.messages_after = made.outcome.history.messages().len();
        self.first_changed = Some(made.outcome.first_changed);
        self.prefix_tokens = made.outcome.prefix_tokens;
        self.facts = fact_counts(&made.score);
        self.facts_kept = made.score.kept.map(round);
        self.reason = made.plan.reason.text.clone();
    }

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

pub(super) fn fact_counts(score: &Score) -> BTreeMap<String, FactCount> {
    score.classes.iter().map(|(class, it)| (class.name().to_owned(), fact_count(it))).collect()
}

pub(super) fn fact_count(it: &score::Tally) -> FactCount {
    FactCount { found: it.found, kept: it.kept, recoverable: it.recoverable, lost: it.lost }
}

/// The APIs that would accept a history.
fn valid_for(history: &History) -> Vec<String> {
    let apis = Format::ALL.into_iter().filter(|it| it.is_wire());
    apis.filter(|api| sessions::validate::check(*api, &sessions::messages(history, *api).0).is_empty())
        .map(|it| it.name().to_owned())
        .collect()
}

/// Percent of the window, with one decimal.
pub(super) fn percent(tokens: u64, window: Option<u64>) -> Option<f64> {
    window.filter(|it| *it > 0).map(|it| (tokens as f64 * 1000.0 / it as f64).round() / 10.0)
}

pub(super) fn round(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}
