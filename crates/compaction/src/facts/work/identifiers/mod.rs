//! Identifiers in use, which cannot be recovered once they are lost.

mod names;
pub(in crate::facts) mod symbols;

use std::collections::{HashMap, HashSet};

use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::clip;
use crate::facts::text::typed::user_text;
use crate::facts::work::REPOSITORY;
use crate::facts::work::command::{self, ParsedCommand};
use crate::facts::work::git::commits::Commits;
use crate::facts::work::paths::file_name;
use crate::facts::work::runs::frame::unframed;
use crate::facts::{Detail, Fact, FileOp, Name, input_of};
use history::tools::{self, Action, Meaning};
use history::{Call, History, Kind, Output, Part, Role, Text};
use names::Names;
use symbols::{Symbols, single_file};

/// A command that creates tickets or pull requests.
static CREATES_TICKET: AsciiFirstRegex = AsciiFirstRegex::new(r"\b(?:bd|gh (?:issue|pr|release)) create\b");

/// What is read so far, and the calls whose outputs are still to come, by call id.
#[derive(Default)]
struct Collector<'a> {
    base: Option<&'a str>,
    names: Names,
    symbols: Symbols,
    commits: Commits,
    /// Commands that commit or create tickets.
    commands: HashMap<&'a str, String>,
    /// Calls that write code.
    written: HashMap<&'a str, (usize, &'a Call, Vec<Action>)>,
    /// Calls whose output shows code.
    looks: HashMap<&'a str, Vec<Action>>,
}

impl<'a> Collector<'a> {
    fn text(&mut self, number: usize, text: &str, role: Role) {
        self.names.add_all(number, text);
        self.commits.keep_named(text);
        if role == Role::Assistant {
            self.symbols.add_quoted(number, text);
            self.symbols.note_used(text);
        }
    }

    fn call(&mut self, number: usize, call: &'a Call, actions: Vec<Action>) {
        for command in actions.iter().filter_map(|it| it.command.as_deref()) {
            self.names.add_all(number, clip(command, 4_000).0);
            self.commits.keep_named(command);
            if Commits::concerns(command) || CREATES_TICKET.is_match(command) {
                *self.commands.entry(&call.id).or_default() += &format!("{command}\n");
            }
        }
        if actions.iter().any(|it| matches!(it.meaning, Meaning::Edit | Meaning::Create)) {
            self.written.insert(&call.id, (number, call, actions.clone()));
        }
        self.symbols.note_used(call.input.as_str());
        if actions.iter().any(|it| it.meaning == Meaning::Fetch) {
            let input = input_of(call);
            let asked = ["url", "urls", "query", "prompt"].iter().filter_map(|it| input.get(*it));
            asked.for_each(|it| self.names.add_all(number, &it.to_string()));
        }
        if actions.iter().any(|it| it.meaning == Meaning::Read || is_search(it)) {
            self.looks.insert(&call.id, actions);
        }
    }

    fn output(&mut self, number: usize, output: &Output) {
        let written = self.written.remove(&*output.id).filter(|_| !output.failed);
        if let Some((number, call, actions)) = written {
            self.symbols.add_written(number, call, &actions, self.base);
        }
        self.commits.keep_named(clip(output.text.as_str(), 20_000).0);
        if let Some(actions) = self.looks.remove(&*output.id) {
            read_code(number, output.text.as_str(), &actions, self.base, &mut self.symbols);
        }
        let command = self.commands.remove(&*output.id).filter(|_| !output.failed);
        if let Some(command) = &command {
            self.commits.record(command, unframed(output).text.as_str());
        }
        let makes = command.is_some_and(|it| CREATES_TICKET.is_match(&it));
        self.names.add_printed(number, output.text.as_str(), makes);
    }

    fn into_facts(self) -> Vec<Fact> {
        let Self { base, mut symbols, commits, names, .. } = self;
        let mut unanswered: Vec<_> = self.written.into_values().collect();
        unanswered.sort_by_key(|it| it.0);
        for (number, call, actions) in unanswered {
            symbols.add_written(number, call, &actions, base);
        }
        let mut facts = names.facts;
        let ids: Vec<String> = facts
            .iter()
            .filter(|it| it.detail == Detail::Name(Name::Id))
            .map(|it| it.text.as_str().to_owned())
            .collect();
        let shortened = |it: &Fact| ids.iter().any(|id| id.starts_with(it.text.as_str()));
        facts.retain(|it| {
            it.detail != Detail::Name(Name::Hash) || !commits.is_lost(&it.text) && !shortened(it)
        });
        let is_version = |it: &&Fact| it.detail == Detail::Name(Name::Version);
        let of_packages = facts
            .iter()
            .filter(is_version)
            .filter_map(|it| it.text.rsplit_once(' '))
            .map(|it| it.1.trim_start_matches(['^', '~']).to_owned());
        let of_packages: HashSet<String> = of_packages.collect();
        facts.retain(|it| !is_version(&it) || !of_packages.contains(it.text.as_str()));
        facts.extend(symbols.into_facts());
        facts
    }
}

/// Reads the identifiers that the user or the model names, that commands contain, and that code written or
/// searched here defines. `base`: the working directory.
pub(in crate::facts) fn read(history: &History, base: Option<&str>) -> Vec<Fact> {
    let mut collector = Collector { base, ..Collector::default() };
    for (number, message) in history.messages().iter().enumerate() {
        if matches!(message.kind, Kind::Context | Kind::Marker | Kind::Continue)
            || message.role == Role::System
        {
            continue;
        }
        for region in user_text(message.texts().map(Text::as_str)) {
            collector.text(number, region, message.role);
        }
        for part in &message.parts {
            match part {
                Part::Call(call) => {
                    collector.call(number, call, tools::actions_in(call, history.shell_dir(message)));
                }
                Part::Output(output) => collector.output(number, output),
                Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }
    collector.into_facts()
}

fn read_code(number: usize, output: &str, actions: &[Action], base: Option<&str>, symbols: &mut Symbols) {
    if actions.iter().any(is_search) {
        symbols.add_found(number, output, actions, base);
    } else if actions.iter().any(|it| it.path.is_some()) {
        let commands = actions.iter().filter_map(|it| it.command.as_deref());
        let alone = commands.map(ParsedCommand::of).all(|it| it.prints_files_only());
        symbols.add_read(number, output, single_file(actions, base).filter(|_| alone).as_deref());
    }
}

/// Whether an action prints matching lines.
fn is_search(action: &Action) -> bool {
    let by = |it: &str| command::is_read_only(it) && ["rg ", "grep "].iter().any(|of| it.contains(of));
    action.meaning == Meaning::Search || action.command.as_deref().is_some_and(by)
}

/// Drops identifiers that another fact makes redundant: hashes of commits that are listed with their subject, ports in
/// a URL, symbols of deleted files, and symbols that a listed file is named after. Symbols of a renamed file get its
/// new path.
pub(in crate::facts) fn drop_redundant_names(facts: &mut Vec<Fact>) {
    let mut gone: HashMap<String, Option<String>> = HashMap::new();
    let mut there: HashSet<String> = HashSet::new();
    let mut repository = String::new();
    let is = |it: &Fact, kind: Name| it.detail == Detail::Name(kind);
    let urls: Vec<String> =
        facts.iter().filter(|it| is(it, Name::Url)).map(|it| it.text.to_string()).collect();
    for fact in facts.iter() {
        match &fact.detail {
            Detail::File { op: FileOp::Deleted, .. } => {
                gone.insert(fact.text.to_string(), None);
            }
            Detail::File { op: FileOp::Renamed, to } => {
                gone.insert(fact.text.to_string(), to.clone());
            }
            Detail::File { .. } => {
                there.insert(fact.text.to_string());
            }
            Detail::None if fact.text.starts_with(REPOSITORY) => repository += &fact.text,
            _ => {}
        }
    }
    // `Some(None)`: deleted, itself or with a directory that it was in. `Some(Some(path))`: renamed.
    let gone = |file: &str| {
        let deleted = |dir: &str| gone.get(dir).filter(|it| it.is_none());
        let with_directory = || file.match_indices('/').find_map(|it| deleted(&file[..it.0]));
        gone.get(file).or_else(|| with_directory().filter(|_| !there.contains(file)))
    };
    facts.retain_mut(|it| match &mut it.detail {
        Detail::Name(Name::Hash) => !repository.contains(clip(&it.text, 7).0),
        Detail::Name(Name::Port) => !urls.iter().any(|url| {
            let rest = url.split_once(it.text.as_str()).map(|it| it.1);
            rest.is_some_and(|it| !it.starts_with(|it: char| it.is_ascii_digit()))
        }),
        Detail::Symbol { file: Some(file), .. } => match gone(file) {
            Some(Some(to)) => {
                *file = to.clone();
                true
            }
            Some(None) => false,
            None => {
                let stem = file_name(file).split('.').next();
                !(stem == Some(&*it.text) && there.contains(file))
            }
        },
        _ => true,
    });
}
