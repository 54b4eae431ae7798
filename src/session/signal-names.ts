/** Linux' signals from 1 on; the guest's, whatever the host's system numbers */
const NAMES =
  "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS".split(
    " ",
  );

/** "SIGKILL" for 9; real-time signals have only their number, as "SIG34". */
export function signalName(number: number): string {
  return `SIG${NAMES[number - 1] ?? number}`;
}

/** 15 for "TERM" and "SIGTERM", in any case; null for what is no signal's name. */
export function signalNumber(name: string): number | null {
  const index = NAMES.indexOf(name.toUpperCase().replace(/^SIG/, ""));
  return index < 0 ? null : index + 1;
}
