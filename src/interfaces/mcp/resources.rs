//! Resources: sessions (as token estimates), summaries and originals by handle, and profiles.

use crate::config::profiles::{self, BUILT_IN};
use crate::engine::{self, Directories};
use crate::store::{AuditVerb, NewCompaction};
use rmcp::model::{ErrorData, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use super::server_state::{Caller, ServerState};
use super::tools;
use super::tools::arguments::{Arguments, single};
use super::tools::request::CallContext;
use compaction::profile::Profile;
use history::error::{Error, ErrorKind, Result};

const SCHEME: &str = "epitome://";
/// Maximum sessions and snapshots listed; completion and tools find the others.
const LISTED: usize = 10;

pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, what: &str, mime: &str| {
        ResourceTemplate::new(format!("{SCHEME}{uri}"), name).with_description(what).with_mime_type(mime)
    };
    vec![
        template(
            "archive/{handle}",
            "archive",
            "The original of a compaction, message or tool output",
            "text/plain",
        ),
        template("profile/{profile}", "profile", "A profile (how to compact), as TOML", "application/toml"),
        template("session/{id}", "session", "How full a session is and what fills it", "application/json"),
        template("snapshot/{handle}", "snapshot", "The summary of a compaction", "text/markdown"),
    ]
}

/// The profiles, the newest sessions of this directory, the newest summaries.
pub(super) fn list(state: &ServerState, caller: &Caller) -> Vec<Resource> {
    let mut out = vec![
        Resource::new(format!("{SCHEME}profiles"), "profiles")
            .with_description("The built-in profiles")
            .with_mime_type("application/json"),
    ];
    let Ok(engine) = state.engine(caller) else { return out };
    if state.remote.is_none() {
        let sessions = engine::sessions(&engine, None, Directories::Here).unwrap_or_default();
        out.extend(sessions.iter().take(LISTED).map(|it| {
            Resource::new(format!("{SCHEME}session/{}", it.id), it.id.as_str())
                .with_description(format!("{}: {}", it.agent.name(), it.first_words))
                .with_mime_type("application/json")
        }));
    }
    let snapshots = engine.store.compactions(&state.scope(caller), None, LISTED as u32).unwrap_or_default();
    out.extend(snapshots.iter().map(|it| {
        let NewCompaction { tokens_before, tokens_after, profile, .. } = &it.about;
        Resource::new(format!("{SCHEME}snapshot/{}", it.handle), it.handle.as_str())
            .with_description(format!("{tokens_before} → {tokens_after} tokens by {profile}"))
            .with_mime_type("text/markdown")
    }));
    out
}

pub(super) fn read(state: &ServerState, caller: &Caller, uri: &str) -> Result<ResourceContents, ErrorData> {
    let found = uri.strip_prefix(SCHEME).and_then(|it| it.split_once('/').or(Some((it, ""))));
    let contents = match found {
        Some(("profiles", "")) => profiles().map(|it| (it, "application/json")),
        Some(("profile", name)) if !name.is_empty() => {
            profiles::built_in(name).and_then(|it| it.to_toml()).map(|it| (it, "application/toml"))
        }
        Some(("session", id)) if !id.is_empty() => {
            let arguments = Arguments::of(single("session", json!(id)));
            tools::call(state, caller, "estimate_tokens", &arguments, &CallContext::default())
                .map(|it| (serde_json::Value::Object(it).to_string(), "application/json"))
        }
        Some(("snapshot", handle)) if !handle.is_empty() => {
            snapshot(state, caller, handle).map(|it| (it, "text/markdown"))
        }
        Some(("archive", handle)) if !handle.is_empty() => {
            let arguments = Arguments::of(single("handle", json!(handle)));
            let answer = tools::call(state, caller, "recall", &arguments, &CallContext::default());
            answer.map(|it| {
                let text = it.get("text").and_then(|it| it.as_str()).unwrap_or_default();
                let more = it.get("next").and_then(|it| it.as_str());
                let more = more.map(|it| {
                    format!("\n[… continues: recall {{\"handle\": \"{handle}\", \"range\": \"{it}\"}}]")
                });
                (format!("{text}{}", more.unwrap_or_default()), "text/plain")
            })
        }
        _ => Err(Error::new(
            ErrorKind::Arguments,
            "expected epitome://profiles, profile/NAME, session/ID, snapshot/HANDLE or archive/HANDLE, found something else",
        )),
    };
    match contents {
        Ok((text, mime)) => Ok(ResourceContents::text(text, uri).with_mime_type(mime)),
        Err(error) => Err(ErrorData::resource_not_found(error.full(), Some(json!({"uri": uri})))),
    }
}

fn snapshot(state: &ServerState, caller: &Caller, handle: &str) -> Result<String> {
    let engine = state.engine(caller)?;
    let scope = state.readable(&engine, handle, None)?;
    let compaction = engine.store.compaction(&scope, handle)?;
    engine.audit(AuditVerb::Read, &scope, Some(&compaction.session.id), Some(handle));
    Ok(compaction.about.summary)
}

fn profiles() -> Result<String> {
    let all = profiles::all_built_in()?;
    let row = |it: &Profile| json!({"name": it.name, "about": it.about, "follows": it.follows});
    Ok(json!({"profiles": all.iter().map(row).collect::<Vec<_>>()}).to_string())
}

/// Completions of an argument that begin with `typed`.
pub(super) fn complete(state: &ServerState, caller: &Caller, argument: &str, typed: &str) -> Vec<String> {
    let all: Vec<String> = match argument {
        "id" | "session" if state.remote.is_none() => {
            let sessions = state
                .engine(caller)
                .and_then(|it| engine::sessions(&it, None, Directories::All))
                .unwrap_or_default();
            sessions.into_iter().map(|it| it.id).collect()
        }
        "handle" => {
            let Ok(engine) = state.engine(caller) else { return Vec::new() };
            let scope = state.scope(caller);
            let snapshots = engine.store.compactions(&scope, None, 100).unwrap_or_default();
            let originals = engine.store.newest(&scope, None, 100, 0).unwrap_or_default();
            let sessions = snapshots.iter().filter_map(|it| it.original.as_ref());
            let handles = sessions
                .chain(snapshots.iter().map(|it| &it.handle))
                .chain(originals.iter().map(|it| &it.handle));
            handles.map(|it| it.as_str().to_owned()).collect()
        }
        "profile" => BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect(),
        _ => Vec::new(),
    };
    all.into_iter().filter(|it| it.starts_with(typed)).collect()
}
