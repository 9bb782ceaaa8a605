import type { AcquireOptions } from "../../lease/types.js";
import { usageError } from "./failure.js";

/** A counted or shared lease, or one for which it waits in order, as `acquire` takes it. */
type Form = Pick<AcquireOptions, "limit" | "mode" | "fair">;

/** The lease that a command is to take: that of a resource in its turn, or the detached one of a handle. */
export type Wanted = { readonly resource: string; readonly form?: Form } | { readonly handle: string };

/** The same, as the options of a command say it. */
export interface FormOptions {
  readonly limit?: number;
  readonly shared?: boolean;
  readonly exclusive?: boolean;
  readonly fair?: boolean;
}

/** What was given by name or by `--attach`: one of the two, as a handle names its resource. */
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
