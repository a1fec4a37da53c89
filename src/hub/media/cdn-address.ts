/** The param in an address of the service's file store. Not by `URLSearchParams`: that makes a space of a plus, and these are base64. */
export function paramIn(url: unknown): string | null {
  const [, coded] = (typeof url === 'string' && /[?&]encrypted_query_param=([^&#]+)/.exec(url)) || []
  try {
    return coded === undefined ? null : decodeURIComponent(coded)
  } catch {
    return null
  }
}

/** Where a file is uploaded, from what getuploadurl answered. */
export function uploadAddress(cdnUrl: string, param: string, filekey: string | null): string {
  const key = filekey === null ? '' : `&filekey=${encodeURIComponent(filekey)}`
  return `${cdnUrl}/upload?encrypted_query_param=${encodeURIComponent(param)}${key}`
}

/** Where a file is to be had. */
export function downloadAddress(cdnUrl: string, param: string): string {
  return `${cdnUrl}/download?encrypted_query_param=${encodeURIComponent(param)}`
}
