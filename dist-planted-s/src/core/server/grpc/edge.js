import { Server, ServerCredentials } from "@grpc/grpc-js";
import { LeaseholdError } from "../../../lease/errors.js";
import { Cluster, Maintenance } from "../../gen/etcd/cluster_pb.js";
import { KV, Lease, Watch } from "../../gen/etcd/rpc_pb.js";
import { formatAddress } from "../../../host/address.js";
import { readTlsFile } from "../peers/sockets.js";
import { Streams } from "./calls.js";
import { clusterHandlers } from "./cluster.js";
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
    #server = new Server({
        "grpc.max_receive_message_length": messageBytesMax,
        "grpc.keepalive_time_ms": keepAliveMs,
        "grpc.keepalive_timeout_ms": keepAliveTimeoutMs,
    });
    #streams;
    constructor(host, facts, electionMs) {
        this.#streams = new Streams(host, electionMs);
        const handlers = {
            ...unaryHandlers(host, electionMs),
            ...clusterHandlers(host, facts),
            LeaseKeepAlive: keepAliveHandler(host, this.#streams, electionMs),
            Watch: watchHandler(host, this.#streams),
        };
        for (const service of [KV, Watch, Lease, Cluster, Maintenance])
            this.#server.addService(serviceDefinition(service), handlers);
    }
    /** @throws LeaseholdError `INVALID_CONFIG` if an address cannot be had */
    async listen(urls, tls) {
        for (const url of urls) {
            const address = formatAddress(url.host, url.port);
            const credentials = url.isTls && tls !== undefined ? tlsCredentials(tls) : ServerCredentials.createInsecure();
            await new Promise((resolve, reject) => {
                this.#server.bindAsync(address, credentials, (error) => {
                    if (error === null)
                        resolve();
                    else
                        reject(new LeaseholdError("INVALID_CONFIG", `cannot listen on ${address}: ${error.message}`));
                });
            });
        }
    }
    /** Ends the streams, lets what is under way end, and then all the rest. */
    async close() {
        this.#streams.stop();
        await new Promise((resolve) => {
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
function tlsCredentials({ certFile, keyFile, trustedCaFile, clientCertAuth }) {
    const authority = trustedCaFile === undefined ? null : readTlsFile(trustedCaFile);
    const pair = { cert_chain: readTlsFile(certFile), private_key: readTlsFile(keyFile) };
    return ServerCredentials.createSsl(authority, [pair], clientCertAuth);
}
