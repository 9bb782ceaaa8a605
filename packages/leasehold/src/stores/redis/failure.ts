import type { LeaseholdError } from "../../lease/errors.js";
import { type Meaning, serverFailure } from "../common/server-failure.js";

/**
 * The meanings of Redis' error words. Depending on the version, they come first in an error or after a
 * script's name. Any other error (LOADING, BUSY, CLUSTERDOWN, a broken connection) is transient or needs a
 * restart.
 */
const meanings: readonly (readonly [RegExp, Meaning])[] = [
  [/\bOOM\b|No space left/, ["STORE_FULL"]],
  [/\bREADONLY\b/, ["STORE_READ_ONLY"]],
  [/\b(?:NOAUTH|NOPERM|WRONGPASS|DENIED)\b|invalid password|without any password/, ["STORE_PERMISSION"]],
  [
    /\b(?:MOVED|ASK|CROSSSLOT)\b/,
    [
      "STORE_UNFIT",
      "this node of a Redis Cluster does not have the key; give the address of a standalone server",
    ],
  ],
  [/\bWRONGTYPE\b/, ["STORE_FOREIGN", "the key does not hold a hash"]],
];

export function redisFailure(name: string, error: unknown): LeaseholdError {
  return serverFailure(name, error, (text) => meanings.find(([words]) => words.test(text))?.[1]);
}
