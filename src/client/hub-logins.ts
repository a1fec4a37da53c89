import type { LoginAnswer } from '../wire/hub.ts'
import { callHub } from './hub-call.ts'

/** A login by QR code, as the hub tells of it. */
export type HubLogin = LoginAnswer

/** Logins of bot accounts at the hub. Calls that fail throw a `HubClientError`. */
export interface HubLogins {
  /** Begins one, or gives the one that is under way. */
  start(account: string): Promise<HubLogin>
  get(id: string): Promise<HubLogin>
  /** Tells the number that the phone shows. */
  verify(id: string, code: string): Promise<HubLogin>
}

/** Talks to the hub at `url`. */
export function hubLogins({ url, adminToken }: { url: string; adminToken: string | null }): HubLogins {
  const refused =
    adminToken === null
      ? `The hub at ${url} wants its admin token; set RELAY_ADMIN_TOKEN to it.`
      : `The hub at ${url} does not take this admin token; check RELAY_ADMIN_TOKEN.`
  const call = (path: string, body?: object) =>
    callHub<HubLogin>(url, `/hub/upstream/login${path}`, {
      token: adminToken ?? undefined,
      refused,
      ...(body === undefined ? {} : { body }),
    })
  return {
    start: (account) => call('', { account }),
    get: (id) => call(`/${id}`),
    verify: (id, code) => call(`/${id}/verify-code`, { code }),
  }
}
