import { expect, test } from "vitest";
import { guardPath } from "../../../../../test/support/built.js";
import { GuardedCommand } from "./guarded-command.js";
import { now } from "./guard-link.js";

test.skipIf(process.platform !== "linux")(
  "a command whose variables are too long for the system is not started, and the guard says so",
  async () => {
    const { monotonicMs, wallMs } = now();
    const command = new GuardedCommand({
      bytes: { words: ["true"], variables: [] },
      env: { LONG: "x".repeat(200_000) },
      deadline: { monotonicMs: monotonicMs + 10_000, wallMs: wallMs + 10_000 },
      limits: { killAfterMs: 1_000, killMarginMs: 500 },
      guardPath,
    });
    expect(await command.ended).toMatchObject({ kind: "not-started", code: "E2BIG" });
  },
);
