import { describe, expect, onTestFinished, test } from 'vitest'
import { startFlakyProxy } from '../../../test/support/flaky-proxy.ts'
import { freshBucket } from '../../../test/support/servers/fresh-bucket.ts'
import { openBucket, removeAll } from './bucket.ts'

async function open(shape: Partial<Awaited<ReturnType<typeof freshBucket>>> = {}) {
  const address = { ...(await freshBucket()), ...shape }
  const bucket = await openBucket(address)
  onTestFinished(() => bucket.close())
  return { bucket, address }
}

describe('a bucket', () => {
  test('keeps objects, once, under their prefix, and removes them by their beginning', async () => {
    const { bucket, address } = await open({ prefix: 'some/where/' })
    expect(await bucket.get('a/1')).toBeNull()
    expect(await bucket.create('a/1', Buffer.from('one'))).toBe(true)
    expect(await bucket.create('a/1', Buffer.from('another'))).toBe(false)
    expect(String(await bucket.get('a/1'))).toBe('one')
    await bucket.create('a/2', Buffer.from('two'))
    await bucket.create('b/1', Buffer.from('three'))
    expect(await bucket.list('a/')).toEqual(['a/1', 'a/2'])
    await bucket.put('a/2', Buffer.from('two again'))
    expect(String(await bucket.get('a/2'))).toBe('two again')
    await removeAll(bucket, 'a/')
    expect([await bucket.get('a/1'), await bucket.get('a/2'), String(await bucket.get('b/1'))]).toEqual([
      null,
      null,
      'three',
    ])
    const { bucket: whole } = await open({ ...address, prefix: '' })
    expect(String(await whole.get('some/where/b/1'))).toBe('three')
  })

  test('tells its own second try from somebody else’s object', async () => {
    const { bucket } = await open()
    const body = Buffer.from('x'.repeat(100_000))
    expect(await bucket.create('a', body)).toBe(true)
    expect(await bucket.create('a', body)).toBe(true)
    expect(await bucket.create('a', Buffer.from('y'))).toBe(false)
  })

  test('that cannot be reached fails clearly, and works again when it can', async () => {
    const { bucket: reached, address } = await open()
    const proxy = await startFlakyProxy(Number(new URL(address.endpoint ?? '').port))
    const bucket = await openBucket({ ...address, endpoint: proxy.url })
    onTestFinished(() => bucket.close())
    await reached.create('a', Buffer.from('one'))
    proxy.plan(() => ({ type: 'refuse' }))
    proxy.cutAll()
    const failed = { code: 'store_failed', retryAfterMs: 2_000 }
    await expect(bucket.get('a')).rejects.toMatchObject(failed)
    await expect(bucket.create('b', Buffer.from('x'))).rejects.toMatchObject(failed)
    expect(bucket.isUp).toBe(false)
    proxy.plan([])
    expect(String(await bucket.get('a'))).toBe('one')
    expect(bucket.isUp).toBe(true)
  })

  test('an answer that is lost on its way back does no harm', async () => {
    const { address } = await open()
    const proxy = await startFlakyProxy(Number(new URL(address.endpoint ?? '').port))
    const bucket = await openBucket({ ...address, endpoint: proxy.url })
    onTestFinished(() => bucket.close())
    proxy.cutAll()
    proxy.plan([{ type: 'cut', after: 0 }])
    expect(await bucket.create('a', Buffer.from('once'))).toBe(true)
    expect(String(await bucket.get('a'))).toBe('once')
  })

  test('that is not there is a clear error at the start; one that does not answer is waited for', async () => {
    const { address } = await open()
    const missing = openBucket({ ...address, bucket: 'never-made' })
    await expect(missing).rejects.toMatchObject({ code: 's3_refused', message: expect.stringContaining('never-made') })
    const proxy = await startFlakyProxy(Number(new URL(address.endpoint ?? '').port))
    proxy.plan(() => ({ type: 'refuse' }))
    const later = await openBucket({ ...address, endpoint: proxy.url })
    onTestFinished(() => later.close())
    expect(later.isUp).toBe(false)
    await expect(later.create('a', Buffer.from('x'))).rejects.toMatchObject({ code: 'store_failed' })
    proxy.plan([])
    expect(await later.create('a', Buffer.from('x'))).toBe(true)
  })
})
