//! `epitome estimate`.

use crate::interfaces::cli::common::Common;
use clap::Args;
use std::path::Path;

use crate::answers::{AdviceLevel, EstimateAnswer, MethodInfo};
use crate::config::{Choice, Override};
use crate::engine::values::tokens;
use crate::engine::{self, Engine};
use crate::interfaces::cli::Screen;
use crate::report::{counted, size};
use history::error::{Error, ErrorKind, Result};
use tokens::Estimator;

#[derive(Debug, Args)]
pub struct EstimateArgs {
    #[command(flatten)]
    common: Common,
    /// Size of the next prompt: tokens, or a file to count
    #[arg(long, value_name = "TOKENS|FILE")]
    next: Option<String>,
    /// How to count: `auto` counts locally, `provider` sends the messages to the model's provider,
    /// provider:NAME[/MODEL] to another one
    #[arg(long, value_name = "HOW")]
    method: Option<String>,
    /// With --method provider: base URL of the provider
    #[arg(long, value_name = "URL", requires = "method")]
    base_url: Option<String>,
    /// Exit with code 1 if the profile would auto-compact the session now
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(engine: &Engine, arguments: &EstimateArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let ask = arguments.common.ask(&engine.config)?;
    let next = arguments.next.as_deref().map(next).transpose()?;
    let opened = engine::open_measured(
        engine,
        &arguments.common.session(),
        arguments.common.format()?,
        arguments.common.agent.as_deref(),
        ask.tokenizer(),
    )?;
    let answer = match arguments.method.as_deref() {
        None | Some("auto") => engine::estimate(engine, &opened, &ask, next)?,
        Some(how) => {
            let (choice, model) = counter(how)?;
            let said = Override { model, base_url: arguments.base_url.clone() };
            engine::estimate_by_provider(engine, &opened, &ask, next, choice, &said)?
        }
    };
    if !screen.json(&answer)? {
        show(&answer, screen)?;
    }
    let verdict = arguments.check.then(|| engine::due(engine, &opened, &ask));
    if let Some(it) = verdict.as_ref().filter(|_| !screen.json) {
        let due = if it.due { "due" } else { "not yet due" };
        screen.line(&format!("{}: {due}: {}", ask.profile.name, it.reason))?;
    }
    // The process ends now, so freeing the session's memory would only cost time.
    std::mem::forget(opened);
    Ok(verdict.map_or(0, |it| u8::from(it.due)))
}

/// `provider`, or `provider:NAME[/MODEL]`.
fn counter(how: &str) -> Result<(Choice, Option<String>)> {
    let name = match how.split_once(':') {
        _ if how == "provider" => return Ok((Choice::Auto, None)),
        Some(("provider", name)) => name,
        _ => {
            let what = format!("--method: expected auto, provider or provider:NAME, found {how:?}");
            return Err(Error::new(ErrorKind::Arguments, what));
        }
    };
    let (name, model) = name.split_once('/').map_or((name, None), |(name, it)| (name, Some(it.to_owned())));
    match Choice::named(name) {
        Ok(choice @ Choice::Provider(_)) => Ok((choice, model)),
        _ => {
            let what = format!("--method: expected provider:anthropic, openai or gemini, found {how:?}");
            Err(Error::new(ErrorKind::Arguments, what))
        }
    }
}

/// `--next`: a number of tokens, or a file to count.
pub(crate) fn next(text: &str) -> Result<u64> {
    if let Ok(tokens) = tokens(text) {
        return Ok(tokens);
    }
    let bytes = std::fs::read(Path::new(text)).map_err(|error| {
        let what = format!("--next: expected tokens or a file, found {text:?}");
        Error::new(ErrorKind::Arguments, what).because(error)
    })?;
    Ok(Estimator::O200k.text(&String::from_utf8_lossy(&bytes)))
}

/// The margin, in percent, of a count made with another model's tokenizer.
const UNKNOWN_TOKENIZER: f64 = 40.0;

fn show(answer: &EstimateAnswer, screen: &mut Screen<'_>) -> Result<()> {
    let paint = screen.paint;
    let session = &answer.session;
    let name = session.id.as_deref().or(session.path.as_deref()).unwrap_or(&session.format);
    let model = session.model.as_deref().unwrap_or("unknown model");
    screen.line(&format!("{} {} · {model}", paint.strong(&session.format), name))?;
    if let (Some(window), Some(percent)) = (answer.window, answer.used_percent) {
        let bar = paint.gauge(percent / 100.0, 40);
        let used = paint.strong(&format!("{percent:.0} %"));
        screen.line(&format!(
            "{bar} {used} of the window: {} of {} tokens",
            size(answer.context),
            size(window)
        ))?;
    } else {
        screen.line(&format!(
            "{} tokens; the model's window is unknown (--window sets it)",
            size(answer.context)
        ))?;
    }
    let counts = &answer.counts;
    screen.line(&paint.faint(&format!(
        "{}; {}, {}, {}",
        method(&answer.method),
        counted(counts.messages, "message"),
        counted(counts.turns, "turn"),
        counted(counts.tool_calls, "tool call")
    )))?;
    screen.line("")?;
    show_categories(answer, screen)?;
    show_largest(answer, screen)?;
    show_triggers(answer, screen)?;
    let advice = &answer.advice;
    let level = match advice.level {
        AdviceLevel::Now => paint.warn("compact now"),
        AdviceLevel::Soon => paint.warn("compact soon"),
        AdviceLevel::Room => paint.good("there is room"),
    };
    screen.line("")?;
    screen.line(&format!("{level}: {}", advice.why))?;
    if let Some(cost) = &answer.cost {
        screen.line(&cost.why)?;
    }
    screen.warnings(&answer.warnings)?;
    Ok(())
}

/// How the tokens were counted, and the margin of error.
fn method(method: &MethodInfo) -> String {
    let (estimator, margin) = (&method.estimator, format!("±{:.0} %", method.margin_percent));
    match method.kind.as_str() {
        "reported" => format!("based on usage reported by the provider ({margin})"),
        "exact" if method.margin_percent < UNKNOWN_TOKENIZER => {
            format!(
                "text counted exactly with {estimator}; message frames and hidden reasoning estimated, {margin}"
            )
        }
        "exact" => {
            format!("counted with {estimator}; this model's own tokenizer is not public, so up to {margin}")
        }
        _ => format!("estimated ({estimator}, {margin})"),
    }
}

fn show_categories(answer: &EstimateAnswer, screen: &mut Screen<'_>) -> Result<()> {
    let by = &answer.by_category;
    let categories = [
        ("tool outputs", by.tool_outputs),
        ("tool calls", by.tool_calls),
        ("assistant", by.assistant),
        ("reasoning", by.reasoning),
        ("user", by.user),
        ("summaries", by.summary),
        ("media", by.media),
        ("system and tools", by.system.max(answer.overhead)),
    ];
    let all = answer.context.max(1);
    for (name, tokens) in categories.into_iter().filter(|it| it.1 > 0) {
        let bar = screen.paint.bar(tokens as f64 / all as f64, 20);
        screen.line(&format!(
            "  {name:<17}{:>6}  {bar} {:>3.0} %",
            size(tokens),
            tokens as f64 * 100.0 / all as f64
        ))?;
    }
    Ok(())
}

fn show_largest(answer: &EstimateAnswer, screen: &mut Screen<'_>) -> Result<()> {
    if answer.largest.is_empty() {
        return Ok(());
    }
    screen.line("")?;
    screen.line("largest")?;
    let rows = answer
        .largest
        .iter()
        .take(5)
        .map(|it| vec![format!("  {}", size(it.tokens)), format!("#{}", it.message), it.what.clone()]);
    screen.table(&["  tokens", "message", "what"], rows, &[])
}

fn show_triggers(answer: &EstimateAnswer, screen: &mut Screen<'_>) -> Result<()> {
    screen.line("")?;
    screen.line("which profiles would auto-compact now")?;
    // Without versions (`NAME@…`), which mostly agree; --json has all.
    let systems = answer.triggers.iter().filter(|(name, _)| !name.contains('@'));
    let rows = systems.map(|(name, it)| {
        let due = if it.due { "yes" } else { "no" };
        vec![format!("  {name}"), due.to_owned(), it.reason.clone()]
    });
    screen.table(&["  profile", "now", "why"], rows, &[])
}
