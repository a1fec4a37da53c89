import { freePort, type Program, runCli, temporaryFolder, untilAnswers } from './processes.ts'

/** A hub and a simulated service, a process each, that may be killed and started again. */
export interface HubProcess {
  url: string
  simUrl: string
  dataDir: string
  sim: Program
  hub(): Program
  startHub(): Promise<void>
}

/** Starts both; they are gone when the test is over. */
export async function startHubProcess(): Promise<HubProcess> {
  const [hubPort, simPort] = [await freePort(), await freePort()]
  const dataDir = temporaryFolder()
  const simUrl = `http://127.0.0.1:${simPort}`
  const url = `http://127.0.0.1:${hubPort}`
  const login = 'bot@im.bot:t'
  const sim = runCli(['sim', '--addr', `127.0.0.1:${simPort}`, '--bot-token', login])
  await untilAnswers(`${simUrl}/health`, sim)
  let hub: Program | undefined
  const startHub = async () => {
    const upstream = ['--upstream-url', simUrl, '--upstream-token', login]
    const args = ['--addr', `127.0.0.1:${hubPort}`, '--data-dir', dataDir, ...upstream]
    hub = runCli(['hub', ...args, '--poll-hold-ms', '2000', '--log-level', 'error'])
    await untilAnswers(`${url}/health`, hub)
  }
  await startHub()
  const running = () => {
    if (hub === undefined) throw new Error('the hub was not started')
    return hub
  }
  return { url, simUrl, dataDir, sim, hub: running, startHub }
}
