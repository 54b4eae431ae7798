import { AgentClient, type AgentConnectOptions } from "../../../src/guest/agent-client.ts";
import { FakeAgent, type FakeAgentOptions } from "../../fake-vmm/fake-agent.ts";

/** A fake agent with a client connected to it; disposing ends both. */
export class ConnectedAgent implements Disposable {
  private constructor(
    readonly agent: FakeAgent,
    readonly client: AgentClient,
  ) {}

  static async start(
    options: FakeAgentOptions = {},
    connect: Partial<AgentConnectOptions> = {},
  ): Promise<ConnectedAgent> {
    const agent = new FakeAgent(options);
    try {
      const client = await AgentClient.connect({ path: agent.path, deadlineMs: 60_000, ...connect });
      return new ConnectedAgent(agent, client);
    } catch (error) {
      agent[Symbol.dispose]();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.client.close();
    this.agent[Symbol.dispose]();
  }
}
