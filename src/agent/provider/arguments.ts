/** The arguments of a tool call as the model wrote them: parsed, or kept as `invalid` when they are no JSON. */
export function readArguments(text: string): { input: unknown; invalid?: string } {
  // Many models write nothing for a tool without arguments.
  if (text.trim() === '') return { input: {} }
  try {
    return { input: JSON.parse(text) }
  } catch {
    return { input: {}, invalid: text }
  }
}
