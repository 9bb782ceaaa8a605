import { expect, test } from "vitest";
import { CoreError } from "../../../state/errors.js";
import { healthOf, type HealthParts } from "./health.js";

/** A server whose linearizable and serializable reads fail with these codes. */
function parts(
  more: { majority?: Error; own?: Error; corrupt?: bigint[]; voters?: bigint[] } = {},
): HealthParts {
  const { corrupt = [], majority, own, voters = [1n, 2n, 3n] } = more;
  const membership = { voters, learners: [], next: [] };
  return {
    status: () => ({ id: 1n, corruptAlarms: corrupt, membership: membership as never }),
    local: {
      ask: (_method: unknown, request: { serializable?: boolean }) => {
        const failure = request.serializable === true ? own : majority;
        return failure === undefined ? Promise.resolve({}) : Promise.reject(failure);
      },
    } as unknown as HealthParts["local"],
  };
}

test("a healthy server is alive and ready; the checks are listed on request", async () => {
  expect(await healthOf("/livez", "", parts())).toEqual({ status: 200, text: "ok\n" });
  const all = ["data_corruption", "serializable_read", "linearizable_read", "non_learner"];
  const text = [...all.map((name) => `[+]${name} ok`), "ok", ""].join("\n");
  expect(await healthOf("/readyz", "verbose", parts())).toEqual({ status: 200, text });
});

test("a server without a leader is alive but not ready, and so is a learner; each check is named", async () => {
  const without = parts({ majority: new CoreError("noLeader") });
  expect((await healthOf("/livez", "", without)).status).toBe(200);
  const { status, text } = await healthOf("/readyz", "", without);
  expect([status, text]).toEqual([
    503,
    expect.stringMatching(/^\[-\]linearizable_read failed: .*no leader\nreadyz/),
  ]);
  expect((await healthOf("/readyz", "exclude=linearizable_read", without)).status).toBe(200);
  const learner = await healthOf("/readyz", "", parts({ voters: [2n] }));
  expect(learner.text).toBe("[-]non_learner failed: this server does not vote\nreadyz check failed\n");
});

test("a corrupt server is not ready, and one that answers no reads is not alive", async () => {
  expect((await healthOf("/readyz/data_corruption", "", parts({ corrupt: [2n] }))).status).toBe(503);
  const stuck = parts({ own: new Error("stuck") });
  expect((await healthOf("/livez", "", stuck)).text).toMatch(/\[-\]serializable_read failed: .*stuck\nlivez/);
  expect((await healthOf("/livez/other", "", parts())).status).toBe(404);
});

test("a refusal for lack of rights counts as an answer", async () => {
  expect((await healthOf("/readyz", "", parts({ majority: new CoreError("permissionDenied") }))).status).toBe(
    200,
  );
});
