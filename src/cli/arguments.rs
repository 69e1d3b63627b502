//! What a user may type. Only what was typed is kept here; what it means is the command's and the engine's business.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use super::apply::ApplyArgs;
use super::common::Common;
use super::cost::CostArgs;
use super::handoff::HandoffArgs;
use super::install::{InstallArgs, UninstallArgs};
use super::memory::MemoryArgs;
use super::recall::RecallArgs;
use super::restore::{RestoreArgs, UndoArgs};
use super::seat::SeatArgs;
use super::sessions::SessionsArgs;
use super::watch::WatchArgs;
use compaction::plan::Cause;
use compaction::profile::Style;
use history::error::{Error, Kind, Result};

/// The values of `--style`, each with its help.
const STYLES: [(&str, &str); 3] = [
    ("brief", "Pinned facts and one line for the rest"),
    ("detailed", "Everything that fits"),
    ("technical", "Files, commands, errors and identifiers first"),
];

/// The values of `--trigger`, each with its help.
const CAUSES: [(&str, &str); 3] = [
    ("manual", "Somebody asked for it"),
    ("auto", "The context filled up"),
    ("overflow", "The model refused the input as too long"),
];

/// One of these values, read by the name that it has in JSON.
fn one_of<T>(values: &'static [(&str, &str)]) -> impl TypedValueParser<Value = T>
where
    T: serde::de::DeserializeOwned + Clone + Send + Sync + 'static,
{
    let values = values.iter().map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|it| serde_json::from_value(it.into()))
}

/// Compacts the sessions of coding agents without losing what matters.
#[derive(Debug, Parser)]
#[command(name = "epitome", version, about, disable_help_subcommand = true, max_term_width = 100)]
pub struct Arguments {
    /// What to do; without it, the sessions of this directory and the one command worth running
    #[command(subcommand)]
    pub command: Option<Command>,
    /// One JSON document on stdout
    #[arg(long, global = true)]
    pub json: bool,
    /// More on stderr (-vv: much more)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Less output
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// The folder of archive and memory, instead of the configured one
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(super) store: Option<PathBuf>,
    /// Pretend the current time is this (RFC 3339), for reproducible plans
    #[arg(long, global = true, value_name = "TIME")]
    now: Option<String>,
}

/// Commands that `--help` lists below the others.
const MORE: [&str; 9] =
    ["cost", "split", "compare", "score", "report", "handoff", "memory", "profiles", "watch"];

impl Arguments {
    /// Reads the command line of this process.
    pub fn of_process() -> std::result::Result<Self, clap::Error> {
        Self::from_arg_matches(&Self::in_two_groups().try_get_matches()?)
    }

    fn in_two_groups() -> clap::Command {
        let mut command = Self::command();
        let mut more = String::from("More commands:\n");
        for name in MORE {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            more.push_str(&format!("  {name:<10} {}\n", about.map(ToString::to_string).unwrap_or_default()));
            command = command.mut_subcommand(name, |it| it.hide(true));
        }
        command.after_help(more)
    }

    /// Below zero quiet, above zero verbose.
    pub fn verbosity(&self) -> i8 {
        if self.quiet { -1 } else { self.verbose.min(2) as i8 }
    }

    /// Whether a session is estimated, of any size.
    pub fn is_estimate(&self) -> bool {
        matches!(self.command, Some(Command::Estimate(_)))
    }

    /// Whether many clients are served by one process.
    pub fn serves_http(&self) -> bool {
        matches!(&self.command, Some(Command::Serve(it)) if it.http.is_some())
    }

    /// Whether an agent's hook calls: then nothing may fail.
    pub fn is_hook(&self) -> bool {
        matches!(self.command, Some(Command::Hook))
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
                Error::new(Kind::Arguments, what)
            }),
        }
    }
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compact a session; without --out or --apply a preview that changes nothing
    Compact(CompactArgs),
    /// Install what a preview showed, by the handle that it printed
    Apply(ApplyArgs),
    /// Take back the last --apply in this directory; later turns stay
    Undo(UndoArgs),
    /// How full the context is, what fills it, and whether this is a good moment to compact
    Estimate(EstimateArgs),
    /// What a session cost, where the money went, and what compacting earlier would have saved or lost
    Cost(CostArgs),
    /// List the sessions found, by agent, with the compactions made of each
    Sessions(SessionsArgs),
    /// Clear or shorten old tool outputs
    Prune(PruneArgs),
    /// Search in, or read from, what was archived and remembered
    Recall(RecallArgs),
    /// Get the original of a compaction, message or output, byte for byte
    Restore(RestoreArgs),
    /// Register with an agent: compactor, MCP server and hooks
    Install(InstallArgs),
    /// Remove what `install` added, byte for byte
    Uninstall(UninstallArgs),
    /// Check configuration, agents, other compactors and the archive
    Doctor,
    /// Run the MCP server
    Serve(ServeArgs),
    /// Where a profile would cut, and why
    Split(SplitArgs),
    /// All profiles on one session, side by side, as offline imitations of those systems
    Compare(CompareArgs),
    /// What survived a compaction, by class; or a scorecard of all profiles
    Score(ScoreArgs),
    /// One HTML page: the context over time, what a compaction cuts, keeps and loses
    Report(ReportArgs),
    /// Write a brief for a goal, ready as the first prompt of a new session
    Handoff(HandoffArgs),
    /// List, add, search or forget memories
    Memory(MemoryArgs),
    /// The profiles as a table, or one as TOML
    Profiles(ProfilesArgs),
    /// Report when a session passes a profile's threshold
    Watch(WatchArgs),
    /// What the agents' hooks call; reads the agent's JSON
    #[command(hide = true)]
    Hook,
    /// Compacts for an agent that is running; reads its event
    #[command(hide = true)]
    Seat(SeatArgs),
    /// JSON Schema of a command's --json
    #[command(hide = true)]
    Schema(SchemaArgs),
    /// Completions for a shell, to be sourced
    #[command(hide = true)]
    Completions(CompletionsArgs),
    /// The manual
    #[command(hide = true)]
    Man(ManArgs),
}

/// Arguments of `estimate`.
#[derive(Debug, Args)]
pub struct EstimateArgs {
    #[command(flatten)]
    pub(super) common: Common,
    /// What comes next: tokens, or a file to count
    #[arg(long, value_name = "TOKENS|FILE")]
    pub(super) next: Option<String>,
    /// Who counts: `auto`, or `provider` to send the messages to the model's own provider; another one as provider:NAME[/MODEL]
    #[arg(long, value_name = "HOW")]
    pub(super) method: Option<String>,
    /// With --method provider: where that provider is
    #[arg(long, value_name = "URL", requires = "method")]
    pub(super) base_url: Option<String>,
}

/// Arguments of `split`.
#[derive(Debug, Args)]
pub struct SplitArgs {
    #[command(flatten)]
    pub(super) common: Common,
    /// How much of the end stays: tokens, or a share such as 30%
    #[arg(long, value_name = "SHARE|TOKENS", allow_hyphen_values = true)]
    pub(super) keep: Option<String>,
}

/// Arguments of `prune`.
#[derive(Debug, Args)]
pub struct PruneArgs {
    #[command(flatten)]
    pub(super) common: Common,
    /// The newest outputs that stay, in tokens
    #[arg(long, value_name = "TOKENS", value_parser = super::common::tokens)]
    pub(super) protect: Option<u64>,
    /// Tools whose outputs stay
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) exclude_tools: Vec<String>,
    /// Only the outputs of these calls
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub(super) only: Vec<String>,
    /// Obey the profile's own trigger
    #[arg(long)]
    pub(super) auto: bool,
    /// Write plain messages of this API instead of the session's own format
    #[arg(long = "as", value_name = "FORMAT")]
    pub(super) messages_as: Option<String>,
    /// Write the result to this file
    #[arg(long, short, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Change the session itself, so that its agent goes on from it; the originals are archived
    #[arg(long, conflicts_with_all = ["out", "messages_as"])]
    pub(super) apply: bool,
}

/// Arguments of `compact`.
#[derive(Debug, Args)]
pub struct CompactArgs {
    /// What the messages may have afterwards: tokens, or percent of now
    #[arg(long, value_name = "TOKENS|PERCENT%", allow_hyphen_values = true)]
    pub(super) budget: Option<String>,
    /// Write the compacted session here (- for standard output)
    #[arg(long, short, value_name = "FILE|-")]
    pub(super) out: Option<String>,
    /// Install the result, so that the agent resumes from it; the original is archived
    #[arg(long, conflicts_with = "out")]
    pub(super) apply: bool,
    #[command(flatten)]
    pub(super) common: Common,
    /// How much of the end stays word for word: tokens, or a share
    #[arg(long, value_name = "SHARE|TOKENS", allow_hyphen_values = true)]
    pub(super) keep: Option<String>,
    /// What the summary should look at
    #[arg(long, value_name = "TEXT")]
    pub(super) focus: Option<String>,
    /// How deep the summary goes
    #[arg(long, value_parser = one_of::<Style>(&STYLES), default_value = "detailed")]
    pub(super) style: Style,
    /// Who writes the summary: offline, host, auto, anthropic, openai, gemini, openai-compatible; with a model as NAME/MODEL
    #[arg(long, value_name = "NAME")]
    pub(super) summarizer: Option<String>,
    /// Where that provider is, such as http://localhost:11434/v1
    #[arg(long, value_name = "URL", requires = "summarizer")]
    pub(super) base_url: Option<String>,
    /// Make no API calls and write nothing: what the summarizer would cost, and the preview with the offline summary
    #[arg(long, conflicts_with_all = ["apply", "out", "edit"])]
    pub(super) dry_run: bool,
    /// With --summarizer host, the second call: the handle that the first one gave
    #[arg(long, value_name = "HANDLE", requires = "answer")]
    pub(super) handle: Option<String>,
    /// With --handle: a file with what the model wrote (- for standard input)
    #[arg(long, value_name = "FILE|-", requires = "handle")]
    pub(super) answer: Option<String>,
    /// Open the summary in $EDITOR before it is used
    #[arg(long)]
    pub(super) edit: bool,
    /// Files that the profile puts back come from disk as they are now, not as they were last read
    #[arg(long)]
    pub(super) files_from_disk: bool,
    /// A fact to carry word for word; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(super) pin: Vec<String>,
    /// Obey the profile's own trigger, switches and cool-down
    #[arg(long)]
    pub(super) auto: bool,
    /// Why it runs; selects a profile's emergency paths [default: auto with --auto, else manual]
    #[arg(long, value_parser = one_of::<Cause>(&CAUSES))]
    pub(super) trigger: Option<Cause>,
    /// With --auto: what comes next, tokens or a file to count
    #[arg(long, value_name = "TOKENS|FILE")]
    pub(super) next: Option<String>,
    /// As plain messages of an API (anthropic, openai-chat, openai-responses, gemini), or, with --apply, as a session of
    /// another agent (claude-code, codex, gemini-cli, opencode)
    #[arg(long = "as", value_name = "FORMAT")]
    pub(super) messages_as: Option<String>,
    /// Refuse to keep less than this share of the facts: 0.9, 90%, or of classes U=0.95,F=0.9
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub(super) min_kept: Option<String>,
}

/// Arguments of `score`.
#[derive(Debug, Args)]
pub struct ScoreArgs {
    #[command(flatten)]
    pub(super) common: Common,
    /// What was made of it: a file, an id or a handle
    pub(super) compacted: Option<String>,
    /// Compact every session below this folder in every way, and write a scorecard
    #[arg(long, value_name = "DIR", conflicts_with_all = ["session", "compacted"])]
    pub(super) corpus: Option<PathBuf>,
    /// Where the scorecard is written
    #[arg(long, short, value_name = "FILE", default_value = "SCORECARD.md", requires = "corpus")]
    pub(super) out: PathBuf,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(flatten)]
    pub(super) common: Common,
    /// What the messages may have afterwards: tokens, or percent of now
    #[arg(long, value_name = "TOKENS|PERCENT%", allow_hyphen_values = true)]
    pub(super) budget: Option<String>,
    /// Where the page is written (- for standard output)
    #[arg(long, short, value_name = "FILE.html", default_value = "epitome-report.html")]
    pub(super) out: PathBuf,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    #[command(flatten)]
    pub(super) common: Common,
}

/// Arguments of `profiles`.
#[derive(Debug, Args)]
pub struct ProfilesArgs {
    /// Print this profile as TOML
    pub(super) name: Option<String>,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The command whose --json is described
    pub(super) command: String,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write a page for each command into this folder
    #[arg(long, short, value_name = "FOLDER")]
    pub(super) out: Option<PathBuf>,
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Over standard input and output: the default
    #[arg(long, conflicts_with = "http")]
    pub(super) stdio: bool,
    /// Over HTTP on this address (127.0.0.1:8765): /mcp, and /sse for old clients; terminate TLS in a reverse proxy
    #[arg(long, value_name = "ADDR")]
    pub(super) http: Option<String>,
    /// Who may call: a line name:token each; read again when it changes. Needed beyond this machine
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(super) token_file: Option<PathBuf>,
    /// The provider (https://api.openai.com) to which everything else is passed on unchanged, while compaction is answered
    /// here: make this address the base URL of an agent
    #[arg(long, value_name = "URL", requires = "http")]
    pub(super) upstream: Option<String>,
    /// Sessions below this folder may be read; may be repeated
    #[arg(long, value_name = "DIR", requires = "http")]
    pub(super) allow_root: Vec<PathBuf>,
    /// A host name that requests may name, besides this machine's own; may be repeated
    #[arg(long, value_name = "HOST", requires = "http")]
    pub(super) allow_host: Vec<String>,
}
