// The systems that are measured side by side. Each module has one of them, with the same interface:
//   packages            Debian's packages that its servers come from
//   unable              figures that it has nothing to show for, and why
//   start(room, way)    starts three servers: { servers, connection }; a server has `pid`, `kill()`, `restart()`
//   client(connection)  in another process: { acquire(name), release(lease) } and, where the system has them,
//                       renew(lease), wait(name), leader() (the index of the server that leads), and close()
// Leases last ten seconds everywhere.

export const systems = [
  { name: "bare exchange", module: "bare" },
  { name: "leasehold", module: "leasehold", way: "plain" },
  { name: "leasehold (key)", module: "leasehold", way: "key" },
  { name: "leasehold (certificates)", module: "leasehold", way: "certificates" },
  { name: "leasehold core", module: "core" },
  { name: "redlock", module: "redlock" },
  { name: "etcd", module: "etcd" },
  { name: "zookeeper", module: "zookeeper" },
];

export const load = (module) => import(`./${module}.mjs`);
