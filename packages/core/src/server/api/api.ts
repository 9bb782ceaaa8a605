import type { Socket } from "node:net";
import type { DescService } from "@bufbuild/protobuf";
import type { FairShares } from "leasehold/common";
import type { SignedTokens } from "../auth/signed-tokens.js";
import { Auth } from "leasehold/etcd/gen/etcd/auth_pb.js";
import { Cluster, Maintenance } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import { Health } from "leasehold/etcd/gen/etcd/health_pb.js";
import { KV, Lease, Watch } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { Election } from "leasehold/etcd/gen/etcd/v3election_pb.js";
import { Lock } from "leasehold/etcd/gen/etcd/v3lock_pb.js";
import type { TlsFiles } from "../wire/tls/tls-files.js";
import type { CoreHost } from "../../host/host.js";
import type { Counters } from "../metrics/counters.js";
import type { Traffic } from "../wire/traffic.js";
import type { Connections } from "../accounts/connections.js";
import { ClientPort, type Http1 } from "../wire/port.js";
import type { ListenUrl } from "../wire/urls.js";
import type { Handlers } from "../wire/rpc/call.js";
import { GrpcServer } from "../wire/rpc/server.js";
import { Answers } from "./calls/answers.js";
import { AuthHandlers } from "./auth.js";
import { CredentialsReader } from "./calls/credentials.js";
import { electionHandlers } from "./election.js";
import { Frozen } from "./calls/frozen.js";
import type { ClusterFacts, UnaryHandlers } from "./calls/header.js";
import { healthHandlers } from "./health.js";
import { keepAliveHandler, leaseHandlers } from "./lease.js";
import { LocalClient } from "./calls/local.js";
import { clusterHandlers } from "./cluster.js";
import { kvHandlers } from "./kv.js";
import { lockHandlers } from "./lock.js";
import { MaintenanceHandlers } from "./maintenance.js";
import { snapshotHandler } from "./snapshot.js";
import { methodsOf } from "./calls/methods.js";
import { Streams } from "./calls/streams.js";
import { asking } from "./calls/ask.js";
import { watchHandler } from "./watch.js";

/** As etcd: what the core refuses as too large has to arrive, so that it can be refused in its words. */
const messageOverheadBytes = 512 * 1024;

/** When the server stops, what is under way may take so long. */
const closeMs = 1_000;

/** How it is found out for whom a call is. */
export interface Admission {
  /** If tokens are of that kind; else servers keep them. */
  readonly signed?: SignedTokens | undefined;
  /** The common names of clients' certificates are users. */
  readonly byCertificate: boolean;
}

/** What stands beside etcd's services. */
export interface Beside {
  /** Services of our own. */
  readonly own: (auth: AuthHandlers) => readonly [DescService, UnaryHandlers][];
  readonly counters: Counters;
  readonly requestBytesMax: number;
  /** Of one connection, also such as have been answered and not been taken in: clients wait with more. */
  readonly maxConcurrentStreams: number;
  /**
   * What takes connections of HTTP/1.1, and keeps what it keeps in the room of gRPC's: for clients, and where
   * metrics are served alone.
   */
  http(local: LocalClient, held: FairShares<string>): Readonly<Record<"clients" | "metrics", Http1>>;
  /** For people: a file of TLS cannot be used as it is now. */
  readonly unusable: (text: string) => void;
  /** Of clients, and where metrics are served alone. */
  readonly connections: Readonly<Record<"clients" | "metrics", Connections>>;
}

/** The services of etcd's API that the core has, over gRPC. */
export class ClientApi {
  readonly #server: GrpcServer;
  readonly #answers: Answers;
  readonly #streams: Streams;
  readonly #port: ClientPort;
  readonly #metricsPort: ClientPort;
  readonly #local: LocalClient;
  readonly #http: readonly Http1[];

  /** @param answerBytesMax of one answer */
  constructor(
    host: CoreHost,
    facts: ClusterFacts,
    electionMs: number,
    answerBytesMax: number,
    { byCertificate, signed }: Admission,
    { connections, counters, http, maxConcurrentStreams, own, requestBytesMax, unusable }: Beside,
  ) {
    this.#server = new GrpcServer(maxConcurrentStreams, requestBytesMax + messageOverheadBytes);
    this.#streams = new Streams(host, electionMs);
    this.#local = new LocalClient((path) => this.#server.methodAt(path));
    const { clients, metrics } = http(this.#local, this.#server.held);
    this.#http = [clients, metrics];
    const behind = { http1: clients.take, http2: (socket: Socket) => this.#server.serve(socket) };
    this.#port = new ClientPort(behind, connections.clients, unusable);
    const nobody = (socket: Socket) => void socket.destroy();
    this.#metricsPort = new ClientPort({ http1: metrics.take, http2: nobody }, connections.metrics);
    const reader = new CredentialsReader(signed, byCertificate);
    this.#answers = new Answers(answerBytesMax);
    const ask = asking(host, this.#answers, electionMs, reader);
    const auth = new AuthHandlers(host, reader, signed, electionMs);
    const frozen = new Frozen(electionMs, reader);
    const maintenance = new MaintenanceHandlers(host, facts, electionMs, frozen);
    const maintained = auth.rootOnly(maintenance.handlers(), ["Defragment", "MoveLeader", "Downgrade"]);
    const services: [DescService, Handlers][] = [
      [KV, kvHandlers(ask)],
      [Watch, { Watch: watchHandler(host, this.#streams, electionMs, reader) }],
      [Lease, { ...leaseHandlers(ask), LeaseKeepAlive: keepAliveHandler(host, this.#streams, electionMs) }],
      [Cluster, clusterHandlers(ask)],
      [Maintenance, { Alarm: ask("alarm"), ...maintained, Snapshot: snapshotHandler(host, frozen) }],
      [Auth, auth.handlers()],
      [Lock, lockHandlers(this.#local)],
      [Election, electionHandlers(this.#local)],
      [Health, healthHandlers(host, this.#streams)],
      ...own(auth),
    ];
    // A method without a handler answers `UNIMPLEMENTED`.
    for (const [service, handlers] of services)
      this.#server.add(service.typeName, methodsOf(service, handlers, counters));
  }

  /** Of gRPC's clients. */
  get traffic(): Traffic {
    return this.#server.traffic;
  }

  /** @throws LeaseholdError `INVALID_CONFIG` if an address cannot be had */
  async listen(
    urls: readonly ListenUrl[],
    metricsUrls: readonly ListenUrl[],
    tls: TlsFiles | undefined,
  ): Promise<void> {
    for (const url of urls) await this.#port.listen(url, tls);
    for (const url of metricsUrls) await this.#metricsPort.listen(url, tls);
  }

  /** Ends the streams, lets what is under way end, and then all the rest. */
  async close(): Promise<void> {
    this.#streams.stop();
    for (const front of [this.#port, this.#metricsPort]) front.stop();
    await this.#server.leave(closeMs);
    this.#local.close();
    this.#answers.close();
    for (const front of [this.#port, this.#metricsPort]) front.close();
    for (const http of this.#http) http.close();
  }
}
