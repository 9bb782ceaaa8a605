import fc from "fast-check";
import { MemoryCluster } from "leasehold/testing";
import { expect, test } from "vitest";
import { effort } from "../../../../test/support/effort.js";
import { RouteTable } from "../http/route-table.js";
import { actions } from "../rights/rights.js";
import { parseUsers } from "../rights/users.js";
import { Gateway } from "../sessions/gateway.js";
import { limitsDefault } from "../sessions/limits.js";
import { LeaseholdError } from "leasehold/common";
import { acquireFields, cancelFields, handOverFields } from "./fields.js";
import { HttpRefusal, problemOf } from "./problem.js";
import { type Answer, routesOf } from "./routes.js";

/** Any request to any route is answered or refused with a reason, and leaves nothing behind. */

const names = ["a", "b", "a/~rw", "a/", "../a", "a%2Fb", "a\0", "\u202ea", "аdmin", "~/1", "x/~0", ""];
const odd = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    -1,
    0,
    0.5,
    2 ** 53,
    Number.NaN,
    [],
    {},
    [[]],
    "1s",
    "-1s",
    "1e9h",
    "9".repeat(400),
  ),
  fc.constantFrom(...names),
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom("x".repeat(512), "x".repeat(513), "é".repeat(257)),
);
const fieldNames = [
  ...new Set([acquireFields, cancelFields, handOverFields].flatMap((fields) => Object.keys(fields))),
  "__proto__",
  "constructor",
  "lease",
];
const likely = {
  resource: fc.constantFrom(...names),
  resources: fc.array(fc.constantFrom(...names), { maxLength: 66 }),
  wait: fc.constantFrom<unknown>(0, "200ms", "1s"),
  ttl: fc.constantFrom<unknown>("1s", "2s", 999, "1h1m", "0s"),
  key: fc.constantFrom("k", "l"),
  to: fc.constantFrom("gateway", "other"),
};
const field = fc.constantFrom(...fieldNames).chain((name) => {
  const value = Object.hasOwn(likely, name) ? likely[name as keyof typeof likely] : odd;
  return fc.tuple(
    fc.constant(name),
    fc.oneof({ weight: 4, arbitrary: value }, { weight: 1, arbitrary: odd }),
  );
});
const body = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.array(field, { maxLength: 4 }).map((pairs) => Object.fromEntries(pairs) as unknown),
  },
  // `JSON.parse` makes `__proto__` an ordinary field.
  { weight: 1, arbitrary: fc.constant<unknown>(JSON.parse('{"__proto__":{"resource":"a"},"resource":"a"}')) },
  { weight: 1, arbitrary: odd },
);
const request = fc.record({
  method: fc.constantFrom("GET", "POST", "DELETE", "PUT"),
  route: fc.nat(),
  /** The index of an id from an earlier answer, or another id. */
  id: fc.oneof(
    { weight: 4, arbitrary: fc.nat() },
    { weight: 1, arbitrary: fc.constantFrom("s1", "s1.1", "..", "%2e", "a b") },
  ),
  path: fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.webPath() }),
  query: fc.array(fc.tuple(fc.constantFrom("resource", "prefix", "after", "x"), fc.constantFrom(...names)), {
    maxLength: 2,
  }),
  body,
  /** Whether the request has the route's method and only its fields. */
  fits: fc.boolean(),
  usesSession: fc.boolean(),
  owner: fc.constantFrom("ann", "bob"),
  key: fc.option(fc.constantFrom("k", "l"), { freq: 2, nil: undefined }),
  pollMs: fc.constantFrom(undefined, 0, 100),
  staysMs: fc.constantFrom(0, 100, 2_000),
});

class Stage {
  readonly #cluster = new MemoryCluster({ ttlMax: "4s" });
  readonly #leases = this.#cluster.open("gateway");
  readonly gateway: Gateway;
  readonly #routes;
  readonly #table: RouteTable;
  /** Sessions and leases from earlier answers. */
  readonly #ids: string[] = [];
  readonly outcomes: string[] = [];

  constructor() {
    const { clock, timers } = this.#cluster.world;
    let ids = 0;
    const newId = (): string => `s${(ids += 1)}`;
    this.gateway = new Gateway(this.#leases, { clock, timers, newId }, { ...limitsDefault, ttlMaxMs: 4_000 });
    this.#routes = routesOf(this.#leases, this.gateway);
    this.#table = new RouteTable(this.#routes);
  }

  async ask(asked: typeof request extends fc.Arbitrary<infer T> ? T : never): Promise<void> {
    const { owner, key, pollMs, usesSession } = asked;
    const { path: template, fields = {}, ...route } = this.#routes[asked.route % this.#routes.length]!;
    const method = asked.fits ? route.method : asked.method;
    const known = this.#ids[Number(asked.id) % (this.#ids.length || 1)] ?? "s1";
    const id = typeof asked.id === "string" ? asked.id : known;
    const sent = asked.body;
    const session = known.split(".")[0]!;
    const isObject = typeof sent === "object" && sent !== null && !Array.isArray(sent);
    const fitting = isObject ? Object.entries(sent).filter(([name]) => Object.hasOwn(fields, name)) : [];
    const own = asked.fits ? Object.fromEntries(fitting) : sent;
    const hasSession = usesSession && isObject && (!asked.fits || Object.hasOwn(fields, "session"));
    const whole = hasSession ? { ...(own as object), session } : own;
    const gone = new AbortController();
    const query = new URLSearchParams(asked.query);
    const work = async (): Promise<Answer> => {
      const found = this.#table.find(method, asked.path ?? template.replace("{id}", id));
      const must = (action: string, resource: string): void => {
        if (owner === "bob" && resource.startsWith("a"))
          throw new LeaseholdError("PERMISSION_DENIED", action);
      };
      const asker = {
        owner,
        receivedMs: this.#cluster.world.clock.monotonicMs(),
        signal: gone.signal,
        key,
        must,
        may: () => true,
        audit: () => undefined,
      };
      return found.route.answer({ asker, query, id: found.id, body: whole, pollMs });
    };
    const state = { isOver: false };
    const settled = work().then(
      (answer) => this.#answered(answer),
      (error: unknown) => this.#refused(error, gone.signal),
    );
    const over = (): boolean => (state.isOver = true);
    settled.then(over, over);
    for (let passed = 0; passed < asked.staysMs && !state.isOver; passed += 100)
      await this.#cluster.advance(100);
    gone.abort(new Error("gone"));
    for (let turn = 0; turn < 100 && !state.isOver; turn += 1) await this.#cluster.advance(100);
    if (!state.isOver) throw new Error(`no end of ${JSON.stringify(asked)}`);
    await settled;
  }

  /** Counts the sessions, leases and holders that are left once no client is waiting. */
  async left(): Promise<number[]> {
    await this.#cluster.advance(15_000);
    const { sessions, wanted } = this.gateway;
    const held = await this.#leases.list("");
    return [sessions, wanted, held.length];
  }

  async close(): Promise<void> {
    await this.gateway.close();
    await this.#cluster.close();
  }

  #answered({ status, body: answered = {} }: Answer): void {
    this.outcomes.push(String(status));
    if (status < 200 || status >= 300 || JSON.stringify(answered) === undefined)
      throw new Error(`unexpected status ${status}`);
    if ("session" in answered) this.#ids.push(String(answered.session));
    if ("leases" in answered)
      for (const { lease } of answered.leases as { lease: string }[]) this.#ids.push(lease);
  }

  #refused(error: unknown, signal: AbortSignal): void {
    if (error === signal.reason) return void this.outcomes.push("gone");
    const { status, code } = problemOf(error);
    this.outcomes.push(error instanceof HttpRefusal ? String(status) : code);
    if (status === 500) throw error;
  }
}

test("any request is answered or refused, and leaves nothing behind", async () => {
  const outcomes = new Map<string, number>();
  const requests = fc.array(request, { minLength: 1, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(requests, async (list) => {
      const stage = new Stage();
      for (const each of list) await stage.ask(each);
      for (const outcome of stage.outcomes) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      expect(await stage.left()).toEqual([0, 0, 0]);
      await stage.close();
    }),
    { numRuns: Math.ceil(100 * effort) },
  );
  for (const often of ["200", "201", "404", "405", "INVALID_CONFIG", "SESSION_GONE", "PERMISSION_DENIED"])
    expect([often, outcomes.get(often) ?? 0]).toEqual([often, expect.toSatisfy((count) => count > 4)]);
});

test("any file of users is read, or refused with the number of a line", () => {
  const hash = "0".repeat(63);
  const word = fc.oneof(
    fc.constantFrom(
      "ci",
      "jwt",
      "certificate",
      `sha256:${hash}1`,
      `sha256:${hash}`,
      "hold:",
      "see:%",
      "hold:%00",
      "#",
    ),
    fc.constantFrom(...actions).map((action) => `${action}:a/`),
    fc.string({ unit: "binary", maxLength: 8 }),
  );
  const text = fc
    .array(
      fc.array(word, { maxLength: 5 }).map((words) => words.join(" ")),
      { maxLength: 5 },
    )
    .map((lines) => lines.join("\n"));
  let read = 0;
  fc.assert(
    fc.property(text, (file) => {
      const why = whyNot(file);
      read += why === undefined ? 1 : 0;
      expect(why ?? "line 1 of").toMatch(/^line \d+ of/);
    }),
    { numRuns: Math.ceil(2_000 * effort) },
  );
  expect(read).toBeGreaterThan(20);
});

function whyNot(file: string): string | undefined {
  try {
    parseUsers(file);
    return undefined;
  } catch (error) {
    return error instanceof LeaseholdError && error.code === "INVALID_CONFIG" ? error.message : String(error);
  }
}
