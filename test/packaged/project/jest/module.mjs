import { use } from "../use.mjs";

test("a test that is an ES module", async () => {
  console.log(JSON.stringify(await use()));
}, 30_000);
