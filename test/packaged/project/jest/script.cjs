test("a test in CommonJS that imports", async () => {
  const { use } = await import("../use.mjs");
  console.log(JSON.stringify(await use()));
}, 30_000);
