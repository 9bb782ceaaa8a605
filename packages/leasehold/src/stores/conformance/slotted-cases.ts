import { checkSame, type StoreStage } from "./stage.js";

type Case = (stage: StoreStage) => Promise<void>;

/** The requirements for stores without compare-and-set. */
export const slottedCases = {
  "every writer has a slot of its own in each register": async (stage) => {
    const [one, two] = await stage.openMany(2);
    const register = stage.name("r");
    await stage.put(one!, register, "from one");
    await stage.put(two!, register, "from two");
    checkSame(await stage.texts(one!, register), ["from one", "from two"], "the register");
    await stage.put(one!, register, "again from one");
    checkSame(await stage.texts(two!, register), ["again from one", "from two"], "the register");
  },

  "writing one register does not change a writer's others": async (stage) => {
    const [one, two] = await stage.openMany(2);
    const names = Array.from({ length: 12 }, (_, index) => stage.name(`r${index}`));
    for (const name of names) await stage.put(one!, name, `first ${name}`);
    for (const name of names) await stage.put(two!, name, `second ${name}`);
    await stage.put(one!, names[3]!, "changed");
    for (const name of names) {
      const first = name === names[3] ? "changed" : `first ${name}`;
      checkSame(await stage.texts(two!, name), [first, `second ${name}`].sort(), "a register");
    }
  },

  "the writes of a process that is gone remain": async (stage) => {
    const one = await stage.open();
    const register = stage.name("r");
    await stage.put(one, register, "left behind");
    await one.close();
    const two = await stage.open();
    checkSame(await stage.texts(two, register), ["left behind"], "the register");
  },

  "writes of one process to one register take effect in their order": async (stage) => {
    const store = await stage.open();
    const register = stage.name("r");
    await Promise.all(Array.from({ length: 20 }, (_, index) => stage.put(store, register, `write ${index}`)));
    checkSame(await stage.texts(store, register), ["write 19"], "the register");
  },
} satisfies Record<string, Case>;
