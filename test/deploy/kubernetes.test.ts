import { cpSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { repository, run } from "./root.js";

/**
 * The manifests, built by kubectl's kustomize and checked against Kubernetes' published OpenAPI schemas from
 * npm's `kubernetes-models`. Neither npm nor Debian has a package of a current API server.
 */

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly [field: string]: unknown;
}

let models: string;
let overlays: string;

beforeAll(() => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-models-"));
  writeFileSync(join(folder, "package.json"), "{}");
  run(
    "npm",
    ["install", "--silent", "--no-audit", "--no-fund", "kubernetes-models@5.1.0", "typescript@5.9"],
    folder,
  );
  models = folder;
  overlays = mkdtempSync(join(tmpdir(), "leasehold-kustomize-"));
  cpSync(join(repository, "deploy/kubernetes"), overlays, { recursive: true });
  writeFileSync(
    join(overlays, "overlays/example/cluster.key"),
    "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHNlY3I=\n",
  );
});

function manifestsOf(folder: string): Manifest[] {
  const text = run("kubectl", ["kustomize", join(overlays, folder)]);
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}

/** The module of the manifest's model: `kubernetes-models/apps/v1/StatefulSet`. */
const moduleOf = ({ apiVersion, kind }: Manifest) => `kubernetes-models/${apiVersion}/${kind}`;

type Model = new (data: unknown) => { validate(): void };

async function faultsOf(manifest: Manifest): Promise<string[]> {
  const path = join(models, "node_modules", `${moduleOf(manifest)}.js`);
  const { [manifest.kind]: Kind } = (await import(path)) as Record<string, Model>;
  try {
    new Kind!(manifest).validate();
    return [];
  } catch (error) {
    return [String(error)];
  }
}

/**
 * Unknown fields are found by the TypeScript compiler, which refuses them in a literal of the type; a schema
 * would allow them.
 */
function unknownFieldsOf(manifests: readonly Manifest[]): string {
  const lines = manifests.map(
    (manifest, index) =>
      `import type { I${manifest.kind} as I${index} } from "${moduleOf(manifest)}";\nexport const m${index}: I${index} = ${JSON.stringify(manifest)};`,
  );
  writeFileSync(join(models, "manifests.mts"), lines.join("\n"));
  const flags = ["--noEmit", "--skipLibCheck", "--strict", "--module", "nodenext"];
  try {
    return run("npx", ["tsc", ...flags, "manifests.mts"], models);
  } catch (error) {
    return String(error);
  }
}

describe.each([
  ["members", 5, 1],
  ["core", 5, 0],
  ["overlays/example", 6, 2],
])("%s", (folder, least, generated) => {
  test("has only fields that Kubernetes knows, with values that it allows", async () => {
    const manifests = manifestsOf(folder);
    expect(manifests).toHaveLength(least + generated);
    expect((await Promise.all(manifests.map(faultsOf))).flat()).toEqual([]);
    expect(unknownFieldsOf(manifests)).toBe("");
  });
});

test("a wrong value and a wrong field are found", async () => {
  const service = manifestsOf("members").find(({ kind }) => kind === "Service");
  const wrong = { ...service!, spec: { ports: [{ port: "http" }] } };
  expect(await faultsOf(wrong)).not.toEqual([]);
  expect(unknownFieldsOf([{ ...service!, spec: { podSelector: {} } }])).toContain("podSelector");
});

test("the names of members in the settings are those of the StatefulSet's Pods", () => {
  for (const folder of ["members", "overlays/example"]) {
    const manifests = manifestsOf(folder);
    const { spec } = manifests.find(({ kind }) => kind === "StatefulSet") as unknown as {
      spec: { replicas: number; serviceName: string };
    };
    const { data } = manifests.find(({ kind }) => kind === "ConfigMap") as unknown as {
      data: Record<string, string>;
    };
    const { members } = JSON.parse(data["member.json"]!) as { members: Record<string, string> };
    const names = Array.from({ length: spec.replicas }, (_, index) => `lease-${index}`);
    expect(members).toEqual(
      Object.fromEntries(names.map((name) => [name, `${name}.${spec.serviceName}:7400`])),
    );
  }
});
