import type { LogFields, Logger } from "../base/logger.ts";
import { Places } from "../base/places.ts";
import { Channel } from "./channel.ts";
import { decide, type Grounds, refuseUnresolved } from "./decide.ts";
import { type Destination, textOf } from "./destination.ts";
import { type Dial, dialTcp } from "./dial.ts";
import { EgressCounters } from "./egress-counters.ts";
import { EgressError, type RefusalReason } from "./egress-error.ts";
import type { EgressPolicy } from "./egress-policy.ts";
import { type Cidr, type IpAddress, parseIp } from "./ip-address.ts";
import { ownNetworks } from "./own-networks.ts";
import { ReadRoom } from "./read-room.ts";
import { nameResolver, type ResolveName } from "./resolve-name.ts";
import { type SharedPlaces, sharedPlaces } from "./shared-places.ts";

export interface EgressLimits {
  /** From the first byte of a request, or of a connection, to all that decides about it, in `ms` */
  handshakeMs: number;
  /** For resolving and connecting together, in `ms` */
  connectMs: number;
  /** Longest without a byte in either direction, in `ms` */
  idleMs: number;
  /** Most connections at once */
  connections: number;
}

export const EGRESS_LIMITS: EgressLimits = {
  handshakeMs: 10_000,
  connectMs: 10_000,
  idleMs: 600_000,
  connections: 1024,
};

/** Longest for one address when there are others to try, in `ms` */
const ATTEMPT_MS = 3000;
const MAX_ADDRESSES = 16;
/** What a gate may hold that came from servers and that its guest does not take */
const READ_ROOM_BYTES = 32 * 1_048_576;
/** Of one gate at once; more wait for their turn */
const MAX_LOOKUPS = 32;
const MAX_INTERNAL_BODIES = 4;

/** Answers a request for http://ignition.internal; null is answered as 404. */
export type InternalDoor = (request: Request) => Promise<Response | null>;

/** Told once of each destination a guest asked for, when it is over with it. */
export type OnVerdict = (
  verdict: "allowed" | "refused",
  reason: RefusalReason | Grounds | "internal",
) => void;

export interface EgressGateOptions {
  policy: EgressPolicy;
  log: Logger;
  /** In every line, to tell whose connection it was */
  logFields?: LogFields;
  internal?: InternalDoor;
  onVerdict?: OnVerdict;
  limits?: Partial<EgressLimits>;
  resolveName?: ResolveName;
  dial?: Dial;
  /** Those this machine is attached to */
  ownNetworks?: () => Cidr[];
  shared?: SharedPlaces;
  readRoomBytes?: number;
}

export interface Upstream {
  channel: Channel;
  grounds: Grounds;
}

/** What stands between one VM and the network: its policy, its connections, and what was counted. */
export class EgressGate implements Disposable {
  readonly policy: EgressPolicy;
  readonly limits: EgressLimits;
  readonly internal: InternalDoor | null;
  readonly counters = new EgressCounters();
  readonly shared: SharedPlaces;
  /** Requests to the door whose bodies are collected */
  readonly internalBodies = new Places(MAX_INTERNAL_BODIES);
  readonly room: ReadRoom;
  readonly log: Logger;
  readonly logFields: LogFields;
  readonly onVerdict: OnVerdict;
  readonly #resolveName: ResolveName;
  readonly #dial: Dial;
  readonly #ownNetworks: () => Cidr[];
  readonly #lookups = new Places(MAX_LOOKUPS);
  readonly #ending = new AbortController();

  constructor(options: EgressGateOptions) {
    this.policy = options.policy;
    this.limits = { ...EGRESS_LIMITS, ...options.limits };
    this.internal = options.internal ?? null;
    this.log = options.log;
    this.logFields = options.logFields ?? {};
    this.onVerdict = options.onVerdict ?? (() => undefined);
    this.#resolveName = options.resolveName ?? nameResolver(options.policy.rules.dnsServers);
    this.#dial = options.dial ?? dialTcp;
    this.#ownNetworks = options.ownNetworks ?? ownNetworks;
    this.room = new ReadRoom(options.readRoomBytes ?? READ_ROOM_BYTES);
    this.shared = options.shared ?? sharedPlaces();
  }

  /** Aborted when the gate is disposed of, with the reason. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /**
   * Resolves once, decides about every address, and dials exactly one of those that were decided about. Throws the
   * refusal. The caller owns the channel.
   */
  async open(destination: Destination): Promise<Upstream> {
    const untilTimeout = new AbortController();
    const signal = AbortSignal.any([untilTimeout.signal, this.signal]);
    const timeout = new EgressError(
      "connect_timeout",
      `the server at ${textOf(destination)} did not answer in time`,
    );
    const timer = setTimeout(() => untilTimeout.abort(timeout), this.limits.connectMs);
    try {
      const addressesFound = await this.#addressesOf(destination, signal);
      const permission = decide(this.policy, destination, addressesFound, this.#ownNetworks());
      if (permission instanceof EgressError) throw permission;
      const { grounds } = permission;
      const addresses = permission.addresses.slice(0, MAX_ADDRESSES);
      return { channel: await this.#dialFirst(destination, addresses, signal), grounds };
    } finally {
      clearTimeout(timer);
    }
  }

  [Symbol.dispose](): void {
    this.#ending.abort(new EgressError("ended", "the VM's egress has ended"));
  }

  async #addressesOf(destination: Destination, signal: AbortSignal): Promise<IpAddress[]> {
    const refusal = refuseUnresolved(this.policy, destination);
    if (refusal) throw refusal;
    if (destination.address) return [destination.address];
    const name = destination.name!;
    try {
      const addresses = (await this.#lookUp(name, signal)).map(parseIp);
      if (addresses.length > 0) return addresses.filter((address) => address !== null);
    } catch (error) {
      signal.throwIfAborted();
      throw new EgressError("unresolved", `the name ${name} could not be resolved`, error);
    }
    throw new EgressError("unresolved", `the name ${name} has no address`);
  }

  async #lookUp(name: string, signal: AbortSignal): Promise<string[]> {
    using _own = await this.#lookups.wait(signal);
    using _shared = await this.shared.lookups.wait(signal);
    return await this.#resolveName(name, signal);
  }

  async #dialFirst(
    destination: Destination,
    addresses: readonly IpAddress[],
    signal: AbortSignal,
  ): Promise<Channel> {
    let failure: unknown;
    for (const [at, address] of addresses.entries()) {
      const isLast = at === addresses.length - 1;
      const attempt = isLast ? signal : AbortSignal.any([signal, AbortSignal.timeout(ATTEMPT_MS)]);
      try {
        return new Channel(await this.#dial(address.toString(), destination.port, attempt, this.room));
      } catch (error) {
        signal.throwIfAborted();
        failure = error;
      }
    }
    const why = `the server at ${textOf(destination)} does not take the connection`;
    throw new EgressError("unreachable", why, failure);
  }
}
