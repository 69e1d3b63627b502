//! The MCP server: the engine's verbs as tools, and prompts and resources around them, over stdio and HTTP.
//!
//! ```text
//!  stdio ─────────┐
//!  streamable HTTP ├─▶ Server (rmcp's handler) ─▶ tools ─▶ ServerState ─▶ Engine
//!  HTTP+SSE ──────┘         prompts, resources              │ access rules; the store, opened on first use
//! ```
//!
//! **Invariants.** All transports speak both protocol eras: the `initialize` handshake, and 2026-07-28 with
//! `server/discover`. Only MCP is written to standard output. Every request that can get a reply gets one:
//! panics become results, lines that are too long or not JSON become errors. An error that the model can fix
//! is a result with `isError`. Text and structured content are the same, since two clients show only one and
//! two only the other.

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

/// Completes on a termination signal or Ctrl-C.
async fn signal() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        let terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
        let Ok(mut terminate) = terminate else {
            // Without a handler the signal kills the process, which is fine too.
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
