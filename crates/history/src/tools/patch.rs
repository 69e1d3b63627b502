//! Patch envelopes: `*** Begin Patch` (Codex, OpenCode) and unified diffs.

use super::{Action, Meaning};

pub(super) fn is_envelope(text: &str) -> bool {
    text.trim_start().starts_with("*** Begin Patch\n")
}

/// The files that a patch touches, in order.
pub(super) fn actions(patch: &str) -> Vec<Action> {
    if patch.contains("*** ") { enveloped(patch) } else { unified(patch) }
}

fn enveloped(patch: &str) -> Vec<Action> {
    let mut out: Vec<Action> = Vec::new();
    let mut moved: Option<&str> = None;
    for line in patch.lines().map(str::trim_end) {
        // The file was moved, then changed under its new name.
        if let Some(to) = moved.take() {
            out.extend(line.starts_with(['@', '+', '-']).then(|| Action::on(Meaning::Edit, to)));
        }
        if let Some(path) = line.strip_prefix("*** Add File: ") {
            // A file that the patch deletes and adds again is rewritten.
            let path = path.trim();
            match out.iter_mut().find(|it| it.meaning == Meaning::Delete && it.path.as_deref() == Some(path))
            {
                Some(deleted) => deleted.meaning = Meaning::Edit,
                None => out.push(Action::on(Meaning::Create, path)),
            }
        } else if let Some(path) = line.strip_prefix("*** Delete File: ") {
            out.push(Action::on(Meaning::Delete, path.trim()));
        } else if let Some(path) = line.strip_prefix("*** Update File: ") {
            out.push(Action::on(Meaning::Edit, path.trim()));
        } else if let Some(to) = line.strip_prefix("*** Move to: ")
            && let Some(last) = out.last_mut().filter(|it| it.meaning == Meaning::Edit)
        {
            let renamed = Action { to: Some(to.trim().into()), ..last.clone() };
            *last = Action { meaning: Meaning::Rename, ..renamed };
            moved = Some(to.trim());
        }
    }
    out
}

fn unified(patch: &str) -> Vec<Action> {
    let mut out = Vec::new();
    let mut before = None;
    let name = |it: &str| {
        let it = it.split('\t').next().unwrap_or(it).trim();
        let bare = it.strip_prefix("a/").or_else(|| it.strip_prefix("b/")).unwrap_or(it);
        (bare != "/dev/null").then(|| bare.to_string())
    };
    for line in patch.lines() {
        if let Some(path) = line.strip_prefix("--- ") {
            before = Some(name(path));
        } else if let Some(path) = line.strip_prefix("+++ ")
            && let Some(before) = before.take()
        {
            out.extend(match (before, name(path)) {
                (None, Some(new)) => Some(Action::on(Meaning::Create, new)),
                (Some(old), None) => Some(Action::on(Meaning::Delete, old)),
                (Some(_), Some(new)) => Some(Action::on(Meaning::Edit, new)),
                (None, None) => None,
            });
        }
    }
    out
}
