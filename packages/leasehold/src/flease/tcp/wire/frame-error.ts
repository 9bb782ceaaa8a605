/** Causes for refusing a frame. The names are stable: counters and REJECT carry them. */
export const frameErrorCauses = [
  /** The length prefix is zero, or exceeds the bound of this kind of frame. */
  "length",
  /** An unknown kind of frame, or one not allowed at this point of the conversation. */
  "kind",
  /** HELLO or WELCOME does not begin with the magic bytes: the peer is not Leasehold. */
  "magic",
  /** A field extends beyond the end of its frame. */
  "truncated",
  /** Bytes follow the last field. */
  "trailing",
  /** Text that is not UTF-8. */
  "utf8",
  /** Empty or too long text, or a name with a control character. */
  "text",
  /** A number that is not finite, is negative, is beyond 2^53, or is not whole where it must be. */
  "number",
  /** A code outside its table: kind of message, refusal, state of a lease, role. */
  "code",
  /** JSON that does not parse. */
  "json",
  /** A message in the wrong direction: a reply from a client, a request to a client. */
  "direction",
  /** A message that an observer may not send: anything but a query. */
  "role",
  /** TLS where plain frames are expected. */
  "tls",
] as const;

export type FrameErrorCause = (typeof frameErrorCauses)[number];

/** The only error that decoders throw. The connection it came from is closed. */
export class FrameError extends Error {
  override readonly cause: FrameErrorCause;

  constructor(cause: FrameErrorCause, detail: string) {
    super(`${cause}: ${detail}`);
    this.name = "FrameError";
    this.cause = cause;
  }
}
