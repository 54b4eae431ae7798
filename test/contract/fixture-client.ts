import { RawClient } from "../support/raw-client.ts";

const FIXTURE = `${import.meta.dir}/fixture-server.ts`;

/** A client of the real server in front of scripted sessions, before any message. */
export function startFixture(...args: string[]): RawClient {
  return new RawClient({ command: process.execPath, args: [FIXTURE, ...args] });
}

export async function initializedFixture(...args: string[]): Promise<RawClient> {
  const client = startFixture(...args);
  await client.initialize("2025-11-25");
  return client;
}
