import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { inject } from 'vitest'

let buckets = 0

/** An empty bucket of its own on the S3 server of the tests; the credentials stand in the environment, as they would. */
export async function freshBucket(): Promise<{ bucket: string; prefix: string; endpoint: string; region: string }> {
  const { endpoint, accessKeyId, secretAccessKey } = inject('s3')
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey })
  buckets += 1
  const bucket = `test-${process.pid}-${Date.now()}-${buckets}`
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true })
  try {
    await client.send(new CreateBucketCommand({ Bucket: bucket }))
  } finally {
    client.destroy()
  }
  return { bucket, prefix: '', endpoint, region: 'us-east-1' }
}
