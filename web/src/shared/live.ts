import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, type CallOptions, request, textOf } from './api.ts'

/** Data that stays fresh. `data` is undefined until the first answer came. */
export interface Live<T> {
  data: T | undefined
  /** Why the last look failed; null when it did not. */
  problem: string | null
  status: number
  /** Looks again now. */
  refresh(): void
}

/**
 * Looks at `path` again and again while the page can be seen, and draws anew only when the answer is another one. The
 * service answers an unchanged look with 304, which the browser keeps to itself.
 */
export function useLive<T>(path: string | null, everyMs: number, options: CallOptions = {}): Live<T> {
  const [state, setState] = useState<Omit<Live<T>, 'refresh'>>({ data: undefined, problem: null, status: 0 })
  const lookNow = useRef<() => void>(() => {})
  const given = useRef(options)
  given.current = options

  useEffect(() => {
    if (path === null) return
    const gone = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    let looking = false
    let again = false
    let seen: string | null = null
    setState({ data: undefined, problem: null, status: 0 })

    const look = async () => {
      clearTimeout(timer)
      if (looking) {
        again = true
        return
      }
      looking = true
      try {
        const text = await (await request(path, { ...given.current, signal: gone.signal })).text()
        if (gone.signal.aborted) return
        if (text !== seen) setState({ data: JSON.parse(text), problem: null, status: 200 })
        seen = text
      } catch (error) {
        if (gone.signal.aborted) return
        seen = null
        const status = error instanceof ApiError ? error.status : 0
        setState((present) => ({ ...present, problem: textOf(error), status }))
      } finally {
        looking = false
      }
      if (again) {
        again = false
        return look()
      }
      if (!document.hidden) timer = setTimeout(look, everyMs)
    }
    const onVisible = () => {
      if (!document.hidden) void look()
    }
    lookNow.current = () => void look()
    document.addEventListener('visibilitychange', onVisible)
    void look()
    return () => {
      gone.abort()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', onVisible)
    }
  }, [path, everyMs])

  return { ...state, refresh: useCallback(() => lookNow.current(), []) }
}

/** An action with its trouble: `run` returns false when it failed, and `problem` says why. One at a time. */
export function useAction() {
  const [problem, setProblem] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const running = useRef(false)
  const run = useCallback(async (work: () => Promise<unknown>): Promise<boolean> => {
    if (running.current) return false
    running.current = true
    setBusy(true)
    setProblem(null)
    try {
      await work()
      return true
    } catch (error) {
      setProblem(textOf(error))
      return false
    } finally {
      running.current = false
      setBusy(false)
    }
  }, [])
  return { run, problem, busy, clear: useCallback(() => setProblem(null), []) }
}
