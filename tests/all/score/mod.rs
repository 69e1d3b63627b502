//! What survives, and whether the score can be believed.

mod baselines;
pub(crate) mod card;
mod corpus;
mod extract;
mod hindsight;
mod labels;
mod learn;
mod now;
mod survival;
mod unseen;
