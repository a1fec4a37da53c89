import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { ago } from './format.ts'

export type Tone = 'good' | 'warn' | 'bad' | 'accent' | ''

/** The sign of the product. */
export function Brand({ part, heading = true }: { part: string; heading?: boolean }) {
  const Tag = heading ? 'h1' : 'span'
  return (
    <Tag class="brand">
      <svg viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" fill="#2f5bd7" />
        <g fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round">
          <path d="M8 10.5h5.5c5 0 0 11 5 11H24" />
          <path d="M8 21.5h3.5M20 10.5h4" />
        </g>
      </svg>
      <span>
        Switchboard <span class="soft">{part}</span>
      </span>
    </Tag>
  )
}

/** A word on a tint. */
export function Badge({ tone = '', children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>
}

/** A time as "3 min ago", with the exact one behind it; moves on by itself. */
export function Ago({ time }: { time: string | number }) {
  const [, redraw] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => redraw((number) => number + 1), 10_000)
    return () => clearInterval(timer)
  }, [])
  const exact = new Date(time)
  return (
    <time dateTime={exact.toISOString()} title={exact.toLocaleString()}>
      {ago(time)}
    </time>
  )
}

/** What a person reads where there is nothing yet. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  )
}

/** The place of something that is on its way; it takes the room that will be needed. */
export function Waiting() {
  return (
    <div class="empty waiting" role="status">
      Loading…
    </div>
  )
}

/** Something went wrong, and what to do. */
export function Problem({ text, onRetry }: { text: string | null; onRetry?: () => void }) {
  if (text === null) return null
  return (
    <div class="note bad row apart" role="alert">
      <span class="grow wrap">{text}</span>
      {onRetry && (
        <button type="button" class="button slim" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

/** A label, its field, and a hint below it. */
export function Field({ label, hint, children }: { label: string; hint?: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is among the children
    <label class="field">
      <span>{label}</span>
      {children}
      {hint !== undefined && <span class="small soft">{hint}</span>}
    </label>
  )
}

/** A window over the page, as long as it is drawn. Escape and its button close it. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string
  onClose: () => void
  children: ComponentChildren
}) {
  const box = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const opener = document.activeElement
    box.current?.showModal()
    return () => {
      if (opener instanceof HTMLElement) opener.focus()
    }
  }, [])
  return (
    <dialog
      ref={box}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      <div class="stack">
        <h2 id={id} class="wrap">
          {title}
        </h2>
        {children}
      </div>
    </dialog>
  )
}

/** A question before something that cannot be undone. */
export function Confirm(props: {
  title: string
  action: string
  problem: string | null
  busy: boolean
  onDo: () => void
  onClose: () => void
  children: ComponentChildren
}) {
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <div>{props.children}</div>
      <Problem text={props.problem} />
      <div class="actions">
        <button type="button" class="button" onClick={props.onClose}>
          Keep it
        </button>
        <button type="button" class="button danger" onClick={props.onDo} disabled={props.busy}>
          {props.action}
        </button>
      </div>
    </Dialog>
  )
}

/** Text to be taken away, with a button that copies it, or selects it where copying is not allowed. */
export function Copyable({ text, label }: { text: string; label: string }) {
  const code = useRef<HTMLPreElement>(null)
  const [said, setSaid] = useState('Copy')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setSaid('Copied')
    } catch {
      if (code.current) getSelection()?.selectAllChildren(code.current)
      setSaid('Selected: copy it')
    }
    setTimeout(() => setSaid('Copy'), 2000)
  }
  return (
    <div class="stack tight copyable">
      <pre class="code" ref={code}>
        {text}
      </pre>
      <button type="button" class="button slim" onClick={copy} aria-label={`${said}: ${label}`}>
        {said}
      </button>
    </div>
  )
}

/** One column of a table; `label` stands before the value on a phone, null when it explains itself. */
export interface Column<Row> {
  title: string
  cell: (row: Row) => ComponentChildren
  number?: boolean
  label?: string | null
}

/** A table that becomes a list of cards on a phone, and stays a table for a screen reader. */
export function Table<Row>(props: {
  label: string
  columns: Column<Row>[]
  rows: readonly Row[]
  keyOf: (row: Row) => string | number
}) {
  const { label, columns, rows, keyOf } = props
  const side = (column: Column<Row>) => (column.number ? { class: 'number' } : {})
  return (
    // Told in words, since a browser forgets that it is a table when it is drawn as cards.
    <table class="cards" role="table" aria-label={label}>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column) => (
            <th key={column.title} role="columnheader" scope="col" {...side(column)}>
              {column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={keyOf(row)} role="row">
            {columns.map((column) => (
              <td
                key={column.title}
                role="cell"
                data-label={column.label === null ? undefined : (column.label ?? column.title)}
                {...side(column)}
              >
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
