//! The MCP server: the engine's verbs as tools, and prompts and resources around them, over stdio and HTTP.
//!
//! ```text
//!  stdio ─────────┐
//!  streamable HTTP ├─▶ Server (rmcp's handler) ─▶ tools ─▶ ServerState ─▶ Engine
//!  HTTP+SSE ──────┘         prompts, resources              │ who may reach what, the store when it is first needed
//! ```
//!
//! **Invariants.** Both protocol eras are spoken everywhere: the `initialize` handshake, and 2026-07-28 with
//! `server/discover`. Nothing but MCP is written to standard output. A request that can be answered is answered: panics
//! become results, lines that are too long or no JSON become errors. What the model could mend is a result with
//! `isError`. Text and structured content say the same, since two clients show only the one and two only the other.

mod server_state;
mod http;
mod metrics;
mod prompts;
mod resources;
mod sampling;
mod server;
mod stdio;
mod tools;

pub(crate) use prompts::files as prompt_files;

pub use http::{HttpOptions, serve as serve_http, serve_with as serve_http_with};
pub use server::Server;
pub use stdio::serve as serve_stdio;

/// Ends when the process is asked to end.
async fn signal() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        let terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
        let Ok(mut terminate) = terminate else {
            // Without a handler the signal ends the process at once, which is right too.
            let _ = interrupt.await;
            return;
        };
        tokio::select! {
            _ = interrupt => {}
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    {
        let _ = interrupt.await;
    }
}
