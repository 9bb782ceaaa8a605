import { type ErrorCode, LeaseholdError } from "../../lease/errors.js";

/**
 * What Redis' error words mean here. They stand first in an error, or behind a script's name, depending on
 * its version. What is not listed (LOADING, BUSY, CLUSTERDOWN, a broken connection) passes by itself or with
 * a restart.
 */
const codes: readonly (readonly [RegExp, ErrorCode, string?])[] = [
  [/\bOOM\b|No space left/, "STORE_FULL"],
  [/\bREADONLY\b/, "STORE_READ_ONLY"],
  [/\b(?:NOAUTH|NOPERM|WRONGPASS|DENIED)\b|invalid password|without any password/, "STORE_PERMISSION"],
  [
    /\b(?:MOVED|ASK|CROSSSLOT)\b/,
    "STORE_UNFIT",
    "this node of a Redis Cluster does not have the key; give the address of servers that stand alone",
  ],
  [/\bWRONGTYPE\b/, "STORE_FOREIGN", "something else than a hash stands under the key"],
];

export function redisFailure(name: string, error: unknown): LeaseholdError {
  if (error instanceof LeaseholdError) return error;
  const text = textOf(error);
  const [, code, hint] = codes.find(([words]) => words.test(text)) ?? [
    undefined,
    "STORE_UNAVAILABLE" as const,
  ];
  return new LeaseholdError(code, `${name}: ${hint === undefined ? text : `${hint} (${text})`}`);
}

/** A connection that was refused at several addresses is an error without a message of its own. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(textOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
