import type { HttpServer, Reply, Request } from '../../kit/http.ts'
import { openPages, type Pages, sendPage } from '../../kit/pages.ts'
import { checker } from '../../kit/schema.ts'
import { type NewsAnswer, NewsQuery } from '../../wire/sim.ts'
import type { SimControl } from '../control.ts'
import { NEWS } from '../news.ts'
import type { World } from '../world.ts'
import { frontPage } from './front-page.ts'
import { checkSameSite } from './same-site.ts'

const checkNews = checker(NewsQuery, 'query')
const MOST_USERS = 50
const MOST_CODES = 10

/** The chat page for a browser, the list of calls for everybody else, and what the page waits for. */
export function addPageRoutes(app: HttpServer, world: World, control: SimControl, pages: Pages = openPages()): void {
  app.get('/', async (request, reply) => {
    if (request.headers.accept?.includes('text/html')) return sendPage(reply, pages.page('chat', ''))
    return reply.type('text/plain; charset=utf-8').send(frontPage(request.headers.host))
  })
  app.get<{ Params: { file: string } }>('/assets/:file', async (request, reply) =>
    pages.sendAsset(reply, request.params.file),
  )
  app.get('/sim/news', { onRequest: async (request) => checkSameSite(request) }, (request, reply) =>
    news(world, control, request, reply),
  )
}

async function news(world: World, control: SimControl, request: Request, reply: Reply): Promise<NewsAnswer> {
  const { after, wait_ms } = checkNews(request.query)
  const seen = Number(after ?? -1)
  // Another number than ours may be from before a restart: that is news too.
  const read = () => (world.doorbell.revision === seen ? [] : [true])
  if (wait_ms !== undefined)
    await world.parking.park({ response: reply.raw }, { key: NEWS, read, waitMs: Number(wait_ms) })
  const { bots, faults } = control.state()
  return {
    revision: world.doorbell.revision,
    users: control.users().slice(-MOST_USERS),
    bots,
    faults,
    codes: control.accounts.qrCodes().slice(-MOST_CODES),
  }
}
