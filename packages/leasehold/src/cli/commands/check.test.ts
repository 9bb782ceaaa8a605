import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import {
  done,
  fault,
  goodTakeover,
  headerBy,
  journalOf,
  looks,
} from "../../../../../test/support/histories.js";
import { historyLine } from "../../testing/history/journals/format.js";
import { describeFailure } from "../common/failure.js";
import { check } from "./check.js";

const said: string[] = [];
vi.mock("../output/print.js", () => ({
  printLine: (line: string) => said.push(line),
  printLines: (lines: string[]) => said.push(...lines),
}));
afterEach(() => said.splice(0));

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "leasehold-check-"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function written(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

async function run(paths: string[], output: "table" | "json" = "table") {
  const code = await check(paths, { output });
  return { code, text: said.splice(0).join("\n") };
}

describe("leasehold check", () => {
  test("prints for the documentation's example what is documented", async () => {
    const page = readFileSync(new URL("../../../../../docs/internals/histories.md", import.meta.url), "utf8");
    const fences = [...page.matchAll(/^```ndjson (\S+)\n([\s\S]*?)^```$/gm)];
    const paths = fences.map(([, name, text]) => written(name!, text!));
    expect(paths).toHaveLength(3);
    const { code, text } = await run(paths);
    expect(code).toBe(0);
    expect(`${text}\n`).toBe(/^```output\n([\s\S]*?)^```$/m.exec(page)![1]);
  });

  test("reports violations and exits with 80", async () => {
    const path = written("bad", journalOf([...looks("a", 10, 0, 100), ...looks("b", 20, 50, 150)]));
    const { code, text } = await run([path]);
    expect(code).toBe(80);
    expect(text).toContain("violated");
    expect(text).toContain(
      "overlap: r by a.1 (process 1) with token 10 and r by b.1 (process 2) with token 20 were both held",
    );
    expect(text).toContain("no faults");
  });

  test("exits with 81 when the run proves nothing", async () => {
    const { code, text } = await run([written("void", journalOf(looks("a", 10, 0)))]);
    expect(code).toBe(81);
    expect(text).toContain("void\nno holder was replaced without having released\nno lease was renewed\n");
  });

  test("prints one JSON object", async () => {
    const entries = [...goodTakeover.flat(), ...fault("cut", "a", 300, 700), done("stopped", "c", 1_790)];
    const { code, text } = await run([written("good", journalOf(entries))], "json");
    expect(code).toBe(0);
    expect(JSON.parse(text)).toMatchObject({
      verdict: "clean",
      tenures: 2,
      takeovers: 1,
      handovers: 0,
      renewals: 1,
      samples: 5,
      faults: [
        { kind: "cut", count: 1, interrupted: 1, longestMs: 1_200.01 },
        { kind: "killed", count: 1, interrupted: 1, longestMs: 1_100.01 },
        { kind: "stopped", count: 1, interrupted: 0 },
      ],
    });
  });

  test("refuses a bad journal with its line, exits with 82 and prints nothing else", async () => {
    const good = written("good", journalOf(looks("a", 10, 0, 100)));
    const torn = written("torn", journalOf(looks("b", 20, 200, 300), "torn").slice(0, -20));
    const failure = await check([good, torn], {}).catch((error: unknown) => describeFailure(error));
    expect(failure).toEqual({
      code: "BAD_HISTORY",
      exitCode: 82,
      message: `${torn}:3: truncated: the last line has no newline`,
    });
    expect(said).toEqual([]);
  });

  test("refuses a file that cannot be read", async () => {
    const missing = join(folder, "missing");
    for (const path of [missing, folder]) {
      const failure = await check([path], {}).catch((error: unknown) => describeFailure(error));
      expect(failure).toMatchObject({ exitCode: 82, message: expect.stringContaining(path) });
    }
  });
});

/** `LEASEHOLD_LINES=2000000` for a large one. */
const lines = Number(process.env["LEASEHOLD_LINES"] ?? 100_000);

test(`a journal of ${lines} lines is read in constant memory`, async () => {
  const path = join(folder, "long");
  const perTenure = 500;
  const file = openSync(path, "w");
  writeSync(file, historyLine(headerBy("all")));
  for (let token = 1; token <= lines / perTenure; token += 1) {
    const who = token % 2 === 0 ? "a" : "b";
    const all = Array.from({ length: perTenure }, (_, index) => ({
      at: token * 10_000 + index * 10,
      left: 2_000 - (index % 100) * 10,
    }));
    writeSync(
      file,
      looks(who, token, ...all)
        .map(historyLine)
        .join(""),
    );
  }
  closeSync(file);
  let peakBytes = 0;
  const before = process.memoryUsage().rss;
  const watch = setInterval(() => (peakBytes = Math.max(peakBytes, process.memoryUsage().rss)), 20);
  const startMs = performance.now();
  const { code, text } = await run([path], "json");
  clearInterval(watch);
  const tookMs = performance.now() - startMs;
  expect(code).toBe(0);
  expect(JSON.parse(text)).toMatchObject({ samples: lines, tenures: lines / perTenure });
  const grownMb = (peakBytes - before) / 2 ** 20;
  process.stdout.write(
    `    ${lines} lines in ${(tookMs / 1_000).toFixed(1)} s: ${Math.round((lines / tookMs) * 1_000)} a second, memory grew by ${grownMb.toFixed()} MiB\n`,
  );
  expect(grownMb).toBeLessThan(200);
}, 300_000);
