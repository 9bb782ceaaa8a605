import { describe, expect, test } from "vitest";
import { atomic, delayMs, PaperBench } from "../../../../../test/support/paper-bench.js";
import { compareRanks, type Rank, RankedRegister } from "./ranked-register.js";

const name = "ranked/x";
const rank = (round: number, writer = "p"): Rank => ({ round: BigInt(round), writer });

class Stage {
  readonly bench = new PaperBench(atomic);
  readonly #players = new Map<string, ReturnType<PaperBench["player"]>>();

  register(): RankedRegister {
    return new RankedRegister({ farm: this.bench.farm, name, timeoutMs: delayMs });
  }

  async read(register: RankedRegister, at: Rank) {
    return this.bench.wait(this.#player(at.writer).run(register.read(at)));
  }

  async write(register: RankedRegister, at: Rank, value: string) {
    return this.bench.wait(this.#player(at.writer).run(register.write(at, value)));
  }

  #player(writer: string) {
    const player = this.#players.get(writer) ?? this.bench.player(writer);
    this.#players.set(writer, player);
    return player;
  }
}

test("ranks are totally ordered, and two processes never have the same", () => {
  expect(compareRanks(rank(1, "z"), rank(2, "a"))).toBe(-1);
  expect(compareRanks(rank(2, "a"), rank(2, "b"))).toBe(-1);
  expect(compareRanks(rank(2, "b"), rank(2, "a"))).toBe(1);
  expect(compareRanks(rank(2, "b"), rank(2, "b"))).toBe(0);
});

describe("rr-read and rr-write", () => {
  test("a read reports that nothing was written", async () => {
    const stage = new Stage();
    expect(await stage.read(stage.register(), rank(1))).toMatchObject({ kind: "read", value: undefined });
  });

  test("a read returns the value committed with the greatest rank", async () => {
    const stage = new Stage();
    const [one, two] = [stage.register(), stage.register()];
    expect(await stage.write(one, rank(1, "a"), "first")).toBe("commit");
    await stage.read(two, rank(2, "b"));
    expect(await stage.write(two, rank(2, "b"), "second")).toBe("commit");
    expect(await stage.read(one, rank(3, "a"))).toMatchObject({ value: "second", rank: rank(2, "b") });
  });

  test("after a read of a greater rank a smaller one aborts, in reading and in writing", async () => {
    const stage = new Stage();
    const [one, two] = [stage.register(), stage.register()];
    await stage.read(one, rank(1, "a"));
    await stage.read(two, rank(5, "b"));
    expect(await stage.write(one, rank(1, "a"), "too late")).toBe("abort");
    expect(await stage.read(one, rank(4, "a"))).toEqual({ kind: "aborted", greatest: rank(5, "b") });
    expect(await stage.read(two, rank(6, "b"))).toMatchObject({ value: undefined });
  });

  test("after a write of a greater rank a smaller one aborts", async () => {
    const stage = new Stage();
    const [one, two] = [stage.register(), stage.register()];
    await stage.write(two, rank(2, "b"), "greater");
    expect(await stage.write(one, rank(1, "a"), "smaller")).toBe("abort");
    expect(await stage.read(one, rank(3, "a"))).toMatchObject({ value: "greater" });
  });

  test("equal rounds of two processes are two ranks: the greater one's read stops the other", async () => {
    const stage = new Stage();
    const [one, two] = [stage.register(), stage.register()];
    await stage.read(one, rank(1, "a"));
    await stage.read(two, rank(1, "b"));
    expect(await stage.write(one, rank(1, "a"), "a's")).toBe("abort");
    expect(await stage.write(two, rank(1, "b"), "b's")).toBe("commit");
  });

  test("a majority is enough, and fewer stores mean an abort", async () => {
    const stage = new Stage();
    const one = stage.register();
    stage.bench.media[0]!.stall("requests");
    expect(await stage.write(one, rank(1), "by two")).toBe("commit");
    stage.bench.media[1]!.stall("requests");
    expect(await stage.write(one, rank(2), "by one")).toBe("abort");
    expect((await stage.read(one, rank(3))).kind).toBe("aborted");
  });

  test("a later read may find a value that an aborted write has left in some stores, and then writes it again", async () => {
    const stage = new Stage();
    const [one, two] = [stage.register(), stage.register()];
    for (const store of [1, 2]) stage.bench.media[store]!.stall("requests");
    expect(await stage.write(one, rank(1, "a"), "half done")).toBe("abort");
    for (const store of [1, 2]) stage.bench.media[store]!.crash();
    stage.bench.media[2]!.stall("requests");
    expect(await stage.read(two, rank(2, "b"))).toMatchObject({ value: "half done", rank: rank(1, "a") });
  });

  test("foreign content is not overwritten", async () => {
    const stage = new Stage();
    const foreign = new TextEncoder().encode("not yours");
    stage.bench.media[0]!.plant(name, foreign);
    expect(await stage.write(stage.register(), rank(1), "by two")).toBe("commit");
    expect(stage.bench.media[0]!.cells(name)).toEqual([foreign]);
    stage.bench.media[1]!.plant(name, foreign);
    expect(await stage.write(stage.register(), rank(2), "by one")).toBe("abort");
  });
});
