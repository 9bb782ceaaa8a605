import type { Socket } from "node:net";
import type { DescService } from "@bufbuild/protobuf";
import { Room } from "leasehold/common";
import type { SignedTokens } from "../auth/signed-tokens.js";
import { Auth } from "leasehold/etcd/gen/etcd/auth_pb.js";
import { Cluster, Maintenance } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import { Health } from "leasehold/etcd/gen/etcd/health_pb.js";
import { KV, Lease, Watch } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { Election } from "leasehold/etcd/gen/etcd/v3election_pb.js";
import { Lock } from "leasehold/etcd/gen/etcd/v3lock_pb.js";
import type { TlsFiles } from "../wire/tls/tls-files.js";
import type { CoreHost } from "../../host/host.js";
import { tooManyRequests } from "../../state/errors.js";
import type { Counters } from "../metrics/counters.js";
import type { Traffic } from "../wire/traffic.js";
import type { Connections } from "../accounts/connections.js";
import { ClientPort, type Http1 } from "../wire/port.js";
import type { ListenUrl } from "../wire/urls.js";
import type { CodedError, Handlers, UnaryCall } from "../wire/rpc/call.js";
import type { Audit } from "./calls/count-calls.js";
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

/**
 * As in etcd: a request that the core refuses as too large must still arrive, to be refused with etcd's
 * message.
 */
const messageOverheadBytes = 512 * 1024;

/** Memory of calls, and of requests not taken by a handler yet. */
const requestsBytesMax = 256 * 1024 * 1024;

/** Draining time when the server stops, ms. */
const closeMs = 1_000;

/** Authentication of calls. */
export interface Admission {
  /** Set if tokens are signed; otherwise servers keep tokens. */
  readonly signed?: SignedTokens | undefined;
  /** Whether the common name of a client's certificate is its user. */
  readonly byCertificate: boolean;
}

/** Services and settings in addition to etcd's services. */
export interface Beside {
  /** Leasehold's own services. */
  readonly own: (auth: AuthHandlers) => readonly [DescService, UnaryHandlers][];
  readonly counters: Counters;
  readonly requestBytesMax: number;
  /** Bound per connection, including answered streams with unread output. Clients queue further calls. */
  readonly maxConcurrentStreams: number;
  /**
   * Handlers of HTTP/1.1 connections, for clients and for the metrics port. They share the room for requests
   * with gRPC.
   */
  http(local: LocalClient, room: Room<CodedError>): Readonly<Record<"clients" | "metrics", Http1>>;
  /** @param userOf returns the authenticated user of a call; empty: nobody */
  readonly audit: (userOf: (call: Pick<UnaryCall, "metadata" | "peer">) => string | Promise<string>) => Audit;
  /** Logs that a TLS file is unusable at present. */
  readonly unusable: (text: string) => void;
  /** Connections of clients, and of the metrics port. */
  readonly connections: Readonly<Record<"clients" | "metrics", Connections>>;
}

type Found = ReturnType<CredentialsReader["of"]>;

function userOf(host: CoreHost, found: Found): string | Promise<string> {
  if (found instanceof Promise) return found.then((credentials) => userOf(host, credentials));
  if (found === undefined) return "";
  return found.kind === "user" ? found.user : (host.userOf(found.token) ?? "");
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

  /** @param answerBytesMax bound of one answer */
  constructor(
    host: CoreHost,
    facts: ClusterFacts,
    electionMs: number,
    answerBytesMax: number,
    { byCertificate, signed }: Admission,
    {
      audit: auditOf,
      connections,
      counters,
      http,
      maxConcurrentStreams,
      own,
      requestBytesMax,
      unusable,
    }: Beside,
  ) {
    const room = new Room(requestsBytesMax, tooManyRequests);
    this.#server = new GrpcServer(maxConcurrentStreams, requestBytesMax + messageOverheadBytes, room);
    this.#streams = new Streams(host, electionMs);
    this.#local = new LocalClient((path) => this.#server.methodAt(path));
    const { clients, metrics } = http(this.#local, room);
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
    const audit = auditOf((call) => userOf(host, reader.of(call)));
    // A method without a handler answers `UNIMPLEMENTED`.
    for (const [service, handlers] of services)
      this.#server.add(service.typeName, methodsOf(service, handlers, counters, audit));
  }

  /** Traffic of gRPC clients. */
  get traffic(): Traffic {
    return this.#server.traffic;
  }

  /** @throws LeaseholdError `INVALID_CONFIG` if an address is unavailable */
  async listen(
    urls: readonly ListenUrl[],
    metricsUrls: readonly ListenUrl[],
    tls: TlsFiles | undefined,
  ): Promise<void> {
    for (const url of urls) await this.#port.listen(url, tls);
    for (const url of metricsUrls) await this.#metricsPort.listen(url, tls);
  }

  /** Ends the streams, drains calls in progress, and then closes everything. */
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
