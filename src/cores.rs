//! Work on more than one core.

use std::panic::resume_unwind;

/// Does two things at once.
pub(crate) fn both<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|panic| resume_unwind(panic)), other)
    })
}

/// What `make` makes of every item, in their order, on all cores.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    /// So many are worth a thread.
    const MANY: usize = 64;
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let many = items.len().div_ceil(cores).max(MANY);
    std::thread::scope(|scope| {
        let mut parts = items.chunks(many);
        let mine = parts.next().unwrap_or_default();
        let make = &make;
        let others: Vec<_> =
            parts.map(|it| scope.spawn(move || it.iter().map(make).collect::<Vec<R>>())).collect();
        let mut out: Vec<R> = mine.iter().map(make).collect();
        for other in others {
            out.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        out
    })
}
