// rdkafka. See ../README.md for what each feature asks.
mod admin;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(60);
const FIRST_TIME: i64 = 1_600_000_000_000;
const MOMENT: Duration = Duration::from_millis(100);

type Settings<'a> = &'a [(&'a str, &'a str)];

pub struct Client {
    pub bootstrap: String,
    pub feature: String,
    pub name: String,
}

fn text(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |bytes| json!(String::from_utf8_lossy(bytes)))
}

fn record(message: &BorrowedMessage) -> Value {
    let headers: Vec<Value> = message
        .headers()
        .map(|headers| headers.iter().map(|header| json!([header.key, text(header.value)])).collect())
        .unwrap_or_default();
    json!({
        "p": message.partition(),
        "o": message.offset(),
        "k": text(message.key()),
        "v": text(message.payload()),
        "h": headers,
        "t": message.timestamp().to_millis(),
    })
}

pub fn until(wait: Duration, mut question: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + wait;
    while !question() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    question()
}

impl Client {
    pub fn config(&self, settings: Settings) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap).set("log_level", "2");
        for (name, value) in settings {
            config.set(*name, *value);
        }
        config
    }

    fn producer(&self, settings: Settings) -> ThreadedProducer<DefaultProducerContext> {
        self.config(settings).create().expect("a producer")
    }

    pub fn consumer(&self, settings: Settings) -> BaseConsumer {
        let mut config = self.config(&[
            ("group.id", &self.name),
            ("enable.auto.commit", "false"),
            ("auto.offset.reset", "earliest"),
            ("fetch.wait.max.ms", "100"),
        ]);
        for (name, value) in settings {
            config.set(*name, *value);
        }
        config.create().expect("a consumer")
    }

    fn send_numbered(&self, suffix: &str, settings: Settings) {
        let producer = self.producer(settings);
        for n in 0..100 {
            let (key, value) = (format!("key-{n}"), format!("value-{n}{suffix}"));
            let one = BaseRecord::to(&self.name).partition(n % 4).key(&key).payload(&value);
            producer.send(one).map_err(|(error, _)| error).expect("queued");
        }
        producer.flush(PATIENCE).expect("flushed");
    }

    fn read(&self, count: usize, topic: &str, settings: Settings) -> Vec<Value> {
        let consumer = self.consumer(settings);
        let mut partitions = TopicPartitionList::new();
        for partition in 0..4 {
            partitions.add_partition_offset(topic, partition, Offset::Beginning).expect("an offset");
        }
        consumer.assign(&partitions).expect("assigned");
        let mut found = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        while found.len() < count && Instant::now() < deadline {
            poll(&consumer, &mut found);
        }
        let end = Instant::now() + Duration::from_millis(500);
        while Instant::now() < end {
            poll(&consumer, &mut found);
        }
        found
    }

    fn produce(&self, settings: Settings) -> Value {
        self.send_numbered("", settings);
        json!({"records": self.read(100, &self.name, &[])})
    }

    fn compressed(&self) -> Value {
        self.send_numbered(&" compressible".repeat(20), &[("compression.type", &self.feature), ("linger.ms", "20")]);
        json!({"records": self.read(100, &self.name, &[])})
    }

    fn headers(&self) -> Value {
        let producer = self.producer(&[]);
        let mut headers = OwnedHeaders::new();
        for (key, value) in [("a", "1"), ("a", "2"), ("empty", ""), ("näme", "wért")] {
            headers = headers.insert(Header { key, value: Some(value) });
        }
        headers = headers.insert(Header { key: "null", value: None::<&str> });
        let with = BaseRecord::<(), str>::to(&self.name).partition(0).payload("with").headers(headers);
        producer.send(with).map_err(|(error, _)| error).expect("queued");
        let out = BaseRecord::<(), str>::to(&self.name).partition(0).payload("out");
        producer.send(out).map_err(|(error, _)| error).expect("queued");
        producer.flush(PATIENCE).expect("flushed");
        json!({"records": self.read(2, &self.name, &[])})
    }

    fn keys(&self) -> Value {
        let producer = self.producer(&[("partitioner", "murmur2_random")]);
        for n in 0..50 {
            let (key, value) = (format!("key-{n}"), format!("value-{n}"));
            let mut one = BaseRecord::to(&self.name).key(&key);
            if n < 49 {
                one = one.payload(&value);
            }
            producer.send(one).map_err(|(error, _)| error).expect("queued");
        }
        producer.flush(PATIENCE).expect("flushed");
        json!({"records": self.read(50, &self.name, &[])})
    }

    fn timestamps(&self) -> Value {
        let appended = format!("{}-append", self.name);
        let producer = self.producer(&[]);
        for topic in [&self.name, &appended] {
            for n in 0..10 {
                let value = n.to_string();
                let at = FIRST_TIME + 1000 * n;
                let one = BaseRecord::<(), String>::to(topic).partition(0).payload(&value).timestamp(at);
                producer.send(one).map_err(|(error, _)| error).expect("queued");
            }
        }
        producer.flush(PATIENCE).expect("flushed");
        let mut asked = TopicPartitionList::new();
        asked.add_partition_offset(&self.name, 0, Offset::Offset(FIRST_TIME + 4500)).expect("an offset");
        let found = self.consumer(&[]).offsets_for_times(asked, PATIENCE).expect("offsets by time");
        json!({
            "records": self.read(10, &self.name, &[]),
            "appended": self.read(10, &appended, &[]),
            "offset": found.elements()[0].offset().to_raw(),
        })
    }

    fn transactions(&self) -> Value {
        let producer: BaseProducer =
            self.config(&[("transactional.id", &self.name)]).create().expect("a producer");
        producer.init_transactions(PATIENCE).expect("initialised");
        let consumer = self.consumer(&[]);
        for word in ["first", "second", "third"] {
            producer.begin_transaction().expect("begun");
            for n in 0..4 {
                let value = format!("{word}-{n}");
                let one = BaseRecord::<(), String>::to(&self.name).partition(n).payload(&value);
                producer.send(one).map_err(|(error, _)| error).expect("queued");
            }
            producer.flush(PATIENCE).expect("flushed");
            if word == "third" {
                let mut offsets = TopicPartitionList::new();
                offsets.add_partition_offset(&self.name, 0, Offset::Offset(7)).expect("an offset");
                let group = consumer.group_metadata().expect("metadata of the group");
                producer.send_offsets_to_transaction(&offsets, &group, PATIENCE).expect("offsets sent");
            }
            if word == "second" {
                producer.abort_transaction(PATIENCE).expect("aborted");
            } else {
                producer.commit_transaction(PATIENCE).expect("committed");
            }
        }
        let mut report = self.read_committed(12);
        report["committed"] = json!(self.committed().get(&0));
        report
    }

    fn read_committed(&self, everything: usize) -> Value {
        json!({
            "records": self.read(8, &self.name, &[("isolation.level", "read_committed")]),
            "all": self.read(everything, &self.name, &[("isolation.level", "read_uncommitted")]),
        })
    }

    pub fn committed(&self) -> BTreeMap<i32, i64> {
        let mut asked = TopicPartitionList::new();
        asked.add_partition_range(&self.name, 0, 3);
        let found = self.consumer(&[]).committed_offsets(asked, PATIENCE).expect("committed offsets");
        found
            .elements()
            .iter()
            .filter_map(|at| at.offset().to_raw().filter(|offset| *offset >= 0).map(|offset| (at.partition(), offset)))
            .collect()
    }

    fn join(&self, settings: Settings) -> BaseConsumer {
        let consumer = self.consumer(settings);
        consumer.subscribe(&[&self.name]).expect("subscribed");
        consumer
    }

    fn commit(&self, consumer: &BaseConsumer, found: &[Value]) {
        let own = assigned(consumer);
        let mut ends = BTreeMap::new();
        for record in found {
            let partition = record["p"].as_i64().expect("a partition") as i32;
            if own.contains(&partition) {
                ends.insert(partition, record["o"].as_i64().expect("an offset") + 1);
            }
        }
        let mut offsets = TopicPartitionList::new();
        for (partition, end) in ends {
            offsets.add_partition_offset(&self.name, partition, Offset::Offset(end)).expect("an offset");
        }
        consumer.commit(&offsets, CommitMode::Sync).expect("committed");
    }

    fn group(&self, protocol: &str) -> Value {
        let members = [self.join(&[("group.protocol", protocol)]), self.join(&[("group.protocol", protocol)])];
        let mut found = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            for member in &members {
                poll(member, &mut found);
            }
            let values: BTreeSet<String> = found.iter().map(|record: &Value| record["v"].to_string()).collect();
            if values.len() == 100 && members.iter().all(|member| assigned(member).len() == 2) {
                break;
            }
        }
        let shares: Vec<_> = members.iter().map(assigned).collect();
        for member in &members {
            self.commit(member, &found);
        }
        drop(members);
        json!({"assigned": shares, "records": found, "committed": self.committed()})
    }

    fn static_members(&self) -> Value {
        let start = |suffix: &str| {
            let instance = format!("{}-{suffix}", self.name);
            self.join(&[("group.instance.id", &instance), ("session.timeout.ms", "30000")])
        };
        let settle = |members: [&BaseConsumer; 2]| {
            let deadline = Instant::now() + PATIENCE;
            let mut ignored = Vec::new();
            while Instant::now() < deadline && members.iter().any(|member| assigned(member).len() != 2) {
                members.iter().for_each(|member| poll(member, &mut ignored));
            }
        };
        let (first, other) = (start("a"), start("b"));
        settle([&first, &other]);
        let (before, kept) = (assigned(&first), assigned(&other));
        drop(first);
        let again = start("a");
        // If `b` were to rebalance, it would lose its partitions for a moment.
        let mut rebalances = 0;
        let deadline = Instant::now() + PATIENCE;
        let mut ignored = Vec::new();
        while Instant::now() < deadline && assigned(&again).len() != 2 {
            poll(&again, &mut ignored);
            poll(&other, &mut ignored);
            rebalances += i32::from(assigned(&other) != kept);
        }
        json!({"before": before, "other": kept, "after": assigned(&again), "rebalances": rebalances})
    }

    fn old(&self) -> Value {
        self.send_numbered("", &[]);
        let member = self.join(&[]);
        let mut found = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        while found.len() < 100 && Instant::now() < deadline {
            poll(&member, &mut found);
        }
        self.commit(&member, &found);
        drop(member);
        json!({"records": found, "committed": self.committed().get(&0)})
    }
}

fn poll(consumer: &BaseConsumer, found: &mut Vec<Value>) {
    let end = Instant::now() + MOMENT;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        match consumer.poll(left) {
            Some(message) => found.push(record(&message.expect("a message"))),
            None => return,
        }
    }
}

fn assigned(consumer: &BaseConsumer) -> BTreeSet<i32> {
    consumer.assignment().expect("an assignment").elements().iter().map(|at| at.partition()).collect()
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let client = Client { bootstrap: words[1].clone(), feature: words[2].clone(), name: words[3].clone() };
    let report = match words[2].as_str() {
        "produce" => client.produce(&[]),
        "gzip" | "snappy" | "lz4" | "zstd" => client.compressed(),
        "headers" => client.headers(),
        "keys" => client.keys(),
        "timestamps" => client.timestamps(),
        "idempotence" => client.produce(&[("enable.idempotence", "true")]),
        "transactions" => client.transactions(),
        "read-committed" => client.read_committed(16),
        "group-classic" => client.group("classic"),
        "group-consumer" => client.group("consumer"),
        "static" => client.static_members(),
        "old-versions" => client.old(),
        other => client.administer(other),
    };
    println!("{report}");
}
