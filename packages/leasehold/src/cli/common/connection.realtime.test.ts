import { expect, test } from "vitest";
import { withLeasesInTurn } from "./connection.js";
import { settingsOf } from "./settings.js";

/** A port without a listener. */
const settings = settingsOf({ endpoints: ["127.0.0.1:1"], timeout: "10ms" });
const never = new AbortController().signal;
const use = (): Promise<void> => Promise.reject(new Error("nothing was opened"));

test("--wait limits the wait for members, too; without it --timeout does", async () => {
  const begunMs = performance.now();
  await expect(withLeasesInTurn(settings, {}, never, use)).rejects.toMatchObject({ code: "UNREACHABLE" });
  const patientMs = performance.now();
  const patient = withLeasesInTurn(settings, { wait: "3s" }, AbortSignal.timeout(500), use);
  await expect(patient).rejects.toMatchObject({ name: "TimeoutError" });
  expect(patientMs - begunMs).toBeLessThan(20_000);
});

test("a wait that is shorter than --timeout limits the wait for members, too", async () => {
  const patient = settingsOf({ endpoints: ["127.0.0.1:1"], timeout: "1h" });
  await expect(withLeasesInTurn(patient, { wait: "10ms" }, never, use)).rejects.toMatchObject({
    code: "UNREACHABLE",
  });
});

test("a signal ends the opening at once, also an earlier one", async () => {
  const asked = new AbortController();
  const opening = withLeasesInTurn(settings, { wait: "10m" }, asked.signal, use);
  asked.abort(new Error("asked to end"));
  await expect(opening).rejects.toThrow("asked to end");
  await expect(withLeasesInTurn(settings, { wait: "10m" }, asked.signal, use)).rejects.toThrow(
    "asked to end",
  );
});
