//! How much a model can be sent, and how much it can answer.
//!
//! Sources: models.dev of 2026-07-02 (MIT), and for what came later the makers' model pages of October and November
//! 2026 (Claude 5.5, Gemini 4, GPT-5.6 and GPT-6). What the session or the user says always wins over this table.

/// The limits of a model, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Context window: everything of one request, including the answer unless `input` is given.
    pub context: u64,
    /// Maximum that can be sent, if the maker states it separately.
    pub input: Option<u64>,
    /// Maximum answer, including thinking.
    pub output: u64,
}

/// The window of a model, or none for an unknown one. The id may begin with a provider (`anthropic/…`,
/// `us.anthropic.…`), or end with a date or Claude Code's `[1m]`.
pub fn window(model: &str) -> Option<Window> {
    let model = model.to_ascii_lowercase();
    let family = WINDOWS
        .iter()
        .filter(|(prefix, ..)| starts_a_word(&model, prefix))
        .max_by_key(|(prefix, ..)| prefix.len());
    let &(_, context, input, output) = family?;
    let context = if model.ends_with("[1m]") { context.max(1_000_000) } else { context };
    Some(Window { context, input: (input > 0).then_some(input), output })
}

/// The smallest usual window that holds `seen` tokens, for a model whose window was thought smaller: the same
/// model is served with several.
pub fn at_least(seen: u64) -> u64 {
    const USUAL: [u64; 6] = [200_000, 262_144, 400_000, 1_000_000, 1_050_000, 2_097_152];
    USUAL.into_iter().find(|it| *it >= seen).unwrap_or(seen)
}

/// Whether `prefix` occurs in `model` at the start, or after a character that separates a provider from a
/// model.
fn starts_a_word(model: &str, prefix: &str) -> bool {
    model
        .match_indices(prefix)
        .any(|(at, _)| at == 0 || matches!(model.as_bytes()[at - 1], b'/' | b'.' | b':' | b'@' | b'~'))
}

/// Prefix of the id, context, input if stated separately (else 0), output. The longest prefix wins.
const WINDOWS: &[(&str, u64, u64, u64)] = &[
    // Anthropic. Opus and Sonnet 4.6 have 1M over the API, but Claude Code keeps them to 200K unless the id says
    // `[1m]`; sessions written with them compact at that boundary.
    ("claude-3", 200_000, 0, 4_096),
    ("claude-3-5", 200_000, 0, 8_192),
    ("claude-3-7", 200_000, 0, 64_000),
    ("claude", 200_000, 0, 64_000),
    ("claude-opus-4", 200_000, 0, 32_000),
    ("claude-opus-4-5", 200_000, 0, 64_000),
    ("claude-opus-4-6", 200_000, 0, 128_000),
    ("claude-opus-4-7", 1_000_000, 0, 128_000),
    ("claude-opus-4-8", 1_000_000, 0, 128_000),
    ("claude-opus-5", 1_000_000, 0, 128_000),
    ("claude-sonnet-4", 200_000, 0, 64_000),
    ("claude-sonnet-5", 1_000_000, 0, 128_000),
    ("claude-haiku-4", 200_000, 0, 64_000),
    ("claude-haiku-5", 1_000_000, 0, 128_000),
    ("claude-fable", 1_000_000, 0, 128_000),
    // OpenAI. Codex records its own, smaller window in the session (272,000 and 95 % of it), which wins.
    ("gpt-3.5-turbo", 16_385, 0, 4_096),
    ("gpt-4", 8_192, 0, 8_192),
    ("gpt-4-turbo", 128_000, 0, 4_096),
    ("gpt-4o", 128_000, 0, 16_384),
    ("gpt-4.1", 1_047_576, 0, 32_768),
    ("gpt-5", 400_000, 272_000, 128_000),
    ("gpt-5.1-chat", 128_000, 0, 16_384),
    ("gpt-5.2-chat", 128_000, 0, 16_384),
    ("gpt-5.3-chat", 128_000, 0, 16_384),
    ("gpt-5.3-codex-spark", 128_000, 100_000, 32_000),
    ("gpt-5.4", 1_050_000, 922_000, 128_000),
    ("gpt-5.4-mini", 400_000, 272_000, 128_000),
    ("gpt-5.4-nano", 400_000, 272_000, 128_000),
    ("gpt-5.5", 1_050_000, 922_000, 128_000),
    ("gpt-5.6", 1_050_000, 922_000, 128_000),
    ("gpt-6", 1_050_000, 922_000, 128_000),
    ("gpt-oss", 131_072, 0, 32_768),
    ("codex-mini", 200_000, 0, 100_000),
    ("o1", 200_000, 0, 100_000),
    ("o3", 200_000, 0, 100_000),
    ("o4-mini", 200_000, 0, 100_000),
    // Google.
    ("gemini", 1_048_576, 0, 65_536),
    ("gemini-1.5-pro", 2_097_152, 0, 8_192),
    ("gemini-1.5-flash", 1_048_576, 0, 8_192),
    ("gemini-2.0", 1_048_576, 0, 8_192),
    ("gemini-2.5-flash-image", 32_768, 0, 32_768),
    ("gemma-4", 262_144, 0, 32_768),
    ("gemma-3", 131_072, 0, 8_192),
    // Moonshot.
    ("kimi", 262_144, 0, 262_144),
    ("kimi-k2-0711", 131_072, 0, 16_384),
    // DeepSeek: the undated names serve V4.
    ("deepseek", 131_072, 0, 65_536),
    ("deepseek-chat", 1_000_000, 0, 384_000),
    ("deepseek-reasoner", 1_000_000, 0, 384_000),
    ("deepseek-v4", 1_000_000, 0, 384_000),
    // Alibaba.
    ("qwen-max", 32_768, 0, 8_192),
    ("qwen-plus", 1_000_000, 0, 32_768),
    ("qwen-flash", 1_000_000, 0, 32_768),
    ("qwen-turbo", 1_000_000, 0, 16_384),
    ("qwen2.5", 131_072, 0, 8_192),
    ("qwen2-5", 131_072, 0, 8_192),
    ("qwen3", 131_072, 0, 16_384),
    ("qwen3-max", 262_144, 0, 65_536),
    ("qwen3-next", 131_072, 0, 32_768),
    ("qwen3-coder", 262_144, 0, 65_536),
    ("qwen3-coder-plus", 1_048_576, 0, 65_536),
    ("qwen3-coder-flash", 1_000_000, 0, 65_536),
    ("qwen3.5", 262_144, 0, 65_536),
    ("qwen3.5-plus", 1_000_000, 0, 65_536),
    ("qwen3.6", 262_144, 0, 65_536),
    ("qwen3.6-plus", 1_000_000, 0, 65_536),
    ("qwen3.6-flash", 1_000_000, 0, 65_536),
    ("qwen3.7", 1_000_000, 0, 65_536),
    // Z.ai.
    ("glm-4.5", 131_072, 0, 98_304),
    ("glm-4.6", 204_800, 0, 131_072),
    ("glm-4.6v", 128_000, 0, 32_768),
    ("glm-4.7", 204_800, 0, 131_072),
    ("glm-5", 200_000, 0, 131_072),
    ("glm-5.2", 1_000_000, 0, 131_072),
    // MiniMax.
    ("minimax-m2", 204_800, 0, 131_072),
    ("minimax-m3", 1_000_000, 0, 128_000),
    // xAI.
    ("grok-4", 256_000, 0, 64_000),
    ("grok-4.20", 1_000_000, 0, 30_000),
    ("grok-4.3", 1_000_000, 0, 30_000),
    ("grok-build", 256_000, 0, 256_000),
    ("grok-code", 256_000, 0, 10_000),
    // Mistral.
    ("mistral-large", 262_144, 0, 262_144),
    ("mistral-medium", 262_144, 0, 262_144),
    ("mistral-small", 256_000, 0, 256_000),
    ("codestral", 256_000, 0, 4_096),
    ("devstral", 262_144, 0, 262_144),
    ("devstral-small-2507", 128_000, 0, 128_000),
    ("devstral-medium-2507", 128_000, 0, 128_000),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins() {
        for (model, context, output) in [
            ("claude-opus-4-5-20251101", 200_000, 64_000),
            ("claude-opus-4-6", 200_000, 128_000),
            ("claude-opus-4-6[1m]", 1_000_000, 128_000),
            ("claude-opus-5-5", 1_000_000, 128_000),
            ("claude-sonnet-4-20250514", 200_000, 64_000),
            ("anthropic/claude-sonnet-5", 1_000_000, 128_000),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", 200_000, 64_000),
            ("openrouter/moonshotai/kimi-k2.5", 262_144, 262_144),
            ("gpt-5.3-codex", 400_000, 128_000),
            ("gpt-5.3-codex-spark", 128_000, 32_000),
            ("gpt-5.4", 1_050_000, 128_000),
            ("gemini-3.1-pro-preview", 1_048_576, 65_536),
            ("MiniMax-M2.5", 204_800, 131_072),
            ("deepseek-chat", 1_000_000, 384_000),
            ("o3-mini", 200_000, 100_000),
        ] {
            let found = window(model).map(|it| (it.context, it.output));
            assert_eq!(found, Some((context, output)), "{model}");
        }
        assert_eq!(window("gpt-5.1-codex").and_then(|it| it.input), Some(272_000));
        // `o1` occurs in this one, but does not begin a word.
        assert_eq!(window("sono1"), None);
        assert_eq!(window(""), None);
    }

    #[test]
    fn a_window_holds_what_was_reported() {
        for (seen, window) in
            [(150_000, 200_000), (230_000, 262_144), (414_000, 1_000_000), (3_000_000, 3_000_000)]
        {
            assert_eq!(at_least(seen), window);
        }
    }
}
