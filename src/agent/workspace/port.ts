/** Files and programs, confined to one folder. Paths are relative to it, with `/`; an absolute one must lie inside. */
export interface Workspace {
  /** The folder's real path. */
  readonly root: string
  readonly files: WorkspaceFiles
  /** null: programs cannot be run here; the text says why. */
  readonly shell: WorkspaceShell | null
  readonly shellOff: string | null
}

/**
 * Reads and writes inside the folder only: links that lead out or nowhere, `..` out of it, `/proc`, hidden folders and hard
 * links (on writing) are refused with `outside_workspace`.
 */
export interface WorkspaceFiles {
  /** The bytes; fails with `not_found`, `is_directory`, `not_a_file` (a pipe, a device), `too_large` (over `maxBytes`). */
  read(path: string, maxBytes: number): Promise<Buffer>
  /** Replaces or makes the file, with the folders above it, in one step: a reader sees the old text or the new one. */
  write(path: string, bytes: Buffer): Promise<void>
  /** Sorted by name; folders end with `/`. */
  list(path: string): Promise<string[]>
  /** null when there is nothing. */
  stat(path: string): Promise<{ kind: 'file' | 'directory' | 'other'; bytes: number; modifiedAt: number } | null>
  /** Removes a file, or a link as such; never a folder. */
  remove(path: string): Promise<void>
  /**
   * Every file below `path` (or the file itself), relative to the root, without following links; ends early when the
   * consumer stops or `signal` aborts. Folders to which `enter` says no are left out; the first one is not asked for.
   */
  walk(path: string, signal: AbortSignal, enter?: (folder: string) => Promise<boolean>): AsyncIterable<WalkedFile>
}

/** A file that a walk came by. */
export interface WalkedFile {
  path: string
  bytes: number
  modifiedAt: number
}

/** Runs programs in the workspace. */
export interface WorkspaceShell {
  /**
   * Runs a command line with `sh -c` in the root. Resolves when it has exited (not when its children have closed the
   * pipes); what it left running is ended with it. On abort or time-out all of it is killed, and has gone when this resolves
   * (`exitCode` null).
   */
  run(command: string, options: ShellOptions): Promise<ShellResult>
  /** Starts a command that goes on; ended by `kill`, by the end of the session, or with the server. `too_many_commands` when too many run. */
  start(command: string): BackgroundCommand
}

/** Bounds of a command. */
export interface ShellOptions {
  timeoutMs: number
  maxOutputBytes: number
  signal: AbortSignal
  onOutput?: (text: string) => void
}

/** How a command ended. */
export interface ShellResult {
  exitCode: number | null
  /** stdout and stderr as they came. */
  output: string
  truncated: boolean
  timedOut: boolean
}

/** A command that goes on while others run. */
export interface BackgroundCommand {
  readonly id: string
  /** What it printed since the last call. */
  read(): { output: string; running: boolean; exitCode: number | null }
  kill(): Promise<void>
}
