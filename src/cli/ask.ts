import { type HubAdmin, hubAdmin } from '../client/hub-client.ts'
import { readHttpUrl, readSecret, type Setting } from '../kit/settings.ts'

/** Settings of every command that asks a hub. */
export const ASK_HUB = {
  hub: {
    flag: '--hub',
    placeholder: '<url>',
    env: 'RELAY_URL',
    help: 'the hub to ask',
    fallback: 'http://127.0.0.1:8765',
    read: readHttpUrl,
  },
  json: { flag: '--json', help: 'print JSON', fallback: false, read: () => true },
  adminToken: {
    env: 'RELAY_ADMIN_TOKEN',
    help: "the hub's admin token, where it has one",
    fallback: null,
    read: readSecret,
  } satisfies Setting<string | null>,
}

/** The administration of the hub that the settings name. */
export function askHub({ hub, adminToken }: { hub: string; adminToken: string | null }): HubAdmin {
  return hubAdmin({ url: hub, adminToken: adminToken ?? undefined })
}
