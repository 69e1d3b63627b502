//! `epitome report`.

use super::Screen;
use super::arguments::ReportArgs;
use super::common::amount;
use crate::engine::Engine;
use history::error::Result;

pub(super) fn run(engine: &Engine, arguments: &ReportArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let mut ask = arguments.common.ask(&engine.config)?;
    ask.budget = amount("--budget", arguments.budget.as_deref())?;
    let opened = engine.open(
        &arguments.common.session(),
        arguments.common.format()?,
        arguments.common.agent.as_deref(),
    )?;
    let html = engine.report(&opened, &ask)?.html();
    if arguments.out.as_os_str() == "-" {
        return screen.exact(&mut html.as_bytes()).map(|()| 0);
    }
    crate::files::install(&arguments.out, html.as_bytes())?;
    let path = arguments.out.display().to_string();
    if !screen.json(&serde_json::json!({ "contract": crate::answers::CONTRACT, "output": path }))? {
        screen.note(&format!("written  {path}"))?;
    }
    Ok(0)
}
