import pc from 'picocolors'
import type { HubHealth } from '../client/hub-client.ts'
import { errorText } from '../kit/errors.ts'
import { ASK_AGENT, ASK_HUB, agentOf, askHub } from './ask.ts'
import type { CommandSpec } from './command.ts'
import { withProgress } from './progress.ts'

const STATUS = { ...ASK_HUB, ...ASK_AGENT }

/** `switchboard status` */
export const statusCommand: CommandSpec = {
  name: 'status',
  description: 'say at a glance how hub and agent are',
  group: 'Look after a hub:',
  settings: STATUS,
  examples: [['switchboard status && echo all is well', 'ends with 1 when something is not']],
  async run({ read }) {
    const values = read(STATUS)
    const [hub, clients, letters, agent] = await Promise.all([
      ask(askHub(values, (admin) => admin.health())),
      ask(askHub(values, (admin) => admin.clients())),
      ask(askHub(values, (admin) => admin.deadLetters({ limit: 1 }))),
      ask(withProgress(`asking the agent at ${values.agent}`, agentOf(values).health())),
    ])
    const well = hub.value?.status === 'ok' && agent.value !== null
    if (!well) process.exitCode = 1
    const deadLetters = letters.value?.total ?? null
    if (values.json) {
      const report = { hub: hub.value, clients: clients.value?.clients ?? null, dead_letters: deadLetters }
      return console.log(JSON.stringify({ ...report, agent: agent.value }))
    }
    const waiting = clients.value?.clients.reduce((sum, one) => sum + one.queue_size, 0) ?? null
    const line = (label: string, text: string) => console.log(`${pc.dim(label.padEnd(13))}${text}`)
    line('hub', hub.value === null ? pc.red(hub.problem) : hubText(hub.value, values.hub))
    if (clients.value !== null)
      line('clients', `${clients.value.online} of ${clients.value.total} online, ${waiting} waiting`)
    else if (hub.value !== null) line('clients', pc.yellow(clients.problem))
    if (deadLetters !== null)
      line(
        'dead letters',
        deadLetters === 0 ? '0' : pc.yellow(`${deadLetters} ("switchboard dead-letters" lists them)`),
      )
    line(
      'agent',
      agent.value === null ? pc.red(agent.problem) : `${pc.green('ok')} at ${values.agent}, model ${agent.value.model}`,
    )
  },
}

function hubText({ status, upstream_detail: { state, reason, action } }: HubHealth, url: string): string {
  if (status === 'ok') return `${pc.green('ok')} at ${url}, the messaging service is ${state}`
  return `${pc.yellow('degraded')} at ${url}: ${state} (${reason})${action === null ? '' : `. ${action}`}`
}

async function ask<T>(question: Promise<T>): Promise<{ value: T; problem: '' } | { value: null; problem: string }> {
  return question.then(
    (value) => ({ value, problem: '' as const }),
    (error: unknown) => ({ value: null, problem: errorText(error) }),
  )
}
