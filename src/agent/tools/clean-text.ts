const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g

/** `text` from elsewhere without characters that only a terminal would read. */
export function printable(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll('\r', '\n').replace(CONTROLS, '\ufffd')
}
