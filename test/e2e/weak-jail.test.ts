import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { expectNoVms, vmsOf } from "../support/leftovers.ts";
import { ProgramsWithoutBubblewrap } from "../support/programs-without-bubblewrap.ts";
import { describeWithVms, EXECUTABLE_PATH, TestHome } from "../support/real-vm.ts";
import { StdioClient } from "../support/stdio-client.ts";
import { TestEngine } from "../support/test-engine.ts";
import { TestServer } from "../support/test-server.ts";

describeWithVms("without bubblewrap", () => {
  let programs: ProgramsWithoutBubblewrap;

  beforeAll(() => {
    programs = new ProgramsWithoutBubblewrap();
  });
  afterAll(() => programs[Symbol.dispose]());

  test("a session works under seccomp and limits, without capabilities, and the server says what is weaker", async () => {
    await using server = await TestServer.start(programs.env);
    const session = await server.open();
    expect(await session.output("echo here")).toBe("here\n");
    const [vmm] = server.vmms();
    const status = readFileSync(`/proc/${vmm!.pid}/status`, "utf8");
    for (const line of [/^NoNewPrivs:\t1$/m, /^Seccomp:\t2$/m, /^CapEff:\t0+$/m, /^CapPrm:\t0+$/m])
      expect(status).toMatch(line);
    const limits = readFileSync(`/proc/${vmm!.pid}/limits`, "utf8");
    expect(limits).toMatch(/^Max core file size +0 +0 /m);
    expect(limits).toMatch(/^Max open files +128 +128 /m);
    const said = server.client.stderr.split("QEMU sees the files, processes and network this user sees");
    expect(said).toHaveLength(2);
  });

  test("QEMU ends with a server that is killed", async () => {
    using home = new TestHome();
    await using client = await StdioClient.start({ command: EXECUTABLE_PATH, env: home.env(programs.env) });
    await client.callOk("open_session");
    const vms = vmsOf(client.pid);
    expect(vms.length).toBeGreaterThan(0);
    process.kill(client.pid, "SIGKILL");
    await expectNoVms(home, vms);
  });

  test("an engine's VM outlives an engine that is killed, and the next one adopts it", async () => {
    await using engine = await TestEngine.start(programs.env);
    const id = await engine.vm();
    await engine.task(id, "echo kept > file");
    const { stderr } = await engine.end("SIGKILL");
    expect(stderr).toContain("QEMU sees the files, processes and network this user sees");
    await engine.start();
    expect(await engine.task(id, "cat file")).toBe("kept\n");
  });

  test("doctor says it too", () => {
    const { stdout } = Bun.spawnSync([EXECUTABLE_PATH, "doctor"], { env: programs.env });
    expect(stdout.toString()).toMatch(/^warn +jail +setpriv: bubblewrap does not work here/m);
  });
});
