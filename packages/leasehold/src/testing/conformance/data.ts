import type { Change, HolderHint, JsonValue, Leases } from "../../lease/types.js";
import { check, codeOf, type Stage, thrown } from "./stage.js";

const first: JsonValue = { port: 8080, zones: ["eu", null, true], note: 'ü "\\' };
const second: JsonValue = { port: 8081 };

/** The longest data: 1,024 bytes of JSON with its quotes. */
const longest = "é".repeat(511);

/** On some grounds data travels separately from the lease, and may arrive after it. */
const dueTtls = 4;

type Report = Pick<HolderHint, "data" | "token">;

function same(one: JsonValue | undefined, other: JsonValue | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Each query about one name. */
function queries(leases: Leases, name: string): [call: string, ask: () => Promise<Report>][] {
  const listed = async () => (await leases.list(name)).find(({ resource }) => resource === name) ?? {};
  const canBeAsked = codeOf(thrown(() => void leases.watch("").return?.())) !== "UNSUPPORTED";
  return [
    ["holder()", () => leases.holder(name)],
    ["list()", listed],
    ...(canBeAsked ? ([["explain()", () => leases.explain(name)]] as [string, () => Promise<Report>][]) : []),
  ];
}

/** Fails when the data of one tenure is reported with another's token. */
function checkOwn({ token, data }: Report, tenures: Map<bigint, JsonValue | undefined>, call: string): void {
  if (token === undefined || data === undefined) return;
  check(
    same(tenures.get(token), data),
    `${call} reports the data ${JSON.stringify(data)}, which is another tenure's, with token ${token}`,
  );
}

async function checkReported(
  stage: Stage,
  leases: Leases,
  name: string,
  token: bigint,
  tenures: Map<bigint, JsonValue | undefined>,
): Promise<void> {
  for (const [call, ask] of queries(leases, name)) {
    const isIt = (answer: Report) => {
      checkOwn(answer, tenures, call);
      return answer.token === token && same(answer.data, tenures.get(token));
    };
    await stage.eventually(ask, isIt, `${call} with the data of its tenure`, dueTtls * stage.ttlMs);
  }
}

/** Reads changes until a tenure is reported with its data. */
async function seen(
  stage: Stage,
  watch: AsyncIterator<Change, undefined>,
  token: bigint,
  tenures: Map<bigint, JsonValue | undefined>,
): Promise<void> {
  for (;;) {
    const { value } = await stage.until(watch.next(), "a watch that should report the data of a tenure");
    check(value !== undefined, "a watch ended before it reported the data of a tenure");
    checkOwn(value, tenures, "watch()");
    if (value.token === token && value.state === "held" && same(value.data, tenures.get(token))) return;
  }
}

async function refusedWhereUnsupported(stage: Stage, leases: Leases): Promise<boolean> {
  if (leases.guarantees.data) return false;
  const call = leases.tryAcquire(stage.name("data"), { ttl: stage.ttlMs, data: first });
  await stage.rejectsWith(call, "UNSUPPORTED", "data on a ground that has no room for it");
  return true;
}

export const dataCases = {
  "others read the data of a tenure, and never with another's token": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    if (await refusedWhereUnsupported(stage, alice)) return;
    const name = stage.name("data");
    const canWatch = queries(bob, name).length === 3;
    const watch = canWatch ? bob.watch(name) : undefined;
    const tenures = new Map<bigint, JsonValue | undefined>();
    const lease = await stage.take(alice, "data", { data: first });
    tenures.set(lease.token, first);
    await checkReported(stage, bob, name, lease.token, tenures);
    if (watch !== undefined) await seen(stage, watch, lease.token, tenures);
    await stage.pass(2 * stage.ttlMs);
    await checkReported(stage, bob, name, lease.token, tenures);
    await stage.until(lease.release(), "release");
    const plain = await stage.takeSoon(bob, "data", "the acquisition after a release");
    tenures.set(plain.token, undefined);
    await checkReported(stage, alice, name, plain.token, tenures);
    await stage.until(plain.release(), "release");
    const last = await stage.take(alice, "data", { data: second });
    tenures.set(last.token, second);
    await checkReported(stage, bob, name, last.token, tenures);
    if (watch !== undefined) await seen(stage, watch, last.token, tenures);
    await watch?.return?.();
  },

  "data of up to 1,024 bytes of JSON is accepted, and longer data is refused": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    if (await refusedWhereUnsupported(stage, alice)) return;
    const refused: [string, unknown][] = [
      ["1,025 bytes", `${longest}x`],
      ["a bigint", { token: 1n }],
      ["not a number", [Number.NaN]],
      ["an instance", { at: new Date(0) }],
      ["a function", { run: () => undefined }],
      ["a name with a meaning of its own", JSON.parse('{"__proto__":{}}')],
    ];
    for (const [what, data] of refused) {
      const call = alice.tryAcquire(stage.name("long"), { ttl: stage.ttlMs, data: data as JsonValue });
      await stage.rejectsWith(call, "INVALID_CONFIG", `data with ${what}`);
    }
    const lease = await stage.take(alice, "long", { data: longest });
    await checkReported(stage, bob, stage.name("long"), lease.token, new Map([[lease.token, longest]]));
  },
};
