//! Arguments in, face chosen, error chain and exit code out.

fn main() {}
