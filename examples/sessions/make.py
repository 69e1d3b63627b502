#!/usr/bin/env python3
"""Writes the example sessions: one invented story in every format that Epitome reads. Standard library only.

    python3 examples/sessions/make.py              # from the repository's root; the result is the same every time
    python3 examples/sessions/make.py FILE.jsonl   # only the same story continued over a long day until the context is full, as a
                                                   # Claude Code session: docs/report.png shows that one
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
CWD = "/home/ada/checkout"
START = 1_780_000_000_000  # milliseconds since 1970
SESSION = "3d0c7a52-6f1e-4c58-9a41-0b8e5f2c7d10"


def listing(name, first, count):
    """A source file as an agent's read tool shows it."""
    body = [
        "pub struct {0}{1} {{ attempts: u32, delay_ms: u64, label: &'static str }}",
        "impl {0}{1} {{ pub fn next(&self) -> Option<u64> {{ (self.attempts > 0).then(|| self.delay_ms << self.attempts.min(6)) }} }}",
        "// {0}{1}: kept apart from the ledger so that a charge is never counted by its transport",
        "pub fn describe_{1}(value: &{0}{1}) -> String {{ format!(\"{{}}:{{}}:{{}}\", value.label, value.attempts, value.delay_ms) }}",
        "#[test] fn {0}{1}_is_finite() {{ assert!(describe_{1}(&{0}{1} {{ attempts: {1}, delay_ms: {2}, label: \"case\" }}).len() > 4); }}",
    ]
    lines = [body[i % len(body)].format(name, i, 37 * i % 911) for i in range(count)]
    return "\n".join(f"{first + i:>6}→{line}" for i, line in enumerate(lines))


def test_log(failed):
    names = [f"{m}::{t}" for m in ("charge", "ledger", "retry", "webhook", "refund", "currency") for t in (
        "accepts_the_smallest_amount", "refuses_a_negative_amount", "keeps_the_order_of_events", "is_stable_under_replay",
        "rounds_half_to_even", "names_the_currency", "survives_a_restart", "reports_what_it_did")]
    lines = ["   Compiling checkout v0.4.2 (/home/ada/checkout)", "    Finished `test` profile in 6.42s", f"running {len(names)} tests"]
    lines += [f"test {n} ... {'FAILED' if n in failed else 'ok'}" for n in names]
    if failed:
        lines += ["", "failures:"]
        for n in failed:
            lines += [f"---- {n} stdout ----", f"thread '{n}' panicked at src/{n.split('::')[0]}.rs:88:9:", "assertion `left == right` failed: one charge per idempotency key", "  left: 2", " right: 1"]
        lines += ["", f"test result: FAILED. {len(names) - len(failed)} passed; {len(failed)} failed; 0 ignored; finished in 1.73s", "error: test failed, to rerun pass `--lib`"]
    else:
        lines += ["", f"test result: ok. {len(names)} passed; 0 failed; 0 ignored; finished in 1.71s"]
    return "\n".join(lines)


# The story. Steps of the model: text, then calls (tool, input, output, failed).
STORY = [
    ("user", "Customers are charged twice when the payment provider times out. Find out why and fix it in the Rust service in this repo.\n\nRules: never change anything under migrations/. Don't add new dependencies. Always run `cargo test --lib` before you say that something works, and use port 7431 for the local server, 7430 is taken."),
    ("model", "I'll look at the retry path first.", [
        ("run", {"command": "git status --short && git log --oneline | head -3"}, "a41c9e7 Bump checkout to 0.4.2\n5be2210 Retry charges on timeout\n90d31fa Webhooks in order", False),
        ("read", {"path": f"{CWD}/src/retry.rs"}, listing("Backoff", 1, 60), False),
        ("read", {"path": f"{CWD}/src/charge.rs"}, listing("Charge", 1, 80), False),
    ]),
    ("model", "`retry.rs` makes a new idempotency key for each attempt, so the provider sees two charges. Let me see the tests fail first.", [
        ("run", {"command": "cargo test --lib"}, test_log(["charge::is_stable_under_replay", "retry::is_stable_under_replay"]), True),
        ("plan", {"items": [("Reproduce the double charge", "completed"), ("One idempotency key per charge, not per attempt", "in_progress"), ("Replay test for a timeout after the charge", "pending"), ("Note in docs/retries.md", "pending")]}, "ok", False),
    ]),
    ("model", "First idea: let the provider's client keep the key in a thread local.", [
        ("edit", {"path": f"{CWD}/src/client.rs", "old": "let key = new_key();", "new": "let key = KEY.with(|it| it.get_or_init(new_key));"}, "The file has been updated.", False),
        ("run", {"command": "cargo test --lib"}, test_log(["retry::is_stable_under_replay"]), True),
    ]),
    ("user", "No thread locals please, we run on a work-stealing executor: the key has to travel with the charge."),
    ("model", "Right, a task can move between threads between two attempts, so the thread local gives a new key. I give that up and put the key into `Charge`.", [
        ("run", {"command": "git checkout src/client.rs"}, "Updated 1 path from the index", False),
        ("edit", {"path": f"{CWD}/src/charge.rs", "old": "pub amount: Money,", "new": "pub amount: Money,\n    pub key: IdempotencyKey,"}, "The file has been updated.", False),
        ("edit", {"path": f"{CWD}/src/retry.rs", "old": "client.charge(amount, new_key())", "new": "client.charge(amount, charge.key)"}, "The file has been updated.", False),
        ("create", {"path": f"{CWD}/src/idempotency.rs", "content": "//! One key per charge, made when the charge is made.\n\n#[derive(Clone, Copy, PartialEq, Eq, Debug)]\npub struct IdempotencyKey(pub u128);\n"}, "File created successfully", False),
        ("run", {"command": "cargo test --lib"}, "error[E0063]: missing field `key` in initializer of `Charge`\n   --> src/webhook.rs:41:18\n    |\n41  |     let charge = Charge { amount };\n    |                  ^^^^^^ missing `key`\n\nerror: could not compile `checkout` (lib test) due to 1 previous error", True),
    ]),
    ("model", "The webhook builds charges too.", [
        ("read", {"path": f"{CWD}/src/webhook.rs"}, listing("Webhook", 1, 70), False),
        ("ask", {"question": "How should a webhook get its key? A) from the provider's event id  B) a new key for each delivery", "options": ["A) from the provider's event id", "B) a new key for each delivery"]}, "User selected: A) from the provider's event id", False),
        ("edit", {"path": f"{CWD}/src/webhook.rs", "old": "Charge { amount }", "new": "Charge { amount, key: IdempotencyKey::from_event(event.id) }"}, "The file has been updated.", False),
        ("edit", {"path": f"{CWD}/migrations/0009_keys.sql", "old": "", "new": "ALTER TABLE charges ADD COLUMN key;"}, "Permission denied: the user refused this edit: nothing under migrations/", True),
        ("run", {"command": "cargo test --lib"}, test_log([]), False),
    ]),
    ("model", "All 48 tests pass with one key per charge. Webhooks take the key from the provider's event id, as you chose.", []),
    ("user", "Good. Now the replay test: a timeout after the provider has charged must not charge again. And please keep commits small, one per plan item."),
    ("model", "", [
        ("plan", {"items": [("Reproduce the double charge", "completed"), ("One idempotency key per charge, not per attempt", "completed"), ("Replay test for a timeout after the charge", "in_progress"), ("Note in docs/retries.md", "pending")]}, "ok", False),
        ("run", {"command": "git commit -qam 'One idempotency key per charge' && git rev-parse --short HEAD"}, "c7f02b4", False),
        ("read", {"path": f"{CWD}/tests/replay.rs"}, listing("Replay", 1, 90), False),
        ("edit", {"path": f"{CWD}/tests/replay.rs", "old": "// more cases", "new": "#[test]\nfn a_timeout_after_the_charge_is_not_charged_again() {\n    let server = Provider::start(\"127.0.0.1:7431\").times_out_after_charging(1);\n    assert_eq!(server.run(charge()).charges(), 1);\n}"}, "The file has been updated.", False),
        ("run", {"command": "cargo test --test replay"}, "running 6 tests\ntest a_timeout_after_the_charge_is_not_charged_again ... FAILED\n\nfailures:\nthread 'a_timeout_after_the_charge_is_not_charged_again' panicked at tests/replay.rs:92:5:\nassertion `left == right` failed\n  left: 0\n right: 1\n\ntest result: FAILED. 5 passed; 1 failed; 0 ignored", True),
    ]),
    ("model", "The new test sees 0 charges: `Provider::times_out_after_charging` closes the socket before it books the charge. I need to change the order in `tests/support/provider.rs` next.", [
        ("read", {"path": f"{CWD}/tests/support/provider.rs"}, listing("Provider", 1, 50), False),
    ]),
    ("user", "ok, and then write docs/retries.md; mention https://docs.example.com/idempotency#keys and that keys live 24 h"),
    ("model", "I'll book the charge before the socket is closed, then run `cargo test --test replay` again.", []),
]

def module(name, number, prompt, failed, decision):
    """One module of the service taken through the same change."""
    path, first = f"{CWD}/src/{name}.rs", number * 3
    error = test_log([f"{name}::is_stable_under_replay" if name in ("ledger", "refund", "currency") else "webhook::keeps_the_order_of_events"])
    yield ("user", prompt)
    yield ("model", f"I'll read `src/{name}.rs` and what calls it.", [
        ("read", {"path": path}, listing(name.title(), 1, 170 + first), False),
        ("run", {"command": f"rg -n '{name.title()}' src tests"}, "\n".join(f"src/{other}.rs:{17 + 9 * i}:    {name.title()}{i}::new(charge.key, amount)?;" for i, other in enumerate(("charge", "retry", "webhook", "refund", "api") * 6)), False),
    ])
    yield ("model", decision, [
        ("edit", {"path": path, "old": f"{name}(amount)", "new": f"{name}(charge.key, amount)"}, "The file has been updated.", False),
        ("run", {"command": "cargo test --lib"}, error if failed else test_log([]), failed),
    ])
    if failed:
        yield ("model", f"The {name} read the key before it was written; the order is right now.", [
            ("edit", {"path": path, "old": "let key = load();", "new": "let key = charge.key;"}, "The file has been updated.", False),
            ("run", {"command": "cargo test --lib"}, test_log([]), False),
        ])
    yield ("model", "", [
        ("run", {"command": f"git commit -qam 'The key travels through the {name}' && git rev-parse --short HEAD"}, f"{0xb07a1 + number * 0x3d0f1:07x}", False),
        ("read", {"path": f"{CWD}/tests/{name}.rs"}, listing(f"{name.title()}Case", 1, 80 + first), False),
    ])


MODULES = [
    ("ledger", "Good. Now the ledger: it must book by the same key.", True, "The ledger books by key, so that a replay finds its own row."),
    ("refund", "Next the refunds. A refund keeps the key of its charge, never one of its own.", False, "A refund takes the key of the charge that it undoes."),
    ("currency", "Then currency conversion; rates are looked up once per key.", True, "Rates are cached by key instead of by time: a retry converts as the first attempt did."),
    ("receipt", "Receipts too, please.", False, "A receipt is numbered by key; the counter stays for the printed number."),
    ("invoice", "And invoices. Don't touch their PDF layout, legal has signed it off.", False, "Only `Invoice::id` changes; the layout stays as it is."),
    ("payout", "Payouts next. They run at night, so log the key at info level.", True, "Payouts log `key` at info level, and skip what is booked."),
    ("dispute", "Disputes: the provider sends ours back upper-cased, compare without case.", False, "Keys are compared without case where the provider sends them."),
    ("audit", "The audit trail must show the key but never the card number.", False, "The trail has a column for the key; card numbers stay masked."),
    ("notify", "Notifications go out once per key, also after a restart.", True, "Sent keys are kept in the outbox table instead of in memory."),
    ("export", "The nightly export needs the key as last column, so that old readers go on working.", False, "The key is the last column of the export."),
    ("metrics", "Count retries per key in the metrics, without the key as a label.", False, "Retries are a histogram; a key as label would be one series per charge."),
    ("limits", "And rate limits: a retry with the same key does not count against them.", False, "The limiter looks at the key first."),
]

LONG = STORY[:-3] + [step for n, (name, prompt, failed, decision) in enumerate(MODULES) for step in module(name, n, prompt, failed, decision)] + STORY[-3:]

TOOLS = {  # what each agent calls a thing: name and how its input is spelled
    "claude": {"read": ("Read", lambda i: {"file_path": i["path"]}), "run": ("Bash", lambda i: i), "edit": ("Edit", lambda i: {"file_path": i["path"], "old_string": i["old"], "new_string": i["new"]}),
               "create": ("Write", lambda i: {"file_path": i["path"], "content": i["content"]}), "plan": ("TodoWrite", lambda i: {"todos": [{"content": c, "status": s, "activeForm": c} for c, s in i["items"]]}),
               "ask": ("AskUserQuestion", lambda i: {"questions": [{"question": i["question"], "header": "Key", "multiSelect": False, "options": [{"label": o, "description": ""} for o in i["options"]]}]})},
    "codex": {"read": ("exec_command", lambda i: {"cmd": f"cat {i['path']}"}), "run": ("exec_command", lambda i: {"cmd": i["command"]}),
              "edit": ("apply_patch", lambda i: f"*** Begin Patch\n*** Update File: {i['path']}\n@@\n-{i['old']}\n+" + i["new"].replace("\n", "\n+") + "\n*** End Patch"),
              "create": ("apply_patch", lambda i: f"*** Begin Patch\n*** Add File: {i['path']}\n+" + i["content"].replace("\n", "\n+") + "\n*** End Patch"),
              "plan": ("update_plan", lambda i: {"plan": [{"step": c, "status": s} for c, s in i["items"]]}), "ask": ("request_user_input", lambda i: {"questions": [{"id": "key", "question": i["question"], "options": [{"label": o} for o in i["options"]]}]})},
    "gemini": {"read": ("read_file", lambda i: {"file_path": i["path"]}), "run": ("run_shell_command", lambda i: i), "edit": ("replace", lambda i: {"file_path": i["path"], "old_string": i["old"], "new_string": i["new"]}),
               "create": ("write_file", lambda i: {"file_path": i["path"], "content": i["content"]}), "plan": ("write_todos", lambda i: {"todos": [{"description": c, "status": s} for c, s in i["items"]]}), "ask": ("ask_user", lambda i: i)},
    "opencode": {"read": ("read", lambda i: {"filePath": i["path"]}), "run": ("bash", lambda i: {**i, "description": "run"}), "edit": ("edit", lambda i: {"filePath": i["path"], "oldString": i["old"], "newString": i["new"]}),
                 "create": ("write", lambda i: {"filePath": i["path"], "content": i["content"]}), "plan": ("todowrite", lambda i: {"todos": [{"content": c, "status": s, "priority": "high", "id": str(n)} for n, (c, s) in enumerate(i["items"])]}), "ask": ("question", lambda i: {"questions": [{"question": i["question"], "header": "Key", "options": [{"label": o, "description": ""} for o in i["options"]]}]})},
    "qwen": {"read": ("read_file", lambda i: {"file_path": i["path"]}), "run": ("run_shell_command", lambda i: {**i, "is_background": False}), "edit": ("edit", lambda i: {"file_path": i["path"], "old_string": i["old"], "new_string": i["new"]}),
             "create": ("write_file", lambda i: {"file_path": i["path"], "content": i["content"]}), "plan": ("todo_write", lambda i: {"todos": [{"id": str(n), "content": c, "status": s} for n, (c, s) in enumerate(i["items"])]}), "ask": ("ask_user_question", lambda i: {"questions": [{"question": i["question"], "header": "Key", "options": [{"label": o, "description": ""} for o in i["options"]]}]})},
    "pi": {"read": ("read", lambda i: i), "run": ("bash", lambda i: i), "edit": ("edit", lambda i: {"path": i["path"], "oldText": i["old"], "newText": i["new"]}), "create": ("write", lambda i: i),
           "plan": ("todo", lambda i: {"todos": [{"text": c, "status": s} for c, s in i["items"]]}), "ask": ("ask", lambda i: i)},
}


def steps(agent, story=STORY):
    """(kind, text, calls) with ids, tool names and inputs of that agent, and a time in ms."""
    number, now = 0, START
    for kind, text, *calls in story:
        now += 41_000
        out = []
        for what, given, answer, failed in calls[0] if calls else []:
            name, spell = TOOLS[agent][what]
            number += 1
            out.append((f"call_{number:04}", name, spell(given), answer, failed))
        yield kind, text, out, now


def iso(ms):
    import datetime
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03}Z"


def lines(name, records):
    (HERE / name).write_text("".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) + "\n" for r in records))


def document(name, value):
    (HERE / name).write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def growing():
    """Tokens that a provider would report: a rough count, so that the session looks lived in."""
    total = 14_200
    def after(*texts):
        nonlocal total
        total += sum(len(t) for t in texts) * 10 // 37 + 9
        return total
    return after


def claude(name="claude-code.jsonl", story=STORY, model="claude-opus-5-5"):
    out, parent, n, used = [], None, 0, growing()
    def row(kind, message, ms, **more):
        nonlocal parent, n
        n += 1
        uuid = f"00000000-0000-4000-8000-{n:012}"
        out.append({"parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": CWD, "sessionId": SESSION, "version": "2.1.328", "gitBranch": "main", "type": kind, "message": message, "uuid": uuid, "timestamp": iso(ms), **more})
        parent = uuid
    for turn, (kind, text, calls, ms) in enumerate(steps("claude", story)):
        if kind == "user":
            used(text)
            row("user", {"role": "user", "content": text}, ms)
            continue
        blocks = ([{"type": "text", "text": text}] if text else []) + [{"type": "tool_use", "id": f"toolu_{i[5:]}", "name": name, "input": given} for i, name, given, _, _ in calls]
        before = used()
        written = used(text, *(json.dumps(c[2]) for c in calls)) - before
        for block in blocks:
            row("assistant", {"id": f"msg_{turn:04}", "type": "message", "role": "assistant", "model": model, "content": [block], "stop_reason": "tool_use" if calls else "end_turn", "usage": {"input_tokens": 12, "cache_creation_input_tokens": 0, "cache_read_input_tokens": before - 12, "output_tokens": written}}, ms + 900, requestId=f"req_{turn:04}")
        for k, (i, _, _, answer, failed) in enumerate(calls):
            used(answer)
            row("user", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"toolu_{i[5:]}", "content": answer, **({"is_error": True} if failed else {})}]}, ms + 1500 + k)
    lines(name, out)


def codex():
    out, used, last = [], growing(), 0
    def line(kind, payload, ms):
        out.append({"timestamp": iso(ms), "type": kind, "payload": payload})
    line("session_meta", {"id": SESSION, "timestamp": iso(START), "cwd": CWD, "originator": "codex_exec", "cli_version": "0.169.0", "source": "exec", "model_provider": "openai", "base_instructions": {"text": "You are a coding agent. Keep answers short."}}, START)
    line("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"<environment_context>\n  <cwd>{CWD}</cwd>\n  <shell>bash</shell>\n</environment_context>"}]}, START)
    line("turn_context", {"cwd": CWD, "approval_policy": "never", "sandbox_policy": {"type": "danger-full-access"}, "model": "gpt-6-sol", "summary": "auto"}, START)
    for kind, text, calls, ms in steps("codex"):
        if kind == "user":
            used(text)
            line("event_msg", {"type": "user_message", "message": text}, ms)
            line("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}, ms)
            continue
        before = used()
        if text:
            line("response_item", {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}, ms)
        for i, name, given, _, _ in calls:
            if name == "apply_patch":
                line("response_item", {"type": "custom_tool_call", "call_id": i, "name": name, "input": given, "status": "completed"}, ms + 900)
            else:
                line("response_item", {"type": "function_call", "call_id": i, "name": name, "arguments": json.dumps(given)}, ms + 900)
        written = used(text, *(json.dumps(c[2]) for c in calls)) - before
        usage = {"input_tokens": before, "cached_input_tokens": last, "output_tokens": written, "reasoning_output_tokens": 0, "total_tokens": before + written}
        last = before
        line("event_msg", {"type": "token_count", "info": {"total_token_usage": usage, "last_token_usage": usage, "model_context_window": 258400}, "rate_limits": None}, ms + 950)
        for i, name, _, answer, failed in calls:
            used(answer)
            if name == "exec_command":
                answer = f"Wall time: 0.4 seconds\nProcess exited with code {1 if failed else 0}\nOutput:\n{answer}"
            line("response_item", {"type": "custom_tool_call_output" if name == "apply_patch" else "function_call_output", "call_id": i, "output": answer}, ms + 1500)
    lines("codex.jsonl", out)


def gemini():
    out, used = [{"sessionId": SESSION, "projectHash": "0" * 64, "startTime": iso(START), "lastUpdated": iso(START), "kind": "main"}], growing()
    for n, (kind, text, calls, ms) in enumerate(steps("gemini")):
        if kind == "user":
            used(text)
            out.append({"id": f"m{n:03}", "timestamp": iso(ms), "type": "user", "content": [{"text": text}]})
            continue
        before = used()
        written = used(text, *(json.dumps(c[2]) for c in calls)) - before
        record = {"id": f"m{n:03}", "timestamp": iso(ms), "type": "gemini", "content": text, "thoughts": [], "tokens": {"input": before, "output": written, "cached": 0, "thoughts": 0, "tool": 0, "total": before + written}, "model": "gemini-3.5-flash"}
        if calls:
            responses = [{"functionResponse": {"id": i, "name": name, "response": {"error" if failed else "output": answer}}} for i, name, _, answer, failed in calls]
            record["toolCalls"] = [{"id": i, "name": name, "args": given, "result": [r], "status": "error" if failed else "success", "timestamp": iso(ms + 1500)} for (i, name, given, _, failed), r in zip(calls, responses)]
            used(*(c[3] for c in calls))
        out.append(record)
        if calls:
            out.append({"id": f"m{n:03}r", "timestamp": iso(ms + 1600), "type": "user", "content": responses})
    lines("gemini-cli.jsonl", out)


def qwen():
    out, parent, used = [], None, growing()
    def row(kind, ms, **more):
        nonlocal parent
        uuid = f"00000000-0000-4000-8000-{len(out) + 1:012}"
        out.append({"uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "timestamp": iso(ms), "type": kind, "cwd": CWD, "version": "0.22.2", "gitBranch": "main", **more})
        parent = uuid
    for kind, text, calls, ms in steps("qwen"):
        if kind == "user":
            used(text)
            row("user", ms, provenance="real_user", message={"role": "user", "parts": [{"text": text}]})
            continue
        before = used()
        written = used(text, *(json.dumps(c[2]) for c in calls)) - before
        parts = ([{"text": text}] if text else []) + [{"functionCall": {"id": i, "name": name, "args": given}} for i, name, given, _, _ in calls]
        row("assistant", ms, provenance="assistant_output", model="qwen3-coder-plus", message={"role": "model", "parts": parts}, usageMetadata={"promptTokenCount": before, "candidatesTokenCount": written, "totalTokenCount": before + written}, contextWindowSize=262144)
        for i, name, _, answer, failed in calls:
            used(answer)
            response = {"functionResponse": {"id": i, "name": name, "response": {"error" if failed else "output": answer}}}
            row("tool_result", ms + 1500, provenance="tool_result", message={"role": "user", "parts": [response]}, toolCallResult={"callId": i, "status": "error" if failed else "success"})
    lines("qwen-code.jsonl", out)


def opencode():
    used, messages, ses, parent = growing(), [], "ses_1aexample000000000000000001", ""
    for n, (kind, text, calls, ms) in enumerate(steps("opencode")):
        mid = f"msg_1b{n:04}0000000000000000000000"
        def part(k, value):
            return {"id": f"prt_1c{n:04}{k:02}000000000000000000", "sessionID": ses, "messageID": mid, **value}
        if kind == "user":
            used(text)
            parent = mid
            messages.append({"info": {"id": mid, "sessionID": ses, "role": "user", "time": {"created": ms}, "agent": "build", "model": {"providerID": "anthropic", "modelID": "claude-opus-5-5"}}, "parts": [part(0, {"type": "text", "text": text})]})
            continue
        before = used()
        written = used(text, *(json.dumps(c[2]) for c in calls)) - before
        tokens = {"total": before + written, "input": before, "output": written, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        parts = [part(0, {"type": "step-start"})] + ([part(1, {"type": "text", "text": text})] if text else [])
        for k, (i, name, given, answer, failed) in enumerate(calls):
            used(answer)
            time = {"start": ms + 900, "end": ms + 1500}
            # A command that fails is a completed call whose output says so; a refused edit is an error.
            refused = failed and name == "edit"
            state = {"status": "error", "input": given, "error": answer, "time": time} if refused else {"status": "completed", "input": given, "output": answer, "title": name, "metadata": {"exit": 1} if failed else {}, "time": time}
            parts.append(part(2 + k, {"type": "tool", "tool": name, "callID": i, "state": state}))
        parts.append(part(90, {"type": "step-finish", "reason": "tool-calls" if calls else "stop", "cost": 0, "tokens": tokens}))
        messages.append({"info": {"id": mid, "sessionID": ses, "role": "assistant", "parentID": parent, "mode": "build", "agent": "build", "path": {"cwd": CWD, "root": "/"}, "cost": 0, "tokens": tokens, "modelID": "claude-opus-5-5", "providerID": "anthropic", "time": {"created": ms, "completed": ms + 1600}, "finish": "tool-calls" if calls else "stop"}, "parts": parts})
    document("opencode.json", {"info": {"id": ses, "slug": "example", "projectID": "global", "directory": CWD, "title": "Double charges", "version": "1.18.33", "time": {"created": START, "updated": START}}, "messages": messages})


def pi():
    out = [{"type": "session", "version": 3, "id": SESSION, "timestamp": iso(START), "cwd": CWD}]
    parent, n, used = None, 0, growing()
    def entry(message, ms):
        nonlocal parent, n
        n += 1
        out.append({"type": "message", "id": f"{n:08x}", "parentId": parent, "timestamp": iso(ms), "message": {**message, "timestamp": ms}})
        parent = f"{n:08x}"
    for kind, text, calls, ms in steps("pi"):
        if kind == "user":
            used(text)
            entry({"role": "user", "content": [{"type": "text", "text": text}]}, ms)
            continue
        before = used()
        written = used(text, *(json.dumps(c[2]) for c in calls)) - before
        content = ([{"type": "text", "text": text}] if text else []) + [{"type": "toolCall", "id": i, "name": name, "arguments": given} for i, name, given, _, _ in calls]
        entry({"role": "assistant", "content": content, "api": "anthropic-messages", "provider": "anthropic", "model": "claude-opus-5-5", "usage": {"input": before, "output": written, "cacheRead": 0, "cacheWrite": 0}, "stopReason": "toolUse" if calls else "stop"}, ms)
        for i, name, _, answer, failed in calls:
            used(answer)
            entry({"role": "toolResult", "toolCallId": i, "toolName": name, "content": [{"type": "text", "text": answer}], "isError": failed}, ms + 1500)
    lines("pi.jsonl", out)


def swe_agent():
    history = [{"role": "system", "content": "You are a careful engineer.", "agent": "primary", "message_type": "system_prompt"}]
    trajectory = []
    for kind, text, calls, _ in steps("codex"):
        if kind == "user":
            history.append({"role": "user", "content": text, "agent": "primary", "message_type": "observation"})
        elif not calls:
            history.append({"role": "assistant", "content": text, "thought": text, "action": "", "agent": "primary", "message_type": "action"})
        for i, name, given, answer, _ in calls:
            action = given.get("cmd") if isinstance(given, dict) and "cmd" in given else f"{name} <<'EOF'\n{given if isinstance(given, str) else json.dumps(given)}\nEOF"
            thought = text or "Next."
            history.append({"role": "assistant", "content": thought, "thought": thought, "action": action, "agent": "primary", "message_type": "action", "tool_calls": [{"id": i, "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": action})}}]})
            history.append({"role": "tool", "content": f"OBSERVATION:\n{answer}", "agent": "primary", "message_type": "observation", "tool_call_ids": [i]})
            trajectory.append({"action": action, "observation": answer, "response": thought, "thought": thought, "state": {"working_dir": CWD}})
            text = ""
    document("swe-agent.traj", {"environment": "main", "trajectory": trajectory, "history": history, "info": {"exit_status": None}})


def wire():
    anthropic, chat, responses, contents = [], [{"role": "system", "content": "You are a careful engineer."}], [], []
    for kind, text, calls, _ in steps("claude"):
        if kind == "user":
            anthropic.append({"role": "user", "content": text})
            chat.append({"role": "user", "content": text})
            responses.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
            contents.append({"role": "user", "parts": [{"text": text}]})
            continue
        anthropic.append({"role": "assistant", "content": ([{"type": "text", "text": text}] if text else []) + [{"type": "tool_use", "id": i, "name": name, "input": given} for i, name, given, _, _ in calls]})
        chat.append({"role": "assistant", "content": text or None, **({"tool_calls": [{"id": i, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}} for i, name, given, _, _ in calls]} if calls else {})})
        if text:
            responses.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
        responses += [{"type": "function_call", "call_id": i, "name": name, "arguments": json.dumps(given)} for i, name, given, _, _ in calls]
        contents.append({"role": "model", "parts": ([{"text": text}] if text else []) + [{"functionCall": {"name": name, "args": given}} for _, name, given, _, _ in calls]})
        if calls:
            anthropic.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, "content": answer, **({"is_error": True} if failed else {})} for i, _, _, answer, failed in calls]})
            chat += [{"role": "tool", "tool_call_id": i, "content": answer} for i, _, _, answer, _ in calls]
            responses += [{"type": "function_call_output", "call_id": i, "output": answer} for i, _, _, answer, _ in calls]
            contents.append({"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"error" if failed else "output": answer}}} for _, name, _, answer, failed in calls]})
    document("anthropic.json", {"model": "claude-opus-5-5", "max_tokens": 4096, "system": "You are a careful engineer.", "messages": anthropic})
    document("openai-chat.json", chat)
    document("openai-responses.json", {"model": "gpt-6-sol", "instructions": "You are a careful engineer.", "input": responses})
    document("gemini.json", {"contents": contents})


if __name__ == "__main__":
    if sys.argv[1:]:
        claude(pathlib.Path(sys.argv[1]).resolve(), LONG, "claude-haiku-4-5")
        sys.exit()
    for write in (claude, codex, gemini, qwen, opencode, pi, swe_agent, wire):
        write()
