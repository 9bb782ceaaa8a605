import type { LeaseholdError } from "../../lease/errors.js";
import type { OpenedStore } from "./contract.js";
import { unlessAborted } from "../../common/abort-watch.js";

/** The way to a server, which a store keeps open. */
interface Link {
  close(): unknown;
}

/** Opens a store on a way to its server, and closes that if it comes to nothing. */
export async function openOverLink(
  link: Link,
  signal: AbortSignal | undefined,
  open: () => Promise<OpenedStore>,
  failure: (error: unknown) => LeaseholdError,
): Promise<OpenedStore> {
  try {
    signal?.throwIfAborted();
    return await unlessAborted(open(), signal);
  } catch (error) {
    // Not waited for: what is under way at a server that has stopped ends later.
    void link.close();
    signal?.throwIfAborted();
    throw failure(error);
  }
}
