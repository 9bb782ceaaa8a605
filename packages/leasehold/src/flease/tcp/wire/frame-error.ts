/** Why a frame was refused. The names are stable: counters and the peer's REJECT carry them. */
export const frameErrorCauses = [
  /** The length prefix says more than this kind of frame may have, or nothing at all. */
  "length",
  /** A kind of frame that does not exist, or not at this point of the conversation. */
  "kind",
  /** The HELLO or WELCOME does not begin with the magic bytes: whatever speaks there, it is not Leasehold. */
  "magic",
  /** A field reaches beyond the end of its frame. */
  "truncated",
  /** Bytes are left over after the last field. */
  "trailing",
  /** Text that is not UTF-8. */
  "utf8",
  /** Text that is empty or longer than its field may be, or a name with a control character. */
  "text",
  /** A number that is not finite, negative, beyond 2^53 or not whole where it has to be. */
  "number",
  /** A code outside its table: a kind of message, a refusal, a state of a lease, a role. */
  "code",
  /** JSON that does not parse. */
  "json",
  /** A message that this peer has no business sending: a reply of a client, a request to a client. */
  "direction",
  /** A message that an observer may not send: anything but a question. */
  "role",
  /** TLS where plain frames should be. */
  "tls",
] as const;

export type FrameErrorCause = (typeof frameErrorCauses)[number];

/** What a decoder throws, and the only thing it throws. The connection it came from is closed. */
export class FrameError extends Error {
  override readonly cause: FrameErrorCause;

  constructor(cause: FrameErrorCause, detail: string) {
    super(`${cause}: ${detail}`);
    this.name = "FrameError";
    this.cause = cause;
  }
}
