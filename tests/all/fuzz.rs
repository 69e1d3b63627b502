//! A few hundred of the cases of `just fuzz`.

#[path = "../../examples/fuzz/case.rs"]
mod case;
#[path = "../../examples/fuzz/mutate.rs"]
pub(crate) mod mutate;

use case::{Bench, Seen};
use epitome::format::Format;
use mutate::{Document, Random};

/// The whole session first: or the cases would test nothing.
#[test]
fn mutated_sessions_are_read_and_written_or_refused() {
    let bench = Bench::new().unwrap();
    for (format, name) in [
        (Format::ClaudeCode, "claude-code.jsonl"),
        (Format::Codex, "codex.jsonl"),
        (Format::GeminiCli, "gemini-cli.jsonl"),
        (Format::OpenCode, "opencode.json"),
        (Format::Anthropic, "anthropic.json"),
        (Format::OpenAiChat, "openai-chat.json"),
        (Format::OpenAiResponses, "openai-responses.json"),
        (Format::Gemini, "gemini.json"),
    ] {
        let text = String::from_utf8(crate::apply::example(name)).unwrap();
        assert_eq!(bench.run(format, text.as_bytes(), 0), Ok(Seen::Written(1)), "{name}");
        let small = Document::small(&text, 14);
        for number in 0..60 {
            let bytes = small.mutated(&mut Random(number));
            if let Err(what) = bench.run(format, &bytes, number) {
                panic!("{name}, case {number}: {what}: {}", String::from_utf8_lossy(&bytes));
            }
        }
    }
}
