//! `epitome profiles`.

use crate::engine::Engine;
use crate::interfaces::cli::Screen;
use clap::Args;
use compaction::profile::{Collapse, Keep, Outputs, Pass, Profile, Slot, Snip, SummaryShape, Trigger};
use history::error::Result;

#[derive(Debug, Args)]
pub struct ProfilesArgs {
    /// Print this profile as TOML
    name: Option<String>,
}

pub(crate) fn run(engine: &Engine, arguments: &ProfilesArgs, screen: &mut Screen<'_>) -> Result<u8> {
    if let Some(name) = &arguments.name {
        let profile = engine.config.profile(name)?;
        if screen.document(&profile)? {
            return Ok(0);
        }
        return screen.block(profile.to_toml()?.trim_end()).map(|()| 0);
    }
    let profiles = engine.config.all_profiles()?;
    if screen.document(&profiles)? {
        return Ok(0);
    }
    let head = ["profile", "auto-compacts", "passes", "summary", "new context", "follows"];
    let row = |it: &Profile| {
        vec![it.name.clone(), trigger(&it.trigger), passes(it), summary(it), layout(it), it.follows.clone()]
    };
    screen.table(&head, profiles.iter().map(row), &["new context", "follows", "summary", "auto-compacts"])?;
    screen.note("")?;
    screen.note(
        "epitome profiles NAME prints one, with its numbers and deviations; save it to a file to customize \
                 it (--profile FILE.toml)",
    )?;
    Ok(0)
}

fn thousands(tokens: u64) -> String {
    if tokens >= 1_000 && tokens.is_multiple_of(1_000) {
        format!("{}k", tokens / 1_000)
    } else {
        tokens.to_string()
    }
}

fn trigger(trigger: &Trigger) -> String {
    let mut out = Vec::new();
    if let Some(share) = trigger.share {
        out.push(format!("{:.0} %", share * 100.0));
    }
    if trigger.share.is_none()
        && let Some(reserve) = trigger.reserve_output
    {
        let buffer = trigger.buffer.map(|it| format!(" − {}", thousands(it))).unwrap_or_default();
        out.push(format!("window − {}{buffer}", thousands(reserve)));
    }
    out.extend(trigger.tokens.map(|it| format!("≤ {}", thousands(it))));
    out.extend(trigger.chars.map(|it| format!("{} characters", thousands(it))));
    out.extend((trigger.minimum > 0).then(|| format!("≥ {}", thousands(trigger.minimum))));
    out.extend((trigger.cool_down > 0).then(|| format!("{} s apart", trigger.cool_down)));
    out.extend((trigger.failures > 0).then(|| format!("{} failures", trigger.failures)));
    out.join(", ")
}

fn passes(profile: &Profile) -> String {
    let name = |pass: &Pass| match pass {
        Pass::Outputs(Outputs { off: true, .. }) => "(outputs)",
        Pass::Outputs(_) => "outputs",
        Pass::Snip(Snip { off: true, .. }) => "(snip)",
        Pass::Snip(_) => "snip",
        Pass::Collapse(Collapse { on: false, .. }) => "(collapse)",
        Pass::Collapse(_) => "collapse",
        Pass::Summarize(_) => "summarize",
    };
    let names: Vec<&str> = profile.passes.iter().map(name).collect();
    names.join(" → ")
}

fn summary(profile: &Profile) -> String {
    let Some(step) = profile.summarize() else { return String::new() };
    let shape = match step.summary.shape {
        SummaryShape::Markdown => "",
        SummaryShape::Xml => " XML",
        SummaryShape::Plain => " plain",
    };
    format!("{}{shape} sections ≤ {}", step.summary.sections.len(), thousands(step.summary.max_tokens))
}

fn layout(profile: &Profile) -> String {
    let Some(step) = profile.summarize() else { return String::new() };
    let name = |slot: &Slot| match slot {
        Slot::Head | Slot::Context => "context".to_owned(),
        Slot::UserMessages => "user messages".to_owned(),
        Slot::OlderUserMessages => "older user messages".to_owned(),
        Slot::LastUserMessage => "last user message".to_owned(),
        Slot::Summary if matches!(&step.keep, Keep::UserMessages(it) if it.joined) => "bridge".to_owned(),
        Slot::Summary => "summary".to_owned(),
        Slot::Ack(_) | Slot::AckPrompt(_) => "ack".to_owned(),
        Slot::Marker(_) => "mark".to_owned(),
        Slot::Continue(_) => "go on".to_owned(),
        Slot::Replay => "last prompt".to_owned(),
        Slot::Restore(it) => match &it.what {
            compaction::profile::Restored::Files => "files".to_owned(),
            compaction::profile::Restored::Plan => "plan".to_owned(),
            compaction::profile::Restored::Outputs(tools) => tools.join("/").to_lowercase(),
        },
        Slot::Tail => "tail".to_owned(),
    };
    let names: Vec<String> = step.layout.iter().map(name).collect();
    names.join(", ")
}
