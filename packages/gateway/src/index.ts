/** Leases over HTTP and JSON, for programs in every language. */
import { randomBytes } from "node:crypto";
import type { Leases } from "leasehold";
import { LeaseholdError } from "leasehold/common";
import type { Metrics } from "leasehold/metrics";
import {
  FileWatch,
  type Logger,
  isLoopback,
  parseAddress,
  realWorld,
  silent,
  textOf,
  watchCertificate,
  watchMs,
} from "leasehold/runtime";
import { HttpServer } from "./http/server.js";
import { type IssuerOptions, openIssuer } from "./http/token-issuer.js";
import { eventLog } from "./logs/log-events.js";
import { gatewayCatalogue } from "./metrics/catalogue.js";
import { GatewayMetrics } from "./metrics/gateway-metrics.js";
import { type Users, parseUsers } from "./rights/users.js";
import { limitsDefault } from "./sessions/limits.js";
import { Gateway } from "./sessions/gateway.js";
import { WatchHub } from "./watch/hub.js";

export type { IssuerOptions } from "./http/token-issuer.js";
export type { GrantAnswer, LeaseAnswer, SessionAnswer, WaitingAnswer } from "./sessions/answers.js";

/** How a gateway is served. */
export interface GatewayOptions {
  /** `host:port`; port 0 takes a free one. */
  readonly address: string;
  /**
   * A file of users with their rights, read again when it changes. Absent: a client that reaches the port has
   * all rights.
   */
  readonly usersFile?: string | undefined;
  /** Tokens of this issuer authenticate users whose line in the file has `jwt`. Needs `usersFile`. */
  readonly jwt?: IssuerOptions | undefined;
  /** Files of the certificate and its key, and of the CA of clients' certificates. Absent: no TLS. */
  readonly tls?:
    | { readonly cert: string; readonly key: string; readonly clientCa?: string | undefined }
    | undefined;
  /**
   * Allows a gateway without users or without TLS on an address that other machines can reach. Default false:
   * such a gateway refuses to start.
   */
  readonly insecure?: boolean | undefined;
  readonly logger?: Logger | undefined;
  /** Counts requests, refusals and sessions there, and reports in `/readyz` whether the ground answers. */
  readonly metrics?: Metrics | undefined;
}

export interface RunningGateway {
  /** The URL, with the actual port. */
  readonly url: string;
  /** The numbers of sessions, of watches, and of leases that are held or waited for. */
  status(): { readonly sessions: number; readonly watches: number; readonly leases: number };
  /** Stops the gateway. Its clients' leases are not released; they expire. `leases` stay open. */
  close(): Promise<void>;
}

/**
 * Serves leases to clients over HTTP (`docs/gateway.md`).
 *
 * @throws LeaseholdError `INVALID_CONFIG`: a file cannot be used, the gateway cannot listen at the address,
 *   or other machines can reach the address and there are no users or there is no TLS.
 * @example
 * ```ts
 * const leases = await open("flease://10.0.0.1:7400");
 * const gateway = await startGateway(leases, { address: "127.0.0.1:7470" });
 * console.log(gateway.url); // http://127.0.0.1:7470
 * ```
 */
export async function startGateway(leases: Leases, options: GatewayOptions): Promise<RunningGateway> {
  const address = parseAddress(options.address);
  const { usersFile, jwt, tls, insecure = false, logger = silent } = options;
  if (!isLoopback(address.host) && !insecure && (usersFile === undefined || tls === undefined)) {
    const why = `${options.address} can be reached from other machines: it needs --users-file, --tls-cert and --tls-key, or --insecure`;
    throw new LeaseholdError("INVALID_CONFIG", why);
  }
  if (jwt !== undefined && usersFile === undefined)
    throw new LeaseholdError("INVALID_CONFIG", "tokens prove users: name their file, --users-file");
  const world = realWorld();
  const log = eventLog(logger);
  const newId = (): string => randomBytes(18).toString("base64url");
  const metrics = options.metrics && new GatewayMetrics(options.metrics.define(gatewayCatalogue));
  const gateway = new Gateway(leases, { ...world, newId }, limitsDefault, (cause) =>
    metrics?.sessionEnded(cause),
  );
  const hub = new WatchHub(leases, world.timers, newId);
  const users = usersFile === undefined ? undefined : await watchUsers(usersFile, logger);
  const issuer = jwt && (await openIssuer(jwt, logger));
  const certificate =
    tls && (await watchCertificate({ cert: tls.cert, key: tls.key, ca: tls.clientCa }, logger));
  const server = new HttpServer({
    leases,
    gateway,
    hub,
    users: () => users?.current,
    issuer,
    ...(certificate !== undefined && { tls: certificate.pems }),
    log,
    metrics,
    nowMs: () => world.clock.monotonicMs(),
  });
  if (certificate !== undefined) certificate.changed = (pems) => server.setTls(pems);
  const stops = [
    options.metrics?.observeHealth(() => server.checks()),
    metrics?.watch(() => ({
      sessions: gateway.sessions,
      watches: server.streams,
      quotas: { ...server.quotas, ...gateway.quotas },
    })),
  ];
  const end = (): void => {
    for (const stop of stops) stop?.();
    users?.close();
    issuer?.close();
    certificate?.close();
    hub.close();
  };
  try {
    const at = await server.listen(address);
    const url = `${tls === undefined ? "http" : "https"}://${at}`;
    log.log("gateway-serving", `the gateway is at ${url}`, { url });
    return {
      url,
      status: () => ({ sessions: gateway.sessions, watches: server.streams, leases: gateway.wanted }),
      close: async () => {
        const { sessions, wanted } = gateway;
        log.log("gateway-stopping", `the gateway stops with ${sessions} sessions`, {
          sessions,
          leases: wanted,
        });
        end();
        await gateway.close();
        await server.close();
      },
    };
  } catch (error) {
    end();
    throw error;
  }
}

interface Watched<T> {
  readonly current: T;
  close(): void;
}

/** The current users. A file that becomes invalid leaves the previous users in place. */
function watchUsers(file: string, logger: Logger): Promise<Watched<Users>> {
  const read = async (): Promise<Users> => parseUsers(await textOf(file));
  return FileWatch.start({ paths: [file], read, world: realWorld(), logger, everyMs: watchMs });
}
