//! Writes standard output: a short line at once if the client has room for it, all others by a thread.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, mpsc, oneshot};

/// A pipe that is ready for writing takes this many bytes without blocking (`PIPE_BUF`).
#[cfg(unix)]
const PIPE_BUF: usize = 4096;
/// Waiting lines are combined into writes of about this size, in bytes.
const CHUNK: usize = 64 * 1024;
/// Maximum lines queued for the thread.
const MAX_QUEUED: usize = 32;
/// While more than this many bytes wait to be read by the client, no more input is read.
const MAX_UNREAD: usize = 16 << 20;

pub(super) struct StandardOutput {
    shared: Arc<Shared>,
    /// `None` once closed.
    queue: Option<mpsc::Sender<Vec<u8>>>,
}

struct Shared {
    file: Mutex<File>,
    /// Bytes queued for the thread.
    queued_bytes: AtomicUsize,
    /// Notified when queued bytes have been written.
    written: Notify,
}

impl StandardOutput {
    /// Starts the thread; the receiver is signaled when everything is written.
    pub(super) fn start(file: File) -> std::io::Result<(Self, oneshot::Receiver<()>)> {
        let (queue, queued) = mpsc::channel(MAX_QUEUED);
        let shared = Arc::new(Shared {
            file: Mutex::new(file),
            queued_bytes: AtomicUsize::new(0),
            written: Notify::new(),
        });
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
    pub(super) fn try_write_now(&self, line: &[u8]) -> bool {
        self.shared.try_write_now(line)
    }

    /// Writes a line, or queues it as soon as the queue has room.
    pub(super) fn send(
        &self,
        line: Vec<u8>,
    ) -> impl Future<Output = std::io::Result<()>> + Send + 'static + use<> {
        let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let queue = self.queue.clone();
        let written = queue.is_some() && self.try_write_now(&line);
        if !written {
            self.shared.queued_bytes.fetch_add(line.len(), Ordering::AcqRel);
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
                self.shared.queued_bytes.fetch_add(line.len(), Ordering::AcqRel);
                place.send(line);
            }
        }
        true
    }

    /// Waits until at most [`MAX_UNREAD`] bytes are queued.
    pub(super) async fn wait_for_room(&self) {
        while self.shared.queued_bytes.load(Ordering::Acquire) > MAX_UNREAD {
            self.shared.written.notified().await;
        }
    }

    /// Closes the queue; the thread ends when everything is written.
    pub(super) fn close(&mut self) {
        self.queue = None;
    }
}

impl Shared {
    #[cfg(unix)]
    fn try_write_now(&self, line: &[u8]) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Ok(mut file) = self.file.try_lock() else { return false };
        if line.len() > PIPE_BUF || self.queued_bytes.load(Ordering::Acquire) > 0 {
            return false;
        }
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&*file, PollFlags::OUT)], Some(&now));
        // After a write error the client is gone, so the input ends too.
        matches!(ready, Ok(1..)) && file.write_all(line).is_ok()
    }

    #[cfg(not(unix))]
    fn try_write_now(&self, _line: &[u8]) -> bool {
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
            self.queued_bytes.fetch_sub(line.len(), Ordering::AcqRel);
            self.written.notify_one();
        }
    }
}
