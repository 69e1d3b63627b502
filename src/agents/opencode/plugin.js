// Made by `epitome install opencode`; `epitome uninstall opencode` removes it. It needs nothing installed.
// When OpenCode compacts: Epitome makes the summary; the model is asked for one word, which the summary replaces. If that
// cannot be done, what must survive joins OpenCode's own prompt. After: the summary is remembered. A session that begins
// is noted, so that the MCP server knows which one calls it. Nothing here can fail a session.
import { spawn } from "node:child_process"

const EPITOME = "@EPITOME@"
const SEAT = "@SEAT@"

// What the program prints if it ends well in time, else nothing. It never holds up the server: other sessions go on.
const run = (command, input, limit) =>
  new Promise((resolve) => {
    try {
      const child = spawn(EPITOME, command, { stdio: ["pipe", "pipe", "ignore"] })
      const chunks = []
      const end = (said) => {
        clearTimeout(timer)
        resolve(said)
      }
      const timer = setTimeout(() => {
        child.kill("SIGKILL")
        child.stdout.destroy()
        end({ late: true })
      }, limit)
      child.on("error", () => end({}))
      child.stdout.on("data", (chunk) => chunks.push(chunk))
      child.on("close", (code) => end(code === 0 ? { text: Buffer.concat(chunks).toString("utf8") } : {}))
      child.stdin.on("error", () => {})
      child.stdin.end(input)
    } catch {
      resolve({})
    }
  })

export const EpitomePlugin = async ({ client, directory }) => {
  // Summaries that wait for the one word of the model, by session: `asked` once that is asked for, `writing` once it is
  // known that none came.
  const waiting = new Map()
  // Windows of the models that answered last, by session.
  const windows = new Map()
  // The part of the newest summary that holds its text, with this text; nothing if there is no summary.
  const replaced = (messages, text) => {
    const message = messages?.findLast((it) => it.info.summary === true)
    if (!message) return
    const { id, sessionID } = message.info
    const old = message.parts.find((it) => it.type === "text")
    const part = { ...(old ?? { id: id.replace("msg", "prt"), sessionID, messageID: id, type: "text" }), text }
    return { message, part }
  }
  // The model said nothing, so no word of it could be replaced: the summary is written where that would stand.
  const write = async (session, text) => {
    const found = await client.session.messages({ path: { id: session } })
    const part = replaced(found.data, text)?.part
    if (!part) return
    const url = "/session/{session}/message/{message}/part/{part}"
    const path = { session, message: part.messageID, part: part.id }
    await client._client.patch({ url, path, headers: { "Content-Type": "application/json" }, body: part })
  }
  const event = (name, session, more) =>
    JSON.stringify({ client: "opencode", hook_event_name: name, session_id: session, cwd: directory, ...more })
  return {
    "experimental.session.compacting": async (input, output) => {
      waiting.delete(input.sessionID)
      try {
        if (SEAT) {
          const said = await run(["seat", "opencode"], event("Compact", input.sessionID, { window: windows.get(input.sessionID) }), 9000)
          const text = said.text && JSON.parse(said.text).text
          if (text) {
            waiting.set(input.sessionID, { text })
            output.prompt = "Reply with the single word OK."
            return
          }
          if (said.late) return
        }
        const said = await run(["hook"], event("PreCompact", input.sessionID), 5000)
        if (said.text?.trim()) output.context.push(said.text)
      } catch {}
    },
    "chat.params": async (input) => {
      const window = input.model?.limit?.context
      if (window) windows.set(input.sessionID, window)
    },
    // The request for that one word holds the whole conversation, unless it is taken out here: it may be too long to send.
    // A later request finds the summary empty if no word came and it is not written yet.
    "experimental.chat.messages.transform": async (_, output) => {
      const messages = output.messages
      const entry = waiting.get(messages?.[0]?.info?.sessionID)
      if (!entry) return
      if (!entry.asked) {
        entry.asked = true
        messages.splice(0, messages.length - 1)
        return
      }
      const found = replaced(messages, entry.text)
      if (found) found.message.parts = [...found.message.parts.filter((it) => it.type !== "text"), found.part]
    },
    "experimental.text.complete": async (input, output) => {
      const { text, writing } = waiting.get(input.sessionID) ?? {}
      if (!text || writing) return
      // It fires for every text of the session: only the summary's message is meant.
      let info
      try {
        const found = await client.session.message({ path: { id: input.sessionID, messageID: input.messageID } })
        info = found.data?.info
      } catch {}
      if (info && info.summary !== true) return
      waiting.delete(input.sessionID)
      output.text = text
    },
    "chat.message": async (input) => {
      if (input.sessionID) run(["hook"], event("SessionStart", input.sessionID, { source: "message" }), 10000)
    },
    event: async ({ event: it }) => {
      const session = it.properties?.sessionID
      const entry = waiting.get(session)
      if (entry && it.type === "session.compacted") {
        entry.writing = true
        await write(session, entry.text).then(() => waiting.delete(session), () => {})
      }
      if (entry && !entry.writing && ["session.error", "session.idle"].includes(it.type)) waiting.delete(session)
      if (it.type === "session.compacted") run(["hook"], event("PostCompact", session), 10000)
    },
  }
}
