import { cpSync, mkdirSync, readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { eventually } from "../support/built.js";
import { Root, repository, run } from "./root.js";

/**
 * Performs the steps of the Dockerfile in fresh Debian roots, since there is no container engine here. The
 * base image is bookworm with this machine's Node and npm. An unknown step fails.
 */

const text = readFileSync(join(repository, "deploy/docker/Dockerfile"), "utf8");
const steps = text
  .replaceAll(/\\\n/g, " ")
  .split("\n")
  .filter((line) => line.trim() !== "" && !line.startsWith("#"))
  .map((line) => /^(\S+) (.*)$/.exec(line)!.slice(1) as [string, string]);

/** An image's settings for its processes. */
class Image {
  readonly root = new Root();
  user = "0:0";
  directory = "/";
  entry: string[] = [];
  check: string[] = [];
  volume = "";
}

/** npm needs the registry, so the root gets this machine's addresses and certificates for it. */
function installNpm(root: Root): void {
  root.installNode();
  const npm = run("npm", ["root", "-g"]).trim();
  mkdirSync(join(root.path, "usr/lib/node_modules"), { recursive: true });
  cpSync(join(npm, "npm"), join(root.path, "usr/lib/node_modules/npm"), {
    recursive: true,
    dereference: true,
  });
  root.run("ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/bin/npm");
  for (const path of [
    "etc/resolv.conf",
    "etc/ssl",
    "etc/hosts",
    "usr/local/share/ca-certificates",
    "root/.npmrc",
  ])
    if (statSync(`/${path}`, { throwIfNoEntry: false }))
      run("cp", ["-aL", "--parents", `/${path}`, root.path]);
}

function build(context: string): Image {
  const images = new Map<string, Image>();
  let image: Image | undefined;
  for (const [step, words] of steps) {
    if (step === "FROM") {
      image = new Image();
      if (words.includes(" AS ")) installNpm(image.root);
      else image.root.installNode();
      images.set(/ AS (\S+)$/.exec(words)?.[1] ?? "", image);
      continue;
    }
    const { root } = image!;
    const [first = "", second = "", third = ""] = words.split(" ");
    if (step === "WORKDIR") {
      image!.directory = words;
      mkdirSync(join(root.path, words), { recursive: true });
    } else if (step === "COPY") {
      const from = /^--from=(.*)/.exec(first)?.[1];
      const source = from === undefined ? join(context, first) : join(images.get(from)!.root.path, second);
      cpSync(source, join(root.path, from === undefined ? second : third), {
        recursive: true,
        verbatimSymlinks: true,
      });
    } else if (step === "RUN") root.run(`export HOME=/root; cd ${image!.directory}; ${words}`);
    else if (step === "USER") image!.user = words;
    else if (step === "VOLUME") image!.volume = words;
    else if (step === "ENTRYPOINT") image!.entry = JSON.parse(words) as string[];
    else if (step === "HEALTHCHECK") image!.check = JSON.parse(/CMD (.*)$/.exec(words)![1]!) as string[];
    else if (step !== "ENV" && step !== "STOPSIGNAL") throw new Error(`${step} is unknown`);
  }
  for (const [name, { root }] of images) if (name !== "") root[Symbol.dispose]();
  return image!;
}

test("the image runs a member as an unprivileged user on a read-only root, and its health check passes", async () => {
  const context = new Root();
  run(join(repository, "deploy/pack"), [join(context.path, "image")]);
  const packed = readdirSync(join(context.path, "image")).map((name) => name.replace(/-\d.*/, ""));
  expect(packed.toSorted()).toEqual(["leasehold", "leasehold-core", "leasehold-files", "leasehold-gateway"]);
  const { root, user, entry, check, volume } = build(join(context.path, "image"));
  context[Symbol.dispose]();
  const [port] = (await freePorts(1)) as [number];
  const health = "127.0.0.1:9464";
  const settings = [
    "--ttl-max",
    "1s",
    "--max-clock-skew",
    "100ms",
    "--views-file",
    `${volume}/views.json`,
    "--initial-cluster-state",
    "new",
  ];
  const words = [
    "peer",
    "--id",
    "a",
    "--member",
    `a=127.0.0.1:${port}`,
    "--metrics-address",
    health,
    ...settings,
  ];
  const member = root.start(user, volume, [...entry, ...words]);
  const ask = async (...more: string[]) => root.start(user, volume, [...check, ...more]).finished;
  await eventually(`health in ${member.output()}`, async () => (await ask()) === 0);
  await eventually(`readiness in ${member.output()}`, async () => (await ask("--ready")) === 0);
  const denied = root.start(user, volume, ["touch", "/app/x"]);
  expect(await denied.finished).not.toBe(0);
  expect(denied.output()).toContain("Read-only file system");
  const self = root.start(user, volume, ["id", "-u"]);
  await self.finished;
  expect(self.output()).toBe("10001\n");
  member.child.kill("SIGTERM");
  expect([await member.finished, member.output()]).toEqual([0, expect.any(String)]);
  expect(await ask()).toBe(69);
  root[Symbol.dispose]();
});
