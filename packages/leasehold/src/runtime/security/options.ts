import type { TlsFiles } from "../options.js";

/**
 * How a participant proves who it is, and what it demands of others: certificates or a cluster key, the same
 * way in the whole cluster. Without either, plain TCP. Files are read anew within some seconds of a change,
 * and new connections use what is in them then.
 */
export interface SecurityOptions {
  tls?: TlsFiles | undefined;
  /** The cluster key, 64 to 128 hexadecimal digits, or lines of `role: digits` with one key for each role. */
  key?: string | undefined;
  /** A file that holds what `key` would. */
  keyFile?: string | undefined;
}
