import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { eventually } from "../support/built.js";
import { Root, repository, run } from "./root.js";

const units = join(repository, "deploy/systemd");
const services = readdirSync(units).filter((name) => name.endsWith(".service"));

describe("systemd's units", () => {
  test.each(services)("%s has an exposure below 2.0", (name) => {
    const text = run("systemd-analyze", ["security", "--offline=true", "--no-pager", join(units, name)]);
    const [, level] = /exposure level for \S+: ([\d.]+)/.exec(text)!;
    expect(Number(level)).toBeLessThan(2);
  });

  test("are valid", () => {
    const directory = mkdtempSync(join(tmpdir(), "leasehold-units-"));
    // Use a program that exists on this machine.
    for (const name of readdirSync(units).filter((each) => !each.endsWith(".md")))
      writeFileSync(
        join(directory, name.replace("@", "@report")),
        readFileSync(join(units, name), "utf8").replaceAll("/usr/bin/leasehold", process.execPath),
      );
    const paths = readdirSync(directory).map((name) => join(directory, name));
    expect(run("systemd-analyze", ["verify", "--man=no", ...paths])).toBe("");
  });
});

describe("the Debian package", () => {
  let root: Root;
  beforeAll(() => {
    root = new Root();
    root.installNode();
    run(join(repository, "deploy/debian/build"), [join(root.path, "leasehold.deb")]);
    root.run("dpkg -i /leasehold.deb");
  });
  afterAll(() => root[Symbol.dispose]());

  test("creates the user, and directories that only servers and root can read", () => {
    expect(root.run("getent passwd leasehold")).toMatch(/:\/var\/lib\/leasehold:\/usr\/sbin\/nologin$/m);
    expect(root.run("stat -c '%U:%G %a' /etc/leasehold /var/lib/leasehold")).toBe(
      "root:leasehold 750\nleasehold:leasehold 700\n",
    );
    expect(root.run("ls /lib/systemd/system").split("\n")).toEqual(expect.arrayContaining(services));
  });

  test("can be installed again over itself", () => {
    expect(root.run("dpkg -i /leasehold.deb >/dev/null && leasehold --version")).toMatch(/^\d+\.\d+\.\d+/);
    for (const name of ["core", "files", "gateway"])
      expect(root.run(`leasehold ${name} --help`)).toMatch(`Usage: leasehold ${name} `);
  });

  test("runs a member as that user, with a system that is read-only except for its directory", async () => {
    const [port, health] = (await freePorts(2)) as [number, number];
    const config = { id: "a", members: { a: `127.0.0.1:${port}` }, ttlMax: "1s", maxClockSkew: "100ms" };
    const more = {
      metricsAddress: `127.0.0.1:${health}`,
      viewsFile: "/var/lib/leasehold/views.json",
      initialClusterState: "new",
    };
    writeFileSync(join(root.path, "etc/leasehold/member.json"), JSON.stringify({ ...config, ...more }));
    root.run("chgrp leasehold /etc/leasehold/member.json && chmod 640 /etc/leasehold/member.json");
    const [unit] = /(?<=^ExecStart=).*/m.exec(readFileSync(join(units, "leasehold-member.service"), "utf8"))!;
    const member = root.start("leasehold:leasehold", "/var/lib/leasehold", unit.split(" "));
    const ready = async () =>
      (await fetch(`http://127.0.0.1:${health}/readyz`).catch(() => undefined))?.ok === true;
    await eventually(`the member in ${member.output()}`, ready);
    const status = root.start("leasehold:leasehold", "/var/lib/leasehold", [
      "leasehold",
      "health",
      `127.0.0.1:${health}`,
    ]);
    expect([await status.finished, status.output()]).toEqual([0, "ok\n"]);
    member.child.kill("SIGTERM");
    expect([await member.finished, member.output()]).toEqual([0, expect.any(String)]);
    root.run("dpkg -r leasehold && test -d /var/lib/leasehold && ! test -e /usr/bin/leasehold");
  });
});
