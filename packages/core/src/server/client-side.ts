import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { Diagnosis, NamedLeases } from "leasehold/etcd/gen/leasehold/own_pb.js";
import type { CoreHost } from "../host/host.js";
import { Connections } from "./accounts/connections.js";
import { type Beside, ClientApi } from "./api/api.js";
import type { ClusterFacts } from "./api/calls/header.js";
import { DiagnosisHandlers } from "./api/diagnosis.js";
import { metricsText } from "./api/http/metrics.js";
import { clientHttp, metricsHttp } from "./api/http/server.js";
import { namedLeaseHandlers } from "./api/named-leases.js";
import { AuditTrail } from "./audit.js";
import type { SignedTokens } from "./auth/signed-tokens.js";
import type { CoreConfig } from "./config/config.js";
import type { Counters } from "./metrics/counters.js";
import { answerBytesMaxOf } from "./new-host.js";
import type { Reports } from "./reports.js";

/** Bound of connections to the metrics port: a few collectors. */
const metricsConnectionsMax = 64;

export interface ClientSideParts {
  readonly config: CoreConfig;
  readonly record: Pick<ClusterFacts, "cluster" | "id">;
  /** Path of the data directory. */
  readonly path: string;
  readonly host: CoreHost;
  readonly counters: Counters;
  /** Returns the metrics of this process. */
  readonly processText: () => string;
  readonly reports: Reports;
  readonly signed: SignedTokens | undefined;
}

/** Assembles the client side: services over gRPC, the gateway and metrics over HTTP/1.1. */
export function clientSide(parts: ClientSideParts): ClientApi {
  const { config, counters, host, path, processText, record, reports, signed } = parts;
  const { cluster, id } = record;
  const { connectionsMax, electionTicks, heartbeatMs, maxConcurrentStreams, quotaBytes, requestBytesMax } =
    config;
  const facts = { cluster, id, diskBytes: () => bytesBelow(path) };
  const connections = {
    clients: new Connections(connectionsMax, (error) =>
      reports.limited("connection-limit", "clients", error, { port: "clients", error }),
    ),
    metrics: new Connections(metricsConnectionsMax, (error) =>
      reports.limited("connection-limit", "metrics", error, { port: "metrics", error }),
    ),
  };
  const metrics = () => {
    const [status, clients] = [host.status(), edge.traffic.bytes];
    const measured = { status, facts, counters, connections: connections.clients, clients, quotaBytes };
    return metricsText(measured) + processText();
  };
  const http: Beside["http"] = (local, room) => {
    const served = { host, local, room, metrics, healthAsked: counters.healthAsked };
    return { clients: clientHttp(served, maxConcurrentStreams, config), metrics: metricsHttp(served) };
  };
  const diagnosis = new DiagnosisHandlers(host, facts, counters, config);
  const own: Beside["own"] = (auth) => [
    [NamedLeases, namedLeaseHandlers(auth)],
    [Diagnosis, diagnosis.handlers()],
  ];
  const unusable = (error: string) => reports.limited("tls-file-unusable", "clients", error, { error });
  const audit: Beside["audit"] = (userOf) => new AuditTrail(reports, userOf);
  const admission = { signed, byCertificate: config.clientTls?.clientCertAuth === true };
  const beside = { audit, counters, own, http, unusable, connections, maxConcurrentStreams, requestBytesMax };
  const electionMs = electionTicks * heartbeatMs;
  const edge = new ClientApi(host, facts, electionMs, answerBytesMaxOf(config), admission, beside);
  return edge;
}

function bytesBelow(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => statSync(join(folder, name), { throwIfNoEntry: false }))
    .reduce((sum, found) => sum + (found?.isFile() ? found.size : 0), 0);
}
