import { resolve } from 'node:path'
import { readSwitch } from '../kit/settings.ts'
import { JSON_FLAG } from './ask.ts'
import { backup } from './backup.ts'
import type { CommandSpec } from './command.ts'
import { withProgress } from './progress.ts'
import { UP_SETTINGS } from './up-settings.ts'

const BACKUP = {
  dataDir: { ...UP_SETTINGS.dataDir, help: 'what to copy' },
  withoutWorkspace: {
    flag: '--without-workspace',
    help: 'leave out the folder that the agent works in',
    fallback: false,
    read: readSwitch,
  },
  ...JSON_FLAG,
}

/** `switchboard backup` */
export const backupCommand: CommandSpec = {
  name: 'backup',
  description: 'copy a data directory into one file, while everything runs',
  group: 'Look after a hub:',
  words: [{ name: '<file>', help: 'the archive to write, such as backup.tar.gz' }],
  settings: BACKUP,
  examples: [
    ['switchboard backup ~/switchboard-$(date +%F).tar.gz', 'holds secrets: keep it as safe as the data'],
    ['mkdir restored && tar -xzf backup.tar.gz -C restored', 'restores it'],
    ['switchboard up --data-dir restored', 'and runs on it'],
  ],
  async run({ words: [file = ''], read }) {
    const { dataDir, withoutWorkspace, json } = read(BACKUP)
    const files = await withProgress(`copying ${dataDir}`, backup({ dataDir, file, workspace: !withoutWorkspace }))
    if (json) return console.log(JSON.stringify({ file: resolve(file), files }))
    console.log(`${files} files of ${resolve(dataDir)} are in ${resolve(file)}.`)
    console.log(`Restore with:  mkdir restored && tar -xzf ${file} -C restored && switchboard up --data-dir restored`)
  },
}
