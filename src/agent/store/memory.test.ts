import { memoryStore } from './memory.ts'
import { agentStoreContract } from './store.contract.ts'

agentStoreContract('memory', async (limits) => ({ store: memoryStore(limits) }))
