/** What one command may take of the machine. */
export interface ShellLimits {
  /** Processes and threads of a command, all together. The kernel does not hold a server that runs as root to it. */
  processes: number
  /** Memory that one process may write to, in MiB. */
  memoryMb: number
  /** The largest file that may be written, in MiB. */
  fileMb: number
}

/** Room for compilers and package managers, and an end to what runs away. */
export const DEFAULT_LIMITS: ShellLimits = { processes: 1_024, memoryMb: 4_096, fileMb: 4_096 }

/**
 * A script for `sh -c` that bounds itself and runs its first argument, with both outputs in one pipe, in the order they were
 * written. The first shell waits, so that it can be process 1. What the machine bounds more tightly stays so. Shells have two
 * names for the bound on processes; should memory run out in spite of all, the kernel takes a command and not the server.
 */
const LIMITED = `{
  ulimit -d "$2"; ulimit -f "$3"
  [ "$4" = - ] || ulimit -p "$4" || ulimit -u "$4"
  echo 1000 > /proc/self/oom_score_adj
} 2> /dev/null
/bin/sh -c "$1" 2>&1; exit $?`

const KIB_PER_MB = 1_024
/** Shells count a file's size in these. */
const BLOCKS_PER_MB = 2_048

/**
 * The arguments of `/bin/sh` that run a command within its limits. Processes are counted by user: outside of a sandbox
 * those of the server are counted too, so there `countProcesses` is to be false.
 */
export function limitedShell(
  command: string,
  { processes, memoryMb, fileMb }: ShellLimits,
  countProcesses: boolean,
): string[] {
  const numbers = [memoryMb * KIB_PER_MB, fileMb * BLOCKS_PER_MB, countProcesses ? processes : '-']
  return ['-c', LIMITED, 'sh', command, ...numbers.map(String)]
}
