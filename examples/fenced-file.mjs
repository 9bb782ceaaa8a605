// A fenced write to a file. A writer checks that it holds its lease, and is then stopped for a long time, by
// the scheduler or because its machine is suspended. When it resumes, it performs its write, although its
// lease has long had another holder. No lock service can prevent this from outside: the resource has to
// refuse the write. Tokens exist for this purpose. Here each write carries the token, and the file's guard
// refuses late writes.
//
//   node fenced-file.mjs        starts two writers; the first stops itself between its check and its write
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, open as openFile, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { open } from "leasehold";

/**
 * The guard of a file, in the one process through which all writes go (a storage service, for example). The
 * text and the greatest token seen are in one file, which one rename replaces, so they agree even after a
 * power failure. Writes run one after the other, so that nothing comes between the comparison and the rename.
 */
class FencedFile {
  #path;
  #last = Promise.resolve();

  constructor(path) {
    this.#path = path;
  }

  async read() {
    try {
      const { token, text } = JSON.parse(await readFile(this.#path, "utf8"));
      return { token: BigInt(token), text };
    } catch (error) {
      if (error.code === "ENOENT") return { token: 0n, text: "" };
      throw error;
    }
  }

  /** Throws, without a change, if the guard has seen a greater token. */
  write(token, text) {
    const written = this.#last.then(() => this.#replace(token, text));
    this.#last = written.catch(() => undefined);
    return written;
  }

  async #replace(token, text) {
    const { token: greatest } = await this.read();
    if (token < greatest) throw new Error(`token ${token} is refused: ${greatest} has been here`);
    const fresh = `${this.#path}.new`;
    const file = await openFile(fresh, "w");
    await file.writeFile(JSON.stringify({ token: String(token), text })); // a token may be larger than a JSON number
    await file.sync();
    await file.close();
    await rename(fresh, this.#path);
    const folder = await openFile(dirname(this.#path), "r"); // the rename must reach the disk, too
    await folder.sync();
    await folder.close();
  }
}

/** A writer, in a process of its own. */
async function writer(name) {
  const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400", { name });
  const lease = await leases.acquire("examples/fenced-file");
  lease.assertHeld(100); // true at the time of the check …
  if (name === "slow") await stopHere(); // … and then much time passes before the next line
  process.send({ token: String(lease.token), text: `by ${name}` });
  const [answer] = await once(process, "message");
  console.log(`${name}: ${answer}`);
  await lease.release();
  await leases.close();
  process.disconnect();
}

async function stopHere() {
  await new Promise((resolve) => process.send("stopped", resolve));
  process.kill(process.pid, "SIGSTOP");
}

/** The storage service: it owns the file and receives the writes. */
async function serve() {
  const folder = await mkdtemp(join(tmpdir(), "fenced-"));
  const file = new FencedFile(join(folder, "report"));

  const slow = startWriter("slow", file);
  await once(slow, "message"); // it holds the lease and has stopped
  const quick = startWriter("quick", file);
  await once(quick, "exit"); // it waited until the other's lease had expired, and wrote
  slow.kill("SIGCONT");
  await once(slow, "exit");

  console.log(`the file says: ${(await file.read()).text}`);
  await rm(folder, { recursive: true });
}

function startWriter(name, file) {
  const child = fork(fileURLToPath(import.meta.url), [name]);
  child.on("message", (message) => {
    if (message === "stopped") return;
    file.write(BigInt(message.token), message.text).then(
      () => child.send(`token ${message.token} is written`),
      (error) => child.send(error.message),
    );
  });
  return child;
}

if (process.argv[2] === undefined) await serve();
else await writer(process.argv[2]);
