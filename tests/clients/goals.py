"""What a user asks for, reached by a scripted model that knows nothing but the tool list, in at most two calls each.
usage: goals.py CLIENT EPITOME       (in the kit's network namespace, with its lib on PYTHONPATH)

  "my context is filling"                 how full it is, and what to do
  "what would Codex do here?"             a preview; nothing is written
  "compact these messages"                messages of an API, with what takes their place
  "drop the old outputs"                  and the client resumes without them
  "undo that"                             and the client resumes with them
  "compact this session"                  and the client resumes it compacted
  "what did we decide about the cache?"   asked after the compaction
  "what did the failing test say?"        asked when the output is no longer in the history
  "hand off to a new session to do X"     a brief with the goal and what has to be known

The model calls with what the schemas offer, and before each call it is checked that they do: the tool is on the list,
its parameters are in the schema, a value that is one of a few is one of those.
"""

import re, sys

import flows, more, report

SUMMARY = "Earlier conversation compacted"
FAILURE = "assert 2.67 == 2.68"
DECISION = "the cache stays in SQLite, not in Redis"
OLD = r"1001\s+1002"
RULE = "never touch migrations/"
MESSAGES = [
    {"role": "user", "content": f"Fix the rounding in src/sum.py. You must {RULE}."},
    *(
        {"role": ("assistant", "user")[i % 2], "content": f"Step {i}: looked at part {i} of the sum. " * 40}
        for i in range(12)
    ),
]
MOST = 2
# On a busy machine it asks the model before its servers are connected.
WAITS = {"claude": ["--env", "MCP_CONNECTION_NONBLOCKING=false"]}


class Goals(flows.Flow):
    def __init__(self, client, epitome):
        super().__init__(flows.options([client, "mcp", *WAITS.get(client, []), *more.quick(client), "--", epitome, "serve", "--stdio"]))
        self.o.flow = "goals"

    def offered(self):
        """The tools as the server lists them."""
        said = (it.get("result") for it in report.wire(self.W + "/mcp.jsonl", d="s2c"))
        tools = (tool for it in said if isinstance(it, dict) for tool in it.get("tools", []))
        return {it["name"]: it["inputSchema"] for it in tools}

    def flow_goals(self):
        a = self.a
        a.setup()
        with open(a.cwd + "/run-tests.sh", "w") as script:
            script.write(f"echo 'FAILED tests/test_sum.py::test_rounds - {FAILURE}'\nseq 1000 2800\nexit 1\n")
        self.start(
            "1-base",
            [
                {"text": "BASE-A1 running the tests.", "calls": [a.shell("sh run-tests.sh")]},
                {"text": "BASE-A1 one test fails."},
                {"text": f"BASE-A2 Decided: {DECISION}."},
                {"text": "BASE-A3 later."},
            ],
        )
        self.run("base session", "BASE-U1 run the tests and say which one fails")
        self.run("a decision", f"BASE-U2 we decided: {DECISION}", True)
        self.run("third prompt", "BASE-U3 leave it for now", True)

        filling = "my context is filling, what can be done?"
        said = self.goal(filling, [("estimate_tokens", {})])
        self.reads(filling, "how full the window is", r'"used_percent": ?[\d.]+', said)
        self.reads(filling, "what to do about it", r'"(do|level)": ?"', said)

        codex = "what would Codex do here?"
        said = self.goal(codex, [("summarize_history", {"profile": "codex", "to": "plan"})])
        self.reads(codex, "that nothing was written", r'"status": ?"planned"', said)
        self.reads(codex, "the size before and after", r'"tokens_before": ?\d+.*"tokens_after": ?\d+', said)

        messages = "compact these messages"
        said = self.goal(messages, [("summarize_history", {"messages": MESSAGES})])
        self.reads(messages, "what takes their place", r'"replace": ?\{', said)
        self.reads(messages, "the rule they state", RULE, said)

        drop = "drop the old outputs"
        said = self.goal(drop, [("prune_tool_outputs", {"protect_tokens": 0, "to": "session"})])
        self.reads(drop, "that they are cleared", r'"status": ?"pruned"', said)
        self.takes_over(said)

        # What is resumed from here on is what the last goal wrote.
        undo = "undo that"
        said = self.goal(undo, [("summarize_history", {"to": "undo"})], lambda it: self.pruned(it))
        self.reads(undo, "that it is as it was", r'"status": ?"restored"', said)
        self.takes_over(said)

        compact = "compact this session"
        said = self.goal(compact, [("summarize_history", {"to": "session"})], lambda it: self.restored(it))
        self.reads(compact, "that it was written", r'"status": ?"compacted"', said)
        self.takes_over(said)

        decided = "what did we decide about the cache?"
        said = self.goal(decided, [("recall", {"query": decided})], lambda it: self.compacted(it))
        self.reads(decided, "the decision", DECISION, said)

        # The second call reads what the first one found.
        found = r"{{re:hits.{0,12}handle[^0-9a-z]+([0-9a-z]{10})}}"
        failing = "what did the failing test say?"
        calls = [("recall", {"query": "test failed"}), ("recall", {"handle": found, "range": "/FAILED/±0"})]
        self.reads(failing, "what it said", re.escape(FAILURE), self.goal(failing, calls))

        focus = "add a test for rounding halves"
        handoff = "hand off to a new session to " + focus
        said = self.goal(handoff, [("summarize_history", {"focus": focus})])
        self.reads(handoff, "the brief", r'"summary": ?"', said)
        self.reads(handoff, "what failed", "test_rounds|run the tests", said)

        offered = self.offered()
        for params, answer in report.answers(self.W + "/mcp.jsonl"):
            properties = offered[params["name"]]["properties"]
            for name, value in (params.get("arguments") or {}).items():
                if name == "wait_for_previous":
                    continue
                fits = name in properties and value in properties[name].get("enum", [value])
                self.check(f"the list offers {params['name']} {name}", fits)
            self.check(f"{params['name']} is no error", answer and not answer.get("result", {}).get("isError"))

    def reads(self, goal, what, pattern, said):
        """The model can read `what` in the answer."""
        if not self.check(f"{goal}: the answer says {what}", re.search(pattern, said, re.S)):
            print("     ", report.cut(said, 800))

    def takes_over(self, said):
        """A new session's id, where the answer names one."""
        if new := re.search(r'"session_id": ?"([^"]+)"', said):
            self.a.id = new.group(1)

    def pruned(self, history):
        self.check("pruned: the old output is not sent", not re.search(OLD, history))

    def restored(self, history):
        self.check("undone: the old output is sent again", re.search(OLD, history))

    def compacted(self, history):
        self.check("compacted: the summary is sent", SUMMARY in history)
        self.check("compacted: the old output is not", not re.search(OLD, history))

    def goal(self, prompt, calls, look=None):
        """Asks in the session, and has the model make the calls; what the model was told by the last of them."""
        self.check(f"{prompt}: at most {MOST} calls", len(calls) <= MOST)
        # The delay lets the client write its session down.
        turns = [{"calls": [self.a.call(tool, arguments)], "delay": 1.0} for tool, arguments in calls]
        self.start("goal " + re.sub(r"\W+", "-", prompt)[:20], [*turns, {"text": "GOAL-DONE"}])
        self.run(prompt, prompt, True)
        asked = self.main()
        if not self.check(f"{prompt}: the model is told what came of it", len(asked) == len(calls) + 1):
            return ""
        if look:
            look(report.conversation(asked[0]))
        results = [it for _, it in report.results(asked[-1])][-1:]
        return "\n".join(report.leaves(results))


if __name__ == "__main__":
    client, epitome = sys.argv[1:3]
    sys.exit(Goals(client, epitome).go())
