import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** All that is given out for the public internet: what is not in here is not routed there. */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3')

/** Tells whether an address is one of the public internet: not this machine, not its network, not a way around. */
export function isPublicAddress(text: string): boolean {
  // A zone (`fe80::1%eth0`) names an interface of this machine.
  if (text.includes('%') || isIP(text) === 0) return false
  // An IPv4 address in an IPv6 one is judged as what it is.
  const address = ipaddr.process(text)
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || address.match(GLOBAL_UNICAST)
}
