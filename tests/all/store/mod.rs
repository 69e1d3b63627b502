//! Nothing is lost: the archive, its care, and what is found in it again.

mod archive;
mod care;
mod memory;
mod processes;
mod search;
