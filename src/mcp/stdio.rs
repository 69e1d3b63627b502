//! MCP over standard input and output, a JSON message a line.
//!
//! The thread that answers also reads ([`input`]) and writes short lines ([`output`]): rmcp's own transport hops to
//! another thread for every 8 KB and drops lines over 16 MB without a word. Here the arguments of a call stay JSON text
//! until the tool looks at them ([`lines`]), and what is done at once is answered at once ([`shortcut`]).

mod input;
pub(super) mod lines;
mod output;
mod shortcut;

use std::collections::VecDeque;
use std::fs::File;
use std::time::Duration;

use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RoleServer, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

use self::input::StandardInput;
use self::lines::{Incoming, taken};
use self::output::StandardOutput;
use self::shortcut::Shortcut;
use super::server::Server;
use super::server_state::ServerState;
use crate::config::Config;
use crate::llm::http::runtime;
use history::error::{Error, ErrorKind, Result};

/// How long a client that is gone may keep us from ending.
const FLUSH: Duration = Duration::from_secs(5);

/// Serves until the input ends or a signal comes. `now`: instead of the clock, in milliseconds since 1970.
pub fn serve(config: Config, now: Option<i64>) -> Result<()> {
    let io = |what: &'static str| move |error: std::io::Error| Error::new(ErrorKind::Io, what).because(error);
    let runtime = runtime("starting the server")?;
    let (input, output) = pipes().map_err(io("opening standard input and output"))?;
    let server = Server::new(ServerState::new(config, now, None));
    let served = runtime.block_on(async {
        let (output, written) = StandardOutput::start(output).map_err(io("starting a thread"))?;
        let transport = Stdio {
            input: StandardInput::of(input).map_err(io("starting a thread"))?,
            output,
            messages: VecDeque::new(),
            replies: VecDeque::new(),
            shortcut: Shortcut::new(server.clone()),
            gone: server.gone.clone(),
        };
        tokio::select! {
            served = talk(server, transport) => {
                // What was answered must reach the pipe before the process ends.
                let _ = tokio::time::timeout(FLUSH, written).await;
                served
            }
            () = super::signal() => Ok(()),
        }
    });
    // A call that is still at work must not keep the process: whatever it writes is put in place whole or not at all.
    runtime.shutdown_background();
    served
}

async fn talk(server: Server, transport: Stdio) -> Result<()> {
    match serve_server(server, transport).await {
        Ok(running) => {
            let ended = running.waiting().await;
            ended.map(|_| ()).map_err(|error| Error::new(ErrorKind::Bug, "serving").because(error))
        }
        // Health checks look whether the process starts, and go.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(Error::new(ErrorKind::Input, "the handshake failed").because(error)),
    }
}

/// Standard input and output as files, without the locks and buffers of the standard library.
#[cfg(unix)]
fn pipes() -> std::io::Result<(File, File)> {
    use std::os::fd::AsFd;
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    let output = std::io::stdout().as_fd().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

#[cfg(windows)]
fn pipes() -> std::io::Result<(File, File)> {
    use std::os::windows::io::AsHandle;
    let input = std::io::stdin().as_handle().try_clone_to_owned()?;
    let output = std::io::stdout().as_handle().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

fn thread(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned())
}

struct Stdio {
    input: StandardInput,
    output: StandardOutput,
    /// Read, and not yet handed on.
    messages: VecDeque<Incoming>,
    /// Answers of our own that the client had no room for yet.
    replies: VecDeque<Vec<u8>>,
    shortcut: Shortcut,
    /// Set when nothing more can come. rmcp gives requests that are not answered then another five seconds, and a
    /// subscription is one that never is.
    gone: CancellationToken,
}

impl Stdio {
    /// The next message. Nothing is lost when it is dropped while it waits.
    async fn next(&mut self) -> Option<Incoming> {
        loop {
            if !self.output.send_all(&mut self.replies).await {
                return None;
            }
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            self.output.room().await;
            let mut take = |line: lines::InputLine<'_>| match taken(line) {
                Some(Ok(message)) => self.messages.push_back(message),
                Some(Err(reply)) => self.replies.push_back(reply),
                None => {}
            };
            if !self.input.read(&mut take).await {
                return None;
            }
        }
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sent = serialized(&message).map(|line| self.output.send(line));
        async move { sent?.await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let Some(message) = self.next().await else {
                self.gone.cancel();
                return None;
            };
            let message = match message {
                Incoming::Other(message) => *message,
                Incoming::ToolCall(call) => match self.shortcut.answered(&call) {
                    None => call.message(),
                    Some(line) => {
                        if !self.output.at_once(&line) {
                            self.replies.push_back(line);
                        }
                        // Many of them must not keep the others waiting.
                        tokio::task::consume_budget().await;
                        continue;
                    }
                },
            };
            if self.shortcut.has_begun(&message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output.close();
        Ok(())
    }
}

fn serialized(message: &ServerJsonRpcMessage) -> std::io::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(512);
    serde_json::to_writer(&mut line, message)?;
    line.push(b'\n');
    Ok(line)
}
