// One acceptor of the bare exchange, in a process of its own. It stores the last number requested for each
// name, checks nothing and always accepts.
import { createServer } from "node:net";
import { afterName, answerBytes, beforeName, Frame, kinds, readFrames } from "./frames.mjs";

const held = new Map();

const server = createServer({ noDelay: true }, (socket) => {
  const answers = new Frame();
  readFrames(socket, (bytes, start, end) => {
    for (let at = start; at < end;) {
      const kind = bytes[at];
      const nameEnd = at + beforeName + bytes.readUInt16BE(at + 5);
      const name = bytes.toString("latin1", at + beforeName, nameEnd);
      if (kind === kinds.release) held.delete(name);
      else {
        held.set(name, bytes.readDoubleBE(nameEnd));
        const to = answers.add(answerBytes);
        bytes.copy(answers.bytes, to, at, at + 5);
        bytes.copy(answers.bytes, to + 5, nameEnd, nameEnd + answerBytes - 5);
      }
      at = nameEnd + afterName[kind];
    }
    if (!answers.isEmpty) answers.writeTo([socket]);
  });
  socket.on("error", () => {});
});
process.on("message", (asked) => {
  const { user, system } = process.cpuUsage();
  if (asked === "heap") globalThis.gc?.();
  process.send({ cpuUs: user + system, heapBytes: process.memoryUsage().heapUsed });
});
process.on("disconnect", () => process.exit());
server.listen(Number(process.argv[2]), "127.0.0.1", () => process.send("ready"));
