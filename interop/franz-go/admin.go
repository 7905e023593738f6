package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

func admin() *kadm.Client {
	return kadm.NewClient(client())
}

func committed() map[int32]int64 {
	found, err := admin().FetchOffsets(limit(), name)
	check(err)
	all := map[int32]int64{}
	for partition, at := range found[name] {
		all[partition] = at.At
	}
	return all
}

func offsetAfter(timestamp int64) int64 {
	found, err := admin().ListOffsetsAfterMilli(limit(), timestamp, name)
	check(err)
	return found[name][0].Offset
}

func earliest() int64 {
	found, err := admin().ListStartOffsets(limit(), name)
	check(err)
	return found[name][0].Offset
}

func described(topic, setting string) string {
	found, err := admin().DescribeTopicConfigs(limit(), topic)
	check(err)
	for _, entry := range found[0].Configs {
		if entry.Key == setting {
			return entry.MaybeValue()
		}
	}
	return ""
}

func partitionsOf(topic string) int {
	found, err := admin().ListTopics(limit(), topic)
	check(err)
	return len(found[topic].Partitions)
}

func topics() report {
	topic, retention := name+"-new", "100000"
	created, err := admin().CreateTopics(limit(), 3, 1, map[string]*string{"retention.ms": &retention}, topic)
	check(err)
	check(created.Error())
	listed := func() bool {
		found, err := admin().ListTopics(context.Background())
		check(err)
		return found.Has(topic)
	}
	result := report{"listed": until(listed, 10*time.Second), "partitions": partitionsOf(topic)}
	result["retention"] = described(topic, "retention.ms")
	deleted, err := admin().DeleteTopics(limit(), topic)
	check(err)
	check(deleted.Error())
	result["gone"] = until(func() bool { return !listed() }, 10*time.Second)
	return result
}

func configs() report {
	setting, wanted := "max.message.bytes", "77777"
	alter := func(op kadm.IncrementalOp, value *string) {
		change := kadm.AlterConfig{Op: op, Name: setting, Value: value}
		done, err := admin().AlterTopicConfigs(limit(), []kadm.AlterConfig{change}, name)
		check(err)
		check(done[0].Err)
	}
	result := report{"before": described(name, setting)}
	alter(kadm.SetConfig, &wanted)
	until(func() bool { return described(name, setting) == wanted }, 10*time.Second)
	result["set"] = described(name, setting)
	alter(kadm.DeleteConfig, nil)
	until(func() bool { return described(name, setting) != wanted }, 10*time.Second)
	result["after"] = described(name, setting)
	return result
}

func partitions() report {
	done, err := admin().UpdatePartitions(limit(), 6, name)
	check(err)
	check(done.Error())
	until(func() bool { return partitionsOf(name) == 6 }, 10*time.Second)
	return report{"partitions": partitionsOf(name)}
}

func groups() report {
	listed := func() bool {
		found, err := admin().ListGroups(limit())
		check(err)
		_, there := found[name]
		return there
	}
	result := report{"listed": listed()}
	described, err := admin().DescribeGroups(limit(), name)
	check(err)
	result["state"] = described[name].State
	_, err = admin().DeleteGroup(limit(), name)
	check(err)
	result["gone"] = until(func() bool { return !listed() }, 10*time.Second)
	return result
}

func offsets() report {
	latest, err := admin().ListEndOffsets(limit(), name)
	check(err)
	result := report{"earliest": earliest(), "latest": latest[name][0].Offset, "committed": committed()[0]}
	wanted := kadm.Offsets{}
	wanted.AddOffset(name, 0, 10, -1)
	check(admin().CommitAllOffsets(limit(), name, wanted))
	result["altered"] = committed()[0]
	set := kadm.TopicsSet{}
	set.Add(name, 0)
	done, err := admin().DeleteOffsets(limit(), name, set)
	check(err)
	check(done.Error())
	_, there := committed()[0]
	result["deleted"] = !there
	return result
}

func records() report {
	wanted := kadm.Offsets{}
	wanted.AddOffset(name, 0, 10, -1)
	done, err := admin().DeleteRecords(limit(), wanted)
	check(err)
	check(done.Error())
	return report{"earliest": earliest()}
}
