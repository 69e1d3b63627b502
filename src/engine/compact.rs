//! The main job: plan, archive, summary, outcome, checks, and the result where it was asked for.

use std::cell::OnceCell;
use std::time::Duration;

use super::compacted::{About, Checked, CompactOutcome, Compacted, Output, Question, Rejection, Summarizer};
use super::make::Attempt;
use super::marks::overhead_mark;
use super::spending::After;
use super::summarize::{Drafted, Heard};
use super::{Ask, Engine, Event, Known, Measured, Opened, To, method_info, session_info, warnings};
use crate::agents::reach::Job;
use crate::config::Choice;
use compaction::plan::{self, Plan};
use history::History;
use history::error::Result;
use history::parallel;
use sessions::{self, Format, Mode};

/// What a compaction is done with.
struct Call<'a> {
    opened: &'a Opened,
    ask: &'a Ask,
    measured: &'a Measured<'a>,
    /// The answer of the calling agent's model, where it was asked.
    heard: Option<&'a Heard>,
    /// Filled once something is to be written; without it nobody is told or asked.
    begun: Option<&'a OnceCell<Event>>,
}

impl Engine {
    /// Compacts a session as `ask` says, tells the listener, and runs the user's commands when something is written.
    ///
    /// # Errors
    /// Of the store, of files and of the session's place; what was decided against is a
    /// [`CompactOutcome::Rejected`] and no error.
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
        let mut compacted = self.compact_from(opened, ask, heard, Some(&begun));
        // Nothing was to be written: of that nobody is told.
        let Some(Event::Started { percent, .. }) = begun.get() else { return compacted };
        let ended = match &compacted {
            Ok(compacted) => compacted.event(ask, *percent),
            Err(error) => Event::Failed { reason_code: "failed".to_owned(), reason: error.to_string() },
        };
        self.tell(&ended);
        let refused =
            |it: &Compacted| matches!(it.outcome, CompactOutcome::Rejected(Rejection::HookRefused(_)));
        if compacted.as_ref().is_ok_and(refused) {
            return compacted;
        }
        let mut warnings = Vec::new();
        if (ask.options.auto || matches!(ended, Event::Compacted { .. }))
            && let Err(error) =
                self.count_failure(&opened.session.history, matches!(ended, Event::Failed { .. }))
        {
            // What was written is written.
            warnings.push(format!("whether it failed could not be noted: {error}"));
        }
        warnings.extend(self.after(&ended, Duration::MAX));
        if let Ok(compacted) = &mut compacted {
            compacted.warnings.extend(warnings);
        }
        compacted
    }

    /// Compacts a session; nobody is told of it.
    pub(super) fn made(&self, opened: &Opened, ask: &Ask) -> Result<Compacted> {
        self.compact_from(opened, ask, None, None)
    }

    fn compact_from(
        &self,
        opened: &Opened,
        ask: &Ask,
        heard: Option<&Heard>,
        begun: Option<&OnceCell<Event>>,
    ) -> Result<Compacted> {
        let whole = &opened.session.history;
        let mut ask = ask.clone();
        ask.options.pin = self.pins(whole, &ask.options.pin)?;
        let ask = &ask;
        let base = heard.map(|it| {
            let messages = whole.messages().iter().take(it.count()).cloned().collect();
            History::new(messages, whole.meta.clone())
        });
        let mut measured = self.measure_history(base.as_ref().unwrap_or(whole), ask, None);
        measured.grown = base.is_some().then_some(whole);
        let plan = self.plan(&measured, ask, None);
        let about = about(opened, ask, &measured, &plan);
        let (mut summarizer, mut warnings) = (Summarizer::default(), warnings(opened, &measured));
        let call = Call { opened, ask, measured: &measured, heard, begun };
        let outcome = self.outcome(&call, plan, &mut summarizer, &mut warnings)?;
        Ok(Compacted { about, outcome, summarizer, warnings })
    }

    /// Carries a plan out as far as it was asked for.
    fn outcome(
        &self,
        call: &Call<'_>,
        plan: Plan,
        summarizer: &mut Summarizer,
        warnings: &mut Vec<String>,
    ) -> Result<CompactOutcome> {
        let Call { opened, ask, measured, .. } = *call;
        if !plan.act {
            let carried = match ask.to {
                // There is nothing to compact, but it is to go over all the same.
                To::Agent(agent) => Some(self.carry(opened, measured.history, agent, warnings)?),
                To::Plan | To::File(_) | To::Bytes | To::Session => None,
            };
            return Ok(CompactOutcome::Noop { code: plan.reason.code, reason: plan.reason.text, carried });
        }
        let rejected = |why| Ok(CompactOutcome::Rejected(why));
        if ask.to == To::Session
            && let Some(why) = self.cooling_down(measured.history, ask.profile.trigger.cool_down)
        {
            return rejected(Rejection::CoolingDown(why));
        }
        // Before anybody is paid. The calling agent's model is only asked by now: what it is asked for may never come.
        let asks = ask.summarizer == Choice::Host && ask.sampling.is_none();
        if !asks && let Err(why) = self.begin(call) {
            return rejected(Rejection::HookRefused(why));
        }
        let known = match self.drafted(call, &plan, summarizer, warnings)? {
            Ok(known) => known,
            Err(question) => return Ok(CompactOutcome::NeedsAnswer(question)),
        };
        if asks && let Err(why) = self.begin(call) {
            return rejected(Rejection::HookRefused(why));
        }
        let handle = self.session_handle(opened)?;
        let attempt = match self.make(measured, ask, plan, &handle, &known) {
            Ok(attempt) => attempt,
            Err(why) => return rejected(Rejection::Plan(why)),
        };
        if attempt.outcome.orphans > 0 {
            warnings.push(format!(
                "{} tool outputs were left out: each is a second output of a call that is summarised",
                attempt.outcome.orphans
            ));
        }
        if let Some(min_kept) = &ask.options.min_kept
            && let Some(missed) = min_kept.missed(&attempt.score)
        {
            let lost = min_kept.lost(&attempt.score);
            let budget_needed =
                self.budget_that_keeps(measured, ask, attempt.outcome.tokens, &handle, &known);
            let remedy = match budget_needed {
                Some(tokens) => format!("--budget {tokens} would keep it"),
                None => "no budget below the whole would keep it".to_owned(),
            };
            let reason = format!("this would keep {missed}; {remedy}");
            let attempt = Box::new(attempt);
            return rejected(Rejection::LostTooMuch { attempt, reason, lost, budget_needed });
        }
        let api = ask.messages_as.unwrap_or(opened.session.format.api());
        let after = &attempt.outcome.history;
        let (valid_for, (messages, lost)) = parallel::join(
            || valid_for(after),
            || sessions::wire::messages_of(after, Some(opened.session.format), api),
        );
        if ask.messages_as.is_some() {
            warnings.extend(lost);
        }
        if let Some(first) = sessions::validate::check(api, &messages).first() {
            let reason =
                format!("the result breaks {}: message {}: {}", first.rule, first.message, first.what);
            return rejected(Rejection::Invalid { attempt: Box::new(attempt), reason });
        }
        let next_cost = self.config.costs.then(|| {
            let asked = summarizer.cost.as_ref().and_then(|it| it.spent_dollars).unwrap_or(0.0);
            let outcome = &attempt.outcome;
            let after = After { tokens: outcome.tokens, prefix: outcome.prefix_tokens, asked };
            self.next_cost(measured, ask, Some(after))
        });
        let checked = Box::new(Checked { attempt, valid_for, next_cost, written: known.summary });
        if ask.to == To::Plan {
            return Ok(CompactOutcome::Planned(checked));
        }
        let (handle, output) = self.put(opened, ask, &checked.attempt, messages, warnings)?;
        self.note(call, &checked, &output, warnings);
        Ok(CompactOutcome::Compacted { checked, handle, output })
    }

    /// Where something is to be written, tells that it begins, and asks the user's command. `Err` says why nothing may
    /// be done.
    fn begin(&self, call: &Call<'_>) -> Result<(), String> {
        let Some(begun) = call.begun.filter(|_| call.ask.to != To::Plan) else { return Ok(()) };
        let started = begun.get_or_init(|| self.started(call.opened, call.ask, call.measured));
        self.tell(started);
        self.before(started, Duration::MAX)
    }

    /// What is known before the summary is made part of an outcome: the text of a model, where one writes it. `Err` is
    /// what the calling agent's model is asked first.
    fn drafted(
        &self,
        call: &Call<'_>,
        plan: &Plan,
        summarizer: &mut Summarizer,
        warnings: &mut Vec<String>,
    ) -> Result<Result<Known, Question>> {
        let Call { opened, ask, measured, heard, .. } = *call;
        let mut known = Known::default();
        if ask.written.is_some() {
            known.summary.clone_from(&ask.written);
            return Ok(Ok(known));
        }
        match self.written_summary(opened, measured, ask, plan, &known, heard)? {
            Drafted::Offline(why) => warnings.extend(why),
            Drafted::Priced(cost) => {
                let what = "nobody was asked: the offline summary stands here for the model's";
                warnings.push(what.to_owned());
                summarizer.cost = Some(cost);
            }
            Drafted::Text { text, by, notes } => {
                *summarizer = by;
                warnings.extend(notes);
                known.summary = Some(text);
            }
            Drafted::Asked(question) => return Ok(Err(question)),
        }
        if let Some(edit) = &ask.edit {
            known.summary = self.edited(measured, ask, plan, &known, edit)?;
        }
        Ok(Ok(known))
    }

    /// Archives what goes, and puts the outcome where it was asked for; the handle of the original. `messages`: the
    /// outcome as messages of an API, which is what is written where one was named.
    fn put(
        &self,
        opened: &Opened,
        ask: &Ask,
        attempt: &Attempt,
        messages: Vec<u8>,
        warnings: &mut Vec<String>,
    ) -> Result<(String, Output)> {
        let (after, summary) = (&attempt.outcome.history, attempt.summary.as_deref());
        let archived = self.archive(opened, &attempt.plan, ask, attempt.outcome.tokens, summary)?;
        if !self.store.keeps() {
            let what =
                "nothing is archived (store.persistence = \"none\"): the handles in the result lead nowhere";
            warnings.push(what.to_owned());
        }
        let written = |warnings: &mut Vec<String>| match ask.messages_as {
            Some(_) => Ok(messages),
            None => self.written(opened, after, Mode::New, warnings).map(|it| it.0),
        };
        let output = match &ask.to {
            To::File(path) => {
                crate::files::install(path, &written(warnings)?)?;
                Output::File(path.display().to_string())
            }
            To::Plan | To::Bytes => Output::Bytes(written(warnings)?),
            To::Agent(agent) => Output::Session(self.carry(opened, after, *agent, warnings)?),
            To::Session => {
                let job = if attempt.only_outputs() { Job::Prune } else { Job::Compact };
                let it = self.install(opened, after, job, &archived.compaction, warnings)?;
                warnings.extend(super::repair::left_behind(opened)?);
                Output::Session(it)
            }
        };
        Ok((archived.session, output))
    }

    /// Notes for later calls what a compaction that was written tells. What could not be noted is a warning.
    fn note(&self, call: &Call<'_>, checked: &Checked, output: &Output, warnings: &mut Vec<String>) {
        let Call { opened, ask, measured, .. } = *call;
        let Checked { attempt, written, .. } = checked;
        if let Output::Session(installed) = output {
            self.note_overhead(measured.history, measured.counter.overhead(), &installed.session_id);
        }
        self.remember(opened, ask, attempt.summary.as_deref(), warnings);
        if let (Some(written), Some(need)) = (written, &attempt.plan.need)
            && measured.history.meta.session.is_some()
            && let Err(error) = self.keep_snapshot(measured.history, need.to, written)
        {
            warnings.push(format!("the summary could not be kept for the next time: {error}"));
        }
    }

    /// Notes what system prompt and tools take, for the estimates of a session that was installed.
    fn note_overhead(&self, history: &History, overhead: u64, installed: &str) {
        if overhead == 0 {
            return;
        }
        let scope = self.scope(history);
        for id in [Some(installed), history.meta.session.as_deref()].into_iter().flatten() {
            // Without it the next estimate knows less, and that is all.
            let _ = self.store.mark(&scope, &overhead_mark(id), &overhead.to_string(), self.now);
        }
    }
}

fn about(opened: &Opened, ask: &Ask, measured: &Measured<'_>, plan: &Plan) -> About {
    let messages = measured.whole().messages();
    let counted = messages.iter().filter(|it| plan::counts(it));
    About {
        session: session_info(opened),
        profile: ask.profile.name.clone(),
        native: ask.profile.native.clone(),
        cause: ask.cause(),
        tokens: counted.map(|it| measured.counter.message(it)).sum(),
        planned_tokens: measured.tokens,
        overhead: measured.overhead,
        method: method_info(&measured.counter),
        window: measured.limits.window,
        messages: messages.len(),
        split: plan.split,
    }
}

/// The APIs that would accept a history.
fn valid_for(history: &History) -> Vec<String> {
    let apis = Format::ALL.into_iter().filter(|it| it.is_wire());
    apis.filter(|api| sessions::validate::check(*api, &sessions::messages(history, *api).0).is_empty())
        .map(|it| it.name().to_owned())
        .collect()
}
