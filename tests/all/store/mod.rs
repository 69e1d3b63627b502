//! Nothing is lost: the archive, its care, and what is found in it again.

mod acceptance;
mod archive;
mod audited;
mod care;
mod chunks;
mod commands;
mod faults;
mod found;
mod kept;
mod memory;
mod old;
#[cfg(feature = "otel")]
mod otel;
mod processes;
mod program;
mod pushed;
mod recalled;
mod search;
mod sub_agents;
#[cfg(feature = "parquet")]
mod tables;
#[cfg(feature = "team")]
mod team;
mod transfer;

use epitome::history::secrets::Redactor;
use epitome::store::{Store, StoreAt};

/// An empty store: in memory or, within `team::server::on`, in PostgreSQL.
fn fresh(redactor: Redactor) -> Store {
    #[cfg(feature = "team")]
    let place = team::server::empty().map_or(StoreAt::Memory, StoreAt::Team);
    #[cfg(not(feature = "team"))]
    let place = StoreAt::Memory;
    Store::open(&place, redactor).unwrap()
}
