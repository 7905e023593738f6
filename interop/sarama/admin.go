package main

import (
	"time"

	"github.com/IBM/sarama"
)

func admin() sarama.ClusterAdmin {
	client, err := sarama.NewClusterAdmin([]string{bootstrap}, config())
	check(err)
	return client
}

func committed() map[int32]int64 {
	found, err := admin().ListConsumerGroupOffsets(name, map[string][]int32{name: {0, 1, 2, 3}})
	check(err)
	all := map[int32]int64{}
	for partition, block := range found.Blocks[name] {
		if block.Offset >= 0 {
			all[partition] = block.Offset
		}
	}
	return all
}

func bound(which int64) int64 {
	client, err := sarama.NewClient([]string{bootstrap}, config())
	check(err)
	offset, err := client.GetOffset(name, 0, which)
	check(err)
	return offset
}

func described(topic, setting string) string {
	asked := sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{setting}}
	found, err := admin().DescribeConfig(asked)
	check(err)
	return found[0].Value
}

func partitionsOf(topic string) int {
	found, err := admin().DescribeTopics([]string{topic})
	check(err)
	return len(found[0].Partitions)
}

func topics() report {
	topic, retention := name+"-new", "100000"
	detail := &sarama.TopicDetail{
		NumPartitions:     3,
		ReplicationFactor: 1,
		ConfigEntries:     map[string]*string{"retention.ms": &retention},
	}
	check(admin().CreateTopic(topic, detail, false))
	listed := func() bool {
		found, err := admin().ListTopics()
		check(err)
		_, there := found[topic]
		return there
	}
	result := report{"listed": until(listed, 10*time.Second), "partitions": partitionsOf(topic)}
	result["retention"] = described(topic, "retention.ms")
	check(admin().DeleteTopic(topic))
	result["gone"] = until(func() bool { return !listed() }, 10*time.Second)
	return result
}

func configs() report {
	setting, wanted := "max.message.bytes", "77777"
	alter := func(operation sarama.IncrementalAlterConfigsOperation, value *string) {
		entry := sarama.IncrementalAlterConfigsEntry{Operation: operation, Value: value}
		entries := map[string]sarama.IncrementalAlterConfigsEntry{setting: entry}
		check(admin().IncrementalAlterConfig(sarama.TopicResource, name, entries, false))
	}
	result := report{"before": described(name, setting)}
	alter(sarama.IncrementalAlterConfigsOperationSet, &wanted)
	until(func() bool { return described(name, setting) == wanted }, 10*time.Second)
	result["set"] = described(name, setting)
	alter(sarama.IncrementalAlterConfigsOperationDelete, nil)
	until(func() bool { return described(name, setting) != wanted }, 10*time.Second)
	result["after"] = described(name, setting)
	return result
}

func partitions() report {
	check(admin().CreatePartitions(name, 6, nil, false))
	until(func() bool { return partitionsOf(name) == 6 }, 10*time.Second)
	return report{"partitions": partitionsOf(name)}
}

func groups() report {
	listed := func() bool {
		found, err := admin().ListConsumerGroups()
		check(err)
		_, there := found[name]
		return there
	}
	result := report{"listed": listed()}
	described, err := admin().DescribeConsumerGroups([]string{name})
	check(err)
	result["state"] = described[0].State
	check(admin().DeleteConsumerGroup(name))
	result["gone"] = until(func() bool { return !listed() }, 10*time.Second)
	return result
}

func offsets() report {
	result := report{
		"earliest":  bound(sarama.OffsetOldest),
		"latest":    bound(sarama.OffsetNewest),
		"committed": committed()[0],
	}
	wanted := map[string]map[int32]sarama.OffsetAndMetadata{name: {0: {Offset: 10, LeaderEpoch: -1}}}
	_, err := admin().AlterConsumerGroupOffsets(name, wanted, nil)
	check(err)
	result["altered"] = committed()[0]
	check(admin().DeleteConsumerGroupOffset(name, name, 0))
	_, there := committed()[0]
	result["deleted"] = !there
	return result
}

func records() report {
	check(admin().DeleteRecords(name, map[int32]int64{0: 10}))
	return report{"earliest": bound(sarama.OffsetOldest)}
}
