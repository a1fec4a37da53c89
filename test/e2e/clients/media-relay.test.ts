import { createHash, randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import { imageOf, memoryDuring, openStage, REAL_CLIENTS, runClient, WAIT_MS } from '../../support/client-stage.ts'
import { temporaryFolder } from '../../support/processes.ts'
import { until } from '../../support/test-hub.ts'
import { verifies } from '../../support/verifies.ts'

const MB = 1_000_000

for (const name of REAL_CLIENTS) {
  verifies(
    ['wire:media:relay', 'wire:media:memory'],
    `${name}, which knows the hub alone, gets 10 MB and sends them back, and the hub keeps none of it in memory`,
    async () => {
      const stage = await openStage(['--media-relay'])
      const token = await stage.register(name)
      const { hubUrl } = stage
      const client = runClient(name, { hubUrl, cdnUrl: `${hubUrl}/c2c`, token, folder: temporaryFolder() })
      await stage.online(name)
      const exchange = async (image: Buffer, count: number) => {
        await stage.simCall('POST', '/sim/say', { user: 'ann', image_base64: image.toString('base64') })
        await until(async () => (await stage.answers('ann')).length === count, WAIT_MS)
        expect(client.seen('image').at(-1)).toMatchObject({ sha256: sha256(image), bytes: image.length })
        expect((await imageOf(stage, 'ann')).equals(image)).toBe(true)
      }
      await exchange(png(10_000), 1)
      expect(await memoryDuring(stage.hub, () => exchange(png(10 * MB), 2))).toBeLessThan(32)
      expect(await memoryDuring(stage.hub, () => exchange(png(10 * MB), 3))).toBeLessThan(32)
      expect(await stage.figure('media_transfers_total{direction="up",outcome="ok"}')).toBe(3)
      expect(await stage.figure('media_transfers_total{direction="down",outcome="ok"}')).toBe(3)
      expect([...client.seen('error'), ...client.seen('failed')]).toEqual([])
    },
    120_000,
  )
}

function png(bytes: number): Buffer {
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), randomBytes(bytes)])
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
