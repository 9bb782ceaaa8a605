import type { LeaseholdError } from "../../lease/errors.js";
import type { OpenedStore } from "./contract.js";
import { unlessAborted } from "../../common/abort-watch.js";

/** The connection to a server that a store keeps open. */
interface Link {
  close(): unknown;
}

/** Opens a store on a connection to its server, and closes the connection on failure. */
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
    // Not awaited: requests in flight at a server that has stopped end later.
    void link.close();
    signal?.throwIfAborted();
    throw failure(error);
  }
}
