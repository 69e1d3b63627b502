//! The command line as clap parses it; what it means is up to the commands and the engine.

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use super::archive::memory::MemoryArgs;
use super::archive::push::PushArgs;
use super::archive::recall::RecallArgs;
use super::called::seat::SeatArgs;
use super::called::serve::ServeArgs;
use super::change::apply::ApplyArgs;
use super::change::compact::CompactArgs;
use super::change::prune::PruneArgs;
use super::change::repair::RepairArgs;
use super::change::restore::{RestoreArgs, UndoArgs};
use super::change::watch::WatchArgs;
use super::common::Common;
use super::inspect::estimate::EstimateArgs;
use super::inspect::report::ReportArgs;
use super::inspect::score::ScoreArgs;
use super::inspect::sessions::SessionsArgs;
use super::inspect::split::SplitArgs;
use super::setup::doctor::DoctorArgs;
use super::setup::install::{InstallArgs, UninstallArgs};
use super::setup::profiles::ProfilesArgs;
use super::setup::schema::SchemaArgs;
use super::transfer::carry::{ExportArgs, ImportArgs};
use super::transfer::handoff::HandoffArgs;
use history::error::{Error, ErrorKind, Result};

/// Compact coding-agent sessions without losing what matters.
#[derive(Debug, Parser)]
#[command(name = "epitome", version, about, disable_help_subcommand = true, max_term_width = 100)]
pub struct Arguments {
    /// Without a command: the sessions of this directory and the one command worth running
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Print one JSON document to stdout
    #[arg(long, global = true)]
    pub json: bool,
    /// Log more to stderr (-vv: even more)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Less output
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Folder of the archive and memories, overriding the configuration; for a team, postgres://HOST/DATABASE
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(super) store: Option<PathBuf>,
    /// Pretend the current time is this (RFC 3339), for reproducible plans
    #[arg(long, global = true, value_name = "TIME")]
    now: Option<String>,
}

/// Commands that `--help` lists below the others.
const MORE: [&str; 13] = [
    "cost",
    "split",
    "compare",
    "score",
    "report",
    "handoff",
    "export",
    "import",
    "push",
    "memory",
    "profiles",
    "watch",
    "statusline",
];

impl Arguments {
    /// Parses the command line of this process.
    pub fn of_process() -> Result<Self, clap::Error> {
        Self::from_arg_matches(&Self::in_two_groups().try_get_matches()?)
    }

    fn in_two_groups() -> clap::Command {
        let mut command = Self::command();
        let mut more = String::from("More commands:\n");
        for name in MORE {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            more.push_str(&format!("  {name:<11}{}\n", about.map(ToString::to_string).unwrap_or_default()));
            command = command.mut_subcommand(name, |it| it.hide(true));
        }
        command.after_help(more)
    }

    /// -1: quiet, 0: default, 1 or 2: verbose.
    pub fn verbosity(&self) -> i8 {
        if self.quiet { -1 } else { self.verbose.min(2) as i8 }
    }

    /// Whether this process serves HTTP, and so many clients.
    pub fn serves_http(&self) -> bool {
        matches!(&self.command, Some(Command::Serve(it)) if it.http.is_some())
    }

    /// Whether an agent runs this command and acts on its output and exit code: a failure of ours must not
    /// stop it.
    pub fn is_hook(&self) -> bool {
        matches!(self.command, Some(Command::Hook | Command::Statusline))
    }

    /// `--now`, in milliseconds since 1970.
    pub(super) fn fixed_now(&self) -> Result<Option<i64>> {
        self.now.as_ref().map(|_| self.now()).transpose()
    }

    /// `--now` or the clock, in milliseconds since 1970.
    pub(super) fn now(&self) -> Result<i64> {
        match &self.now {
            None => Ok(jiff::Timestamp::now().as_millisecond()),
            Some(text) => sessions::derive::parse_time(text).ok_or_else(|| {
                let what = format!("--now: expected a time such as 2026-01-31T12:00:00Z, found {text:?}");
                Error::new(ErrorKind::Arguments, what)
            }),
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compact a session; without --out or --apply, only preview the result
    Compact(CompactArgs),
    /// Apply a preview by the handle it printed
    Apply(ApplyArgs),
    /// Undo the last --apply in this directory; later turns are kept
    Undo(UndoArgs),
    /// Show how full the context is, what fills it, and whether now is a good moment to compact
    Estimate(EstimateArgs),
    /// Show what a session cost, where the money went, and what compacting earlier would have saved or lost
    Cost(Common),
    /// List all sessions found: how full they are, and the compactions made of each
    Sessions(SessionsArgs),
    /// Clear or shorten old tool outputs
    Prune(PruneArgs),
    /// Search or read the archive and memories
    Recall(RecallArgs),
    /// Repair a session that its agent cannot resume, changing only what is damaged
    Repair(RepairArgs),
    /// Restore the original of a compaction, message or tool output, byte for byte
    Restore(RestoreArgs),
    /// Register Epitome with an agent: as its compactor, MCP server and hooks
    Install(InstallArgs),
    /// Remove exactly what `install` added
    Uninstall(UninstallArgs),
    /// Check the configuration, agents, other compactors and the archive, or one session
    Doctor(DoctorArgs),
    /// Run the MCP server
    Serve(ServeArgs),
    /// Show where a profile would cut, and why
    Split(SplitArgs),
    /// Run all profiles on one session, side by side, as offline imitations of those systems
    Compare(Common),
    /// Score what survived a compaction, by class of fact, or write a scorecard of all profiles
    Score(ScoreArgs),
    /// Write one HTML page: the context over time, and what a compaction cuts, keeps and loses
    Report(ReportArgs),
    /// Write a brief for a goal, ready as the first prompt of a new session
    Handoff(HandoffArgs),
    /// Write a session and its archived originals to one file, for another machine
    Export(ExportArgs),
    /// Import an exported session, or a session file from elsewhere, so that its agent can resume it
    Import(ImportArgs),
    /// Send archived sessions to the team server that `vault.url` in config.toml names
    Push(PushArgs),
    /// List, add, search or forget memories
    Memory(MemoryArgs),
    /// List the profiles, or print one as TOML
    Profiles(ProfilesArgs),
    /// Report when a session passes a profile's threshold
    Watch(WatchArgs),
    /// Print a status line for Claude Code, from its JSON on standard input
    Statusline,
    /// Handle an agent's hook event, read as JSON from standard input
    #[command(hide = true)]
    Hook,
    /// Compact for a running agent, by its event on standard input
    #[command(hide = true)]
    Seat(SeatArgs),
    /// Print the JSON Schema of a command's --json output
    #[command(hide = true)]
    Schema(SchemaArgs),
    /// Print a completion script for a shell, to be sourced
    #[command(hide = true)]
    Completions(CompletionsArgs),
    /// Print the manual page (roff)
    #[command(hide = true)]
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to complete for
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write a page for each command into this folder
    #[arg(long, short, value_name = "FOLDER")]
    pub(super) out: Option<PathBuf>,
}
