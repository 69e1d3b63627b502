//! Work on more than one core.

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread::Builder;

/// How many cores are used at most. More would wait for the same memory.
const MOST: usize = 8;

/// How many cores there are to use. Asked once: the system reads several files for it.
pub fn threads() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from).min(MOST))
}

/// Runs both at once, or one after the other where the system gives no thread.
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

/// `make` of one chunk of the items per core, in their order; it is given the index of the chunk's first item. Fewer
/// than `min_chunk` items are not worth a thread: where all cores are busy, a new one waits for milliseconds.
pub fn par_chunks<'t, T: Sync, R: Send>(
    items: &'t [T],
    min_chunk: usize,
    make: impl Fn(usize, &'t [T]) -> R + Sync,
) -> Vec<R> {
    let min_chunk = items.len().div_ceil(threads()).max(min_chunk);
    std::thread::scope(|scope| {
        let mut shares = items.chunks(min_chunk).enumerate();
        let mine = shares.next();
        let make = &make;
        let others: Vec<_> = shares
            .map(|(at, share)| {
                let work = move || make(at * min_chunk, share);
                Builder::new().spawn_scoped(scope, work).map_err(|_| work)
            })
            .collect();
        let mut out: Vec<R> = mine.into_iter().map(|(_, it)| make(0, it)).collect();
        out.extend(others.into_iter().map(|it| match it {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(work) => work(),
        }));
        out
    })
}

/// `make` of every item, in their order; see [`par_chunks`] for `min_chunk`.
pub fn par_map<T: Sync, R: Send>(items: &[T], min_chunk: usize, make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let mut shares =
        par_chunks(items, min_chunk, |_, share| share.iter().map(&make).collect::<Vec<R>>()).into_iter();
    let mut out = shares.next().unwrap_or_default();
    shares.for_each(|it| out.extend(it));
    out
}
