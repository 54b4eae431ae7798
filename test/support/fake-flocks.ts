import type { FakeEngine } from "./fake-engine.ts";

export interface NewFlock {
  flock_id: string;
  agents: {
    agent_id: string;
    role: string;
    profile?: string;
    vm_id: string;
    agent_url: string;
    status: string;
  }[];
  townwall_url: string;
}

/** A new flock with these roles. */
export async function flockOf(engine: FakeEngine, roles: string[]): Promise<NewFlock> {
  const { status, text, json } = await engine.post("/flocks", { task: "test", roles });
  if (status !== 201) throw new Error(`no flock: ${status} ${text}`);
  return json as NewFlock;
}
