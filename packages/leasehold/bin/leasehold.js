#!/usr/bin/env node
// The command. What scripts run often, at members and at stores that are files, is bundled into a few files, which load in a
// third of the time. All others take the modules themselves: what packages share must be there once.
"use strict";

const bundled = ["run", "ls", "get", "hold", "elect", "watch", "release", "handover", "break"];
const others = [
  "config",
  "up",
  "status",
  "doctor",
  "peer",
  "member",
  "core",
  "files",
  "console",
  "sim",
  "check",
  "completion",
  "cert",
  "docs",
  "gateway",
  "health",
  "size",
  "top",
];
const otherGrounds = /core:|\+(?!file:|memory:)/;

const words = process.argv.slice(2);
const end = words.indexOf("--");
const own = end === -1 ? words : words.slice(0, end);
const isOther =
  process.env.LEASEHOLD_CONFIG ||
  process.env.LEASEHOLD_METRICS_ADDRESS ||
  own.some((word) => others.includes(word) || /^--(?:config|metrics-address)(?:=|$)/.test(word)) ||
  [...own, process.env.LEASEHOLD_ENDPOINTS ?? ""].some((text) => otherGrounds.test(text));

if (own.some((word) => bundled.includes(word)) && !isOther) require("../dist/bundle/main.js");
else void import("../dist/cli/main.js");
