//! `epitome completions` and `epitome man`, both generated from clap's definition.

use clap::CommandFactory;

use crate::interfaces::cli::Screen;
use crate::interfaces::cli::arguments::{Arguments, CompletionsArgs, ManArgs};
use history::error::{Error, ErrorKind, Result};

pub(crate) fn run(arguments: &CompletionsArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "epitome", &mut script);
    screen.block(String::from_utf8_lossy(&script).trim_end())?;
    Ok(0)
}

/// Prints the manual page of `epitome`, or writes one per command into a folder.
pub(crate) fn man(arguments: &ManArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let command = Arguments::command();
    let Some(folder) = &arguments.out else {
        screen.block(String::from_utf8_lossy(&page(command)?).trim_end())?;
        return Ok(0);
    };
    let write = |name: String, page: Vec<u8>| crate::files::install(&folder.join(name), &page);
    crate::files::make_folder(folder, "making a folder for the manual")?;
    for it in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        let name = format!("epitome-{}", it.get_name());
        write(format!("{name}.1"), page(it.clone().display_name(name).version(env!("CARGO_PKG_VERSION")))?)?;
    }
    write("epitome.1".to_owned(), page(command)?)?;
    Ok(0)
}

fn page(command: clap::Command) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let written = clap_mangen::Man::new(command).render(&mut out);
    written.map_err(|error| Error::new(ErrorKind::Bug, "writing the manual").because(error))?;
    Ok(out)
}
