import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { clockSlew, whyTooFast } from "./clock-slew.js";

let folder = "";
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "slew-"))));
afterEach(() => rm(folder, { recursive: true }));

async function slewOf(files: Readonly<Record<string, string>>) {
  await mkdir(join(folder, "conf.d"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return clockSlew([join(folder, "nowhere.conf"), join(folder, "chrony.conf")]);
}

test("chrony's default slew of 83,333 ppm is within the default of ρ, and not within 0.1 %", async () => {
  const slew = await slewOf({ "chrony.conf": "pool time.example iburst\nmakestep 1 3\n" });
  expect(slew?.rateError).toBeCloseTo(0.083333, 6);
  expect(whyTooFast(slew, 0.1)).toBeUndefined();
  expect(whyTooFast(slew, 0.001)).toMatch(
    /8.33 % too fast or too slow .*allows for 0.1 %: set maxslewrate 1000/,
  );
});

test("the last setting counts, even in included files; comments do not", async () => {
  const slew = await slewOf({
    "chrony.conf": `maxslewrate 100000\nconfdir ${join(folder, "conf.d")}\n! maxslewrate 7\n#maxslewrate 8\n`,
    "conf.d/a.conf": "maxslewrate 4000",
    "conf.d/b.conf": `include ${join(folder, "more")}`,
    "conf.d/c.txt": "maxslewrate 9",
    more: "  MaxSlewRate 500",
  });
  expect(slew).toMatchObject({ rateError: 0.0005 });
  expect(whyTooFast(slew, 0.001)).toBeUndefined();
});

test("without chrony, or with an invalid configuration, the slew is unknown; a file that includes itself ends", async () => {
  expect(await clockSlew([join(folder, "nowhere.conf")])).toBeUndefined();
  expect(
    await slewOf({ "chrony.conf": `include ${join(folder, "chrony.conf")}\nmaxslewrate many` }),
  ).toBeUndefined();
  expect(whyTooFast(undefined, 0)).toBeUndefined();
});
