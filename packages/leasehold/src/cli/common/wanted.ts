import type { AcquireOptions } from "../../lease/types.js";
import { usageError } from "./failure.js";

/** The options of `acquire` for a counted, shared or fair lease. */
type Form = Pick<AcquireOptions, "limit" | "mode" | "fair">;

/** The lease that a command needs: a resource to acquire, or the handle of a detached lease. */
export type Wanted = { readonly resource: string; readonly form?: Form } | { readonly handle: string };

/** The same, as options of a command. */
export interface FormOptions {
  readonly limit?: number;
  readonly shared?: boolean;
  readonly exclusive?: boolean;
  readonly fair?: boolean;
}

/** The lease given by either a name or `--attach`, not both, because a handle contains its resource. */
export function wantedOf(
  name: string | undefined,
  attach: string | undefined,
  options: FormOptions = {},
): Wanted {
  if (attach === undefined && name !== undefined) return { resource: name, form: formOf(options) };
  if (attach !== undefined && name === undefined) return { handle: attach };
  throw usageError(
    name === undefined
      ? "give the name of a resource, or --attach HANDLE"
      : `--attach takes no name, as the handle has it: ${JSON.stringify(name)}`,
  );
}

function formOf({ limit, shared, exclusive, fair }: FormOptions): Form {
  const mode = shared === true ? "shared" : exclusive === true ? "exclusive" : undefined;
  return {
    ...(limit !== undefined && { limit }),
    ...(mode !== undefined && { mode }),
    ...(fair !== undefined && { fair }),
  };
}
