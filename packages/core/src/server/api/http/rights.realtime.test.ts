import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DescMethod, fromBinary, fromJsonString, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePorts } from "../../../../../../test/free-ports.js";
import { silent } from "leasehold/runtime";
import { configOf, type RunningCore, startCore } from "../../index.js";
import { routes } from "./routes.js";

/** With authentication enabled, each JSON route requires the same rights as its method over gRPC. */

let folder: string;
let server: RunningCore;
let grpc: Client;
let port: number;
const tokens: Record<string, string | undefined> = { nobody: undefined, wrong: "nonsense.1" };

interface Outcome {
  readonly code: number;
  /** Reason of the refusal, or for a watch of its cancellation. */
  readonly why: string;
}

interface JsonSaid {
  readonly code?: number;
  readonly message?: string;
  readonly error?: { readonly grpc_code: number; readonly message: string };
  readonly result?: { readonly canceled?: boolean; readonly cancel_reason?: string };
  readonly token?: string;
}

/** Returns the first answer. */
function askJson(path: string, body: string, token?: string): Promise<JsonSaid> {
  const headers = token === undefined ? {} : { Authorization: token };
  return new Promise((resolve, reject) => {
    const asking = request({ port, path, method: "POST", agent: false, headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
        if (text.endsWith("\n")) done();
      });
      const done = () => {
        resolve(JSON.parse(text.split("\n")[0]!) as JsonSaid);
        asking.destroy();
      };
      answer.on("end", done).on("error", () => undefined);
    });
    asking.on("error", reject);
    asking.end(body);
  });
}

async function byJson(path: string, body: string, token?: string): Promise<Outcome> {
  const { code, error, message, result } = await askJson(path, body, token);
  return {
    code: error?.grpc_code ?? code ?? 0,
    why: error?.message ?? message ?? result?.cancel_reason ?? "",
  };
}

function byGrpc({ input, name, output, parent }: DescMethod, body: string, token?: string): Promise<Outcome> {
  const metadata = new Metadata();
  if (token !== undefined) metadata.set("token", token);
  return new Promise((resolve) => {
    const call = grpc.makeBidiStreamRequest(
      `/${parent.typeName}/${name}`,
      (message: MessageShape<typeof input>) => Buffer.from(toBinary(input, message)),
      (bytes) => fromBinary(output, bytes) as { cancelReason?: string },
      metadata,
      { deadline: Date.now() + 20_000 },
    );
    call.on("error", (error: ServiceError) => resolve({ code: error.code, why: error.details }));
    call.on("data", ({ cancelReason = "" }: { cancelReason?: string }) => {
      resolve({ code: 0, why: cancelReason });
      call.cancel();
    });
    call.write(fromJsonString(input, body));
    if (name !== "Watch") call.end();
  });
}

const key = Buffer.from("a").toString("base64");
const bodies: Readonly<Record<string, object>> = {
  "kv/range": { key },
  "kv/put": { key, value: key },
  "kv/deleterange": { key },
  "kv/txn": { success: [{ request_put: { key } }] },
  "kv/compaction": { revision: 999 },
  watch: { create_request: { key } },
  "lease/grant": { TTL: 60 },
  "lease/register": { name: "a", ttl: 60 },
  "lease/find": { name: "a" },
  "auth/authenticate": { name: "ann", password: "wrong" },
  "auth/user/add": { name: "new", password: "a" },
  "auth/user/get": { name: "root" },
  "auth/user/changepw": { name: "root", password: "a" },
  "auth/user/delete": { name: "root" },
  "auth/role/get": { role: "root" },
  "auth/role/add": { name: "r" },
  "cluster/member/update": { ID: 1, peerURLs: ["http://127.0.0.1:1"] },
  "cluster/member/add": { peerURLs: ["http://127.0.0.1:1"] },
  "lock/lock": { name: key },
  "lock/unlock": { key },
  "election/campaign": { name: key, value: key },
  "election/leader": { name: key },
  "election/observe": { name: key },
  "election/proclaim": { leader: { name: key, key, rev: 1, lease: 1 }, value: key },
  "election/resign": { leader: { name: key, key, rev: 1 } },
};

const shortOf = (path: string) => path.replace(/^\/(v3|leasehold\/v1)\//, "");
const bodyOf = (path: string) => JSON.stringify(bodies[shortOf(path)] ?? {});
const paths = [...routes.keys()].filter((path) => !path.startsWith("/v3beta/"));

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "lh-rights-"));
  const [clientPort, peerPort] = (await freePorts(2)) as [number, number];
  port = clientPort;
  const peer = `http://127.0.0.1:${peerPort}`;
  const config = configOf({
    dataDir: folder,
    listenClientUrls: `http://127.0.0.1:${clientPort}`,
    listenPeerUrls: peer,
    initialAdvertisePeerUrls: peer,
    electionTimeout: "100",
    heartbeatInterval: "10",
  });
  server = await startCore(config, silent);
  grpc = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  for (const [path, body] of [
    ["user/add", { name: "root", password: "pw" }],
    ["user/grant", { user: "root", role: "root" }],
    ["user/add", { name: "ann", password: "pw" }],
    ["enable", {}],
  ] as const)
    await byJson(`/v3/auth/${path}`, JSON.stringify(body));
  for (const name of ["ann", "root"])
    tokens[name] = (await askJson("/v3/auth/authenticate", JSON.stringify({ name, password: "pw" }))).token!;
  // From here on the lease's name is taken.
  const path = "/leasehold/v1/lease/register";
  await byJson(path, bodyOf(path), tokens["root"]);
});
afterAll(async () => {
  grpc.close();
  await server.close();
  await rm(folder, { recursive: true });
});

/** The callers that a route refuses: without a token, with a wrong token, or a user without rights. */
const refusals = async (path: string) => {
  const all: string[] = [];
  for (const who of ["nobody", "wrong", "ann"]) {
    const { why } = await byJson(path, bodyOf(path), tokens[who]);
    if (/permission denied|invalid auth token|user name is empty/.test(why)) all.push(who);
  }
  return all.join(" ");
};

test("each route refuses the same callers as its method over gRPC, with the same code and text", async () => {
  const wrong: object[] = [];
  for (const path of paths)
    for (const who of ["nobody", "wrong", "ann"]) {
      const json = await byJson(path, bodyOf(path), tokens[who]);
      const overGrpc = await byGrpc(routes.get(path)!, bodyOf(path), tokens[who]);
      if (JSON.stringify(json) !== JSON.stringify(overGrpc)) wrong.push({ path, who, json, overGrpc });
    }
  expect(wrong).toEqual([]);
});

/** All other routes need permissions for keys, or the role root. */
const open: Readonly<Record<string, readonly string[]>> = {
  "": ["auth/authenticate", "lease/keepalive", "maintenance/status"],
  // As in etcd, these only check whether a given token is valid.
  wrong: ["cluster/member/list", "maintenance/alarm"],
  "nobody wrong": [
    "kv/compaction",
    ...["grant", "register", "find"].map((name) => `lease/${name}`),
    ...["leases", "revoke", "timetolive"].flatMap((name) => [`lease/${name}`, `kv/lease/${name}`]),
  ],
};

test("required permissions are those of etcd", async () => {
  const listed = Object.entries(open).flatMap(([refused, names]) => names.map((name) => [name, refused]));
  const expected = new Map(listed as [string, string][]);
  const wrong: object[] = [];
  for (const path of paths) {
    const refused = await refusals(path);
    if (refused !== (expected.get(shortOf(path)) ?? "nobody wrong ann")) wrong.push({ path, refused });
  }
  expect(wrong).toEqual([]);
});

test("root is refused nothing", async () => {
  for (const path of ["kv/put", "kv/range", "kv/txn", "auth/user/list", "lease/leases", "watch"])
    expect(await byJson(`/v3/${path}`, bodyOf(`/v3/${path}`), tokens["root"])).toEqual({ code: 0, why: "" });
});
