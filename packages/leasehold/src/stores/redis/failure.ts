import type { LeaseholdError } from "../../lease/errors.js";
import { type Meaning, serverFailure } from "../common/server-failure.js";

/**
 * What Redis' error words mean here. They stand first in an error, or behind a script's name, depending on
 * its version. What is not listed (LOADING, BUSY, CLUSTERDOWN, a broken connection) passes by itself or with
 * a restart.
 */
const meanings: readonly (readonly [RegExp, Meaning])[] = [
  [/\bOOM\b|No space left/, ["STORE_FULL"]],
  [/\bREADONLY\b/, ["STORE_READ_ONLY"]],
  [/\b(?:NOAUTH|NOPERM|WRONGPASS|DENIED)\b|invalid password|without any password/, ["STORE_PERMISSION"]],
  [
    /\b(?:MOVED|ASK|CROSSSLOT)\b/,
    [
      "STORE_UNFIT",
      "this node of a Redis Cluster does not have the key; give the address of servers that stand alone",
    ],
  ],
  [/\bWRONGTYPE\b/, ["STORE_FOREIGN", "something else than a hash stands under the key"]],
];

export function redisFailure(name: string, error: unknown): LeaseholdError {
  return serverFailure(name, error, (text) => meanings.find(([words]) => words.test(text))?.[1]);
}
