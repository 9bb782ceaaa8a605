// The proposer of the bare exchange. An acquisition is one request to each acceptor and completes with the
// second answer. The requests of one turn of the event loop leave as one write to each acceptor.
import { once } from "node:events";
import { connect as dial } from "node:net";
import { afterName, answerBytes, beforeName, Frame, kinds, readFrames } from "./frames.mjs";

const majority = 2;
const ttlMs = 10_000;

export async function connect(ports) {
  const asked = [];
  const free = [];
  const requests = new Frame();
  let lastNumber = 0;

  const sockets = ports.map((port) => dial({ port, host: "127.0.0.1", noDelay: true }));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  for (const socket of sockets) readFrames(socket, answered);

  function answered(bytes, start, end) {
    for (let at = start; at < end; at += answerBytes) {
      const which = bytes.readUInt32BE(at + 1);
      const one = asked[which];
      one.answers += 1;
      if (one.answers === majority) one.done({ name: one.name, number: bytes.readDoubleBE(at + 5) });
      if (one.answers === sockets.length) free.push(which);
    }
  }

  const flush = () => requests.writeTo(sockets);

  /** Returns the offset after the name. */
  function request(kind, which, name, number) {
    if (requests.isEmpty) process.nextTick(flush);
    const at = requests.add(beforeName + name.length + afterName[kind]);
    const { bytes } = requests;
    bytes[at] = kind;
    bytes.writeUInt32BE(which, at + 1);
    bytes.writeUInt16BE(name.length, at + 5);
    bytes.write(name, at + beforeName, "latin1");
    const nameEnd = at + beforeName + name.length;
    bytes.writeDoubleBE(number, nameEnd);
    bytes.writeUInt32BE(0, nameEnd + 8);
    return nameEnd;
  }

  return {
    /** Names must be ASCII. */
    acquire(name) {
      const which = free.pop() ?? asked.push({ name: "", answers: 0, done: undefined }) - 1;
      const number = (lastNumber += 1);
      const at = request(kinds.acquire, which, name, number);
      requests.bytes[at + 12] = 0;
      requests.bytes.writeDoubleBE(number + ttlMs, at + 13);
      requests.bytes.writeDoubleBE(ttlMs, at + 21);
      return new Promise((done) => {
        const one = asked[which];
        one.name = name;
        one.answers = 0;
        one.done = done;
      });
    },
    /** Like Leasehold's release, it waits for no answer. */
    release: ({ name, number }) => void request(kinds.release, 0, name, number),
    close() {
      for (const socket of sockets) socket.destroy();
    },
  };
}
