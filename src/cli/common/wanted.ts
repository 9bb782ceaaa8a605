import { usageError } from "./failure.js";

/** The lease that a command is to take: that of a resource in its turn, or the detached one of a handle. */
export type Wanted = { readonly resource: string } | { readonly handle: string };

/** What was given by name or by `--attach`: one of the two, as a handle names its resource. */
export function wantedOf(name: string | undefined, attach: string | undefined): Wanted {
  if (attach === undefined && name !== undefined) return { resource: name };
  if (attach !== undefined && name === undefined) return { handle: attach };
  throw usageError(
    name === undefined
      ? "give the name of a resource, or --attach HANDLE"
      : `--attach takes no name, as the handle has it: ${JSON.stringify(name)}`,
  );
}
