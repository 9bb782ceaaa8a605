import { Option } from "commander";
import type { Command } from "commander";
import type { SecurityOptions } from "../../flease/tcp/security/options.js";
import type { FleaseOptions } from "../../flease/tcp/types.js";
import { usageError } from "./failure.js";

/** How to prove who we are, as commander hands it over. */
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
  { flag: "--key-file", variable: "LEASEHOLD_KEY_FILE", what: "the cluster key, instead of certificates" },
] as const;

/** The options of every command that say how to prove who we are. */
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

/** For a command that is no participant, or decides itself what it is. */
export function refuseRole(command: Command): void {
  if (command.parent?.getOptionValueSource("role") !== "cli") return;
  throw usageError(`--role has no meaning for ${command.name()}`);
}

/** For a command that starts a cluster of its own, on loopback. */
export function refuseSecurity(command: Command): void {
  const given = fileOptions.find(({ flag }) => {
    const name = flag.slice(2).replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    return command.parent?.getOptionValueSource(name) === "cli";
  });
  if (given !== undefined) {
    throw usageError(
      `${given.flag} has no meaning for ${command.name()}: its cluster is on this machine only`,
    );
  }
}

/** Nothing when nothing was given. */
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

/**
 * The local cluster is for looking at, on loopback and without credentials, whatever the environment says.
 */
export function environmentWithoutSecurity(): NodeJS.ProcessEnv {
  const ours = new Set<string>(["LEASEHOLD_ROLE", ...fileOptions.map(({ variable }) => variable)]);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.has(name)));
}
