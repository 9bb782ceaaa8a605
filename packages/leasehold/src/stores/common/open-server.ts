import type { LeaseholdError } from "../../lease/errors.js";
import type { OpenedStore } from "./contract.js";
import { unlessAborted } from "../../common/abort-watch.js";

/** A store's permanent connection to its server. */
interface Link {
  close(): unknown;
}

/** Opens a store on a connection to its server; on failure, closes the connection. */
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
    // Not awaited: requests in flight to a stopped server end later.
    void link.close();
    signal?.throwIfAborted();
    throw failure(error);
  }
}
