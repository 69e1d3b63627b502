//! Parses the arguments, runs the command, and turns errors into messages and exit codes.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use epitome::answers::AnswerDocument;
use epitome::config::{Config, Environment};
use epitome::history::error::{Error, ErrorKind};
use epitome::interfaces::cli::{self, Arguments, Command};
use epitome::interfaces::terminal::{LineMode, Visible, visible};

fn main() -> ExitCode {
    survive_limits();
    let arguments = Arguments::of_process().unwrap_or_else(|error| refused(&error));
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    limit_memory(&arguments);
    init_log(&arguments);
    let (hook, json) = (arguments.is_hook(), arguments.json);
    if hook {
        cli::end_hook_in_time();
    }
    let environment = Environment::of_process();
    let stdout = std::io::stdout();
    let terminal = stdout.is_terminal();
    let columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let style = cli::Paint::new(
        terminal && environment.get("NO_COLOR").is_none() && environment.get("TERM") != Some("dumb"),
        columns.filter(|it| terminal && *it > 0),
    );
    let mut out = std::io::BufWriter::new(stdout.lock());
    let result = Config::load(environment).and_then(|config| cli::run(arguments, config, style, &mut out));
    let flushed =
        out.flush().map_err(|error| Error::new(ErrorKind::Io, "writing to standard output").because(error));
    #[cfg(feature = "otel")]
    epitome::engine::otel::finish();
    match result.and_then(|code| flushed.map(|()| code)) {
        // The reader has closed the pipe.
        Err(error) if error.kind() == ErrorKind::Io && is_closed_pipe(&error) => ExitCode::SUCCESS,
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let mut stderr = std::io::stderr().lock();
            // A failure here cannot be reported anywhere.
            let why = error.full_in(cli::hint_words);
            let _ = writeln!(stderr, "epitome: {}", visible(&why, LineMode::Block));
            if json && !hook {
                print_error(error.code(), &why);
            }
            // A failing hook must not stop its agent, as exit code 2 would; only a configured block may.
            if hook && error.kind() != ErrorKind::Refused {
                ExitCode::SUCCESS
            } else if hook {
                ExitCode::from(2)
            } else {
                ExitCode::from(error.exit_code())
            }
        }
    }
}

/// Prints the `--json` document of a failed command.
fn print_error(reason_code: &str, reason: &str) {
    let answer = serde_json::json!({"status": "error", "reason_code": reason_code, "reason": reason});
    let document = serde_json::to_string_pretty(&AnswerDocument::of(&answer)).unwrap_or_default();
    // A failure here cannot be reported anywhere.
    let _ = writeln!(std::io::stdout(), "{document}");
}

/// Whether the error comes from writing to a closed pipe, such as to `head`.
fn is_closed_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|it| it.kind() == std::io::ErrorKind::BrokenPipe)
        || error.source().is_some_and(is_closed_pipe)
}

/// When a file size limit (`ulimit -f`) is exceeded, SIGXFSZ kills the process unless it is handled; then the
/// write fails, and we can report that and leave everything unchanged. tokio installs a handler without
/// `unsafe`, and it remains after the runtime is dropped.
fn survive_limits() {
    #[cfg(unix)]
    if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() {
        let _guard = runtime.enter();
        let _ = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(libc::SIGXFSZ));
    }
}

/// Tunes glibc's allocator for two commands that would otherwise keep memory they no longer need.
///
/// `estimate`: glibc maps large blocks separately and unmaps each when freed, but after the first such free
/// it raises its threshold and takes larger and larger blocks from the heap, where tables that have grown
/// leave holes. Fixing the threshold at its initial value saves 4 of 64 MB for a session of 200 MB. It slows
/// down code that repeatedly allocates and frees large blocks (a server by a factor of two to three).
///
/// `serve --http`: each thread gets its own arena, up to eight per core, and each arena keeps its peak size.
/// 64 clients of a gateway made this grow from 67 to 107 MB, of which 31 were in use. Two are as fast.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn limit_memory(arguments: &Arguments) {
    const MAPPED_FROM: libc::c_int = 128 << 10;
    const HEAPS: libc::c_int = 2;
    let (option, value) = if let Some(Command::Estimate(_)) = arguments.command {
        (libc::M_MMAP_THRESHOLD, MAPPED_FROM)
    } else if arguments.serves_http() {
        (libc::M_ARENA_MAX, HEAPS)
    } else {
        return;
    };
    #[expect(
        unsafe_code,
        reason = "a setting of the C library; no other thread runs yet that could allocate"
    )]
    // If refused, only more memory is used.
    let _ = unsafe { libc::mallopt(option, value) };
}

/// Prints clap's error or help, and exits. Arguments may contain file names chosen by others, so control
/// characters are made visible.
fn refused(error: &clap::Error) -> ! {
    let said = error.render().to_string();
    if error.use_stderr() && std::env::args_os().any(|it| it == "--json") {
        print_error("arguments", said.trim_end());
    }
    let visible = visible(&said, LineMode::Block);
    if visible == said {
        error.exit();
    }
    let _ = writeln!(std::io::stderr().lock(), "{visible}");
    std::process::exit(error.exit_code())
}

/// Logs go to standard error: warnings; with `-v` also what is done, with `-vv` how.
fn init_log(arguments: &Arguments) {
    // rmcp logs a client's mistakes as warnings, and whole messages at its most verbose level.
    let levels = match arguments.verbosity() {
        i8::MIN..0 => "error",
        0 => "warn,rmcp=error",
        1 => "info,rmcp=warn",
        2..=i8::MAX => "debug,rmcp=info",
    };
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(levels))
        .with_writer(|| Visible(std::io::stderr()))
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .init();
}
