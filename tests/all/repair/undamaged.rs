//! What is not damaged keeps every byte.

use epitome::sessions::{self, Format, MemorySource};

use super::{AGENTS, damages, repaired};
use crate::corpus::{corpus, of_corpus, samples, sessions as in_folders};

/// Sessions of the corpus that are damaged, by their own making: trimmed for publication, cut, or made as test cases.
const DAMAGED: [&str; 6] = [
    "claude-code/agent-sessions--small.jsonl",
    "claude-code/claude-code-log--edge_cases.jsonl",
    "claude-code/cli--2d-aa6a636915-0.jsonl",
    "claude-code/cli--5c-5cb639eac4-0.cut.jsonl",
    "claude-code/git-ai--claude-code-with-plan.jsonl",
    "codex/agent-sessions--small.jsonl",
];

#[test]
fn examples_have_nothing_to_repair() {
    for agent in AGENTS {
        let bytes = damages::example(agent);
        let format = Format::named(agent).unwrap();
        let (found, same) = repaired(&MemorySource::new(damages::file_name(agent), bytes.as_slice()), format);
        assert!(found.findings.is_empty() && !found.is_needed() && same == bytes, "{agent}: {found:?}");
    }
}

#[test]
fn real_sessions_keep_every_byte() {
    let mut paths =
        of_corpus("real_sessions_keep_every_byte", &["claude-code", "codex", "gemini", "opencode"]);
    let kit: Vec<_> = ["claude", "codex", "gemini", "opencode"].iter().map(|it| samples().join(it)).collect();
    paths.extend(in_folders("real_sessions_keep_every_byte, samples", &kit));
    let (mut seen, mut damaged) = (0, Vec::new());
    for path in paths {
        let bytes = std::fs::read(&path).unwrap();
        let source = MemorySource::new(path.display().to_string(), bytes.as_slice());
        let Some(format) = sessions::sniff(&source).ok().filter(|it| it.is_repaired()) else { continue };
        let (found, mended) = repaired(&source, format);
        seen += 1;
        if found.is_needed() || mended != bytes {
            let name = path.strip_prefix(corpus()).unwrap_or(&path).display().to_string().replace('\\', "/");
            if !DAMAGED.contains(&name.as_str()) {
                damaged.push(format!("{name}: {:?}", found.counts));
            }
        }
    }
    println!("{seen} sessions");
    assert!(damaged.is_empty(), "{}", damaged.join("\n"));
}
