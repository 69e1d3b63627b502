//! What the pieces of a request cost with each maker's models: the priors of the ruler.

/// Whose tokenizer and rules a model follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    Anthropic,
    OpenAi,
    Google,
    Other,
}

impl Maker {
    /// From the model's id (lower case), provider prefixes and all.
    pub(super) fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        if name.contains("claude") {
            Self::Anthropic
        } else if name.contains("gpt")
            || name.contains("codex")
            || matches!(name.as_bytes(), [b'o', b'1'..=b'9', ..])
        {
            Self::OpenAi
        } else if name.contains("gemini") || name.contains("gemma") {
            Self::Google
        } else {
            Self::Other
        }
    }

    /// Calibrated on the growth between the contexts that the sessions of the corpus report (Claude: 1,600 steps of
    /// Opus 4.5 and 4.6 and Sonnet 4.5 in three agents; OpenAI: 830 steps of GPT-5.3 to 5.5; Google: 57; Kimi and
    /// MiniMax together 9), robust fit.
    pub(super) fn rates(self) -> Rates {
        match self {
            Self::Anthropic => {
                Rates { text: 1.145, call: 32.0, output: 32.0, message: 2.0, signature: 0.18, thinking: true }
            }
            Self::OpenAi => {
                Rates { text: 0.985, call: 4.0, output: 4.0, message: 8.0, signature: 0.19, thinking: false }
            }
            Self::Google => {
                Rates { text: 1.12, call: 5.0, output: 5.0, message: 2.0, signature: 0.0, thinking: false }
            }
            Self::Other => {
                Rates { text: 1.0, call: 8.0, output: 8.0, message: 4.0, signature: 0.0, thinking: true }
            }
        }
    }
}

/// Prices in tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rates {
    /// Tokens of the model for one of o200k.
    pub(super) text: f64,
    /// The frame around a tool call, over its name and arguments.
    pub(super) call: f64,
    /// The frame around a tool's output.
    pub(super) output: f64,
    /// The frame around a message.
    pub(super) message: f64,
    /// For each byte of a reasoning signature, which holds the whole thought encrypted even where the readable text
    /// is a summary of it. With Gemini the thoughts do not go back to the model.
    pub(super) signature: f64,
    /// Whether the readable thought goes back to the model.
    pub(super) thinking: bool,
}
