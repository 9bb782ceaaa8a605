import { execFile, execFileSync } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Registry } from "./registry.js";

/** `npm run release` in a copy of this repository, with a registry in memory. */

const root = fileURLToPath(new URL("../..", import.meta.url));
const version = "9.8.7-rc.1";
/** In the order of publication. */
const names = [
  "leasehold",
  ...["console", "core", "docs", "fence", "files", "gateway", "redlock", "sim"].map(
    (name) => `@leasehold/${name}`,
  ),
];
const fileOf = (name: string, end: string) => `${name.replace("@", "").replace("/", "-")}-${version}.${end}`;

let folder: string;
let copy: string;
const registry = new Registry();
let env: NodeJS.ProcessEnv;

const read = (path: string) => readFileSync(join(copy, path), "utf8");
const git = (...words: string[]) =>
  execFileSync("git", words, { cwd: copy, encoding: "utf8", env, stdio: ["ignore", "pipe", "pipe"] });

interface Sbom {
  readonly bomFormat: string;
  readonly metadata: { readonly component: { readonly name: string; readonly purl: string } };
  readonly components: readonly { readonly name: string; readonly licenses?: object[] }[];
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-release-"));
  copy = join(folder, "copy");
  const list = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
  const tracked = execFileSync("git", list, { cwd: root, encoding: "utf8" }).split("\0");
  const built = readdirSync(join(root, "packages")).flatMap((name) =>
    ["dist", "LICENSE", "README.md", "examples"].map((path) => `packages/${name}/${path}`),
  );
  for (const path of [...tracked, ...built]) {
    if (path === "" || !existsSync(join(root, path))) continue;
    mkdirSync(join(copy, dirname(path)), { recursive: true });
    cpSync(join(root, path), join(copy, path), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  // A placeholder, as another suite builds the site.
  mkdirSync(join(copy, "packages/docs/pages"));
  writeFileSync(join(copy, "packages/docs/pages/index.html"), "<h1>Leasehold</h1>");

  const key = join(folder, "key");
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
  writeFileSync(join(folder, "signers"), `maintainer ${readFileSync(`${key}.pub`, "utf8")}`);
  const address = await registry.listen();
  writeFileSync(join(folder, "npmrc"), `registry=http://${address}\n//${address}:_authToken=secret\n`);
  const settings = {
    "user.name": "maintainer",
    "user.email": "maintainer@localhost",
    "gpg.format": "ssh",
    "user.signingkey": key,
    "gpg.ssh.allowedSignersFile": join(folder, "signers"),
  };
  env = {
    ...process.env,
    GIT_CONFIG_COUNT: String(Object.keys(settings).length),
    npm_config_userconfig: join(folder, "npmrc"),
    npm_config_fetch_retries: "0",
  };
  delete env["ACTIONS_ID_TOKEN_REQUEST_URL"];
  for (const [index, [name, value]] of Object.entries(settings).entries()) {
    env[`GIT_CONFIG_KEY_${index}`] = name;
    env[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  git("init", "-q");
  git("add", "--all");
  git("commit", "-q", "-m", "begin");
});

afterAll(() => {
  registry.close();
  rmSync(folder, { recursive: true });
});

/** Asynchronous, since the registry is in this process. */
function release(...words: string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const all = [join(copy, "scripts", "release.mjs"), ...words];
    execFile(process.execPath, all, { cwd: copy, env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code as number), output: stdout + stderr }),
    );
  });
}

/** The manifest in a tar archive, wherever npm has put it. */
function manifestIn(archive: Buffer): Manifest {
  const text = execFileSync("tar", ["-xzOf", "-", "package/package.json"], { input: archive });
  return JSON.parse(text.toString()) as Manifest;
}

describe("a release", () => {
  test("begins with the version, which is set everywhere", async () => {
    expect(await release("version", "1.2")).toMatchObject({ code: 1 });
    const changelog = read("CHANGELOG.md");
    writeFileSync(
      join(copy, "CHANGELOG.md"),
      changelog.replace("\n## ", "\n## Unreleased\n\n- News.\n\n## "),
    );
    expect(await release("version", version)).toMatchObject({ code: 0, output: "" });
    writeFileSync(join(copy, "SECURITY.md"), read("SECURITY.md").replace(/\(now [\d.]+\)/, "(now 9.8)"));
    git("commit", "-q", "--all", "-m", "version");
    const changed = git("show", "--format=", "HEAD", "--", "package-lock.json");
    expect(changed.match(/^\+ /gm)).toHaveLength(changed.match(/^- /gm)!.length);
    expect(read("clients/python/pyproject.toml")).toContain(`version = "${version}"`);
    expect(read("CHANGELOG.md")).toMatch(/^## 9\.8\.7-rc\.1 \(\d{4}-\d\d-\d\d\)\n\n- News\.$/m);
  });

  test("can be tried without a trace; release/ has the files that would be published", async () => {
    const { code, output } = await release("--dry-run");
    expect([code, output]).toEqual([0, expect.stringMatching(/ready: v9\.8\.7-rc\.1 is not set/)]);
    expect([git("status", "--porcelain"), git("tag")]).toEqual(["", ""]);
    expect(readdirSync(join(copy, "release")).toSorted()).toEqual(
      [
        "LICENSES.txt",
        "NOTES.md",
        "SHA256SUMS",
        ...names.flatMap((name) => [fileOf(name, "cdx.json"), fileOf(name, "tgz")]),
      ].toSorted(),
    );
    execFileSync("sha256sum", ["--check", "--quiet", "SHA256SUMS"], { cwd: join(copy, "release") });
    expect(read("release/NOTES.md")).toBe("- News.\n");
    const licenses = read("release/LICENSES.txt");
    for (const name of names) {
      const manifest = manifestIn(readFileSync(join(copy, "release", fileOf(name, "tgz"))));
      const sbom = JSON.parse(read(`release/${fileOf(name, "cdx.json")}`)) as Sbom;
      expect([sbom.bomFormat, sbom.metadata.component.name]).toEqual(["CycloneDX", name]);
      expect(sbom.metadata.component.purl).toBe(`pkg:npm/${name.replace("@", "%40")}@${version}`);
      const described = sbom.components.map((each) => each.name);
      const needed = { ...manifest.dependencies, ...(name !== "leasehold" && manifest.peerDependencies) };
      // The package leasehold contains commander. Build and test tools are not components.
      const bundled = name === "leasehold" || "leasehold" in needed ? ["commander"] : [];
      expect(described).toEqual(expect.arrayContaining([...Object.keys(needed), ...bundled]));
      expect(described).not.toContain("vitest");
      for (const other of described.filter((each) => !names.includes(each)))
        expect(licenses).toMatch(new RegExp(`^${other}@\\S+: [\\w(].*[ ,(]${name}[,)]`, "m"));
    }
  });

  test("is refused while a package lacks required contents", async () => {
    const pages = join(copy, "packages/docs/pages");
    renameSync(pages, `${pages}.away`);
    expect(await release("--dry-run")).toMatchObject({
      code: 1,
      output: expect.stringMatching(/@leasehold\/docs has no pages/),
    });
    renameSync(`${pages}.away`, pages);
  });

  test("is signed: the tag's message has the checksums of the published packages", async () => {
    expect(await release("--publish", "--no-provenance")).toMatchObject({
      code: 1,
      output: expect.stringMatching(/the tag v9\.8\.7-rc\.1 is not at this commit/),
    });
    expect(await release()).toMatchObject({ code: 0 });
    expect(git("verify-tag", "--raw", `v${version}`)).toBe("");
    const message = git("tag", "--list", "--format=%(contents:body)", `v${version}`);
    for (const name of names) {
      const archive = gunzipSync(readFileSync(join(copy, "release", fileOf(name, "tgz"))));
      const sum = execFileSync("sha256sum", { input: archive, encoding: "utf8" }).split(" ")[0]!;
      expect(message).toContain(`${sum}  ${fileOf(name, "tar")}`);
    }
    expect(await release()).toMatchObject({ code: 1, output: expect.stringMatching(/exists already/) });
  });

  test("is published in order, with pinned dependencies; an interrupted publication can be resumed", async () => {
    expect(await release("--publish")).toMatchObject({
      code: 1,
      output: expect.stringMatching(/provenance is made by CI only/),
    });
    expect(registry.published).toEqual([]);
    registry.refuses = "@leasehold/files";
    expect(await release("--publish", "--no-provenance")).toMatchObject({ code: 1 });
    const second = await release("--publish", "--no-provenance");
    expect(second).toMatchObject({ code: 0 });
    expect(second.output.match(/^.* (?:is|was) published.*$/gm)).toEqual([
      ...names.slice(0, 5).map((name) => `${name}@${version} was published before`),
      ...names.slice(5).map((name) => `${name}@${version} is published`),
    ]);
    expect(registry.published.map(({ name }) => name)).toEqual(names);
    for (const { name, "dist-tags": tags, _attachments: attachments } of registry.published) {
      // A prerelease is not the default version.
      expect(tags).toEqual({ next: version });
      const [{ data } = { data: "" }] = Object.values(attachments ?? {});
      const manifest = manifestIn(Buffer.from(data, "base64"));
      expect([manifest.name, manifest.version]).toEqual([name, version]);
      const wanted = Object.entries({ ...manifest.dependencies, ...manifest.peerDependencies });
      for (const [other, range] of wanted.filter(([each]) => names.includes(each)))
        expect([other, range]).toEqual([other, version]);
    }
  });

  test("publishes only the packages that the tag names", async () => {
    appendFileSync(join(copy, "packages", "core", "dist", "index.js"), "\n// other\n");
    const { code, output } = await release("--publish", "--no-provenance");
    expect([code, output]).toEqual([
      1,
      expect.stringMatching(/@leasehold\/core is not what v9\.8\.7-rc\.1 names/),
    ]);
  });

  test("is refused with a list of all problems", async () => {
    const manifest = JSON.parse(read("packages/core/package.json")) as Manifest & Record<string, unknown>;
    manifest.peerDependencies!["leasehold"] = "^9.8.7-rc.1";
    manifest["scripts"] = { postinstall: "true" };
    writeFileSync(join(copy, "packages/core/package.json"), JSON.stringify(manifest));
    writeFileSync(join(copy, "packages/core/dist/x.test.js"), "");
    const lock = read("package-lock.json").replace(
      /("node_modules\/jose": \{[^}]*"license": )"MIT"/,
      '$1"AGPL-3.0"',
    );
    writeFileSync(join(copy, "package-lock.json"), lock);
    const { code, output } = await release("--dry-run");
    expect(code).toBe(1);
    for (const problem of [
      /the tree is not clean/,
      /the tag \S+ exists already/,
      /@leasehold\/core wants leasehold \^9\.8\.7-rc\.1 in its peerDependencies, not exactly 9\.8\.7-rc\.1/,
      /@leasehold\/core runs "postinstall"/,
      /@leasehold\/core would have dist\/x\.test\.js/,
      /jose has the licence AGPL-3\.0/,
    ])
      expect(output).toMatch(problem);
  });
});
