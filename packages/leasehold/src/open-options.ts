import type { CoreOptions } from "./etcd/open.js";
import type { FleaseOptions } from "./flease/tcp/types.js";
import type { ParticipantOptions } from "./runtime/options.js";
import type { FarmOptions } from "./stores/farm-leases.js";

export type { CoreOptions, FarmOptions, FleaseOptions, ParticipantOptions };

/** Leases in memory have only the options common to all grounds. */
export type MemoryOptions = ParticipantOptions;

/** The options of all grounds, for programs that get the address at run time. */
export type OpenOptions = FleaseOptions & FarmOptions & CoreOptions & MemoryOptions;

/**
 * The options of the ground that an address names. `OpenOptions` if the scheme is not known at compile time:
 * the ground then refuses options that it does not support with `INVALID_CONFIG`.
 */
export type OptionsOf<Url extends string> = [Url] extends [`flease://${string}`]
  ? FleaseOptions
  : [Url] extends [`delta+${string}` | `flease+${string}`]
    ? FarmOptions
    : [Url] extends [`core://${string}`]
      ? CoreOptions
      : [Url] extends [`memory:${string}`]
        ? MemoryOptions
        : OpenOptions;
