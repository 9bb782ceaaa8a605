// The work of these examples, which two processes must not do at the same time.
import { setTimeout as sleep } from "node:timers/promises";

export async function work(name, lease) {
  const say = (at) => console.log(JSON.stringify({ at, name, token: Number(lease.token), ms: Date.now() }));
  lease.assertHeld(100);
  say("begin");
  await sleep(Number(process.env.WORK_MS ?? 200));
  say("end");
}
