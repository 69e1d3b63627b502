//! `epitome profiles`.

use super::Screen;
use super::arguments::ProfilesArgs;
use super::paint::table;
use crate::engine::Engine;
use crate::error::Result;
use crate::profile::{BUILT_IN, Profile};

pub(super) fn run(engine: &Engine, arguments: &ProfilesArgs, screen: &mut Screen<'_>) -> Result<u8> {
    if let Some(name) = &arguments.name {
        let profile = engine.config.profile(name)?;
        if screen.json(&profile)? {
            return Ok(0);
        }
        let text = toml::to_string_pretty(&profile).unwrap_or_default();
        return screen.line(text.trim_end()).map(|()| 0);
    }
    let mut profiles = Vec::new();
    for (name, _) in BUILT_IN {
        profiles.push(Profile::built_in(name)?);
    }
    for name in engine.config.profiles.keys() {
        profiles.push(engine.config.profile(name)?);
    }
    if screen.json(&profiles)? {
        return Ok(0);
    }
    let mut rows = vec![["profile", "what", "follows"].map(str::to_owned).to_vec()];
    rows.extend(profiles.into_iter().map(|it| vec![it.name, it.about, it.follows]));
    for line in table(&rows, screen.paint) {
        screen.line(&line)?;
    }
    Ok(0)
}
