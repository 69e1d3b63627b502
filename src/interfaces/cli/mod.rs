//! The command line: parses arguments, calls the engine, prints the answer. One file per command.

mod archive;
mod arguments;
mod called;
mod change;
mod common;
mod hints;
mod inspect;
mod paint;
mod screen;
mod setup;
mod transfer;

use std::io::Write;

use crate::config::Config;
use crate::engine::Engine;
use crate::store::Face;
use compaction::facts;
use history::error::Result;

use archive::{memory, push, recall};
use called::{hook, seat, serve, statusline};
use change::{apply, compact, prune, repair, restore, watch};
use inspect::{compare, cost, estimate, report, score, sessions, split};
use setup::{completions, doctor, install, profiles, schema};

pub use arguments::{Arguments, Command};
pub use called::hook::end_in_time as end_hook_in_time;
pub use hints::hint_words;
pub use paint::Paint;
pub(crate) use screen::Screen;

/// Runs a command; returns the exit code.
pub fn run(arguments: Arguments, mut config: Config, paint: Paint, out: &mut dyn Write) -> Result<u8> {
    if let Some(folder) = &arguments.store {
        config.keep_in(folder.clone());
    }
    let mut screen = Screen { out, paint, json: arguments.json, quiet: arguments.quiet };
    let now = arguments.now()?;
    // Prepare the facts' tables while the session is read, except with `--auto`, which usually does nothing.
    // If no thread can be started, they are prepared on first use.
    if matches!(&arguments.command, Some(Command::Compact(it)) if !it.options.auto) {
        let _ = std::thread::Builder::new().spawn(facts::prepare);
    }
    // Commands that use the archive or memories need a store; commands about a session work without one.
    // Commands that take the configuration work even with a broken store; a server opens it on first use,
    // because its client waits for the handshake.
    let cli = |engine| Engine { face: Face::Cli, hint_words, ..engine };
    let with_store = |config| Engine::at(config, now).map(cli);
    let look = |config| Engine::even_without_store(config, now).map(cli);
    let screen = &mut screen;
    match &arguments.command {
        None => sessions::here(&look(config)?, screen),
        Some(Command::Serve(command)) => serve::run(config, command, arguments.fixed_now()?),
        Some(Command::Completions(command)) => completions::run(command, screen),
        Some(Command::Man(command)) => completions::man(command, screen),
        Some(Command::Schema(command)) => schema::run(command, screen),
        Some(Command::Hook) => hook::run(config, now, arguments.store.as_deref(), screen),
        Some(Command::Statusline) => statusline::run(&config, now, screen),
        Some(Command::Seat(command)) => seat::run(config, now, command, screen),
        Some(Command::Doctor(command)) => doctor::run(config, now, command, screen),
        Some(Command::Install(command)) => install::install(&config, command, screen),
        Some(Command::Uninstall(command)) => install::uninstall(&config, command, screen),
        Some(Command::Sessions(command)) if command.keep => {
            sessions::run(&with_store(config)?, command, screen)
        }
        Some(Command::Estimate(command)) => estimate::run(&look(config)?, command, screen),
        Some(Command::Cost(command)) => cost::run(&look(config)?, command, screen),
        Some(Command::Split(command)) => split::run(&look(config)?, command, screen),
        Some(Command::Prune(command)) => prune::run(&look(config)?, command, screen),
        Some(Command::Compact(command)) => compact::run(&look(config)?, command, screen),
        Some(Command::Apply(command)) => apply::run(&with_store(config)?, command, screen),
        Some(Command::Undo(command)) => restore::undo(&with_store(config)?, command, screen),
        Some(Command::Repair(command)) => repair::run(&look(config)?, command, screen),
        Some(Command::Score(command)) => score::run(&look(config)?, command, screen),
        Some(Command::Report(command)) => report::run(&look(config)?, command, screen),
        Some(Command::Compare(command)) => compare::run(&look(config)?, command, screen),
        Some(Command::Profiles(command)) => profiles::run(&look(config)?, command, screen),
        Some(Command::Restore(command)) => restore::run(&with_store(config)?, command, screen),
        Some(Command::Recall(command)) => recall::run(&with_store(config)?, command, screen),
        Some(Command::Sessions(command)) => sessions::run(&look(config)?, command, screen),
        Some(Command::Memory(command)) => memory::run(&with_store(config)?, command, screen),
        Some(Command::Handoff(command)) => transfer::handoff::run(&look(config)?, command, screen),
        Some(Command::Export(command)) => transfer::carry::run_export(&look(config)?, command, screen),
        Some(Command::Import(command)) => transfer::carry::run_import(&with_store(config)?, command, screen),
        Some(Command::Push(command)) => push::run(&with_store(config)?, command, screen),
        Some(Command::Watch(command)) => watch::run(&look(config)?, command, screen),
    }
}
