//! What of a history is kept, what its summary says, and in which words. Pure: the same input gives the same bytes.
//!
//! A [`profile`] says how one system compacts; [`plan`] decides by it; [`facts`] are read from the history without a
//! model; [`summary`] writes them, or talks with a model about them.

pub mod facts;
pub mod plan;
pub mod profile;
pub mod summary;
