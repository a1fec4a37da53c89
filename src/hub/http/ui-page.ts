import { PANEL_SCRIPT } from './ui-script.ts'

/** The panel: clients, health, and registering a client. All data comes by fetch and is put in as text. */
export function panelPage(nonce: string, { canSignOut }: { canSignOut: boolean }): string {
  const signOut = canSignOut
    ? '<form method="post" action="/hub/ui/sign-out"><button class="quiet">Sign out</button></form>'
    : ''
  return document(
    nonce,
    `<header><h1>Switchboard <span>hub</span></h1>${signOut}</header>
<main>
  <section aria-labelledby="health-title">
    <h2 id="health-title">Messaging service</h2>
    <p id="health" class="state" role="status">Loading…</p>
    <p id="action" hidden></p>
  </section>
  <section aria-labelledby="clients-title">
    <h2 id="clients-title">Clients <span id="count"></span></h2>
    <table role="table" aria-labelledby="clients-title" id="list" hidden>
      <thead role="rowgroup"><tr role="row">
        <th role="columnheader" scope="col">Name</th>
        <th role="columnheader" scope="col">Label</th>
        <th role="columnheader" scope="col">Status</th>
        <th role="columnheader" scope="col">Last seen</th>
        <th role="columnheader" scope="col" class="number">Waiting</th>
      </tr></thead>
      <tbody role="rowgroup" id="clients"></tbody>
    </table>
    <p id="none" hidden>No client is registered yet. Register the first one below.</p>
  </section>
  <section aria-labelledby="register-title">
    <h2 id="register-title">Register a client</h2>
    <form id="register">
      <label>Name <input name="name" required maxlength="64" autocomplete="off" aria-describedby="problem"></label>
      <label>Label <input name="label" maxlength="128" autocomplete="off" placeholder="optional"></label>
      <button>Register</button>
    </form>
    <p id="problem" class="problem" role="alert" hidden></p>
    <div id="issued" role="status"></div>
  </section>
</main>
<script nonce="${nonce}">${PANEL_SCRIPT}</script>`,
  )
}

/** The sign-in form; works without a script. */
export function signInPage(nonce: string, problem: string): string {
  const said = problem === '' ? '' : `<p class="problem" role="alert">${escapeHtml(problem)}</p>`
  return document(
    nonce,
    `<header><h1>Switchboard <span>hub</span></h1></header>
<main>
  <section>
    <h2>Sign in</h2>
    <p>This hub asks for its admin token (<code>RELAY_ADMIN_TOKEN</code>).</p>
    ${said}
    <form method="post" action="/hub/ui/sign-in">
      <input name="user" value="admin" autocomplete="username" hidden>
      <label>Admin token <input type="password" name="token" required autocomplete="current-password" autofocus></label>
      <button>Sign in</button>
    </form>
  </section>
</main>`,
  )
}

function document(nonce: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Switchboard hub</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
${body}
</body>
</html>`
}

function escapeHtml(text: string): string {
  const names: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  return text.replace(/[&<>"']/g, (char) => names[char] ?? char)
}

const STYLE = `
:root { color-scheme: light dark; --bg: #f6f7f9; --card: #fff; --text: #1a1f2b; --soft: #5b6475; --line: #dde1e8; --accent: #2456c9; --on-accent: #fff; --good: #17754a; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --bg: #12151b; --card: #1b2028; --text: #e7eaf0; --soft: #9da7b8; --line: #2d3440; --accent: #8fb0ff; --on-accent: #101523; --good: #6fd6a3; --bad: #ff9a91; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
header, main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
header { display: flex; justify-content: space-between; align-items: center; padding-top: 1.5rem; }
h1 { font-size: 1.4rem; margin: 0; } h1 span { color: var(--soft); font-weight: 400; }
h2 { font-size: 1.05rem; margin: 0 0 .75rem; } h2 span { color: var(--soft); font-weight: 400; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1.1rem 1.25rem; margin-bottom: 1rem; }
p { margin: 0 0 .75rem; } p:last-child, .state:has(+ [hidden]) { margin-bottom: 0; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; color: var(--soft); font-size: .85rem; } th, td { padding: .45rem 1rem .45rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
td:nth-child(1), td:nth-child(2) { white-space: normal; overflow-wrap: anywhere; min-width: 7rem; }
tbody tr:last-child td { border-bottom: 0; padding-bottom: 0; } .number { text-align: right; padding-right: 0; }
.good { color: var(--good); } .bad { color: var(--bad); } .soft { color: var(--soft); }
.state { font-weight: 600; } .problem { color: var(--bad); margin: .75rem 0 0; } .problem + form { margin-top: .75rem; }
form { display: flex; flex-wrap: wrap; gap: .75rem; align-items: end; } header form { margin: 0; }
label { display: flex; flex-direction: column; gap: .2rem; font-size: .85rem; color: var(--soft); flex: 1 1 12rem; }
input { font: inherit; color: var(--text); background: var(--bg); border: 1px solid var(--soft); border-radius: .4rem; padding: .5rem .6rem; min-width: 0; }
button { font: inherit; font-weight: 600; border: 0; border-radius: .4rem; padding: .55rem 1.1rem; background: var(--accent); color: var(--on-accent); cursor: pointer; }
button.quiet { background: transparent; color: var(--accent); padding: .3rem .6rem; border: 1px solid var(--line); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
.issued { margin-top: 1rem; padding: .9rem 1rem; border: 1px dashed var(--accent); border-radius: .4rem; }
.issued strong { overflow-wrap: anywhere; } .issued button { margin-left: .4rem; }
@media (max-width: 40rem) {
  table, tbody { display: block; } thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  tbody tr { display: grid; grid-template-columns: 1fr auto; gap: .1rem 1rem; padding: .7rem 0; border-bottom: 1px solid var(--line); }
  tbody tr:first-child { padding-top: 0; } tbody tr:last-child { border-bottom: 0; padding-bottom: 0; }
  td { border: 0; padding: 0; } td:empty { display: none; }
  td:nth-child(1) { font-weight: 600; } td:nth-child(2) { grid-area: 2 / 1 / auto / -1; } td:nth-child(3) { grid-area: 1 / 2; text-align: right; }
  td:nth-child(n + 4) { font-size: .9rem; } td:nth-child(n + 4)::before { content: attr(data-column) ": "; color: var(--soft); }
  main form > * { flex-basis: 100%; }
}
`
