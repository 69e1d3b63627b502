//! Tool name → meaning, for all agents: one table.
