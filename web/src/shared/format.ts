/** How long ago, in the words of a person who glances. */
export function ago(time: string | number, now = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - new Date(time).getTime()) / 1000))
  if (seconds < 5) return 'now'
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`
  return new Date(time).toLocaleDateString()
}

/** A number and its word: "1 message", "2 messages". */
export function count(number: number, word: string, many = `${word}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? word : many}`
}

/** At most so many characters, with a sign that there is more. */
export function shorten(text: string, most: number): string {
  const letters = [...text]
  return letters.length > most ? `${letters.slice(0, most).join('')}…` : text
}
