import { Fault } from "../base/fault.ts";

/** Why a connection was not carried, or not any further. Counted and logged by this name. */
export type RefusalReason =
  /** The policy is `deny_all` */
  | "policy_denies"
  /** What the guest said is no request of its protocol, or one that is not served */
  | "bad_request"
  /** The Host header names another host than the target */
  | "host_mismatch"
  | "name_not_listed"
  | "address_not_listed"
  /** Private, loopback, link-local, metadata, multicast …, and not in allow_cidrs */
  | "address_not_public"
  /** Port 443, and no TLS on it */
  | "not_tls"
  | "sni_missing"
  | "sni_mismatch"
  | "bad_client_hello"
  /** The name has no address */
  | "unresolved"
  /** The address does not take the connection */
  | "unreachable"
  | "handshake_timeout"
  | "connect_timeout"
  | "idle_timeout"
  | "too_many_connections"
  /** One side broke off */
  | "connection_lost"
  /** The VM ended, or its egress did */
  | "ended"
  /** A mistake of ours; the log has it */
  | "internal_error";

export type EgressErrorCode = RefusalReason | "bad_profile";

/** A refusal, whose sentence is also what the guest is told, or an egress.json that cannot be used. */
export class EgressError extends Fault<EgressErrorCode> {}
