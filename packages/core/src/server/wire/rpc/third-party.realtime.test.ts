import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Client } from "../../../../../../test/core/support/client.js";
import { freePorts } from "../../../../../../test/free-ports.js";
import { silent } from "leasehold/runtime";
import { RangeRequestSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { type RunningCore, configOf, startCore } from "../../index.js";

/**
 * Independent HTTP/2 clients against the server's own HTTP/2 (`core/http2`). Each of them checks the server's
 * output against RFC 9113 and RFC 7541, and ends the connection on a violation. `.ci/run` installs them; if
 * they are missing, the tests are skipped, and say so.
 */
const run = promisify(execFile);

/** Debian's Python, which has Debian's packages. */
const python = "/usr/bin/python3";
const hasH2 = await run(python, ["-c", "import h2"]).then(
  () => true,
  () => false,
);
const has = (program: string) => existsSync(`/usr/bin/${program}`);

/**
 * A strict client, which raises an error on any frame that servers must not send. Prints the outcomes of its
 * requests.
 */
const strictClient = `
import random, socket, sys
import h2.config, h2.connection, h2.events, h2.settings
port, seed, body = int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3])
random.seed(seed)
sock = socket.create_connection(("127.0.0.1", port))
sock.settimeout(60)
conn = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
# The window stays: h2 itself does not widen the windows of its open streams when it changes.
window = {h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: random.choice([500, 3000, 65535])}
conn.local_settings = h2.settings.Settings(client=True, initial_values=window)
conn.initiate_connection()
left, status, got = {}, {}, {}
requests, opened, pings = 40, 0, 0
def begin():
    stream = conn.get_next_available_stream_id()
    head = [(":method", "POST"), (":scheme", "http"), (":path", "/etcdserverpb.KV/Range"), (":authority", "a"),
            ("content-type", "application/grpc"), ("te", "trailers")]
    head += [("x-%d" % random.randrange(9), "v" * random.randrange(3000)) for _ in range(random.randrange(4))]
    conn.send_headers(stream, head)
    left[stream], got[stream] = body, b""
while len(status) < requests:
    while opened < requests and opened - len(status) < 20:
        begin(); opened += 1
    for stream in [each for each in left if each not in status]:
        if left[stream] is None: continue
        size = min(len(left[stream]), random.randrange(1, 9), conn.local_flow_control_window(stream))
        part, left[stream] = left[stream][:size], left[stream][size:]
        ended = len(left[stream]) == 0
        conn.send_data(stream, part, end_stream=ended, pad_length=random.choice([None, 0, 200]))
        if ended: left[stream] = None
    if random.random() < 0.1: conn.ping(b"12345678"); pings += 1
    if random.random() < 0.1:
        conn.update_settings({h2.settings.SettingCodes.HEADER_TABLE_SIZE: random.choice([0, 64, 4096])})
    sock.sendall(conn.data_to_send())
    if any(each is not None for each in left.values()): sock.settimeout(0.01)
    else: sock.settimeout(60)
    try: data = sock.recv(65536)
    except TimeoutError: continue
    if not data: sys.exit("the server closed the connection")
    for event in conn.receive_data(data):
        if isinstance(event, h2.events.DataReceived):
            got[event.stream_id] += event.data
            if event.flow_controlled_length:
                conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived): status[event.stream_id] = dict(event.headers)["grpc-status"]
        elif isinstance(event, h2.events.PingAckReceived): pings -= 1
        elif isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)): sys.exit(repr(event))
    sock.sendall(conn.data_to_send())
print(len(status), sorted(set(status.values())), sorted(set(len(each) for each in got.values())))
`;

let folder: string;
let server: RunningCore;
let port: number;
let tlsPort: number;
/** A gRPC message: a read of the key \`k\`, whose value is 20,000 bytes. */
let request: Buffer;
let answerBytes: number;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "lh-third-party-"));
  const ports = await freePorts(3);
  [port, tlsPort] = ports as [number, number];
  const peer = `http://127.0.0.1:${ports[2]}`;
  server = await startCore(
    configOf({
      dataDir: folder,
      listenClientUrls: `http://127.0.0.1:${port},https://127.0.0.1:${tlsPort}`,
      listenPeerUrls: peer,
      initialAdvertisePeerUrls: peer,
      autoTls: true,
    }),
    silent,
  );
  const client = new Client(`127.0.0.1:${port}`);
  await client.range("ready");
  await client.put("k", "v".repeat(20_000));
  client.close();
  const message = toBinary(RangeRequestSchema, create(RangeRequestSchema, { key: Buffer.from("k") }));
  request = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
  await writeFile(join(folder, "request"), request);
  answerBytes = 20_000;
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

const grpcHead = ["-H", "content-type: application/grpc", "-H", "te: trailers"];

describe.each(["http", "https"])("by %s", (scheme) => {
  const url = () => `${scheme}://127.0.0.1:${scheme === "http" ? port : tlsPort}/etcdserverpb.KV/Range`;

  test.skipIf(!has("h2load"))(
    "every request of h2load is answered, with small windows and a small table",
    async () => {
      const variants = [
        ["-c", "4", "-m", "16"],
        ["-c", "1", "-m", "100", "-w", "10", "-W", "12"],
        ["-c", "2", "-m", "8", "--header-table-size=0", "--encoder-header-table-size=0"],
      ];
      for (const variant of variants) {
        const args = [
          "-n",
          "400",
          "--npn-list=h2",
          ...variant,
          "-d",
          join(folder, "request"),
          ...grpcHead,
          url(),
        ];
        const { stdout } = await run("h2load", args, { timeout: 120_000 });
        expect(stdout).toMatch(/400 succeeded, 0 failed, 0 errored, 0 timeout/);
        expect(stdout).toMatch(/status codes: 400 2xx, 0 3xx, 0 4xx, 0 5xx/);
      }
    },
  );

  test.skipIf(!has("nghttp"))(
    "nghttp pads, continues header blocks and narrows windows, and is answered",
    async () => {
      for (const variant of [
        ["-b", "200"],
        ["--continuation"],
        ["-w", "4"],
        ["--header-table-size=0"],
        ["--no-dep"],
      ]) {
        const args = [
          "-v",
          "-n",
          "--no-verify-peer",
          ...variant,
          "-d",
          join(folder, "request"),
          ...grpcHead,
          url(),
        ];
        const { stdout } = await run("nghttp", args, { timeout: 60_000, maxBuffer: 2 ** 24 });
        expect(stdout).toMatch(/grpc-status: 0/);
        expect(stdout).not.toMatch(/recv (?:GOAWAY|RST_STREAM)|PROTOCOL_ERROR/);
      }
    },
  );
});

test.skipIf(!has("curl"))("curl gets the whole answer", async () => {
  const url = `http://127.0.0.1:${port}/etcdserverpb.KV/Range`;
  const body = `@${join(folder, "request")}`;
  const args = ["-sS", "--http2-prior-knowledge", "--data-binary", body, ...grpcHead, url];
  const { stdout } = await run("curl", args, { timeout: 60_000, encoding: "buffer" });
  expect(stdout.length).toBeGreaterThan(answerBytes);
});

test.skipIf(!hasH2)(
  "a client that raises on any violation gets its answers, however its requests are split",
  async () => {
    for (const seed of [1, 2, 3]) {
      const args = ["-c", strictClient, String(port), String(seed), request.toString("hex")];
      const { stdout } = await run(python, args, { timeout: 120_000 });
      expect(stdout).toMatch(/^40 \['0'\] \[20\d{3}\]$/m);
    }
  },
);
