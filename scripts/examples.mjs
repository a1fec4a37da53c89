// Runs every program in examples/, one after the other. Each asserts what it shows and exits 0.
import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const LIMIT_MS = 60_000

const root = fileURLToPath(new URL('..', import.meta.url))
const examples = (existsSync(`${root}examples`) ? readdirSync(`${root}examples`) : [])
  .filter((name) => name.endsWith('.ts'))
  .sort()
if (examples.length === 0) {
  console.error('There are no examples in examples/.')
  process.exit(1)
}
let failed = 0
for (const name of examples) {
  const startedAt = Date.now()
  const { problem, output } = await run(`examples/${name}`)
  const seconds = ((Date.now() - startedAt) / 1000).toFixed(1)
  console.log(
    `${problem === undefined ? 'ok    ' : 'FAILED'} examples/${name} (${seconds} s)${problem ? `: ${problem}` : ''}`,
  )
  if (problem === undefined) continue
  console.log(output.replace(/^/gm, '    '))
  failed += 1
}
console.log(`${examples.length - failed} examples passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)

/** In a process group of its own, so that nothing an example starts outlives it. */
function run(path) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['--import', 'tsx', path], {
      cwd: root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    let late = false
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8')
      stream.on('data', (chunk) => {
        output += chunk
      })
    }
    const timer = setTimeout(() => {
      late = true
      endGroup(child.pid)
    }, LIMIT_MS)
    child.on('exit', () => endGroup(child.pid))
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      const ended = code === null ? `ended by ${signal}` : `exit code ${code}`
      const problem = late ? `took longer than ${LIMIT_MS / 1000} s` : ended
      resolve({ problem: code === 0 ? undefined : problem, output })
    })
  })
}

function endGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}
