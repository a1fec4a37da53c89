import { useState } from 'preact/hooks'
import { Copyable, Dialog } from '../shared/ui.tsx'
import type { Issued } from './types.ts'

const KINDS = ['Environment', 'JSON', 'curl'] as const

/** A new token, shown this once, with what to paste into the client's configuration. */
export function TokenDialog({ issued, onClose }: { issued: Issued; onClose: () => void }) {
  const [kind, setKind] = useState<(typeof KINDS)[number]>('Environment')
  return (
    <Dialog title={`The token of ${issued.name}`} onClose={onClose}>
      <p>It is shown this once and cannot be recovered. Keep it where the client finds it.</p>
      <Copyable text={issued.token} label={`the token of ${issued.name}`} />
      <fieldset class="kinds">
        <legend>Ready to paste</legend>
        {KINDS.map((one) => (
          <label key={one} class={one === kind ? 'badge accent' : 'badge'}>
            <input type="radio" class="hidden-text" name="kind" checked={one === kind} onChange={() => setKind(one)} />
            {one}
          </label>
        ))}
      </fieldset>
      <Copyable text={config(kind, issued)} label="the configuration" />
      <div class="actions">
        <button type="button" class="button primary" onClick={onClose}>
          I have kept it
        </button>
      </div>
    </Dialog>
  )
}

function config(kind: (typeof KINDS)[number], { token }: Issued): string {
  const url = location.origin
  if (kind === 'Environment') return `RELAY_URL=${url}\nRELAY_TOKEN=${token}`
  if (kind === 'JSON') return JSON.stringify({ base_url: url, token }, null, 2)
  return `curl -X POST ${url}/relay/bot/getupdates \\\n  -H 'Authorization: Bearer ${token}' \\\n  -d '{}'`
}
