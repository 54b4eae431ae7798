/** What the process ends with. Scripts may rely on these. */
export const EXIT = {
  ok: 0,
  /** The command was understood and failed; stderr says why */
  failed: 1,
  /** The command line makes no sense */
  usage: 2,
  /** An error nobody planned for */
  bug: 70,
  /** An IGN_MCP_ variable is wrong or unknown */
  badConfig: 78,
  /** Ctrl-C */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
