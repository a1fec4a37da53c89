import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { soon } from '../../../test/support/soon.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { probeSandbox } from './bubblewrap.ts'
import { processesWith, SECRET, sandbox, temporaryWorkspace, uniqueSeconds } from './temporary.contract.ts'
import { openWorkspace, type ShellPolicy } from './workspace.ts'

async function opened(policy: Partial<ShellPolicy> = {}) {
  const at = await temporaryWorkspace(policy)
  const run = async (command: string) => {
    if (at.workspace.shell === null) throw new Error('no shell')
    const options = { timeoutMs: 15_000, maxOutputBytes: 100_000, signal: new AbortController().signal }
    return (await at.workspace.shell.run(command, options)).output
  }
  return { ...at, run }
}

test('a machine without bubblewrap says so', async () => {
  expect(await probeSandbox('no-such-bwrap')).toEqual({ works: false, reason: 'bubblewrap (bwrap) is not installed' })
  expect(await probeSandbox('false')).toMatchObject({ works: false })
})

describe.runIf(sandbox.works)('from inside the sandbox', () => {
  verifies('agent:shell:shut-in', 'files outside of the workspace cannot be read, by any way', async () => {
    const { run, outside, root } = await opened()
    symlinkSync(outside, join(root, 'link'))
    const ways = [
      outside,
      'link',
      '../outside',
      `/proc/self/root${outside}`,
      `/proc/1/root${outside}`,
      `/proc/1/cwd/../outside`,
    ]
    for (const way of ways) expect(await run(`cat ${way}/secret.txt`)).not.toContain(SECRET)
    expect(await run('ls -A /root /home/agent 2>/dev/null')).not.toMatch(/\.ssh|\.bash/)
  })

  verifies('agent:shell:shut-in', 'nothing can be written outside of it', async () => {
    const { run, outside, root } = await opened()
    symlinkSync(outside, join(root, 'link'))
    await run(
      `echo x > link/new; echo x > ${outside}/new; mkdir -p ${outside}/deep; touch /usr/new /etc/new /new /bin/new`,
    )
    expect(readdirSync(outside)).toEqual(['secret.txt'])
    for (const path of ['/usr/new', '/etc/new', '/new', '/bin/new']) expect(existsSync(path)).toBe(false)
  })

  verifies('agent:workspace:own-data', 'the folders of the server are empty and cannot be written', async () => {
    const { run, hidden } = await opened()
    expect(
      await run('ls -A .data; cat .data/tokens.txt; echo x > .data/tokens.txt; rm -rf .data; umount .data'),
    ).not.toContain(SECRET)
    expect(readFileSync(join(hidden, 'tokens.txt'), 'utf8')).toBe(SECRET)
  })

  test('nor what of it is made after the workspace was opened, a single file among it', async () => {
    const { root } = await opened()
    const shell = { mode: 'sandbox' as const, allowNetwork: false, sandbox }
    const hidden = [join(root, 'later'), join(root, 'keys.json')]
    const workspace = await openWorkspace({ root, hidden, shell })
    mkdirSync(join(root, 'later'))
    writeFileSync(join(root, 'later/tokens.txt'), SECRET)
    writeFileSync(join(root, 'keys.json'), SECRET)
    const options = { timeoutMs: 15_000, maxOutputBytes: 100_000, signal: new AbortController().signal }
    const result = await workspace.shell?.run('cat later/* keys.json; mv keys.json other; cat other', options)
    expect(result?.output).not.toContain(SECRET)
    expect(await workspace.files.list('.')).toEqual(['.data/'])
  })

  test('nor can what is hidden be shown by renaming a folder above it', async () => {
    const { root } = await opened()
    const deep = join(root, 'state/agent/data')
    mkdirSync(deep, { recursive: true })
    writeFileSync(join(deep, 'tokens.txt'), SECRET)
    const shell = { mode: 'sandbox' as const, allowNetwork: false, sandbox }
    const workspace = await openWorkspace({ root, hidden: [deep, join(deep, 'more'), join(root, '.data')], shell })
    const options = { timeoutMs: 15_000, maxOutputBytes: 100_000, signal: new AbortController().signal }
    for (const folder of ['state', 'state/agent', 'state/agent/data']) {
      const moved = await workspace.shell?.run(
        `mv ${folder} moved; ln -s ${folder} way; cat */*/tokens.txt */tokens.txt way/*`,
        options,
      )
      expect(moved?.output).toContain('busy')
      expect(moved?.output).not.toContain(SECRET)
    }
    expect((await workspace.shell?.run('grep -r "the text of" . ; find . -name tokens.txt', options))?.output).toBe('')
    expect(readFileSync(join(deep, 'tokens.txt'), 'utf8')).toBe(SECRET)
  })

  test('a workspace that another session swaps for a link is not followed', async () => {
    const { root, outside } = await opened()
    mkdirSync(join(root, 'b'))
    const shell = { mode: 'sandbox' as const, allowNetwork: false, sandbox }
    const b = await openWorkspace({ root: join(root, 'b'), hidden: [], shell })
    renameSync(join(root, 'b'), join(root, 'was-b'))
    symlinkSync(outside, join(root, 'b'))
    const options = { timeoutMs: 15_000, maxOutputBytes: 100_000, signal: new AbortController().signal }
    await expect(b.shell?.run('cat secret.txt', options)).rejects.toMatchObject({ code: 'outside_workspace' })
    expect(() => b.shell?.start('cat secret.txt')).toThrow(expect.objectContaining({ code: 'outside_workspace' }))
    for (const work of [b.files.list('.'), b.files.read('secret.txt', 100), b.files.write('x', Buffer.from(''))])
      await expect(work).rejects.toMatchObject({ code: 'outside_workspace' })
    await expect(openWorkspace({ root: join(root, 'b'), hidden: [], shell })).rejects.toMatchObject({
      code: 'workspace_outside',
    })
    expect(readdirSync(outside)).toEqual(['secret.txt'])
  })

  test('no open file of the server is left to a command', async () => {
    const { run } = await opened()
    const fds = await run('for f in /proc/1/fd/* /proc/self/fd/*; do readlink $f; done')
    expect(fds.split('\n').filter((line) => !/^(|pipe:.*|socket:.*|\/dev\/null|\/proc\/\d+\/fd)$/.test(line))).toEqual(
      [],
    )
  })

  test('the settings of the machine cannot be written, though the server may be root', async () => {
    const { run } = await opened()
    // Asked, not tried: a test must not break the machine where it fails.
    const files = '/proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/vm/drop_caches /proc/sysrq-trigger'
    expect(
      await run(
        `for f in ${files}; do test -w $f && echo "writable: $f"; done; find /proc/sys -writable | head -3; ls /sys`,
      ),
    ).not.toMatch(/^writable|^\/proc/m)
    expect(await run('grep -i ^cap /proc/self/status | grep -v 0000000000000000; echo')).toBe('\n')
    expect(
      await run('unshare -Ur id && echo nested; mount -t tmpfs x /tmp && echo mounted; mknod d b 8 0 && echo made'),
    ).not.toMatch(/^(nested|mounted|made)$/m)
  })

  verifies('agent:shell:processes', 'the processes of the server are neither seen nor signalled', async () => {
    const { run } = await opened()
    const seconds = uniqueSeconds()
    const other = spawn('sleep', [seconds], { stdio: 'ignore' })
    onTestFinished(() => void other.kill('SIGKILL'))
    expect(await run('cat /proc/*/cmdline | tr "\\0" " "')).not.toContain(seconds)
    await run(`kill -9 ${process.pid} ${other.pid}; kill -9 -1; kill -STOP ${process.ppid}; true`)
    expect(other.exitCode).toBeNull()
    expect(processesWith(seconds)).toHaveLength(1)
  })

  verifies('agent:shell:network', 'no address answers, loopback and sockets without a file among them', async () => {
    const server = createServer((socket) => socket.end('hello from outside'))
    server.listen(0, '127.0.0.1')
    const abstract = createServer((socket) => socket.end('hello from outside')).listen(`\0switchboard-${process.pid}`)
    await Promise.all([once(server, 'listening'), once(abstract, 'listening')])
    onTestFinished(() => void [server.close(), abstract.close()])
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : 0
    const script = `
      const { connect } = require('node:net')
      for (const to of [{ port: ${port}, host: '127.0.0.1' }, { path: '\\0switchboard-${process.pid}' }])
        connect(to).on('data', (d) => console.log(String(d))).on('error', (e) => console.log('refused', e.code))`
    const { run, root } = await opened()
    writeFileSync(join(root, 'try.cjs'), script)
    expect((await run('node try.cjs || echo none')).trim()).toMatch(/^(refused \w+\nrefused \w+|[\s\S]*none)$/)
    expect(await run('cat /proc/net/dev | wc -l; ls /etc/resolv.conf')).toMatch(/^3\n/)
    const open = await opened({ allowNetwork: true })
    writeFileSync(join(open.root, 'try.cjs'), script)
    if (!(await open.run('node --version')).startsWith('v')) return
    expect(await open.run('node try.cjs')).toContain('hello from outside')
  })

  test('a hook of git runs where the command runs, and nowhere else', async () => {
    const { run, root, outside, workspace } = await opened()
    const hook = `#!/bin/sh\nid > hooked.txt\ncat ${outside}/secret.txt >> hooked.txt\necho x > ${outside}/planted\n`
    const git = 'git -c user.name=a -c user.email=a@b'
    const version = await run('git --version')
    if (!version.startsWith('git')) return
    await run('git init -q .')
    await workspace.files.write('.git/hooks/pre-commit', Buffer.from(hook))
    await run(`chmod +x .git/hooks/pre-commit; echo 1 > f; git add f; ${git} commit -qm one`)
    expect(existsSync(join(root, 'hooked.txt'))).toBe(true)
    expect(readFileSync(join(root, 'hooked.txt'), 'utf8')).not.toContain(SECRET)
    expect(readdirSync(outside)).toEqual(['secret.txt'])
    // Nothing of the workspace itself runs git: to look at the files starts no hook.
    await workspace.files.remove('hooked.txt')
    await workspace.files.list('.')
    await workspace.files.write('f', Buffer.from('2'))
    expect(existsSync(join(root, 'hooked.txt'))).toBe(false)
  })

  test('every command has a /tmp and a home of its own, both empty', async () => {
    const { run } = await opened()
    await run('echo x > /tmp/left; echo x > ~/left')
    expect(await run('ls -A /tmp/left ~ 2>&1; touch ~/ok /tmp/ok && echo fine')).toMatch(/No such file[\s\S]*fine/)
  })

  test('a link that a command makes is no way out for the files', async () => {
    const { run, workspace, outside } = await opened()
    await run(`ln -s ${outside} planted; ln -s /proc/self/environ env; ln ${outside}/secret.txt hard; true`)
    for (const path of ['planted/secret.txt', 'env'])
      await expect(workspace.files.read(path, 1_000)).rejects.toMatchObject({ code: 'outside_workspace' })
    await expect(workspace.files.read('hard', 1_000)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('what is left when the server is killed ends with it', async () => {
    const { root } = await opened()
    const seconds = uniqueSeconds()
    const script = join(root, 'server.mts')
    const here = (name: string) => JSON.stringify(new URL(name, import.meta.url).href)
    writeFileSync(
      script,
      `import { openWorkspace } from ${here('./workspace.ts')}
       import { probeSandbox } from ${here('./bubblewrap.ts')}
       const shell = { mode: 'sandbox', allowNetwork: false, sandbox: await probeSandbox() }
       const workspace = await openWorkspace({ root: ${JSON.stringify(root)}, hidden: [], shell })
       workspace.shell.start('setsid sleep ${seconds} & sleep ${seconds}')`,
    )
    const server = spawn(process.execPath, ['--import', 'tsx', script], { stdio: 'ignore' })
    onTestFinished(() => void server.kill('SIGKILL'))
    await soon(() => expect(processesWith(`sleep\0${seconds}`)).toHaveLength(2))
    server.kill('SIGKILL')
    await soon(() => expect(processesWith(seconds)).toEqual([]))
  })
})
