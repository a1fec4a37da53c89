/** What a poll says about the answers before it. */
export type Cursor =
  /** No cursor in the body: the client speaks the spec's shape. */
  | { kind: 'none' }
  /** An empty one: a first call, or a client that lost its state. */
  | { kind: 'empty' }
  /** One of this hub, for this client. */
  | { kind: 'ours'; seq: number }
  /** From another hub, another client, or garbage. Never an error. */
  | { kind: 'foreign' }

/** Where a client's next poll goes on. Opaque to the client. */
export function writeCursor(hubId: string, clientId: number, seq: number): string {
  return `v1.${hubId}.${clientId}.${seq}`
}

/** Reads a cursor; one that points past the queue's end was never given out. */
export function readCursor(value: string | undefined, hubId: string, clientId: number, lastSeq: number): Cursor {
  if (value === undefined) return { kind: 'none' }
  if (value === '') return { kind: 'empty' }
  const [version, hub, client, seq, more] = value.split('.')
  const known = version === 'v1' && hub === hubId && client === String(clientId) && more === undefined
  if (!known || seq === undefined || !/^\d{1,15}$/.test(seq) || Number(seq) > lastSeq) return { kind: 'foreign' }
  return { kind: 'ours', seq: Number(seq) }
}
