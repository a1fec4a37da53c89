/** Where logins go and where a bot may be sent on to. */
export interface ServiceHosts {
  /** The service as it was configured. */
  baseUrl: string
  /** Names an operator allows beside it. */
  more: readonly string[]
}

/**
 * The address to use where the service names another, as a host or as a URL; null when it must not be followed. A bot's
 * token goes there, so only the configured host, its siblings (`*.weixin.qq.com` beside `ilinkai.weixin.qq.com`) and what
 * an operator named are good, and only over TLS unless it is the very same place or this machine.
 */
export function trustedUrl(named: string, { baseUrl, more }: ServiceHosts): string | null {
  const base = new URL(baseUrl)
  const hasScheme = /^[a-z]+:\/\//i.test(named)
  const text = hasScheme ? named : `${isLoopback(base.hostname) ? 'http' : 'https'}://${named}`
  if (!URL.canParse(text)) return null
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return null
  const here = isLoopback(base.hostname) && isLoopback(url.hostname)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && (here || url.origin === base.origin))) return null
  const name = url.hostname
  const isGood = here || name === base.hostname || isSibling(name, base.hostname) || more.includes(name)
  return isGood ? `${url.origin}${url.pathname}`.replace(/\/+$/, '') : null
}

/** Whether an address is on this machine. */
export function isLoopbackUrl(url: string): boolean {
  return isLoopback(new URL(url).hostname)
}

/** Under the same domain, unless that is so short that strangers may share it. */
function isSibling(name: string, base: string): boolean {
  const domain = base.split('.').slice(1)
  return domain.length >= 3 && !/^[\d.]+$/.test(base) && name.endsWith(`.${domain.join('.')}`)
}

function isLoopback(name: string): boolean {
  return name === 'localhost' || name === '[::1]' || name.startsWith('127.')
}
