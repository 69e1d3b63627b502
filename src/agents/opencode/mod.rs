//! OpenCode: one SQLite database (WAL) in its data folder (OpenCode 1.2 to 1.18). A session's address is
//! `database#ses_…`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::hooks::{AgentHooks, HookMoment};
use super::write_back::{self, Operation, Placement, WriteMethod};
use super::{Agent, AgentInfo, Env, FoundSession, Problem, Variables, spellings};
use crate::agents::settings::own;
use history::error::Result;
use sessions::{Format, Mode};

mod change;
mod database;
mod install;
mod seat;

use database::{databases, is_running, newest_version, sessions};

pub struct OpenCode;

impl Agent for OpenCode {
    fn info(&self) -> &'static AgentInfo {
        static INFO: AgentInfo = AgentInfo {
            variables: Variables { inside: &["OPENCODE"], ..Variables::NONE },
            database: Some(&OpenCode),
            directory_fields: &["directory", "cwd", "root"],
            hooks: AgentHooks {
                reply_reaches_model_at: &[HookMoment::BeforeCompaction],
                takes_text: true,
                wants_sections: true,
                summary_in_session: true,
                ..AgentHooks::NONE
            },
            registration: Some(&install::REGISTRATION),
            seat: Some(&seat::SEAT),
            ..AgentInfo::new(Format::OPENCODE, "OpenCode")
        };
        &INFO
    }

    fn home(&self, env: &Env) -> PathBuf {
        home(env)
    }

    fn looks_elsewhere(&self, env: &Env) -> bool {
        env.text(database::VARIABLE).is_some()
    }

    fn search(&self, env: &Env, cwd: Option<&Path>, id: Option<&str>) -> Vec<FoundSession> {
        let wanted = cwd.map(spellings);
        let databases = databases(env).into_iter();
        databases.flat_map(|it| sessions(&it, wanted.as_deref(), id).unwrap_or_default()).collect()
    }

    fn is_running(&self, _env: &Env, id: &str, path: &Path) -> bool {
        is_running(path, id)
    }

    fn is_calling(&self, session: &FoundSession) -> bool {
        is_running(&session.path, &session.id)
    }

    fn untested_version(&self, head: &str) -> Option<String> {
        let (_, rest) = head.split_once("\"version\":")?;
        write_back::if_major_above(rest.split('"').nth(1)?, 1)
    }

    fn write_method(&self, operation: Operation, live: bool, export: bool) -> Result<WriteMethod> {
        Ok(match (operation, live) {
            // `opencode import` adds messages to a session with the same id but changes none: clearing
            // outputs needs a new session.
            (Operation::Compact, _) if export => write_back::on_resume(Mode::Append, Placement::Replace),
            (Operation::Prune | Operation::Restore, _) if export => {
                write_back::on_resume(Mode::New, Placement::Replace)
            }
            (Operation::Prune, _) => write_back::on_next_request(Mode::Patch, Placement::Database),
            (Operation::Compact, false) => write_back::on_next_request(Mode::Append, Placement::Database),
            (Operation::Compact | Operation::Restore, _) => {
                write_back::on_resume(Mode::New, Placement::Database)
            }
        })
    }

    fn resume_command(&self, env: &Env, id: &str) -> String {
        format!("{}opencode --session {id}", env.assigned(DATA))
    }

    fn import_and_resume_command(&self, _env: &Env, file: &str, id: &str) -> String {
        format!("opencode import {file} && opencode --session {id}")
    }

    fn import_command(&self, file: &str) -> Option<String> {
        Some(format!("opencode import {file}"))
    }

    fn settings_files(&self, _env: &Env, config: &Path) -> Vec<PathBuf> {
        ["opencode.jsonc", "opencode.json", "config.json"].map(|it| config.join("opencode").join(it)).into()
    }

    /// OpenCode 1.18 continues with the last prompt's model and fails if no such model exists. Its order of
    /// precedence: the project's settings, the user's settings, the last used model.
    fn default_model(&self, env: &Env, config: &Path, cwd: &Path) -> Option<String> {
        let project = ["opencode.jsonc", "opencode.json"].map(|it| cwd.join(it));
        let set = project.iter().chain(&self.settings_files(env, config)).find_map(|it| {
            let model = own::read(it)?.get("model")?.as_str()?.to_owned();
            model.contains('/').then_some(model)
        });
        set.or_else(|| {
            let used = own::read(&env.home.join(".local/state/opencode/model.json"))?;
            let newest = used.pointer("/recent/0")?;
            Some(format!("{}/{}", newest["providerID"].as_str()?, newest["modelID"].as_str()?))
        })
    }

    /// The smallest one if several providers have this model: messages do not tell the provider.
    fn model_window(&self, env: &Env, config: &Path, model: &str) -> Option<u64> {
        let project = ["opencode.jsonc", "opencode.json"].map(|it| env.cwd.join(it));
        let stated = |file: PathBuf| {
            let settings = own::read(&file)?;
            let providers = settings.get("provider")?.as_object()?.values();
            providers.filter_map(|it| it["models"][model]["limit"]["context"].as_u64()).min()
        };
        project.into_iter().chain(self.settings_files(env, config)).find_map(stated)
    }

    fn own_compaction(&self, setting: &dyn Fn(&str) -> Option<Value>) -> String {
        let is_off = setting("env:OPENCODE_DISABLE_AUTOCOMPACT").is_some_and(|it| own::is_on(&it))
            || setting("opencode:compaction.auto").is_some_and(|it| it == false);
        if is_off { "off" } else { "when the window is full" }.to_owned()
    }

    fn seat_blocked_by(&self, env: &Env, _setting: &dyn Fn(&str) -> Option<Value>) -> Option<Problem> {
        let version = newest_version(env)?;
        let major: u32 = version.split('.').next()?.parse().ok()?;
        (major >= PLUGINS_UNTIL).then(|| {
            Problem::new(
                format!(
                    "OpenCode {version} calls plugins in a way that ours does not support, so it compacts by itself"
                ),
                "nothing is lost; a newer Epitome may support it",
            )
        })
    }

    fn known_problems(&self, _env: &Env, config: &Path) -> Vec<Problem> {
        install::known_problems(config)
    }
}

/// Environment variable: the parent of its data folder.
const DATA: &str = "XDG_DATA_HOME";
/// The first major version whose plugin interface ours does not support.
const PLUGINS_UNTIL: u32 = 2;

fn home(env: &Env) -> PathBuf {
    env.folder(DATA).unwrap_or_else(|| env.home.join(".local/share")).join("opencode")
}
