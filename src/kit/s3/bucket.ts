import { createHash } from 'node:crypto'
import { AppError, errorText } from '../errors.ts'

/** Where objects lie. */
export interface BucketAddress {
  bucket: string
  /** What all names begin with: empty, or ends with a slash. */
  prefix: string
  /** Of a server that is not AWS. */
  endpoint: string | null
  /** Null takes the environment's. */
  region: string | null
}

/** Objects by their names. While they cannot be reached every call fails with `store_failed`. */
export interface Bucket {
  /** False when another object of this name is there. True also when it was this one: the answer to a first try was lost. */
  create(name: string, body: Buffer): Promise<boolean>
  /** Writes it whatever was there. Only for names that have one writer. */
  put(name: string, body: Buffer): Promise<void>
  /** Null when there is none. */
  get(name: string): Promise<Buffer | null>
  /** The names that begin so, in the order of their characters. */
  list(start: string): Promise<string[]>
  /** Names that are not there are nothing. */
  remove(names: readonly string[]): Promise<void>
  /** Whether the last call reached it. */
  readonly isUp: boolean
  close(): void
}

/** Silence ends a call soon; one that moves may take its time. */
const TIMES = {
  connectionTimeout: 3_000,
  socketTimeout: 5_000,
  requestTimeout: 60_000,
  throwOnRequestTimeout: true,
}
const TRIES = 3
const REMOVED_AT_ONCE = 1_000
const PROBE = 'switchboard-probe'

/**
 * Opens a bucket with the credentials of the environment, and makes sure that it refuses to write an object twice: fails
 * with `s3_refused` or `s3_overwrites`. One that cannot be reached now is opened all the same, and tried before the first
 * object is written.
 */
export async function openBucket({ bucket, prefix, endpoint, region }: BucketAddress): Promise<Bucket> {
  const sdk = await import('@aws-sdk/client-s3')
  const client = new sdk.S3Client({
    ...(region === null ? {} : { region }),
    ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }),
    maxAttempts: TRIES,
    requestHandler: TIMES,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  })
  let isUp = true
  let isTried = false
  const at = (name: string) => ({ Bucket: bucket, Key: `${prefix}${name}` })

  const own: Bucket = {
    async create(name, body) {
      if (!isTried) await tryOut()
      return put(name, body)
    },
    async get(name) {
      try {
        const { Body } = await client.send(new sdk.GetObjectCommand(at(name)))
        return reached(Body === undefined ? null : Buffer.from(await Body.transformToByteArray()))
      } catch (error) {
        if (statusOf(error) === 404) return reached(null)
        throw cannotNow(error)
      }
    },
    async put(name, body) {
      try {
        await client.send(new sdk.PutObjectCommand({ ...at(name), Body: body }))
        return reached(undefined)
      } catch (error) {
        throw cannotNow(error)
      }
    },
    async list(start) {
      const { Bucket, Key: Prefix } = at(start)
      const names: string[] = []
      let ContinuationToken: string | undefined
      try {
        do {
          const page = await client.send(new sdk.ListObjectsV2Command({ Bucket, Prefix, ContinuationToken }))
          for (const { Key = '' } of page.Contents ?? []) names.push(Key.slice(prefix.length))
          ContinuationToken = page.NextContinuationToken
        } while (ContinuationToken !== undefined)
        return reached(names)
      } catch (error) {
        throw cannotNow(error)
      }
    },
    async remove(names) {
      try {
        for (let from = 0; from < names.length; from += REMOVED_AT_ONCE) {
          const Objects = names.slice(from, from + REMOVED_AT_ONCE).map((name) => ({ Key: at(name).Key }))
          await client.send(new sdk.DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects, Quiet: true } }))
        }
        return reached(undefined)
      } catch (error) {
        throw cannotNow(error)
      }
    },
    get isUp() {
      return isUp
    },
    close: () => client.destroy(),
  }
  try {
    await tryOut()
  } catch (error) {
    const fatal = startError(error, bucket, endpoint)
    if (fatal === null) return own
    client.destroy()
    throw fatal
  }
  return own

  async function put(name: string, body: Buffer): Promise<boolean> {
    try {
      await client.send(new sdk.PutObjectCommand({ ...at(name), Body: body, IfNoneMatch: '*' }))
      return reached(true)
    } catch (error) {
      if (statusOf(error) !== 412) throw cannotNow(error)
      return isSame(name, body)
    }
  }

  /** Some servers take the condition and overwrite all the same. */
  async function tryOut(): Promise<void> {
    await put(PROBE, Buffer.from('one'))
    if (await put(PROBE, Buffer.from('another')))
      throw new AppError(
        's3_overwrites',
        'This object store writes an object twice though it is asked not to (If-None-Match: *); use one that supports conditional writes.',
      )
    isTried = true
  }

  /** An entity tag is the MD5 of the content, unless the server encrypts: then the content itself is compared. */
  async function isSame(name: string, body: Buffer): Promise<boolean> {
    try {
      const { ETag } = await client.send(new sdk.HeadObjectCommand(at(name)))
      if (ETag?.replaceAll('"', '') === createHash('md5').update(body).digest('hex')) return reached(true)
    } catch (error) {
      throw cannotNow(error)
    }
    return (await own.get(name))?.equals(body) ?? false
  }

  function reached<T>(answer: T): T {
    isUp = true
    return answer
  }

  function cannotNow(error: unknown): AppError {
    isUp = false
    return new AppError('store_failed', 'The object store cannot be used now; try again shortly.', {
      cause: error,
      retryAfterMs: 2_000,
    })
  }
}

/** Removes everything whose name begins so. */
export async function removeAll(bucket: Bucket, start: string): Promise<void> {
  await bucket.remove(await bucket.list(start))
}

/** Tries whether a bucket can be reached. */
export async function checkBucket(bucket: Bucket): Promise<void> {
  await bucket.get(PROBE)
}

/** Why a start makes no sense; null when waiting may help. */
function startError(error: unknown, bucket: string, endpoint: string | null): AppError | null {
  if (error instanceof AppError && error.code !== 'store_failed') return error
  const cause = error instanceof AppError ? error.cause : error
  const where = `The bucket ${bucket} at ${endpoint === null ? 'AWS' : new URL(endpoint).host}`
  const status = statusOf(cause)
  // A broken line has a code of the system; missing credentials have neither.
  const isLine = cause instanceof Error && ('code' in cause || cause.name === 'TimeoutError')
  if (status === undefined ? isLine : status >= 500) return null
  return new AppError(
    's3_refused',
    `${where} refuses us (${status ?? 'no answer'}, ${errorText(cause)}); check --s3-url, that the bucket is there, and the credentials in the environment.`,
    { cause },
  )
}

/** The status of an answer that was an error; undefined when there was none. */
function statusOf(error: unknown): number | undefined {
  const about: unknown = error instanceof Error && '$metadata' in error ? error.$metadata : undefined
  if (typeof about !== 'object' || about === null || !('httpStatusCode' in about)) return undefined
  return typeof about.httpStatusCode === 'number' ? about.httpStatusCode : undefined
}
