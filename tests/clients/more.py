"""More flows with the real clients, on the kit's own library (its `lib` folder is on PYTHONPATH).

more.py CLIENT FLOW EPITOME [PROFILE]   CLIENT: codex claude gemini opencode; EPITOME: the program's absolute path
  undo    compact, resume and say something, restore: the old request is back, and what was said since is there
  older   undo, of a session in the `.json` that Gemini CLI wrote before 0.36 (gemini only)
  limit   the session reports that it is full; compacted, it is resumed and the client does not compact again by itself
          (`control` instead of EPITOME leaves it as it is: then the client must compact)
  nested  compact, then let the client compact by its own means: our summary is not carried along as it was
  prune   clear the old output where it stands, then put it back
  kill    killed at random moments while it applies, EPITOME_ROUNDS times (3): each time the client resumes the session
          either as it was or as compacted
  carry   a session of another agent is carried over, and a brief handed off
  move    exported, compacted, in one home; imported in another with another project, and resumed there; the same with the
          bare session file in a third
  remind  the reported context passes 80 % of the window: the reminder reaches the model, once
  install `epitome install`: the client lists the server as connected, the hooks run and what they say reaches the
          model; before that, install, install again and uninstall leave every byte as it was, and what the client's own
          `mcp add` wrote meanwhile stays
"""

import glob, json, os, random, re, shutil, subprocess, sys, time

import agents, flows, report

SUMMARY = "Earlier conversation compacted"
OLD = r"1001\s+1002"
# The clients are found, as they are on a user's machine.
PATH = f"{agents.INSTALL}/bin:/usr/bin:/bin"


def quick(client, flow=None):
    """Options that start Gemini CLI sooner: with what Node compiled before, and not a second time for memory. `install` has
    it as users do."""
    if client != "gemini":
        return []
    cache = os.environ.get("NODE_COMPILE_CACHE")
    options = ["--env", f"NODE_COMPILE_CACHE={cache}"] if cache else []
    return options + ([] if flow == "install" else ["--env", "GEMINI_CLI_NO_RELAUNCH=true"])


def unpaired(request):
    """Calls without a result, and results without a call, in a request."""
    asked, answered = set(), set()
    for it in report.items(request):
        kind = it.get("type") or ""
        if kind.endswith("_call") and "call_id" in it:
            asked.add(it["call_id"])
        if kind.endswith("_call_output"):
            answered.add(it["call_id"])
        asked |= {call["id"] for call in it.get("tool_calls") or []}
        if it.get("role") == "tool":
            answered.add(it["tool_call_id"])
        for part in it.get("parts") or []:
            for key, where in (("functionCall", asked), ("functionResponse", answered)):
                if key in part:
                    where.add(part[key].get("id") or part[key]["name"])
        for block in it["content"] if isinstance(it.get("content"), list) else []:
            if block.get("type") == "tool_use":
                asked.add(block["id"])
            if block.get("type") == "tool_result":
                answered.add(block["tool_use_id"])
    return asked ^ answered


def texts(request):
    """What was said in a request, in order: not what the client says to itself, which it says anew each time, nor ids;
    arguments that are JSON by what they say."""
    own = r"<(system-reminder|session_context|environment_context|permissions)|[\w.+/=-]+$|[{\[]"
    items = [it for it in report.items(request) if it.get("role") not in ("system", "developer")]
    said = [text.strip() for text in report.leaves(items)]
    # Gemini CLI 0.61 sends results of earlier turns twice once it was resumed.
    return list(dict.fromkeys(text for text in said if len(text) > 8 and not re.match(own, text)))


def holds(whole, part):
    """Whether all of `part` stands in `whole`, in its order."""
    at, lost = 0, []
    for it in part:
        if it in whole[at:]:
            at = whole.index(it, at) + 1
        else:
            lost.append(it)
    return lost


class More(flows.Flow):
    def __init__(self, client, flow, epitome, profile=None):
        super().__init__(flows.options([client, "resume", *quick(client, flow)]))
        self.epitome, self.flow, self.profile = epitome, flow, profile
        self.ours, self.older = SUMMARY, None
        self.o.flow = flow

    def address(self):
        """How the session is named to epitome."""
        a = self.a
        if self.older:
            return self.older
        return f"{a.session()}#{a.id}" if a.name == "opencode" else a.session()

    def call(self, what, *arguments):
        """Runs epitome as the user would, in the project; a new session id is taken over."""
        a = self.a
        p = subprocess.run(
            [self.epitome, *arguments], cwd=a.cwd, env={"HOME": a.home, "PATH": PATH}, capture_output=True, text=True
        )
        if not self.check(f"{what}: epitome {arguments[0]} ends with 0", p.returncode == 0):
            print(report.cut(p.stdout + p.stderr, 2000))
            return {}
        answer = json.loads(p.stdout)
        if answer.get("session_id"):
            a.id = answer["session_id"]
        return answer

    def compact(self):
        profile = ["--profile", self.profile] if self.profile else ["--budget", "900"]
        answer = self.call("compact", "compact", self.address(), *profile, "--apply", "--json")
        if self.profile:
            lines = (answer.get("summary") or "").split("\n")
            self.ours = next((line.strip() for line in lines if len(line.strip()) > 30), SUMMARY)
        if not self.check("compact: it is installed", answer.get("status") == "compacted" and answer.get("resume")):
            print("     ", answer.get("status"), answer.get("reason_code"), answer.get("reason"))
        return answer

    def resumed(self, phase, prompt):
        """Resumes; the history that the model received, and whether the client compacted by itself."""
        self.start(phase)
        self.run(phase, prompt, True)
        reqs = report.load(self.log)
        m = report.main_requests(reqs)
        own = any(str(r["chosen"]).startswith("rule:own") for r in reqs)
        self.request = m[-1] if m else {"body": {}}
        return (report.conversation(m[-1]) if m else ""), own

    def flow_undo(self):
        self.a.setup()
        self.base()
        before = self.main()[-1]
        self.stop()
        answer = self.compact()
        h, own = self.resumed("3-compacted", "AFTER-U4 continue")
        self.check("compacted: the summary is sent", self.ours in h)
        if not self.profile:  # an agent's own profile keeps what that agent keeps
            self.check("compacted: the tail is", "BASE-U2" in h and "BASE-A2 final answer" in h)
        self.check("compacted: the old output is not", not re.search(OLD, h))
        self.check("compacted: no call without a result, no result without a call", not unpaired(self.request))
        sizes = [sum(map(len, texts(it))) for it in (before, self.request)]
        self.check(f"compacted: fewer tokens ({sizes[0]} characters before, {sizes[1]} after)", sizes[1] < sizes[0])
        self.check("compacted: the client did not compact by itself", not own)
        self.stop()
        answer = self.call("restore", "restore", "last", "--apply", "--json")
        self.check("restore: it was put back", answer.get("status") == "restored")
        h, _ = self.resumed("4-restored", "AFTER-U5 go on")
        self.check("restored: the old output is sent", re.search(OLD, h))
        self.check("restored: the summary is not", self.ours not in h)
        self.check("restored: no call without a result, no result without a call", not unpaired(self.request))
        lost = holds(texts(self.request), texts(before))
        if not self.check("restored: the request holds all of the old one, in its order", not lost):
            print("     ", report.cut(lost, 800))
        self.check("restored: what was said since is sent", "AFTER-U4" in h and "AFTER-ANSWER" in h)
        self.check("restored: the new prompt is sent", "AFTER-U5" in h)
        self.check("restored: nothing is sent twice", h.count("BASE-U1") == 1 and h.count("AFTER-U4") == 1)

    def flow_older(self):
        base = self.base

        def older():
            base()
            path = self.a.session()
            first, *rows = [json.loads(line) for line in open(path)]
            messages = {row["id"]: row for row in rows if "id" in row}
            for row in rows:
                first |= {key: value for key, value in row.get("$set", {}).items() if key != "messages"}
            self.older = path.removesuffix("l")
            with open(self.older, "w") as f:
                json.dump({**first, "messages": list(messages.values())}, f, indent=2)
            os.remove(path)

        self.base = older
        self.flow_undo()

    def flow_limit(self):
        a = self.a
        # Gemini CLI estimates the size itself on resume, so it is told its limit when the session is there.
        a.own = a.name != "gemini"
        a.setup()
        if a.name == "opencode":  # it would compact at the end of the turn that is full
            f = a.cwd + "/opencode.json"
            with open(f) as h:
                c = json.load(h)
            with open(f, "w") as h:
                json.dump({**c, "compaction": {"auto": False}}, h)
        full = {"codex": 50000, "gemini": 60000, "claude": 97000, "opencode": 97000}[a.name]
        look = [a.look()[0], a.shell("seq 1000 5000")] if a.name == "gemini" else a.look()
        last = {"text": "BASE-A2 final answer.", "usage": {"input": full, "output": 10}}
        self.start("1-base", [{"text": "BASE-A1 looking.", "calls": look}, {"text": "BASE-A1 final answer about the notes."}, last])
        env = {"env": a.own_env()} if a.name == "claude" else {}
        self.run("base session", "BASE-U1 read the notes", **env)
        self.run("second prompt", "BASE-U2 and then", True, **env)
        self.stop()
        if self.epitome != "control":
            self.compact()
        a.own = True
        a.setup()
        self.start("3-after")
        self.run("resume", "AFTER-U4 continue", True, **env)
        own = any(str(r["chosen"]).startswith("rule:own") for r in report.load(self.log))
        if self.epitome == "control":
            self.check("control: uncompacted, the client compacts by itself", own)
        else:
            self.check("the client does not compact again by itself", not own)

    def flow_nested(self):
        a = self.a
        a.own = a.name != "gemini"
        a.setup()
        self.base()
        self.stop()
        self.compact()
        a.own = True
        a.setup()
        self.own_script("3-own")
        k = {"env": a.own_env()} if a.name == "claude" and self.o.auto else {}
        self.run("first prompt", "OWN-U1 read the notes", True, **k)
        if a.name == "claude":
            self.run("/compact", "/compact keep it short", True)
        if a.name in ("opencode", "gemini"):
            self.run("second prompt", "OWN-U2 go on", True)
        own = [r for r in report.load(self.log) if str(r["chosen"]).startswith("rule:own")]
        if self.check("the client compacts by its own means", own):
            self.check("its model is sent our summary to work from", self.ours in report.whole(own[0]))
        h, _ = self.resumed("4-after", "AFTER-U5 continue")
        self.check("after its own compaction: its summary is sent", "OWN-SUMMARY" in h)
        self.check("after its own compaction: ours is not carried along", self.ours not in h)

    def flow_prune(self):
        look = [*self.a.look()[:-1], self.a.shell("cat notes.txt; seq 1000 2800")]
        self.a.look = lambda: look
        self.a.setup()
        self.base()
        self.stop()
        answer = self.call("prune", "prune", self.address(), "--protect", "0", "--apply", "--json")
        self.check("prune: outputs were cleared", answer.get("status") == "pruned" and answer.get("pruned"))
        h, own = self.resumed("3-pruned", "AFTER-U4 continue")
        self.check("pruned: the old output is not sent", h and not re.search(OLD, h))
        self.check("pruned: a placeholder is", "epitome recall" in h)
        self.check("pruned: all turns are", all(it in h for it in ("BASE-U1", "BASE-U2", "BASE-A2", "AFTER-U4")))
        self.check("the client did not compact by itself", not own)
        self.stop()
        answer = self.call("restore", "restore", "last", "--apply", "--json")
        h, _ = self.resumed("4-restored", "AFTER-U5 go on")
        self.check("restored: the old output is sent", re.search(OLD, h))
        self.check("restored: what was said since is sent once", h.count("AFTER-U4") == 1)

    def files(self):
        """Every file of settings below the home, with its bytes."""
        out = {}
        for folder, _, names in os.walk(self.a.home):
            for name in names:
                path = os.path.join(folder, name)
                if "/epitome/" not in path:
                    out[path] = open(path, "rb").read()
        return out

    def flow_install(self):
        a, o = self.a, self.o
        name = {"codex": "codex", "gemini": "gemini-cli", "claude": "claude-code", "opencode": "opencode"}[a.name]
        a.own = a.name != "gemini"
        a.setup(register=False)
        before = self.files()
        trust = ["--trust"] if a.name == "gemini" else []
        self.call("install", "install", name, *trust, "--json")
        once = self.files()
        self.check("install: something changed", once != before)
        self.call("install again", "install", name, *trust, "--json")
        self.check("install again: nothing changed", self.files() == once)
        self.call("uninstall", "uninstall", name, "--json")
        self.check("uninstall: every byte is as before", self.files() == before)
        self.call("install", "install", name, *trust, "--json")
        o.name = "other"
        rc, out = a.mcp_add()
        self.check("the client adds another server", rc == 0)
        self.call("install over it", "install", name, *trust, "--json")
        self.call("uninstall beside it", "uninstall", name, "--json")
        left = self.files()
        ours = [path for path in once if once[path] != before.get(path) and b"epitome" in left.get(path, b"")]
        self.check("uninstall beside it: nothing of ours is left", not ours)
        rc, out = a.exec(["mcp", "list"])
        self.check("uninstall beside it: the client lists the other server, and not ours", rc == 0 and "other" in out and "epitome:" not in out)
        for path in set(self.files()) - set(before):
            os.remove(path)
        for path in before:
            with open(path, "wb") as f:
                f.write(before[path])
        # The seat, where the client compacts by us, is the kit's flow `seat`; here the client compacts by itself.
        self.call("install", "install", name, *trust, "--no-seat", "--json")
        o.name = "epitome"
        rc, out = a.exec(["mcp", "list"])
        connected = "epitome" in out if a.name == "codex" else re.search(r"epitome.*[Cc]onnected", out)
        if not self.check("the client lists the server" + ("" if a.name == "codex" else " as connected"), rc == 0 and connected):
            print(report.cut(out, 1500))
        if a.name == "codex":
            o.client_arg.append("--dangerously-bypass-hook-trust")
        if a.name == "gemini":
            self.start("1-own", [{"text": "OWN-ANSWER"}])
            self.run("first prompt", "OWN-U1 hello")
            self.run("second prompt", "OWN-U2 hello", True)
            m = self.main()
            self.check("no user message is lost", m and "OWN-U1" in report.conversation(m[-1]))
            return
        self.make_own()
        reqs = report.load(self.log)
        own = [r for r in reqs if str(r["chosen"]).startswith("rule:own")]
        if a.name in ("claude", "opencode"):
            self.check("what must survive is in the compaction prompt", own and "Carry these facts" in report.whole(own[0]))
        if a.name == "codex":
            self.check("what the summary left out reaches the model", "The summary left these out" in report.whole(self.main()[-1]))
        h, _ = self.resumed("2-after", "AFTER-U4 continue")
        m = self.main()
        if a.name == "claude":
            self.check("what the summary left out reaches the model", m and "The summary left these out" in report.whole(m[-1]))
            self.check("what was open reaches the model", m and "From before the compaction" in report.whole(m[-1]))
        if a.name in ("claude", "opencode"):
            p = subprocess.run([self.epitome, "memory", "list"], cwd=a.cwd, env={"HOME": a.home}, capture_output=True, text=True)
            self.check("the client's summary is remembered", "OWN-SUMMARY" in p.stdout)

    def flow_remind(self):
        a, o = self.a, self.o
        name = {"codex": "codex", "gemini": "gemini-cli", "claude": "claude-code"}[a.name]
        # 85 % of the window that the client's model has: its own compaction comes later, or only at its next start.
        full = {"codex": 220000, "gemini": 900000, "claude": 850000}[a.name]
        a.setup(register=False)
        # In Gemini CLI's seat we compact at the end of the turn that fills the context, and nothing is left to remind of.
        self.call("install", "install", name, *(["--trust", "--no-seat"] if a.name == "gemini" else []), "--json")
        if a.name == "codex":
            o.client_arg.append("--dangerously-bypass-hook-trust")
        said = r"The context is 8\d % full"
        first = [{"text": "BASE-A1 looking.", "calls": a.look(), "usage": {"input": full, "output": 10}},
                 {"text": "BASE-A1 final answer.", "usage": {"input": full, "output": 10}}]
        self.start("1-full", first)
        self.run("first prompt", "BASE-U1 read the notes")
        self.start("2-next")
        self.run("second prompt", "BASE-U2 go on", True)
        self.run("third prompt", "BASE-U3 go on", True)
        m = self.main()
        whole = report.whole(m[-1]) if m else ""
        found = re.findall(said, whole)
        self.check("the reminder reaches the model, with what to call", found and "prune_tool_outputs" in whole)
        self.check("it is given once", len(found) == 1)
        if len(found) != 1:
            print("     ", len(m), "requests,", len(found), "reminders")

    def flow_kill(self):
        a = self.a
        a.setup()
        self.base()
        self.stop()
        saved = self.W + "/saved-home"
        shutil.copytree(a.home, saved, symlinks=True)
        first = a.id
        arguments = [self.epitome, "compact", self.address(), "--budget", "900", "--apply"]
        env = {"HOME": a.home, "PATH": PATH}
        t0 = time.time()
        subprocess.run(arguments, cwd=a.cwd, env=env, capture_output=True)
        whole = time.time() - t0
        chance = random.Random(1)
        found = {"before": 0, "after": 0}
        for n in range(int(os.environ.get("EPITOME_ROUNDS", 3))):
            shutil.rmtree(a.home)
            shutil.copytree(saved, a.home, symlinks=True)
            a.id = first
            known = set(glob.glob(a.home + "/.claude/projects/*/*.jsonl"))
            p = subprocess.Popen(arguments, cwd=a.cwd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(whole * chance.uniform(0.5, 1.05))
            p.kill()
            p.wait()
            new = set(glob.glob(a.home + "/.claude/projects/*/*.jsonl")) - known
            if new:  # Claude Code: the compacted session is a new one
                a.id = os.path.basename(new.pop())[:-6]
            h, _ = self.resumed(f"killed-{n}", "AFTER-U4 continue")
            before, after = bool(re.search(OLD, h)), SUMMARY in h
            self.check(f"killed, round {n}: resumed as before or as compacted", before != after and "AFTER-U4" in h and "BASE-A2" in h)
            found["after" if after else "before"] += 1
            self.stop()
        print("      killed:", found["before"], "as before,", found["after"], "as compacted")

    def flow_carry(self):
        """A session of another agent is carried over, and a brief handed off."""
        a = self.a
        name = {"codex": "codex", "gemini": "gemini-cli", "claude": "claude-code", "opencode": "opencode"}[a.name]
        a.setup()
        example = "codex.jsonl" if a.name == "claude" else "claude-code.jsonl"
        here = os.path.dirname(os.path.abspath(__file__))
        source = self.W + "/" + example
        with open(f"{here}/../../examples/sessions/{example}") as i, open(source, "w") as o:
            o.write(i.read().replace("/home/ada/checkout", os.path.realpath(a.cwd)))
        for what, words, arguments in (
            ("carried", SUMMARY, ["compact", source, "--budget", "30%", "--as", name, "--apply", "--json"]),
            ("handed off", "# Task", ["handoff", source, "--goal", "Write the replay test", "--as", name, "--apply", "--json"]),
        ):
            answer = self.call(what, *arguments)
            self.check(f"{what}: the command begins in the directory", answer.get("resume", "").startswith("cd " + os.path.realpath(a.cwd)))
            if a.name == "opencode":
                rc, out = a.exec(["import", answer["output"]])
                self.check(f"{what}: opencode import", rc == 0)
            if a.name == "gemini":
                self.start(what)
                rc, out = a.exec(["-m", "gemini-2.5-flash", "--yolo", "--session-file", answer["output"], "-p", "AFTER-U4 continue"])
                m = self.main()
                h = report.conversation(m[-1]) if m else ""
            else:
                h, _ = self.resumed(what, "AFTER-U4 continue")
            self.check(f"{what}: the model is sent it, and the new prompt", words in h and "AFTER-U4" in h)
            self.check(f"{what}: what matters is in it", "cargo test --lib" in h and "idempotency" in h)

    def elsewhere(self, name):
        """From now on another home and project."""
        a = self.a
        a.home, a.cwd = f"{self.W}/{name}/home", f"{self.W}/{name}/project of {name}"
        for folder in (a.home, a.cwd):
            os.makedirs(folder)
        with open(a.cwd + "/notes.txt", "w") as f:
            f.write("alpha secret line 1\nbeta line 2\n")
        a.setup()

    def goes_on(self, what, answer, prompt):
        """Resumes what was imported; the history that the model received."""
        a = self.a
        here = os.path.realpath(a.cwd)
        self.check(f"{what}: the command begins in the new directory", here in answer.get("resume", ""))
        if a.name == "opencode":
            rc, out = a.exec(["import", answer["output"]])
            self.check(f"{what}: opencode import", rc == 0)
        if a.name == "gemini":
            self.start(what)
            a.exec(["-m", "gemini-2.5-flash", "--yolo", "--session-file", answer["output"], "-p", prompt])
            m = self.main()
            h = report.conversation(m[-1]) if m else ""
        else:
            h, _ = self.resumed(what, prompt)
        self.check(f"{what}: the model is sent it, and the new prompt", "BASE-U2" in h and prompt in h)
        self.stop()
        return h

    def flow_move(self):
        a = self.a
        a.setup()
        self.base()
        self.stop()
        os.makedirs(self.W + "/bare")
        bare = shutil.copy(a.export(), self.W + "/bare")
        self.compact()
        file = self.W + "/moved.epitome"
        self.call("export", "export", self.address(), "-o", file, "--json")
        self.elsewhere("second")
        answer = self.call("import", "import", file, "--here", "--json")
        h = self.goes_on("moved", answer, "AFTER-U4 continue")
        self.check("moved: the summary is sent, the old output is not", SUMMARY in h and not re.search(OLD, h))
        handle = re.search(r"epitome restore (\w{10})", h)
        if self.check("moved: the summary names the original", handle):
            restored = subprocess.run(
                [self.epitome, "restore", handle[1], "--out", "-"], cwd=a.cwd, env={"HOME": a.home, "PATH": PATH}, capture_output=True, text=True
            )
            self.check("moved: the original came along", restored.returncode == 0 and re.search(r"1001(\\\\n|\\n|\s)+1002", restored.stdout))
        self.elsewhere("third")
        answer = self.call("import a file", "import", bare, "--here", "--json")
        h = self.goes_on("moved as a file", answer, "AFTER-U5 go on")
        self.check("moved as a file: the old output is sent", re.search(OLD, h))


if __name__ == "__main__":
    sys.exit(More(*sys.argv[1:]).go())
