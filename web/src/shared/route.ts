import { useEffect, useState } from 'preact/hooks'

/** Where in the page one is: the part after `#/`, and its parameters. */
export interface Route {
  name: string
  params: URLSearchParams
}

function read(): Route {
  const [name = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?')
  return { name: decodeURIComponent(name), params: new URLSearchParams(query) }
}

/** The route, and a new one whenever the address changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(read)
  useEffect(() => {
    const onChange = () => setRoute(read())
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return route
}

/** The address of a route, for a link. */
export function to(name: string, params: Record<string, string> = {}): string {
  const query = new URLSearchParams(params).toString()
  return `#/${encodeURIComponent(name)}${query === '' ? '' : `?${query}`}`
}
