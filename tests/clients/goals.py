"""What a user asks for, reached by a scripted model that knows nothing but the tool list, in at most two calls each.
usage: goals.py CLIENT EPITOME       (in the kit's network namespace, with its lib on PYTHONPATH)

  "compact this session"                  and the client resumes it compacted
  "what did the failing test say?"        asked after the compaction, when the output is no longer in the history
  "hand off to a new session to do X"     a brief with the goal and what has to be known

The model calls with what the schemas offer, and before each call it is checked that they do: the tool is on the list,
its parameters are in the schema, a value that is one of a few is one of those.
"""

import re, sys

import flows, report

SUMMARY = "Earlier conversation compacted"
FAILURE = "assert 2.67 == 2.68"
MOST = 2


class Goals(flows.Flow):
    def __init__(self, client, epitome):
        super().__init__(flows.options([client, "mcp", "--", epitome, "serve", "--stdio"]))
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
                {"text": "BASE-A2 later."},
            ],
        )
        self.run("base session", "BASE-U1 run the tests and say which one fails")
        self.run("second prompt", "BASE-U2 leave it for now", True)

        said = self.goal("compact this session", [("summarize_history", {"to": "session"})])
        compacted = re.search(r'"status": ?"compacted"', said)
        if not self.check("compact: the result says that it was written", compacted):
            print("     ", report.cut(said, 800))
        new = re.search(r'"session_id": ?"([^"]+)"', said)
        if new:
            a.id = new.group(1)

        # The second call reads what the first one found.
        found = r"{{re:hits.{0,12}handle[^0-9a-z]+([0-9a-z]{10})}}"
        recall = [("recall", {"query": "test failed"}), ("recall", {"handle": found, "range": "/FAILED/±0"})]
        said = self.goal("what did the failing test say?", recall, lambda h: self.resumed(h))
        if not self.check("recall: what the test said is found", FAILURE in said):
            print("     ", report.cut(said, 800))

        goal = "add a test for rounding halves"
        said = self.goal("hand off to a new session to " + goal, [("summarize_history", {"focus": goal})])
        self.check("handoff: the brief is there", re.search(r'"summary": ?"', said))
        if not self.check("handoff: it says what failed", "test_rounds" in said or "run the tests" in said):
            print("     ", report.cut(said, 800))

        offered = self.offered()
        for params, answer in report.answers(self.W + "/mcp.jsonl"):
            properties = offered[params["name"]]["properties"]
            for name, value in (params.get("arguments") or {}).items():
                if name == "wait_for_previous":
                    continue
                fits = name in properties and value in properties[name].get("enum", [value])
                self.check(f"the list offers {params['name']} {name}", fits)
            self.check(f"{params['name']} is no error", answer and not answer.get("result", {}).get("isError"))

    def resumed(self, history):
        self.check("compacted: the summary is sent", SUMMARY in history)
        self.check("compacted: the old output is not", not re.search(r"1001\s+1002", history))

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
