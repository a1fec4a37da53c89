import { type BotLogin, openLogin, sealLogin } from './credentials.ts'
import type { CredentialStore } from './store/port.ts'

/** The logins of the bot accounts; outside of this process they exist encrypted only. */
export interface Vault {
  /** Every stored login by its account. Fails with `credentials_locked`. */
  load(): Promise<Map<string, BotLogin>>
  /** Durable when it resolves. */
  save(account: string, login: BotLogin): Promise<void>
  remove(account: string): Promise<void>
}

/** A vault over a store, with the key that opens it. */
export function openVault(store: CredentialStore, key: Buffer, now: () => number): Vault {
  return {
    async load() {
      const rows = await store.load()
      return new Map(rows.map(({ account, sealed }) => [account, openLogin(sealed, account, key)]))
    },
    save: (account, login) => store.save(account, sealLogin(login, account, key), now()),
    remove: (account) => store.remove(account),
  }
}
