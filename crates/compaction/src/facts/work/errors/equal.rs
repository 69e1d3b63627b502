//! Errors that are told more than once, and those that need no success of their own.

use std::collections::HashMap;

use super::resolution;
use crate::facts::text::without_durations;
use crate::facts::work::RECENT_MESSAGES;
use crate::facts::work::command::ParsedCommand;
use crate::facts::{Detail, Fact};

/// Merges equal errors, and drops those settled without a success of their own. `end`: number of messages.
pub(in crate::facts::work) fn drop_settled_errors(errors: &mut Vec<Fact>, end: usize) {
    resolve_equal_errors(errors);
    drop_repeated_errors(errors);
    drop_moved_errors(errors);
    // An edit that did not fit and was not retried soon was made in another way; one without a change needs no retry.
    errors.retain(|it| {
        let stands = matches!(it.detail, Detail::Error { resolved: None, .. });
        let old = it.message + RECENT_MESSAGES < end;
        !(stands && (resolution::changes_nothing(&it.text) || old && resolution::is_misfit(&it.text)))
    });
}

/// Gives equal error lines of different commands the same fate: if one is resolved later, all are. Lines that
/// name nothing (`Error: Command failed`) are equal only if the same programs were run.
fn resolve_equal_errors(errors: &mut [Fact]) {
    let key = |error: &Fact| {
        let text = without_durations(&error.text).into_owned();
        match &error.detail {
            Detail::Error { of: Some(of), .. } if !names_something(&text) => {
                (text, ParsedCommand::of(of).names())
            }
            _ => (text, Vec::new()),
        }
    };
    let mut gone: HashMap<(String, Vec<String>), (usize, usize)> = HashMap::new();
    for error in errors.iter() {
        if let Detail::Error { resolved, similar, .. } = error.detail
            && (resolved.is_some() || similar.is_some())
        {
            let newest = gone.entry(key(error)).or_default();
            *newest = (newest.0.max(resolved.unwrap_or_default()), newest.1.max(similar.unwrap_or_default()));
        }
    }
    // Edits that did not fit stay separate errors, though their messages are alike.
    for error in errors.iter_mut().filter(|it| !resolution::is_misfit(&it.text)) {
        let (at, newest) = (error.message, gone.get(&key(error)));
        if let Detail::Error { resolved: resolved @ None, similar, .. } = &mut error.detail
            && let Some(newest) = newest
        {
            *resolved = Some(newest.0).filter(|it| *it > at);
            *similar = similar.or(Some(newest.1).filter(|it| *it > at));
        }
    }
}

/// Keeps the newest of equal errors that one success resolved, or that are unresolved and name something.
fn drop_repeated_errors(errors: &mut Vec<Fact>) {
    let key = |it: &Fact| match it.detail {
        Detail::Error { resolved, similar: None, excused: None, .. } => {
            let text = without_durations(&it.text).into_owned();
            (resolved.is_some() || names_something(&text)).then_some((text, resolved))
        }
        _ => None,
    };
    let newest: HashMap<(String, Option<usize>), usize> =
        errors.iter().filter_map(|it| Some((key(it)?, it.message))).collect();
    errors.retain(|it| key(it).is_none_or(|key| newest.get(&key) == Some(&it.message)));
}

/// Whether an error says more than that something failed: it contains a path, a name or a value.
fn names_something(error: &str) -> bool {
    let names = |it: &str| it.trim_end_matches(['.', ':']).contains(['/', '.', '_', ':', '\'', '"']);
    error.split_whitespace().any(names)
}

/// Keeps the newest where a checker printed the same unresolved error at another line of the same file.
fn drop_moved_errors(errors: &mut Vec<Fact>) {
    let place = |it: &Fact| {
        let stands = matches!(it.detail, Detail::Error { resolved: None, similar: None, .. });
        let (file, what) = resolution::located(&it.text).filter(|_| stands)?;
        Some((file.to_owned(), what.to_owned()))
    };
    let mut newest: HashMap<(String, String), (usize, Option<(usize, &'static str)>)> = HashMap::new();
    for error in errors.iter() {
        let (Some(key), Detail::Error { excused, .. }) = (place(error), &error.detail) else { continue };
        let known = newest.entry(key).or_default();
        *known = (known.0.max(error.message), excused.or(known.1));
    }
    errors.retain_mut(|error| {
        let Some((at, excuse)) = place(error).and_then(|it| newest.get(&it).copied()) else { return true };
        if let Detail::Error { excused, .. } = &mut error.detail {
            *excused = excuse;
        }
        error.message == at
    });
}
