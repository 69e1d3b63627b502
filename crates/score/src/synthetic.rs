//! Made-up sessions with random facts planted at known depths: no common word can match them, and no text of
//! a real session is needed. The same seed gives the same session.

use super::probe::{Class, Fact, FileOp, Outcome, Polarity, Probe};
use history::{Call, History, Kind, Message, Meta, Output, Part, Role};

/// A made-up session and what was planted in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planted {
    pub history: History,
    /// The planted facts, with their messages: U, F, X, I and D in every turn, E in every fourth.
    pub probes: Vec<Probe>,
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A word of 8 to 13 letters that no language has.
    fn word(&mut self) -> String {
        const HEADS: [&str; 12] = ["br", "kv", "zl", "tr", "gn", "pf", "sk", "dw", "vr", "q", "xh", "mj"];
        const TAILS: [&str; 8] = ["ax", "ez", "ilk", "ov", "ump", "yg", "orf", "ent"];
        let mut out = String::new();
        for _ in 0..2 {
            out.push_str(HEADS[self.below(12) as usize]);
            out.push_str(TAILS[self.below(8) as usize]);
        }
        out.push_str(HEADS[self.below(12) as usize]);
        out.push('a');
        out
    }

    fn hash(&mut self) -> String {
        // It always has a digit and a letter.
        format!("{:x}{:08x}", 10 + self.below(6), self.next() as u32 | 1 << 28)
            .chars()
            .take(9)
            .collect::<String>()
            + "7"
    }
}

/// A session of `turns` turns from `seed`.
pub fn planted(seed: u64, turns: usize) -> Planted {
    let mut random = Random(seed);
    let mut messages: Vec<Message> = Vec::new();
    let mut probes = Vec::new();
    for turn in 0..turns {
        // What the user wants, and a rule.
        let (module, caller) = (random.word(), random.word());
        let forbids = turn % 2 == 0;
        let rule = if forbids {
            format!("Never rename the {module} module used by {caller}.")
        } else {
            format!("Always log the {module} result before calling {caller}.")
        };
        let polarity = if forbids { Polarity::Forbid } else { Polarity::Require };
        probes.push(Probe::new(Class::UserRule, messages.len(), Fact::Rule { text: rule.clone(), polarity }));
        let task =
            format!("Please extend {} so that {} reaches {}.", random.word(), random.word(), random.word());
        messages.push(Message::text(Role::User, Kind::Said, format!("{task} {rule}")));

        // An edit or a new file.
        let path = format!("src/{}/{}.rs", random.word(), random.word());
        let (tool, op, said) = match turn % 3 {
            0 => ("Edit", FileOp::Edited, "The file has been updated."),
            1 => ("Write", FileOp::Created, "File created successfully."),
            _ => ("Read", FileOp::Read, "     1→//! Text."),
        };
        let input = format!(r#"{{"file_path":"{path}"}}"#);
        messages.extend(call(&mut random, tool, input, said.to_string(), false));
        let fact = Fact::File { path, op, done: vec![op] };
        probes.push(Probe::new(Class::File, messages.len() - 1, fact));

        // A command that fails in every fourth turn, with filler around what matters.
        let command = format!("cargo test {}", random.word());
        let filler: String = (0..40).map(|_| format!("{} {}\n", random.word(), random.word())).collect();
        let fails = turn % 4 == 3;
        let text = if fails {
            let line = format!(
                "error[E{:04}]: cannot find {} in {}",
                random.below(9_999),
                random.word(),
                random.word()
            );
            let fact = Fact::Error { signature: line.clone(), resolved: None, unknown: false };
            probes.push(Probe::new(Class::Error, messages.len() + 1, fact));
            format!("Exit code 101\n{filler}{line}")
        } else {
            filler
        };
        let input = format!(r#"{{"command":"{command}"}}"#);
        messages.extend(call(&mut random, "Bash", input, text, fails));
        let outcome = Outcome { ok: !fails, exit: fails.then_some(101), passed: None, failed: None };
        let fact = Fact::Command { command, outcome, commit: None };
        probes.push(Probe::new(Class::Command, messages.len() - 1, fact));

        // An answer with an identifier, and a choice.
        let hash = random.hash();
        let options = [random.word(), random.word()];
        let text = format!(
            "Committed as {hash}. How should {module} be stored?\n\n1. In the {} table\n2. In the {} file",
            options[0], options[1]
        );
        probes.push(Probe::new(
            Class::Identifier,
            messages.len(),
            Fact::Identifier { key: None, value: hash },
        ));
        messages.push(Message::text(Role::Assistant, Kind::Said, text));
        let pick = random.below(2) as usize;
        messages.push(Message::text(Role::User, Kind::Said, (pick + 1).to_string()));
        let choice = if pick == 0 {
            format!("In the {} table", options[0])
        } else {
            format!("In the {} file", options[1])
        };
        let question = Some(format!("How should {module} be stored?"));
        let fact = Fact::Decision { question, choice, superseded: Vec::new() };
        probes.push(Probe::new(Class::Decision, messages.len() - 1, fact));
    }
    Planted { history: History::new(messages, Meta::default()), probes }
}

fn call(random: &mut Random, tool: &str, input: String, text: String, failed: bool) -> [Message; 2] {
    let id: std::sync::Arc<str> = random.word().into();
    let call =
        Call { id: id.clone(), name: tool.into(), input: input.into(), freeform: false, signature: None };
    let output = Output { name: Some(tool.into()), failed, ..Output::new(id, text) };
    [
        Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)]),
        Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)]),
    ]
}
