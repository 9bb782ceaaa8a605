import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { DirectoryFence } from "@leasehold/fence/directory";
import { fetchWithToken, type GuardOptions } from "@leasehold/fence/http";

interface Served {
  readonly port: number;
  close(): Promise<void>;
}

type Serve = (write: (token: bigint) => Promise<unknown>, options: GuardOptions<unknown>) => Promise<Served>;

// The frameworks have a lock file of their own, so their types may not be installed.
const tools = new URL("tools/apps.mjs", import.meta.url).href;
const { apps } = (await import(tools)) as { apps: Record<string, Serve> };

async function resource(): Promise<DirectoryFence> {
  const folder = await mkdtemp(join(tmpdir(), "leasehold-fence-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return new DirectoryFence(join(folder, "reports"));
}

interface Answer {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly body: string;
}

/** Uses Node's own client, as `fetch` refuses to send some of these headers. */
async function put(port: number, token?: string | string[]): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = token === undefined ? {} : { "x-fencing-token": token };
    const asked = request({ port, host: "127.0.0.1", method: "PUT", path: "/", headers }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (body += chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode, type: response.headers["content-type"], body }),
      );
    });
    asked.on("error", reject);
    asked.end();
  });
}

const problem = (status: number, code: string) => ({
  status,
  type: expect.stringContaining("application/problem+json") as string,
  body: expect.stringContaining(`"code":"${code}"`) as string,
});

const max = 2n ** 63n - 1n;

describe.each(Object.keys(apps))("a handler of %s", (name) => {
  async function serve(fence: DirectoryFence, write?: (token: bigint) => Promise<unknown>, early = true) {
    const content = (token: bigint) => ({ name: "nightly", content: String(token) });
    const served = await apps[name]!(
      write ?? ((token) => fence.write(token, content(token))),
      early ? { fence } : {},
    );
    onTestFinished(() => served.close());
    return served.port;
  }

  test("writes with the request's token, up to the greatest", async () => {
    const fence = await resource();
    const port = await serve(fence);
    for (const token of [1n, 9n, 10n, 10n, max]) expect((await put(port, String(token))).status).toBe(204);
    expect(String(await fence.read("nightly"))).toBe(String(max));
    expect(await put(port, String(max - 1n))).toEqual(problem(412, "TOKEN_STALE"));
  });

  test("is not called without a token", async () => {
    const fence = await resource();
    expect(await put(await serve(fence))).toEqual(problem(428, "TOKEN_MISSING"));
    expect(await fence.greatest()).toBe(0n);
  });

  test.each([
    ["empty", ""],
    ["zero", "0"],
    ["negative", "-1"],
    ["no decimal", "1e3"],
    ["one above the greatest", String(max + 1n)],
    ["long", "1".repeat(8_000)],
    ["joined", "7, 7"],
  ])("is not called with a token that is %s", async (_, text) => {
    const fence = await resource();
    const answer = await put(await serve(fence), text);
    expect(answer).toEqual(problem(400, "TOKEN_INVALID"));
    expect(answer.body.length).toBeLessThan(300);
    expect(await fence.greatest()).toBe(0n);
  });

  test("is not called with a header that appears twice", async () => {
    const fence = await resource();
    const port = await serve(fence);
    expect(await put(port, ["7", "7"])).toEqual(problem(400, "TOKEN_INVALID"));
    expect(await fence.greatest()).toBe(0n);
  });

  test("is not called with a token that its fence knows to be stale", async () => {
    const fence = await resource();
    let asked = 0;
    const port = await serve(fence, async () => void asked++);
    await fence.claim(5n);
    expect(await put(port, "4")).toEqual(problem(412, "TOKEN_STALE"));
    expect(asked).toBe(0);
    expect((await put(port, "5")).status).toBe(204);
  });

  test("that is overtaken while it works answers the same, and has written nothing", async () => {
    const fence = await resource();
    const port = await serve(fence, async (token) => {
      await fence.write(6n, { name: "nightly", content: "six" });
      await fence.write(token, { name: "nightly", content: "late" });
    });
    const answer = await put(port, "5");
    expect(answer).toEqual(problem(412, "TOKEN_STALE"));
    // The answer contains neither the greater token nor the fence's location.
    expect(answer.body).not.toMatch(/6|reports|tmp/);
    expect(String(await fence.read("nightly"))).toBe("six");
  });

  test("whose guard has no fence is refused by the fence that it writes through", async () => {
    const fence = await resource();
    const port = await serve(fence, undefined, false);
    await fence.claim(5n);
    expect(await put(port, "4")).toEqual(problem(412, "TOKEN_STALE"));
  });

  test("leaves other errors to the framework", async () => {
    const fence = await resource();
    const port = await serve(fence, async () => {
      throw Object.assign(new Error("at /srv/secret"), { code: "TOKEN_INVALID" });
    });
    expect(await put(port, "5")).toMatchObject({ status: 500, body: "wrong" });
  });

  test("can be called with fetchWithToken, which throws a refusal", async () => {
    const fence = await resource();
    const port = await serve(fence);
    const write = (token: bigint) => fetchWithToken(token, `http://127.0.0.1:${port}/`, { method: "PUT" });
    expect((await write(5n)).status).toBe(204);
    await expect(write(4n)).rejects.toMatchObject({ code: "TOKEN_STALE" });
    await expect(write(0n)).rejects.toMatchObject({ code: "TOKEN_INVALID" });
  });
});
