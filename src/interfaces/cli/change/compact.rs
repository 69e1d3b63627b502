//! `epitome compact`.

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::{IsTerminal, Write};
use std::sync::Arc;

use crate::agents::write_back::shell::quoted;
use crate::answers::{CompactAnswer, Next, Status, TakesEffect};
use crate::config::{Choice, Override};
use crate::engine::{self, Ask, CompactOptions, CompactOutcome, Compacted, Edit, Engine, Opened, To};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::common::{Common, lost_line, read_text_or_stdin, show_undo_and_resume, wire};
use crate::interfaces::cli::transfer::handoff::agent;
use crate::interfaces::terminal::{LineMode, visible};
use crate::llm::run::{Progress, Watch};
use crate::report::size;
use history::error::{Error, ErrorKind, Result};
use sessions::Format;

#[derive(Debug, Args)]
pub struct CompactArgs {
    /// File to write the compacted session to (- for standard output)
    #[arg(long, short, value_name = "FILE|-")]
    out: Option<String>,
    /// Install the result, so that the agent resumes from it; the original is archived
    #[arg(long, conflicts_with = "out")]
    apply: bool,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    pub(crate) options: CompactOptions,
    /// Who writes the summary: offline, host, auto, anthropic, openai, gemini or openai-compatible; NAME/MODEL also
    /// selects the model
    #[arg(long, value_name = "NAME")]
    summarizer: Option<String>,
    /// Base URL of the summarizer's provider, such as http://localhost:11434/v1
    #[arg(long, value_name = "URL", requires = "summarizer")]
    base_url: Option<String>,
    /// Make no API calls and write nothing; show what the summarizer would cost, and a preview with the offline summary
    #[arg(long, conflicts_with_all = ["apply", "out", "edit"])]
    dry_run: bool,
    /// Second call of --summarizer host: the handle that the first call returned
    #[arg(long, value_name = "HANDLE", requires = "answer")]
    handle: Option<String>,
    /// With --handle: file with the summary that the model wrote (- for standard input)
    #[arg(long, value_name = "FILE|-", requires = "handle")]
    answer: Option<String>,
    /// Open the summary in $EDITOR before it is used
    #[arg(long)]
    edit: bool,
    /// With --auto: size of the next prompt, in tokens or as a file to count
    #[arg(long, value_name = "TOKENS|FILE")]
    next: Option<String>,
    /// Write plain messages of an API (anthropic, openai-chat, openai-responses, gemini) or, with --apply, a session
    /// of another agent (claude-code, codex, gemini-cli, opencode)
    #[arg(long = "as", value_name = "FORMAT")]
    messages_as: Option<String>,
}

pub(crate) fn run(engine: &Engine, arguments: &CompactArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let mut ask = arguments.common.ask(&engine.config)?;
    ask.options.clone_from(&arguments.options);
    ask.next = arguments.next.as_deref().map(crate::interfaces::cli::inspect::estimate::next).transpose()?;
    let carried = arguments
        .messages_as
        .as_deref()
        .filter(|_| arguments.apply)
        .map(|it| agent("--as", it))
        .transpose()?;
    if carried.is_none() {
        ask.messages_as = wire(arguments.messages_as.as_deref())?;
    }
    let to = match arguments.out.as_deref() {
        _ if arguments.apply => Some(carried.map_or(To::Session, To::Agent)),
        Some("-") => Some(To::Bytes),
        Some(path) => Some(To::File(path.into())),
        None => None,
    };
    if let (Some(handle), Some(file)) = (&arguments.handle, &arguments.answer) {
        refuse_repeated(arguments)?;
        // The first call set where the result goes; this one may override it.
        let (compacted, _) =
            engine::answered(engine, handle, &read_text_or_stdin(file, "reading the answer")?, |_| Ok(to))?;
        return finish(compacted, arguments, screen, None, None);
    }
    let default = if screen.json && !arguments.dry_run { To::Bytes } else { To::Plan };
    ask.to = to.unwrap_or(default);
    ask.writer.trusted = true;
    (ask.writer.summarizer, ask.writer.endpoint) = summarizer(engine, arguments)?;
    ask.writer.dry = arguments.dry_run;
    ask.writer.watch = watch(screen.quiet);
    if arguments.edit {
        if ask.writer.summarizer == Choice::Host {
            let what = "--edit: expected a summarizer that writes the summary in this call, found host; edit the file \
                before you pass it with --answer";
            return Err(Error::new(ErrorKind::Arguments, what));
        }
        ask.writer.edit = Some(editor(engine)?);
    }
    let opened = arguments.common.open(engine)?;
    let format = opened.session.format;
    if ask.to == To::Bytes && format.is_read_only() {
        ask.messages_as = ask.messages_as.or(Some(format.api()));
    }
    let compacted = engine::compact(engine, &opened, &ask);
    if !screen.quiet && std::io::stderr().is_terminal() {
        // Erase the progress line.
        let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
    }
    let compacted = compacted?;
    let next = if ask.to == To::Plan && !ask.writer.dry {
        Some(install_command(engine, &opened, &ask, &compacted))
    } else {
        None
    };
    let api = ask.messages_as.unwrap_or(format.api());
    finish(compacted, arguments, screen, (ask.to == To::Bytes).then_some(api), next)
}

/// With `--handle`, all options except the destination come from the first call; repeating one is refused,
/// since it would have no effect.
fn refuse_repeated(arguments: &CompactArgs) -> Result<()> {
    let common = &arguments.common;
    let host = arguments.summarizer.as_deref() == Some("host");
    let given = [
        ("SESSION", common.session.is_some()),
        ("--profile", common.profile.is_some()),
        ("--agent", common.agent.is_some()),
        ("--format", common.format.is_some()),
        ("--summarizer", arguments.summarizer.is_some() && !host),
        ("--base-url", arguments.base_url.is_some()),
        ("--dry-run", arguments.dry_run),
        ("--edit", arguments.edit),
        ("--next", arguments.next.is_some()),
        // With --apply it names the target agent, which is part of the destination.
        ("--as", arguments.messages_as.is_some() && !arguments.apply),
    ];
    let given = given.into_iter().filter(|it| it.1).map(|it| it.0.to_owned());
    let found: Vec<String> = given.chain(set(&common.counting)).chain(set(&arguments.options)).collect();
    if found.is_empty() {
        return Ok(());
    }
    let what = format!(
        "--handle: expected only --answer and where the result goes (--out, --apply), found {}; the first call set \
         the other options: leave them out, or start over without --handle",
        found.join(", ")
    );
    Err(Error::new(ErrorKind::Arguments, what))
}

/// The options whose values differ from the default.
fn set<T: Serialize + Default>(options: &T) -> Vec<String> {
    let fields = |it: &T| match serde_json::to_value(it) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let unset = fields(&T::default());
    let named = fields(options).into_iter().filter(|(name, value)| unset.get(name) != Some(value));
    named.map(|(name, _)| format!("--{}", name.replace('_', "-"))).collect()
}

/// The summarizer from `--summarizer NAME[/MODEL]` and `--base-url`, or from the configuration.
fn summarizer(engine: &Engine, arguments: &CompactArgs) -> Result<(Choice, Override)> {
    let Some(name) = &arguments.summarizer else {
        return Ok((engine.config.summarizers.default.clone(), Override::default()));
    };
    let (name, model) = match name.split_once('/') {
        Some((name, model)) => (name, Some(model.to_owned())),
        None => (name.as_str(), None),
    };
    let choice = Choice::named(name)
        .map_err(|error| Error::new(ErrorKind::Arguments, format!("--summarizer: {}", error.detail())))?;
    let given = Override { model, base_url: arguments.base_url.clone() };
    if !matches!(choice, Choice::Provider(_)) && given != Override::default() {
        let what =
            format!("--summarizer: expected a provider, since a model or --base-url is given, found {name}");
        return Err(Error::new(ErrorKind::Arguments, what));
    }
    Ok((choice, given))
}

/// Reports on standard error what the model is doing.
fn watch(quiet: bool) -> Watch {
    let one_line = std::io::stderr().is_terminal();
    let say = move |progress: &Progress| {
        let words = progress.words("the model");
        let words = visible(&words, LineMode::Line);
        let mut out = std::io::stderr().lock();
        // Errors are ignored. Only the reason for a retry stays on the screen.
        let _ = match progress {
            Progress::Writing(..) | Progress::Asking(_) if one_line => {
                write!(out, "\r\x1b[Kepitome: {words}").and_then(|()| out.flush())
            }
            Progress::Waiting(_) if one_line => writeln!(out, "\r\x1b[Kepitome: {words}"),
            Progress::Writing(..) | Progress::Asking(_) | Progress::Waiting(_) => {
                writeln!(out, "epitome: {words}")
            }
        };
    };
    Watch { progress: (!quiet).then(|| Arc::new(say) as _), ..Watch::default() }
}

/// A function that opens a text in the user's editor and returns the edited text.
fn editor(engine: &Engine) -> Result<Edit> {
    let environment = &engine.config.environment;
    let command = environment.get("VISUAL").or_else(|| environment.get("EDITOR"));
    let Some(command) = command.map(str::to_owned) else {
        let what = "--edit: expected an editor in $EDITOR or $VISUAL, found none";
        return Err(Error::new(ErrorKind::Arguments, what));
    };
    let file = engine.config.data_dir.join(format!("summary-{}.md", std::process::id()));
    Ok(Edit(Arc::new(move |text| {
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Io, format!("editing the summary with {command:?}")).because(error)
        };
        crate::files::install(&file, text.as_bytes())?;
        // As in git, the variable may contain arguments, so a shell parses it.
        let line = if cfg!(windows) {
            format!("{command} \"{}\"", file.display())
        } else {
            format!("{command} \"$1\"")
        };
        let status = engine::shell(line).arg("epitome").arg(&file).status();
        let edited = status.and_then(|it| match it.success() {
            true => std::fs::read_to_string(&file),
            false => Err(std::io::Error::other(format!("it ended with {it}"))),
        });
        // A leftover copy is no reason to fail.
        let _ = std::fs::remove_file(&file);
        edited.map_err(failed)
    })))
}

fn finish(
    compacted: Compacted,
    arguments: &CompactArgs,
    screen: &mut Screen<'_>,
    api: Option<Format>,
    next: Option<String>,
) -> Result<u8> {
    // Also if the first call asked for bytes: they go to standard output.
    if let (Some(mut bytes), false) = (compacted.bytes(), screen.json) {
        return screen.exact(&mut bytes).map(|()| 0);
    }
    let mut answer = compacted.answer();
    let asked = matches!(compacted.outcome, CompactOutcome::NeedsAnswer(_));
    if arguments.out.as_deref() == Some("-") && !screen.json && !asked {
        return Err(Error::new(ErrorKind::Rejected, format!("nothing was compacted: {}", answer.reason)));
    }
    if screen.json
        && let Some(api) = api
        && let Some(history) = compacted.history()
    {
        let (messages, _) = sessions::messages(history, api);
        answer.messages = serde_json::from_slice(&messages).ok();
    }
    if let (Some(command), CompactOutcome::Planned(_)) = (next, &compacted.outcome) {
        answer.next = Next::user(command);
    }
    report(&answer, screen)
}

/// Prints the result of a compaction; returns the exit code.
pub(crate) fn report(answer: &CompactAnswer, screen: &mut Screen<'_>) -> Result<u8> {
    if !screen.json(answer)? {
        show(answer, screen)?;
    }
    Ok(u8::from(answer.status == Status::Rejected))
}

/// The command that applies the preview: by its handle or, if it could not be kept, as it was typed.
fn install_command(engine: &Engine, opened: &Opened, ask: &Ask, preview: &Compacted) -> String {
    let format = opened.session.format;
    let wire = ask.messages_as.or(format.is_read_only().then_some(format.api()));
    let ask = Ask { messages_as: wire.filter(|_| !format.is_wire()), ..ask.clone() };
    // Not an error: a preview, perhaps paid for, is shown even if it cannot be kept.
    let kept = engine::keep_preview(engine, opened, &ask, preview).unwrap_or_else(|error| {
        tracing::warn!("the preview could not be saved for `epitome apply`: {}", error.full());
        None
    });
    let command = match kept {
        Some(handle) => format!("epitome apply {handle}"),
        None => {
            let typed = std::env::args().skip(1).map(|it| quoted(&it)).collect::<Vec<_>>().join(" ");
            format!("epitome {typed}")
        }
    };
    if ask.messages_as.is_none() && engine::can_apply(engine, opened) {
        return if command.starts_with("epitome apply") { command } else { format!("{command} --apply") };
    }
    let path = opened.path.as_deref().and_then(|it| it.file_name()).map(|it| it.to_string_lossy());
    let name = path.as_deref().unwrap_or("session");
    let name = name.rsplit_once('#').map_or(name, |it| it.1);
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, "json"));
    let extension = if ask.messages_as.is_some() { "json" } else { extension };
    format!("{command} --out {}", quoted(&format!("{stem}.compacted.{extension}")))
}

/// Maximum lost facts listed.
const LOST: usize = 20;

fn show(answer: &CompactAnswer, screen: &mut Screen<'_>) -> Result<()> {
    let paint = screen.paint;
    if let (Some(ask), Some(handle)) = (&answer.ask, &answer.handle) {
        screen.block(ask)?;
        screen.note("")?;
        return screen.note(&format!("Then: epitome compact --handle {handle} --answer FILE"));
    }
    if matches!(answer.status, Status::Noop | Status::Rejected) {
        return show_nothing(answer, screen);
    }
    show_sizes(answer, screen)?;
    screen.line(&format!("plan    {}", answer.reason))?;
    screen.line(&format!("valid   {}", answer.valid_for.join(", ")))?;
    if let Some(summary) = &answer.summary {
        screen.line(&paint.faint("──────── summary ────────"))?;
        screen.block(summary)?;
        screen.line(&paint.faint("─────────────────────────"))?;
    }
    screen.warnings(&answer.warnings)?;
    if let Some(next) = &answer.next_cost {
        screen.line(&format!("cost    {}", next.why))?;
    }
    if let Some(cost) = &answer.cost {
        screen.line(&format!("cost    {}", cost.sentence()))?;
    }
    show_next(answer, screen)
}

/// Shows why nothing was done, and which facts would have been lost.
fn show_nothing(answer: &CompactAnswer, screen: &mut Screen<'_>) -> Result<()> {
    let paint = screen.paint;
    screen.line(&format!("{}: {}", paint.warn(answer.status.name()), answer.reason))?;
    for lost in answer.lost.iter().take(LOST) {
        screen.line(&lost_line(lost))?;
    }
    if answer.lost.len() > LOST {
        screen.line(&format!("  … and {} more", answer.lost.len() - LOST))?;
    }
    match &answer.resume {
        Some(resume) => screen.line(&format!("resume   {}", paint.strong(resume))),
        None => Ok(()),
    }
}

fn show_sizes(answer: &CompactAnswer, screen: &mut Screen<'_>) -> Result<()> {
    let paint = screen.paint;
    if let (Some(before), Some(after), Some(window)) =
        (answer.used_percent, answer.used_percent_after, answer.window)
    {
        let window = size(window);
        screen.line(&format!(
            "context {} of the window of {window} tokens",
            paint.strong(&format!("{before:.0} % → {after:.0} %"))
        ))?;
    }
    let after = answer.tokens_after as f64 / answer.tokens_before.max(1) as f64;
    let row = |name: &str, share: f64, tokens: u64, messages: usize| {
        format!("{name:<8}{} {:>6} tokens  {messages:>5} messages", paint.bar(share, 40), size(tokens))
    };
    screen.line(&row("before", 1.0, answer.tokens_before, answer.messages_before))?;
    let saved = format!("−{:.0} %", (1.0 - after) * 100.0);
    screen.line(&format!(
        "{}  {}",
        row("after", after, answer.tokens_after, answer.messages_after),
        paint.good(&saved)
    ))?;
    if let Some(kept) = answer.facts_kept {
        let classes: Vec<String> = answer
            .facts
            .iter()
            .filter(|(_, it)| it.found > 0)
            .map(|(class, it)| format!("{class} {}/{}", it.kept, it.found))
            .collect();
        screen.line(&format!(
            "facts   {} kept: {}",
            paint.strong(&format!("{:.0} %", (kept * 100.0).floor())),
            classes.join(" · ")
        ))?;
    }
    Ok(())
}

/// Shows what was written, how to undo it, and what to run next.
fn show_next(answer: &CompactAnswer, screen: &mut Screen<'_>) -> Result<()> {
    match (&answer.output, &answer.handle) {
        (Some(path), handle) if answer.resume.is_some() => {
            let resume = answer.resume.as_deref().unwrap_or_default();
            let when = match answer.takes_effect {
                Some(TakesEffect::NextRequest) => "takes effect immediately",
                Some(TakesEffect::OnResume) | None => "takes effect when you resume",
            };
            screen.note(&format!("applied  {path} ({when})"))?;
            show_undo_and_resume(handle.as_deref(), resume, screen)
        }
        (Some(path), Some(handle)) => {
            screen.note(&format!("written  {path}"))?;
            screen.note(&format!(
                "undo     epitome restore {handle} --out FILE   (the original, byte for byte)"
            ))
        }
        _ if answer.next.what.is_empty() => screen.note("Nothing was changed."),
        _ => {
            screen.note("Nothing was changed. To apply the preview:")?;
            screen.note(&format!("  {}", answer.next.what))
        }
    }
}
