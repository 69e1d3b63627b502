//! Skills that were loaded: once their message is compacted away, the model no longer knows that it follows them.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::talk::is_trivial;
use super::talk::replies::is_answer;
use super::text::cues::{CUES, Lowercased};
use super::text::typed::slash_command;
use super::text::{clip, flat, sentences, without_bold, without_markers};
use super::voice::ToolTopic;
use super::work::identifiers::symbols::unnumbered;
use super::{Detail, Fact, FileOp, Topic, input_of};
use history::tools::{self, Action, Meaning};
use history::{Call, History, Kind, Message, Role, Text};

/// Prefix of a skill's text in the message that Claude Code adds after the call; its directory follows.
const BASE_DIRECTORY: &str = "Base directory for this skill: ";

/// Prefix of Claude Code's output for a call that loads a skill.
const LAUNCHING: &str = "Launching skill: ";

/// Maximum prohibitions that are quoted from a skill, and maximum characters of each.
const QUOTED: usize = 2;
const QUOTE_CHARS: usize = 160;

/// Lines at the beginning of a skill among which it states its goal.
const GOAL_LINES: usize = 8;

/// Bytes of a skill that only refers to another document: "Follow the instructions in ./workflow.md."
const BRIEF: usize = 300;

/// A skill as it was loaded, or a slash command; the name of a command includes its slash.
struct Skill<'a> {
    name: &'a str,
    /// Its directory or file, where the session has it.
    path: Option<&'a str>,
    text: &'a str,
}

/// Adds the skills of a history, each as it was last loaded, in place of those from earlier summaries.
pub(in crate::facts) fn read(history: &History, facts: &mut Vec<Fact>) {
    let mut loaded: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut open: HashMap<&str, String> = HashMap::new();
    // The preceding text, if a person or the client wrote it.
    let mut before = "";
    // Skills and commands whose calls Claude Code answered with one line; their texts follow in messages.
    let mut launched: VecDeque<String> = VecDeque::new();
    // Name and text of the skills that say little themselves, by directory; and the calls that read a document of one.
    let mut brief: HashMap<String, (String, String)> = HashMap::new();
    let mut reads: HashMap<&str, String> = HashMap::new();
    for (number, message) in history.messages().iter().enumerate() {
        // The instructions of a slash command hold only for the request that it makes; an answer, or what the user
        // says while the model works on it, goes on with it.
        if message.is_prompt()
            && !is_answer(history.messages(), number)
            && (!interrupts(&history.messages()[..number])
                || CUES.withdraws.is_in(&Lowercased::of(&message.plain())))
            && !is_trivial(&message.plain())
        {
            loaded.retain(|it, _| !it.starts_with('/'));
        }
        open.extend(message.calls().filter_map(|it| Some((&*it.id, name_of(it)?))));
        reads.extend(message.calls().filter_map(|it| Some((&*it.id, document_of(it, &brief)?))));
        for output in message.outputs().filter(|it| !it.failed) {
            let Some(path) = reads.remove(&*output.id) else { continue };
            if let Some((name, own)) = brief.remove(&path) {
                let document: Vec<&str> = output.text.as_str().lines().map(unnumbered).collect();
                let text = format!("{}\n{own}", document.join("\n"));
                let skill = Skill { name: &name, path: Some(&path), text: &text };
                loaded.insert(name.clone(), (number, line(&skill)));
            }
        }
        let mut load = |skill: &Skill| {
            if let Some(path) = skill.path.filter(|_| skill.text.len() < BRIEF) {
                brief.insert(path.to_owned(), (skill.name.to_owned(), skill.text.to_owned()));
            }
            loaded.insert(skill.name.to_owned(), (number, line(skill)));
        };
        for output in message.outputs().filter(|it| !it.failed) {
            let text = output.text.as_str();
            let Some(name) = open.get(&*output.id) else { continue };
            if is_instructions(text) || text.lines().any(|it| it.starts_with("# ")) {
                // `plugin:name` has the directory `name`.
                let name = name.rsplit(':').next().unwrap_or(name);
                load(&Skill { name, path: None, text });
            } else if text.starts_with(LAUNCHING) {
                // It counts as a command, for this request only, unless its text names a skill directory.
                launched.push_back(format!("/{name}"));
            }
        }
        let by_user = message.role == Role::User;
        for text in message.texts().filter(|_| by_user).map(Text::as_str) {
            match message.kind {
                Kind::Context => {
                    let called = launched.pop_front();
                    let name = slash_command(before).or(called.as_deref());
                    of_client(text.trim_start(), name).iter().for_each(&mut load);
                }
                Kind::Said => in_element(text.trim_start()).iter().for_each(&mut load),
                Kind::Summary | Kind::Marker | Kind::Ack | Kind::Continue => {}
            }
            before = text;
        }
        if message.role == Role::Assistant {
            launched.clear();
        }
        if !by_user {
            before = "";
        }
    }
    for fact in facts.iter().filter(|it| matches!(it.detail, Detail::File { op: FileOp::Read, .. })) {
        let Some(skill) = read_as_file(history, fact) else { continue };
        loaded.entry(skill.name.to_owned()).or_insert_with(|| (fact.message, line(&skill)));
    }
    let told = |it: &Fact| it.text.split([' ', ':']).next().is_some_and(|it| loaded.contains_key(it));
    let last_prompt = history.last_prompt();
    let over = |it: &Fact| it.text.starts_with('/') && last_prompt > Some(it.message);
    facts.retain(|it| it.topic != Topic::Skills || !told(it) && !over(it));
    let skills = loaded.into_values();
    facts
        .extend(skills.map(|(number, text)| Fact::from_tools(ToolTopic::Skills, number, text, Detail::None)));
}

/// Whether a prompt after `before` comes in the middle of a turn: the last call's output has no reply yet.
fn interrupts(before: &[Message]) -> bool {
    let last = before.iter().rev().find(|it| it.kind == Kind::Said);
    last.is_some_and(|it| it.outputs().next().is_some())
}

/// The directory of the skill that says little itself, if a call reads a document that the skill names.
fn document_of(call: &Call, brief: &HashMap<String, (String, String)>) -> Option<String> {
    if brief.is_empty() {
        return None;
    }
    let reads = |it: &Action| it.meaning == Meaning::Read;
    let path = tools::actions(call).into_iter().filter(reads).find_map(|it| it.path)?;
    let of = |(directory, (_, text)): &(&String, &(String, String))| {
        path.strip_prefix(directory.as_str())
            .and_then(|it| it.strip_prefix('/'))
            .is_some_and(|it| text.contains(it))
    };
    brief.iter().find(of).map(|it| it.0.clone())
}

/// Whether the output of a call is the text of a skill (OpenCode, Gemini CLI).
fn is_instructions(output: &str) -> bool {
    output.starts_with("<skill_content") || output.starts_with("<activated_skill")
}

/// Whether a call loaded a skill, so that no subagent ran.
pub(in crate::facts) fn is_loaded(output: &str) -> bool {
    is_instructions(output) || output.starts_with(LAUNCHING)
}

/// The name of the skill that a call loads.
fn name_of(call: &Call) -> Option<String> {
    let loads = matches!(call.name.to_lowercase().as_str(), "skill" | "activate_skill");
    let input = loads.then(|| input_of(call))?;
    Some(input.get("name").or_else(|| input.get("skill"))?.as_str()?.to_owned())
}

/// The skills in a text that the client inserted (Claude Code, Codex). `name`: the slash command or call that
/// a text belongs to, for one that names no skill itself.
fn of_client<'a>(text: &'a str, name: Option<&'a str>) -> Vec<Skill<'a>> {
    // What follows is what the skill was called with.
    let text = text.rsplit_once("\nARGUMENTS: ").map_or(text, |it| it.0);
    let skills: Vec<Skill> = match text.strip_prefix(BASE_DIRECTORY) {
        // After a compaction Claude Code puts all skills into one text.
        Some(rest) => rest.split(BASE_DIRECTORY).filter_map(in_directory).collect(),
        None => in_element(text).into_iter().collect(),
    };
    // The client's own elements have composed names: `<system-reminder>`, `<environment_context>`.
    let tag = text.strip_prefix('<').and_then(|it| it.split(['>', ' ']).next());
    let other = tag.is_some_and(|it| it.contains(['-', '_']))
        || ["Note: ", "Caveat: "].iter().any(|it| text.starts_with(it));
    match name.filter(|_| skills.is_empty() && !other) {
        Some(name) => vec![Skill { name, path: None, text }],
        None => skills,
    }
}

/// A skill whose first line is its directory.
fn in_directory(text: &str) -> Option<Skill<'_>> {
    let (path, text) = text.split_once('\n')?;
    let path = path.trim_end();
    let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next()?;
    Some(Skill { name, path: Some(path), text })
}

/// A skill in an element, with its name and path in elements (Codex) or attributes (pi).
fn in_element(text: &str) -> Option<Skill<'_>> {
    let (tag, text) = text.strip_prefix("<skill")?.split_once('>')?;
    let text = text.split_once("</skill>")?.0;
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|it| it.0.trim())
    };
    let attribute = |name: &str| tag.split_once(&format!(" {name}=\""))?.1.split('"').next();
    Some(Skill {
        name: attribute("name").or_else(|| element("name"))?,
        path: attribute("location").or_else(|| element("path")),
        text: without_head(text),
    })
}

/// Folders in which agents keep skills.
const INSTALLED: [&str; 7] =
    [".agents/skills/", ".claude/", ".codex/", ".config/", ".gemini/", ".hermes/", ".pi/"];

/// A skill that was loaded by reading its file, as agents without a tool for it do. A skill file of the
/// project itself is an ordinary file.
fn read_as_file<'a>(history: &'a History, fact: &'a Fact) -> Option<Skill<'a>> {
    let path = fact.text.as_str();
    let directory = path.strip_suffix("/SKILL.md").or_else(|| path.strip_suffix("\\SKILL.md"))?;
    let installed = INSTALLED.iter().any(|it| path.replace('\\', "/").contains(it));
    let name = directory.rsplit(['/', '\\']).next().filter(|_| installed)?;
    // A skill that is edited or copied is what the work is on.
    let place = format!("skills/{name}/");
    let works_on = |it: &Action| match it.meaning {
        Meaning::Edit | Meaning::Create => it.path.as_deref().is_some_and(|it| it.contains(&place)),
        _ => it.command.as_deref().is_some_and(|it| it.starts_with("cp ") && it.contains(&place)),
    };
    if history.messages().iter().flat_map(Message::calls).any(|it| tools::actions(it).iter().any(works_on)) {
        return None;
    }
    let near = history.messages().iter().skip(fact.message).take(2);
    let mut outputs = near.flat_map(Message::outputs).filter(|it| !it.failed).map(|it| it.text.as_str());
    let head = format!("name: {name}\n");
    let text = outputs.find_map(|it| Some(it.split_once(&head)?.1.split_once("---\n")?.1))?;
    // Another skill may be printed after it.
    let text = text.split_once("\n---\nname: ").map_or(text, |it| it.0);
    Some(Skill { name, path: Some(path), text })
}

/// The instructions in a skill's file, without the front matter that names and describes it.
fn without_head(text: &str) -> &str {
    let head = text.split_once("\nname: ").and_then(|it| it.1.split_once("\n---\n"));
    head.map_or(text, |it| it.1)
}

/// The summary's line about a skill. Prohibitions in capitals come first.
fn line(skill: &Skill) -> String {
    let place = skill.path.map_or_else(String::new, |it| format!(" ({it})"));
    let always = |it: &&str| forbids(it) && !is_conditional(skill.text, it);
    let mut forbidding: Vec<&str> = sentences(skill.text).into_iter().filter(always).collect();
    forbidding.sort_by_key(|it| !stresses(it));
    let quote = |it: &&str| format!("\"{}\"", flat(&without_bold(it)));
    let quoted: Vec<String> = forbidding.iter().take(QUOTED).map(quote).collect();
    let more = if forbidding.len() > QUOTED { " and more" } else { "" };
    let bans =
        if quoted.is_empty() { String::new() } else { format!(": it says {}{more}", quoted.join(" ")) };
    // Further down, it may be a template's.
    let goal = skill.text.lines().take(GOAL_LINES).find_map(|it| it.strip_prefix("**Goal:** "));
    let goal = goal.filter(|it| !it.starts_with('['));
    let goal = goal.map(|it| clip(it, QUOTE_CHARS));
    let goal = goal
        .map(|(it, cut)| format!(", whose goal is \"{it}{}\"", if cut { " …" } else { "" }))
        .unwrap_or_default();
    format!("{}{place}{goal}{bans}", skill.name)
}

/// Whether a sentence, a part of `text`, is an item of a list below a condition: `If the file exists:`.
fn is_conditional(text: &str, sentence: &str) -> bool {
    let at = (sentence.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let start = text.get(..at).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
    let is_item = |it: &str| without_markers(it).len() < it.trim().len();
    let own = text.get(start..).and_then(|it| it.lines().next()).unwrap_or_default();
    let above = text.get(..start).unwrap_or_default().lines().rev();
    let lead = above.map(str::trim).find(|it| !it.is_empty() && !is_item(it)).unwrap_or_default();
    let lead = lead.rsplit(". ").next().unwrap_or_default().to_lowercase();
    is_item(own)
        && lead.ends_with(':')
        && ["if ", "when ", "unless ", "otherwise"].iter().any(|it| lead.starts_with(it))
}

/// Whether a sentence has a prohibition in capitals.
fn stresses(sentence: &str) -> bool {
    let begin = clip(sentence, 40).0;
    begin.starts_with(|it: char| !it.is_ascii_digit())
        && ["NEVER", "DO NOT", "Do NOT", "MUST NOT"].iter().any(|it| begin.contains(it))
}

/// Whether a sentence names a state of the skill's own procedure, such as `STILL_BROKEN`, which means nothing outside.
fn names_own_state(sentence: &str) -> bool {
    const STATES: [&str; 10] = [
        "_BLOCKED",
        "_BROKEN",
        "_CLOSED",
        "_COMPLETE",
        "_DONE",
        "_FAILED",
        "_FIXED",
        "_OPEN",
        "_PENDING",
        "_READY",
    ];
    let is_state = |it: &str| STATES.iter().any(|state| it.ends_with(state));
    sentence.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_state)
}

/// Whether a sentence of a skill is a prohibition that can stand alone.
fn forbids(sentence: &str) -> bool {
    const BEGINS: [&str; 6] =
        ["never ", "do not ", "don't ", "must not ", "you must not ", "you must never "];
    /// The last two say when not to use the skill.
    const NO_BAN: [&str; 7] =
        ["mind ", "forget ", "hesitate", "worry", "just ", "use this skill", "use when "];
    let plain = without_bold(sentence);
    let lower = plain.to_lowercase();
    let bans = BEGINS.iter().find_map(|it| lower.strip_prefix(it));
    plain.chars().count() <= QUOTE_CHARS
        && plain.ends_with(['.', '!'])
        && plain.starts_with(|it: char| it.is_uppercase() || it == '`')
        // Which skill may follow depends on the work, and a step on those before it.
        && !["other skill", "to step "].iter().any(|it| lower.contains(it))
        && !names_own_state(&plain)
        && (bans.is_some_and(|rest| !NO_BAN.iter().any(|it| rest.starts_with(it))) || stresses(sentence))
}
