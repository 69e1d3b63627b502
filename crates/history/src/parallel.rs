//! Work on more than one core.

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::Builder;

/// Maximum number of cores to use. More would wait for the same memory.
const MOST: usize = 8;

/// The number of threads to use. Determined once: the system reads several files for it.
pub fn threads() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from).min(MOST))
}

/// Runs both in parallel, or one after the other if the system gives no thread.
pub fn join<A: Send, B>(one: impl Fn() -> A + Sync, other: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let thread = Builder::new().spawn_scoped(scope, &one);
        let other = other();
        let one = match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => one(),
        };
        (one, other)
    })
}

/// Applies `make` to one chunk of the items per core, and to the index of the chunk's first item; results are
/// in order. For `min_chunk` see [`par_map`].
pub fn par_chunks<'t, T: Sync, R: Send>(
    items: &'t [T],
    min_chunk: usize,
    make: impl Fn(usize, &'t [T]) -> R + Sync,
) -> Vec<R> {
    let size = items.len().div_ceil(threads()).max(min_chunk);
    let chunks: Vec<_> = items.chunks(size).enumerate().map(|(at, it)| (at * size, it)).collect();
    par_map(&chunks, 1, |(from, chunk)| make(*from, chunk))
}

/// Applies `make` to every item; results are in order. Fewer than `min_share` items are not worth a thread:
/// if all cores are busy, a new one waits for milliseconds.
pub fn par_map<T: Sync, R: Send>(items: &[T], min_share: usize, make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = threads().min(items.len() / min_share);
    if threads < 2 {
        return items.iter().map(make).collect();
    }
    let next = AtomicUsize::new(0);
    // A few at a time: a thread that is done takes the next ones.
    let step = (items.len() / threads / 64).max(1);
    let some = || {
        let mut out = Vec::new();
        loop {
            let start = next.fetch_add(step, Relaxed);
            let Some(rest) = items.get(start..).filter(|it| !it.is_empty()) else { return out };
            out.push((start, rest.iter().take(step).map(&make).collect::<Vec<R>>()));
        }
    };
    let mut done = std::thread::scope(|scope| {
        // If the system gives no thread, the others do it all.
        let others: Vec<_> =
            (1..threads).map_while(|_| Builder::new().spawn_scoped(scope, some).ok()).collect();
        let mut done = some();
        done.extend(others.into_iter().flat_map(|it| it.join().unwrap_or_else(|panic| resume_unwind(panic))));
        done
    });
    done.sort_unstable_by_key(|it| it.0);
    done.into_iter().flat_map(|it| it.1).collect()
}
