import { expect, test } from "vitest";
import type { Comparison } from "../copies/copies.js";
import type { CoreHost } from "../host/host.js";
import { Copies } from "./copies.js";

const found: Comparison = {
  revision: 9,
  same: [1n],
  different: [],
  incomparable: [],
  silent: [],
  corrupt: [],
  isOpen: false,
};
const undecided = { ...found, different: [2n], silent: [3n], corrupt: [0n], isOpen: true };

/** Returns these comparisons one after another, and then the last one repeatedly. */
function checked(...comparisons: Partial<Comparison>[]) {
  const said: string[] = [];
  let count = 0;
  const host: Pick<CoreHost, "request" | "step"> = {
    request: (_who, _request, _deadlineMs, answer) => {
      answer({} as never);
      return 1;
    },
    step: () => {
      const comparison = comparisons[Math.min(count, comparisons.length - 1)];
      count += 1;
      setImmediate(() => copies.take({ ...found, ...comparison }));
    },
  };
  const log = (_id: string, text: string) => void said.push(text);
  const limited = (_id: string, _cause: string, text: string) => void said.push(text);
  const copies = new Copies({
    host,
    self: 1n,
    electionMs: 5,
    reports: { nameOf: (id) => `s${id}`, limited, log },
  });
  return { copies, said, compared: () => count };
}

test("a server contradicted by one other waits for the third, and serves clients if that one agrees", async () => {
  const decided = { same: [1n, 3n], different: [2n], corrupt: [2n] };
  const { copies, said, compared } = checked(undecided, undecided, decided);
  await copies.checkOwn();
  expect(compared()).toBe(3);
  expect(said.join("\n")).toMatch(
    /before a majority says who is right: the keys of s2 are others, and s3 cannot/,
  );
  expect(said.at(-1)).toBe("initial check: the same keys as s3 at revision 9");
});

test("it stops if the third contradicts it, too, or agrees with neither", async () => {
  const wrong = { different: [2n, 3n], corrupt: [1n] };
  await expect(checked(undecided, wrong).copies.checkOwn()).rejects.toMatchObject({
    code: "LOG_CORRUPT",
    message: expect.stringMatching(/not those of s2, s3$/) as string,
  });
  await expect(checked({ different: [2n], corrupt: [0n] }).copies.checkOwn()).rejects.toMatchObject({
    code: "LOG_CORRUPT",
    message: expect.stringMatching(/there is no majority that says/) as string,
  });
});

test("a waiting server can be closed", async () => {
  const { copies, compared } = checked(undecided);
  const ended = copies.checkOwn().then(
    () => "serves",
    (error: Error) => error.name,
  );
  while (compared() < 2) await new Promise((resolve) => setImmediate(resolve));
  copies.close();
  expect(await ended).toBe("AbortError");
});
