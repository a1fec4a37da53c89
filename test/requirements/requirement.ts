/** One rule that a test has to show. */
export interface Requirement {
  /** Where it stands: document, section, rule. */
  source: string
  /** What the service does, in one sentence. */
  behaviour: string
}

/** Rules by id: `<area>:<thing>:<rule>`. */
export type Requirements = Record<`${string}:${string}:${string}`, Requirement>
