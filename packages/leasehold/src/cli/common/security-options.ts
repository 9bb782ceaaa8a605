import type { SecurityOptions } from "../../runtime/security/options.js";
import type { FleaseOptions } from "../../flease/tcp/types.js";
import { configFailure } from "./config-faults.js";

/** Authentication options, as commander passes them. */
export interface SecurityFlags {
  readonly tlsCa?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly keyFile?: string;
  readonly role?: NonNullable<FleaseOptions["role"]>;
}

/** `undefined` without these options. */
export function securityOf({ tlsCa, tlsCert, tlsKey, keyFile }: SecurityFlags): SecurityOptions {
  if (tlsCa === undefined && tlsCert === undefined && tlsKey === undefined) {
    return keyFile === undefined ? {} : { keyFile };
  }
  if (tlsCa === undefined || tlsCert === undefined || tlsKey === undefined) {
    throw configFailure(
      "CONFIG_CONFLICT",
      "--tls-ca, --tls-cert and --tls-key (tls in a file) are needed together",
    );
  }
  if (keyFile !== undefined)
    throw configFailure(
      "CONFIG_CONFLICT",
      "--key-file (keyFile) and --tls-cert (tls) cannot be used together",
    );
  return { tls: { ca: tlsCa, cert: tlsCert, key: tlsKey } };
}
