//! The command line: arguments in, engine called, answer shown. One file a command.

mod arguments;
mod compact;
mod compare;
mod estimate;
mod home;
mod memory;
mod paint;
mod profiles;
mod prune;
mod recall;
mod restore;
mod schema;
mod score;
mod serve;
mod sessions;
mod split;

use std::io::Write;

use serde::Serialize;

use crate::config::Config;
use crate::engine::Engine;
use crate::error::{Error, Kind, Result};

pub use arguments::{Arguments, Command};
pub use paint::Paint;

/// Where a command writes, and how.
pub(crate) struct Screen<'a> {
    out: &'a mut dyn Write,
    paint: Paint,
    json: bool,
    quiet: bool,
}

impl Screen<'_> {
    /// One JSON document, if `--json` was given; whether it was.
    fn json<T: Serialize>(&mut self, answer: &T) -> Result<bool> {
        if !self.json {
            return Ok(false);
        }
        let text = serde_json::to_string_pretty(answer)
            .map_err(|error| Error::new(Kind::Bug, "writing JSON").because(error))?;
        self.line(&text)?;
        Ok(true)
    }

    /// One line.
    fn line(&mut self, text: &str) -> Result<()> {
        writeln!(self.out, "{text}")
            .map_err(|error| Error::new(Kind::Io, "writing to the terminal").because(error))
    }

    /// Lines for people, left out with `-q`.
    fn note(&mut self, text: &str) -> Result<()> {
        if self.quiet { Ok(()) } else { self.line(text) }
    }
}

/// Runs a command; the exit code.
pub fn run(arguments: Arguments, config: Config, paint: Paint, out: &mut dyn Write) -> Result<u8> {
    let mut screen = Screen { out, paint, json: arguments.json, quiet: arguments.quiet };
    let now = arguments.now()?;
    // A server opens the store when it first needs it: its client waits for the handshake.
    if let Some(Command::Serve(command)) = &arguments.command {
        return serve::run(config, command, arguments.fixed_now()?);
    }
    let engine = Engine::new(config, now)?;
    match &arguments.command {
        Some(Command::Estimate(command)) => estimate::run(&engine, command, &mut screen),
        Some(Command::Split(command)) => split::run(&engine, command, &mut screen),
        Some(Command::Prune(command)) => prune::run(&engine, command, &mut screen),
        Some(Command::Compact(command)) => compact::run(&engine, command, &mut screen),
        Some(Command::Compare(command)) => compare::run(&engine, command, &mut screen),
        Some(Command::Score(command)) => score::run(&engine, command, &mut screen),
        Some(Command::Profiles(command)) => profiles::run(&engine, command, &mut screen),
        Some(Command::Schema(command)) => schema::run(command, &mut screen),
        Some(Command::Restore(command)) => restore::run(&engine, command, &mut screen),
        Some(Command::Recall(command)) => recall::run(&engine, command, &mut screen),
        Some(Command::Sessions(command)) => sessions::run(&engine, command, &mut screen),
        Some(Command::Memory(command)) => memory::run(&engine, command, &mut screen),
        Some(Command::Serve(_)) => Ok(0),
        None => home::run(&engine, &mut screen),
    }
}
