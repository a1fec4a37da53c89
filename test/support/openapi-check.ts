import { Compile } from 'typebox/compile'
import { openApiDocument } from '../../src/agent/http/openapi.ts'

/** An answer as it came over the wire. */
export interface SeenAnswer {
  method: string
  path: string
  status: number
  headers: Headers
  /** What was parsed of it; undefined when it is no JSON. */
  body: unknown
}

/** Holds what a server says against its own description; throws what differs. */
export interface DocumentCheck {
  answer(seen: SeenAnswer): void
  event(name: string, data: unknown): void
}

/** Headers that are there only when the document says so. */
const TOLD = ['location', 'link', 'retry-after', 'www-authenticate', 'x-request-id', 'ratelimit-limit']
/** Answered before the call is looked at, or to a call that there is none of. */
const OUTSIDE = new Set([400, 401, 403, 404, 405, 413, 429])

// biome-ignore lint/suspicious/noExplicitAny: the document is read as the plain JSON it is
type Json = any

/** A check against the description of a server with or without keys. */
export function documentCheck(withKeys: boolean): DocumentCheck {
  const document: Json = openApiDocument('0.0.0', withKeys)
  const paths = Object.entries<Json>(document.paths).map(([path, operations]) => ({
    pattern: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
    operations,
  }))

  return {
    answer({ method, path, status, headers, body }) {
      const what = `${method} ${path} answered ${status}`
      const bare = path.split('?')[0] ?? ''
      const verb = method === 'HEAD' ? 'get' : method.toLowerCase()
      const found = paths.find(({ pattern }) => pattern.test(bare))?.operations[verb]
      if (found === undefined) {
        if (method === 'OPTIONS' && status === 204) return
        if (!OUTSIDE.has(status)) throw new Error(`${what}, and the document has no such call`)
        if (method !== 'HEAD') match({ $ref: '#/components/schemas/Error' }, body, what)
        return
      }
      const documented = found.responses[String(status)]
      if (documented === undefined) throw new Error(`${what}, which the document does not say: ${JSON.stringify(body)}`)
      checkHeaders(documented, headers, what)
      const type = (headers.get('content-type') ?? '').split(';')[0] ?? ''
      if (documented.content === undefined) {
        if (type !== '') throw new Error(`${what} with a body of ${type}, and the document has none`)
        return
      }
      if (method === 'HEAD') return
      const content = documented.content[type]
      if (content === undefined) throw new Error(`${what} with ${type}, which the document does not say`)
      if (type === 'application/json') match(content.schema, body, what)
    },
    event(name, data) {
      const schema = document.components.schemas[`event_${name}`]
      if (schema !== undefined) match(schema, data, `event ${name}`)
    },
  }

  function match(schema: Json, value: unknown, what: string): void {
    const problem = mismatch(document, schema, value)
    if (problem !== null) throw new Error(`${what}, not as the document says: ${problem}`)
  }
}

/** What is wrong with a value by a schema of the document, or null. */
export function mismatch(document: Json, schema: Json, value: unknown): string | null {
  const key = JSON.stringify(schema)
  let compiled = compiledSchemas.get(key)
  if (compiled === undefined) {
    compiled = Compile(Object(jsonSchema(document, schema)))
    compiledSchemas.set(key, compiled)
  }
  if (compiled.Check(value)) return null
  return `${JSON.stringify([...compiled.Errors(value)].slice(0, 2))} in ${JSON.stringify(value)?.slice(0, 500)}`
}

const compiledSchemas = new Map<string, ReturnType<typeof Compile>>()

function checkHeaders(documented: Json, headers: Headers, what: string): void {
  const names = Object.keys(documented.headers ?? {}).map((name) => name.toLowerCase())
  for (const name of TOLD)
    if (headers.has(name) && !names.includes(name))
      throw new Error(`${what} with ${name}, which the document does not say`)
  for (const name of ['location', 'www-authenticate', 'x-request-id'])
    if (names.includes(name) && !headers.has(name)) throw new Error(`${what} without ${name}`)
}

/** References resolved, and OpenAPI's `nullable` as JSON Schema says it. */
function jsonSchema(document: Json, value: Json): Json {
  if (Array.isArray(value)) return value.map((one) => jsonSchema(document, one))
  if (typeof value !== 'object' || value === null) return value
  if (typeof value.$ref === 'string') return jsonSchema(document, resolve(document, value.$ref))
  const { nullable, example: _example, ...rest } = value
  const plain = Object.fromEntries(Object.entries(rest).map(([key, one]) => [key, jsonSchema(document, one)]))
  return nullable === true ? { anyOf: [plain, { type: 'null' }] } : plain
}

function resolve(document: Json, ref: string): Json {
  return ref
    .slice(2)
    .split('/')
    .reduce((part, key) => part[key], document)
}
