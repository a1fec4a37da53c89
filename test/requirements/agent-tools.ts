import type { Requirements } from './requirement.ts'

/** Tools, workspace, sandbox. */
export const agentTools = {
  'agent:tools:set': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'The tools of the decisions page are all there.',
  },
  'agent:tools:output': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour:
      'Output over 2,000 lines or 50 KiB keeps head and tail, and the whole is in a file that the tools can read.',
  },
  'agent:tools:mcp': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'MCP servers of a configuration file offer their tools, as a program and at an address.',
  },
  'agent:tools:edit': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour:
      'edit_file overlooks line endings, trailing space and indentation, and only ever changes a unique match.',
  },
  'agent:tools:edit-refused': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'edit_file shows the nearest region when it refuses.',
  },
  'agent:tools:per-session': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'What tools remember belongs to one session.',
  },
  'agent:tools:task': {
    source: 'issue 3: Build, 3',
    behaviour: 'A sub-task answers with its last words and counts for its run.',
  },
  'agent:tools:task-budget': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'A sub-task may use what is left of its run: turns, tokens, cost; its turns are missing from the run.',
  },
  'agent:tools:fetch-off': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'web_fetch is off without --allow-network.',
  },
  'agent:tools:fetch-guard': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'web_fetch refuses private, loopback, link-local and CGNAT addresses, on every hop.',
  },
  'agent:workspace:inside': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'A workspace lies inside the root, relative paths start there, and it is made if absent.',
  },
  'agent:workspace:escape': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'A workspace that leads out of the root is 422 and not made.',
  },
  'agent:workspace:too-long': {
    source: 'design/agent-decisions.md: Tools and sandbox; HTTP, errors (422 wrong field)',
    behaviour:
      'A workspace with a name that no folder can have for its length is 422 that says so, and nothing is made.',
  },
  'agent:workspace:file': {
    source: 'issue 3: What must show (bad input)',
    behaviour: 'A workspace that is a file is 422, and the server does not start on one.',
  },
  'agent:workspace:root': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'Without a workspace a session works in the root itself.',
  },
  'agent:workspace:own-data': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'Data folders of the server are never visible in a workspace, nor in the shell.',
  },
  'agent:files:links': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'Links that lead out, dangling ones and parent paths are refused for files.',
  },
  'agent:files:hard-links': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'A hard link is not written to.',
  },
  'agent:files:race': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'A folder that is swapped for a link meanwhile never leads outside.',
  },
  'agent:files:proc': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: '/proc is refused, even in a workspace of the whole machine.',
  },
  'agent:shell:shut-in': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'A command sees only its workspace and the programs of the machine, read-only.',
  },
  'agent:shell:environment': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'A command sees nothing of the environment of the server.',
  },
  'agent:shell:limits': {
    source: 'issue 3: Build 5 (shell)',
    behaviour: 'A command is bounded in processes, memory and the size of files, and the server goes on.',
  },
  'agent:shell:descriptors': {
    source: 'issue 3: What must show (Sandbox)',
    behaviour: 'What whoever started the server left open is not open in a command.',
  },
  'agent:shell:processes': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'A command neither sees nor signals the processes of the server.',
  },
  'agent:shell:network': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'A command reaches no network.',
  },
  'agent:shell:off': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'Where commands cannot be shut in there is no shell, and it is said why.',
  },
  'agent:shell:no-process-left': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'Timeout and cancel leave no process behind.',
  },
  'agent:shell:on-exit': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'A command is complete when it exits, though a child holds its pipes.',
  },
  'agent:shell:background': {
    source: 'design/agent-decisions.md: Tools and sandbox',
    behaviour: 'A command in the background is read by shell_output and ended by shell_kill.',
  },
} as const satisfies Requirements
