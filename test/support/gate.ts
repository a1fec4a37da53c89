/** Holds whoever passes until it is opened, and tells when somebody has come. */
export interface Gate {
  /** Resolves once the gate is open. */
  pass(): Promise<void>
  /** Resolves once somebody stands at the gate. */
  readonly reached: Promise<void>
  open(): void
}

/** A closed gate: tests stop a thing at a known place with it, where a sleep would only hope. */
export function gate(): Gate {
  let open = () => {}
  let arrive = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const reached = new Promise<void>((resolve) => {
    arrive = resolve
  })
  return {
    pass() {
      arrive()
      return opened
    },
    reached,
    open,
  }
}
