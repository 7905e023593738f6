// sarama. See ../README.md for what each feature asks.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
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

type change func(*sarama.Config)

func main() {
	bootstrap, feature, name = os.Args[1], os.Args[2], os.Args[3]
	features := map[string]func() report{
		"produce":          func() report { return produce() },
		"gzip":             func() report { return compressed(sarama.CompressionGZIP) },
		"snappy":           func() report { return compressed(sarama.CompressionSnappy) },
		"lz4":              func() report { return compressed(sarama.CompressionLZ4) },
		"zstd":             func() report { return compressed(sarama.CompressionZSTD) },
		"headers":          headers,
		"keys":             keys,
		"timestamps":       timestamps,
		"idempotence":      func() report { return produce(idempotent) },
		"transactions":     transactions,
		"read-committed":   func() report { return readCommitted(16) },
		"group-classic":    group,
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

func config(changes ...change) *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.MaxWaitTime = 100 * time.Millisecond
	c.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	for _, apply := range changes {
		apply(c)
	}
	return c
}

func idempotent(c *sarama.Config) {
	c.Producer.Idempotent = true
	c.Net.MaxOpenRequests = 1
}

func text(value []byte) *string {
	if value == nil {
		return nil
	}
	s := string(value)
	return &s
}

func seen(m *sarama.ConsumerMessage) record {
	found := record{m.Partition, m.Offset, text(m.Key), text(m.Value), [][2]any{}, m.Timestamp.UnixMilli()}
	for _, header := range m.Headers {
		found.H = append(found.H, [2]any{string(header.Key), text(header.Value)})
	}
	return found
}

func message(partition int, value string) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{Topic: name, Partition: int32(partition), Value: sarama.StringEncoder(value)}
}

func numbered(suffix string) []*sarama.ProducerMessage {
	var all []*sarama.ProducerMessage
	for n := 0; n < 100; n++ {
		one := message(n%4, fmt.Sprintf("value-%d%s", n, suffix))
		one.Key = sarama.StringEncoder(fmt.Sprintf("key-%d", n))
		all = append(all, one)
	}
	return all
}

func send(messages []*sarama.ProducerMessage, changes ...change) {
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, config(changes...))
	check(err)
	check(producer.SendMessages(messages))
	check(producer.Close())
}

// Reads until there are count records, then for half a second more.
func read(count int, topic string, changes ...change) []record {
	consumer, err := sarama.NewConsumer([]string{bootstrap}, config(changes...))
	check(err)
	messages := make(chan *sarama.ConsumerMessage)
	for partition := int32(0); partition < 4; partition++ {
		one, err := consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
		check(err)
		go func() {
			for m := range one.Messages() {
				messages <- m
			}
		}()
	}
	found := []record{}
	end := time.After(patience)
	for {
		if len(found) == count {
			end = time.After(500 * time.Millisecond)
		}
		select {
		case m := <-messages:
			found = append(found, seen(m))
		case <-end:
			return found
		}
	}
}

func produce(changes ...change) report {
	send(numbered(""), changes...)
	return report{"records": read(100, name)}
}

func compressed(codec sarama.CompressionCodec) report {
	send(numbered(strings.Repeat(" compressible", 20)), func(c *sarama.Config) { c.Producer.Compression = codec })
	return report{"records": read(100, name)}
}

func headers() report {
	with, out := message(0, "with"), message(0, "out")
	with.Headers = []sarama.RecordHeader{
		{Key: []byte("a"), Value: []byte("1")}, {Key: []byte("a"), Value: []byte("2")},
		{Key: []byte("empty"), Value: []byte{}}, {Key: []byte("näme"), Value: []byte("wért")},
		{Key: []byte("null"), Value: nil},
	}
	send([]*sarama.ProducerMessage{with, out})
	return report{"records": read(2, name)}
}

func keys() report {
	var all []*sarama.ProducerMessage
	for n := 0; n < 50; n++ {
		one := message(0, fmt.Sprintf("value-%d", n))
		one.Key = sarama.StringEncoder(fmt.Sprintf("key-%d", n))
		if n == 49 {
			one.Value = nil
		}
		all = append(all, one)
	}
	send(all, func(c *sarama.Config) { c.Producer.Partitioner = sarama.NewMurmur2Partitioner })
	return report{"records": read(50, name)}
}

func timestamps() report {
	for _, topic := range []string{name, name + "-append"} {
		var all []*sarama.ProducerMessage
		for n := int64(0); n < 10; n++ {
			one := message(0, fmt.Sprint(n))
			one.Topic, one.Timestamp = topic, time.UnixMilli(firstTime+1000*n)
			all = append(all, one)
		}
		send(all)
	}
	client, err := sarama.NewClient([]string{bootstrap}, config())
	check(err)
	offset, err := client.GetOffset(name, 0, firstTime+4500)
	check(err)
	return report{"records": read(10, name), "appended": read(10, name+"-append"), "offset": offset}
}

func transactions() report {
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, config(idempotent, func(c *sarama.Config) {
		c.Producer.Transaction.ID = name
	}))
	check(err)
	for _, word := range []string{"first", "second", "third"} {
		check(producer.BeginTxn())
		var all []*sarama.ProducerMessage
		for n := 0; n < 4; n++ {
			all = append(all, message(n, fmt.Sprintf("%s-%d", word, n)))
		}
		check(producer.SendMessages(all))
		if word == "third" {
			at := []*sarama.PartitionOffsetMetadata{{Partition: 0, Offset: 7, LeaderEpoch: -1}}
			check(producer.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{name: at}, name))
		}
		if word == "second" {
			check(producer.AbortTxn())
		} else {
			check(producer.CommitTxn())
		}
	}
	check(producer.Close())
	result := readCommitted(12)
	result["committed"] = committed()[0]
	return result
}

func readCommitted(everything int) report {
	level := func(wanted sarama.IsolationLevel) change {
		return func(c *sarama.Config) { c.Consumer.IsolationLevel = wanted }
	}
	return report{
		"records": read(8, name, level(sarama.ReadCommitted)),
		"all":     read(everything, name, level(sarama.ReadUncommitted)),
	}
}

// A member of the group; its handler notes what it is given.
type member struct {
	mutex    sync.Mutex
	group    sarama.ConsumerGroup
	session  sarama.ConsumerGroupSession
	found    []record
	changes  int
	stopping bool
}

func join(changes ...change) *member {
	group, err := sarama.NewConsumerGroup([]string{bootstrap}, name, config(changes...))
	check(err)
	m := &member{group: group}
	go func() {
		for !m.stopping {
			_ = group.Consume(context.Background(), []string{name}, m)
		}
	}()
	return m
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = session
	m.changes++
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = nil
	return nil
}

func (m *member) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for one := range claim.Messages() {
		m.mutex.Lock()
		m.found = append(m.found, seen(one))
		m.mutex.Unlock()
	}
	return nil
}

func (m *member) assigned() []int32 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.session == nil {
		return []int32{}
	}
	return m.session.Claims()[name]
}

// How far the partitions that it has now were read.
func (m *member) ends() map[int32]int64 {
	own := map[int32]bool{}
	for _, partition := range m.assigned() {
		own[partition] = true
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	ends := map[int32]int64{}
	for _, r := range m.found {
		if own[r.P] {
			ends[r.P] = r.O + 1
		}
	}
	return ends
}

func (m *member) commit() {
	for partition, end := range m.ends() {
		m.session.MarkOffset(name, partition, end, "")
	}
	m.session.Commit()
}

func (m *member) close() {
	m.stopping = true
	check(m.group.Close())
}

func until(question func() bool, wait time.Duration) bool {
	for deadline := time.Now().Add(wait); !question() && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	return question()
}

func group() report {
	members := []*member{join(), join()}
	until(func() bool {
		finished := 0
		for _, m := range members {
			if len(m.assigned()) != 2 {
				return false
			}
			for _, end := range m.ends() {
				if end == 25 {
					finished++
				}
			}
		}
		return finished == 4
	}, patience)
	assigned, found := [][]int32{}, []record{}
	for _, m := range members {
		assigned = append(assigned, m.assigned())
		m.commit()
		found = append(found, m.found...)
	}
	for _, m := range members {
		m.close()
	}
	return report{"assigned": assigned, "records": found, "committed": committed()}
}

func static() report {
	start := func(suffix string) *member {
		return join(func(c *sarama.Config) {
			c.Consumer.Group.InstanceId = name + "-" + suffix
			c.Consumer.Group.Session.Timeout = 30 * time.Second
		})
	}
	first, other := start("a"), start("b")
	settled := func() bool { return len(first.assigned()) == 2 && len(other.assigned()) == 2 }
	until(settled, patience)
	before, kept := first.assigned(), other.assigned()
	first.close()
	other.changes = 0
	first = start("a")
	until(settled, patience)
	time.Sleep(500 * time.Millisecond)
	return report{"before": before, "other": kept, "after": first.assigned(), "rebalances": other.changes}
}

func old() report {
	pinned := func(c *sarama.Config) { c.Version = sarama.V2_1_0_0 }
	send(numbered(""), pinned)
	m := join(pinned)
	until(func() bool {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		return len(m.found) >= 100
	}, patience)
	m.commit()
	m.close()
	return report{"records": m.found, "committed": committed()[0]}
}
