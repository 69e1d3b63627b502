//! One fuzz case: runs a session's bytes through everything that a command does with them.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use epitome::config::{Config, Environment};
use epitome::engine::{self, Amount, Ask, Engine, SessionRef, To};
use epitome::history::error::ErrorKind;
use epitome::history::{History, Message};
use epitome::sessions::{self, Format, MemorySource, Mode, Session, validate};
use epitome::store::StoreAt;

/// The profiles that cases are compacted with.
const PROFILES: [&str; 3] = ["epitome", "codex", "gemini-cli"];

/// The result of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Rejected as not a session.
    Unread,
    /// Read; holds the number of valid results written.
    Written(usize),
}

/// State that cases share.
pub struct Bench {
    engine: Engine,
    asks: Vec<Ask>,
}

impl Bench {
    /// An engine that keeps nothing.
    pub fn new() -> epitome::history::error::Result<Self> {
        let environment = Environment { cwd: std::env::temp_dir(), ..Environment::default() };
        let mut config = Config::load(environment)?;
        config.store = StoreAt::Nowhere;
        let engine = Engine::even_without_store(config, 1_780_000_000_000)?;
        let ask = |name: &&str| {
            epitome::profiles::built_in(name)
                .map(|it| Ask { to: To::Bytes, ..Ask::new(it).with_budget(Amount::Share(0.5)) })
        };
        let asks = PROFILES.iter().map(ask).collect::<epitome::history::error::Result<_>>()?;
        Ok(Self { engine, asks })
    }

    /// Reads, estimates, prunes and compacts. The error says what was wrong. `number` chooses the profile.
    pub fn run(&self, format: Format, bytes: &[u8], number: u64) -> Result<Seen, String> {
        catch_unwind(AssertUnwindSafe(|| self.checked(format, bytes, number))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("of another type");
            Err(format!("panic: {text}"))
        })
    }

    fn checked(&self, format: Format, bytes: &[u8], number: u64) -> Result<Seen, String> {
        let opened = match engine::open(&self.engine, &SessionRef::Inline(bytes.to_vec()), Some(format), None)
        {
            Ok(opened) => opened,
            Err(error) if error.kind() == ErrorKind::Bug => return Err(format!("read: {}", error.full())),
            Err(_) => return Ok(Seen::Unread),
        };
        rewritten(&opened.session, bytes)?;
        let ask = &self.asks[(number % self.asks.len() as u64) as usize];
        let bug = |what: &str, error: epitome::history::error::Error| match error.kind() {
            ErrorKind::Bug => Err(format!("{what}: {}", error.full())),
            _ => Ok(()),
        };
        engine::estimate(&self.engine, &opened, ask, None).map(drop).or_else(|it| bug("estimate", it))?;
        engine::prune(&self.engine, &opened, ask).map(drop).or_else(|it| bug("prune", it))?;
        let compacted = match engine::compact(&self.engine, &opened, ask) {
            Ok(compacted) => compacted,
            Err(error) => return bug("compact", error).map(|()| Seen::Written(0)),
        };
        let (Some(bytes), Some(history)) = (compacted.bytes(), compacted.history()) else {
            return Ok(Seen::Written(0));
        };
        // The engine has compared the two; this checks that others can read them.
        let again = sessions::read(&MemorySource::new("again", bytes), Some(format));
        let again = again.map_err(|error| format!("read back: {}", error.full()))?;
        let rules = |it: &History| {
            let broken = validate::check(format.api(), &sessions::messages(it, format.api()).0);
            broken.into_iter().map(|it| it.rule).collect::<BTreeSet<_>>()
        };
        let before = rules(&opened.session.history);
        for after in [history, &again.history] {
            if let Some(rule) = rules(after).difference(&before).next() {
                return Err(format!("invalid: {rule}"));
            }
        }
        Ok(Seen::Written(1))
    }
}

/// The APIs whose plain messages are written.
const APIS: [Format; 4] = [Format::ANTHROPIC, Format::OPENAI_CHAT, Format::OPENAI_RESPONSES, Format::GEMINI];

/// Writes a session without changes. Patching must give the same bytes; a new session must be read as the same messages
/// and written again as the same JSON. The error says what differs.
pub fn rewritten(session: &Session, bytes: &[u8]) -> Result<(), String> {
    let (format, history) = (session.format, &session.history);
    // A session without a message has nothing to resume.
    if history.messages().is_empty() {
        return Ok(());
    }
    if !format.is_read_only() {
        let source = MemorySource::new("session", bytes);
        let patched =
            sessions::write(&source, session, history, Mode::Patch).and_then(|it| it.bytes(&source));
        if patched.map_err(|error| format!("empty patch: {}", error.full()))? != bytes {
            return Err("an empty patch changes bytes".to_owned());
        }
        if !format.is_wire()
            && let Ok(written) = sessions::write(&source, session, history, Mode::New)
        {
            let written = written.bytes(&source).map_err(|error| error.full())?;
            let again = read_again(&written, format)?;
            if let Some(what) = other_message(history, &again.history) {
                return Err(format!("written as a new session it reads otherwise: {what}"));
            }
        }
    }
    for api in APIS {
        let (once, _) = sessions::messages(history, api);
        let again = read_again(&once, api)?;
        let (twice, _) = sessions::messages(&again.history, api);
        // Half of a surrogate pair in a call's input becomes an escape, and is read back as the same character.
        let parsed = |it: &[u8]| serde_json::from_slice::<serde_json::Value>(it).ok();
        if once != twice && parsed(&once) != parsed(&twice) {
            return Err(format!("{} written again differs: {}", api.name(), differing(&once, &twice)));
        }
    }
    Ok(())
}

fn read_again(bytes: &[u8], format: Format) -> Result<Session, String> {
    let read = sessions::read(&MemorySource::new("again", bytes), Some(format));
    read.map_err(|error| format!("{} cannot be read again: {}", format.name(), error.full()))
}

/// The first message that differs in what a model sees. Half of a surrogate pair in JSON that is kept as text becomes
/// an escape, and is read back as its character: such a message is skipped.
fn other_message(one: &History, other: &History) -> Option<String> {
    let shown = |it: Option<&Message>| {
        it.map(|it| format!("{:?} {:?} {:?}", it.role, it.kind, it.parts)).unwrap_or_default()
    };
    let same = |one: &Message, other: &Message| {
        (one.role, one.kind, &one.parts) == (other.role, other.kind, &other.parts)
            || shown(Some(one)).contains(r"\\ufffd")
    };
    let (one, other) = (one.messages(), other.messages());
    let at = one.iter().zip(other).take_while(|(one, other)| same(one, other)).count();
    if at == one.len() && at == other.len() {
        return None;
    }
    Some(differing(shown(one.get(at)).as_bytes(), shown(other.get(at)).as_bytes()))
}

/// Where two texts begin to differ, with some context.
fn differing(one: &[u8], other: &[u8]) -> String {
    let at = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let around = |it: &[u8]| {
        let range = at.saturating_sub(60)..it.len().min(at + 60);
        String::from_utf8_lossy(&it[range]).into_owned()
    };
    format!("at {at}: {} | {}", around(one), around(other))
}
