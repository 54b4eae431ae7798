import { join } from "node:path";
import { AgentClient, type AgentConnectOptions } from "../guest/agent-client.ts";
import { AgentError } from "../guest/agent-error.ts";
import { AGENT_SOCKET } from "./machine-spec.ts";

/** Connects to the agent of the VM whose sockets are in `dir`. Rejects `agent_mismatch` for another build than `agentBuild`. */
export async function connectAgent(
  dir: string,
  agentBuild: string,
  options: Omit<AgentConnectOptions, "path">,
): Promise<AgentClient> {
  const agent = await AgentClient.connect({ ...options, path: join(dir, AGENT_SOCKET) });
  if (agent.hello.build === agentBuild) return agent;
  agent.close();
  throw new AgentError(
    "agent_mismatch",
    `the agent in the guest is build ${agent.hello.build}, the base says ${agentBuild}; rebuild the base`,
  );
}
