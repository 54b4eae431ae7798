/**
 * Run where 127.0.0.77 is the machine's nameserver. Lets guests ask for names it never answers, and prints how many of
 * them had their answer when a small file was read.
 */
import { createSocket } from "node:dgram";
import { readFile } from "node:fs/promises";
import { ALLOW_ALL } from "../../src/egress/egress-policy.ts";
import { nameResolver } from "../../src/egress/resolve-name.ts";
import { GuestEnd, TestGate } from "./proxied-guest.ts";

const NAMES = 64;

const nameserver = createSocket("udp4");
await new Promise<void>((resolve) => nameserver.bind(53, "127.0.0.77", resolve));
const asked = new Promise((resolve) => nameserver.once("message", resolve));
using gate = new TestGate({ policy: ALLOW_ALL, resolveName: nameResolver([]) });
let answered = 0;
const answers = Array.from({ length: NAMES }, async (_, at) => {
  const target = `name${at}.example:443`;
  const guest = new GuestEnd(gate);
  await guest.send(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  await guest.rest();
  answered++;
  await guest.end();
});
await asked;
await readFile("/etc/hosts");
await Bun.file("/etc/hosts").text();
process.stdout.write(`${answered} of ${NAMES}\n`);
gate[Symbol.dispose]();
await Promise.allSettled(answers);
nameserver.close();
