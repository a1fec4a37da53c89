import { accounts } from './requirements/accounts.ts'
import { agent } from './requirements/agent.ts'
import { agentEvents } from './requirements/agent-events.ts'
import { agentHttp } from './requirements/agent-http.ts'
import { agentLoop } from './requirements/agent-loop.ts'
import { agentScale } from './requirements/agent-scale.ts'
import { agentStore } from './requirements/agent-store.ts'
import { agentTools } from './requirements/agent-tools.ts'
import { auth } from './requirements/auth.ts'
import { config } from './requirements/config.ts'
import { delivery } from './requirements/delivery.ts'
import { health } from './requirements/health.ts'
import { hub } from './requirements/hub.ts'
import { nodes } from './requirements/nodes.ts'
import { operations } from './requirements/operations.ts'
import { pairing } from './requirements/pairing.ts'
import { product } from './requirements/product.ts'
import { proof } from './requirements/proof.ts'
import { relay } from './requirements/relay.ts'
import type { Requirements } from './requirements/requirement.ts'
import { routing } from './requirements/routing.ts'
import { upstream } from './requirements/upstream.ts'
import { web } from './requirements/web.ts'
import { wire } from './requirements/wire.ts'

/** Every rule of the hub's spec and of our decisions, by id. `requirements.test.ts` holds that each has a test. */
export const requirements = {
  ...relay,
  ...hub,
  ...auth,
  ...health,
  ...delivery,
  ...routing,
  ...upstream,
  ...config,
  ...web,
  ...accounts,
  ...pairing,
  ...nodes,
  ...product,
  ...proof,
  ...operations,
  ...wire,
  ...agentHttp,
  ...agent,
  ...agentEvents,
  ...agentLoop,
  ...agentTools,
  ...agentStore,
  ...agentScale,
} as const satisfies Requirements

/** The id of a rule. */
export type RequirementId = keyof typeof requirements
