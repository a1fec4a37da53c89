import type { PairingView } from '../pairings.ts'

/** What stands on the page beside the pairing itself. */
export interface PairPage {
  pairing: PairingView
  nonce: string
  /** What went wrong with the last try; empty at first. */
  problem: string
  /** What was typed then. */
  name: string
}

const OVER: Record<string, string> = {
  approved: 'Approved. The client fetches its token now.',
  delivered: 'Done. The client has its token.',
  rejected: 'Rejected. The client was told that its code is over.',
  expired: 'This code has expired. Start the pairing again at the client.',
}

/** The page that a pairing's QR code leads to: an admin lets the client in by name, or not. */
export function pairPage({ pairing, nonce, problem, name }: PairPage): string {
  const said = problem === '' ? '' : `<p class="bad" role="alert">${escapeHtml(problem)}</p>`
  const over = OVER[pairing.status]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Pair a client</title>
<style nonce="${nonce}">
body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
label{display:block;margin:1rem 0 .25rem}input[type=text]{width:100%;padding:.5rem;font:inherit;box-sizing:border-box}
button{font:inherit;padding:.5rem 1rem;margin:1rem .5rem 0 0}.bad{color:#a40e26}dt{color:#57606a}dd{margin:0 0 .5rem}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}.bad{color:#ff7b72}dt{color:#9198a1}}
</style>
</head>
<body>
<main>
<h1>Pair a client</h1>
<p>A program asks to become a client of this hub. Let it in only if you have just started it yourself.</p>
<dl>
<dt>From</dt><dd>${escapeHtml(pairing.from)}</dd>
<dt>Asked at</dt><dd><time>${new Date(pairing.createdAt).toISOString()}</time></dd>
${pairing.name === null ? '' : `<dt>Client</dt><dd>${escapeHtml(pairing.name)}</dd>`}
</dl>
${said}
${over === undefined ? form(pairing.id, name) : `<p role="status">${over}</p>`}
</main>
</body>
</html>
`
}

function form(id: string, name: string): string {
  return `<form method="post" action="/hub/pair/${id}">
<label for="name">Name of the client</label>
<input type="text" id="name" name="name" maxlength="64" autocomplete="off" autofocus value="${escapeHtml(name)}">
<label for="label">Description (may stay empty)</label>
<input type="text" id="label" name="label" maxlength="128" autocomplete="off">
<label><input type="checkbox" name="replace" value="yes"> It is a client that is registered already: give it a new token</label>
<button name="do" value="approve">Approve</button>
<button name="do" value="reject">Reject</button>
</form>`
}

/** Text inside a page. */
export function escapeHtml(text: string): string {
  const names: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  return text.replace(/[&<>"']/g, (char) => names[char] ?? char)
}
