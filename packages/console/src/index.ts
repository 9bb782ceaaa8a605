/** A page that shows which leases are held, by whom, since when, and why a lease is unavailable. */
import { readFileSync } from "node:fs";
import type { Leases } from "leasehold";
import { type GroundStatus, type Settings, groundStatus } from "leasehold/cli";
import { LeaseholdError } from "leasehold/common";
import { isLoopback, parseAddress } from "leasehold/runtime";
import { withoutSecrets } from "./record/endpoints.js";
import { HttpServer } from "./server/http.js";
import { Observer } from "./server/observer.js";
import { hostsOf } from "./server/web-server.js";

/** The settings of a console. */
export interface ConsoleOptions {
  /** `host:port`; port 0 takes a free one. */
  readonly address: string;
  /** Other host names by which browsers reach it, for example behind a proxy. */
  readonly hostNames?: readonly string[];
  /**
   * A file with the password that browsers must send. Required unless the address is reachable from this
   * machine only.
   */
  readonly passwordFile?: string;
  /** Lets the page release, hand over and break leases. Default false: the page is read-only. */
  readonly allowChanges?: boolean;
}

export interface RunningConsole {
  /** The URL, with the actual port. */
  readonly url: string;
  /** Stops the console; `leases` stay open. */
  close(): Promise<void>;
}

/**
 * Serves a console of open leases.
 *
 * @param settings the command's settings, which list the members, stores or servers
 * @throws LeaseholdError `INVALID_CONFIG`: the console cannot listen at the address or read the password, or
 *   other machines can reach the address and there is no password.
 */
export async function startConsole(
  leases: Leases,
  settings: Settings,
  options: ConsoleOptions,
  askGround: () => Promise<GroundStatus> = () => groundStatus(settings, leases),
): Promise<RunningConsole> {
  const address = parseAddress(options.address);
  const password = passwordOf(options.passwordFile);
  if (!isLoopback(address.host) && password === undefined)
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `${options.address} can be reached from other machines: --password-file must name a file with a password`,
    );
  const observer = new Observer({ leases, askGround });
  const server = new HttpServer({
    leases,
    observer,
    access: {
      hosts: hostsOf(address.host, options.hostNames),
      ...(password !== undefined && { password }),
    },
    allowChanges: options.allowChanges === true,
    endpoints: settings.endpoints.map(withoutSecrets).join(", "),
  });
  try {
    const at = await server.listen(address);
    const close = async (): Promise<void> => {
      await Promise.all([server.close(), observer.close()]);
    };
    return { url: `http://${at}/`, close };
  } catch (error) {
    await observer.close();
    throw error;
  }
}

function passwordOf(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  let password: string;
  try {
    password = readFileSync(file, "utf8").trim();
  } catch (cause) {
    throw new LeaseholdError("INVALID_CONFIG", `--password-file ${file} cannot be read`, { cause });
  }
  if (password.length < 8)
    throw new LeaseholdError("INVALID_CONFIG", `the password in ${file} has fewer than 8 characters`);
  return password;
}
