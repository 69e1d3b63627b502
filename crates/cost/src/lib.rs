//! What a session's requests cost, and when a compaction pays. Pure: prices and times are inputs.
//!
//! All of it is based on what providers reported, request by request ([`sessions::requests`]). Under a plan
//! that is not billed by tokens, the tokens are the same, and the dollars are what the API would have
//! charged.

pub mod bill;
pub mod cache;
pub mod forecast;
pub mod policy;
pub mod prices;
pub mod replay;

pub use bill::{Amounts, Bill};
pub use cache::Rule;
pub use prices::{Price, Prices};

/// Rounds to a hundredth of a cent: a forecast is no more precise.
pub fn cents(dollars: f64) -> f64 {
    (dollars * 1e4).round() / 1e4
}

/// A day as `YYYY-MM-DD`.
fn is_day(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}
