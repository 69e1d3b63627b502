//! Builds the request of a dialogue's current stage, with as much of the transcript as fits.

use super::{Dialogue, Fault, GaveUp, InputReduction, MIN_INPUT, SAFE_PERCENT, Stage, SummaryRequest};
use crate::summary::model::{ModelRequest, Speaker, Turn};
use crate::summary::offline;
use crate::summary::prompt::{self, Fill, PromptText};
use crate::summary::render::{self, Excerpt, Position};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterAnswer {
    /// The answer is the summary.
    Final,
    /// The answer is notes on a chunk; the next chunk begins at `at`.
    Chunk { at: Position, end: bool },
    /// The answer replaces this many notes at the front.
    Folded(usize),
}

impl Dialogue {
    /// The request of the current stage, and what follows its answer.
    pub(super) fn ask(&self, request: &SummaryRequest<'_>) -> Result<(ModelRequest, AfterAnswer), GaveUp> {
        match &self.stage {
            Stage::Whole => Ok(match self.whole(request) {
                _ if request.host => (
                    self.request_for(request, self.facts(request), PromptText::Host, (1, 1)),
                    AfterAnswer::Final,
                ),
                Some(excerpts) => {
                    (self.request_for(request, excerpts, PromptText::Ask, (1, 1)), AfterAnswer::Final)
                }
                None => {
                    let mut smaller = self.clone();
                    smaller.reduce_input(request);
                    return smaller.ask(request);
                }
            }),
            Stage::Chunk { at, number, .. } => {
                let excerpts = Self::chunk_excerpts(request);
                let room = self.room(request).unwrap_or(u64::MAX);
                let (some, next) = render::chunk(&excerpts, *at, room, &Self::size(request));
                let end = next.0 >= excerpts.len();
                let part = (*number, self.parts(request).max(*number));
                Ok((
                    self.request_for(request, some, PromptText::Chunk, part),
                    AfterAnswer::Chunk { at: next, end },
                ))
            }
            Stage::Fold { notes } => {
                let room = self.room(request).unwrap_or(u64::MAX);
                let front = notes_to_merge(notes, room, request);
                let last = front == notes.len();
                let excerpts =
                    notes[..front].iter().enumerate().map(|(number, it)| note(number, it)).collect();
                let text = if last { PromptText::Ask } else { PromptText::Fold };
                let next = if last { AfterAnswer::Final } else { AfterAnswer::Folded(front) };
                Ok((self.request_for(request, excerpts, text, (1, 1)), next))
            }
            Stage::Repair { draft, faults, notes } => {
                Ok((self.repair(request, draft, faults, notes.as_deref()), AfterAnswer::Final))
            }
            Stage::Verify { draft } => {
                let own = request.own.verify.as_deref();
                let excerpts = self.whole(request).unwrap_or_default();
                let mut ask = self.request_for(request, excerpts, PromptText::Ask, (1, 1));
                let fill = self.fill(request, "", "", &[], (1, 1));
                let look = own.map_or_else(
                    || prompt::filled(PromptText::Verify, &fill),
                    |it| prompt::template(it, &fill),
                );
                ask.turns.push(Turn { speaker: Speaker::Model, text: draft.clone() });
                ask.turns.push(Turn { speaker: Speaker::Us, text: look });
                Ok((ask, AfterAnswer::Final))
            }
            Stage::Over { why } => Err(why.clone()),
            Stage::Done { .. } => Err(GaveUp::Bound("the dialogue is over".to_owned())),
        }
    }

    fn request_for(
        &self,
        request: &SummaryRequest<'_>,
        excerpts: Vec<Excerpt>,
        text: PromptText,
        part: (usize, usize),
    ) -> ModelRequest {
        let fence = render::fence(excerpts.iter().map(|it| it.text.as_str()));
        let transcript = render::fenced(&excerpts, &fence);
        let prefix = request
            .prefix
            .filter(|_| text == PromptText::Ask && self.reduction == 0 && self.stage == Stage::Whole);
        let mut fill = self.fill(request, &fence, if prefix.is_some() { "" } else { &transcript }, &[], part);
        if matches!(text, PromptText::Chunk | PromptText::Fold) {
            fill.tokens = self.note_size(request);
        }
        let mut system = prompt::filled(PromptText::System, &fill);
        if let Some(own) = &request.own.system {
            system.push_str("\n\n");
            system.push_str(&prompt::template(own, &fill));
        }
        let mut said = prompt::filled(if prefix.is_some() { PromptText::Prefix } else { text }, &fill);
        if text == PromptText::Ask && request.own.again.is_none() && excerpts.iter().any(is_earlier) {
            said.push_str("\n\n");
            said.push_str(prompt::filled(PromptText::Again, &fill).trim());
        }
        let turns = vec![Turn { speaker: Speaker::Us, text: said }];
        ModelRequest { system, turns, prefix: prefix.cloned(), max_output: self.max_output(request) }
    }

    /// Asks again, naming the faults; without the transcript if it does not fit or only the length was wrong.
    fn repair(
        &self,
        request: &SummaryRequest<'_>,
        draft: &str,
        faults: &[Fault],
        notes: Option<&[String]>,
    ) -> ModelRequest {
        let long = faults.iter().all(|it| matches!(it, Fault::TooLong { .. } | Fault::Grown { .. }));
        if long && !draft.is_empty() {
            let fence = render::fence([draft].into_iter());
            let transcript = format!("[{fence} begin]\n{draft}\n[{fence} end]");
            let fill = self.fill(request, &fence, &transcript, faults, (1, 1));
            let turns = vec![Turn { speaker: Speaker::Us, text: prompt::filled(PromptText::Shorten, &fill) }];
            return ModelRequest {
                system: prompt::filled(PromptText::System, &fill),
                turns,
                prefix: None,
                max_output: self.max_output(request),
            };
        }
        let excerpts = match notes {
            Some(notes) => notes.iter().enumerate().map(|(number, it)| note(number, it)).collect(),
            None if request.host => self.facts(request),
            None => {
                let draft = (request.count)(draft);
                let fits = |some: &Vec<Excerpt>| {
                    let size: u64 = some.iter().map(Self::size(request)).sum();
                    self.room(request).is_none_or(|room| size + draft <= room)
                };
                self.whole(request).filter(fits).unwrap_or_else(|| self.facts(request))
            }
        };
        let mut ask = self.request_for(
            request,
            excerpts,
            if request.host { PromptText::Host } else { PromptText::Ask },
            (1, 1),
        );
        let fill = self.fill(request, "", "", faults, (1, 1));
        if !draft.trim().is_empty() {
            ask.turns.push(Turn { speaker: Speaker::Model, text: draft.to_owned() });
            ask.turns.push(Turn { speaker: Speaker::Us, text: prompt::filled(PromptText::Repair, &fill) });
        } else if let Some(last) = ask.turns.last_mut() {
            last.text.push_str("\n\n");
            last.text.push_str(&prompt::filled(PromptText::Repair, &fill));
        }
        ask
    }

    /// The facts of the region as an excerpt: enough for a host, whose model remembers the conversation.
    fn facts(&self, request: &SummaryRequest<'_>) -> Vec<Excerpt> {
        let ask = offline::OfflineRequest {
            region: request.region.clone(),
            cleared: &[],
            kept: &[],
            spec: request.spec,
            max_tokens: request.max_tokens,
            budget_for_shares: None,
            style: request.style,
            focus: request.focus,
            pins: &[],
            header: None,
        };
        let text = offline::write(request.history, request.ledger, &ask, request.count);
        let prompts_only: Vec<Excerpt> = request.excerpts.iter().filter(|it| it.prompt).cloned().collect();
        // The ledger quotes the session unmasked.
        let text = history::secrets::Redactor::default().redact(&text);
        if text.is_empty() {
            prompts_only
        } else {
            vec![Excerpt { who: "facts".to_owned(), ..note(0, &text) }]
        }
    }

    /// The excerpts at the current reduction, if they fit.
    pub(super) fn whole(&self, request: &SummaryRequest<'_>) -> Option<Vec<Excerpt>> {
        let size = Self::size(request);
        let room = self.room(request).unwrap_or(u64::MAX);
        let all = |some: &[Excerpt]| some.iter().map(&size).sum::<u64>();
        let mut excerpts = request.excerpts.to_vec();
        let reduction = *request.reductions.get(self.reduction)?;
        let cuts = request.reductions.get(..=self.reduction).unwrap_or_default();
        if let Some(InputReduction::Outputs(chars)) =
            cuts.iter().find(|it| matches!(it, InputReduction::Outputs(_)))
        {
            excerpts = render::cut_outputs(&excerpts, *chars);
        }
        let over = |percent: u64| all(&excerpts) <= room.saturating_mul(100) / (100 - percent.min(99));
        match reduction {
            InputReduction::Whole | InputReduction::Outputs(_) => {}
            InputReduction::WithoutOutputs(percent) if over(percent) => {
                render::drop_outputs(&mut excerpts, room, &size);
            }
            InputReduction::Oldest(percent) if over(percent) => {
                render::drop_oldest(&mut excerpts, room, &size);
            }
            InputReduction::WithoutOutputs(_) | InputReduction::Oldest(_) | InputReduction::Chunks => {
                return None;
            }
        }
        (all(&excerpts) <= room).then_some(excerpts)
    }

    /// The excerpts that chunks are made of, with outputs cut: a single whole output could fill many chunks.
    fn chunk_excerpts(request: &SummaryRequest<'_>) -> Vec<Excerpt> {
        let cut = request
            .reductions
            .iter()
            .find_map(|it| if let InputReduction::Outputs(chars) = it { Some(*chars) } else { None });
        cut.map_or_else(|| request.excerpts.to_vec(), |it| render::cut_outputs(request.excerpts, it))
    }

    pub(super) fn parts(&self, request: &SummaryRequest<'_>) -> usize {
        let size = Self::size(request);
        let all: u64 = Self::chunk_excerpts(request).iter().map(size).sum();
        self.room(request).map_or(1, |it| all.div_ceil(it.max(1)) as usize)
    }

    /// Tokens of the transcript that fit into one request.
    fn room(&self, request: &SummaryRequest<'_>) -> Option<u64> {
        let window = request
            .window
            .map(|it| it.saturating_sub(self.max_output(request)).saturating_mul(SAFE_PERCENT) / 100);
        let most = match (window, self.limit) {
            (Some(one), Some(other)) => one.min(other),
            (one, other) => one.or(other)?,
        };
        let fill = self.fill(request, "", "", &[], (1, 1));
        let frame = prompt::filled(PromptText::System, &fill) + &prompt::filled(PromptText::Ask, &fill);
        Some(most.saturating_sub((request.count)(&frame)).max(MIN_INPUT / 2))
    }

    /// Maximum output tokens of a request.
    pub(super) fn max_output(&self, request: &SummaryRequest<'_>) -> u64 {
        // Half as much again: our count differs from the model's, and a cut-off answer is useless.
        (request.max_tokens.saturating_mul(3) / 2).saturating_add(request.thinking)
    }

    /// Maximum tokens of the notes on a chunk: several must fit into one request to be merged.
    pub(super) fn note_size(&self, request: &SummaryRequest<'_>) -> u64 {
        self.room(request).map_or(request.max_tokens, |it| request.max_tokens.min(it / 4)).max(40)
    }

    fn size<'m>(request: &'m SummaryRequest<'_>) -> impl Fn(&Excerpt) -> u64 + 'm {
        // 12 tokens for the line in front: fence, number, speaker.
        |it| (request.count)(&it.text) + 12
    }

    fn fill<'f>(
        &self,
        request: &'f SummaryRequest<'_>,
        fence: &'f str,
        transcript: &'f str,
        faults: &'f [Fault],
        part: (usize, usize),
    ) -> Fill<'f> {
        let mut fill = Fill {
            texts: request.texts,
            fence,
            transcript,
            spec: request.spec,
            tokens: request.max_tokens,
            language: request.language,
            style: request.style,
            focus: request.focus,
            pins: request.pins,
            faults,
            part,
            asked: String::new(),
        };
        let own = request.own.again.as_ref().filter(|_| request.excerpts.iter().any(is_earlier));
        if let Some(own) = own.or(request.own.ask.as_ref()) {
            fill.asked = prompt::template(own, &fill);
        }
        fill
    }
}

fn is_earlier(excerpt: &Excerpt) -> bool {
    excerpt.who == render::EARLIER
}

fn note(number: usize, text: &str) -> Excerpt {
    Excerpt {
        unit: number,
        message: number,
        who: "notes".to_owned(),
        text: text.to_owned(),
        output: false,
        prompt: false,
    }
}

/// Number of notes at the front to merge: all if they fit, otherwise as many as do, but at least two.
fn notes_to_merge(notes: &[String], room: u64, request: &SummaryRequest<'_>) -> usize {
    let mut used = 0;
    for (index, it) in notes.iter().enumerate() {
        used += (request.count)(it) + 12;
        if used > room {
            return index.clamp(2, notes.len().max(2)).min(notes.len());
        }
    }
    notes.len()
}
