import {
  type ClientDuplexStream,
  type Client as GrpcClient,
  type ServiceError,
  credentials,
  makeClientConstructor,
} from "@grpc/grpc-js";
import { create } from "@bufbuild/protobuf";
import {
  Cluster,
  Maintenance,
  type StatusResponse,
} from "../../../packages/leasehold/src/etcd/gen/etcd/cluster_pb.js";
import {
  KV,
  Lease,
  PutRequestSchema,
  type PutResponse,
  RangeRequestSchema,
  type RangeResponse,
  Watch,
} from "../../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { serviceDefinition } from "../../support/grpc-services.js";

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
export const text = (value: Uint8Array): string => new TextDecoder().decode(value);

const services = { KV, Watch, Lease, Cluster, Maintenance };
export type ServiceName = keyof typeof services;

type Unary = (
  request: unknown,
  options: object,
  callback: (error: ServiceError | null, response: unknown) => void,
) => void;

/** A thin client of etcd's API: a test sees exactly what the server sends. */
export class Client {
  readonly #clients: Record<ServiceName, GrpcClient>;

  constructor(endpoint: string) {
    const entries = Object.entries(services).map(([name, service]) => {
      const Constructor = makeClientConstructor(serviceDefinition(service), name);
      return [name, new Constructor(endpoint, credentials.createInsecure(), channelOptions)];
    });
    this.#clients = Object.fromEntries(entries) as Record<ServiceName, GrpcClient>;
  }

  call<Response>(
    service: ServiceName,
    method: string,
    request: unknown,
    timeoutMs = 10_000,
  ): Promise<Response> {
    const client = this.#clients[service] as unknown as Record<string, Unary>;
    return new Promise((resolve, reject) => {
      const options = { deadline: Date.now() + timeoutMs };
      client[method]!(request, options, (error, response) =>
        error === null ? resolve(response as Response) : reject(error),
      );
    });
  }

  stream<Request, Response>(
    service: "Watch" | "Lease",
    method: string,
  ): ClientDuplexStream<Request, Response> {
    const client = this.#clients[service] as unknown as Record<
      string,
      () => ClientDuplexStream<Request, Response>
    >;
    return client[method]!();
  }

  put(key: string, value: string, timeoutMs?: number): Promise<PutResponse> {
    const request = create(PutRequestSchema, { key: bytes(key), value: bytes(value) });
    return this.call("KV", "Put", request, timeoutMs);
  }

  range(key: string, timeoutMs?: number): Promise<RangeResponse> {
    return this.call("KV", "Range", create(RangeRequestSchema, { key: bytes(key) }), timeoutMs);
  }

  async get(key: string, timeoutMs?: number): Promise<string | undefined> {
    const { kvs } = await this.range(key, timeoutMs);
    return kvs[0] === undefined ? undefined : text(kvs[0].value);
  }

  status(timeoutMs?: number): Promise<StatusResponse> {
    return this.call("Maintenance", "Status", {}, timeoutMs);
  }

  close(): void {
    for (const client of Object.values(this.#clients)) client.close();
  }
}

/** A killed server is found again at once when it is back. */
const channelOptions = {
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 300,
  "grpc.min_reconnect_backoff_ms": 100,
};
