import { type Upstream, UpstreamError } from './port.ts'

/** The same service, called only while `mayCall` says so; a call that it does not allow has not been made. */
export function guardedUpstream(
  upstream: Upstream & { close(): Promise<void> },
  mayCall: () => boolean,
): Upstream & { close(): Promise<void> } {
  const allowed = () => {
    if (mayCall()) return upstream
    throw new UpstreamError('unreachable', 'another node of the hub may lead by now')
  }
  return {
    poll: async (...given) => allowed().poll(...given),
    notify: async (...given) => allowed().notify(...given),
    send: async (...given) => allowed().send(...given),
    typing: async (...given) => allowed().typing(...given),
    typingTicket: async (...given) => allowed().typingTicket(...given),
    uploadUrl: async (...given) => allowed().uploadUrl(...given),
    close: () => upstream.close(),
  }
}
