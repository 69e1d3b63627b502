//! The command line: arguments in, engine called, answer shown. One file a command.

mod apply;
mod arguments;
mod common;
mod compact;
mod cost;
mod compare;
mod completions;
mod doctor;
mod estimate;
mod gateway;
mod handoff;
mod hook;
mod install;
mod keep;
mod memory;
mod paint;
mod profiles;
mod prune;
mod recall;
mod repair;
mod report;
mod restore;
mod schema;
mod score;
mod screen;
mod seat;
mod serve;
mod sessions;
mod split;
mod statusline;
mod transfer;
mod watch;

use std::io::Write;

use self::sessions::SessionsArgs;
use crate::config::Config;
use crate::engine::Engine;
use compaction::facts;
use history::error::Result;

pub use arguments::{Arguments, Command};
pub use hook::end_in_time as end_hook_in_time;
pub use paint::Paint;
pub(crate) use screen::Screen;

/// Runs a command; the exit code.
pub fn run(arguments: Arguments, mut config: Config, paint: Paint, out: &mut dyn Write) -> Result<u8> {
    if let Some(folder) = &arguments.store {
        config.keep_in(folder.clone());
    }
    let mut screen = Screen { out, paint, json: arguments.json, quiet: arguments.quiet };
    let now = arguments.now()?;
    // What needs no store does not open it; a server does so when it first needs it: its client waits for the handshake.
    match &arguments.command {
        Some(Command::Serve(command)) => return serve::run(config, command, arguments.fixed_now()?),
        Some(Command::Completions(command)) => return completions::run(command, &mut screen),
        Some(Command::Man(command)) => return completions::man(command, &mut screen),
        _ => {}
    }
    // These do their work without an archive, or with one that is broken.
    match &arguments.command {
        Some(Command::Hook) => return hook::run(config, now, arguments.store.as_deref(), &mut screen),
        Some(Command::Statusline) => return statusline::run(&config, now, &mut screen),
        Some(Command::Seat(command)) => return seat::run(config, now, command, &mut screen),
        Some(Command::Doctor(command)) => return doctor::run(config, now, command, &mut screen),
        Some(Command::Install(command)) => return install::install(&config, command, &mut screen),
        Some(Command::Uninstall(command)) => return install::uninstall(&config, command, &mut screen),
        _ => {}
    }
    // Meanwhile the store is opened and the session read. What runs by itself mostly has nothing to do.
    if matches!(&arguments.command, Some(Command::Compact(it)) if !it.options.auto) {
        // Without a thread it is done when it is needed.
        let _ = std::thread::Builder::new().spawn(facts::prepare);
    }
    // To read from the archive or to remember takes one; a look at a session does not.
    let engine = match &arguments.command {
        Some(
            Command::Apply(_)
            | Command::Import(_)
            | Command::Undo(_)
            | Command::Restore(_)
            | Command::Recall(_)
            | Command::Memory(_)
            | Command::Sessions(SessionsArgs { keep: true, .. }),
        ) => Engine::at(config, now)?,
        _ => Engine::even_without_store(config, now)?,
    };
    match &arguments.command {
        Some(Command::Estimate(command)) => estimate::run(&engine, command, &mut screen),
        Some(Command::Cost(command)) => cost::run(&engine, command, &mut screen),
        Some(Command::Split(command)) => split::run(&engine, command, &mut screen),
        Some(Command::Prune(command)) => prune::run(&engine, command, &mut screen),
        Some(Command::Compact(command)) => compact::run(&engine, command, &mut screen),
        Some(Command::Apply(command)) => apply::run(&engine, command, &mut screen),
        Some(Command::Undo(command)) => restore::undo(&engine, command, &mut screen),
        Some(Command::Repair(command)) => repair::run(&engine, command, &mut screen),
        Some(Command::Score(command)) => score::run(&engine, command, &mut screen),
        Some(Command::Report(command)) => report::run(&engine, command, &mut screen),
        Some(Command::Compare(command)) => compare::run(&engine, command, &mut screen),
        Some(Command::Profiles(command)) => profiles::run(&engine, command, &mut screen),
        Some(Command::Schema(command)) => schema::run(command, &mut screen),
        Some(Command::Restore(command)) => restore::run(&engine, command, &mut screen),
        Some(Command::Recall(command)) => recall::run(&engine, command, &mut screen),
        Some(Command::Sessions(command)) => sessions::run(&engine, command, &mut screen),
        Some(Command::Memory(command)) => memory::run(&engine, command, &mut screen),
        Some(Command::Handoff(command)) => handoff::run(&engine, command, &mut screen),
        Some(Command::Export(command)) => transfer::run_export(&engine, command, &mut screen),
        Some(Command::Import(command)) => transfer::run_import(&engine, command, &mut screen),
        Some(Command::Watch(command)) => watch::run(&engine, command, &mut screen),
        Some(
            Command::Serve(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Hook
            | Command::Statusline
            | Command::Seat(_)
            | Command::Doctor(_)
            | Command::Install(_)
            | Command::Uninstall(_),
        ) => Ok(0),
        None => sessions::here(&engine, &mut screen),
    }
}
