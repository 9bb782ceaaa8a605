import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { findCredentials, readProfile } from "./credentials.js";

async function home(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "leasehold-home-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, ".aws"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, ".aws", name), text);
  return folder;
}

test("keys of the environment take precedence over those of the profile", async () => {
  const environment = {
    AWS_ACCESS_KEY_ID: "id",
    AWS_SECRET_ACCESS_KEY: "secret",
    AWS_SESSION_TOKEN: "token",
  };
  const profile = { aws_access_key_id: "other", aws_secret_access_key: "other" };
  expect(await findCredentials(environment, profile)()).toEqual({
    accessKeyId: "id",
    secretAccessKey: "secret",
    sessionToken: "token",
  });
  expect(await findCredentials({ AWS_ACCESS_KEY_ID: "half" }, profile)()).toMatchObject({
    accessKeyId: "other",
  });
});

test.each(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"])(
  "a line break in %s is refused without showing it",
  (name) => {
    const environment = { AWS_ACCESS_KEY_ID: "i", AWS_SECRET_ACCESS_KEY: "s", [name]: "secret-4711\n" };
    const find = () => findCredentials(environment, {});
    expect(find).toThrow(expect.objectContaining({ code: "STORE_PERMISSION" }) as Error);
    expect(find).not.toThrow(/4711/);
  },
);

test("a profile has the settings of both files", async () => {
  const HOME = await home({
    config: "[default]\nregion = eu-west-1\n[profile work]\n# a comment\nregion=us-west-2\n",
    credentials:
      "[default]\naws_access_key_id=a\r\n[work]\r\naws_access_key_id = b\r\naws_secret_access_key = c=d\r\n",
  });
  expect(await readProfile({ HOME })).toEqual({ region: "eu-west-1", aws_access_key_id: "a" });
  expect(await readProfile({ HOME, AWS_PROFILE: "work" })).toEqual({
    region: "us-west-2",
    aws_access_key_id: "b",
    aws_secret_access_key: "c=d",
  });
  expect(await readProfile({ HOME, AWS_PROFILE: "none" })).toEqual({});
  expect(await readProfile({ HOME: "/nowhere" })).toEqual({});
});

test("all other sources are asked once, and again shortly before the credentials end", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  let asked = 0;
  const chain = vi.fn((options: { profile?: string }) => () => {
    const accessKeyId = `${options.profile} ${++asked}`;
    return Promise.resolve({
      accessKeyId,
      secretAccessKey: "s",
      expiration: new Date(Date.now() + 3_600_000),
    });
  });
  const load = () => Promise.resolve({ fromNodeProviderChain: chain });
  const source = findCredentials({ AWS_PROFILE: "sso" }, { sso_session: "x" }, load);
  expect((await source()).accessKeyId).toBe("sso 1");
  vi.advanceTimersByTime(3_200_000);
  expect((await source()).accessKeyId).toBe("sso 1");
  vi.advanceTimersByTime(200_000);
  expect((await source()).accessKeyId).toBe("sso 2");
  expect(chain).toHaveBeenCalledTimes(1);
});

test("missing credentials are refused with STORE_PERMISSION and the package to install", async () => {
  await expect(findCredentials({}, {})()).rejects.toMatchObject({
    code: "STORE_PERMISSION",
    message: expect.stringMatching(/npm install @aws-sdk\/credential-providers/) as string,
  });
});
