import { createHash, randomUUID } from 'node:crypto'
import { AppError } from '../../kit/errors.ts'
import type { HttpServer, Request } from '../../kit/http.ts'
import { checker } from '../../kit/schema.ts'
import {
  ConfirmPlanBody,
  CreateSessionBody,
  ForkSessionBody,
  PatchSessionBody,
  PlanBody,
  RejectPlanBody,
  SessionRunBody,
} from '../../wire/agent.ts'
import type { AgentServer } from '../agent.ts'
import { countWithSummaries, withoutSummaries } from '../compaction.ts'
import { NO_USAGE, type PlanDecision, type Session } from '../model.ts'
import type { Receipt } from '../store/port.ts'
import { editedPlan, goalOf, iso, limitsOf, runBody, sessionDetails, sessionSummary } from './bodies.ts'
import { readEventQuery, UUID } from './events.ts'

const checkCreate = checker(CreateSessionBody)
const checkFork = checker(ForkSessionBody)
const checkRun = checker(SessionRunBody)
const checkPatch = checker(PatchSessionBody)
const checkPlan = checker(PlanBody)
const checkConfirm = checker(ConfirmPlanBody)
const checkReject = checker(RejectPlanBody)

const MAX_KEY = 256

/** Routes with a session's id in the path. */
export interface WithId {
  Params: { id: string }
}

/** Sessions: made, listed, run, watched, asked, ended. */
export function sessionRoutes(
  app: HttpServer,
  agent: AgentServer,
  callerOf: (request: { raw: object }) => string,
): void {
  const { store, runner, streams, now } = agent

  app.post('/sessions', async (request, reply) => {
    const body = checkCreate(bodyOf(request))
    if (body.model !== undefined) await agent.checkModel(body.model)
    const session = newSession(now(), {
      title: body.title ?? null,
      systemPrompt: body.system_prompt ?? null,
      workspace: await agent.workspaceFor(body.workspace ?? null),
      model: body.model ?? null,
      maxSteps: body.max_steps ?? null,
      planMode: body.plan_mode ?? false,
    })
    const created = await store.sessions.create(session, receiptOf(request, '/sessions'))
    return reply.code(201).header('location', `/sessions/${created.id}`).send(createdBody(created))
  })

  app.post<WithId>('/sessions/:id/fork', async (request, reply) => {
    const from = await sessionOf(agent, request)
    const { title = from.title, messages: wanted } = checkFork(bodyOf(request))
    const messages = wanted === undefined ? null : countWithSummaries(await store.log.transcript(from.id), wanted)
    const receipt = receiptOf(request, `/sessions/${from.id}/fork`)
    const forked = await store.sessions.fork(from.id, newSession(now(), { ...from, title }), { messages, receipt })
    return reply
      .code(201)
      .header('location', `/sessions/${forked.id}`)
      .send({ ...createdBody(forked), forked_from: from.id })
  })

  app.get<{ Querystring: { limit?: string; cursor?: string } }>('/sessions', async (request, reply) => {
    const { limit, cursor } = request.query
    const size = limit === undefined ? null : Number(limit)
    if (size !== null && !(/^\d{1,4}$/.test(String(limit)) && size >= 1 && size <= 1000)) {
      throw new AppError('bad_request', 'limit must be a whole number from 1 to 1000.', { details: { field: 'limit' } })
    }
    if (cursor !== undefined && !UUID.test(String(cursor)))
      throw new AppError('bad_request', 'cursor must be the id of a session.', { details: { field: 'cursor' } })
    const found = await store.sessions.list({ limit: size, cursor: cursor ?? null })
    const last = found.at(-1)
    if (size !== null && found.length === size && last)
      reply.header('link', `</sessions?limit=${size}&cursor=${last.id}>; rel="next"`)
    return found.map(sessionSummary)
  })

  app.get<WithId>('/sessions/:id', async (request) => {
    const session = await sessionOf(agent, request)
    return sessionDetails(session, withoutSummaries(await store.log.transcript(session.id)), agent.modelOf(session))
  })

  app.patch<WithId>('/sessions/:id', async (request) => {
    const { id } = await sessionOf(agent, request)
    const { title } = checkPatch(bodyOf(request))
    const updated = title === undefined ? await store.sessions.get(id) : await store.sessions.update(id, { title })
    if (updated === null) throw unknownSession(id)
    return sessionSummary(updated)
  })

  app.delete<WithId>('/sessions/:id', async (request, reply) => {
    const { id } = await sessionOf(agent, request)
    await runner.forget(id)
    if (!(await store.sessions.remove(id))) throw unknownSession(id)
    agent.ring(id)
    return reply.code(204).send()
  })

  app.post<WithId>('/sessions/:id/run', async (request, reply) => {
    const session = await sessionOf(agent, request)
    const body = checkRun(bodyOf(request))
    const goal = goalOf(body)
    const asked = readEventQuery(request.query)
    if (body.model !== undefined) await agent.checkModel(body.model)
    const whenBusy = body.on_busy === undefined || body.on_busy === 'reject' ? 'refuse' : body.on_busy
    const order = {
      goal,
      model: body.model ?? null,
      maxSteps: body.max_steps ?? null,
      limits: limitsOf(body),
      whenBusy,
      receipt: receiptOf(request, session.id),
    } as const
    const run = await runner.submit(session, order)
    if (wantsStream(request, body.goal === undefined)) {
      const query = {
        ...asked,
        until: 'done' as const,
        runId: run.id,
        after: run.afterSeq,
        bare: false,
      }
      await streams.stream(session, reply, query)
      return reply
    }
    // A run that waits begins after others that are told meanwhile: its id leaves them out.
    const url = `/sessions/${session.id}/events?after=${run.acceptedSeq}&run=${run.id}`
    // A repetition gets the receipt that the first call got, though the run may have ended since.
    const status = run.status === 'queued' ? 'queued' : 'running'
    return reply.code(202).send({ run_id: run.id, session_id: session.id, status, events_url: url })
  })

  app.get<WithId>('/sessions/:id/runs', async (request) => {
    const { id } = await sessionOf(agent, request)
    return { runs: (await store.runs.list(id)).map(runBody) }
  })

  for (const path of ['cancel', 'interrupt']) {
    app.post<WithId>(`/sessions/:id/${path}`, async (request) => {
      const { id } = await sessionOf(agent, request)
      return { session_id: id, cancelled: await runner.cancel(id) }
    })
  }

  app.post<WithId>('/sessions/:id/plan', async (request) => {
    const { decision, plan_id: planId, feedback, plan } = checkPlan(bodyOf(request))
    return decide(request, planId ?? null, { decision, feedback: feedback ?? null, plan: editedPlan(plan, 'plan') })
  })

  app.post<WithId>('/sessions/:id/plan/confirm', async (request) => {
    const { plan_id: planId, edits } = checkConfirm(bodyOf(request))
    return decide(request, planId ?? null, { decision: 'approve', feedback: null, plan: editedPlan(edits, 'edits') })
  })

  app.post<WithId>('/sessions/:id/plan/reject', async (request) => {
    const { plan_id: planId, reason } = checkReject(bodyOf(request))
    return decide(request, planId ?? null, { decision: 'reject', feedback: reason ?? null, plan: null })
  })

  async function decide(request: { params: { id: string } }, planId: string | null, decision: PlanDecision) {
    const { id } = await sessionOf(agent, request)
    const plan = await runner.decide(id, planId, decision)
    return { session_id: id, plan_id: plan.planId, run_id: plan.runId, decision: decision.decision }
  }

  function createdBody(session: Session) {
    const { id, createdAt, workspace } = session
    return { session_id: id, created_at: iso(createdAt), workspace, model: agent.modelOf(session) }
  }

  function receiptOf(request: Pick<Request, 'headers' | 'raw' | 'bodyText'>, path: string): Receipt | null {
    const key = request.headers['idempotency-key']
    if (typeof key !== 'string' || key === '') return null
    if (key.length > MAX_KEY)
      throw new AppError('bad_request', `Idempotency-Key is longer than ${MAX_KEY} characters.`, {
        details: { field: 'Idempotency-Key' },
      })
    const hash = (text: string) => createHash('sha256').update(text).digest('base64url')
    return { key: hash(`${callerOf(request)}\n${path}\n${key}`), bodyHash: hash(request.bodyText), now: now() }
  }
}

type Chosen = Pick<Session, 'title' | 'systemPrompt' | 'workspace' | 'model' | 'maxSteps' | 'planMode'>

function newSession(at: number, { title, systemPrompt, workspace, model, maxSteps, planMode }: Chosen): Session {
  return {
    id: randomUUID(),
    createdAt: at,
    lastActive: at,
    title,
    systemPrompt,
    workspace,
    model,
    maxSteps,
    planMode,
    turnCount: 0,
    usage: NO_USAGE,
    status: 'idle',
    activeRunId: null,
    pendingPlan: null,
    takenSeq: 0,
  }
}

/** An empty body is an empty object where every field is optional. */
export function bodyOf(request: { body: unknown }): unknown {
  return request.body === undefined ? {} : request.body
}

/** The start-up form reads the stream from the POST itself; an Accept header that is clear overrides. */
export function wantsStream(request: { headers: { accept?: string | undefined } }, byDefault: boolean): boolean {
  const accept = request.headers.accept ?? ''
  if (accept.includes('text/event-stream')) return true
  if (accept.includes('application/json') && !accept.includes('*/*')) return false
  return byDefault
}

/** The session a path names; `not_found` when there is none. */
export async function sessionOf(
  { store }: Pick<AgentServer, 'store'>,
  { params: { id } }: { params: { id: string } },
): Promise<Session> {
  const session = UUID.test(id) ? await store.sessions.get(id.toLowerCase()) : null
  if (session === null) throw unknownSession(id)
  return session
}

function unknownSession(id: string): AppError {
  return new AppError('not_found', `There is no session ${id.slice(0, 64)}; GET /sessions lists them.`)
}
