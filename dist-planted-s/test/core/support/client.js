import { credentials, makeClientConstructor, } from "@grpc/grpc-js";
import { create } from "@bufbuild/protobuf";
import { Cluster, Maintenance } from "../../../src/core/gen/etcd/cluster_pb.js";
import { KV, Lease, PutRequestSchema, RangeRequestSchema, Watch, } from "../../../src/core/gen/etcd/rpc_pb.js";
import { serviceDefinition } from "../../../src/core/server/grpc/services.js";
export const bytes = (text) => new TextEncoder().encode(text);
export const text = (value) => new TextDecoder().decode(value);
const services = { KV, Watch, Lease, Cluster, Maintenance };
/** A client of etcd's API with nothing in between: what the server says is what a test sees. */
export class Client {
    #clients;
    constructor(endpoint) {
        const entries = Object.entries(services).map(([name, service]) => {
            const Constructor = makeClientConstructor(serviceDefinition(service), name);
            return [name, new Constructor(endpoint, credentials.createInsecure(), channelOptions)];
        });
        this.#clients = Object.fromEntries(entries);
    }
    call(service, method, request, timeoutMs = 10_000) {
        const client = this.#clients[service];
        return new Promise((resolve, reject) => {
            const options = { deadline: Date.now() + timeoutMs };
            client[method](request, options, (error, response) => error === null ? resolve(response) : reject(error));
        });
    }
    stream(service, method) {
        const client = this.#clients[service];
        return client[method]();
    }
    put(key, value, timeoutMs) {
        const request = create(PutRequestSchema, { key: bytes(key), value: bytes(value) });
        return this.call("KV", "Put", request, timeoutMs);
    }
    range(key, timeoutMs) {
        return this.call("KV", "Range", create(RangeRequestSchema, { key: bytes(key) }), timeoutMs);
    }
    async get(key, timeoutMs) {
        const { kvs } = await this.range(key, timeoutMs);
        return kvs[0] === undefined ? undefined : text(kvs[0].value);
    }
    status(timeoutMs) {
        return this.call("Maintenance", "Status", {}, timeoutMs);
    }
    close() {
        for (const client of Object.values(this.#clients))
            client.close();
    }
}
/** A server that has been killed is found again at once when it is back. */
const channelOptions = {
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 300,
    "grpc.min_reconnect_backoff_ms": 100,
};
