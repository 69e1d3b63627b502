//! One case: a session's bytes through everything that a command does with them.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use epitome::config::{Config, Environment, StoreAt};
use epitome::engine::{Amount, Ask, Engine, SessionRef, To};
use epitome::error::Kind;
use epitome::format::{self, Format, Memory, validate};
use epitome::history::History;
use epitome::profile::Profile;

/// What is compacted with.
const PROFILES: [&str; 3] = ["epitome", "codex", "gemini-cli"];

/// What came of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It is no session, and that was said.
    Unread,
    /// It was read; so many times something was written and found well.
    Written(usize),
}

/// Everything at hand that cases share.
pub struct Bench {
    engine: Engine,
    asks: Vec<Ask>,
}

impl Bench {
    /// An engine that keeps nothing.
    pub fn new() -> epitome::error::Result<Self> {
        let environment = Environment { cwd: std::env::temp_dir(), ..Environment::default() };
        let mut config = Config::load(environment)?;
        config.store = StoreAt::Nowhere;
        let engine = Engine::even_without_store(config, 1_780_000_000_000)?;
        let ask = |name: &&str| {
            Profile::built_in(name).map(|it| Ask {
                to: To::Bytes,
                budget: Some(Amount::Share(0.5)),
                ..Ask::new(it)
            })
        };
        let asks = PROFILES.iter().map(ask).collect::<epitome::error::Result<_>>()?;
        Ok(Self { engine, asks })
    }

    /// Reads, estimates, prunes and compacts; what was found wrong, if anything. `number` chooses the profile.
    pub fn run(&self, format: Format, bytes: &[u8], number: u64) -> Result<Seen, String> {
        catch_unwind(AssertUnwindSafe(|| self.checked(format, bytes, number))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("of another type");
            Err(format!("panic: {text}"))
        })
    }

    fn checked(&self, format: Format, bytes: &[u8], number: u64) -> Result<Seen, String> {
        let opened = match self.engine.open(&SessionRef::Inline(bytes.to_vec()), Some(format), None) {
            Ok(opened) => opened,
            Err(error) if error.kind() == Kind::Bug => return Err(format!("read: {}", error.full())),
            Err(_) => return Ok(Seen::Unread),
        };
        let ask = &self.asks[(number % self.asks.len() as u64) as usize];
        let bug = |what: &str, error: epitome::error::Error| match error.kind() {
            Kind::Bug => Err(format!("{what}: {}", error.full())),
            _ => Ok(()),
        };
        self.engine.estimate(&opened, ask, None).map(drop).or_else(|it| bug("estimate", it))?;
        self.engine.prune(&opened, ask).map(drop).or_else(|it| bug("prune", it))?;
        let compacted = match self.engine.compact(&opened, ask) {
            Ok(compacted) => compacted,
            Err(error) => return bug("compact", error).map(|()| Seen::Written(0)),
        };
        let (Some(bytes), Some(history)) = (compacted.bytes, compacted.history) else {
            return Ok(Seen::Written(0));
        };
        // The engine has compared the two; here it is whether anybody else can read them.
        let again = format::read(&Memory::new("again", bytes.as_slice()), Some(format));
        let again = again.map_err(|error| format!("read back: {}", error.full()))?;
        let rules = |it: &History| {
            let broken = validate::check(format.api(), &format::messages(it, format.api()).0);
            broken.into_iter().map(|it| it.rule).collect::<BTreeSet<_>>()
        };
        let before = rules(&opened.session.history);
        for after in [&history, &again.history] {
            if let Some(rule) = rules(after).difference(&before).next() {
                return Err(format!("invalid: {rule}"));
            }
        }
        Ok(Seen::Written(1))
    }
}
