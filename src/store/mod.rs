//! The archive of originals and the memory of snapshots.
