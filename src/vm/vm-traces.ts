/** Of each of the two texts; a panic with its trace takes some 2500 */
const MAX_CHARACTERS = 4096;
const INVISIBLE = /[^\n\x20-\x7e]/g;

/** What is there to see of a machine that failed. For the log only: both texts are others' words. */
export interface VmTraces {
  vmm_pid: number;
  /** The last of what QEMU wrote to stderr */
  vmm_stderr: string;
  /** The last of what the guest printed on its console */
  console: string;
}

/** `stderr` and `console` are Latin-1: each byte is one character. */
export function vmTraces(vmmPid: number, stderr: string, console: string): VmTraces {
  return { vmm_pid: vmmPid, vmm_stderr: endOf(stderr), console: endOf(console) };
}

/** As it can be shown in a terminal: nothing in it steers one. */
export function visibleText(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(INVISIBLE, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

function endOf(text: string): string {
  return visibleText(text.trim()).slice(-MAX_CHARACTERS);
}
