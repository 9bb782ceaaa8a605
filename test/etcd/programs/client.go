// The results that a program on etcd's own Go client sees from three servers, one line a step: recipes,
// watches, transactions, leases, members, users, snapshots.
// client ENDPOINTS NEW_PEER_URL
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
	"go.etcd.io/etcd/clientv3/namespace"
	"google.golang.org/grpc/status"
)

// Longer than any step takes.
const stepTime = 20 * time.Second

type program struct {
	client    *clientv3.Client
	endpoints []string
	newPeer   string
}

func main() {
	endpoints := strings.Split(os.Args[1], ",")
	p := &program{client: connected(endpoints, "", ""), endpoints: endpoints, newPeer: os.Args[2]}
	defer p.client.Close()
	for _, part := range []struct {
		title string
		run   func(ctx context.Context, p *program) error
	}{
		{"keys", keys}, {"transactions", transactions}, {"watches", watches}, {"fragments", fragments},
		{"compaction", compaction}, {"leases", leases}, {"mutex", mutex}, {"election", election},
		{"stm", stm}, {"namespace", inNamespace}, {"members", members}, {"maintenance", maintenance},
		{"users", users},
	} {
		fmt.Println("#", part.title)
		ctx, cancel := context.WithTimeout(context.Background(), stepTime)
		if err := part.run(ctx, p); err != nil {
			say("failed", err)
		}
		cancel()
	}
}

func connected(endpoints []string, user, password string) *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialTimeout: 5 * time.Second, Username: user, Password: password,
	})
	if err != nil {
		say("connect", err)
		os.Exit(1)
	}
	return client
}

func say(what string, values ...interface{}) {
	words := []string{what}
	for _, value := range values {
		words = append(words, text(value))
	}
	fmt.Println(strings.Join(words, " "))
}

func text(value interface{}) string {
	if err, ok := value.(error); ok {
		if state, is := status.FromError(err); is {
			return fmt.Sprintf("error %s %q", state.Code(), state.Message())
		}
		return fmt.Sprintf("error %q", err.Error())
	}
	return fmt.Sprintf("%v", value)
}

// Prints a response without the ids in its header, or its error.
func answer(what string, revision int64, body interface{}, err error) {
	if err != nil {
		say(what, err)
		return
	}
	say(what, revision, body)
}

func keys(ctx context.Context, p *program) error {
	for _, value := range []string{"1", "2", ""} {
		put, err := p.client.Put(ctx, "k/a", value, clientv3.WithPrevKV())
		if err != nil {
			return err
		}
		say("put", put.Header.Revision, put.PrevKv)
	}
	_, err := p.client.Put(ctx, "", "x")
	say("empty key", err)
	_, err = p.client.Put(ctx, "k/never", "", clientv3.WithIgnoreValue())
	say("ignore value of none", err)
	_, err = p.client.Put(ctx, "k/a", "x", clientv3.WithLease(12345))
	say("lease that is not there", err)
	_, err = p.client.Put(ctx, "k/large", strings.Repeat("x", 3<<19+1))
	say("too large", err)
	for index := 0; index < 5; index++ {
		if _, err := p.client.Put(ctx, fmt.Sprintf("k/%d", index), fmt.Sprint(9-index)); err != nil {
			return err
		}
	}
	got, err := p.client.Get(ctx, "k/", clientv3.WithPrefix(), clientv3.WithLimit(2))
	say("limit", got.Count, got.More, got.Kvs, err)
	got, err = p.client.Get(ctx, "k/", append(clientv3.WithLastCreate(), clientv3.WithPrefix())...)
	say("last created", got.Kvs, err)
	got, err = p.client.Get(ctx, "k/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByValue, clientv3.SortDescend), clientv3.WithKeysOnly())
	say("by value", got.Kvs, err)
	got, err = p.client.Get(ctx, "k/", clientv3.WithPrefix(), clientv3.WithCountOnly(), clientv3.WithSerializable())
	say("count", got.Count, len(got.Kvs), err)
	got, err = p.client.Get(ctx, "k/", clientv3.WithPrefix(), clientv3.WithMinModRev(5), clientv3.WithMaxCreateRev(7))
	say("bounds of revisions", got.Count, got.Kvs, err)
	_, err = p.client.Get(ctx, "k/a", clientv3.WithRev(1000))
	say("future", err)
	deleted, err := p.client.Delete(ctx, "k/", clientv3.WithRange("k/3"), clientv3.WithPrevKV())
	say("deleted", deleted.Header.Revision, deleted.Deleted, deleted.PrevKvs, err)
	return nil
}

func transactions(ctx context.Context, p *program) error {
	txn, err := p.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision("t/a"), "=", 0)).
		Then(clientv3.OpPut("t/a", "1"), clientv3.OpGet("t/", clientv3.WithPrefix()),
			clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Value("t/a"), "=", "1")},
				[]clientv3.Op{clientv3.OpPut("t/b", "inner")}, []clientv3.Op{clientv3.OpGet("t/a")})).
		Else(clientv3.OpGet("t/a")).Commit()
	answer("created", txn.Header.Revision, txn.Responses, err)
	txn, err = p.client.Txn(ctx).
		If(clientv3.Compare(clientv3.Version("t/").WithPrefix(), ">", 0), clientv3.Compare(clientv3.ModRevision("t/a"), "<", 1)).
		Then(clientv3.OpDelete("t/", clientv3.WithPrefix())).
		Else(clientv3.OpDelete("t/b", clientv3.WithPrevKV()), clientv3.OpGet("t/", clientv3.WithPrefix(), clientv3.WithCountOnly())).Commit()
	answer("else", txn.Header.Revision, fmt.Sprint(txn.Succeeded, txn.Responses), err)
	_, err = p.client.Txn(ctx).Then(clientv3.OpPut("t/x", "1"), clientv3.OpPut("t/x", "2")).Commit()
	say("twice", err)
	many := make([]clientv3.Op, 129)
	for index := range many {
		many[index] = clientv3.OpPut(fmt.Sprintf("t/%d", index), "")
	}
	_, err = p.client.Txn(ctx).Then(many...).Commit()
	say("too many", err)
	_, err = p.client.Txn(ctx).Then(clientv3.OpGet("t/", clientv3.WithRev(4000))).Commit()
	say("future", err)
	return nil
}

func watches(ctx context.Context, p *program) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	heard := p.client.Watch(clientv3.WithRequireLeader(watching), "w/", clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithCreatedNotify())
	puts := p.client.Watch(watching, "w/", clientv3.WithPrefix(), clientv3.WithFilterDelete())
	if created := <-heard; !created.Created {
		return errors.New("not created first")
	}
	// Both watches share one stream. The second one's answer follows its creation.
	if err := p.client.RequestProgress(watching); err != nil {
		return err
	}
	for _, op := range []clientv3.Op{
		clientv3.OpPut("w/a", "1"), clientv3.OpPut("w/a", "2"), clientv3.OpDelete("w/", clientv3.WithPrefix()), clientv3.OpPut("w/b", "3"),
	} {
		if _, err := p.client.Do(ctx, op); err != nil {
			return err
		}
	}
	last := ""
	for last != "w/b" {
		response := <-heard
		if response.Err() != nil {
			return response.Err()
		}
		for _, event := range response.Events {
			say("event", event.Type, event.IsCreate(), event.Kv, event.PrevKv)
			last = string(event.Kv.Key)
		}
	}
	for count := 0; count < 3; {
		response := <-puts
		for _, event := range response.Events {
			say("put only", event.Type, string(event.Kv.Key), string(event.Kv.Value))
			count++
		}
	}
	// When no event is in flight, the answer is the newest revision, for all watches of the stream.
	latest, err := p.client.Get(ctx, "w/b")
	if err != nil {
		return err
	}
	for {
		if err := p.client.RequestProgress(watching); err != nil {
			return err
		}
		select {
		case response := <-puts:
			if response.IsProgressNotify() && response.Header.Revision == latest.Header.Revision {
				say("progress", response.Header.Revision)
				return nil
			}
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func fragments(ctx context.Context, p *program) error {
	var revision int64
	ops := make([]clientv3.Op, 3)
	for index := range ops {
		ops[index] = clientv3.OpPut(fmt.Sprintf("f/%d", index), strings.Repeat("x", 450<<10))
	}
	for round := 0; round < 3; round++ {
		txn, err := p.client.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return err
		}
		if revision == 0 {
			revision = txn.Header.Revision
		}
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	count := 0
	for response := range p.client.Watch(watching, "f/", clientv3.WithPrefix(), clientv3.WithRev(revision), clientv3.WithFragment()) {
		if response.Err() != nil {
			return response.Err()
		}
		for _, event := range response.Events {
			say("fragment", event.Type, string(event.Kv.Key), event.Kv.ModRevision, len(event.Kv.Value))
			count++
		}
		if count == 9 {
			break
		}
	}
	_, err := p.client.Delete(ctx, "f/", clientv3.WithPrefix())
	return err
}

func compaction(ctx context.Context, p *program) error {
	put, err := p.client.Put(ctx, "c", "1")
	if err != nil {
		return err
	}
	_, err = p.client.Compact(ctx, put.Header.Revision, clientv3.WithCompactPhysical())
	say("compacted", err)
	_, err = p.client.Compact(ctx, put.Header.Revision)
	say("again", err)
	_, err = p.client.Compact(ctx, put.Header.Revision+100)
	say("future", err)
	_, err = p.client.Get(ctx, "c", clientv3.WithRev(put.Header.Revision-1))
	say("before", err)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	response := <-p.client.Watch(watching, "c", clientv3.WithRev(1))
	say("watch", response.Canceled, response.CompactRevision == put.Header.Revision, response.Err())
	return nil
}

func leases(ctx context.Context, p *program) error {
	_, err := p.client.Revoke(ctx, 4242)
	say("revoke of none", err)
	left, err := p.client.TimeToLive(ctx, 4242)
	answer("time to live of none", 0, left.TTL, err)
	_, err = p.client.KeepAliveOnce(ctx, 4242)
	say("refresh of none", err)
	_, err = p.client.Grant(ctx, 1<<40)
	say("too long", err)
	lease, err := p.client.Grant(ctx, 60)
	if err != nil {
		return err
	}
	for _, key := range []string{"l/b", "l/a"} {
		if _, err := p.client.Put(ctx, key, "", clientv3.WithLease(lease.ID)); err != nil {
			return err
		}
	}
	left, err = p.client.TimeToLive(ctx, lease.ID, clientv3.WithAttachedKeys())
	if err != nil {
		return err
	}
	sort.Slice(left.Keys, func(a, b int) bool { return bytes.Compare(left.Keys[a], left.Keys[b]) < 0 })
	say("granted", left.GrantedTTL, left.TTL >= 55, fmt.Sprintf("%s", left.Keys))
	all, err := p.client.Leases(ctx)
	answer("leases", 0, len(all.Leases), err)
	once, err := p.client.KeepAliveOnce(ctx, lease.ID)
	answer("refreshed", 0, once.TTL, err)
	refreshing, stop := context.WithCancel(ctx)
	heard, err := p.client.KeepAlive(refreshing, lease.ID)
	if err != nil {
		stop()
		return err
	}
	say("kept", (<-heard).TTL)
	revoked, err := p.client.Revoke(ctx, lease.ID)
	answer("revoked", revoked.Header.Revision, "", err)
	stop()
	got, err := p.client.Get(ctx, "l/", clientv3.WithPrefix())
	say("keys that are left", got.Count, err)
	// The server's shortest ttl may be longer. The key is deleted when it is over.
	short, err := p.client.Grant(ctx, 1)
	if err != nil {
		return err
	}
	put, err := p.client.Put(ctx, "l/short", "", clientv3.WithLease(short.ID))
	if err != nil {
		return err
	}
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	response := <-p.client.Watch(watching, "l/short", clientv3.WithRev(put.Header.Revision+1))
	for _, event := range response.Events {
		say("expired", event.Type, string(event.Kv.Key))
	}
	return response.Err()
}

func session(p *program) (*concurrency.Session, error) {
	return concurrency.NewSession(p.client, concurrency.WithTTL(30))
}

func mutex(ctx context.Context, p *program) error {
	one, err := session(p)
	if err != nil {
		return err
	}
	other, err := session(p)
	if err != nil {
		return err
	}
	defer other.Close()
	first, second := concurrency.NewMutex(one, "m/"), concurrency.NewMutex(other, "m/")
	if err := first.Lock(ctx); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	say("wait", second.Lock(waiting))
	cancel()
	got, err := p.client.Get(ctx, "m/", clientv3.WithPrefix())
	say("in line", got.Count, err)
	taken := make(chan error)
	go func() { taken <- second.Lock(ctx) }()
	say("unlock", first.Unlock(ctx))
	say("next", <-taken)
	// etcd treats a transaction that reads nothing as serializable, so its answer may be outdated.
	txn, err := p.client.Txn(ctx).If(second.IsOwner()).Then(clientv3.OpGet(second.Key())).Commit()
	say("owner", txn.Succeeded, err)
	say("gone", one.Close())
	say("relock", second.Lock(ctx))
	say("unlock", second.Unlock(ctx))
	return nil
}

func election(ctx context.Context, p *program) error {
	one, err := session(p)
	if err != nil {
		return err
	}
	other, err := session(p)
	if err != nil {
		return err
	}
	defer other.Close()
	first, second := concurrency.NewElection(one, "e"), concurrency.NewElection(other, "e")
	_, err = first.Leader(ctx)
	say("nobody", err)
	say("campaign", first.Campaign(ctx, "one"))
	observing, stop := context.WithCancel(ctx)
	defer stop()
	seen := second.Observe(observing)
	say("observed", string((<-seen).Kvs[0].Value))
	say("proclaim", first.Proclaim(ctx, "uno"))
	say("observed", string((<-seen).Kvs[0].Value))
	elected := make(chan error)
	go func() { elected <- second.Campaign(ctx, "two") }()
	// The first candidate's session ends, and the second one leads.
	say("ended", one.Close())
	say("elected", <-elected)
	leader, err := second.Leader(ctx)
	if err != nil {
		return err
	}
	say("leader", string(leader.Kvs[0].Value))
	say("late", first.Proclaim(ctx, "late"))
	say("resigned", second.Resign(ctx))
	return nil
}

func stm(ctx context.Context, p *program) error {
	const writers, rounds = 4, 5
	if _, err := p.client.Put(ctx, "s/n", "0"); err != nil {
		return err
	}
	var group sync.WaitGroup
	for writer := 0; writer < writers; writer++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for round := 0; round < rounds; round++ {
				_, err := concurrency.NewSTM(p.client, func(stm concurrency.STM) error {
					var number int
					fmt.Sscan(stm.Get("s/n"), &number)
					stm.Put("s/n", fmt.Sprint(number+1))
					stm.Put(fmt.Sprintf("s/%d", number%3), "x")
					return nil
				}, concurrency.WithIsolation(concurrency.SerializableSnapshot), concurrency.WithAbortContext(ctx))
				if err != nil {
					say("stm", err)
				}
			}
		}()
	}
	group.Wait()
	got, err := p.client.Get(ctx, "s/n")
	if err != nil {
		return err
	}
	say("counted", string(got.Kvs[0].Value), got.Kvs[0].Version)
	_, err = concurrency.NewSTM(p.client, func(stm concurrency.STM) error {
		stm.Del("s/n")
		return errors.New("taken back")
	})
	say("aborted", err)
	return nil
}

func inNamespace(ctx context.Context, p *program) error {
	kv := namespace.NewKV(p.client.KV, "n/")
	if _, err := kv.Put(ctx, "a", "1"); err != nil {
		return err
	}
	got, err := kv.Get(ctx, "a", clientv3.WithFromKey())
	if err != nil {
		return err
	}
	say("inside", got.Kvs, got.Count)
	got, err = p.client.Get(ctx, "n/", clientv3.WithPrefix())
	say("outside", got.Kvs, err)
	return nil
}

func names(list *clientv3.MemberListResponse) string {
	var found []string
	for _, member := range list.Members {
		found = append(found, fmt.Sprintf("%s learner=%v urls=%d/%d", member.Name, member.IsLearner, len(member.PeerURLs), len(member.ClientURLs)))
	}
	sort.Strings(found)
	return strings.Join(found, "; ")
}

func members(ctx context.Context, p *program) error {
	list, err := p.client.MemberList(ctx)
	if err != nil {
		return err
	}
	say("members", names(list))
	_, err = p.client.MemberRemove(ctx, 99)
	say("remove of none", err)
	_, err = p.client.MemberPromote(ctx, 99)
	say("promotion of none", err)
	_, err = p.client.MemberPromote(ctx, list.Members[0].ID)
	say("promotion of a voter", err)
	_, err = p.client.MemberAdd(ctx, []string{"nonsense"})
	say("no URL", err)
	var added *clientv3.MemberAddResponse
	// A server counts as connected only some time after the others have heard from it.
	for {
		added, err = p.client.MemberAddAsLearner(ctx, []string{p.newPeer})
		if err == nil || !strings.Contains(err.Error(), "unhealthy cluster") {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	say("added", added.Member.IsLearner, added.Member.PeerURLs, len(added.Members))
	_, err = p.client.MemberAdd(ctx, list.Members[0].PeerURLs)
	say("added twice", err)
	_, err = p.client.MemberAddAsLearner(ctx, []string{"http://127.0.0.1:2"})
	say("a second learner", err)
	_, err = p.client.MemberPromote(ctx, added.Member.ID)
	say("promoted too soon", err)
	updated, err := p.client.MemberUpdate(ctx, added.Member.ID, []string{p.newPeer, "http://127.0.0.1:3"})
	if err != nil {
		return err
	}
	say("updated", len(updated.Members))
	removed, err := p.client.MemberRemove(ctx, added.Member.ID)
	if err != nil {
		return err
	}
	say("removed", len(removed.Members))
	// Each server of etcd 3.4 answers from its own state.
	for {
		if list, err = p.client.MemberList(ctx); err != nil {
			return err
		}
		if len(list.Members) == 3 {
			break
		}
	}
	say("members", names(list))
	return nil
}

func maintenance(ctx context.Context, p *program) error {
	leaders := map[uint64]bool{}
	var leading string
	for _, endpoint := range p.endpoints {
		state, err := p.client.Status(ctx, endpoint)
		if err != nil {
			return err
		}
		leaders[state.Leader] = true
		if state.Leader == state.Header.MemberId {
			leading = endpoint
		}
		say("status", state.IsLearner, state.Leader != 0, state.RaftIndex > 0, state.DbSize > 0, state.Errors)
	}
	say("leaders", len(leaders))
	hashes := map[uint32]bool{}
	for _, endpoint := range p.endpoints {
		hash, err := p.client.HashKV(ctx, endpoint, 0)
		if err != nil {
			return err
		}
		hashes[hash.Hash] = true
	}
	say("hashes", len(hashes))
	_, err := p.client.HashKV(ctx, p.endpoints[0], 1<<40)
	say("hash of the future", err)
	_, err = p.client.Defragment(ctx, p.endpoints[0])
	say("defragmented", err)
	alarms, err := p.client.AlarmList(ctx)
	if err != nil {
		return err
	}
	say("alarms", alarms.Alarms)
	backup, err := p.client.Snapshot(ctx)
	if err != nil {
		return err
	}
	taken, err := io.Copy(io.Discard, backup)
	say("snapshot", taken > 1000, err)
	leader := connected([]string{leading}, "", "")
	defer leader.Close()
	_, err = leader.MoveLeader(ctx, 99)
	say("no such leader", err)
	list, err := p.client.MemberList(ctx)
	if err != nil {
		return err
	}
	for _, member := range list.Members {
		if !leaders[member.ID] {
			moved, err := leader.MoveLeader(ctx, member.ID)
			say("moved", moved != nil, err)
			_, err = leader.MoveLeader(ctx, member.ID)
			say("moved again", err)
			break
		}
	}
	return nil
}

func users(ctx context.Context, p *program) error {
	_, err := p.client.AuthEnable(ctx)
	say("without root", err)
	_, err = p.client.UserAdd(ctx, "root", "rootpw")
	say("root", err)
	_, err = p.client.UserAdd(ctx, "root", "rootpw")
	say("again", err)
	_, err = p.client.UserGrantRole(ctx, "root", "root")
	say("root role", err)
	_, err = p.client.RoleAdd(ctx, "jobs")
	say("role", err)
	_, err = p.client.RoleGrantPermission(ctx, "jobs", "j/", clientv3.GetPrefixRangeEnd("j/"), clientv3.PermissionType(clientv3.PermReadWrite))
	say("permission", err)
	_, err = p.client.UserAdd(ctx, "ann", "annpw")
	say("ann", err)
	_, err = p.client.UserGrantRole(ctx, "ann", "jobs")
	say("ann's role", err)
	_, err = p.client.AuthEnable(ctx)
	say("enabled", err)
	_, err = p.client.Get(ctx, "j/1")
	say("nobody", err)
	_, err = clientv3.New(clientv3.Config{Endpoints: p.endpoints, DialTimeout: 5 * time.Second, Username: "ann", Password: "wrong"})
	say("wrong password", err)
	ann := connected(p.endpoints, "ann", "annpw")
	defer ann.Close()
	_, err = ann.Put(ctx, "j/1", "x")
	say("ann puts", err)
	_, err = ann.Put(ctx, "other", "x")
	say("ann puts elsewhere", err)
	_, err = ann.Get(ctx, "j/", clientv3.WithFromKey())
	say("ann reads beyond", err)
	_, err = ann.Txn(ctx).Then(clientv3.OpGet("j/1"), clientv3.OpGet("other")).Commit()
	say("ann's transaction", err)
	_, err = ann.UserList(ctx)
	say("ann lists users", err)
	own, err := ann.UserGet(ctx, "ann")
	if err != nil {
		return err
	}
	say("ann's own roles", own.Roles)
	root := connected(p.endpoints, "root", "rootpw")
	defer root.Close()
	role, err := root.RoleGet(ctx, "jobs")
	if err != nil {
		return err
	}
	say("permissions", role.Perm)
	_, err = root.UserDelete(ctx, "root")
	say("root deletes root", err)
	_, err = root.UserChangePassword(ctx, "ann", "newpw")
	say("password", err)
	_, err = clientv3.New(clientv3.Config{Endpoints: p.endpoints, DialTimeout: 5 * time.Second, Username: "ann", Password: "annpw"})
	say("old password", err)
	_, err = root.RoleRevokePermission(ctx, "jobs", "j/", clientv3.GetPrefixRangeEnd("j/"))
	say("permission revoked", err)
	_, err = root.UserDelete(ctx, "ann")
	say("ann deleted", err)
	_, err = root.AuthDisable(ctx)
	say("disabled", err)
	got, err := p.client.Get(ctx, "j/1")
	if err != nil {
		return err
	}
	say("what ann put", string(got.Kvs[0].Value))
	return nil
}
