import { Server, ServerCredentials, type UntypedServiceImplementation } from "@grpc/grpc-js";
import { LeaseholdError } from "../../../lease/errors.js";
import { Cluster, Maintenance } from "../../gen/etcd/cluster_pb.js";
import { KV, Lease, Watch } from "../../gen/etcd/rpc_pb.js";
import { formatAddress } from "../../../host/address.js";
import type { TlsFiles } from "../config.js";
import type { CoreHost } from "../host.js";
import { readTlsFile } from "../peers/sockets.js";
import type { ListenUrl } from "../urls.js";
import { Streams } from "./calls.js";
import { type ClusterFacts, clusterHandlers } from "./cluster.js";
import { keepAliveHandler } from "./keep-alive.js";
import { serviceDefinition } from "./services.js";
import { unaryHandlers } from "./unary.js";
import { watchHandler } from "./watch.js";

/** As etcd: what the core refuses as too large (1.5 MiB) has to arrive, so that it can be refused in its words. */
const messageBytesMax = 2 * 1024 * 1024;

/** A client that has vanished without a word is noticed: etcd's figures. */
const keepAliveMs = 2 * 60 * 60_000;
const keepAliveTimeoutMs = 20_000;

/** When the server stops, what is under way may take so long. */
const closeMs = 1_000;

/** The services of etcd's API that the core has, over gRPC. */
export class GrpcEdge {
  readonly #server = new Server({
    "grpc.max_receive_message_length": messageBytesMax,
    "grpc.keepalive_time_ms": keepAliveMs,
    "grpc.keepalive_timeout_ms": keepAliveTimeoutMs,
  });
  readonly #streams: Streams;

  constructor(host: CoreHost, facts: ClusterFacts, electionMs: number) {
    this.#streams = new Streams(host, electionMs);
    const handlers: UntypedServiceImplementation = {
      ...unaryHandlers(host, electionMs),
      ...clusterHandlers(host, facts),
      LeaseKeepAlive: keepAliveHandler(host, this.#streams, electionMs),
      Watch: watchHandler(host, this.#streams),
    };
    for (const service of [KV, Watch, Lease, Cluster, Maintenance])
      this.#server.addService(serviceDefinition(service), handlers);
  }

  /** @throws LeaseholdError `INVALID_CONFIG` if an address cannot be had */
  async listen(urls: readonly ListenUrl[], tls: TlsFiles | undefined): Promise<void> {
    for (const url of urls) {
      const address = formatAddress(url.host, url.port);
      const credentials =
        url.isTls && tls !== undefined ? tlsCredentials(tls) : ServerCredentials.createInsecure();
      await new Promise<void>((resolve, reject) => {
        this.#server.bindAsync(address, credentials, (error) => {
          if (error === null) resolve();
          else reject(new LeaseholdError("INVALID_CONFIG", `cannot listen on ${address}: ${error.message}`));
        });
      });
    }
  }

  /** Ends the streams, lets what is under way end, and then all the rest. */
  async close(): Promise<void> {
    this.#streams.stop();
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

function tlsCredentials({ certFile, keyFile, trustedCaFile, clientCertAuth }: TlsFiles): ServerCredentials {
  const authority = trustedCaFile === undefined ? null : readTlsFile(trustedCaFile);
  const pair = { cert_chain: readTlsFile(certFile), private_key: readTlsFile(keyFile) };
  return ServerCredentials.createSsl(authority, [pair], clientCertAuth);
}
