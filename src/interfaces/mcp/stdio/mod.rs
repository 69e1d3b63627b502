//! MCP over standard input and output, one JSON message per line.
//!
//! The thread that answers also reads ([`input`]) and writes short lines ([`output`]): rmcp's own transport
//! switches to another thread for every 8 KB and silently drops lines over 16 MB. Here the arguments of a
//! call stay JSON text until the tool parses them ([`lines`]), and calls that take no time are answered at
//! once ([`shortcut`]).

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
use self::lines::{Incoming, parse_line};
use self::output::StandardOutput;
use self::shortcut::Shortcut;
use super::server::Server;
use super::server_state::ServerState;
use crate::config::Config;
use crate::llm::http::runtime;
use history::error::{Error, ErrorKind, Result};

/// How long writing the remaining output may delay the end of the process.
const FLUSH: Duration = Duration::from_secs(5);

/// Serves until the input ends or a signal comes. `now`: replaces the clock, in ms since 1970.
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
                // All replies must be written before the process ends.
                let _ = tokio::time::timeout(FLUSH, written).await;
                served
            }
            () = super::signal() => Ok(()),
        }
    });
    // A running call must not delay the exit: files are written whole or not at all.
    runtime.shutdown_background();
    served
}

async fn talk(server: Server, transport: Stdio) -> Result<()> {
    match serve_server(server, transport).await {
        Ok(running) => {
            let ended = running.waiting().await;
            ended.map(|_| ()).map_err(|error| Error::new(ErrorKind::Bug, "serving").because(error))
        }
        // Health checks only start the process and close the connection.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(Error::new(ErrorKind::Input, "the handshake failed").because(error)),
    }
}

/// Standard input and output as files, bypassing the standard library's locks and buffers.
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
    /// Read, but not yet returned by [`Self::next`].
    messages: VecDeque<Incoming>,
    /// Our own replies that could not be written yet.
    replies: VecDeque<Vec<u8>>,
    shortcut: Shortcut,
    /// Cancelled at the end of the input. After that rmcp waits another five seconds for open requests, and a
    /// subscription would never end by itself.
    gone: CancellationToken,
}

impl Stdio {
    /// The next message; `None` at the end. Cancel-safe.
    async fn next(&mut self) -> Option<Incoming> {
        loop {
            if !self.output.send_all(&mut self.replies).await {
                return None;
            }
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            self.output.wait_for_room().await;
            let mut take = |line: lines::InputLine<'_>| match parse_line(line) {
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
                        if !self.output.try_write_now(&line) {
                            self.replies.push_back(line);
                        }
                        // Many shortcut calls must not starve other tasks.
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
