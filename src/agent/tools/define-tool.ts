import type { Static, TObject } from 'typebox'
import { checker } from '../../kit/schema.ts'
import type { Tool, ToolContext, ToolOutput } from './port.ts'

/** A tool of our own, before its input has a type. */
export interface ToolDefinition<S extends TObject> {
  name: string
  description: string
  input: S
  readOnly: boolean
  off?: string | undefined
  run(input: Static<S>, context: ToolContext): Promise<ToolOutput>
}

/** Makes a tool of a definition: its schema is what models are told, and what gives the input its type. */
export function defineTool<S extends TObject>(definition: ToolDefinition<S>): Tool {
  const { name, description, input: schema, readOnly, off } = definition
  const check = checker(schema, 'input')
  return {
    name,
    description,
    parameters: Object.fromEntries(Object.entries(schema)),
    readOnly,
    source: 'builtin',
    off,
    run: async (input, context) => definition.run(check(input), context),
  }
}

/** It went well. */
export function done(text: string): ToolOutput {
  return { success: true, text }
}

/** It did not, and this is what the model is to know. */
export function refused(text: string): ToolOutput {
  return { success: false, text }
}
