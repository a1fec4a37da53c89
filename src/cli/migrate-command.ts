import { HUB_SETTINGS } from '../hub/config.ts'
import type { CommandSpec } from './command.ts'

const SETTINGS = { dataDir: HUB_SETTINGS.dataDir, databaseUrl: HUB_SETTINGS.databaseUrl }

/** `switchboard migrate` */
export const migrateCommand: CommandSpec = {
  name: 'migrate',
  description: "copy a hub's data directory into a Postgres database, for several hubs",
  group: 'Look after a hub:',
  settings: SETTINGS,
  examples: [
    ['RELAY_DATABASE_URL=postgres://… switchboard migrate', 'with the hub stopped; the directory stays as it is'],
  ],
  async run({ read, complain }) {
    const { dataDir, databaseUrl } = read(SETTINGS)
    if (databaseUrl === null) {
      complain(['--database-url (or RELAY_DATABASE_URL) is missing; it names the database to copy to'])
      return
    }
    const { migrateHub } = await import('../hub/main.ts')
    console.log(`Copying ${dataDir} …`)
    await migrateHub({ dataDir, databaseUrl })
    console.log('Done. Start the hubs with the same RELAY_DATABASE_URL, each with a --data-dir of its own.')
    console.log(
      'If a bot was logged in by QR code, give each of them the credentials.key of the old directory too ' +
        '(--credentials-key-file), or start one once with --forget-logins and log it in again.',
    )
  },
}
