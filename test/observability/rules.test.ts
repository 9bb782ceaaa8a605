import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { filesCatalogue } from "@leasehold/files/inner/metrics/catalogue.js";
import { catalogue } from "leasehold/inner/metrics/catalogue.js";

const folder = fileURLToPath(new URL("../../deploy/prometheus", import.meta.url));

function promtool(...words: string[]) {
  const { status, stderr, stdout } = spawnSync("promtool", words, { cwd: folder, encoding: "utf8" });
  return { status, said: `${stdout}${stderr}` };
}

beforeAll(() => {
  if (promtool("--version").status === 0) return;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  for (const words of [["update"], ["install", "-y", "--no-install-recommends", "prometheus"]])
    execFileSync("apt-get", words, { stdio: "pipe", env });
});

test("Prometheus accepts the alert rules", () => {
  expect(promtool("check", "rules", "leasehold.rules.yml")).toMatchObject({ status: 0 });
});

test("each alert fires in its trouble, and not in normal operation", () => {
  expect(promtool("test", "rules", "leasehold.rules.test.yml")).toMatchObject({ status: 0 });
});

test("the rules query only metrics of the catalogues", () => {
  const text = readFileSync(join(folder, "leasehold.rules.yml"), "utf8");
  const asked = new Set(text.match(/\bleasehold_\w+/g));
  const known = Object.entries({ ...catalogue, ...filesCatalogue }).flatMap(([name, { kind, unit }]) => {
    const full = unit === "" ? name : `${name}_${unit}`;
    if (kind === "histogram") return [`${full}_bucket`, `${full}_sum`, `${full}_count`];
    return [kind === "counter" ? `${full}_total` : full];
  });
  expect([...asked].filter((name) => !known.includes(name))).toEqual([]);
});

test("the rules query only existing buckets", () => {
  const text = readFileSync(join(folder, "leasehold.rules.yml"), "utf8");
  const asked = [...text.matchAll(/leasehold_renewal_slack_ratio_bucket\{le="(.*?)"/g)].map(([, le]) =>
    Number(le),
  );
  expect(asked.length).toBeGreaterThan(0);
  expect(catalogue.leasehold_renewal_slack.buckets).toEqual(expect.arrayContaining(asked));
});
