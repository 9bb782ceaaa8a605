# The results that a program on Python's etcd3 sees from a server, one line a step.
# client.py PORT
import sys
import threading

import etcd3
import etcd3.events
import etcd3.exceptions


def say(*words):
    print(*words, flush=True)


def failure(run):
    try:
        return run()
    except Exception as error:  # the test compares its type and details
        details = getattr(error, "details", None)
        return type(error).__name__ + (" " + details() if callable(details) else "")


def facts(meta):
    return (meta.key, meta.create_revision, meta.mod_revision, meta.version, meta.lease_id)


def keys(client):
    say("none", client.get("k/none"))
    put = client.put("k/a", "1", prev_kv=True)
    say("put", put.header.revision, put.prev_kv.value)
    put = client.put("k/a", "2", prev_kv=True)
    say("put", put.header.revision, put.prev_kv.value)
    value, meta = client.get("k/a", serializable=True)
    say("got", value, facts(meta))
    for number in range(5):
        client.put("k/%d" % number, str(9 - number))
    say("prefix", [(value, facts(meta)) for value, meta in client.get_prefix("k/", sort_order="descend")])
    say("sorted", [value for value, _ in client.get_prefix("k/", sort_order="ascend", sort_target="value")])
    say("keys only", [(value, meta.key) for value, meta in client.get_prefix("k/", keys_only=True)])
    say("range", [value for value, _ in client.get_range("k/1", "k/3")])
    say("response", client.get_prefix_response("k/").count, client.get_all_response().count)
    say("replaced", client.replace("k/a", "2", "3"), client.replace("k/a", "2", "4"))
    say("created", client.put_if_not_exists("k/a", "x"), client.put_if_not_exists("k/b", "x"))
    deleted = client.delete("k/a", prev_kv=True, return_response=True)
    say("deleted", deleted.header.revision, deleted.deleted, deleted.prev_kvs[0].value)
    say("deleted", client.delete("k/a"), client.delete_prefix("k/").deleted)
    say("too large", failure(lambda: client.put("k/large", "x" * (3 << 19))))
    say("empty", failure(lambda: client.put("", "x")))


def transactions(client):
    on = client.transactions
    say("created", client.transaction(
        compare=[on.version("t/a") == 0, on.create("t/a") == 0],
        success=[on.put("t/a", "1"), on.get("t/a")],
        failure=[on.get("t/a")])[0])
    ok, answers = client.transaction(
        compare=[on.value("t/a") == "2", on.mod("t/a") > 0],
        success=[on.delete("t/a")],
        failure=[on.get("t/a"), on.txn(
            compare=[on.value("t/a") == "1"], success=[on.put("t/b", "inner")], failure=[])])
    say("else", ok, [(value, facts(meta)) for value, meta in answers[0]], client.get("t/b")[0])
    say("twice", failure(lambda: client.transaction(
        compare=[], success=[on.put("t/c", "1"), on.put("t/c", "2")], failure=[])))


def watches(client):
    heard, stop = client.watch_prefix("w/", prev_kv=True)
    client.put("w/a", "1")
    client.put("w/a", "2")
    client.delete("w/a")
    client.put("w/b", "3")
    for event in heard:
        say("event", type(event).__name__, event.key, event.value, event.prev_value, event.mod_revision)
        if event.key == b"w/b":
            stop()
    revision = client.get("w/b")[1].mod_revision
    heard, stop = client.watch_prefix("w/", start_revision=revision - 3)
    say("past", [(next(heard).value) for _ in range(4)])
    stop()
    threading.Timer(0.3, lambda: client.put("w/once", "now")).start()
    say("once", client.watch_once("w/once", timeout=10).value)
    say("timeout", failure(lambda: client.watch_once("w/never", timeout=1)))
    client.compact(revision)
    heard, _ = client.watch("w/a", start_revision=1)
    try:
        next(heard)
    except etcd3.exceptions.RevisionCompactedError as error:
        say("compacted", error.compacted_revision == revision)
    say("compacted", failure(lambda: client.compact(revision)))


def leases(client):
    lease = client.lease(60)
    client.put("l/a", "1", lease)
    client.put("l/b", "2", lease)
    say("lease", lease.granted_ttl, lease.remaining_ttl >= 55, sorted(lease.keys))
    say("refreshed", [answer.TTL for answer in lease.refresh()])
    heard, stop = client.watch_prefix("l/")
    lease.revoke()
    say("revoked", sorted([next(heard).key, next(heard).key]), client.get("l/a")[0])
    stop()
    say("revoked", failure(lambda: lease.revoke()))
    say("ended", lease.remaining_ttl)
    short = client.lease(2)
    client.put("l/short", "", short)
    heard, stop = client.watch("l/short")
    say("expired", type(next(heard)).__name__)
    stop()


def locks(client):
    with client.lock("job", ttl=30) as lock:
        say("held", lock.is_acquired(), client.get(lock.key)[1].version)
    say("given back", client.get(lock.key))
    say("taken", client.lock("job", ttl=30).acquire(timeout=5))


def maintenance(client):
    state = client.status()
    say("status", state.db_size > 0, state.leader.name, state.raft_index > 0)
    say("members", [(member.name, len(member.peer_urls), len(member.client_urls)) for member in client.members])
    say("hash", client.hash() > 0)
    client.defragment()
    say("alarms", list(client.list_alarms()), list(client.disarm_alarm()))
    say("raised", [alarm.alarm_type for alarm in client.create_alarm()])
    say("full", failure(lambda: client.put("full", "1")))
    say("listed", len(list(client.list_alarms())), len(list(client.disarm_alarm())))
    client.put("full", "2")
    say("room", client.get("full")[0])


client = etcd3.client(port=int(sys.argv[1]), timeout=10)
for part in (keys, transactions, watches, leases, locks, maintenance):
    say("#", part.__name__)
    try:
        part(client)
    except Exception as error:
        say("failed", type(error).__name__, error)
