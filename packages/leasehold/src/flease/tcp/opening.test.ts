import { createServer, Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { until } from "../../../../../test/support/transport.js";
import { open, startMember } from "../../index.js";
import { FleaseNode } from "./flease-node.js";
import { opening } from "./opening.js";
import { KeyCredentials } from "../../runtime/security/key-credentials.js";
import { Transport } from "./transport/transport.js";

/** Open sockets. Here those of clients keep the process alive, too, so that the test sees them. */
const sockets = () => process.getActiveResourcesInfo().filter((name) => /TCP|TLS/.test(name)).length;

/** Open transports of members: each keeps the process alive with an interval until it is closed. */
const intervals = new Set<NodeJS.Timeout>();
const openTransports = () => [...intervals].filter((interval) => interval.hasRef()).length;
beforeEach(() => {
  vi.spyOn(Socket.prototype, "unref").mockReturnThis();
  intervals.clear();
  const begin = globalThis.setInterval;
  const end = globalThis.clearInterval;
  vi.spyOn(globalThis, "setInterval").mockImplementation(((...given: Parameters<typeof begin>) => {
    const interval = begin(...given);
    intervals.add(interval);
    return interval;
  }) as typeof begin);
  vi.spyOn(globalThis, "clearInterval").mockImplementation((interval) => {
    intervals.delete(interval as NodeJS.Timeout);
    end(interval);
  });
});

function keyFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "opening-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(
    join(folder, "key"),
    "0123456789abcdef"
      .repeat(4)
      .split("")
      .toSorted(() => 0.5 - Math.random())
      .join(""),
  );
  return join(folder, "key");
}

afterEach(() => void vi.restoreAllMocks());

it("closes what was opened before a failing step, in reverse order, and nothing when all steps succeed", async () => {
  const closed: string[] = [];
  const steps = (failAt: number) =>
    opening(async (onFailure) => {
      for (const [index, name] of ["a", "b", "c"].entries()) {
        if (index === failAt) throw new Error(name);
        onFailure(() => void closed.push(name));
      }
      return "open";
    });
  await expect(steps(2)).rejects.toThrow("c");
  expect(closed.splice(0)).toEqual(["b", "a"]);
  await expect(steps(3)).resolves.toBe("open");
  expect(closed).toEqual([]);
});

describe("a malformed address is refused before anything is opened:", () => {
  const good = { a: "127.0.0.1:0", b: "127.0.0.1:1" };
  it.each([
    ["a member's own", { id: "a", members: { ...good, a: "127.0.0.1" } }],
    ["another member's", { id: "a", members: { ...good, b: "127.0.0.1:99999" } }],
    ["the one to listen on", { id: "a", members: good, listen: "nowhere" }],
  ])("%s", async (_what, options) => {
    const listens = vi.spyOn(Transport.prototype, "listen");
    await expect(startMember(options)).rejects.toMatchObject({ code: "INVALID_URL" });
    expect(listens).not.toHaveBeenCalled();
    expect(openTransports()).toBe(0);
  });

  it("refuses it among several addresses, too", async () => {
    let visits = 0;
    const server = createServer((socket) => {
      visits += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    for (const bad of [
      "flease://nowhere",
      "flease://x:99999",
      "http://x",
      "delta+file:///mnt/a",
      "memory:x",
    ]) {
      await expect(open(`flease://127.0.0.1:${port}`, bad, { timeout: "1h" })).rejects.toMatchObject({
        code: expect.stringMatching(/^INVALID_URL$|^UNSUPPORTED$/),
      });
      expect(openTransports()).toBe(0);
    }
    expect(visits).toBe(0);
  });
});

/** Makes a step fail, whenever it is reached. */
const broken = <T extends object>(owner: T, method: keyof T & string) =>
  vi.spyOn(owner, method as never).mockImplementation((() => {
    throw new Error(`${method} fails`);
  }) as never);

describe("whichever step of opening fails, nothing stays open:", () => {
  it.each([
    ["listen", () => broken(Transport.prototype, "listen")],
    ["dialMembers", () => broken(FleaseNode.prototype, "dialMembers")],
    ["dial", () => broken(Transport.prototype, "dial")],
  ])("a member's %s", async (_step, breakIt) => {
    const closes = vi.spyOn(KeyCredentials.prototype, "close");
    breakIt();
    const members = { a: "127.0.0.1:0", b: "127.0.0.1:1" };
    await expect(startMember({ id: "a", members, keyFile: keyFile() })).rejects.toThrow(/fails$/);
    expect(closes).toHaveBeenCalled();
    expect(openTransports()).toBe(0);
    await until(() => sockets() === 0);
  });

  it.each([
    ["dial", () => broken(Transport.prototype, "dial")],
    ["dialMembers", () => broken(FleaseNode.prototype, "dialMembers")],
  ])("a client's %s", async (_step, breakIt) => {
    const key = keyFile();
    const member = await startMember({ id: "a", members: { a: "127.0.0.1:0" }, keyFile: key });
    onTestFinished(() => member.close());
    const closes = vi.spyOn(KeyCredentials.prototype, "close");
    breakIt();
    await expect(open(`flease://${member.address}`, { keyFile: key, timeout: "2s" })).rejects.toThrow(
      /fails$/,
    );
    expect(closes).toHaveBeenCalled();
    expect(openTransports()).toBe(1);
    await until(() => sockets() === 1, "what listens is left");
  });
});

describe("ready", () => {
  const members = { a: "127.0.0.1:0" };

  it("rejects when the member is closed, at the deadline, and with the signal's reason", async () => {
    const member = await startMember({ id: "a", members });
    onTestFinished(() => member.close());
    await expect(member.ready({ timeout: 20 })).rejects.toMatchObject({ code: "TIMEOUT" });
    await expect(member.ready({ timeout: "soon" as "1s" })).rejects.toMatchObject({
      code: "INVALID_DURATION",
    });
    const given = new AbortController();
    const aborted = member.ready({ signal: given.signal, timeout: "1h" });
    given.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    await expect(member.ready({ signal: given.signal })).rejects.toThrow("enough");
    const waiting = member.ready();
    await Promise.all([member.close(), expect(waiting).rejects.toMatchObject({ code: "CLOSED" })]);
    await expect(member.ready()).rejects.toMatchObject({ code: "CLOSED" });
  });

  it("rejects when only its leases are closed, which closes the member", async () => {
    const member = await startMember({ id: "a", members });
    const waiting = member.ready();
    await Promise.all([member.leases.close(), expect(waiting).rejects.toMatchObject({ code: "CLOSED" })]);
  });
});
