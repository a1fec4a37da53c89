import { open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { cursorRelay } from '../client/cursor-relay.ts'
import { HubClientError, hubAdmin } from '../client/hub-client.ts'
import { AppError } from '../kit/errors.ts'

export interface TokenOptions {
  /** Where the token is kept. */
  folder: string
  name: string
  hubUrl: string
  fallback: boolean
  /** A token that was given; nothing is kept then. */
  token: string | null
  adminToken: string | null
  /** A name whose token this bridge had, and which is good no more, is taken back. */
  reclaim?: boolean | undefined
}

interface KeptToken {
  hub: string
  name: string
  /** Null: about to register, or it was not heard what came of it. */
  token: string | null
}

/**
 * The token of this bridge at the hub: the given one, the one it kept, or that of a registration made now. Fails with
 * `hub_unreachable` while there is no hub, and with a text that says what to do when the hub does not want it.
 */
export async function findToken(options: TokenOptions): Promise<string> {
  const { folder, name, hubUrl, token } = options
  if (token !== null) {
    if (await isGood(hubUrl, token)) return token
    throw new AppError('token_refused', `The hub at ${hubUrl} does not know this token; check BRIDGE_TOKEN.`)
  }
  const path = join(folder, 'token.json')
  const kept = await readKept(path)
  const ours = kept?.name === name ? kept : null
  if (ours !== null && ours.token !== null && (await isGood(hubUrl, ours.token))) return ours.token
  const admin = hubAdmin({ url: hubUrl, adminToken: options.adminToken ?? undefined })
  const exists = await admin.client(name).then(
    () => true,
    (error: unknown) => {
      if (error instanceof HubClientError && error.status === 404) return false
      throw error
    },
  )
  // A registration whose answer was never heard is ours; a client that somebody else made, or took away from us, is not.
  const unheard = ours?.token === null && ours.hub === hubUrl
  const mayRotate = unheard || (ours !== null && options.reclaim === true)
  if (exists && !mayRotate) throw taken(options, ours !== null)
  await keep(path, { hub: hubUrl, name, token: null })
  const made = exists ? await admin.rotate(name) : await register()
  await keep(path, { hub: hubUrl, name, token: made.token })
  return made.token

  function register() {
    return admin.register(name, { label: `${name} (bridge)`, fallback: options.fallback })
  }
}

function taken({ name, hubUrl }: TokenOptions, ours: boolean): AppError {
  return new AppError(
    'token_refused',
    ours
      ? `The hub at ${hubUrl} no longer takes the token of "${name}"; get a new one with "switchboard rotate ${name}" and set BRIDGE_TOKEN to it.`
      : `A client named "${name}" is registered at ${hubUrl} already; set BRIDGE_TOKEN to its token, or choose another --name.`,
  )
}

async function isGood(hubUrl: string, token: string): Promise<boolean> {
  try {
    await cursorRelay({ url: hubUrl, token }).notify('start')
    return true
  } catch (error) {
    if (error instanceof HubClientError && error.status === 401) return false
    throw error
  }
}

async function readKept(path: string): Promise<KeptToken | null> {
  try {
    const kept: KeptToken = JSON.parse(await readFile(path, 'utf8'))
    return kept
  } catch {
    return null
  }
}

/** Whole or not at all, and for nobody else's eyes. */
async function keep(path: string, token: KeptToken): Promise<void> {
  const file = await open(`${path}.new`, 'w', 0o600)
  try {
    await file.writeFile(`${JSON.stringify(token)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}.new`, path)
}
