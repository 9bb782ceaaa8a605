import { bytes, check, checkSame, known, type StoreStage } from "./stage.js";

/** Names that a careless adapter would confuse, lose or mishandle. Each is a separate resource. */
const awkwardNames = [
  "a",
  "A",
  "a/b",
  "a//b",
  "/a",
  "a/",
  "a%2Fb",
  "a%2fb",
  "a%",
  ".",
  "..",
  "../a",
  "./a",
  ".a",
  "a.",
  "a.1",
  "a.2",
  "a_b",
  "a__b",
  "a%_",
  " ",
  " a",
  "a ",
  "a b",
  "-a",
  "--",
  "*",
  "?",
  "a?b",
  "a#b",
  "a&b=c",
  "a+b",
  "a:b",
  "a;b",
  "a,b",
  "a\\b",
  "a'b",
  'a"b',
  "a$b",
  "a`b",
  "a|b",
  "<a>",
  "{a}",
  "[a]",
  "~a",
  "@a",
  "con",
  "nul.txt",
  "__proto__",
  "é",
  "e\u0301",
  "ß",
  "ẞ",
  "SS",
  "İ",
  "ı",
  "日本語",
  "😀",
  "\u200b",
  "a\u200b",
  "\ufeff",
  "\u2028",
];

/** Resource names that have the maximum length with the stage's prefix, and differ only in the last byte. */
const longNames = ["x", "y", "/", "."].map((end) => "n".repeat(440) + end);

/** More concurrent operations than any reasonable adapter has connections or threads. */
const atOnce = 200;

type Case = (stage: StoreStage) => Promise<void>;

/** The requirements for every store. */
export const commonCases = {
  "a register that was never written has no cells, and the store has a marker": async (stage) => {
    const store = await stage.open();
    checkSame(await stage.texts(store, stage.name("never")), [], "a register that was never written");
    const id = await stage.id(store);
    check(id !== "", "the marker is empty");
    checkSame(await stage.id(store), id, "the marker at the next read");
  },

  "its traits are valid": async (stage) => {
    const { traits } = await stage.open();
    checkSame(traits.kind, stage.ground.kind, "the kind");
    check(traits.bytesMax >= 400, `a record does not fit into ${traits.bytesMax} bytes`);
    check(traits.pollMs > 0 && traits.delayMs > 0, "pollMs and delayMs are not positive");
    check(traits.name !== "", "it has no name");
  },

  "a write of one process is read by another, even one that opens later": async (stage) => {
    const [writer, reader] = await stage.openMany(2);
    await stage.write(writer!, stage.name("r"), "Grüße 😀");
    checkSame(await stage.texts(reader!, stage.name("r")), ["Grüße 😀"], "read by another");
    await writer!.close();
    const later = await stage.open();
    checkSame(await stage.texts(later, stage.name("r")), ["Grüße 😀"], "read by one that opened later");
    checkSame(await stage.id(later), await stage.id(reader!), "the marker");
  },

  "processes that open an empty store at once find one marker": async (stage) => {
    const stores = await stage.openMany(8);
    const ids = await Promise.all(stores.map((store) => stage.id(store)));
    checkSame(new Set(ids).size, 1, "the number of markers");
  },

  "similar names are distinct registers": async (stage) => {
    const store = await stage.open();
    const names = [...awkwardNames, ...longNames].map((name) => stage.name(name));
    for (const name of names) await stage.write(store, name, `content of ${name}`);
    for (const name of names) {
      checkSame(await stage.texts(store, name), [`content of ${name}`], "the content of one of them");
    }
    checkSame([...(await stage.list(store, stage.prefix)).keys()].sort(), [...names].sort(), "the list");
  },

  "a list has the registers below the prefix, with their contents, and no more than its limit": async (
    stage,
  ) => {
    const store = await stage.open();
    const names = ["job", "jobs/1", "jobs/2", "jobs/3", "jobs_x", "job%/1", "other"];
    for (const name of names) await stage.write(store, stage.name(name), `at ${name}`);
    const below = (end: string) => stage.list(store, stage.name(end));
    checkSame(
      [...(await below("jobs/"))].sort(),
      ["1", "2", "3"].map((n) => [stage.name(`jobs/${n}`), `at jobs/${n}`]),
      "jobs/",
    );
    checkSame(
      [...(await below("job%")).keys()],
      [stage.name("job%/1")],
      "a prefix with a wildcard of some query languages",
    );
    checkSame([...(await below("jobs_")).keys()], [stage.name("jobs_x")], "a prefix with another");
    checkSame((await below("none")).size, 0, "a prefix of nothing");
    checkSame((await stage.list(store, stage.prefix, 4)).size, 4, "a list at its limit");
  },

  "content up to bytesMax is accepted, and longer content is refused": async (stage) => {
    const store = await stage.open();
    const longest = "x".repeat(store.traits.bytesMax);
    await stage.write(store, stage.name("longest"), longest);
    checkSame(await stage.texts(store, stage.name("longest")), [longest], "the longest content");
    const register = stage.name("longer");
    const next = bytes(`${longest}x`);
    const id = await stage.id(store);
    const answer = await store.perform(
      store.traits.kind === "atomic"
        ? { op: "replace", register, id, expected: undefined, next }
        : { op: "put", register, next },
    );
    check(answer.kind === "failed", `a content that is too long was answered with ${answer.kind}`);
    checkSame(answer.error.code, "STORE_FULL", "the error's code");
    checkSame(await stage.texts(store, register), [], "the register after that");
  },

  "the operations of the other kind of store are refused": async (stage) => {
    const store = await stage.open();
    const [register, id, next] = [stage.name("r"), await stage.id(store), bytes("x")];
    const answer = await store.perform(
      store.traits.kind === "atomic"
        ? { op: "put", register, next }
        : { op: "replace", register, id, expected: undefined, next },
    );
    check(answer.kind === "failed", `it was answered with ${answer.kind}`);
    checkSame(answer.error.code, "UNSUPPORTED", "the error's code");
    checkSame(await stage.texts(store, register), [], "the register after that");
  },

  "many concurrent operations all end": async (stage) => {
    const store = await stage.open();
    const names = Array.from({ length: atOnce }, (_, index) => stage.name(`many/${index}`));
    await Promise.all(names.map((name) => stage.write(store, name, name)));
    const found = await Promise.all(names.map((name) => stage.texts(store, name)));
    checkSame(
      found,
      names.map((name) => [name]),
      "what they wrote",
    );
  },

  "an operation whose caller has given up ends": async (stage) => {
    const store = await stage.open();
    const register = stage.name("r");
    const controller = new AbortController();
    const underWay = store.perform({ op: "read", register }, controller);
    controller.abort();
    await Promise.all([underWay, store.perform({ op: "read", register }, controller)]);
    checkSame(await stage.texts(store, register), [], "a read after that");
  },

  "after close everything fails, and closing again is allowed": async (stage) => {
    const store = await stage.open();
    await store.close();
    await store.close();
    const answer = await store.perform({ op: "read", register: stage.name("r") });
    check(answer.kind === "failed", `a read was answered with ${answer.kind}`);
    checkSame(answer.error.code, "STORE_UNAVAILABLE", "the error's code");
  },

  "a store that has forgotten never answers with its former marker": async (stage) => {
    const { ground } = stage;
    if (ground.forget === undefined) return;
    const store = await stage.open();
    const register = stage.name("r");
    await stage.write(store, register, "before");
    const id = await stage.id(store);
    await ground.forget();
    const answer = await store.perform({ op: "read", register });
    check(answer.kind === "failed" || answer.id !== id, "it answered with its former marker");
    if (store.traits.kind === "slotted") return;
    const next = bytes("after");
    const replaced = await store.perform({ op: "replace", register, id, expected: bytes("before"), next });
    check(replaced.kind !== "written", "it wrote although the request named another marker");
    const created = await store.perform({ op: "replace", register, id, expected: undefined, next });
    check(created.kind !== "written", "it created a cell although the request named another marker");
    const newcomer = await stage.open();
    check(
      known(await newcomer.perform({ op: "read", register })).id !== id,
      "a newcomer found the former marker",
    );
  },
} satisfies Record<string, Case>;
