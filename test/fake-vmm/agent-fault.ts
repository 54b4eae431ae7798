/** One way a fake agent breaks docs/wire. Everything else about it stays right. */
export type AgentFault =
  /** Accepts and never answers CONNECT */
  | "no_ok"
  /** Answers CONNECT only after `FakeAgent.answerConnect()` */
  | "slow_ok"
  /** Answers CONNECT with another line */
  | "bad_ok"
  /** Answers HELLO with another connection's nonce */
  | "wrong_nonce"
  | "wrong_protocol"
  /** Never answers HELLO */
  | "no_hello"
  /** Answers HELLO with bytes that are not JSON */
  | "bad_hello"
  /** Answers a request with bytes that are not JSON */
  | "bad_reply"
  /** Answers a request with half a frame and closes */
  | "half_frame"
  /** Answers a request with a length no frame may have */
  | "huge_length"
  /** Closes when a request comes */
  | "dies_on_request"
  /** Takes a request and never answers */
  | "silent";
