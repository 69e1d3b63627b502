// Made by `epitome install opencode`; `epitome uninstall opencode` removes it. It needs nothing installed.
// Before OpenCode compacts: what must survive joins its prompt. After: the summary is remembered. A session that
// begins is noted, so that the MCP server knows which one calls it. Nothing here can fail a session.
import { execFile, execFileSync } from "node:child_process"

const EPITOME = "@EPITOME@"

export const EpitomePlugin = async ({ directory }) => {
  const event = (name, session, more) =>
    JSON.stringify({ client: "opencode", hook_event_name: name, session_id: session, cwd: directory, ...more })
  const tell = (name, session, more) => {
    try {
      const child = execFile(EPITOME, ["hook"], { timeout: 10000 }, () => {})
      child.stdin.on("error", () => {})
      child.stdin.end(event(name, session, more))
    } catch {}
  }
  return {
    "experimental.session.compacting": async (input, output) => {
      try {
        const said = execFileSync(EPITOME, ["hook"], {
          input: event("PreCompact", input.sessionID),
          encoding: "utf8",
          timeout: 5000,
          stdio: ["pipe", "pipe", "ignore"],
        })
        if (said.trim()) output.context.push(said)
      } catch {}
    },
    "chat.message": async (input) => {
      if (input.sessionID) tell("SessionStart", input.sessionID, { source: "message" })
    },
    event: async ({ event: it }) => {
      if (it.type === "session.compacted") tell("PostCompact", it.properties.sessionID)
    },
  }
}
