import type { HttpServer } from '../../kit/http.ts'
import { checker } from '../../kit/schema.ts'
import { type AccountAnswer, type LoginAnswer, LoginBody, type UpstreamAnswer, VerifyCodeBody } from '../../wire/hub.ts'
import { type Account, DEFAULT_ACCOUNT } from '../accounts.ts'
import type { Hub } from '../hub.ts'
import type { LoginView } from '../logins.ts'
import { bodyOf, iso, linkDetail } from './bodies.ts'

const checkLogin = checker(LoginBody)
const checkCode = checker(VerifyCodeBody)

/** Routes with the id of a login in the path. */
interface WithId {
  Params: { id: string }
}

/** The bot accounts and their logins, while everything else goes on. Everything here has passed the admin's door. */
export function upstreamRoutes(app: HttpServer, { accounts, logins }: Hub): void {
  app.get('/hub/upstream', async (): Promise<UpstreamAnswer> => {
    return { accounts: accounts.all().map(accountAnswer), logins: await Promise.all(logins.list().map(loginAnswer)) }
  })

  app.post('/hub/upstream/login', async (request, reply) => {
    const { account = DEFAULT_ACCOUNT } = checkLogin(bodyOf(request))
    const { login, isNew } = await logins.start(account)
    return reply.code(isNew ? 201 : 200).send(await loginAnswer(login))
  })

  app.get<WithId>('/hub/upstream/login/:id', async (request) => loginAnswer(logins.get(request.params.id)))

  app.post<WithId>('/hub/upstream/login/:id/verify-code', async (request) => {
    const { code } = checkCode(bodyOf(request))
    return loginAnswer(logins.verify(request.params.id, code))
  })

  app.delete<WithId>('/hub/upstream/login/:id', async (request) => loginAnswer(logins.cancel(request.params.id)))

  app.delete<{ Params: { account: string } }>('/hub/upstream/accounts/:account', async (request, reply) => {
    await accounts.logOut(request.params.account)
    return reply.code(204).send()
  })
}

function accountAnswer({ name, line, login }: Account): AccountAnswer {
  return {
    account: name,
    ...linkDetail(line.link.view()),
    bot_id: login?.botId ?? null,
    user_id: login?.userId ?? null,
    base_url: login?.baseUrl ?? null,
  }
}

async function loginAnswer({ id, account, status, qrText, expiresAt, message }: LoginView): Promise<LoginAnswer> {
  const picture = qrText === null ? null : (await import('uqr')).renderSVG(qrText, { border: 2 })
  return {
    login_id: id,
    account,
    status,
    qr_text: qrText,
    qr_svg: picture,
    expires_at: expiresAt === null ? null : iso(expiresAt),
    message,
  }
}
