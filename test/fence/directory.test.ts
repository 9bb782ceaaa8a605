import * as files from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { DirectoryFence, type FileChange, type FileSystem } from "@leasehold/fence/directory";
import { Gate, type Guarded, runFenceConformance } from "./conformance.js";

interface InFolder extends Guarded<FileChange> {
  fence(): DirectoryFence;
}

async function make(): Promise<InFolder> {
  const folder = await files.mkdtemp(join(tmpdir(), "leasehold-fence-"));
  onTestFinished(() => files.rm(folder, { recursive: true, force: true }));
  const place = join(folder, "guarded");
  return {
    kind: "directory",
    place,
    fence: () => new DirectoryFence(place),
    change: (text) => ({ name: "report", content: text }),
    read: async () => String((await new DirectoryFence(place).read("report")) ?? ""),
  };
}

describe("in a folder", () => {
  runFenceConformance(make);
});

const stale = { code: "TOKEN_STALE" };

/** A fence that stops before one operation, as if its process were stopped. */
function stopping(root: string, at: keyof FileSystem, isIt: (path: string) => boolean = () => true) {
  const [stopped, goOn] = [new Gate(), new Gate()];
  const stop = async (path: string) => {
    if (!isIt(path)) return;
    stopped.open();
    await goOn.opened;
  };
  const own: Partial<FileSystem> = {
    rename: async (from, to) => {
      if (at === "rename") await stop(String(to));
      await files.rename(from, to);
    },
    link: async (from, to) => {
      if (at === "link") await stop(String(from));
      await files.link(from, to);
    },
  };
  return { fence: new DirectoryFence(root, { ...files, ...own }), stopped, goOn };
}

test("a holder that is stopped before its rename is refused, and its file is never read", async () => {
  const { fence, change, place, read } = await make();
  await fence().claim(5n);
  const { fence: late, stopped, goOn } = stopping(place, "rename", (path) => path.endsWith("/report"));
  const write = late.write(5n, change("late"));
  await stopped.opened;
  await fence().write(6n, change("six"));
  goOn.open();
  await expect(write).rejects.toMatchObject(stale);
  expect(await read()).toBe("six");
  // Its leftovers are removed with the next token.
  await fence().write(7n, { name: "other", content: "x" });
  expect(await read()).toBe("six");
  expect(await files.readdir(place)).toHaveLength(2);
});

test("a holder that is stopped in its copy publishes nothing over a greater token", async () => {
  const { fence, change, place, read } = await make();
  await fence().write(5n, change("five"));
  const { fence: late, stopped, goOn } = stopping(place, "link");
  const write = late.write(6n, change("late"));
  await stopped.opened;
  await fence().write(7n, change("seven"));
  goOn.open();
  await expect(write).rejects.toMatchObject(stale);
  expect([await read(), await fence().greatest()]).toEqual(["seven", 7n]);
});

test("a holder that is stopped before its rename, and wakes while another copies, gets no confirmation of its write", async () => {
  const { fence, change, place, read } = await make();
  await fence().write(5n, change("five"));
  const late = stopping(place, "rename", (path) => path.endsWith("/other"));
  const write = late.fence.write(5n, { name: "other", content: "late" });
  await late.stopped.opened;
  const next = stopping(place, "link");
  const claim = next.fence.claim(6n);
  await next.stopped.opened;
  late.goOn.open();
  await expect(write).rejects.toMatchObject(stale);
  next.goOn.open();
  await claim;
  expect(await read()).toBe("five");
});

test("a copy that was begun before a write contains it, if the write succeeds", async () => {
  const { fence, change, place, read } = await make();
  await fence().write(5n, change("five"));
  const { fence: next, stopped, goOn } = stopping(place, "link");
  const claim = next.claim(6n);
  await stopped.opened;
  // Token 6 has its mark, so a write with token 5 that its folder may lack must not succeed.
  await expect(fence().write(5n, { name: "another", content: "x" })).rejects.toMatchObject(stale);
  goOn.open();
  await claim;
  expect(await read()).toBe("five");
});

test("a holder that is killed in its copy leaves the files as they were, and the next one continues", async () => {
  const { fence, change, place, read } = await make();
  await fence().write(5n, change("five"));
  const { fence: dying, stopped } = stopping(place, "link");
  void dying.write(6n, change("never"));
  await stopped.opened;
  expect(await read()).toBe("five");
  await expect(fence().write(5n, change("late"))).rejects.toMatchObject(stale);
  await fence().write(7n, { name: "other", content: "x" });
  expect(await read()).toBe("five");
});

test("files are replaced and removed as a whole, and stay through many tokens", async () => {
  const { fence, place, read, change } = await make();
  for (let token = 1n; token <= 20n; token++) {
    await fence().write(token, { name: `of-${token}`, content: new Uint8Array([Number(token)]) });
    if (token > 10n) await fence().write(token, { name: `of-${token - 10n}`, content: undefined });
  }
  const left = await files.readdir((await fence().path())!);
  expect(left.filter((name) => !name.startsWith("."))).toHaveLength(10);
  expect(await fence().read("of-1")).toBeUndefined();
  expect([...(await fence().read("of-20"))!]).toEqual([20]);
  await fence().write(20n, change("x"));
  expect([await read(), (await files.readdir(place)).length]).toEqual(["x", 2]);
});

test("readers always find the file while holders come and go", async () => {
  const { fence, change, read } = await make();
  await fence().write(1n, change("1"));
  const over = new AbortController();
  const seen: bigint[] = [];
  const reader = (async () => {
    while (!over.signal.aborted) seen.push(BigInt(await read()));
  })();
  for (let token = 2n; token <= 60n; token++) await fence().write(token, change(String(token)));
  over.abort();
  await reader;
  expect(seen.length).toBeGreaterThan(10);
  expect(seen).toEqual(seen.toSorted((a, b) => Number(a - b)));
  expect(seen).not.toContain(0n);
});

test("two processes of one tenure can write at the same time", async () => {
  const { fence } = await make();
  const names = Array.from({ length: 20 }, (_, index) => `f${index}`);
  await Promise.all(names.map((name) => fence().write(5n, { name, content: name })));
  const contents = await Promise.all(names.map((name) => fence().read(name)));
  expect(contents.map(String)).toEqual(names);
});

test.each(["", ".", "..", ".hidden", "a/b", "..\\x", "a\0b"])("%j is not a valid file name", async (name) => {
  const { fence } = await make();
  await expect(fence().write(5n, { name, content: "x" })).rejects.toThrow(RangeError);
});
