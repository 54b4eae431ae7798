import { Qmp } from "../../../src/vm/qemu/qmp.ts";

export interface QmpCommand {
  execute: string;
  id: number;
  arguments?: Record<string, unknown>;
}

/** QEMU's end of a QMP connection, answered by the test. */
export class ScriptedQemu {
  readonly commands: QmpCommand[] = [];
  readonly qmp: Qmp;

  /** `answer` is called for every command; without it none is answered. */
  constructor(answer?: (command: QmpCommand, qemu: ScriptedQemu) => void) {
    this.qmp = new Qmp((line) => {
      const command = JSON.parse(line) as QmpCommand;
      this.commands.push(command);
      if (answer) queueMicrotask(() => answer(command, this));
    });
  }

  /** Sends one line. */
  say(message: object): void {
    this.qmp.receive(Buffer.from(`${JSON.stringify(message)}\r\n`));
  }

  greet(): void {
    this.say({ QMP: { version: { qemu: { major: 10, minor: 0, micro: 2 } }, capabilities: ["oob"] } });
  }

  answer({ id }: QmpCommand, value: unknown = {}): void {
    this.say({ return: value, id });
  }

  refuse({ id }: QmpCommand, desc: string): void {
    this.say({ error: { class: "GenericError", desc }, id });
  }

  event(event: string, data: object = {}): void {
    this.say({ event, data, timestamp: { seconds: 1, microseconds: 2 } });
  }
}
