"""What the real client does with damaged sessions, and with the same sessions once `epitome repair` has mended them.

damaged.py CLIENT EPITOME FOLDER   CLIENT: codex claude gemini opencode; FOLDER: a file for each damage, made of the
                                   examples of `examples/sessions`; for each, NAME.json is written beside it: exit code,
                                   last request and error of the client, damaged and mended
"""

import glob, json, os, re, subprocess, sys

import agents, flows, report

PATH = f"{agents.INSTALL}/bin:/usr/bin:/bin"
ID, CWD, HASH = b"3d0c7a52-6f1e-4c58-9a41-0b8e5f2c7d10", b"/home/ada/checkout", b"0" * 64


class Damaged(flows.Flow):
    def __init__(self, client, epitome, folder):
        super().__init__(flows.options([client, "resume"]))
        self.epitome, self.folder, self.cases = epitome, folder, 0

    def main_loop(self):
        self.a.setup()
        self.base()
        self.stop()
        self.session = self.a.session()
        self.first = open(self.session, "rb").read() if self.a.name != "opencode" else b""
        for path in sorted(it for it in glob.glob(self.folder + "/*") if not it.endswith(".json")):
            damaged = open(path, "rb").read()
            with open(path + ".json", "w") as f:
                json.dump({way: self.case(os.path.basename(path), damaged, way) for way in ("damaged", "mended")}, f)
            print(f"PASS  {os.path.basename(path)} ran", flush=True)

    def case(self, name, data, way):
        a = self.a
        self.cases += 1
        data = data.replace(ID, a.id.encode()).replace(CWD, a.cwd.encode())
        if a.name == "opencode":
            self.session, a.id = f"{self.W}/{name}-{way}.json", f"ses_1aexample{self.cases:018}"
            data = data.replace(b"ses_1aexample000000000000000001", a.id.encode())
            data = data.replace(b'"providerID":"anthropic"', b'"providerID":"fake"').replace(b"claude-opus-5-5", b"fake-model")
            for kind in (b"msg_1", b"prt_1"):
                data = data.replace(kind, b"%s%03d" % (kind[:4], self.cases) + b"1")
        if a.name == "codex":
            data = data.replace(b'"model_provider":"openai"', b'"model_provider":"fake"')
        if a.name == "gemini":
            data = data.replace(HASH, json.loads(self.first.splitlines()[0])["projectHash"].encode())
            # A resume in a later minute goes on in a file of its own.
            for old in glob.glob(os.path.dirname(self.session) + "/*.json*"):
                os.remove(old)
        with open(self.session, "wb") as f:
            f.write(data)
        out, resume = {}, None
        if way == "mended":
            env = {"HOME": a.home, "PATH": PATH}
            p = subprocess.run([self.epitome, "repair", self.session, "--apply"], cwd=a.cwd, env=env, capture_output=True, text=True)
            out["repair"] = [p.returncode, (p.stdout + p.stderr)[-500:]]
            resume = re.search(r"--resume ([\w-]+)", p.stdout)
        if a.name == "opencode":
            rc, said = a.exec(["import", self.session])
            if rc:
                return {**out, "exit": rc, "error": said[-400:], "request": None}
        self.start(f"{self.cases:03}-{name}-{way}")
        mine = a.id
        if resume:  # an id that was lost is made anew
            a.id = resume[1]
        rc, said = a.run("AFTER-U4 continue", True)
        a.id = mine
        asked = report.main_requests(report.load(self.log))
        self.stop()
        return {**out, "exit": rc, "error": said[-400:] if rc else "", "request": asked[-1]["body"] if asked else None}


if __name__ == "__main__":
    flow = Damaged(*sys.argv[1:])
    try:
        flow.main_loop()
    finally:
        flow.stop()
