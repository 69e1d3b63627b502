//! Nothing is lost: the archive, its care, and what is found in it again.

mod acceptance;
mod archive;
mod care;
mod chunks;
mod commands;
mod faults;
mod found;
mod kept;
mod memory;
mod old;
mod processes;
mod program;
mod recalled;
mod search;
mod transfer;
