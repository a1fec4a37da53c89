/** Bodies as they look in the description of the API. */

export const ID = '6f1c9a52-0d39-4a6e-9f6c-1f0a4b7f2c11'
const RUN_ID = 'b3e1d7c4-58a2-4c0e-8d57-20d1f8a9e6b2'
const AT = '2026-11-15T09:30:00.000Z'
const MODEL = 'demo'
const USAGE = { total_steps: 2, total_tokens: 180, input_tokens: 150, output_tokens: 30, cost: null }
const MESSAGES = [
  { role: 'user', content: [{ type: 'text', text: 'list files' }], run_id: RUN_ID, step: 0, created_at: AT },
  {
    role: 'assistant',
    content: [{ type: 'tool_use', id: 'call_1', name: 'list_dir', input: { path: '.' } }],
    run_id: RUN_ID,
    step: 1,
    created_at: AT,
  },
  {
    role: 'tool',
    content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'README.md', is_error: false }],
    run_id: RUN_ID,
    step: 1,
    created_at: AT,
  },
  {
    role: 'assistant',
    content: [{ type: 'text', text: 'There is README.md.' }],
    run_id: RUN_ID,
    step: 2,
    created_at: AT,
  },
]

export const STATELESS_RUN = { goal: 'list files', system_prompt: 'Be brief.', max_steps: 10 }
export const RUN_RESULT = {
  status: 'finished',
  finish_reason: 'NoMoreToolCalls',
  messages: MESSAGES,
  usage: USAGE,
  run_id: RUN_ID,
}
export const CREATE_SESSION = { system_prompt: 'Be brief.', workspace: 'notes' }
export const SESSION_CREATED = { session_id: ID, created_at: AT, workspace: '/srv/work/notes', model: MODEL }
export const SESSION_SUMMARY = {
  session_id: ID,
  created_at: AT,
  last_active: AT,
  title: 'Tidy up',
  status: 'idle',
  turn_count: 1,
}
export const SESSION_DETAILS = {
  ...SESSION_SUMMARY,
  transcript: MESSAGES,
  active_run_id: null,
  pending_plan: null,
  usage: USAGE,
  system_prompt: 'Be brief.',
  workspace: '/srv/work/notes',
  model: MODEL,
}
export const RUN_ACCEPTED = {
  run_id: RUN_ID,
  session_id: ID,
  status: 'running',
  events_url: `/sessions/${ID}/events?after=0&run=${RUN_ID}`,
}
export const RUN = {
  run_id: RUN_ID,
  goal: 'list files',
  status: 'finished',
  finish_reason: 'NoMoreToolCalls',
  error: null,
  usage: USAGE,
  created_at: AT,
  started_at: AT,
  finished_at: AT,
}
export const TICKET = { ticket: 'mf3q.a1B2.c3D4', expires_at: AT, url: `/sessions/${ID}/events?ticket=mf3q.a1B2.c3D4` }
export const DECIDED = { session_id: ID, plan_id: RUN_ID, run_id: RUN_ID, decision: 'approve' }
export const TOOLS = [
  {
    name: 'list_dir',
    description: 'Lists a folder.',
    parameters: { type: 'object', properties: { path: { type: 'string' } } },
    read_only: true,
    source: 'builtin',
  },
]
export const STREAM = `id: 1\nevent: tool_call\ndata: {"name":"list_dir","step":1,"call_id":"call_1","run_id":"${RUN_ID}","id":1}\n\n`
/** An error of this code. */
export function failure(code: string, message: string) {
  return { error: { code, message }, request_id: '0b7a4a52-9d1e-4f8b-8c35-5a0de1f1c2d3' }
}
