import { Type } from 'typebox'
import { AppError } from '../../kit/errors.ts'
import type { HttpServer, Request } from '../../kit/http.ts'
import { checker } from '../../kit/schema.ts'
import type { World } from '../world.ts'
import { openRoute } from './bot-calls.ts'

const Param = Type.String({ minLength: 1 })
const checkUpload = checker(Type.Object({ encrypted_query_param: Param, filekey: Param }), 'query')
const checkDownload = checker(Type.Object({ encrypted_query_param: Param }), 'query')

const MOST_UPLOAD_BYTES = 32 * 1024 * 1024

/** The file store of the messaging service: ciphertext in, ciphertext out. */
export function addC2cRoutes(app: HttpServer, world: World): void {
  // A scope of its own: here a body is bytes, where everywhere else it is JSON whatever its type says.
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      '*',
      { parseAs: 'buffer', bodyLimit: MOST_UPLOAD_BYTES },
      async (_request: Request, bytes: Buffer) => bytes,
    )
    const options = { bodyLimit: MOST_UPLOAD_BYTES }
    scope.post(
      '/c2c/upload',
      options,
      openRoute(world, 'upload', (request) => upload(world, request)),
    )
    scope.get(
      '/c2c/download',
      openRoute(world, 'download', (request) => download(world, request)),
    )
  })
}

function upload(world: World, { query, body }: Request) {
  const { encrypted_query_param, filekey } = checkUpload(query)
  if (!Buffer.isBuffer(body)) throw new AppError('upload_refused', 'the body is empty; send the ciphertext')
  const param = world.media.upload(encrypted_query_param, filekey, body)
  return { body: Buffer.alloc(0), headers: { 'x-encrypted-param': param } }
}

function download(world: World, { query }: Request) {
  const { encrypted_query_param } = checkDownload(query)
  return { body: world.media.download(encrypted_query_param), headers: { 'content-type': 'application/octet-stream' } }
}
