//! `epitome seat CLIENT`: compacts for a running agent. Reads the event from standard input and writes the
//! reply to standard output; if anything fails, the agent's own compaction runs.

use std::io::Read;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Instant;

use clap::Args;

use crate::agents::hooks::seat::{self, Seat};
use crate::config::Config;
use crate::engine::{self, Engine, SeatAnswer, SeatEntry, seat_log};
use crate::interfaces::cli::Screen;
use crate::store::Face;
use history::error::{Error, ErrorKind, Result};

/// Maximum size of an event, in bytes: 900,000 tokens are about 4 MB.
const LARGEST: u64 = 64 << 20;

#[derive(Debug, Args)]
pub struct SeatArgs {
    /// The running agent: claude-code, opencode, gemini-cli or pi
    client: String,
}

pub(crate) fn run(config: Config, now: i64, arguments: &SeatArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let begun = Instant::now();
    let client = crate::agents::seat_named(&arguments.client)?;
    let folder = config.data_dir.clone();
    let (send, receive) = channel();
    let work = move || drop(send.send(answer(config, now, client)));
    let started = std::thread::Builder::new().name("seat".to_owned()).spawn(work);
    let result = match (started, receive.recv_timeout(client.limit)) {
        (Ok(_), Ok(result)) => result,
        (Ok(_), Err(RecvTimeoutError::Timeout)) => {
            Err(Error::new(ErrorKind::Bug, format!("no answer within {} s", client.limit.as_secs())))
        }
        (Ok(_), Err(RecvTimeoutError::Disconnected)) => {
            Err(Error::new(ErrorKind::Bug, "the compaction panicked"))
        }
        (Err(error), _) => Err(Error::new(ErrorKind::Io, "starting a thread").because(error)),
    };
    let entry = SeatEntry::new(client.name(), now, begun);
    match result {
        Ok(Some(it)) => {
            // The log is written first: the agent may kill this process once it has the reply.
            let entry =
                SeatEntry { session: it.session, tokens: Some(it.tokens), handle: it.handle, ..entry };
            seat_log::append(&folder, &entry);
            screen.document_line(&it.reply)?;
            Ok(0)
        }
        Ok(None) => {
            screen.line("{}")?;
            Ok(0)
        }
        Err(error) => {
            seat_log::append(&folder, &SeatEntry { failed: Some(error.full()), ..entry });
            if client.answers_failure {
                tracing::warn!("{}", error.full());
                screen.line("{}")?;
                return Ok(0);
            }
            Err(Error::new(ErrorKind::Rejected, format!("left to {}: {}", client.name(), error.full())))
        }
    }
}

fn answer(config: Config, now: i64, client: &Seat) -> Result<Option<SeatAnswer>> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Error::new(ErrorKind::Io, "reading standard input").because(error))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Error::new(
            ErrorKind::Input,
            format!("expected an event of at most {} MiB, found a larger one", LARGEST >> 20),
        ));
    }
    let event = seat::event(&bytes)?;
    drop(bytes);
    let engine = Engine { face: Face::Seat, ..Engine::at(config, now)? };
    engine::seat_event(&engine, client, &event)
}
