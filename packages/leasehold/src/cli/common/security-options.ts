import { Option } from "./commander.js";
import type { Command } from "./commander.js";
import type { SecurityOptions } from "../../runtime/security/options.js";
import type { FleaseOptions } from "../../flease/tcp/types.js";
import { usageError } from "./failure.js";

/** Authentication options, as commander passes them. */
export interface SecurityFlags {
  readonly tlsCa?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly keyFile?: string;
  readonly role?: NonNullable<FleaseOptions["role"]>;
}

const fileOptions = [
  { flag: "--tls-ca", variable: "LEASEHOLD_TLS_CA", what: "certificate of the cluster's authority, PEM" },
  { flag: "--tls-cert", variable: "LEASEHOLD_TLS_CERT", what: "our certificate, PEM" },
  { flag: "--tls-key", variable: "LEASEHOLD_TLS_KEY", what: "our certificate's private key, PEM" },
  {
    flag: "--key-file",
    variable: "LEASEHOLD_KEY_FILE",
    what: "the cluster key, instead of certificates; at core, the private key of --cert-file",
  },
] as const;

/** The authentication options of every command. */
export function addSecurityOptions(program: Command): void {
  for (const { flag, variable, what } of fileOptions) {
    program.addOption(new Option(`${flag} <file>`, what).env(variable));
  }
  program.addOption(
    new Option(
      "--role <role>",
      "what to be; an observer takes no leases (default: what the credentials allow)",
    )
      .choices(["client", "observer"])
      .env("LEASEHOLD_ROLE"),
  );
}

/** Undefined without such options. */
export function securityOf({ tlsCa, tlsCert, tlsKey, keyFile }: SecurityFlags): SecurityOptions {
  if (tlsCa === undefined && tlsCert === undefined && tlsKey === undefined) {
    return keyFile === undefined ? {} : { keyFile };
  }
  if (tlsCa === undefined || tlsCert === undefined || tlsKey === undefined) {
    throw usageError("--tls-ca, --tls-cert and --tls-key are needed together");
  }
  if (keyFile !== undefined) throw usageError("--key-file and --tls-cert cannot be used together");
  return { tls: { ca: tlsCa, cert: tlsCert, key: tlsKey } };
}

/** The local cluster is a demonstration on loopback without credentials, whatever the environment has. */
export function environmentWithoutSecurity(): NodeJS.ProcessEnv {
  const ours = new Set<string>(["LEASEHOLD_ROLE", ...fileOptions.map(({ variable }) => variable)]);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.has(name)));
}
