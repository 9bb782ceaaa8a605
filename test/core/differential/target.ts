import { type DescMessage, type JsonObject, type JsonValue, fromJson, toJson } from "@bufbuild/protobuf";
import {
  type ClientDuplexStream,
  type ClientReadableStream,
  type Client as GrpcClient,
  Metadata,
  type ServiceError,
  credentials,
  makeClientConstructor,
} from "@grpc/grpc-js";
import { serviceDefinition } from "../../support/grpc-services.js";
import type { CoreProcess } from "../support/core-cluster.js";
import { type Action, type ServiceName, base64, mapped, methodOf, services } from "./action.js";
import { Observing } from "./observing.js";
import { Waiting } from "./waiting.js";
import { lastKey, type OpenWatch, Watching } from "./watching.js";

type Unary = (
  request: unknown,
  metadata: Metadata,
  options: object,
  callback: (error: ServiceError | null, response: unknown) => void,
) => { cancel(): void };

export const people = ["root", "u0", "u1"] as const;

/** A request that takes longer hangs. */
const timeoutMs = 60_000;

/** By this time a server has notified its watches of everything that it has applied. */
const restMs = 5;

/** In the midst of what the server does for it, once of several times. */
const givenUpAfterMs = [1, 2, 3, 4];

/** Leases expire after two seconds, which is the minimum, plus some slack. */
const runOutMsMax = 10_000;
const lookMs = 50;

const revisionFields = new Set(
  "revision minModRevision maxModRevision minCreateRevision maxCreateRevision createRevision modRevision startRevision compactRevision rev".split(
    " ",
  ),
);

/** Fields in which servers differ: who answers, what it stores, how it counts. */
const ownFields = new Set("clusterId raftTerm hash raftIndex raftAppliedIndex dbSize dbSizeInUse".split(" "));

/** Those of etcd 3.4 have none, ours has one. */
const withoutHeader = new Set(["Alarm", "Defragment", "MoveLeader"]);

const idFields = new Set(["ID", "memberID", "memberId", "targetID", "leader", "lease"]);

/** Larger values are shown as their length. */
const valueCharactersMax = 1_000;

/** Of those who have none. */
const wrongToken = "wrong.1";

/** A name that nobody has told yet. */
const nobodysId = "4660";

const everything = { key: "AA==", rangeEnd: "AA==" };

/** A server on which sequences run, one after another. */
export class Target {
  readonly #clients: Readonly<Record<ServiceName, GrpcClient>>;
  readonly #tokens = new Map<string, string>();
  readonly #told = new Map<string, JsonValue>();
  readonly #waiting = new Waiting((request) => this.#ask("KV", "Range", request));
  #lastToken = "";
  #watching: Watching | undefined;
  /** On a stream of its own, so that it uses no ids. */
  #past: Watching | undefined;
  #watchesPast = false;
  readonly #observing: Observing[] = [];
  #hasRights = false;
  /** Its advertised address differs from the one on which it listens. */
  #hasMoved = false;
  #base = 0n;
  #added = 0;
  #granted = 0;
  /** Part of members' addresses: for a second etcd does not accept an address again that it has removed. */
  #sequence = 0;
  /** How much slower than usual the server runs. */
  patience = 1;

  readonly #server: CoreProcess;

  constructor(server: CoreProcess) {
    this.#server = server;
    const { endpoint } = server;
    const clients = Object.entries(services).map(([name, service]) => {
      const Constructor = makeClientConstructor(serviceDefinition(service), name);
      const options = { "grpc.max_receive_message_length": -1 };
      return [name, new Constructor(endpoint, credentials.createInsecure(), options)];
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
    this.#hasRights = true;
  }

  async switchRightsOff(): Promise<void> {
    await this.#ask("Auth", "AuthDisable", {}, "root");
    this.#tokens.clear();
    this.#hasRights = false;
    await this.#removeUsers();
  }

  async #removeUsers(): Promise<void> {
    const user = this.#hasRights ? "root" : undefined;
    const { users = [] } = (await this.#ask("Auth", "UserList", {}, user)) as { users?: string[] };
    const stays = (name: string) => this.#hasRights && people.some((each) => each === name);
    for (const name of users) if (!stays(name)) await this.#ask("Auth", "UserDelete", { name }, user);
    const { roles = [] } = (await this.#ask("Auth", "RoleList", {}, user)) as { roles?: string[] };
    for (const role of roles)
      if (role !== "root" || !this.#hasRights) await this.#ask("Auth", "RoleDelete", { role }, user);
  }

  /** As it was before, except for its counters. */
  async reset(): Promise<void> {
    const user = this.#hasRights ? "root" : undefined;
    const ask = (service: ServiceName, method: string, request: JsonObject) =>
      this.#ask(service, method, request, user) as Promise<JsonObject>;
    const [{ leases = [] }, status] = await Promise.all([
      ask("Lease", "LeaseLeases", {}) as Promise<{ leases?: { ID: string }[] }>,
      ask("Maintenance", "Status", {}) as Promise<{ leader?: string }>,
      this.#putOutAlarms(user),
    ]);
    const self = this.#told.get("@self") ?? status.leader;
    await Promise.all(leases.map(({ ID }) => ask("Lease", "LeaseRevoke", { ID })));
    this.#waiting.end();
    for (const watching of [this.#watching, this.#past]) watching?.close();
    this.#watching = this.#past = undefined;
    this.#watchesPast = false;
    for (const observing of this.#observing.splice(0)) observing.close();
    this.#tokens.delete("u2");
    if (this.#hasMoved) await ask("Cluster", "MemberUpdate", { ID: "@self", peerURLs: [this.#ownUrl] });
    this.#hasMoved = false;
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
    this.#added = this.#granted = 0;
    this.#sequence = (this.#sequence + 1) & 0xffff;
    this.#base = BigInt(header.revision);
    if (self !== undefined) this.#told.set("@self", self);
  }

  get #ownUrl(): string {
    return `http://127.0.0.1:${this.#server.peerPort}`;
  }

  async #putOutAlarms(user?: string): Promise<void> {
    const found = (await this.#ask("Maintenance", "Alarm", {}, user)) as { alarms?: JsonObject[] };
    for (const alarm of found.alarms ?? [])
      await this.#ask("Maintenance", "Alarm", { ...alarm, action: "DEACTIVATE" }, user);
  }

  /** The answer without the server's own values. */
  async perform(action: Action): Promise<JsonValue> {
    const { service, method, request, user, waitsAs } = action;
    if (method === "Compact" || method === "cancel") await this.#sync();
    if (service === "Watch")
      return user === undefined ? this.#watch(method, request) : this.#tryWatch(request, user);
    if (method === "runOut") return this.#runOut(request);
    if (method === "Observe") return this.#observe(request);
    if (method === "giveUp") return this.#giveUp(request);
    if (waitsAs !== undefined) return this.#wait(action, waitsAs);
    const answer = await this.#ask(service, method, request, user);
    await this.#waiting.settle(this.patience);
    return answer;
  }

  async #wait({ service, method, request, user }: Action, waitsAs: string): Promise<JsonValue> {
    const cancelled = new AbortController();
    const answer = this.#ask(service, method, request, user, cancelled.signal).then((found) => {
      const { leader } = Object(found) as { leader?: JsonObject };
      if (leader !== undefined) this.#told.set(`@${waitsAs}`, leader);
      return found;
    });
    this.#waiting.add(waitsAs, request, answer, () => cancelled.abort());
    await this.#waiting.settle(this.patience);
    return this.#waiting.answerOf(waitsAs);
  }

  /** Who holds the lock asks for it again, and does not wait for the answer. */
  async #giveUp(request: JsonObject): Promise<JsonValue> {
    if (!(await this.#waiting.isFirst(request))) return "does not hold it";
    for (const afterMs of givenUpAfterMs) {
      const cancelled = new AbortController();
      const answer = this.#ask("Lock", "Lock", request, undefined, cancelled.signal);
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      cancelled.abort();
      await answer;
      // Work still pending in the server must not come after what follows.
      await this.#rest();
    }
    return "has given up";
  }

  #observe(request: JsonObject): JsonValue {
    type Open = { Observe(message: unknown, metadata: Metadata): ClientReadableStream<unknown> };
    const { input, output } = methodOf("Election", "Observe");
    const message = fromJson(input as DescMessage, request);
    const stream = (this.#clients.Election as unknown as Open).Observe(message, new Metadata());
    this.#observing.push(new Observing(String(request["name"] ?? ""), stream, output));
    return null;
  }

  /** What those who look on were told last, where somebody leads. */
  async #lookOn(): Promise<void> {
    for (const observing of this.#observing) {
      const leader = await this.#ask("Election", "Leader", { name: observing.name });
      observing.isCompared = typeof leader !== "string";
    }
  }

  async #runOut({ ID, TTL, keys }: JsonObject): Promise<JsonValue> {
    const answers = [await this.#ask("Lease", "LeaseGrant", { ID: ID ?? "5", TTL: TTL ?? "1" })];
    for (const key of Array.isArray(keys) ? keys : [])
      answers.push(await this.#ask("KV", "Put", { key, lease: ID ?? "5" }));
    const endMs = performance.now() + runOutMsMax;
    for (;;) {
      const left = Object(await this.#ask("Lease", "LeaseTimeToLive", { ID: ID ?? "5" })) as JsonObject;
      if (left["grantedTTL"] === undefined) return [...answers, "has run out"];
      if (performance.now() > endMs) return [...answers, "has not run out"];
      await new Promise((resolve) => setTimeout(resolve, lookMs));
    }
  }

  /** What watches that begin in the past tell is told before anything takes it away. */
  async #sync(): Promise<void> {
    if (!this.#watchesPast) return;
    this.#past ??= new Watching(this.#openWatch(new Metadata()));
    await this.#past.synced();
    this.#watchesPast = false;
  }

  /** Sends a write that shows that no earlier event is still to come. */
  async end(): Promise<void> {
    await this.#lookOn();
    if (this.#watching === undefined) return;
    await this.#sync();
    await this.#putOutAlarms();
    await this.#ask("KV", "Put", { key: base64(lastKey) });
  }

  get isAtEnd(): boolean {
    return this.#watching?.isAtEnd !== false;
  }

  /** What was told beside the answers: by watches, and to those who have waited. */
  get beside(): JsonObject {
    const lines = this.#normalised((this.#watching?.lines ?? {}) as JsonObject) as JsonObject;
    const observed = this.#observing
      .filter(({ isCompared }) => isCompared)
      .map(({ last }, at) => [`observer ${at}`, this.#normalised(last?.["kv"] ?? last ?? "nothing")]);
    return { ...this.#waiting.answers, ...lines, ...(Object.fromEntries(observed) as JsonObject) };
  }

  async #rest(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, restMs * this.patience));
  }

  async #watch(method: string, request: JsonObject): Promise<JsonValue> {
    if (this.#watching === undefined) {
      this.#watching = new Watching(this.#openWatch(new Metadata()));
      await this.#watching.begin();
    }
    if (method === "create") {
      await this.#watching.create(this.#addressed(request));
      if (request["startRevision"] !== undefined) this.#watchesPast = true;
      return null;
    }
    // The request must not overtake what came before.
    await this.#rest();
    if (method === "cancel") await this.#watching.cancel(BigInt(String(request["watchId"] ?? 0)));
    else await this.#watching.progress();
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
    const token =
      this.#tokens.get(user ?? "") ?? (user === undefined || user === "" ? undefined : wrongToken);
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
    if (methodKind !== "unary") return this.#askOnce(service, method, message, output, metadata);
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
    this.#learn(method, request, answer);
    return this.#normalised(answer, method);
  }

  /** The first answer on a stream to one request. */
  #askOnce(
    service: ServiceName,
    method: string,
    message: unknown,
    output: DescMessage,
    metadata: Metadata,
  ): Promise<JsonValue> {
    type Open = (metadata: Metadata, options: object) => ClientDuplexStream<unknown, unknown>;
    const options = { deadline: Date.now() + timeoutMs };
    const stream = (this.#clients[service] as unknown as Record<string, Open>)[method]!(metadata, options);
    return new Promise((resolve) => {
      stream.once("data", (response) => {
        resolve(this.#normalised(toJson(output, response as never), method));
        stream.cancel();
      });
      stream.on("error", (error: ServiceError) => resolve(`${error.code} ${error.details}`));
      stream.write(message);
    });
  }

  #learn(method: string, request: JsonObject, answer: JsonValue): void {
    if (method === "MemberUpdate" && typeof answer !== "string") this.#hasMoved = true;
    const found = Object(answer) as { ID?: string; member?: { ID?: string }; token?: string };
    this.#lastToken = found.token ?? this.#lastToken;
    if (method === "Authenticate" && this.#hasRights && found.token !== undefined)
      this.#tokens.set(String(request["name"] ?? ""), found.token);
    if (method === "LeaseGrant" && request["ID"] === undefined && found.ID !== undefined) {
      this.#told.set(`@granted${this.#granted}`, found.ID);
      this.#granted += 1;
    }
    if (found.member?.ID === undefined) return;
    this.#told.set(`@added${this.#added}`, found.member.ID);
    this.#added += 1;
  }

  #addressed(request: JsonObject): JsonObject {
    return mapped(request, (value, key) => {
      if (revisionFields.has(key) && value !== "0" && typeof value === "string")
        return `${this.#base + BigInt(value)}`;
      if (key === "peerURLs" && typeof value === "string" && value !== this.#ownUrl)
        return value.replace("127.0.0.1", `127.1.${this.#sequence >> 8}.${this.#sequence & 255}`);
      if (typeof value !== "string" || !value.startsWith("@")) return value;
      if (value.startsWith("@large")) return Buffer.alloc(Number(value.slice(6)), 108).toString("base64");
      const told = this.#told.get(value);
      // Revisions reported by an election count from where the sequence began.
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
      if (key === "value" && typeof value === "string" && value.length > valueCharactersMax)
        return `${value.length}`;
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

/**
 * Removes values without an order or with a different order at each server, and rounds the remaining time of
 * a lease to some seconds.
 */
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
  const names = ["leases", "keys", "members", "alarms", "errors"];
  return Object.assign({ ...answer, ...left }, ...names.map(sorted)) as JsonObject;
}
