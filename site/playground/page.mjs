import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { rolldown } from "rolldown";

/**
 * The frame in which the playground runs what a reader has written. It has everything within itself, and no origin
 * (`sandbox`): that code reaches neither the network nor what the site keeps. `from` is the folder of its sources.
 */
export async function playgroundPage(from) {
  const bundle = await rolldown({ input: `${from}/worker.mjs`, platform: "browser" });
  const { output } = await bundle.generate({ format: "iife", minify: true });
  const worker = output[0].code.replaceAll("</script", "<\\/script");
  const script = readFileSync(`${from}/frame.mjs`, "utf8");
  const hash = createHash("sha256").update(script).digest("base64");
  const policy = `default-src 'none'; script-src 'sha256-${hash}' blob:; worker-src blob:`;
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="${policy}" />
    <title>Playground</title>
  </head>
  <body>
    <script type="text/plain" id="worker">${worker}</script>
    <script>${script}</script>
  </body>
</html>
`;
}
