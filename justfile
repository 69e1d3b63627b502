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
