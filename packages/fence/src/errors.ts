/** The codes of a {@link FenceError}. */
export const fenceCodes = {
  TOKEN_STALE: "A greater token has been here: another has the lease now.",
  TOKEN_INVALID: "A token is a bigint of at least 1 and below 2^63, in text a decimal number without a sign.",
  TOKEN_MISSING: "The request has no token.",
  RESOURCE_UNFIT: "The resource lacks what the check needs, or has something else in its place.",
  WRITE_UNDONE: "The write's transaction was rolled back or had ended, although the write reported no error.",
} as const;

export type FenceCode = keyof typeof fenceCodes;

/** A refusal of a fence. Programs test `code`; people read `message`. */
export class FenceError extends Error {
  readonly code: FenceCode;

  constructor(code: FenceCode, message: string = fenceCodes[code], options?: ErrorOptions) {
    super(message, options);
    this.name = "FenceError";
    this.code = code;
  }
}

export function stale(fence: string, token: bigint, cause?: unknown): FenceError {
  const message = `token ${token} is refused at ${JSON.stringify(fence)}: a greater one has been here`;
  return new FenceError("TOKEN_STALE", message, cause === undefined ? undefined : { cause });
}

/** Whether an error, or one of its causes, has this property. */
export function hasCause(error: unknown, isIt: (error: Error) => boolean): boolean {
  let cause = error;
  // Drivers wrap an error once or twice. The bound also ends a cycle of causes.
  for (let depth = 0; depth < 8 && cause instanceof Error; depth++) {
    if (isIt(cause)) return true;
    cause = cause.cause;
  }
  return false;
}
