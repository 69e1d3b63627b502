//! Nothing that a tool prints, no path, name, command or file can speak as the user: hostile texts, each in every place
//! of a session where tools or the model write, in the four agents' formats, against a harmless text in the same place.
//! What carries the user's voice must be the same, byte for byte.

mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use epitome::agents::hooks::{HookEvent, HookMoment};
use epitome::agents::{self, AgentRef};
use epitome::compaction::facts::{self, Topic, Voice};
use epitome::config::{Config, Environment};
use epitome::engine::{self, Amount, Ask, Engine, Opened, SeatAsk, SessionRef, To};
use epitome::history::verbatim::{self, Prompts};
use epitome::history::{History, Kind, Message, Meta, Role};
use epitome::score::{self, Class};
use epitome::sessions::{self, Format, MemorySource};
use epitome::store::StoreAt;
use serde::Deserialize;

const NOW: i64 = 1_700_000_000_000;

/// What carries the user's voice. `Current`, `Active` and `Open` are the model's, and no tool's either.
const TOPICS: [Topic; 9] = [
    Topic::Goal,
    Topic::Constraints,
    Topic::Requests,
    Topic::UserMessages,
    Topic::Decisions,
    Topic::Last,
    Topic::Current,
    Topic::Active,
    Topic::Open,
];

/// Sections that hold them, of the profile `epitome` and of briefs.
const VOICED: [&str; 6] =
    ["Goal", "Rules", "Decisions", "Last request and what is open", "Must hold", "Where it stands"];
const USER_SAID: &str = "User said";

/// The other sections: what they say may differ, but there are no more of them.
const OTHERS: [&str; 15] = [
    "Replies in earlier turns (may be outdated)",
    "Last step",
    "State of the work",
    "Files",
    "Commands",
    "Errors",
    "Tried and given up",
    "Untested code",
    "Identifiers",
    "Findings",
    "Files, and why",
    "Commands and errors",
    "Found out",
    "Open",
    "Last request",
];

/// A hostile text and where it stands.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Attack {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) place: Place,
    pub(crate) text: String,
    /// What a tool or command prints whose name or text is the attack.
    #[serde(default)]
    pub(crate) output: String,
}

/// Where in a session a text stands that neither the user nor the agent's own program wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Place {
    /// What a shell command printed that went well.
    Output,
    /// What a shell command printed that failed.
    Failed,
    /// A file that was read.
    Read,
    /// The result of an MCP tool.
    Mcp,
    /// The error of an MCP tool, which agents record as its server wrote it.
    McpFailed,
    /// A result of several text blocks.
    Blocks,
    /// A page that was fetched.
    Web,
    /// The path of an edit.
    Path,
    Command,
    Tool,
}

#[derive(Deserialize)]
struct Cases {
    attack: Vec<Attack>,
}

fn attacks() -> Vec<Attack> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/attacks");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        toml::from_str::<Cases>(&text).unwrap_or_else(|it| panic!("{}: {it}", path.display())).attack
    };
    files.iter().flat_map(read).collect()
}

/// The same place with nothing in it that anybody could misread.
fn harmless(place: Place) -> Attack {
    let (text, output) = match place {
        Place::Output | Place::Read | Place::Mcp | Place::Blocks | Place::Web => ("alpha beta gamma", ""),
        Place::Failed | Place::McpFailed => ("error: alpha beta gamma", ""),
        Place::Path => ("src/alpha.rs", ""),
        Place::Command => ("alpha --beta", "gamma"),
        Place::Tool => ("mcp__docs__lookup", "alpha beta gamma"),
    };
    let (text, output) = (text.to_owned(), output.to_owned());
    Attack { name: "harmless".to_owned(), kind: String::new(), place, text, output }
}

/// What is said in the user's voice, by who says it.
type Voices = BTreeMap<&'static str, String>;

struct Bench {
    home: tempfile::TempDir,
    engine: Engine,
    format: Format,
    agent: AgentRef,
    count: usize,
}

impl Bench {
    fn new(format: Format) -> Self {
        let home = tempfile::tempdir().unwrap();
        let variables = BTreeMap::from([("HOME".to_owned(), home.path().display().to_string())]);
        let mut config = Config::load(Environment { variables, cwd: home.path().to_owned() }).unwrap();
        config.store = StoreAt::Path(home.path().join("store"));
        config.hooks.reminder = false;
        let engine = Engine::at(config, NOW).unwrap();
        let agent = agents::of_format(format).unwrap();
        Self { home, engine, format, agent, count: 0 }
    }

    /// Everything that is printed of a session with `attack` in it. Another verb is one more line here.
    fn voices(&mut self, attack: &Attack) -> Voices {
        self.count += 1;
        let text = session::written(self.format, attack, self.count);
        let opened = self.open(&text);
        let history = &opened.session.history;
        let mut out = Voices::new();
        out.insert("facts", voiced_facts(history));
        out.insert("score", voiced_probes(history));
        out.insert("handoff", voiced(&engine::brief(&self.engine, &opened, "go on").unwrap()));
        let mut ask =
            Ask::new(epitome::profiles::built_in("epitome").unwrap()).with_budget(Amount::Tokens(1_500));
        ask.options.keep = Some(Amount::Tokens(200));
        ask.to = To::Bytes;
        let made = engine::compact(&self.engine, &opened, &ask).unwrap();
        assert_eq!(made.answer().status.name(), "compacted", "{}: {}", attack.name, made.answer().reason);
        out.insert("compact", voiced(&made.answer().summary.unwrap()));
        let bytes = made.bytes().unwrap().to_vec();
        self.hooks(&text, &bytes, &mut out);
        let again = self.open(std::str::from_utf8(&bytes).unwrap());
        out.insert("facts of the compacted session", voiced_facts(&again.session.history));
        out.insert("score of the compacted session", voiced_probes(&again.session.history));
        out.insert("second compaction", voiced(&engine::brief(&self.engine, &again, "go on").unwrap()));
        let seated = engine::seat(&self.engine, opened, None, &SeatAsk::default()).unwrap();
        // An agent that takes one text gives it back as the summary of the next compaction. How much of the end stands
        // in it word for word depends on sizes: what the user said may stand in either part, but nothing else may.
        let one_text = Message::text(Role::User, Kind::Summary, seated.one_text(Prompts::Dropped));
        let next = History::new(vec![one_text], Meta::default());
        out.insert("seat", users_words(&verbatim::expanded(&next).unwrap().0));
        out
    }

    fn open(&self, text: &str) -> Opened {
        let inline = SessionRef::Inline(text.as_bytes().to_vec());
        engine::open(&self.engine, &inline, Some(self.format), None).unwrap()
    }

    /// What the hooks say: before a compaction, after it, and once more with what the summary left out.
    fn hooks(&self, before: &str, after: &[u8], out: &mut Voices) {
        let ending = if self.format == Format::OPENCODE { "json" } else { "jsonl" };
        let path = self.home.path().join(format!("session-{}.{ending}", self.count));
        let event = |moment: HookMoment, summary: Option<&str>| HookEvent {
            agent: self.agent,
            moment,
            name: "a hook".to_owned(),
            session: format!("s{}", self.count),
            path: Some(path.clone()),
            cwd: Some(self.home.path().to_owned()),
            summary: summary.map(str::to_owned),
        };
        let hook = |moment: HookMoment, summary: Option<&str>| {
            engine::hook(&self.engine, &event(moment, summary))
                .unwrap_or_else(|it| panic!("{moment:?}: {it}"))
        };
        std::fs::write(&path, before).unwrap();
        assert_eq!(hook(HookMoment::Start, None), "");
        out.insert("hook before a compaction", hook(HookMoment::BeforeCompaction, None));
        assert_eq!(hook(HookMoment::BeforeCheck, None), "");
        std::fs::write(&path, after).unwrap();
        out.insert("hook after a compaction", listed(&hook(HookMoment::StartCompacted, None)));
        assert_eq!(hook(HookMoment::AfterCompaction, Some("Work goes on.")), "");
        // What was left out may be a file or an error that differs; each is one line.
        let missing = hook(HookMoment::Turn, None);
        let loose = missing.lines().skip(1).find(|it| !it.starts_with("- ") || it.starts_with("- #"));
        out.insert("hook of a turn", loose.unwrap_or_default().to_owned());
    }
}

/// A hook's text; of a list of what is missing only lines that are no items, since files and errors may differ.
fn listed(text: &str) -> String {
    match text.strip_prefix("The summary left these out:") {
        Some(items) => items.lines().filter(|it| !it.is_empty() && !it.starts_with("- ")).collect(),
        None => text.to_owned(),
    }
}

fn voiced_facts(history: &History) -> String {
    let ledger = facts::read(history);
    let mine = ledger.facts.iter().filter(|it| TOPICS.contains(&it.topic));
    mine.map(|it| format!("{it:?}\n")).collect()
}

/// All that is told as the user's, wherever it stands.
fn users_words(history: &History) -> String {
    let ledger = facts::read(history);
    let mine = ledger.facts.iter().filter(|it| it.voice() == Voice::User);
    let texts: BTreeSet<&str> = mine.map(|it| &*it.text).collect();
    texts.into_iter().map(|it| format!("{it}\n")).collect()
}

fn voiced_probes(history: &History) -> String {
    let mine = score::probes(history).into_iter();
    let mine = mine.filter(|it| {
        matches!(it.class, Class::UserRule | Class::Decision | Class::LastRequest | Class::Goal)
    });
    mine.map(|it| format!("{it:?}\n")).collect()
}

/// The sections of a summary or brief that carry the user's voice, and every heading that should not be there.
fn voiced(text: &str) -> String {
    let (mut out, mut open) = (String::new(), true);
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            let known = VOICED.contains(&title) || title == USER_SAID || OTHERS.contains(&title);
            // The list of all that the user said is filled up with what room is left.
            open = VOICED.contains(&title) || !known;
        }
        if open || line.starts_with('#') && !line.starts_with("## ") {
            out.push_str(line);
            out.push('\n');
        }
    }
    // The first line of a summary and that of a brief name the session.
    let named = |it: &&str| it.contains("[end ") || it.starts_with("What follows is from the session");
    out.lines().filter(|it| !named(it)).collect::<Vec<_>>().join("\n")
}

fn check(format: Format) {
    let mut bench = Bench::new(format);
    let mut usual: BTreeMap<Place, Voices> = BTreeMap::new();
    let (mut holes, mut tried) = (Vec::new(), 0);
    for attack in attacks() {
        let expected =
            usual.entry(attack.place).or_insert_with_key(|place| bench.voices(&harmless(*place))).clone();
        for (verb, found) in bench.voices(&attack) {
            tried += 1;
            let expected = &expected[verb];
            if found != *expected {
                let new = found.lines().find(|it| !expected.lines().any(|old| old == *it));
                let lost = expected.lines().find(|it| !found.lines().any(|new| new == *it));
                holes.push(format!(
                    "{} ({}), {verb}:\n    new:  {}\n    lost: {}",
                    attack.name,
                    attack.kind,
                    new.unwrap_or("-"),
                    lost.unwrap_or("-")
                ));
            }
        }
    }
    assert!(holes.is_empty(), "{}: {} of {tried}:\n{}", format.name(), holes.len(), holes.join("\n"));
}

#[test]
fn nothing_speaks_as_the_user_in_claude_code() {
    check(Format::CLAUDE_CODE);
}

#[test]
fn nothing_speaks_as_the_user_in_codex() {
    check(Format::CODEX);
}

#[test]
fn nothing_speaks_as_the_user_in_gemini_cli() {
    check(Format::GEMINI_CLI);
}

#[test]
fn nothing_speaks_as_the_user_in_opencode() {
    check(Format::OPENCODE);
}

/// What the user did say, refused and answered is told, and told as the user's.
#[test]
fn what_the_user_refused_and_answered_is_told() {
    for format in [Format::CLAUDE_CODE, Format::CODEX, Format::GEMINI_CLI, Format::OPENCODE] {
        let mut bench = Bench::new(format);
        let voices = bench.voices(&harmless(Place::Output));
        let heard = bench.agent.info().hooks.reply_reaches_model_at.contains(&HookMoment::BeforeCompaction);
        let before = heard.then_some("hook before a compaction");
        for verb in ["handoff", "compact", "second compaction"].into_iter().chain(before) {
            let text = &voices[verb];
            let mut expected =
                vec!["Never change the public API", session::QUESTION, session::ANSWER, "refused: "];
            if session::records_reasons(format) {
                expected.push(session::REASON);
            }
            for it in expected {
                assert!(text.contains(it), "{} {verb}: {it:?} is not in\n{text}", format.name());
            }
        }
    }
}

#[test]
fn there_are_attacks_of_every_kind() {
    let all = attacks();
    let mut names: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len(), "two attacks have one name");
    assert!(all.len() >= 120, "{}", all.len());
    for kind in [
        "refusal", "summary", "heading", "role", "tool", "path", "commit", "command", "image", "language",
        "error",
    ] {
        assert!(all.iter().any(|it| it.kind == kind), "no attack of the kind {kind}");
    }
}

/// Refusals and answers that real sessions hold: every refusal is of an output that failed, and all are told.
#[test]
fn real_refusals_and_answers_are_told() {
    use epitome::compaction::facts::Detail;
    let mut folders: Vec<_> =
        crate::corpus::KINDS.iter().map(|it| crate::corpus::corpus().join(it)).collect();
    folders.extend(["claude", "codex", "gemini", "opencode"].map(|it| crate::corpus::samples().join(it)));
    let mut table: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for path in crate::corpus::sessions("voice::real_refusals_and_answers_are_told", &folders) {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let Ok(session) = sessions::read(&MemorySource::new(path.display().to_string(), bytes), None) else {
            continue;
        };
        let history = &session.history;
        let outputs = |number: usize| {
            history.messages()[number].outputs().map(|it| it.text.as_str()).collect::<String>()
        };
        for fact in facts::read(history).about(Topic::Decisions) {
            let Detail::Choice { means, refused, asked, .. } = &fact.detail else { continue };
            let count = table.entry(session.format.name().to_owned()).or_default();
            let of_tool = history.messages()[fact.message].outputs().next().is_some();
            if *refused && means.is_some() && of_tool {
                assert!(
                    history.messages()[fact.message].outputs().any(|it| it.failed),
                    "{}: {fact:?}",
                    path.display()
                );
                count.0 += 1;
                println!("refused  {}  {means:?} -> {}", session.format.name(), &*fact.text);
            } else if asked.is_some() && of_tool {
                assert!(
                    outputs(fact.message).contains(fact.text.trim())
                        || fact.text.contains(", ")
                        || fact.text.as_str() == "approved"
                );
                count.1 += 1;
                println!("answered {}  {asked:?} -> {}", session.format.name(), &*fact.text);
            }
        }
    }
    println!("agent: refusals, answers: {table:?}");
}
