import type { SecureContextOptions } from "node:tls";
import type { DescService } from "@bufbuild/protobuf";
import { Server, ServerCredentials, type UntypedServiceImplementation } from "@grpc/grpc-js";
import { invalid } from "../common/invalid.js";
import { Auth } from "../../gen/etcd/auth_pb.js";
import { Cluster, Maintenance } from "../../gen/etcd/cluster_pb.js";
import { Health } from "../../gen/etcd/health_pb.js";
import { KV, Lease, Watch } from "../../gen/etcd/rpc_pb.js";
import { Election } from "../../gen/etcd/v3election_pb.js";
import { Lock } from "../../gen/etcd/v3lock_pb.js";
import { formatAddress } from "../../../runtime/address.js";
import type { TlsFiles } from "../common/config.js";
import type { CoreHost } from "../../host/host.js";
import { minVersion, readTls, type TlsContent, whenRenewed } from "../common/tls.js";
import type { ListenUrl } from "../common/urls.js";
import { Answers } from "./answers.js";
import { clusterHandlers } from "./cluster.js";
import type { ClusterFacts } from "./header.js";
import { keepAliveHandler } from "./keep-alive.js";
import { maintenanceHandlers } from "./maintenance.js";
import { serviceDefinition } from "./services.js";
import { Streams } from "./streams.js";
import { unaryHandlers } from "./unary.js";
import { watchHandler } from "./watch.js";

/**
 * As etcd: what the core refuses as too large (1.5 MiB) has to arrive, so that it can be refused in its
 * words.
 */
const messageBytesMax = 2 * 1024 * 1024;

/**
 * Of one connection at once, also such as have been answered and not been taken in: clients wait with more.
 * As many as all may ask.
 */
const callsMax = 16_384;

/** A client that has vanished without a word is noticed: etcd's figures. */
const keepAliveMs = 2 * 60 * 60_000;
const keepAliveTimeoutMs = 20_000;

/** When the server stops, what is under way may take so long. */
const closeMs = 1_000;

/** The services of etcd's API that the core has, over gRPC. */
export class GrpcEdge {
  readonly #server = new Server({
    "grpc.max_receive_message_length": messageBytesMax,
    "grpc.max_concurrent_streams": callsMax,
    "grpc.keepalive_time_ms": keepAliveMs,
    "grpc.keepalive_timeout_ms": keepAliveTimeoutMs,
  });
  readonly #streams: Streams;
  readonly #renewing: RenewedCredentials[] = [];

  /** @param answerBytesMax of one answer */
  constructor(host: CoreHost, facts: ClusterFacts, electionMs: number, answerBytesMax: number) {
    this.#streams = new Streams(host, electionMs);
    const asked = unaryHandlers(host, new Answers(answerBytesMax), electionMs);
    const services: [DescService, UntypedServiceImplementation][] = [
      [KV, asked],
      [Watch, { Watch: watchHandler(host, this.#streams) }],
      [Lease, { ...asked, LeaseKeepAlive: keepAliveHandler(host, this.#streams, electionMs) }],
      [Cluster, clusterHandlers(host, facts)],
      [Maintenance, { ...asked, ...maintenanceHandlers(host, facts) }],
      [Auth, {}],
      [Lock, {}],
      [Election, {}],
      [Health, {}],
    ];
    // A method without a handler answers `UNIMPLEMENTED`.
    for (const [service, handlers] of services) this.#server.addService(serviceDefinition(service), handlers);
  }

  /** @throws LeaseholdError `INVALID_CONFIG` if an address cannot be had */
  async listen(urls: readonly ListenUrl[], tls: TlsFiles | undefined): Promise<void> {
    for (const url of urls) {
      const address = formatAddress(url.host, url.port);
      const credentials =
        url.isTls && tls !== undefined ? this.#renewed(tls) : ServerCredentials.createInsecure();
      await new Promise<void>((resolve, reject) => {
        this.#server.bindAsync(address, credentials, (error) => {
          if (error === null) resolve();
          else reject(invalid(`cannot listen on ${address}: ${error.message}`));
        });
      });
    }
  }

  #renewed(tls: TlsFiles): ServerCredentials {
    const credentials = new RenewedCredentials(tls);
    this.#renewing.push(credentials);
    return credentials;
  }

  /** Ends the streams, lets what is under way end, and then all the rest. */
  async close(): Promise<void> {
    this.#streams.stop();
    for (const credentials of this.#renewing) credentials.close();
    await new Promise<void>((resolve) => {
      const force = setTimeout(() => {
        this.#server.forceShutdown();
        resolve();
      }, closeMs);
      this.#server.tryShutdown(() => {
        clearTimeout(force);
        resolve();
      });
    });
  }
}

/** As `ServerCredentials.createSsl` makes them, and renewed while the server runs. */
class RenewedCredentials extends ServerCredentials {
  readonly close: () => void;

  constructor(tls: TlsFiles) {
    const { clientCertAuth } = tls;
    super({ requestCert: clientCertAuth, rejectUnauthorized: clientCertAuth }, contextOf(readTls(tls)));
    this.close = whenRenewed(tls, (content) => this.updateSecureContextOptions(contextOf(content)));
  }

  override _equals(other: ServerCredentials): boolean {
    return other === this;
  }
}

function contextOf(content: TlsContent): SecureContextOptions {
  return { ...content, minVersion };
}
