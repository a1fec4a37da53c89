import type { Fetch } from './agent-calls.ts'

/**
 * A fetch that waits for its answer as long as it takes: a run without a session says nothing before its end, and the
 * usual one gives up after five minutes, which would cancel the run.
 */
export const patientFetch: Fetch = async (url, init) => {
  const { Agent, fetch } = await import('undici')
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
  try {
    const answer = await fetch(url, { ...init, dispatcher })
    const text = await answer.text()
    return {
      status: answer.status,
      ok: answer.ok,
      headers: answer.headers,
      body: null,
      text: async () => text,
    }
  } finally {
    await dispatcher.destroy()
  }
}
