/** The panel's script, for the browser. Everything that comes from outside is set as text, never as markup. */
export const PANEL_SCRIPT = `
'use strict'
const $ = (id) => document.getElementById(id)
// Only what has changed is set: a live region speaks with every change, and a selection ends with it.
const setText = (element, text) => { if (element.textContent !== text) element.textContent = text }
const show = (element, text) => { setText(element, text); element.hidden = text === '' }

function make(tag, text, className = '') {
  const element = document.createElement(tag)
  element.textContent = text
  element.className = className
  return element
}

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

const COLUMNS = ['Name', 'Label', 'Status', 'Last seen', 'Waiting']
const rows = new Map()
let shownNames = ''

function row(client) {
  if (!rows.has(client.name)) {
    const made = make('tr', '')
    made.setAttribute('role', 'row')
    for (const column of COLUMNS) {
      const cell = make('td', '', column === 'Waiting' ? 'number' : column === 'Name' ? '' : 'soft')
      cell.setAttribute('role', 'cell')
      cell.dataset.column = column
      made.append(cell)
    }
    rows.set(client.name, made)
  }
  const tr = rows.get(client.name)
  const label = client.label === client.name ? '' : client.label
  const texts = [client.name, label, client.status, ago(client.last_seen), String(client.queue_size)]
  texts.forEach((text, index) => setText(tr.children[index], text))
  tr.children[2].className = client.status === 'online' ? 'good' : 'soft'
  tr.children[3].title = client.last_seen
  return tr
}

function showClients({ clients, total, online }) {
  setText($('count'), total === 0 ? '' : online + ' of ' + total + ' online')
  const names = JSON.stringify(clients.map(({ name }) => name))
  const made = clients.map(row)
  if (names !== shownNames) $('clients').replaceChildren(...made)
  shownNames = names
  for (const name of rows.keys()) if (!clients.some((client) => client.name === name)) rows.delete(name)
  $('list').hidden = total === 0
  $('none').hidden = total > 0
}

function showHealth({ status, upstream_detail: { state, reason, action } }) {
  const up = status === 'ok'
  const why = up && state !== 'throttled' ? '' : ': ' + reason
  setText($('health'), (up ? 'Connected' : 'Not connected') + why)
  $('health').className = 'state ' + (up ? 'good' : 'bad')
  show($('action'), action || (up ? '' : 'The hub keeps trying; there is nothing you have to do.'))
  $('action').className = action ? 'bad' : 'soft'
}

async function refresh() {
  try {
    const [health, list] = await Promise.all([call('/health'), call('/hub/clients')])
    showHealth(health)
    showClients(list)
  } catch (error) {
    setText($('health'), 'The hub does not answer: ' + error.message)
    $('health').className = 'state bad'
    show($('action'), '')
  }
}

// A token that was shown stays until the page is left: one that is lost cannot be recovered.
function showToken({ name, token }) {
  const box = make('div', '', 'issued')
  const said = make('p', 'The token of ')
  said.append(make('strong', name), '. It is shown this once and cannot be recovered:')
  const line = make('p', '')
  const code = make('code', token)
  const copy = make('button', 'Copy', 'quiet')
  copy.type = 'button'
  copy.setAttribute('aria-label', 'Copy the token of ' + name)
  copy.addEventListener('click', () => copyText(code, copy))
  line.append(code, copy)
  const use = make('p', 'Point the client at ', 'soft')
  use.append(make('code', location.origin), ' with this token.')
  box.append(said, line, use)
  $('issued').prepend(box)
}

async function copyText(code, button) {
  try {
    await navigator.clipboard.writeText(code.textContent)
    button.textContent = 'Copied'
  } catch {
    getSelection().selectAllChildren(code)
    button.textContent = 'Selected: copy it'
  }
  setTimeout(() => { button.textContent = 'Copy' }, 2000)
}

let registering = false
$('register').addEventListener('submit', async (event) => {
  event.preventDefault()
  if (registering) return
  registering = true
  const form = event.target
  const { name, label } = form.elements
  show($('problem'), '')
  try {
    const body = { name: name.value }
    if (label.value.trim() !== '') body.label = label.value
    showToken(await call('/hub/register', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }))
    form.reset()
    name.removeAttribute('aria-invalid')
    refresh()
  } catch (error) {
    show($('problem'), error.message)
    name.setAttribute('aria-invalid', 'true')
    name.focus()
  } finally {
    registering = false
  }
})

refresh()
setInterval(() => { if (!document.hidden) refresh() }, 3000)
`
