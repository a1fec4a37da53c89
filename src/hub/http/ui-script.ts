/** The panel's script, for the browser. Everything that comes from outside is set as text, never as markup. */
export const PANEL_SCRIPT = `
'use strict'
const $ = (id) => document.getElementById(id)
const show = (element, text) => { element.textContent = text; element.hidden = text === '' }

async function call(path, options) {
  const response = await fetch(path, options)
  if (response.status === 401) { location.reload(); throw new Error('Sign in again.') }
  const body = await response.json()
  if (!response.ok) throw new Error(body.error ? body.error.message : 'The hub answered ' + response.status + '.')
  return body
}

function ago(time) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(time)) / 1000))
  if (seconds < 60) return seconds + ' s ago'
  if (seconds < 3600) return Math.round(seconds / 60) + ' min ago'
  if (seconds < 86400) return Math.round(seconds / 3600) + ' h ago'
  return new Date(time).toLocaleDateString()
}

function cell(text, className) {
  const td = document.createElement('td')
  td.textContent = text
  if (className) td.className = className
  return td
}

function row(client) {
  const tr = document.createElement('tr')
  const seen = cell(ago(client.last_seen), 'soft')
  seen.title = client.last_seen
  tr.append(cell(client.name), cell(client.label, 'soft'), cell(client.status, client.status === 'online' ? 'good' : 'soft'), seen, cell(String(client.queue_size), 'number'))
  return tr
}

async function refresh() {
  try {
    const [health, list] = await Promise.all([call('/health'), call('/hub/clients')])
    const detail = health.upstream_detail
    $('health').textContent = health.status === 'ok' ? 'Connected' : 'Not connected: ' + detail.reason
    $('health').className = 'state ' + (health.status === 'ok' ? 'good' : 'bad')
    show($('action'), detail.action || '')
    $('count').textContent = list.online + ' of ' + list.total + ' online'
    $('clients').replaceChildren(...list.clients.map(row))
    $('none').hidden = list.total > 0
  } catch (error) {
    $('health').textContent = 'The hub does not answer: ' + error.message
    $('health').className = 'state bad'
  }
}

$('register').addEventListener('submit', async (event) => {
  event.preventDefault()
  const form = event.target
  show($('problem'), '')
  $('issued').hidden = true
  try {
    const body = { name: form.elements.name.value }
    if (form.elements.label.value.trim() !== '') body.label = form.elements.label.value
    const client = await call('/hub/register', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    $('issued-name').textContent = client.name
    $('token').textContent = client.token
    $('issued').hidden = false
    form.reset()
    refresh()
  } catch (error) {
    show($('problem'), error.message)
  }
})

$('copy').addEventListener('click', async () => {
  try {
    await navigator.clipboard.writeText($('token').textContent)
    $('copy').textContent = 'Copied'
  } catch {
    getSelection().selectAllChildren($('token'))
    $('copy').textContent = 'Selected: copy it'
  }
  setTimeout(() => { $('copy').textContent = 'Copy' }, 2000)
})

refresh()
setInterval(() => { if (!document.hidden) refresh() }, 3000)
`
