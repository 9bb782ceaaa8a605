import type { FenceCode } from "./errors.js";
import type { Fence } from "./fence.js";
import { parseToken } from "./token.js";

/** The header, or the key of gRPC's metadata, with the token in decimal. */
export const tokenHeader = "x-fencing-token";

/** The part of a fence that a guard queries. */
export type Greatest = Pick<Fence<never>, "greatest">;

export interface GuardOptions<Asked> {
  /**
   * The fence that the handler writes through, or a function that finds it from the request. The guard then
   * refuses a stale token before it calls the handler. Without this option, or when a greater token arrives
   * later, the write itself refuses.
   */
  readonly fence?: Greatest | ((request: Asked) => Greatest);
}

export type Refusal = FenceCode & ("TOKEN_MISSING" | "TOKEN_INVALID" | "TOKEN_STALE");

/** Returns the request's token, or the refusal of it. */
export async function admit<Asked>(
  header: unknown,
  request: Asked,
  { fence }: GuardOptions<Asked>,
): Promise<bigint | Refusal> {
  if (header === null || header === undefined) return "TOKEN_MISSING";
  // Servers join a repeated header to "5, 6" or to a list. That is not a token, even if both values are
  // equal.
  if (typeof header !== "string") return "TOKEN_INVALID";
  let token: bigint;
  try {
    token = parseToken(header);
  } catch {
    return "TOKEN_INVALID";
  }
  if (fence === undefined) return token;
  const greatest = await (typeof fence === "function" ? fence(request) : fence).greatest();
  return token < greatest ? "TOKEN_STALE" : token;
}

// Tests the code, not the class: the handler's fence may come from another copy of this package.
export function isStale(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "TOKEN_STALE";
}
