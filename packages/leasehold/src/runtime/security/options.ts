import type { TlsFiles } from "../options.js";

/**
 * The credentials of a participant, and what it requires of peers: either certificates or a cluster key in
 * the whole cluster. Without either, plain TCP. Files are read again within some seconds of a change, and new
 * connections use their new content.
 */
export interface SecurityOptions {
  tls?: TlsFiles | undefined;
  /** The cluster key, 64 to 128 hexadecimal digits, or lines of `role: digits` with one key for each role. */
  key?: string | undefined;
  /** A file that contains what `key` would. */
  keyFile?: string | undefined;
}
