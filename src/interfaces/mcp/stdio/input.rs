//! Reads standard input, asynchronously where possible, and splits it into lines.

use std::fs::File;
use std::io::Read;

use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;

use super::lines::{InputLine, LineBuffer};

/// Minimum size of a read, in bytes.
const CHUNK: usize = 64 * 1024;

pub(super) struct StandardInput {
    source: Source,
    buffer: Vec<u8>,
    lines: LineBuffer,
    ended: bool,
}

impl StandardInput {
    pub(super) fn of(file: File) -> std::io::Result<Self> {
        let source = Source::of(file)?;
        Ok(Self { source, buffer: vec![0; CHUNK], lines: LineBuffer::default(), ended: false })
    }

    /// Waits for more input, and calls `take` with every line that is now complete; false at the end.
    /// Cancel-safe.
    pub(super) async fn read(&mut self, take: &mut (dyn FnMut(InputLine<'_>) + Send)) -> bool {
        if self.ended {
            return false;
        }
        let count = self.source.read(&mut self.buffer).await;
        if count == 0 {
            // The last line may lack its line break.
            self.ended = true;
            self.lines.end(take);
            return true;
        }
        self.lines.push(&self.buffer[..count], take);
        // The buffer was filled: read a large message in larger chunks.
        if count == self.buffer.len() && count < 1 << 20 {
            self.buffer.resize(count * 2, 0);
        }
        true
    }
}

enum Source {
    /// A pipe, read asynchronously. It is reopened, because making it non-blocking would affect other
    /// processes that share it; only Linux can reopen a pipe.
    #[cfg(target_os = "linux")]
    Pipe(tokio::net::unix::pipe::Receiver),
    /// Node gives its child processes a socket.
    #[cfg(unix)]
    Socket(tokio::net::UnixStream),
    /// Anything else is read by a thread.
    Thread(mpsc::Receiver<Vec<u8>>),
}

impl Source {
    fn of(file: File) -> std::io::Result<Self> {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            if let Ok(pipe) = tokio::net::unix::pipe::OpenOptions::new().open_receiver(path) {
                return Ok(Self::Pipe(pipe));
            }
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::FileTypeExt;
            if file.metadata()?.file_type().is_socket() {
                let socket = std::os::unix::net::UnixStream::from(std::os::fd::OwnedFd::from(file));
                socket.set_nonblocking(true)?;
                return Ok(Self::Socket(tokio::net::UnixStream::from_std(socket)?));
            }
        }
        let (sender, chunks) = mpsc::channel(1);
        super::thread("stdin").spawn(move || read(file, &sender))?;
        Ok(Self::Thread(chunks))
    }

    /// Reads into `buffer` and returns the number of bytes; 0 at the end. Cancel-safe.
    async fn read(&mut self, buffer: &mut Vec<u8>) -> usize {
        // An error counts as the end.
        match self {
            #[cfg(target_os = "linux")]
            Self::Pipe(pipe) => pipe.read(buffer).await.unwrap_or(0),
            #[cfg(unix)]
            Self::Socket(socket) => socket.read(buffer).await.unwrap_or(0),
            Self::Thread(chunks) => {
                let Some(chunk) = chunks.recv().await else { return 0 };
                let count = chunk.len();
                *buffer = chunk;
                count
            }
        }
    }
}

/// Reads for [`Source::Thread`] until the end.
fn read(mut input: File, chunks: &mpsc::Sender<Vec<u8>>) {
    loop {
        let mut chunk = vec![0; CHUNK];
        match input.read(&mut chunk) {
            Ok(0) => return,
            Ok(count) => {
                chunk.truncate(count);
                if chunks.blocking_send(chunk).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
