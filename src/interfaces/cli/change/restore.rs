//! `epitome restore`.

use clap::Args;

use crate::answers::{RestoreAnswer, RestoreStatus};
use crate::engine::{self, Engine};
use crate::interfaces::cli::Screen;
use crate::store::{AuditVerb, ItemKind};
use history::error::{Error, ErrorKind, Result};

#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// A handle, or `last`: the newest compaction of this directory
    handle: String,
    /// File to write the original to (- for standard output)
    #[arg(long, short, value_name = "FILE|-", conflicts_with = "apply")]
    out: Option<String>,
    /// Restore the session in place; later turns are kept
    #[arg(long)]
    apply: bool,
}

#[derive(Debug, Args)]
pub struct UndoArgs {
    /// The handle of a compaction or prune [default: the newest one of this directory]
    handle: Option<String>,
}

pub(crate) fn undo(engine: &Engine, arguments: &UndoArgs, screen: &mut Screen<'_>) -> Result<u8> {
    put_back(engine, arguments.handle.as_deref().unwrap_or("last"), screen)
}

fn put_back(engine: &Engine, handle: &str, screen: &mut Screen<'_>) -> Result<u8> {
    let answer = engine::undo(engine, handle)?;
    screen.answer(&answer, show)
}

pub(crate) fn run(engine: &Engine, arguments: &RestoreArgs, screen: &mut Screen<'_>) -> Result<u8> {
    if arguments.apply {
        return put_back(engine, &arguments.handle, screen);
    }
    let located = engine::located(engine, &arguments.handle)?;
    let (handle, session) = (located.entry.handle.as_str(), located.entry.session.as_deref());
    match arguments.out.as_deref() {
        None | Some("-")
            if arguments.out.is_some()
                || matches!(located.entry.kind, ItemKind::Message | ItemKind::Output | ItemKind::Memory) =>
        {
            let mut reader = engine.store.reader(&located.scope, handle)?;
            engine.audit(AuditVerb::Restore, &located.scope, session, Some(handle));
            screen.exact(&mut reader)?;
        }
        Some(path) => {
            let mut reader = engine.store.reader(&located.scope, handle)?;
            let len = crate::files::install_from(path.as_ref(), &mut reader)?;
            engine.audit(AuditVerb::Restore, &located.scope, session, Some(handle));
            screen.note(&format!("{len} bytes written to {path}"))?;
        }
        None => {
            let what = format!(
                "{handle} is a {} of {} bytes: --apply restores the session in place, --out FILE writes the original",
                located.entry.kind.name(),
                located.entry.bytes
            );
            return Err(Error::new(ErrorKind::Arguments, what));
        }
    }
    Ok(0)
}

fn show(answer: &RestoreAnswer, screen: &mut Screen<'_>) -> Result<()> {
    let paint = screen.paint;
    let later = match answer.later_messages {
        0 => String::new(),
        1 => ", keeping the later message".to_owned(),
        many => format!(", keeping the {many} later messages"),
    };
    let what = match answer.status {
        RestoreStatus::Unchanged => "already restored; nothing to do".to_owned(),
        RestoreStatus::Restored => format!("{} {}{later}", paint.good("restored"), answer.output),
    };
    screen.line(&what)?;
    screen.warnings(&answer.warnings)?;
    screen.line(&format!("resume   {}", paint.strong(&answer.resume)))
}
