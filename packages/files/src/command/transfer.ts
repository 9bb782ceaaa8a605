import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { basename } from "node:path";
import { type Readable, Transform, type Writable } from "node:stream";
import { exitCode, CommandFailure, usageError, printLine, toJson } from "leasehold/cli";
import { foldersHeader } from "../webdav/methods.js";
import type { Nodes } from "./nodes.js";
import { Progress } from "./progress.js";
import { type FilesOptions, filesSettingsOf, remotePath } from "./settings.js";

/** How often a broken transfer is resumed at another node before it fails. */
const resumesMax = 20;

/** `leasehold files put FILE [PATH]`. */
export async function put(local: string, remote: string | undefined, options: FilesOptions): Promise<number> {
  const { nodes, output } = filesSettingsOf(options);
  const isInput = local === "-";
  if (isInput && remote === undefined) throw usageError("put - needs the PATH of the file");
  const path = targetOf(remote ?? "", basename(local));
  const found = isInput ? undefined : await localFile(local);
  const progress = new Progress(path, found?.size);
  const open = (): Readable => {
    progress.at(0);
    const counter = counting(progress);
    const source = isInput ? process.stdin : createReadStream(local, { highWaterMark: 256 * 1024 });
    source.on("error", (error: Error) => counter.destroy(error));
    return source.pipe(counter);
  };
  const size = found === undefined ? {} : { bytes: found.size };
  const answer = await nodes.ask({
    method: "PUT",
    path,
    headers: { [foldersHeader]: "1" },
    body: { ...size, open, isRepeatable: !isInput },
  });
  answer.resume();
  const text = progress.end();
  if (output === "table") printLine(`${path}  ${text}`);
  else printLine(toJson({ path, bytes: progress.done, version: versionOf(answer.headers.etag) }));
  return exitCode("ok");
}

/** `leasehold files get PATH [FILE]`. */
export async function get(remote: string, local: string | undefined, options: FilesOptions): Promise<number> {
  const { nodes, output } = filesSettingsOf(options);
  const path = remotePath(remote);
  if (local === "-") {
    await download(nodes, path, () => process.stdout);
    return exitCode("ok");
  }
  const into = local ?? basename(path);
  // The existing file stays until the new content is complete.
  const part = `${into}.part`;
  try {
    const progress = await download(nodes, path, (from) =>
      createWriteStream(part, from === 0 ? {} : { flags: "r+", start: from }),
    );
    await rename(part, into);
    const text = progress.end();
    if (output === "table") printLine(`${into}  ${text}`);
    else printLine(toJson({ path, file: into, bytes: progress.done }));
    return exitCode("ok");
  } catch (error) {
    await rm(part, { force: true });
    throw fileFault(into, error);
  }
}

/** `leasehold files cat PATH…`. */
export async function cat(remotes: readonly string[], options: FilesOptions): Promise<number> {
  const { nodes } = filesSettingsOf(options);
  for (const remote of remotes) await download(nodes, remotePath(remote), () => process.stdout);
  return exitCode("ok");
}

/** Downloads a file. If the transfer breaks, it resumes at another node that has the same content. */
async function download(nodes: Nodes, path: string, open: (from: number) => Writable): Promise<Progress> {
  let progress: Progress | undefined;
  let etag: string | undefined;
  for (let resumes = 0; ; resumes += 1) {
    const from = progress?.done ?? 0;
    const headers = etag === undefined || from === 0 ? {} : { range: `bytes=${from}-`, "if-match": etag };
    const answer = await nodes.ask({ method: "GET", path, headers });
    const length = Number(answer.headers["content-length"] ?? 0);
    progress ??= new Progress(path, length);
    etag ??= answer.headers.etag;
    const sink = open(from);
    let isOurFault = false;
    const failed = (): boolean => (isOurFault = true);
    sink.on("error", failed);
    try {
      // Only bytes that were written count as done, because a broken pipeline may lose its buffers.
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        await written(sink, chunk);
        progress.at(progress.done + chunk.length);
      }
      if (sink !== process.stdout) await new Promise<void>((resolve) => sink.end(resolve));
      sink.off("error", failed);
      return progress;
    } catch (error) {
      if (sink !== process.stdout) await closed(sink);
      if (isOurFault || resumes === resumesMax) throw error;
      sink.off("error", failed);
    }
  }
}

function written(sink: Writable, chunk: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    sink.write(chunk, (error) => (error ? reject(error) : resolve()));
  });
}

async function closed(sink: Writable): Promise<void> {
  if (sink.closed) return;
  await new Promise<void>((resolve) => void sink.once("close", resolve).destroy());
}

function counting(progress: Progress): Transform {
  let done = progress.done;
  return new Transform({
    transform(chunk: Buffer, _encoding, next) {
      done += chunk.length;
      progress.at(done);
      next(null, chunk);
    },
  });
}

/** If the path ends with a slash or is missing, it names the folder. */
function targetOf(remote: string, name: string): string {
  return remotePath(remote === "" || remote.endsWith("/") ? remote + name : remote);
}

async function localFile(local: string): Promise<{ readonly size: number }> {
  const found = await stat(local).catch((error: unknown) => {
    throw fileFault(local, error);
  });
  if (found.isDirectory()) throw usageError(`${local} is a folder: put takes one file`);
  return found;
}

function fileFault(local: string, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined || code === undefined || code === "ECONNREFUSED") return error;
  if (code === "ENOENT") return new CommandFailure("missing", `there is no file ${local}`);
  return new CommandFailure("unexpected", `${local}: ${code}`);
}

function versionOf(etag: string | undefined): string | undefined {
  return etag?.replaceAll('"', "");
}
