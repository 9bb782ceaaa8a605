import { type DescMessage, type JsonObject, type JsonValue, fromJson, toJson } from "@bufbuild/protobuf";
import {
  type ClientDuplexStream,
  type Client as GrpcClient,
  Metadata,
  type ServiceError,
  credentials,
  makeClientConstructor,
} from "@grpc/grpc-js";
import { serviceDefinition } from "../../support/grpc-services.js";
import type { CoreProcess } from "../support/core-cluster.js";
import { type Action, type ServiceName, mapped, methodOf, services } from "./action.js";
import { lastKey, type OpenWatch, Watching } from "./watching.js";

type Unary = (
  request: unknown,
  metadata: Metadata,
  options: object,
  callback: (error: ServiceError | null, response: unknown) => void,
) => { cancel(): void };

interface Waiting {
  readonly cancel: () => void;
  readonly answer: Promise<JsonValue>;
  answered: JsonValue | undefined;
}

export const people = ["root", "u0", "u1"] as const;

const timeoutMs = 10_000;

/** Whatever is behind, what waits at a server comes to rest in that time. */
const restMs = 15;

const revisionFields = new Set(
  "revision minModRevision maxModRevision minCreateRevision maxCreateRevision createRevision modRevision startRevision compactRevision rev".split(
    " ",
  ),
);

/** Each server's own: who it is, what it stores, how it counts. */
const ownFields = new Set("clusterId raftTerm hash raftIndex raftAppliedIndex dbSize dbSizeInUse".split(" "));

/** Those of etcd 3.4 have none, ours has one. */
const withoutHeader = new Set(["Alarm", "Defragment", "MoveLeader"]);

const idFields = new Set(["ID", "memberID", "memberId", "targetID", "leader"]);

/** A name that nobody has told yet. */
const nobodysId = "4660";

const everything = { key: "AA==", rangeEnd: "AA==" };

/** A server that sequences are put to, one after the other. */
export class Target {
  readonly #clients: Readonly<Record<ServiceName, GrpcClient>>;
  readonly #tokens = new Map<string, string>();
  readonly #told = new Map<string, JsonValue>();
  readonly #waiting = new Map<string, Waiting>();
  #lastToken = "";
  #watching: Watching | undefined;
  #base = 0n;
  #added = 0;
  /** In the addresses of members: for a second etcd does not take those again that it has removed. */
  #sequence = 0;
  /** How much slower than usual it goes. */
  patience = 1;

  readonly #server: CoreProcess;

  constructor(server: CoreProcess) {
    this.#server = server;
    const { endpoint } = server;
    const clients = Object.entries(services).map(([name, service]) => {
      const Constructor = makeClientConstructor(serviceDefinition(service), name);
      return [name, new Constructor(endpoint, credentials.createInsecure())];
    });
    this.#clients = Object.fromEntries(clients) as Record<ServiceName, GrpcClient>;
  }

  close(): void {
    for (const client of Object.values(this.#clients)) client.close();
  }

  /** With users who have tokens. */
  async switchRightsOn(): Promise<void> {
    for (const name of people) await this.#ask("Auth", "UserAdd", { name, password: name });
    await this.#ask("Auth", "UserGrantRole", { user: "root", role: "root" });
    await this.#ask("Auth", "AuthEnable", {});
    for (const name of people) {
      await this.#ask("Auth", "Authenticate", { name, password: name });
      this.#tokens.set(name, this.#lastToken);
    }
    this.#tokens.set("wrong", "wrong.1");
  }

  async switchRightsOff(): Promise<void> {
    await this.#ask("Auth", "AuthDisable", {}, "root");
    this.#tokens.clear();
    await this.#removeUsers();
  }

  async #removeUsers(): Promise<void> {
    const { users = [] } = (await this.#ask("Auth", "UserList", {}, "root")) as { users?: string[] };
    for (const name of users)
      if (!this.#tokens.has(name)) await this.#ask("Auth", "UserDelete", { name }, "root");
    const { roles = [] } = (await this.#ask("Auth", "RoleList", {}, "root")) as { roles?: string[] };
    for (const role of roles)
      if (role !== "root" || this.#tokens.size === 0) await this.#ask("Auth", "RoleDelete", { role }, "root");
  }

  /** As it was before, but for what it counts. */
  async reset(): Promise<void> {
    const user = this.#tokens.size === 0 ? undefined : "root";
    const ask = (service: ServiceName, method: string, request: JsonObject) =>
      this.#ask(service, method, request, user) as Promise<JsonObject>;
    await this.#putOutAlarms(user);
    const { leases = [] } = (await ask("Lease", "LeaseLeases", {})) as { leases?: { ID: string }[] };
    for (const { ID } of leases) await ask("Lease", "LeaseRevoke", { ID });
    for (const { cancel } of this.#waiting.values()) cancel();
    this.#waiting.clear();
    this.#watching?.close();
    this.#watching = undefined;
    for (const name of this.#told.keys())
      if (name.startsWith("@added")) await ask("Cluster", "MemberRemove", { ID: name });
    if (user !== undefined) await this.#removeUsers();
    this.#base = 0n;
    const emptied = await ask("KV", "DeleteRange", everything);
    if (typeof emptied === "string")
      throw new Error(
        `${this.#server.output.slice(-800)}\n${this.#server.name} is not to be emptied: ${emptied}`,
      );
    const { header } = emptied as { header: { revision: string } };
    await ask("KV", "Compact", { revision: header.revision });
    this.#told.clear();
    this.#added = 0;
    this.#sequence = (this.#sequence + 1) & 0xffff;
    this.#base = BigInt(header.revision);
    const status = (await ask("Maintenance", "Status", {})) as { leader: string };
    this.#told.set("@self", status.leader);
  }

  async #putOutAlarms(user?: string): Promise<void> {
    const found = (await this.#ask("Maintenance", "Alarm", {}, user)) as { alarms?: JsonObject[] };
    for (const alarm of found.alarms ?? [])
      await this.#ask("Maintenance", "Alarm", { ...alarm, action: "DEACTIVATE" }, user);
  }

  /** What it answers, without what is its own. */
  async perform(action: Action): Promise<JsonValue> {
    const { service, method, request, user, waitsAs } = action;
    if (this.#waiting.size > 0) await this.#rest();
    if (service === "Watch")
      return user === undefined ? this.#watch(method, request) : this.#tryWatch(request, user);
    if (waitsAs === undefined) return this.#ask(service, method, request, user);
    const cancelled = new AbortController();
    const answer = this.#ask(service, method, request, user, cancelled.signal);
    const waiting: Waiting = { cancel: () => cancelled.abort(), answer, answered: undefined };
    void answer.then((found) => {
      waiting.answered = found;
      const { leader } = found as { leader?: JsonObject };
      if (leader !== undefined) this.#told.set(`@${waitsAs}`, leader);
    });
    this.#waiting.set(waitsAs, waiting);
    await Promise.race([answer, this.#rest()]);
    await this.#rest();
    return waiting.answered ?? "waits";
  }

  /** Writes what tells that no event follows. */
  async end(): Promise<void> {
    await this.#rest();
    if (this.#watching === undefined) return;
    await this.#putOutAlarms();
    await this.#ask("KV", "Put", { key: Buffer.from(lastKey).toString("base64") });
  }

  get isAtEnd(): boolean {
    return this.#watching?.isAtEnd !== false;
  }

  /** What was told beside the answers: by watches, and to those who have waited. */
  get beside(): JsonObject {
    const waited = [...this.#waiting].map(([name, { answered }]) => [name, answered ?? "waits"]);
    const lines = this.#normalised((this.#watching?.lines ?? {}) as JsonObject) as JsonObject;
    return { ...Object.fromEntries(waited), ...lines } as JsonObject;
  }

  async #rest(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, restMs * this.patience));
  }

  async #watch(method: string, request: JsonObject): Promise<JsonValue> {
    if (this.#watching === undefined) {
      this.#watching = new Watching(this.#openWatch(new Metadata()));
      await this.#watching.begin();
    }
    // What came before is not to be overtaken.
    if (method !== "create") await this.#rest();
    if (method === "create") await this.#watching.create(this.#addressed(request));
    else if (method === "cancel") this.#watching.cancel(BigInt(String(request["watchId"] ?? 0)));
    else this.#watching.progress();
    if (method !== "create") await this.#rest();
    return null;
  }

  /** Only whether it may. */
  async #tryWatch(request: JsonObject, user: string): Promise<JsonValue> {
    const watching = new Watching(this.#openWatch(this.#metadata(user)));
    await watching.create(this.#addressed(request));
    const { lines } = watching;
    watching.close();
    return this.#normalised(lines as unknown as JsonObject);
  }

  #openWatch(metadata: Metadata) {
    return (this.#clients.Watch as unknown as { Watch: OpenWatch }).Watch(metadata);
  }

  #metadata(user: string | undefined): Metadata {
    const metadata = new Metadata();
    const token = this.#tokens.get(user ?? "");
    if (token !== undefined) metadata.set("token", token);
    return metadata;
  }

  async #ask(
    service: ServiceName,
    method: string,
    request: JsonObject,
    user?: string,
    signal?: AbortSignal,
  ): Promise<JsonValue> {
    const { input, output, methodKind } = methodOf(service, method);
    const message = fromJson(input as DescMessage, this.#addressed(request));
    const metadata = this.#metadata(user);
    const options = { deadline: Date.now() + timeoutMs };
    const client = this.#clients[service] as unknown as Record<string, Unary>;
    if (methodKind !== "unary") return this.#askOnce(service, method, message, output);
    const answer = await new Promise<JsonValue>((resolve) => {
      const call = client[method]!(message, metadata, options, (error, response) =>
        resolve(
          error === null
            ? toJson(output as DescMessage, response as never)
            : `${error.code} ${error.details}`,
        ),
      );
      signal?.addEventListener("abort", () => call.cancel());
    });
    this.#learn(answer);
    return this.#normalised(answer, method);
  }

  /** The first answer of a stream to one request. */
  #askOnce(service: ServiceName, method: string, message: unknown, output: DescMessage): Promise<JsonValue> {
    type Open = () => ClientDuplexStream<unknown, unknown>;
    const stream = (this.#clients[service] as unknown as Record<string, Open>)[method]!();
    return new Promise((resolve) => {
      stream.once("data", (response) => {
        resolve(this.#normalised(toJson(output, response as never), method));
        stream.cancel();
      });
      stream.on("error", (error: ServiceError) => resolve(`${error.code} ${error.details}`));
      stream.write(message);
    });
  }

  #learn(answer: JsonValue): void {
    const { member, token } = Object(answer) as { member?: { ID?: string }; token?: string };
    this.#lastToken = token ?? this.#lastToken;
    if (member?.ID === undefined) return;
    this.#told.set(`@added${this.#added}`, member.ID);
    this.#added += 1;
  }

  #addressed(request: JsonObject): JsonObject {
    return mapped(request, (value, key) => {
      if (revisionFields.has(key) && value !== "0" && typeof value === "string")
        return `${this.#base + BigInt(value)}`;
      if (key === "peerURLs" && typeof value === "string")
        return value.replace("127.0.0.1", `127.1.${this.#sequence >> 8}.${this.#sequence & 255}`);
      if (typeof value !== "string" || !value.startsWith("@")) return value;
      const told = this.#told.get(value);
      // What an election has told counts from where the sequence began.
      if (typeof told === "object" && told !== null) return this.#addressed(told as JsonObject);
      return told ?? (key === "leader" ? { key: "bm9uZQ==", name: "bm9uZQ==", lease: nobodysId } : nobodysId);
    }) as JsonObject;
  }

  #normalised(answer: JsonValue, method = ""): JsonValue {
    const names = new Map([...this.#told].map(([name, id]) => [id, name]));
    const found = mapped(answer, (value, key) => {
      if (ownFields.has(key) || (key === "version" && method === "Status")) return undefined;
      if (key === "header" && withoutHeader.has(method)) return undefined;
      if (key === "header") return { revision: this.#relative((value as JsonObject)["revision"]) };
      if (revisionFields.has(key)) return this.#relative(value);
      if (key === "token") return "token";
      if (key === "errors" && typeof value === "string")
        return value.replace(/\d+/, (id) => names.get(id) ?? id);
      if (idFields.has(key) && typeof value === "string") return names.get(value) ?? value;
      if (key === "peerURLs" || key === "clientURLs")
        return (value as string[]).map((url) =>
          /127\.0\.0\.1:\d{4,}/.test(url) ? "own" : url.replace(/127\.[\d.]+:/, "127.0.0.1:"),
        );
      return value;
    })!;
    return arranged(found, method);
  }

  #relative(value: JsonValue | undefined): JsonValue {
    return value === undefined ? "none" : `${BigInt(String(value)) - this.#base}`;
  }
}

/** What has no order, or another one at each server, and what is left of a lease but by some seconds. */
function arranged(answer: JsonValue, method: string): JsonValue {
  if (typeof answer !== "object" || answer === null || Array.isArray(answer)) return answer;
  const sorted = (name: string) => {
    const list = answer[name];
    if (!Array.isArray(list)) return {};
    return { [name]: list.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) };
  };
  const left =
    method === "LeaseTimeToLive" && answer["grantedTTL"] !== undefined
      ? { TTL: Number(answer["TTL"]) > Number(answer["grantedTTL"]) - 60 }
      : {};
  return { ...answer, ...left, ...sorted("leases"), ...sorted("keys"), ...sorted("members") };
}
