//! The ways in: the command line, MCP, and the gateway. They read arguments, call the engine and show the answer.

pub mod cli;
pub mod gateway;
pub mod mcp;
pub mod terminal;
