import type { Store } from "../../delta/store.js";
import { bytes, check, checkCell, checkSame, type StoreStage, text } from "./stage.js";

const processes = 8;
const incrementsEach = 10;

/**
 * The maximum number of consecutive refused increments. Each refusal means that another increment succeeded,
 * so their number is bounded.
 */
const triesMax = processes * incrementsEach + 1;

type Case = (stage: StoreStage) => Promise<void>;

/** The requirements for stores that compare and set. */
export const atomicCases = {
  "a cell is created once": async (stage) => {
    const [one, two] = await stage.openMany(2);
    const register = stage.name("r");
    checkSame((await stage.replace(one!, register, undefined, bytes("first"))).kind, "written", "the first");
    const answer = await stage.replace(two!, register, undefined, bytes("second"));
    check(answer.kind === "conflict", `the second creation was answered with ${answer.kind}`);
    checkCell(answer.cells, bytes("first"), "what the refusal shows");
    checkCell(await stage.cells(two!, register), bytes("first"), "the cell");
  },

  "a cell is replaced only if it is exactly what was expected": async (stage) => {
    const store = await stage.open();
    const register = stage.name("r");
    await stage.write(store, register, "first");
    for (const wrong of ["", "firs", "first ", "First", "other"]) {
      const answer = await stage.replace(store, register, bytes(wrong), bytes("second"));
      check(
        answer.kind === "conflict",
        `expecting ${JSON.stringify(wrong)} was answered with ${answer.kind}`,
      );
      checkCell(answer.cells, bytes("first"), "what the refusal shows");
    }
    checkSame(
      (await stage.replace(store, register, bytes("first"), bytes("2"))).kind,
      "written",
      "the right one",
    );
    checkCell(await stage.cells(store, register), bytes("2"), "the cell");
    checkSame(
      (await stage.replace(store, register, bytes("first"), bytes("3"))).kind,
      "conflict",
      "the old one",
    );
  },

  "a cell that was never written matches no expected content": async (stage) => {
    const store = await stage.open();
    const answer = await stage.replace(store, stage.name("r"), bytes("something"), bytes("next"));
    check(answer.kind === "conflict", `it was answered with ${answer.kind}`);
    checkSame(answer.cells, [], "what the refusal shows");
    checkSame(await stage.texts(store, stage.name("r")), [], "the cell");
  },

  "a write that names another marker is refused": async (stage) => {
    const store = await stage.open();
    const register = stage.name("r");
    const replace = (expected: Uint8Array | undefined) =>
      store.perform({ op: "replace", register, id: "another", expected, next: bytes("next") });
    const created = await replace(undefined);
    check(created.kind === "conflict", `a creation was answered with ${created.kind}`);
    checkSame(created.id, await stage.id(store), "the marker that the refusal shows");
    await stage.write(store, register, "first");
    checkSame((await replace(bytes("first"))).kind, "conflict", "a replacement");
    checkCell(await stage.cells(store, register), bytes("first"), "the cell");
  },

  "of many concurrent replacements exactly one is written": async (stage) => {
    const stores = await stage.openMany(processes);
    for (let round = 0; round < 5; round += 1) {
      const register = stage.name(`race/${round}`);
      await raceOnce(stage, stores, register, undefined);
      await raceOnce(stage, stores, register, (await stage.cells(stores[0]!, register))[0]);
    }
  },

  "no increment is lost": async (stage) => {
    const stores = await stage.openMany(processes);
    const register = stage.name("counter");
    const incrementAll = async (store: Store, who: number) => {
      for (let count = 0; count < incrementsEach; count += 1) await increment(stage, store, register, who);
    };
    await Promise.all(stores.map(incrementAll));
    const [last] = await stage.texts(stores[0]!, register);
    checkSame(last?.split(" ")[0], String(processes * incrementsEach), "the counter");
  },

  "a concurrent read returns the old or the new content, and never goes back": async (stage) => {
    const [writer, reader] = await stage.openMany(2);
    const register = stage.name("r");
    const content = (count: number) => `${count} ${"x".repeat(300)}`;
    await stage.write(writer!, register, content(0));
    const write = async () => {
      for (let count = 1; count <= 50; count += 1) {
        const answer = await stage.replace(
          writer!,
          register,
          bytes(content(count - 1)),
          bytes(content(count)),
        );
        checkSame(answer.kind, "written", "a replacement");
      }
    };
    const read = async () => {
      for (let reads = 0, greatest = 0; reads < 50; reads += 1) {
        const [cell] = await stage.texts(reader!, register);
        const count = Number(cell?.split(" ")[0]);
        check(cell === content(count), `a reader found ${JSON.stringify(cell)}`);
        check(count >= greatest, `a reader found ${count} after ${greatest}`);
        greatest = count;
      }
    };
    await Promise.all([write(), read()]);
  },
} satisfies Record<string, Case>;

async function raceOnce(
  stage: StoreStage,
  stores: readonly Store[],
  register: string,
  expected: Uint8Array | undefined,
): Promise<void> {
  const contents = stores.map(() => bytes(globalThis.crypto.randomUUID()));
  const answers = await Promise.all(
    stores.map((store, index) => stage.replace(store, register, expected, contents[index]!)),
  );
  const winners = contents.filter((_, index) => answers[index]!.kind === "written");
  checkSame(winners.length, 1, "the number of acknowledged writes");
  checkCell(await stage.cells(stores.at(-1)!, register), winners[0]!, "the cell");
}

async function increment(stage: StoreStage, store: Store, register: string, who: number): Promise<void> {
  let [cell] = await stage.cells(store, register);
  for (let tries = 0; tries < triesMax; tries += 1) {
    const count = cell === undefined ? 0 : Number(text(cell).split(" ")[0]);
    const next = bytes(`${count + 1} by ${who} ${globalThis.crypto.randomUUID()}`);
    const answer = await stage.replace(store, register, cell, next);
    if (answer.kind === "written") return;
    check(answer.kind === "conflict", `a replacement was answered with ${answer.kind}`);
    cell = answer.cells[0];
  }
  check(false, `${triesMax} replacements in a row were refused`);
}
