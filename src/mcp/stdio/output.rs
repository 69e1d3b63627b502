//! Writes standard output: a short line at once if the client has room for it, all others by a thread.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, mpsc, oneshot};

/// A pipe that is ready for writing takes this many bytes without blocking (`PIPE_BUF`).
#[cfg(unix)]
const AT_ONCE: usize = 4096;
/// Waiting lines are combined into writes of about this size, in bytes.
const CHUNK: usize = 64 * 1024;
/// Maximum lines queued for the thread.
const QUEUE: usize = 32;
/// While more than this many bytes wait to be read by the client, no more input is read.
const UNREAD: usize = 16 << 20;

pub(super) struct StandardOutput {
    shared: Arc<Shared>,
    /// `None` once closed.
    queue: Option<mpsc::Sender<Vec<u8>>>,
}

struct Shared {
    file: Mutex<File>,
    /// Bytes queued for the thread.
    waiting: AtomicUsize,
    /// Notified when queued bytes have been written.
    taken: Notify,
}

impl StandardOutput {
    /// Starts the thread; the receiver is signaled when everything is written.
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

    /// Writes a short line if nothing is queued and the client has room for it; returns whether it did.
    pub(super) fn at_once(&self, line: &[u8]) -> bool {
        self.shared.at_once(line)
    }

    /// Writes a line, or queues it as soon as the queue has room.
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

    /// Queues lines, each as soon as the queue has room; false if the thread has ended. Cancel-safe: what is
    /// not queued stays in `lines`.
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

    /// Waits until at most [`UNREAD`] bytes are queued.
    pub(super) async fn room(&self) {
        while self.shared.waiting.load(Ordering::Acquire) > UNREAD {
            self.shared.taken.notified().await;
        }
    }

    /// Closes the queue; the thread ends when everything is written.
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
        // After a write error the client is gone, so the input ends too.
        matches!(ready, Ok(1..)) && file.write_all(line).is_ok()
    }

    #[cfg(not(unix))]
    fn at_once(&self, _line: &[u8]) -> bool {
        false
    }

    /// Writes the whole line, however long the client takes.
    fn write(&self, mut line: &[u8]) -> std::io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        while !line.is_empty() {
            match file.write(line) {
                Ok(count) => line = &line[count..],
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // If input and output are one socket, the input has made it non-blocking.
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
            // Combines further queued lines into one write.
            while line.len() < CHUNK
                && let Ok(next) = queue.try_recv()
            {
                line.extend_from_slice(&next);
            }
            if self.write(&line).is_err() {
                // The client is gone, so the input ends too.
                return;
            }
            self.waiting.fetch_sub(line.len(), Ordering::AcqRel);
            self.taken.notify_one();
        }
    }
}
