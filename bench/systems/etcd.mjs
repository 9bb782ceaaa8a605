// etcd on three servers from Debian's package, through npm's etcd3: its lock is a key with a lease of its
// own.
import { leaderOf, startLikeEtcd } from "./like-etcd.mjs";

export const packages = ["etcd-server"];

export const start = (room, core) => startLikeEtcd(room, "etcd", "/usr/bin/etcd", [], core);

export async function client(hosts) {
  const { Etcd3, EtcdLockFailedError } = await import("etcd3");
  const etcd = new Etcd3({ hosts: hosts.map((host) => `http://${host}`) });
  const acquire = (name) => etcd.lock(name).ttl(10).acquire();

  /** The lock of etcd3 does not wait. A program that wants to wait must watch the key. */
  async function wait(name) {
    const watcher = await etcd.watch().key(name).create();
    try {
      for (;;) {
        const deleted = new Promise((resolve) => void watcher.once("delete", resolve));
        try {
          return await acquire(name);
        } catch (error) {
          if (!(error instanceof EtcdLockFailedError)) throw error;
        }
        await deleted;
      }
    } finally {
      await watcher.cancel();
    }
  }

  return {
    acquire,
    wait,
    async renew(lock) {
      // The type hides the lease, which renews itself from time to time. This renews it at once.
      await lock.lease.keepaliveOnce();
      return lock;
    },
    release: (lock) => lock.release(),
    leader: () => leaderOf(hosts),
    close: () => etcd.close(),
  };
}
