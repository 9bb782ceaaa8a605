import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { get } from "./transfer.js";

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

test("a download that breaks off repeatedly has every byte once", async () => {
  const content = randomBytes(8 * 2 ** 20);
  let answers = 0;
  const server = createServer((request, response) => {
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const isLast = (answers += 1) > 5;
    const rest = content.subarray(from);
    response.writeHead(from === 0 ? 200 : 206, { etag: '"v"', "content-length": String(rest.length) });
    if (isLast) return void response.end(rest);
    // Part of the data in flight arrives before the connection breaks.
    response.write(rest.subarray(0, 2 ** 20 + 17), () => setTimeout(() => response.destroy(), 5));
    return undefined;
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const folder = await mkdtemp(join(tmpdir(), "transfer-"));
  try {
    const into = join(folder, "got");
    await get("f", into, { nodes: [`http://127.0.0.1:${port}`], timeout: "10s", output: "json" } as never);
    expect(answers).toBeGreaterThan(5);
    expect(hashOf(await readFile(into))).toBe(hashOf(content));
  } finally {
    server.close();
    await rm(folder, { recursive: true });
  }
});
