import { expect } from 'vitest'
import { startTestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

/** A parameter of the query or a header, as the description tells it. */
interface Parameter {
  name: string
  in: string
  schema: { type: string; enum?: string[]; pattern?: string; minimum?: number; maximum?: number; maxLength?: number }
}

/** Texts that the schema of a parameter does not take. */
function wrongTexts({ schema }: Parameter): string[] {
  const { type, enum: allowed, pattern, minimum, maximum, maxLength } = schema
  const any = ['', ' ', 'x', '-1', '1.5', '1e3', '0x10', '9'.repeat(30), 'null', '[]', '%00', 'a b', '<script>']
  const beyond = [
    ...(minimum === undefined ? [] : [String(minimum - 1)]),
    ...(maximum === undefined ? [] : [String(maximum + 1)]),
    ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1)]),
  ]
  return [...any, ...beyond].filter((text) => {
    if (allowed) return !allowed.includes(text)
    if (pattern) return !new RegExp(pattern).test(text)
    if (type === 'integer')
      return !(/^\d{1,15}$/.test(text) && Number(text) >= (minimum ?? 0) && Number(text) <= (maximum ?? Infinity))
    return maxLength !== undefined && text.length > maxLength
  })
}

verifies(
  'agenthttp:errors:parameters',
  async () => {
    const agent = await startTestAgent()
    const { body: document } = await agent.call('GET', '/openapi.json')
    const id = await agent.session({ title: 'First' })
    await agent.finish(id, 'hello')
    const state = async () => [
      (await agent.call('GET', '/sessions')).body,
      (await agent.call('GET', `/sessions/${id}`)).body,
    ]
    const before = await state()
    let tried = 0
    for (const [path, operations] of Object.entries<Record<string, { parameters: Parameter[] }>>(document.paths)) {
      for (const [method, { parameters }] of Object.entries(operations)) {
        for (const parameter of parameters.filter(({ in: where }) => where !== 'path')) {
          for (const text of wrongTexts(parameter)) {
            const inHeader = parameter.in === 'header'
            // An empty header is none.
            if (inHeader && text.trim() === '') continue
            const query = inHeader ? '' : `?${parameter.name}=${encodeURIComponent(text)}`
            const answer = await agent.call(method.toUpperCase(), path.replace('{id}', id) + query, {
              headers: inHeader ? { [parameter.name]: text } : {},
              ...(method === 'post' ? { body: { goal: 'hello' } } : {}),
            })
            tried += 1
            const what = `${method} ${path} ${parameter.name}=${text}`
            expect([answer.status, answer.body?.error.details?.field], what).toEqual([422, parameter.name])
            expect(answer.text).not.toMatch(/\\n +at |node_modules/)
          }
        }
      }
    }
    expect(tried).toBeGreaterThan(80)
    for (const query of ['limit=1&limit=2', 'cursor=x', 'cursor=', `cursor=${id}&cursor=${id}`])
      expect((await agent.call('GET', `/sessions?${query}`)).status, query).toBe(422)
    expect(await state()).toEqual(before)
  },
  60_000,
)
