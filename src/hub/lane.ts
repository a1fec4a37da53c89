/** Work for the lane: one upstream call a turn. */
export interface LaneJob {
  /** Who sends: turns go round between senders. */
  sender: string
  /** One job of a conversation runs at a time, those of one sender in the order they came. */
  conversation: string
  /** Makes one call. True: there is more to do, before anything else of this conversation, whoever sends it. */
  step(): Promise<boolean>
}

/** One way out to the service for everybody: paced, fair between senders, in order within a conversation. */
export interface Lane {
  /** Returns how to take the job out again; a step that runs is not stopped by it. */
  enqueue(job: LaneJob): () => void
  /** Starts nothing before then. */
  holdUntil(atMs: number): void
  waiting(sender: string): number
  readonly size: number
  /** Starts nothing more; resolves when what runs has ended. */
  stop(): Promise<void>
}

export interface LaneOptions {
  /** At least this long between two calls; 0 means no limit. */
  pacingMs: number
  /** Calls at once. With pacing it is 1. */
  maxInFlight: number
  now: () => number
}

export function openLane({ pacingMs, maxInFlight, now }: LaneOptions): Lane {
  const senders = new Map<string, Map<string, LaneJob[]>>()
  const busy = new Set<string>()
  /** Jobs that have begun and wait for their next step: nobody else's message may come in between. */
  const begun = new Map<string, LaneJob>()
  const idle: (() => void)[] = []
  const atOnce = pacingMs > 0 ? 1 : maxInFlight
  let notBefore = 0
  let inFlight = 0
  let size = 0
  let stopped = false
  let timer: NodeJS.Timeout | undefined

  return {
    enqueue(job) {
      put(job, 'back')
      pump()
      return () => remove(job)
    },
    holdUntil(atMs) {
      notBefore = Math.max(notBefore, atMs)
    },
    waiting: (sender) => [...(senders.get(sender)?.values() ?? [])].reduce((sum, jobs) => sum + jobs.length, 0),
    get size() {
      return size
    },
    stop() {
      stopped = true
      clearTimeout(timer)
      return inFlight === 0 ? Promise.resolve() : new Promise((resolve) => idle.push(resolve))
    },
  }

  function pump(): void {
    while (!stopped && inFlight < atOnce && size > 0) {
      const waitMs = notBefore - now()
      if (waitMs > 0) {
        timer ??= setTimeout(() => {
          timer = undefined
          pump()
        }, waitMs)
        return
      }
      const job = take()
      if (job === undefined) return
      if (pacingMs > 0) notBefore = now() + pacingMs
      void run(job)
    }
  }

  async function run(job: LaneJob): Promise<void> {
    inFlight += 1
    busy.add(job.conversation)
    let more = false
    try {
      more = await job.step()
    } finally {
      inFlight -= 1
      busy.delete(job.conversation)
      begun.delete(job.conversation)
      if (more) {
        begun.set(job.conversation, job)
        put(job, 'front')
      }
      if (inFlight === 0) for (const resolve of idle.splice(0)) resolve()
      pump()
    }
  }

  /** The next sender's oldest job whose conversation is free; both sender and conversation then go to the end of the round. */
  function take(): LaneJob | undefined {
    for (const [sender, conversations] of senders) {
      for (const [conversation, jobs] of conversations) {
        if (busy.has(conversation) || (begun.get(conversation) ?? jobs[0]) !== jobs[0]) continue
        const job = jobs.shift()
        conversations.delete(conversation)
        if (jobs.length > 0) conversations.set(conversation, jobs)
        senders.delete(sender)
        if (conversations.size > 0) senders.set(sender, conversations)
        size -= 1
        return job
      }
    }
    return undefined
  }

  function put(job: LaneJob, where: 'front' | 'back'): void {
    const conversations = senders.get(job.sender) ?? new Map<string, LaneJob[]>()
    senders.set(job.sender, conversations)
    const jobs = conversations.get(job.conversation) ?? []
    conversations.set(job.conversation, jobs)
    if (where === 'front') jobs.unshift(job)
    else jobs.push(job)
    size += 1
  }

  function remove(job: LaneJob): void {
    const conversations = senders.get(job.sender)
    const jobs = conversations?.get(job.conversation)
    const at = jobs?.indexOf(job) ?? -1
    if (conversations === undefined || jobs === undefined || at === -1) return
    jobs.splice(at, 1)
    if (jobs.length === 0) conversations.delete(job.conversation)
    if (conversations.size === 0) senders.delete(job.sender)
    if (begun.get(job.conversation) === job) begun.delete(job.conversation)
    size -= 1
    pump()
  }
}
