import postgres from 'postgres'
import { createClient } from 'redis'
import { expect, inject, onTestFinished, test } from 'vitest'
import { startPostgres } from './postgres.ts'
import { startRedis } from './redis.ts'

test('Redis keeps what it was told when it is killed and started again', { timeout: 60_000 }, async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.remove())
  const client = await createClient({ url: redis.url })
    .on('error', () => {})
    .connect()
  await client.set('key', 'value')
  await redis.stop()
  await redis.start()
  expect(await client.get('key')).toBe('value')
  client.destroy()
})

test('Postgres keeps what it has committed when it is killed and started again', { timeout: 60_000 }, async () => {
  const server = await startPostgres()
  onTestFinished(() => server.remove())
  const url = await server.createDatabase()
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  onTestFinished(() => sql.end({ timeout: 1 }))
  await sql`create table kept (n int)`
  await sql`insert into kept values (1)`
  await server.stop()
  await server.start()
  const again = postgres(url, { max: 1 })
  onTestFinished(() => again.end({ timeout: 1 }))
  expect((await again`select n from kept`)[0]).toEqual({ n: 1 })
})

test('the S3 server refuses a second object of a name when asked to', { timeout: 60_000 }, async () => {
  const { S3Client, CreateBucketCommand, PutObjectCommand } = await import('@aws-sdk/client-s3')
  const { endpoint, accessKeyId, secretAccessKey } = inject('s3')
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
  })
  onTestFinished(() => client.destroy())
  const Bucket = `servers-${Date.now()}`
  await client.send(new CreateBucketCommand({ Bucket }))
  const put = () => client.send(new PutObjectCommand({ Bucket, Key: 'one', Body: 'first', IfNoneMatch: '*' }))
  await put()
  await expect(put()).rejects.toMatchObject({ $metadata: { httpStatusCode: 412 } })
})
