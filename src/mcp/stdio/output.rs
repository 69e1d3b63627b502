//! Standard output: a short line is written at once where the client has room for it, all others by a thread.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, mpsc, oneshot};

/// A line of at most this length is written whole or not at all by a pipe that takes anything.
#[cfg(unix)]
const AT_ONCE: usize = 4096;
/// What waits is written in pieces of about this size.
const CHUNK: usize = 64 * 1024;
/// Lines on their way to the thread.
const QUEUE: usize = 32;
/// As long as more bytes than this wait for the client to read them, nothing more is read from it.
const UNREAD: usize = 16 << 20;

pub(super) struct StandardOutput {
    shared: Arc<Shared>,
    /// Absent once it is closed.
    queue: Option<mpsc::Sender<Vec<u8>>>,
}

struct Shared {
    file: Mutex<File>,
    /// Bytes for the thread.
    waiting: AtomicUsize,
    /// Some of what waited has been written.
    taken: Notify,
}

impl StandardOutput {
    /// Starts the thread; the receiver hears when everything is written.
    pub(super) fn start(file: File) -> std::io::Result<(Self, oneshot::Receiver<()>)> {
        let (queue, queued) = mpsc::channel(QUEUE);
        let shared =
            Arc::new(Shared { file: Mutex::new(file), waiting: AtomicUsize::new(0), taken: Notify::new() });
        let (done, written) = oneshot::channel();
        let writer = shared.clone();
        super::thread("stdout").spawn(move || {
            writer.write_queued(queued);
            // The receiver may be gone.
            let _ = done.send(());
        })?;
        Ok((Self { shared, queue: Some(queue) }, written))
    }

    /// Writes a short line, if nothing waits before it and the client has room for it; whether it did.
    pub(super) fn at_once(&self, line: &[u8]) -> bool {
        self.shared.at_once(line)
    }

    /// Writes a line, or leaves it to the thread as soon as that has room.
    pub(super) fn send(
        &self,
        line: Vec<u8>,
    ) -> impl Future<Output = std::io::Result<()>> + Send + 'static + use<> {
        let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let queue = self.queue.clone();
        let written = queue.is_some() && self.at_once(&line);
        if !written {
            self.shared.waiting.fetch_add(line.len(), Ordering::AcqRel);
        }
        async move {
            match queue {
                None => Err(gone()),
                Some(_) if written => Ok(()),
                Some(queue) => queue.send(line).await.map_err(|_| gone()),
            }
        }
    }

    /// Leaves lines to the thread, each as soon as that has room; false if it ended. When it is dropped, what there was
    /// no room for is still in `lines`.
    pub(super) async fn send_all(&self, lines: &mut VecDeque<Vec<u8>>) -> bool {
        while let (false, Some(queue)) = (lines.is_empty(), &self.queue) {
            let Ok(place) = queue.reserve().await else { return false };
            if let Some(line) = lines.pop_front() {
                self.shared.waiting.fetch_add(line.len(), Ordering::AcqRel);
                place.send(line);
            }
        }
        true
    }

    /// Ends when the client has read enough of what it asked for.
    pub(super) async fn room(&self) {
        while self.shared.waiting.load(Ordering::Acquire) > UNREAD {
            self.shared.taken.notified().await;
        }
    }

    /// The thread ends when it has written what waits.
    pub(super) fn close(&mut self) {
        self.queue = None;
    }
}

impl Shared {
    #[cfg(unix)]
    fn at_once(&self, line: &[u8]) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Ok(mut file) = self.file.try_lock() else { return false };
        if line.len() > AT_ONCE || self.waiting.load(Ordering::Acquire) > 0 {
            return false;
        }
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&*file, PollFlags::OUT)], Some(&now));
        // What cannot be written shows when the input ends.
        matches!(ready, Ok(1..)) && file.write_all(line).is_ok()
    }

    #[cfg(not(unix))]
    fn at_once(&self, _line: &[u8]) -> bool {
        false
    }

    /// Writes all of it, however long the client takes.
    fn write(&self, mut line: &[u8]) -> std::io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        while !line.is_empty() {
            match file.write(line) {
                Ok(count) => line = &line[count..],
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // Where input and output are one socket, reading made it so.
                #[cfg(unix)]
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    use rustix::event::{PollFd, PollFlags, poll};
                    poll(&mut [PollFd::new(&*file, PollFlags::OUT)], None)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_queued(&self, mut queue: mpsc::Receiver<Vec<u8>>) {
        while let Some(mut line) = queue.blocking_recv() {
            // What else is ready goes in one write.
            while line.len() < CHUNK
                && let Ok(next) = queue.try_recv()
            {
                line.extend_from_slice(&next);
            }
            if self.write(&line).is_err() {
                // The client is gone; its input ends too.
                return;
            }
            self.waiting.fetch_sub(line.len(), Ordering::AcqRel);
            self.taken.notify_one();
        }
    }
}
