/** One setting of a program: a flag, the environment name it also has, and how its text is read. */
export interface Setting<T> {
  /** E.g. `--addr`; absent for what comes from the environment only. */
  flag?: string
  /** E.g. `<host:port>`; absent for a flag without a value. */
  placeholder?: string
  env?: string
  help: string
  /** What counts when neither flag nor environment says anything. */
  fallback: T
  /** How the fallback is shown in `--help`, where the value itself says little. */
  fallbackText?: string
  /** Reads the text; throws an `Error` whose message ends the sentence «--flag …». */
  read: (text: string) => T
}

/** A table of settings, by the names the program uses. */
export type Settings = Record<string, Setting<unknown>>
export type Values<S extends Settings> = { [K in keyof S]: S[K] extends Setting<infer T> ? T : never }

/** All values, or all that is wrong with them at once. Flags win over the environment. */
export function readSettings<S extends Settings>(
  settings: S,
  flags: Readonly<Record<string, string | boolean | undefined>>,
  env: Readonly<Record<string, string | undefined>>,
): { values: Values<S>; problems: string[] } {
  const problems: string[] = []
  const entries = Object.entries(settings).map(([name, setting]) => {
    const flag = setting.flag === undefined ? undefined : flags[name]
    const fromEnv = setting.env === undefined ? undefined : env[setting.env]
    const text = flag === undefined ? fromEnv : String(flag)
    if (text === undefined) return [name, setting.fallback]
    try {
      return [name, setting.read(text)]
    } catch (error) {
      const source = flag === undefined ? setting.env : setting.flag
      problems.push(`${source} ${error instanceof Error ? error.message : 'is not valid'}`)
      return [name, setting.fallback]
    }
  })
  return { values: Object.fromEntries(entries), problems }
}

/** `host:port`; `:8080` and `8080` mean all of this machine's loopback name. */
export function readAddress(text: string): { host: string; port: number } {
  const found = /^(?:(\[[0-9a-fA-F:.]+\]|[^:[\]\s]*):)?(\d{1,5})$/.exec(text.trim())
  const port = Number(found?.[2])
  if (found === null || port > 65_535) throw new Error(`must be host:port, such as 127.0.0.1:8765, not "${text}"`)
  return { host: found[1]?.replace(/^\[|\]$/g, '') || '127.0.0.1', port }
}

/** A whole number within bounds. */
export function readInteger(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text.trim()) ? Number(text) : Number.NaN
    if (!(value >= least && value <= most))
      throw new Error(`must be a whole number from ${least} to ${most}, not "${text}"`)
    return value
  }
}

/** Yes or no. */
export function readSwitch(text: string): boolean {
  if (/^(1|true|yes|on)$/i.test(text)) return true
  if (/^(0|false|no|off|)$/i.test(text)) return false
  throw new Error(`must be true or false, not "${text}"`)
}

/** One of a few words. */
export function readChoice<T extends string>(choices: readonly T[]): (text: string) => T {
  return (text) => {
    const found = choices.find((choice) => choice === text.toLowerCase())
    if (found === undefined) throw new Error(`must be one of ${choices.join(', ')}, not "${text}"`)
    return found
  }
}

/** An http(s) address. */
export function readHttpUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new Error('must be an address such as https://host')
  if (new URL(text).username !== '') throw new Error('must not hold a user name or password')
  return text.replace(/\/+$/, '')
}

/** A text that is there. Its value is never repeated in the problem: it may be a secret. */
export function readSecret(text: string): string {
  if (text.trim() === '') throw new Error('is set but empty; give it a value or leave it out')
  if (/[^\x21-\x7e]/.test(text.trim()))
    throw new Error('must be printable ASCII without spaces, as it travels in a header')
  return text.trim()
}
