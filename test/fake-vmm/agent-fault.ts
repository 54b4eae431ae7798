/** One way a fake agent breaks docs/wire. Everything else about it stays right. */
export type AgentFault = HandshakeFault | ReplyFault;

/** Shows before the first request */
export type HandshakeFault =
  /** Accepts and never answers CONNECT */
  | "no_ok"
  /** Answers CONNECT only after `FakeAgent.answerConnect()` */
  | "slow_ok"
  /** Answers CONNECT with another line */
  | "bad_ok"
  /** Answers CONNECT with a line that does not end */
  | "endless_ok"
  /** Closes when CONNECT comes */
  | "dies_on_connect"
  /** Answers HELLO with another connection's nonce */
  | "wrong_nonce"
  | "wrong_protocol"
  /** Never answers HELLO */
  | "no_hello"
  /** Answers HELLO with bytes that are not JSON */
  | "bad_hello";

/** Shows in the answer to a request */
export type ReplyFault = (typeof REPLY_FAULTS)[number];

export const REPLY_FAULTS = [
  /** Bytes that are not JSON */
  "bad_reply",
  /** A message that answers another kind of request */
  "wrong_reply",
  /** Half a frame, then the end */
  "half_frame",
  /** A length no frame may have */
  "huge_length",
  /** Random bytes */
  "garbage",
  /** The end */
  "dies_on_request",
  /** The end, with bytes of the host's unread: the host sees ECONNRESET */
  "resets",
  /** Half a frame, then the VMM is gone */
  "vmm_dies_mid_reply",
  /** Nothing */
  "silent",
] as const;
