// A client that sends lease requests as fast as the member reads, without ever waiting for an answer.
const { dist, address } = JSON.parse(process.argv[2]);
const [{ Transport }, { Message, Kind }, { realWorld }, { cellFunctionVersion }] = await Promise.all(
  [
    "flease/tcp/transport/transport.js",
    "flease/protocol/message.js",
    "runtime/world.js",
    "flease/protocol/cells.js",
  ].map((file) => import(`${dist}/${file}`)),
);

const world = realWorld();
const message = new Message();
let sent = 0;
/** Messages in one turn of the event loop: more than a member handles in that time. */
const burst = 2_000;

function flood(link) {
  if (!link.open) return;
  for (let index = 0; index < burst; index++) {
    message.kind = Kind.acquire;
    message.view = 1;
    message.instance = index;
    message.resource = `flood/${index % 500}`;
    message.number = (Date.now() - Date.UTC(2020, 0, 1)) * 4096 + (sent++ % 4096);
    message.token = message.number;
    message.until = Date.now() + 1_000;
    message.duration = 1_000;
    message.waiting = false;
    link.send(message);
  }
  setImmediate(flood, link);
}

const nothing = () => undefined;
const transport = new Transport(
  {
    role: "client",
    nodeId: "flooder",
    cluster: "",
    configHash: "",
    view: 0,
    cellFunction: cellFunctionVersion,
  },
  world,
  {
    connections: {
      connected: flood,
      disconnected: nothing,
      refused: nothing,
      repelled: nothing,
      refusedAsDuplicate: nothing,
      duplicateRefused: nothing,
      unreachable: nothing,
      admit: nothing,
      clusterDocument: () => "",
    },
    messages: {
      stamp(into) {
        into.monoMs = world.clock.monotonicMs();
        into.loMs = into.hiMs = world.clock.wallMs();
      },
      chunk: nothing,
      stamped: nothing,
      message: nothing,
      chunkEnd: nothing,
    },
    calls: { answer: nothing },
  },
);
transport.dial(address);
setInterval(() => process.send?.({ sent: transport.counters["messages.sent"] }), 200);
process.on("disconnect", () => process.exit());
