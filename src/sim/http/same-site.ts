import { AppError } from '../../kit/errors.ts'
import type { Request } from '../../kit/http.ts'

const LOCAL_NAME = /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/i

/**
 * Refuses calls that a page of another site makes in somebody's browser: whoever speaks as a user may make an agent act.
 * Over loopback the name in `Host` must be a local one too, else another site's name could be made to point here.
 */
export function checkSameSite(request: Request): void {
  const { host = '', origin } = request.headers
  const isForeignPage = origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === host)
  const isForeignName = isLoopback(request.raw.socket.localAddress) && !LOCAL_NAME.test(host.replace(/:\d+$/, ''))
  if (isForeignPage || isForeignName) {
    throw new AppError('foreign_origin', 'Pages of other sites may not control the sim; call it from its own address.')
  }
}

function isLoopback(address = ''): boolean {
  return address === '::1' || address.replace(/^::ffff:/, '').startsWith('127.')
}
