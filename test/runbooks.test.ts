import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";

/** docs/operations.md explains each alert and the action to take. */

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../${path}`, import.meta.url)), "utf8");

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert?: string }[] }[];
}

const { groups } = parse(read("deploy/prometheus/leasehold.rules.yml")) as Rules;
const alerts = groups.flatMap(({ rules }) => rules.flatMap(({ alert }) => alert ?? []));
const page = read("docs/operations.md").split("## Alerts")[1]!.split("\n## ")[0]!;
const rows = page.split("\n").filter((line) => line.startsWith("| `"));

test("each alert has one row, with a meaning and an action, and each row belongs to an alert", () => {
  const named = rows.flatMap((row) => [...row.split("|")[1]!.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
  expect(alerts.length).toBeGreaterThan(15);
  expect(named.toSorted()).toEqual(alerts.toSorted());
  expect(
    rows.filter((row) =>
      row
        .split("|")
        .slice(1, -1)
        .some((cell) => cell.trim().length < 5),
    ),
  ).toEqual([]);
});
