// The systems that are compared. Each module has one of them, with the same interface:
//   packages            Debian packages of its servers
//   unable              figures that it does not support, with the reasons
//   start(room, way)    starts three servers: { servers, connection }; a server has `pid`, `kill()`, `restart()`
//   client(connection)  in another process: { acquire(name), release(lease) } and, where the system has them,
//                       renew(lease), wait(name), leader() (the index of the leading server), and close()
// Leases last ten seconds in every system.

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
