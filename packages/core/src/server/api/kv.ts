import type { Ask } from "./calls/ask.js";
import type { UnaryHandlers } from "./calls/header.js";

/** etcd's KV service. */
export function kvHandlers(ask: Ask): UnaryHandlers {
  return {
    Range: ask("range"),
    Put: ask("put"),
    DeleteRange: ask("deleteRange"),
    Txn: ask("txn"),
    Compact: ask("compact"),
  };
}
