import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { cpus, release } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from './figures.ts'

/** What a result depends on beside the code. */
export interface Machine {
  cpu: string
  cores: number
  kernel: string
  node: string
  /** How busy others kept it just before: above a few, the figures are worth little. */
  busyPercent: number
  /** How long the disk under the hub's data takes to make 4 kB durable. */
  fsyncMs: number
}

const TICK_MS = 10
const LOOK_MS = 2_000
const WAIT_AT_MOST_MS = 60_000

export async function describeMachine(folder: string): Promise<Machine> {
  const before = machineCpuMs()
  await sleep(1_000)
  const after = machineCpuMs()
  const busy = (after.busy - before.busy) / (after.total - before.total)
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    kernel: release(),
    node: process.versions.node,
    busyPercent: Math.round(100 * busy),
    fsyncMs: Number(medianFsyncMs(join(folder, 'fsync')).toFixed(2)),
  }
}

/** The machine in a line. */
export function machineText({ cores, cpu, node, busyPercent, fsyncMs }: Machine): string {
  return `${cores} × ${cpu}, Node ${node}; fsync ${fsyncMs} ms; busy with other things: ${busyPercent} %`
}

/** Milliseconds that all cores were busy, and that there were, since the start of the machine. */
export function machineCpuMs(): { busy: number; total: number } {
  const all = cpus().map(({ times: { user, nice, sys, irq, idle } }) => ({ busy: user + nice + sys + irq, idle }))
  const busy = all.reduce((sum, one) => sum + one.busy, 0)
  return { busy, total: busy + all.reduce((sum, one) => sum + one.idle, 0) }
}

/** Milliseconds of all cores that the host of a virtual machine gave to others; 0 where the system does not tell. */
export function stolenCpuMs(): number {
  try {
    const all = /^cpu +(.*)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? ''
    return Number(all.split(' ')[7] ?? 0) * TICK_MS
  } catch {
    return 0
  }
}

/** Waits for two seconds in which the host takes less than that away; not for ever. */
export async function untilUndisturbed(mostStolenPercent: number): Promise<void> {
  const giveUpAt = Date.now() + WAIT_AT_MOST_MS
  for (let percent = 100; percent > mostStolenPercent && Date.now() < giveUpAt; ) {
    const before = stolenCpuMs()
    await sleep(LOOK_MS)
    percent = (100 * (stolenCpuMs() - before)) / (LOOK_MS * cpus().length)
  }
}

function medianFsyncMs(path: string): number {
  const file = openSync(path, 'w')
  const block = Buffer.alloc(4096, 1)
  const times = Array.from({ length: 50 }, () => {
    const startedAt = performance.now()
    writeSync(file, block)
    fsyncSync(file)
    return performance.now() - startedAt
  })
  closeSync(file)
  return quantile(times, 0.5)
}
