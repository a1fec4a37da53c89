import { LOG_LEVELS, type LogLevel } from '../kit/log.ts'
import { readAddress, readChoice, readInteger, readSecret, readSettings, type Setting } from '../kit/settings.ts'

/** Every setting of the sim, with its default, once. */
export const SIM_SETTINGS = {
  addr: {
    flag: '--addr',
    placeholder: '<host:port>',
    env: 'SIM_ADDR',
    help: 'where the sim listens',
    fallback: { host: '127.0.0.1', port: 8766 },
    fallbackText: '127.0.0.1:8766',
    read: readAddress,
  },
  botToken: {
    flag: '--bot-token',
    placeholder: '<token>',
    env: 'SIM_BOT_TOKEN',
    help: 'the token of its bot, for --upstream-token of the hub',
    fallback: null,
    fallbackText: 'a new one at every start, shown in the banner',
    read: readSecret,
  } satisfies Setting<string | null>,
  holdMs: {
    flag: '--hold-ms',
    placeholder: '<ms>',
    env: 'SIM_HOLD_MS',
    help: 'how long an empty poll waits',
    fallback: 35_000,
    read: readInteger(10, 600_000),
  },
  logLevel: {
    flag: '--log-level',
    placeholder: '<level>',
    env: 'SIM_LOG_LEVEL',
    help: LOG_LEVELS.join(', '),
    fallback: 'warn',
    read: readChoice(LOG_LEVELS),
  } satisfies Setting<LogLevel>,
}

/** The settings, or everything that is wrong with them. */
export function parseSimConfig(
  flags: Readonly<Record<string, string | boolean | undefined>>,
  env: Readonly<Record<string, string | undefined>>,
) {
  const { values, problems } = readSettings(SIM_SETTINGS, flags, env)
  return { settings: values, problems }
}
