import fc from "fast-check";
import { expect, test } from "vitest";
import { emptyEntry } from "./entry.js";
import type { Entry } from "./entry.js";
import { EntryTable } from "./entry-table.js";
import { entriesPerPage, EntryPage } from "./entry-page.js";
import { OwnerNumbers } from "./owner-numbers.js";

const number = fc.nat(Number.MAX_SAFE_INTEGER);
const owner = fc.constantFrom("", "a.1", "a.2", "bé.3");
const entry: fc.Arbitrary<Entry> = fc.record({
  promisedNumber: number,
  promisedOwner: owner,
  leaseOwner: owner,
  leaseNumber: number,
  leaseSequence: fc.nat(0xffff_ffff),
  leaseExpiresWallMs: fc.double({ noNaN: true }),
  leaseExpiresMonoMs: fc.double({ noNaN: true }),
  released: fc.boolean(),
  token: number,
  barredOwner: owner,
  payer: fc.nat(0xffff_ffff),
});
const name = fc.oneof(
  fc.constantFrom("a", "b", "ab", "ä", "\uFEFFmark", "名", "🔑", "x".repeat(512), "ä".repeat(256)),
  fc.nat(40).map((index) => `jobs/${index}`),
);

const get = (table: EntryTable, of: string) => table.get(of, emptyEntry());

function remove(table: EntryTable, of: string): void {
  for (const cursor = table.cursor(); cursor.next();) if (cursor.name === of) cursor.delete();
}

test("a table behaves like a map under any insertions, changes and removals", () => {
  const act = fc.tuple(name, fc.option(entry, { nil: undefined, freq: 2 }));
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60 }), fc.integer(), (acts, seed) => {
      const table = new EntryTable(seed);
      const map = new Map<string, Entry>();
      for (const [of, next] of acts) {
        if (next === undefined) remove(table, of);
        else table.set(of, next);
        if (next === undefined) map.delete(of);
        else map.set(of, next);
        expect(get(table, of)).toEqual(map.get(of));
      }
      expect(table.size).toBe(map.size);
      expect(new Map(table.cursor())).toEqual(map);
      for (const [of, kept] of map) expect(get(table, of)).toEqual(kept);
    }),
  );
});

test("a table of many pages finds every entry, and none that was removed", () => {
  const table = new EntryTable(7);
  const count = 5 * entriesPerPage + 1;
  const kept = (index: number) => ({ ...emptyEntry(), token: index, leaseOwner: `o.${index % 3}` });
  for (let index = 0; index < count; index += 1) table.set(`n/${index}`, kept(index));
  for (const cursor = table.cursor(); cursor.next();)
    if (cursor.read(emptyEntry()).token % 4 > 0) cursor.delete();
  for (let index = 0; index < count; index += 1)
    expect(get(table, `n/${index}`)?.token).toBe(index % 4 > 0 ? undefined : index);
  for (let index = 0; index < count; index += 1) table.set(`m/${index}`, kept(index));
  for (let index = 0; index < count; index += 1) expect(get(table, `m/${index}`)).toEqual(kept(index));
  expect(table.size).toBe(count + Math.ceil(count / 4));
});

test("a cursor visits once each entry that exists throughout, while others come and go", () => {
  const table = new EntryTable(3);
  for (let index = 0; index < 3 * entriesPerPage; index += 1) table.set(`stays/${index}`, emptyEntry());
  for (let index = 0; index < 3 * entriesPerPage; index += 1) table.set(`goes/${index}`, emptyEntry());
  const met: string[] = [];
  const cursor = table.cursor();
  for (let step = 0; cursor.next(); step += 1) {
    if (cursor.name.startsWith("stays/")) met.push(cursor.name);
    remove(table, `goes/${step}`);
    if (step % 2 === 0) table.set(`comes/${step}`, emptyEntry());
    if (step === 40) break;
  }
  while (cursor.next()) if (cursor.name.startsWith("stays/")) met.push(cursor.name);
  expect(met).toHaveLength(3 * entriesPerPage);
  expect(new Set(met).size).toBe(met.length);
});

test("a page reuses the space of removed names, so that changing names do not make it grow", () => {
  const page = new EntryPage(1, 1);
  const owners = new OwnerNumbers();
  const words = new Uint32Array(128);
  const slots: number[] = [];
  for (let turn = 0; turn < 10_000; turn += 1) {
    if (slots.length === 3) page.free(slots.shift()!, owners);
    slots.push(page.take(words, 100 + (turn % 100)));
  }
  expect(page.namesBytes).toBeLessThan(2_000);
});

test("an owner's number is free again when no entry names the owner any more", () => {
  const owners = new OwnerNumbers();
  const table = new EntryTable(0);
  const first = owners.take("a.1");
  expect([owners.take("a.1"), owners.take("b.1") === first, owners.take("")]).toEqual([first, false, 0]);
  owners.give(first);
  expect(owners.owner(first)).toBe("a.1");
  owners.give(first);
  expect(owners.take("c.1")).toBe(first);
  for (let turn = 0; turn < 3; turn += 1)
    table.set("r", { ...emptyEntry(), leaseOwner: `o.${turn}`, promisedOwner: `o.${turn}` });
  expect(table.owners).toBe(1);
});
