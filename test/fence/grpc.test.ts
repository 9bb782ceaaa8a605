import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  Client,
  type ClientOptions,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServiceError,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { describe, expect, onTestFinished, test } from "vitest";
import { DirectoryFence } from "@leasehold/fence/directory";
import { guardGrpc, refusalOf, tokenInterceptor } from "@leasehold/fence/grpc";
import type { GuardOptions } from "@leasehold/fence/http";
import { type Guarded, runFenceConformance } from "./conformance.js";

type Call = ServerUnaryCall<string, string>;
type Callback = sendUnaryData<string>;
type Handler = (call: Call, token: bigint, callback: Callback) => unknown;

const encode = (text: string) => Buffer.from(text);
const decode = (bytes: Buffer) => bytes.toString();
const form = {
  requestSerialize: encode,
  requestDeserialize: decode,
  responseSerialize: encode,
  responseDeserialize: decode,
};
const method = (path: string, requestStream = false) => ({
  path,
  requestStream,
  responseStream: false,
  ...form,
});

async function resource(): Promise<DirectoryFence> {
  const folder = await mkdtemp(join(tmpdir(), "leasehold-fence-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return new DirectoryFence(join(folder, "reports"));
}

/** Starts a server whose handlers write through the fence. Resolves with its address. */
async function serve(
  fence: DirectoryFence,
  handler?: Handler,
  options: GuardOptions<object> = { fence },
): Promise<string> {
  const server = new Server();
  const put: Handler = async (call, token, callback) => {
    await fence.write(token, { name: "report", content: call.request });
    callback(null, String(token));
  };
  const claim: Handler = async (_, token, callback) => {
    await fence.claim(token);
    callback(null, "");
  };
  const join = async (call: ServerReadableStream<string, string>, token: bigint, callback: Callback) => {
    let content = "";
    for await (const part of call) content += String(part);
    await fence.write(token, { name: "report", content });
    callback(null, String(token));
  };
  server.addService(
    {
      put: method("/Reports/Put"),
      claim: method("/Reports/Claim"),
      join: method("/Reports/Join", true),
    },
    {
      put: guardGrpc(handler ?? put, options),
      claim: guardGrpc(claim, options),
      join: guardGrpc(join, options),
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  onTestFinished(() => server.forceShutdown());
  return `127.0.0.1:${port}`;
}

function clientOf(address: string, options: ClientOptions = {}): Client {
  const client = new Client(address, credentials.createInsecure(), options);
  onTestFinished(() => client.close());
  return client;
}

/** Calls with these tokens in the metadata, by hand. */
function put(client: Client, tokens: readonly string[] = [], metadata = new Metadata()): Promise<string> {
  for (const token of tokens) metadata.add("x-fencing-token", token);
  return call(client, "/Reports/Put", "by hand", metadata, {});
}

function call(
  client: Client,
  path: string,
  text: string,
  metadata: Metadata,
  options: object,
): Promise<string> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, encode, decode, text, metadata, options, (error, value) =>
      error === null ? resolve(value ?? "") : reject(error),
    );
  });
}

/** As a caller sees it. */
async function failure(answer: Promise<unknown>): Promise<object> {
  const error = await answer.then(
    () => new Error("not refused"),
    (reason: unknown) => reason as ServiceError,
  );
  return {
    status: "code" in error ? error.code : undefined,
    refusal: refusalOf(error),
    message: error.message,
  };
}

const refusal = (code: status, reason: string) => ({
  status: code,
  refusal: reason,
  message: expect.any(String) as string,
});

async function make(): Promise<Guarded<string>> {
  const fence = await resource();
  const address = await serve(fence);
  const send = async (path: string, token: bigint, text: string) => {
    const options = { interceptors: [tokenInterceptor(token)] };
    await call(clientOf(address), path, text, new Metadata(), options).catch((error: unknown) => {
      throw Object.assign(error as Error, { code: refusalOf(error) ?? (error as ServiceError).code });
    });
  };
  return {
    kind: "grpc",
    place: address,
    fence: () => ({
      write: (token, text) => send("/Reports/Put", token, text),
      claim: (token) => send("/Reports/Claim", token, "claim"),
      greatest: () => fence.greatest(),
    }),
    change: (text) => text,
    read: async () => String((await fence.read("report")) ?? ""),
  };
}

describe("through gRPC", () => {
  runFenceConformance(make);
});

describe("a handler of gRPC", () => {
  test("is not asked without a token", async () => {
    const fence = await resource();
    const client = clientOf(await serve(fence));
    expect(await failure(put(client))).toEqual(refusal(status.INVALID_ARGUMENT, "TOKEN_MISSING"));
    expect(await fence.greatest()).toBe(0n);
  });

  test.each([
    ["zero", "0"],
    ["negative", "-1"],
    ["no decimal", "1e3"],
    ["one above the greatest", String(2n ** 63n)],
    ["joined", "7, 7"],
    ["long", "1".repeat(4_000)],
  ])("is not asked with a token that is %s", async (_, text) => {
    const fence = await resource();
    const client = clientOf(await serve(fence));
    expect(await failure(put(client, [text]))).toEqual(refusal(status.INVALID_ARGUMENT, "TOKEN_INVALID"));
    expect(await fence.greatest()).toBe(0n);
  });

  test("is not asked with a token that comes twice", async () => {
    const fence = await resource();
    const client = clientOf(await serve(fence));
    const refused = refusal(status.INVALID_ARGUMENT, "TOKEN_INVALID");
    // HTTP/2 joins them on the way; an interceptor of the server does not.
    expect(await failure(put(client, ["7", "7"]))).toEqual(refused);
    const metadata = new Metadata();
    for (const token of ["7", "7"]) metadata.add("x-fencing-token", token);
    const answer = new Promise((_, reject) => {
      void guardGrpc<Call, Callback>(() => undefined)({ metadata } as Call, reject);
    });
    expect(
      await Promise.race([failure(answer), new Promise((resolve) => setTimeout(resolve, 1_000))]),
    ).toEqual(refused);
    expect(await fence.greatest()).toBe(0n);
  });

  test("is not asked with a token that its fence knows to be stale", async () => {
    const fence = await resource();
    let asked = 0;
    const client = clientOf(await serve(fence, (_, __, callback) => callback(null, String(++asked))));
    await fence.claim(5n);
    expect(await failure(put(client, ["4"]))).toEqual(refusal(status.FAILED_PRECONDITION, "TOKEN_STALE"));
    expect(asked).toBe(0);
    expect(await put(client, ["5"])).toBe("1");
  });

  test.each(["throws", "gives to its callback"])(
    "that is refused by the fence that it writes through, and %s that, answers the same",
    async (way) => {
      const fence = await resource();
      const late: Handler = async (_, token, callback) => {
        await fence.write(6n, { name: "report", content: "six" });
        const written = fence.write(token, { name: "report", content: "late" });
        if (way === "throws") await written;
        else {
          const { reason } = (await Promise.allSettled([written]))[0] as PromiseRejectedResult;
          callback(reason as Error);
        }
      };
      const client = clientOf(await serve(fence, late));
      const answer = (await failure(put(client, ["5"]))) as { message: string };
      expect(answer).toEqual(refusal(status.FAILED_PRECONDITION, "TOKEN_STALE"));
      // Neither the greater token nor where the fence is.
      expect(answer.message).not.toMatch(/6|reports|tmp/);
      expect(String(await fence.read("report"))).toBe("six");
    },
  );

  test.each([
    ["throws", async () => Promise.reject(new Error("wrong"))],
    ["calls back with", (_: Call, __: bigint, callback: Callback) => callback(new Error("wrong"))],
  ] as [string, Handler][])("that %s another error answers with that", async (_, handler) => {
    const client = clientOf(await serve(await resource(), handler, {}));
    expect(await failure(put(client, ["5"]))).toMatchObject({
      status: status.UNKNOWN,
      refusal: undefined,
      message: expect.stringContaining("wrong") as string,
    });
  });

  test("that fails after its answer answers once", async () => {
    const answers: unknown[] = [];
    const guarded = guardGrpc<Call, Callback>(async (_, token, callback) => {
      callback(null, String(token));
      throw new Error("afterwards");
    });
    const metadata = new Metadata();
    metadata.set("x-fencing-token", "5");
    const asked = guarded({ metadata } as Call, (error, value) => answers.push([error, value]));
    await expect(asked).rejects.toThrow("afterwards");
    expect(answers).toEqual([[null, "5"]]);
  });

  test("of a stream from the client is guarded the same", async () => {
    const fence = await resource();
    const client = clientOf(await serve(fence));
    const send = (token: bigint) =>
      new Promise((resolve, reject) => {
        const options = { interceptors: [tokenInterceptor(token)] };
        const stream = client.makeClientStreamRequest(
          "/Reports/Join",
          encode,
          decode,
          new Metadata(),
          options,
          (error, value) => (error === null ? resolve(value) : reject(error)),
        );
        stream.write("a");
        stream.end("b");
      });
    expect(await send(5n)).toBe("5");
    expect(String(await fence.read("report"))).toBe("ab");
    expect(await failure(send(4n))).toEqual(refusal(status.FAILED_PRECONDITION, "TOKEN_STALE"));
  });
});

describe("an interceptor of a client", () => {
  test("asks for the present token at each call, and leaves the caller's metadata alone", async () => {
    let token = 5n;
    const address = await serve(await resource());
    const client = clientOf(address, { interceptors: [tokenInterceptor(() => token)] });
    const metadata = new Metadata();
    metadata.set("other", "kept");
    expect(await put(client, [], metadata)).toBe("5");
    token = 6n;
    expect(await put(client, [], metadata)).toBe("6");
    expect(metadata.getMap()).toEqual({ other: "kept" });
  });

  test("throws what is no token, and no other failure is a refusal", async () => {
    const client = clientOf(await serve(await resource()), { interceptors: [tokenInterceptor(() => 0n)] });
    await expect(put(client)).rejects.toMatchObject({ code: "TOKEN_INVALID" });
    const unknown = call(clientOf(await serve(await resource())), "/Reports/Other", "", new Metadata(), {});
    expect(await failure(unknown)).toMatchObject({ status: status.UNIMPLEMENTED, refusal: undefined });
    expect([refusalOf(undefined), refusalOf(new Error("another"))]).toEqual([undefined, undefined]);
  });
});
