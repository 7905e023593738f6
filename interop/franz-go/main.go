// franz-go. See ../README.md for what each feature asks.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

const patience = 60 * time.Second
const firstTime = int64(1_600_000_000_000)

var bootstrap, feature, name string

type report map[string]any

type record struct {
	P int32    `json:"p"`
	O int64    `json:"o"`
	K *string  `json:"k"`
	V *string  `json:"v"`
	H [][2]any `json:"h"`
	T int64    `json:"t"`
}

func main() {
	bootstrap, feature, name = os.Args[1], os.Args[2], os.Args[3]
	features := map[string]func() report{
		"produce":          func() report { return produce(kgo.DisableIdempotentWrite()) },
		"gzip":             func() report { return compressed(kgo.GzipCompression()) },
		"snappy":           func() report { return compressed(kgo.SnappyCompression()) },
		"lz4":              func() report { return compressed(kgo.Lz4Compression()) },
		"zstd":             func() report { return compressed(kgo.ZstdCompression()) },
		"headers":          headers,
		"keys":             keys,
		"timestamps":       timestamps,
		"idempotence":      func() report { return produce() },
		"transactions":     transactions,
		"read-committed":   func() report { return readCommitted(16) },
		"group-classic":    func() report { return group() },
		"group-consumer":   func() report { return group(kgo.ServerSideBalancer()) },
		"group-share":      share,
		"static":           static,
		"admin-topics":     topics,
		"admin-configs":    configs,
		"admin-partitions": partitions,
		"admin-groups":     groups,
		"admin-offsets":    offsets,
		"admin-records":    records,
		"admin-acls":       acls,
		"old-versions":     old,
	}
	out, err := json.Marshal(features[feature]())
	check(err)
	fmt.Println(string(out))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func client(options ...kgo.Opt) *kgo.Client {
	all := append([]kgo.Opt{
		kgo.SeedBrokers(bootstrap),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.FetchMaxWait(100 * time.Millisecond),
	}, options...)
	cl, err := kgo.NewClient(all...)
	check(err)
	return cl
}

func limit() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	time.AfterFunc(patience, cancel)
	return ctx
}

func text(value []byte) *string {
	if value == nil {
		return nil
	}
	s := string(value)
	return &s
}

func seen(r *kgo.Record) record {
	found := record{r.Partition, r.Offset, text(r.Key), text(r.Value), [][2]any{}, r.Timestamp.UnixMilli()}
	for _, header := range r.Headers {
		found.H = append(found.H, [2]any{header.Key, text(header.Value)})
	}
	return found
}

func numbered(suffix string) []*kgo.Record {
	var all []*kgo.Record
	for n := 0; n < 100; n++ {
		all = append(all, &kgo.Record{
			Topic:     name,
			Partition: int32(n % 4),
			Key:       []byte(fmt.Sprintf("key-%d", n)),
			Value:     []byte(fmt.Sprintf("value-%d%s", n, suffix)),
		})
	}
	return all
}

func send(records []*kgo.Record, options ...kgo.Opt) {
	cl := client(append([]kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner())}, options...)...)
	defer cl.Close()
	check(cl.ProduceSync(limit(), records...).FirstErr())
}

// Reads until there are count records, then for half a second more.
func read(count int, topic string, options ...kgo.Opt) []record {
	offsets := map[int32]kgo.Offset{}
	for partition := int32(0); partition < 4; partition++ {
		offsets[partition] = kgo.NewOffset().AtStart()
	}
	from := kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets})
	cl := client(append(options, from)...)
	defer cl.Close()
	found := []record{}
	deadline := time.Now().Add(patience)
	poll := func(wait time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { found = append(found, seen(r)) })
	}
	for len(found) < count && time.Now().Before(deadline) {
		poll(100 * time.Millisecond)
	}
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		poll(100 * time.Millisecond)
	}
	return found
}

func produce(options ...kgo.Opt) report {
	send(numbered(""), options...)
	return report{"records": read(100, name)}
}

func compressed(codec kgo.CompressionCodec) report {
	send(numbered(strings.Repeat(" compressible", 20)), kgo.ProducerBatchCompression(codec))
	return report{"records": read(100, name)}
}

func headers() report {
	given := []kgo.RecordHeader{
		{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte("2")}, {Key: "empty", Value: []byte{}},
		{Key: "näme", Value: []byte("wért")}, {Key: "null", Value: nil},
	}
	send([]*kgo.Record{
		{Topic: name, Value: []byte("with"), Headers: given}, {Topic: name, Value: []byte("out")},
	})
	return report{"records": read(2, name)}
}

func keys() report {
	var all []*kgo.Record
	for n := 0; n < 50; n++ {
		r := &kgo.Record{Topic: name, Key: []byte(fmt.Sprintf("key-%d", n))}
		if n < 49 {
			r.Value = []byte(fmt.Sprintf("value-%d", n))
		}
		all = append(all, r)
	}
	send(all, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	return report{"records": read(50, name)}
}

func timestamps() report {
	for _, topic := range []string{name, name + "-append"} {
		var all []*kgo.Record
		for n := int64(0); n < 10; n++ {
			at := time.UnixMilli(firstTime + 1000*n)
			all = append(all, &kgo.Record{Topic: topic, Value: []byte(fmt.Sprint(n)), Timestamp: at})
		}
		send(all)
	}
	return report{
		"records":  read(10, name),
		"appended": read(10, name+"-append"),
		"offset":   offsetAfter(firstTime + 4500),
	}
}

func transactions() report {
	cl := client(kgo.TransactionalID(name), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for _, word := range []string{"first", "second", "third"} {
		check(cl.BeginTransaction())
		var all []*kgo.Record
		for n := int32(0); n < 4; n++ {
			all = append(all, &kgo.Record{Topic: name, Partition: n, Value: []byte(fmt.Sprintf("%s-%d", word, n))})
		}
		check(cl.ProduceSync(limit(), all...).FirstErr())
		if word == "third" {
			sendOffset(cl, 7)
		}
		check(cl.EndTransaction(limit(), kgo.TransactionEndTry(word != "second")))
	}
	cl.Close()
	result := readCommitted(12)
	result["committed"] = committed()[0]
	return result
}

// GroupTransactSession would commit what it has consumed; an offset of our own goes by the requests below it.
func sendOffset(cl *kgo.Client, offset int64) {
	id, epoch, err := cl.ProducerID(limit())
	check(err)
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = name, id, epoch, name
	added, err := add.RequestWith(limit(), cl)
	check(err)
	check(kerr.ErrorForCode(added.ErrorCode))
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.Group, commit.ProducerID, commit.ProducerEpoch = name, name, id, epoch
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = offset
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic = name
	topic.Partitions = append(topic.Partitions, partition)
	commit.Topics = append(commit.Topics, topic)
	done, err := commit.RequestWith(limit(), cl)
	check(err)
	check(kerr.ErrorForCode(done.Topics[0].Partitions[0].ErrorCode))
}

func readCommitted(everything int) report {
	return report{
		"records": read(8, name, kgo.FetchIsolationLevel(kgo.ReadCommitted())),
		"all":     read(everything, name, kgo.FetchIsolationLevel(kgo.ReadUncommitted())),
	}
}

// A member of the group that polls in a goroutine of its own.
type member struct {
	mutex      sync.Mutex
	cl         *kgo.Client
	found      []record
	partitions map[int32]bool
	changes    int
	stop       context.CancelFunc
	done       chan struct{}
}

func join(options ...kgo.Opt) *member {
	m := &member{partitions: map[int32]bool{}, done: make(chan struct{})}
	change := func(has bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, assigned map[string][]int32) {
			m.mutex.Lock()
			defer m.mutex.Unlock()
			for _, partition := range assigned[name] {
				m.changes++
				if has {
					m.partitions[partition] = true
				} else {
					delete(m.partitions, partition)
				}
			}
		}
	}
	m.cl = client(append([]kgo.Opt{
		kgo.ConsumerGroup(name),
		kgo.ConsumeTopics(name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.OnPartitionsAssigned(change(true)),
		kgo.OnPartitionsRevoked(change(false)),
		kgo.OnPartitionsLost(change(false)),
	}, options...)...)
	var ctx context.Context
	ctx, m.stop = context.WithCancel(context.Background())
	go func() {
		defer close(m.done)
		for ctx.Err() == nil {
			fetches := m.cl.PollFetches(ctx)
			m.mutex.Lock()
			fetches.EachRecord(func(r *kgo.Record) { m.found = append(m.found, seen(r)) })
			m.mutex.Unlock()
		}
	}()
	return m
}

func (m *member) assigned() []int32 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	all := []int32{}
	for partition := range m.partitions {
		all = append(all, partition)
	}
	return all
}

// How far the partitions that it has now were read.
func (m *member) ends() map[int32]kgo.EpochOffset {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	ends := map[int32]kgo.EpochOffset{}
	for _, r := range m.found {
		if m.partitions[r.P] {
			ends[r.P] = kgo.EpochOffset{Epoch: -1, Offset: r.O + 1}
		}
	}
	return ends
}

func (m *member) pause() {
	m.stop()
	<-m.done
}

func until(question func() bool, wait time.Duration) bool {
	for deadline := time.Now().Add(wait); !question() && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	return question()
}

func group(options ...kgo.Opt) report {
	members := []*member{join(options...), join(options...)}
	until(func() bool {
		finished := 0
		for _, m := range members {
			for _, end := range m.ends() {
				if end.Offset == 25 {
					finished++
				}
			}
			if len(m.assigned()) != 2 {
				return false
			}
		}
		return finished == 4
	}, patience)
	assigned, found := [][]int32{}, []record{}
	for _, m := range members {
		assigned = append(assigned, m.assigned())
		ends := map[string]map[int32]kgo.EpochOffset{name: m.ends()}
		m.pause()
		m.cl.CommitOffsetsSync(limit(), ends, nil)
		found = append(found, m.found...)
	}
	for _, m := range members {
		m.cl.Close()
	}
	return report{"assigned": assigned, "records": found, "committed": committed()}
}

func share() report {
	var members []*kgo.Client
	for range 2 {
		members = append(members, client(kgo.ShareGroup(name), kgo.ConsumeTopics(name)))
	}
	accepted, deliveries, released := []record{}, 0, ""
	for deadline := time.Now().Add(patience); len(accepted) < 100 && time.Now().Before(deadline); {
		for _, cl := range members {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				place := fmt.Sprintf("%d-%d", r.Partition, r.Offset)
				if released == "" {
					released = place
				}
				if place == released {
					deliveries++
				}
				if place == released && deliveries == 1 {
					r.Ack(kgo.AckRelease)
				} else {
					r.Ack(kgo.AckAccept)
					accepted = append(accepted, seen(r))
				}
			})
			cancel()
			check(cl.FlushAcks(limit()))
		}
	}
	for _, cl := range members {
		cl.Close()
	}
	return report{"records": accepted, "deliveries": deliveries}
}

func static() report {
	start := func(suffix string) *member {
		return join(kgo.InstanceID(name+"-"+suffix), kgo.SessionTimeout(30*time.Second))
	}
	first, other := start("a"), start("b")
	settled := func() bool { return len(first.assigned()) == 2 && len(other.assigned()) == 2 }
	until(settled, patience)
	before, kept := first.assigned(), other.assigned()
	first.pause()
	first.cl.Close() // a static member does not leave
	other.mutex.Lock()
	other.changes = 0
	other.mutex.Unlock()
	first = start("a")
	until(settled, patience)
	time.Sleep(500 * time.Millisecond)
	return report{"before": before, "other": kept, "after": first.assigned(), "rebalances": other.changes}
}

func old() report {
	pinned := kgo.MaxVersions(kversion.V2_1_0())
	send(numbered(""), pinned)
	m := join(pinned)
	until(func() bool {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		return len(m.found) >= 100
	}, patience)
	ends := map[string]map[int32]kgo.EpochOffset{name: m.ends()}
	m.pause()
	m.cl.CommitOffsetsSync(limit(), ends, nil)
	m.cl.Close()
	return report{"records": m.found, "committed": committed()[0]}
}
