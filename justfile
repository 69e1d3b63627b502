# What people and CI run.

default: test

test:
    cargo test

# Runs every test that reads real sessions on the whole corpus instead of a fixed sixth.
corpus:
    EPITOME_CORPUS_WHOLE=1 cargo test

# Every flow with the real agents, including those that `cargo test` skips to save time.
clients:
    EPITOME_CLIENTS_WHOLE=1 cargo test --test clients
    cargo test --test all repair::agents -- --ignored --nocapture

lint:
    cargo fmt --all --check
    cargo clippy --all-targets -- -D warnings

# Checks with the oldest Rust that Cargo.toml promises: rustup toolchain install 1.89.0 --profile minimal
msrv:
    cargo +1.89.0 check --workspace --all-targets

# Needs cargo-deny: cargo install cargo-deny
deny:
    cargo deny check

# Every path that has a target, compared with its peers, and the cost of server calls; fails if a target is missed. BENCHMARKS.md holds the last table.
bench *WORDS:
    cargo bench --bench table -- {{WORDS}}; table=$?; [ -n "{{WORDS}}" ] || cargo bench --bench serving && exit $table

# What a call costs a client, compared with a server on rmcp's own transport.
bench-serving:
    cargo bench --bench serving

# Installs what `bench` compares with: Gemini CLI's own functions, a Node MCP server, other counters.
bench-peers:
    mkdir -p target/bench-peers && cp benches/peers/package.json target/bench-peers/
    cd target/bench-peers && npm install --ignore-scripts --no-audit --no-fund
    cargo build --release --manifest-path benches/peers/Cargo.toml --target-dir target/bench-peers

# One hour of 64 clients over HTTP, 1 % of their requests hostile; pass SECONDS for a shorter run.
soak SECONDS="3600":
    EPITOME_SOAK_SECONDS={{SECONDS}} cargo test --release --test all mcp::soak -- --nocapture

# Runs the protocol's own test suite and the MCP Inspector; needs the client kit.
suites:
    cargo test --test all mcp::suites -- --nocapture --test-threads=1

# Instructions and memory of `estimate` and `compact` for each hostile shape of 200 kB and of 2 MB; needs valgrind, GNU time and about half an hour.
growth BYTES="200000":
    cargo build --release
    EPITOME_GROWTH={{BYTES}} EPITOME_BINARY={{justfile_directory()}}/target/release/epitome cargo test --test all hostile::costs -- --nocapture

# What each profile keeps on the sessions of a folder, written to SCORECARD.md.
scorecard corpus="../shared/corpus":
    cargo run --release -- score --corpus {{corpus}}

# Tests whether weights learned from what agents used later order facts better than the hand-made order (leave-one-repository-out).
learn:
    EPITOME_CORPUS_WHOLE=1 cargo test --test all score::learn -- --ignored --nocapture

# Seeded mutations of sessions of every format: no panic, nothing invalid, nothing slow.
fuzz COUNT="10000" SEED="1" *CASE:
    cargo run --profile fuzz --example fuzz -- {{COUNT}} {{SEED}} {{CASE}}

# Checks that every answer over the corpus and the examples is unchanged: `just pins record` before a change, `just pins` after it.
pins WHAT="compare" CORPUS="../shared/corpus":
    cargo build --release
    cargo run --release --example pins -- target/release/epitome target/pins.txt {{WHAT}} {{CORPUS}} examples/sessions

# The tables of docs/cost.md: what the sessions of the corpus would have cost with compactions at other moments, and how well bills are predicted.
cost:
    cargo test --test all -- policies:: replay:: --ignored --nocapture --test-threads=1

# Tests the team's store on a temporary PostgreSQL, and on S3 if s3s-fs is installed (cargo install s3s-fs --version 0.13.0-alpha.3 --features binary); then runs 64 clients for ten minutes and kills a server each minute.
team:
    cargo test --features team --test all store::team
    cargo test --features team --test all store::team::replicas::ten_minutes -- --ignored --nocapture

# Tests the features that CI does not build: Parquet tables (queried with DuckDB if EPITOME_DUCKDB names a Python with duckdb) and spans for a collector.
features:
    cargo test --features otel,parquet --test all -- store::otel store::tables store::audited
    cargo clippy --features otel,parquet --all-targets -- -D warnings
