// A plain HTTP server of the files in one folder, in its simplest form. `files-whole.mjs` compares reads with
// it.
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { pipeline } from "node:stream";

const [, , folder] = process.argv;
const server = createServer((request, response) => {
  const path = join(folder, request.url);
  response.writeHead(200, { "content-length": statSync(path).size });
  pipeline(createReadStream(path), response, () => {});
}).listen(0, "127.0.0.1", () => process.send(server.address().port));
process.on("disconnect", () => process.exit());
