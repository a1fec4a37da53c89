import type { HttpServer } from '../../kit/http.ts'
import { openPages, type Pages, sendPage } from '../../kit/pages.ts'

/**
 * The console. Its files hold nothing of anybody's: they are open, and everything they show comes from the API with a
 * key that a person types in.
 */
export function uiRoutes(app: HttpServer, pages: Pages = openPages()): void {
  app.get('/ui', async (_request, reply) => sendPage(reply, pages.page('console', '/ui')))
  app.get<{ Params: { file: string } }>('/ui/assets/:file', async (request, reply) =>
    pages.sendAsset(reply, request.params.file),
  )
}
