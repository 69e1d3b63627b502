# What people and CI run.

default: test

test:
    cargo test

lint:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings

# With the tools installed: cargo install cargo-deny
deny:
    cargo deny check

bench:
    cargo bench

# One hour of 64 clients over HTTP, 1 % of their requests hostile; SECONDS for less.
soak SECONDS="3600":
    EPITOME_SOAK_SECONDS={{SECONDS}} cargo test --release --test all mcp::soak -- --nocapture

# What the protocol's own suite and the MCP Inspector say; needs the kit of clients.
suites:
    cargo test --test all mcp::suites -- --nocapture --test-threads=1

# What each profile keeps on the sessions of a folder, written to SCORECARD.md.
scorecard corpus="../shared/corpus":
    cargo run --release -- score --corpus {{corpus}}
