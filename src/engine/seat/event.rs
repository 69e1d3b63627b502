//! Answers an agent's compaction event in that agent's own format.

use serde_json::Value;

use crate::agents::hooks::seat::{Conversation, Seat, SeatContext, SeatSession, SentConversation};
use crate::engine::{Engine, Opened, SessionRef, archive, input::caller, input::open, seat};
use history::error::Result;
use history::verbatim::Prompts;

/// The reply to an agent, with what the seat log records.
pub struct SeatAnswer {
    pub reply: Value,
    /// The session, where it is known.
    pub session: Option<String>,
    /// Tokens of the messages, before and after.
    pub tokens: (u64, u64),
    /// Handle of the archived original.
    pub handle: Option<String>,
}

/// Answers an agent that compacts. `None` if the event does not ask for a compaction.
///
/// # Errors
///
/// As for [`seat`](crate::engine::seat), or an event in another form than the agent is known to send.
pub fn seat_event(engine: &Engine, client: &Seat, event: &Value) -> Result<Option<SeatAnswer>> {
    let config = &engine.config;
    let context = SeatContext {
        env: &config.agents,
        project: &engine.project().project,
        setting: &|from| config.agent_setting(from),
        window: &|model| config.window(model),
        caller: &|| caller::recorded(engine, client.name()),
    };
    let Some((ask, conversation)) = (client.requested)(event, &context)? else { return Ok(None) };
    let (opened, original) = match conversation {
        Conversation::Session(format, id) => {
            (open::open(engine, &SessionRef::Named(id), Some(format), Some(format.name()))?, None)
        }
        Conversation::Sent(sent) => {
            let SentConversation { conversation, transcript, archive_both } = *sent;
            let conversation = Opened::from(conversation);
            if archive_both {
                archive::archive_session(engine, &conversation)?;
            }
            (conversation, transcript.map(Opened::from))
        }
    };
    let session =
        original.as_ref().unwrap_or(&opened).session.history.meta.session.as_deref().map(str::to_owned);
    let seated = seat::seat(engine, opened, original.as_ref(), &ask)?;
    let reply = (client.reply)(seated.history.messages(), &|| seated.one_text(Prompts::Dropped));
    let tokens = (seated.tokens_before, seated.tokens_after);
    Ok(Some(SeatAnswer { reply, session, tokens, handle: seated.handle }))
}

impl From<SeatSession> for Opened {
    fn from(it: SeatSession) -> Self {
        Self { path: it.path, ..Self::in_memory(it.source, it.session) }
    }
}
