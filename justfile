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

# What each profile keeps on the sessions of a folder, written to SCORECARD.md.
scorecard corpus="../shared/corpus":
    cargo run --release -- score --corpus {{corpus}}
