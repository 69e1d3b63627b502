//! The server's handler for rmcp.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams,
    CompleteResult, CompletionInfo, ContentBlock, CustomRequest, CustomResult, ErrorCode, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::server_state::{Caller, ServerState};
use super::tools::answer::Answer;
use super::tools::arguments::Arguments;
use super::tools::request::CallContext;
use super::tools::{self, error_hints, estimate};
use super::{prompts, resources, sampling};
use crate::agents::{self, AgentRef};
use crate::engine::{Event, Listener};
use crate::interfaces::terminal::{LineMode, visible};
use crate::llm::run::{Progress, Watch};
use history::error::{Error, ErrorKind, Result};

/// Shown to the model before the tools are loaded; some clients show only the first line.
const INSTRUCTIONS: &str = "\
Epitome compacts coding-agent sessions when the context window fills up: nothing is lost, every original can be recalled.
- How full is the context, what fills it: estimate_tokens.
- Context full, or a handoff to a new session: summarize_history (focus says what for).
- Only free space: prune_tool_outputs. Where to cut: find_split_point.
- What was cut or said earlier: recall.
With no arguments they act on the current session.";

/// How long clients may cache a list, in milliseconds: lists only change with a new version of the server.
const LISTS_MS: u64 = 3_600_000;

/// Interval of progress notifications during a long call. One client gives up after 30 s without any.
const PROGRESS: Duration = Duration::from_secs(2);

/// How often the prompts folder is checked for changes.
const WATCH: Duration = Duration::from_secs(5);

/// rmcp's context of a request.
type Context = RequestContext<RoleServer>;
type Page = Option<PaginatedRequestParams>;
type Reply<T> = Result<T, ErrorData>;

/// The handler behind every connection; cheap to clone.
#[derive(Clone)]
pub struct Server {
    pub(super) state: Arc<ServerState>,
    tools: Arc<[Tool]>,
    /// Limits calls that run at the same time; the others wait, and can be cancelled while waiting.
    working: Arc<Semaphore>,
    /// Cancelled when the only client (stdio) has closed its input: subscriptions end then, so as not to
    /// delay the end.
    pub(super) gone: CancellationToken,
}

impl Server {
    pub(super) fn new(state: ServerState) -> Self {
        let tools = tools::all(state.config.summarizers.opens_the_world()).into();
        let working = Arc::new(Semaphore::new(max_calls()));
        Self { state: Arc::new(state), tools, working, gone: CancellationToken::new() }
    }

    /// The caller: over HTTP the owner of the token, otherwise the local user.
    fn caller(&self, context: &Context) -> Caller {
        let parts = || context.extensions.get::<axum::http::request::Parts>()?.extensions.get::<Caller>();
        let caller = context.extensions.get::<Caller>().or_else(parts);
        let mut caller = caller.cloned().unwrap_or_else(|| self.state.local());
        if self.state.remote.is_none() {
            let session = |it: AgentRef| Some((it, it.calling_session(&context.meta)?));
            caller.session = agents::ALL.into_iter().find_map(session);
        }
        caller
    }

    /// Runs a job that reads files or the store on a blocking thread.
    async fn run_blocking<T: Send + 'static>(
        &self,
        context: &Context,
        job: impl FnOnce(&ServerState, &Caller) -> T + Send + 'static,
    ) -> Reply<T> {
        let (state, caller) = (self.state.clone(), self.caller(context));
        let done = tokio::task::spawn_blocking(move || job(&state, &caller)).await;
        done.map_err(|_| ErrorData::internal_error(broken().full(), None))
    }

    fn prompt_folder(&self) -> PathBuf {
        self.state.config.config_dir.join("prompts")
    }

    /// Calls `tell` whenever a prompt file has changed, until it returns false.
    async fn watch_prompts<F: Future<Output = bool>>(&self, tell: impl Fn() -> F) {
        let folder = self.prompt_folder();
        let mut known = prompts::stamp(&folder);
        loop {
            tokio::time::sleep(WATCH).await;
            let found = prompts::stamp(&folder);
            let changed = found != known;
            known = found;
            if changed && !tell().await {
                return;
            }
        }
    }

    /// Counts a call to a remote server and logs who called which tool, without any of its content.
    fn log_call(&self, owner: &str, tool: &str, answer: Option<&Result<Answer>>, took: Duration) {
        if self.state.remote.is_none() {
            return;
        }
        let outcome = match answer {
            Some(Ok(_)) => "ok",
            Some(Err(error)) => error.code(),
            None => "cancelled",
        };
        self.state.metrics.call(tool, outcome, took);
        let at = sessions::derive::time(self.state.now());
        let milliseconds = took.as_secs_f64() * 1000.0;
        let line = serde_json::json!({"at": at, "caller": owner, "tool": tool, "outcome": outcome, "ms": milliseconds});
        let line = line.to_string();
        // A log that cannot be written must not stop the server.
        let _ = writeln!(std::io::stderr().lock(), "{}", visible(&line, LineMode::Line));
    }

    /// Answers a call that is faster to execute than to hand to another thread, whoever the caller is.
    fn answer_without_thread(&self, tool: &str, arguments: &Arguments) -> Option<Result<Answer>> {
        guarded(|| estimate::quick(&self.state, tool, arguments).transpose()).transpose()
    }

    /// The same as a protocol result, for the stdio transport, which tries this before rmcp sees the call.
    pub(super) fn result_without_thread(&self, tool: &str, arguments: &Arguments) -> Option<CallToolResult> {
        let answer = self.answer_without_thread(tool, arguments)?;
        Some(self.result(tool, arguments, answer))
    }

    /// An answer as a protocol result; an error includes what the model can do about it.
    fn result(&self, tool: &str, arguments: &Arguments, answer: Result<Answer>) -> CallToolResult {
        result(answer, |error| error_hints::explain(&self.state, tool, arguments, error))
    }

    /// Calls a tool on a blocking thread and sends progress until it is done; `None` if it was cancelled.
    async fn work(
        &self,
        caller: Caller,
        tool: String,
        arguments: Arc<Arguments>,
        context: &Context,
    ) -> Option<Result<Answer>> {
        let state = self.state.clone();
        let token = context.meta.get_progress_token();
        // If the client asked for progress, a compaction's events are sent as they happen.
        let (tell, mut sentences) = tokio::sync::mpsc::unbounded_channel::<String>();
        let listener = token.is_some().then(|| -> Listener {
            Arc::new(move |event: &Event| {
                let _ = tell.send(event.sentence());
            })
        });
        let caller = Caller { listener, ..caller };
        let progress = Arc::new(Mutex::new("working on the session".to_owned()));
        let call_context = call_context(&progress, context);
        // However this function ends, the client no longer waits: a pending provider request is cancelled.
        let _stop = call_context.watch.cancel.clone().drop_guard();
        let job = move || guarded(|| tools::call(&state, &caller, &tool, &arguments, &call_context));
        let working = self.working.clone();
        let mut done = std::pin::pin!(async move {
            let permit = working.acquire_owned().await.ok()?;
            let done = tokio::task::spawn_blocking(move || {
                let answer = job();
                drop(permit);
                answer
            });
            Some(done.await.unwrap_or_else(|_| Err(broken())))
        });
        let mut alive = interval_at(Instant::now() + PROGRESS, PROGRESS);
        alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut step = 0.0;
        let mut notify = async |words: String| {
            let Some(token) = token.clone() else { return };
            step += 1.0;
            let sign = ProgressNotificationParam::new(token, step).with_message(words);
            // Errors are ignored: a client that disconnects also cancels the call.
            let _ = context.peer.notify_progress(sign).await;
        };
        loop {
            tokio::select! {
                biased;
                Some(words) = sentences.recv() => notify(words).await,
                done = &mut done => {
                    while let Ok(words) = sentences.try_recv() {
                        notify(words).await;
                    }
                    return done;
                }
                () = context.ct.cancelled() => return None,
                _ = alive.tick(), if token.is_some() => {
                    let words = progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    notify(words).await;
                }
            }
        }
    }
}

/// The context of a call; `progress` holds the text of the next progress notification.
fn call_context(progress: &Arc<Mutex<String>>, context: &Context) -> CallContext {
    let progress = progress.clone();
    let tell = move |it: &Progress| {
        *progress.lock().unwrap_or_else(PoisonError::into_inner) = it.words("the model");
    };
    let watch = Watch { progress: Some(Arc::new(tell)), ..Watch::default() };
    CallContext { watch, sampling: sampling::offered(&context.peer) }
}

/// Maximum calls at the same time: the number of processors, but at least two and at most eight.
fn max_calls() -> usize {
    std::thread::available_parallelism().map_or(2, |it| it.get().clamp(2, 8))
}

/// Turns a panic into an error, so that the client still gets a reply.
fn guarded<T>(job: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|_| Err(broken()))
}

fn broken() -> Error {
    let what =
        "this call ran into a bug in Epitome; others still work. Please report it with the server's log";
    Error::new(ErrorKind::Bug, what)
}

fn result(answer: Result<Answer>, told: impl Fn(&Error) -> String) -> CallToolResult {
    match answer {
        Ok(answer) => {
            let answer = Value::Object(answer);
            // Faster than `Value`'s `Display`, which goes through `fmt` piece by piece.
            let text = serde_json::to_string(&answer).unwrap_or_default();
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(answer);
            result
        }
        Err(error) => {
            // Text only: structured content would have to match the output schema.
            CallToolResult::error(vec![ContentBlock::text(told(&error))])
        }
    }
}

/// Refuses a cursor, since lists are never paginated.
pub(super) fn no_cursor(request: Page) -> Reply<()> {
    match request.and_then(|it| it.cursor) {
        None => Ok(()),
        Some(cursor) => Err(ErrorData::invalid_params(
            format!("expected no cursor, since lists have one page, found {cursor:?}"),
            None,
        )),
    }
}

/// What is wrong with the parameters of a `tools/call` that could not be parsed.
fn wrong_call(params: Option<&Value>) -> String {
    let of = |name: &str| params.and_then(|it| it.get(name));
    let found = |value: Option<&Value>| match value {
        None | Some(Value::Null) => "nothing",
        Some(Value::Bool(_) | Value::Number(_)) => "a number or boolean",
        Some(Value::String(_)) => "a text",
        Some(Value::Array(_)) => "an array",
        Some(Value::Object(_)) => "an object",
    };
    if !of("name").is_some_and(Value::is_string) {
        let found = found(of("name"));
        return format!(r#"name: expected the name of a tool, such as "estimate_tokens", found {found}"#);
    }
    match of("arguments") {
        None | Some(Value::Null | Value::Object(_)) => {
            "expected the parameters of tools/call (name, arguments, _meta), found others".to_owned()
        }
        other => {
            let found = found(other);
            format!(r#"arguments: expected an object, such as {{"text": "hello"}}, found {found}"#)
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_completions()
            .build();
        let about = Implementation::new("epitome", env!("CARGO_PKG_VERSION"))
            .with_title("Epitome")
            .with_description(env!("CARGO_PKG_DESCRIPTION"));
        ServerConfig::new(capabilities).with_server_info(about).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(&self, request: Page, _: Context) -> Reply<ListToolsResult> {
        no_cursor(request)?;
        let mut list = ListToolsResult::with_all_items(self.tools.to_vec());
        list.ttl_ms = Some(LISTS_MS);
        list.cache_scope = Some(CacheScope::Public);
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|it| it.name == name).cloned()
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: Context) -> Reply<CallToolResponse> {
        let tool = request.name.as_ref();
        if !self.tools.iter().any(|it| it.name == tool) {
            let names: Vec<&str> = self.tools.iter().map(|it| it.name.as_ref()).collect();
            let what = format!("expected a tool of this server ({}), found {tool:?}", names.join(", "));
            return Err(ErrorData::invalid_params(what, None));
        }
        let caller = self.caller(&context);
        let arguments = match context.extensions.get::<Arc<Arguments>>() {
            Some(arguments) => arguments.clone(),
            None => Arc::new(Arguments::of(request.arguments.unwrap_or_default())),
        };
        let (started, owner) = (Instant::now(), caller.owner.clone());
        let answer = match self.answer_without_thread(tool, &arguments) {
            Some(answer) => Some(answer),
            None => self.work(caller, tool.to_owned(), arguments.clone(), &context).await,
        };
        self.log_call(&owner, tool, answer.as_ref(), started.elapsed());
        // After a cancellation the result is not sent.
        let answer = answer.unwrap_or_else(|| Err(Error::new(ErrorKind::Refused, "the call was cancelled")));
        Ok(self.result(tool, &arguments, answer).into())
    }

    async fn list_prompts(&self, request: Page, context: Context) -> Reply<ListPromptsResult> {
        no_cursor(request)?;
        let folder = self.prompt_folder();
        Ok(ListPromptsResult::with_all_items(
            self.run_blocking(&context, move |_, _| prompts::list(&folder)).await?,
        ))
    }

    async fn get_prompt(&self, asked: GetPromptRequestParams, context: Context) -> Reply<GetPromptResponse> {
        let folder = self.prompt_folder();
        let name = asked.name.clone();
        let arguments = asked.arguments.unwrap_or_default();
        match self.run_blocking(&context, move |_, _| prompts::get(&folder, &name, &arguments)).await? {
            Some(Ok(messages)) => Ok(GetPromptResult::new(messages).into()),
            Some(Err(what)) => Err(ErrorData::invalid_params(what, None)),
            None => {
                let what = format!("expected a prompt that prompts/list names, found {:?}", asked.name);
                Err(ErrorData::invalid_params(what, None))
            }
        }
    }

    async fn list_resources(&self, request: Page, context: Context) -> Reply<ListResourcesResult> {
        no_cursor(request)?;
        Ok(ListResourcesResult::with_all_items(self.run_blocking(&context, resources::list).await?))
    }

    async fn list_resource_templates(&self, request: Page, _: Context) -> Reply<ListResourceTemplatesResult> {
        no_cursor(request)?;
        let mut list = ListResourceTemplatesResult::with_all_items(resources::templates());
        list.ttl_ms = Some(LISTS_MS);
        list.cache_scope = Some(CacheScope::Public);
        Ok(list)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Reply<ReadResourceResponse> {
        let contents = self
            .run_blocking(&context, move |state, caller| resources::read(state, caller, &request.uri))
            .await??;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn complete(&self, request: CompleteRequestParams, context: Context) -> Reply<CompleteResult> {
        let argument = request.argument;
        let job = move |state: &ServerState, caller: &Caller| {
            resources::complete(state, caller, &argument.name, &argument.value)
        };
        let mut found = self.run_blocking(&context, job).await?;
        let total = found.len();
        found.truncate(CompletionInfo::MAX_VALUES);
        let more = total > found.len();
        let info = CompletionInfo::with_pagination(found, Some(total as u32), more);
        info.map(CompleteResult::new).map_err(|what| ErrorData::internal_error(what, None))
    }

    /// Requests that rmcp cannot parse: unknown methods, or known ones with wrong parameters.
    async fn on_custom_request(&self, request: CustomRequest, _: Context) -> Reply<CustomResult> {
        Err(match request.method.as_str() {
            "tools/call" => ErrorData::invalid_params(wrong_call(request.params.as_ref()), None),
            _ => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None),
        })
    }

    /// Watches the local user's prompt files; a team server's do not change.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.state.remote.is_some() {
            return;
        }
        let server = self.clone();
        tokio::spawn(async move {
            let peer = &context.peer;
            server.watch_prompts(|| async { peer.notify_prompt_list_changed().await.is_ok() }).await;
        });
    }

    fn accepted_subscription_filter(&self, _requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().prompts_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Reply<()> {
        tokio::select! {
            () = context.cancelled() => {}
            () = self.gone.cancelled() => {}
            () = self.watch_prompts(|| async { context.sink().notify_prompt_list_changed().await.is_ok() }) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_result() {
        let answer: Result<Answer> = guarded(|| panic!("a bug"));
        let result = serde_json::to_value(result(answer, Error::full)).unwrap();
        assert_eq!(result["isError"], true);
        let said = result["content"][0]["text"].as_str().unwrap();
        assert!(said.contains("bug in Epitome") && !said.contains("a bug\""), "{said}");
        assert!(result.get("structuredContent").is_none());
    }
}
