import { isIP } from "node:net";
import { type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import {
  type ChannelCredentials,
  Client,
  connectivityState,
  credentials,
  Metadata,
  type VerifyOptions,
} from "@grpc/grpc-js";
import { readAddress } from "../../runtime/address.js";
import { identityProblem } from "../../runtime/security/server-identity.js";
import type { Connect, Connection, Duplex, Method } from "./connection.js";

/**
 * An idle connection is pinged after 10 s (servers may reject more than one ping in 5 s), and closed 5 s
 * later if there is no answer. A refused connection is redialled soon, since another server is asked
 * meanwhile.
 */
const channelOptions = {
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 5_000,
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.min_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 2_000,
};

/**
 * The server name sent to a server that is dialled by IP address. TLS has no addresses there (RFC 6066), but
 * the package would send one, which Node refuses since 26. The name is reserved (RFC 6761), so any server
 * presents its default certificate.
 */
const serverNameOfNobody = "address.invalid";

export interface TlsTexts {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Certificates and their key, which may be renewed. {@link FileWatch} is one. */
export interface TlsSource {
  readonly current: TlsTexts;
  /** Changes whenever `current` does. */
  readonly version: number;
}

/** @param wantsLeader servers without a leader refuse at once */
export function grpcConnections(tls: TlsSource | undefined, { wantsLeader = true } = {}): Connect {
  const clientOf = (endpoint: string): Client => {
    const host = tls && readAddress(endpoint)?.host;
    const isAddress = host !== undefined && isIP(host) !== 0;
    if (!isAddress) return new Client(endpoint, credentialsOf(tls?.current), channelOptions);
    const options = { ...channelOptions, "grpc.ssl_target_name_override": serverNameOfNobody };
    return new Client(endpoint, credentialsOf(tls?.current, host), options);
  };
  return (endpoint) => new GrpcConnection(() => clientOf(endpoint), tls, wantsLeader);
}

class GrpcConnection implements Connection {
  readonly #connect: () => Client;
  readonly #tls: TlsSource | undefined;
  readonly #wantsLeader: boolean;
  #current: Client;
  #version: number | undefined;

  constructor(connect: () => Client, tls: TlsSource | undefined, wantsLeader: boolean) {
    this.#connect = connect;
    this.#tls = tls;
    this.#wantsLeader = wantsLeader;
    this.#current = connect();
    this.#version = tls?.version;
  }

  /**
   * Returns a new client once the certificates have changed. Calls and streams in flight finish on the former
   * one.
   */
  #client(): Client {
    const version = this.#tls?.version;
    if (this.#version !== version) {
      this.#version = version;
      this.#current.close();
      this.#current = this.#connect();
    }
    return this.#current;
  }

  get isReady(): boolean {
    return this.#current.getChannel().getConnectivityState(false) === connectivityState.READY;
  }

  ask<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    request: MessageShape<Input>,
    token: string | undefined,
    timeoutMs: number,
  ): Promise<MessageShape<Output>> {
    return new Promise((resolve, reject) => {
      this.#client().makeUnaryRequest(
        pathOf(method),
        toBuffer,
        (answer) => fromBinary(method.output, answer),
        toBinary(method.input, request),
        this.#metadata(token),
        { deadline: Date.now() + timeoutMs },
        (error, answer) => (error === null ? resolve(answer!) : reject(error)),
      );
    });
  }

  open<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    token: string | undefined,
  ): Duplex<MessageShape<Input>, MessageShape<Output>> {
    return this.#client().makeBidiStreamRequest(
      pathOf(method),
      (request: MessageShape<Input>) => toBuffer(toBinary(method.input, request)),
      (answer) => fromBinary(method.output, answer),
      this.#metadata(token),
      { deadline: Infinity },
    );
  }

  close(): void {
    this.#current.close();
  }

  #metadata(token: string | undefined): Metadata {
    const metadata = new Metadata();
    if (this.#wantsLeader) metadata.set("hasleader", "true");
    if (token !== undefined) metadata.set("token", token);
    return metadata;
  }
}

/** @param host the name in the server's certificate; default: the name that is dialled */
function credentialsOf(tls: TlsTexts | undefined, host?: string): ChannelCredentials {
  if (tls === undefined) return credentials.createInsecure();
  const [ca, key, cert] = [tls.ca, tls.key, tls.cert].map((text) => Buffer.from(text));
  const check: VerifyOptions =
    host === undefined ? {} : { checkServerIdentity: (_name, shown) => identityProblem(host, shown) };
  return credentials.createSsl(ca, key, cert, check);
}

function pathOf(method: Method<DescMessage, DescMessage>): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
