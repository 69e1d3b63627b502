// Made by `epitome install claude-code`; `epitome uninstall claude-code` removes it. It needs nothing installed.
// Claude Code asks here when it compacts (/compact, or the context is full): Epitome answers with a summary and the end of
// the conversation, without a model. Anything else, and anything that goes wrong, is left to Claude Code's own compaction.
import type { Register } from 'claude-code'

const EPITOME = "@EPITOME@"

// Claude Code hands over no image, and takes none back: what stood there is named.
const image = (r: any) =>
  r.result?.type === 'image' ? `[${r.result.file?.type ?? 'image'}: not carried through the compaction; read it again if needed]` : ''

export const register: Register = (on) => {
  on('session.compact', async ($, event, next) => {
    if (event.trigger !== 'manual' && event.trigger !== 'auto') return next(event)
    let answer: any
    try {
      const all: any[] = event.messages
      // Each result stands in the event three times; only the one that the model saw is sent on.
      const messages = all.map((m) => ({
        role: m.role,
        text: m.text,
        toolUses: (m.toolUses ?? []).map((u: any) => ({ tool_use_id: u.tool_use_id, tool: u.tool, input: u.input })),
        toolResults: (m.toolResults ?? []).map((r: any) => ({ tool_use_id: r.tool_use_id, text: r.text || image(r), isError: r.isError })),
      }))
      const { trigger, instructions, agentId } = event as any
      const stdin = JSON.stringify({ trigger, instructions, agentId, lastRow: all[all.length - 1]?.handle, messages })
      const run = await $.process.run([EPITOME, 'seat', 'claude-code'], { stdin, timeoutMs: 20000 })
      if (run.exitCode === 0 && !run.isStdoutTruncated) answer = JSON.parse(run.stdout)
    } catch {
      answer = undefined
    }
    if (!Array.isArray(answer?.messages) || answer.messages.length === 0) return next(event)
    return { messages: answer.messages }
  })
}
