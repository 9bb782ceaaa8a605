import { LeaseholdError } from "../../lease/errors.js";
import { loadPackage } from "../../runtime/optional-package.js";
import { operationMsMax } from "../common/server-limits.js";
import type { RedisAddress } from "./address.js";
import type { Script } from "./scripts.js";
import { askRedisFacts, type RedisFacts } from "./server-facts.js";

/** Timeout of a connection, ms: well above the longest round trip. */
const connectMsMax = 3_000;

/** The pause before another connection to a server that refused one, ms, because stores poll their server. */
const reconnectPauseMs = 100;

/**
 * The maximum number of commands in flight on the connection. Its users bound their requests, so this only
 * guards against a bug.
 */
const commandsMax = 10_000;

type Word = string | Uint8Array;
type Package = typeof import("@redis/client");
type Client = ReturnType<typeof createClient>;

interface Connection {
  readonly client: Client;
  /** The server's facts when the connection was made. A restart of the server ends the connection. */
  readonly facts: RedisFacts;
}

/**
 * The connection to one Redis server, made on demand. Nothing is queued without a connection, and nothing
 * reconnects by itself.
 */
export class RedisLink {
  readonly #address: RedisAddress;
  readonly #package: Package;
  #connecting: Promise<Connection> | undefined;
  /** The client of the connection that is open or being opened. */
  #client: Client | undefined;
  #connection: Connection | undefined;
  #failure: { readonly error: unknown; readonly ms: number } | undefined;
  #isClosed = false;

  private constructor(address: RedisAddress, loaded: Package) {
    this.#address = address;
    this.#package = loaded;
  }

  static async open(address: RedisAddress): Promise<RedisLink> {
    return new RedisLink(address, await loadPackage<Package>("@redis/client", "a store on Redis"));
  }

  async facts(): Promise<RedisFacts> {
    return (await this.#connect()).facts;
  }

  /** Runs a script on the store's only key. Redis's strings are returned as bytes. */
  async run(script: Script, args: readonly Word[]): Promise<readonly unknown[]> {
    const { client } = await this.#connect();
    const rest = ["1", this.#address.key, ...args];
    try {
      return (await this.#send(client, ["EVALSHA", script.sha1, ...rest])) as unknown[];
    } catch (error) {
      if (!(error instanceof Error && error.message.includes("NOSCRIPT"))) throw error;
      return (await this.#send(client, ["EVAL", script.text, ...rest])) as unknown[];
    }
  }

  async command(words: readonly Word[]): Promise<unknown> {
    return this.#send((await this.#connect()).client, words);
  }

  close(): void {
    this.#isClosed = true;
    if (this.#client !== undefined) this.#drop(this.#client);
  }

  #connect(): Promise<Connection> {
    if (this.#connection?.client.isReady === true) return Promise.resolve(this.#connection);
    if (this.#failure !== undefined && performance.now() - this.#failure.ms < reconnectPauseMs)
      return Promise.reject(this.#failure.error as Error);
    this.#connecting ??= this.#makeConnection().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  async #makeConnection(): Promise<Connection> {
    if (this.#isClosed) throw new LeaseholdError("STORE_UNAVAILABLE", "this store has been closed");
    const client = createClient(this.#package, this.#address);
    this.#client = client;
    // Calls in flight are rejected. Without a listener the error would end the process.
    client.on("error", () => this.#drop(client));
    try {
      const facts = await this.#bounded(client, async () => {
        await client.connect();
        client.unref();
        return askRedisFacts(async (words) => textOf(await this.#send(client, words)));
      });
      this.#failure = undefined;
      this.#connection = { client, facts };
      return this.#connection;
    } catch (error) {
      this.#drop(client);
      this.#failure = { error, ms: performance.now() };
      throw error;
    }
  }

  async #send(client: Client, words: readonly Word[]): Promise<unknown> {
    const args = words.map((word) => (typeof word === "string" ? word : asBuffer(word)));
    return this.#bounded(client, () => client.sendCommand(args));
  }

  /** A timeout closes the connection, and thereby ends every call that waits for an answer. */
  async #bounded<T>(client: Client, run: () => Promise<T>): Promise<T> {
    let isLate = false;
    const timeout = setTimeout(() => {
      isLate = true;
      this.#drop(client);
    }, operationMsMax);
    try {
      return await run();
    } catch (error) {
      if (!isLate) throw error;
      throw new LeaseholdError(
        "STORE_UNAVAILABLE",
        `${this.#address.name}: no answer within ${operationMsMax} ms`,
      );
    } finally {
      clearTimeout(timeout);
    }
  }

  #drop(client: Client): void {
    if (this.#connection?.client === client) this.#connection = undefined;
    if (client.isOpen) client.destroy();
  }
}

function createClient(loaded: Package, address: RedisAddress) {
  const { host, port, database, tls, username, password } = address;
  const socket = { host, port, connectTimeout: connectMsMax, reconnectStrategy: false } as const;
  return loaded.createClient({
    RESP: 2,
    socket: tls ? { ...socket, tls: true } : socket,
    database,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    disableOfflineQueue: true,
    disableClientInfo: true,
    maintNotifications: "disabled",
    commandsQueueMaxLength: commandsMax,
    // `#bounded` bounds every command; the package's own timeout would create an `AbortSignal` for each.
    commandOptions: { timeout: 0, typeMapping: { [loaded.RESP_TYPES.BLOB_STRING]: Buffer } },
  });
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function textOf(answer: unknown): unknown {
  return Array.isArray(answer) ? answer.map(String) : String(answer);
}
