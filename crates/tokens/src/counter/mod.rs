//! Counts the tokens of texts, messages and histories, for all crates.

mod calibration;

use std::ops::Add;
use std::sync::Arc;

use super::estimate::{self, Heuristic};
use super::exact::{self, Encoding};
use super::media;
use super::rates::{Maker, Rates};
use super::reports::reports;
use super::{Algorithm, Categories, Estimator, Filled, Method, MethodKind, Tokenizer, shape};
use history::parallel;
use history::{History, Kind, Measure, Media, Message, Opaque, Output, Part, Role, Text, TextSize, Usage};

/// Counts tokens. One counter serves one plan, so that trigger, split, budget and acceptance use the same
/// figures.
///
/// With [`Tokenizer::Auto`] it learns from the session what a token is. If providers reported usage, the size
/// of each text is estimated from its shape and scaled to match the growth from report to report, and the
/// overhead is what the last report holds beyond the messages. So overhead plus messages is exactly what the
/// provider counted there, and what follows is estimated. If nothing was reported, texts are counted with
/// o200k; for makers other than OpenAI, whose tokenizers are not public, times a factor that was measured on
/// the session corpus.
///
/// The tokens of a message are the sum of its parts plus its frame; those of a history are the sum of its
/// messages.
///
/// ```
/// use history::{History, Kind, Message, Meta, Role, Text};
/// use tokens::{TokenCounter, Tokenizer};
///
/// let prompt = Message::text(Role::User, Kind::Said, "Fix the tests.");
/// let history = History::new(vec![prompt], Meta::default());
/// let counter = TokenCounter::new(&history, Tokenizer::named("o200k")?, None);
/// assert_eq!(counter.text(&Text::new("Fix the tests.")), 4);
/// assert_eq!(counter.message(&history.messages()[0]), 4);
/// # Ok::<(), history::error::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TokenCounter {
    basis: Basis,
    maker: Maker,
    model: Arc<str>,
    rates: Rates,
    scale: f64,
    overhead: u64,
    hidden: u64,
    method: Method,
    anchored: bool,
    reported: Option<(usize, u64)>,
    implausible_report: Option<(usize, u64)>,
}

/// Minimum number of messages per thread: counting that many again takes most of a millisecond.
pub const MIN_MESSAGES_PER_THREAD: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Basis {
    /// By shape, with the maker's rates.
    Shape,
    /// Exactly, with the maker's rates.
    Calibrated,
    Encoding(Encoding),
    /// As one of the imitated systems estimates.
    Heuristic(Heuristic),
}

impl TokenCounter {
    /// A counter for this history. `overhead` is the tokens of system prompt and tools, if the caller knows
    /// them.
    pub fn new(history: &History, tokenizer: Tokenizer, overhead: Option<u64>) -> Self {
        Self::for_model(history, history.meta.model.as_deref(), tokenizer, overhead)
    }

    /// [`Self::new`] for a history that will be sent to this model, whichever model replied before.
    pub fn for_model(
        history: &History,
        model: Option<&str>,
        tokenizer: Tokenizer,
        overhead: Option<u64>,
    ) -> Self {
        let model = model.unwrap_or_default().to_ascii_lowercase();
        let maker = Maker::of(&model);
        let counter = |basis, kind, estimator, margin_percent| {
            let mut it = Self::bare(&model, basis, Method { kind, estimator, anchor: None, margin_percent });
            if matches!(basis, Basis::Calibrated | Basis::Encoding(_)) {
                let encoding = if let Basis::Encoding(it) = basis { it } else { Encoding::O200k };
                count_ahead(encoding, history);
            }
            it.anchor(history, overhead);
            it
        };
        match tokenizer {
            Tokenizer::Auto => {
                let mut reported = Self::by_shape(&model);
                reported.anchor(history, overhead);
                if reported.anchored {
                    return reported;
                }
                let (kind, margin) = match maker {
                    Maker::OpenAi => (MethodKind::Exact, MARGIN_CALIBRATED),
                    Maker::Other if model.is_empty() => (MethodKind::Exact, MARGIN_OTHER_MODEL),
                    Maker::Anthropic | Maker::Other if reported.rates.measured => {
                        (MethodKind::Heuristic, MARGIN_CALIBRATED)
                    }
                    // Google's thoughts are hidden, and in some agents sent again.
                    Maker::Anthropic | Maker::Google | Maker::Other => {
                        (MethodKind::Heuristic, MARGIN_OTHER_MODEL)
                    }
                };
                let mut it = counter(Basis::Calibrated, kind, Estimator::O200k, margin);
                it.method.margin_percent += (it.reasoning_share(history) * (100.0 - margin)).ceil();
                Self { implausible_report: reported.implausible_report, ..it }
            }
            Tokenizer::Fixed(estimator) => {
                let exact = if maker == Maker::OpenAi { MARGIN_CALIBRATED } else { MARGIN_OTHER_MODEL };
                let (basis, kind, margin) = match estimator.algorithm() {
                    Algorithm::Exact(it) => (Basis::Encoding(it), MethodKind::Exact, exact),
                    Algorithm::Heuristic(it) => {
                        (Basis::Heuristic(it), MethodKind::Heuristic, MARGIN_HEURISTIC)
                    }
                };
                counter(basis, kind, estimator, margin)
            }
        }
    }

    /// Whether a provider reported a credible usage for this history: then that is the basis, and the texts
    /// are needed only in the form that [`measured_stub`] leaves.
    ///
    /// [`measured_stub`]: super::measured_stub
    pub fn is_reported(history: &History) -> bool {
        let model = history.meta.model.as_deref().unwrap_or_default().to_ascii_lowercase();
        let (counter, messages) = (Self::by_shape(&model), history.messages());
        let (mut next, mut before) = (0, 0.0);
        reports(history, counter.rates).any(|it| {
            before += messages[next..it.start].iter().map(|it| counter.raw(it)).sum::<f64>();
            next = it.start;
            it.is_credible(before)
        })
    }

    fn by_shape(model: &str) -> Self {
        let method = Method {
            kind: MethodKind::Reported,
            estimator: Estimator::O200k,
            anchor: None,
            margin_percent: MARGIN_REPORTED,
        };
        Self::bare(model, Basis::Shape, method)
    }

    fn bare(model: &str, basis: Basis, method: Method) -> Self {
        Self {
            basis,
            maker: Maker::of(model),
            model: model.into(),
            rates: Rates::of(model),
            scale: 1.0,
            overhead: 0,
            hidden: 0,
            method,
            anchored: false,
            reported: None,
            implausible_report: None,
        }
    }

    /// Tokens of a text, without any frame.
    pub fn text(&self, text: &Text) -> u64 {
        match self.basis {
            Basis::Shape | Basis::Calibrated => self.scaled(self.plain(text)),
            Basis::Encoding(encoding) => exact_of(encoding, text),
            Basis::Heuristic(heuristic) => estimate::text(heuristic, text.size()),
        }
    }

    /// [`Self::text`] for a text that is not one of the history's.
    pub fn str(&self, text: &str) -> u64 {
        match self.basis {
            Basis::Shape | Basis::Calibrated => self.scaled(self.short(text)),
            Basis::Encoding(encoding) => exact::count(encoding, text),
            Basis::Heuristic(heuristic) => estimate::text(heuristic, TextSize::plain(text)),
        }
    }

    /// Tokens of a part with its own frame.
    pub fn part(&self, part: &Part) -> u64 {
        match self.basis {
            Basis::Shape | Basis::Calibrated => self.scaled(self.raw_part(part)),
            Basis::Encoding(encoding) => {
                let name = if let Part::Call(call) = part { exact::count(encoding, &call.name) } else { 0 };
                name + part.text().map_or(0, |it| exact_of(encoding, it)) + self.attached(part)
            }
            Basis::Heuristic(heuristic) => estimate::part(heuristic, part, self.maker, &self.model),
        }
    }

    pub fn message(&self, message: &Message) -> u64 {
        match self.basis {
            Basis::Heuristic(heuristic) => estimate::message(heuristic, message, self.maker, &self.model),
            Basis::Shape | Basis::Calibrated | Basis::Encoding(_) => {
                let counted = || self.frame() + message.parts.iter().map(|it| self.part(it)).sum::<u64>();
                self.reported_output(message).map_or_else(counted, |it| self.scaled(it as f64))
            }
        }
    }

    /// The reported output of a Gemini response, which is what sending it back costs: signatures bring back
    /// thoughts that no part shows. Over 620 responses in pi and OpenCode the context grew by that, to 5 % at
    /// the median; by what the parts show, to 17 %. Thoughts that are reported separately (Gemini CLI) are
    /// not sent again.
    fn reported_output(&self, message: &Message) -> Option<u64> {
        let is_by_model = matches!(self.basis, Basis::Shape | Basis::Calibrated);
        let usage = message.usage.filter(|_| is_by_model && self.maker == Maker::Google)?;
        (usage.reasoning == 0 && (1..=Usage::MOST).contains(&usage.output)).then_some(usage.output)
    }

    /// The context that messages of these sizes fill.
    pub fn filled(&self, sizes: &[u64]) -> Filled {
        let messages: u64 = sizes.iter().sum();
        Filled { overhead: self.overhead, messages: messages.saturating_sub(self.hidden) }
    }

    pub fn messages(&self, messages: &[Message]) -> Vec<u64> {
        parallel::par_map(messages, MIN_MESSAGES_PER_THREAD, |it| self.message(it))
    }

    /// A counter by the model's own tokenizer, if that is public. It counts texts without their frames.
    pub fn own_tokenizer(&self) -> Option<Self> {
        let basis = Basis::Encoding(Encoding::O200k);
        (self.maker == Maker::OpenAi).then(|| Self::bare(&self.model, basis, self.method.clone()))
    }

    /// Why the model's API refuses an attachment in a request with `count` of them, if it does.
    pub fn refuses(&self, media: &Media, count: usize) -> Option<String> {
        media::refused(media, self.maker, count)
    }

    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Tokens of system prompt and tools: as given; else what the last reported context holds beyond the
    /// messages (so that both together are what was reported); else counted, if the history holds them.
    pub fn overhead(&self) -> u64 {
        self.overhead
    }

    /// Tokens of the messages that the last reported request did not contain: a plugin or the client left
    /// them out, or sent less in their place. System prompt, tools and messages, minus this, are what was
    /// reported.
    pub fn hidden(&self) -> u64 {
        self.hidden
    }

    /// The last usage that was reported for this history: index of the message, context just after it.
    pub fn reported(&self) -> Option<(usize, u64)> {
        self.reported
    }

    /// A reported usage that cannot be this history's: index of the message, tokens.
    pub fn implausible_report(&self) -> Option<(usize, u64)> {
        self.implausible_report
    }

    /// Tokens by category. The sum is the overhead and all messages.
    pub fn by_category(&self, history: &History) -> Categories {
        let overhead = Categories { system: self.overhead, ..Categories::default() };
        let shares = parallel::par_chunks(history.messages(), MIN_MESSAGES_PER_THREAD, |_, share| {
            self.categories(share)
        });
        shares.into_iter().fold(overhead, Add::add)
    }

    /// Tokens of messages by category, without the overhead.
    pub fn categories(&self, messages: &[Message]) -> Categories {
        let mut out = Categories::default();
        for message in messages {
            let mut rest = self.message(message);
            let mut put = |slot: &mut u64, tokens: u64| {
                // Parts and messages are rounded differently; no more may be counted than the message has.
                let tokens = tokens.min(rest);
                rest -= tokens;
                *slot += tokens;
            };
            if message.kind != Kind::Summary {
                for part in &message.parts {
                    let tokens = self.part(part);
                    match part {
                        Part::Reasoning(_) => put(&mut out.reasoning, tokens),
                        Part::Call(_) => put(&mut out.tool_calls, tokens),
                        Part::Media(_) => put(&mut out.media, tokens),
                        Part::Output(output) => {
                            let text = if output.media.is_empty() {
                                tokens
                            } else {
                                let bare = Part::Output(Output { media: [].into(), ..output.clone() });
                                self.part(&bare).min(tokens)
                            };
                            put(&mut out.tool_outputs, text);
                            put(&mut out.media, tokens - text);
                        }
                        // They get what the other parts leave of the message.
                        Part::Text(_) | Part::Opaque(_) => {}
                    }
                }
            }
            *match (message.kind, message.role) {
                (Kind::Summary, _) => &mut out.summary,
                (Kind::Context, _) | (_, Role::System) => &mut out.system,
                (_, Role::User) => &mut out.user,
                (_, Role::Assistant) => &mut out.assistant,
                (_, Role::Tool) => &mut out.tool_outputs,
            } += rest;
        }
        out
    }

    /// Tokens of a message before scaling.
    fn raw(&self, message: &Message) -> f64 {
        match self.basis {
            Basis::Shape | Basis::Calibrated => {
                let counted =
                    || self.rates.message + message.parts.iter().map(|it| self.raw_part(it)).sum::<f64>();
                self.reported_output(message).map_or_else(counted, |it| it as f64)
            }
            Basis::Encoding(_) | Basis::Heuristic(_) => self.message(message) as f64,
        }
    }

    /// Tokens of a part before scaling.
    fn raw_part(&self, part: &Part) -> f64 {
        let rates = &self.rates;
        let sealed = |text: &Text| text.size().bytes as f64 * rates.signature;
        let text = match part {
            Part::Text(text) => self.plain(text),
            Part::Reasoning(reasoning) => {
                let read = if rates.thinking { self.plain(&reasoning.text) } else { 0.0 };
                read.max(reasoning.signature.as_deref().map_or(0.0, sealed))
            }
            Part::Call(call) => {
                let signature = call.signature.as_deref().map_or(0.0, sealed);
                self.name(&call.name) + self.plain(&call.input) + signature + rates.call
            }
            Part::Output(output) => self.plain(&output.text) + rates.output,
            Part::Media(_) => 0.0,
            Part::Opaque(opaque) if is_sealed(opaque) => sealed(&opaque.raw),
            Part::Opaque(opaque) => self.plain(&opaque.raw),
        };
        text + self.attached(part) as f64
    }

    fn plain(&self, text: &Text) -> f64 {
        match self.basis {
            Basis::Shape => {
                text.measured(Measure::Shape, shape::thousandths) as f64 / 1000.0 * self.rates.text
            }
            Basis::Calibrated | Basis::Encoding(_) | Basis::Heuristic(_) => {
                exact_of(Encoding::O200k, text) as f64 * self.rates.text
            }
        }
    }

    /// [`Self::plain`] for the name of a tool: there are few, used again and again.
    fn name(&self, name: &str) -> f64 {
        match self.basis {
            Basis::Shape => shape::of_name(name) as f64 / 1000.0 * self.rates.text,
            Basis::Calibrated | Basis::Encoding(_) | Basis::Heuristic(_) => self.short(name),
        }
    }

    /// [`Self::plain`] for a text without a cache of its own.
    fn short(&self, text: &str) -> f64 {
        let o200k = match self.basis {
            Basis::Shape => shape::thousandths(text) as f64 / 1000.0,
            Basis::Calibrated | Basis::Encoding(_) | Basis::Heuristic(_) => {
                exact::count(Encoding::O200k, text) as f64
            }
        };
        o200k * self.rates.text
    }

    fn attached(&self, part: &Part) -> u64 {
        estimate::attached(part).iter().map(|it| media::tokens(it, self.maker, &self.model)).sum()
    }

    fn frame(&self) -> u64 {
        match self.basis {
            Basis::Shape | Basis::Calibrated => self.scaled(self.rates.message),
            Basis::Encoding(_) | Basis::Heuristic(_) => 0,
        }
    }

    fn scaled(&self, tokens: f64) -> u64 {
        (tokens * self.scale).round() as u64
    }
}

/// The exact count of a text, which caches it itself for the usual encoding.
fn exact_of(encoding: Encoding, text: &Text) -> u64 {
    match encoding {
        Encoding::O200k => text.measured(Measure::Exact, |it| exact::count(encoding, it)),
        Encoding::Cl100k => exact::count(encoding, text.as_str()),
    }
}

/// 9 of 10 contexts ten requests after a report were nearer than this, in percent of the context (session corpus;
/// `tests/all/growth.rs` prints it for each agent).
const MARGIN_REPORTED: f64 = 5.0;
/// If another model reported, with another tokenizer: both rates are off by some percent, and so is their
/// ratio.
const MARGIN_CONVERTED: f64 = 15.0;
/// The same for what ten requests added, if nothing was reported: 11 to 18 % by agent, 28 % if the thoughts
/// between are hidden.
const MARGIN_CALIBRATED: f64 = 20.0;
/// o200k for models of other makers: 38 to 41 %.
const MARGIN_OTHER_MODEL: f64 = 40.0;
/// A heuristic that treats all text alike: 20 to 48 %.
const MARGIN_HEURISTIC: f64 = 45.0;

/// Blocks that hold encrypted thinking: compactions, redacted thinking.
fn is_sealed(opaque: &Opaque) -> bool {
    ["compaction", "redacted", "reasoning"].iter().any(|it| opaque.kind.contains(it))
}

/// Counts all texts of a history that were not counted yet, on all cores if there are many.
fn count_ahead(encoding: Encoding, history: &History) {
    let parts = history.messages().iter().flat_map(|it| &it.parts);
    let mut texts: Vec<&Text> = parts.filter_map(Part::text).collect();
    texts.retain(|it| encoding != Encoding::O200k || !it.is_measured(Measure::Exact));
    let counts = exact::counts(encoding, &texts.iter().map(|it| it.as_str()).collect::<Vec<_>>());
    if encoding == Encoding::O200k {
        for (text, count) in texts.iter().zip(counts) {
            text.measured(Measure::Exact, |_| count);
        }
    }
}

#[cfg(test)]
mod tests;
