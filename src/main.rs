//! Arguments in, face chosen, error chain and exit code out.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use epitome::answers::AnswerDocument;
use epitome::cli::{self, Arguments, Command};
use epitome::config::{Config, Environment};
use epitome::history::error::{Error, ErrorKind};
use epitome::terminal::{LineMode, Visible, visible};

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
            // There is nobody left to tell if this fails.
            let why = error.full_in(cli::hint_words);
            let _ = writeln!(stderr, "epitome: {}", visible(&why, LineMode::Block));
            if json && !hook {
                print_error(error.code(), &why);
            }
            // A hook must not stop its agent because of us: 2 would. Only what the user configured does.
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

/// The document of `--json` for a command that failed.
fn print_error(reason_code: &str, reason: &str) {
    let answer = serde_json::json!({"status": "error", "reason_code": reason_code, "reason": reason});
    let document = serde_json::to_string_pretty(&AnswerDocument::of(&answer)).unwrap_or_default();
    // There is nobody left to tell if this fails.
    let _ = writeln!(std::io::stdout(), "{document}");
}

/// Whether the error comes from writing to a process that has stopped reading, as `head` does.
fn is_closed_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|it| it.kind() == std::io::ErrorKind::BrokenPipe)
        || error.source().is_some_and(is_closed_pipe)
}

/// Past a limit on the size of files the system ends a process, unless it listens to the signal: then the write fails,
/// and we can say so and leave everything as it was. tokio listens without `unsafe`, and goes on when its runtime is
/// gone.
fn survive_limits() {
    #[cfg(unix)]
    if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() {
        let _guard = runtime.enter();
        let _ = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(libc::SIGXFSZ));
    }
}

/// Settings of glibc's allocator, for the two commands that would hold memory they no longer need.
///
/// `estimate`: glibc maps large pieces one by one, and gives each back when it is freed; but with the first that is
/// freed it takes ever larger ones from the heap of small ones, where tables that have grown leave holes. With the
/// threshold fixed where it begins that is 4 MB less of 64 for a session of 200 MB. What takes and frees the same again
/// and again is slower by it (a server two to three times).
///
/// `serve --http`: each thread gets a heap of its own, up to eight per core, and each heap keeps the most that it ever
/// held. 64 clients of a gateway took it from 67 to 107 MB in this way, of which 31 were in use. Two heaps are as fast.
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
    // Where it is refused, more memory is held, and that is all.
    let _ = unsafe { libc::mallopt(option, value) };
}

/// Says what is wrong with the arguments, or helps, and ends. Arguments may be names of files that others chose.
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

/// Logs go to stderr: warnings, with `-v` what is done, with `-vv` how.
fn init_log(arguments: &Arguments) {
    // The protocol's own log calls a client's mistakes warnings, and at its loudest shows whole messages.
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
