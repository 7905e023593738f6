use crate::{until, Client, PATIENCE};
use futures::executor::block_on;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::Consumer;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::{json, Value};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);

impl Client {
    pub fn administer(&self, feature: &str) -> Value {
        let admin: AdminClient<DefaultClientContext> = self.config(&[]).create().expect("an admin client");
        match feature {
            "admin-topics" => self.topics(&admin),
            "admin-configs" => self.configs(&admin),
            "admin-partitions" => self.partitions(&admin),
            "admin-groups" => self.groups(&admin),
            "admin-offsets" => self.offsets(),
            "admin-records" => self.records(&admin),
            other => panic!("no feature {other}"),
        }
    }

    fn described(&self, admin: &AdminClient<DefaultClientContext>, topic: &str, setting: &str) -> String {
        let resource = ResourceSpecifier::Topic(topic);
        let found = block_on(admin.describe_configs(&[resource], &AdminOptions::new())).expect("configs");
        let entry = found[0].as_ref().expect("a resource").get(setting).expect("a setting").value.clone();
        entry.expect("a value")
    }

    fn partitions_of(&self, topic: &str) -> usize {
        let found = self.consumer(&[]).fetch_metadata(Some(topic), PATIENCE).expect("metadata");
        found.topics()[0].partitions().len()
    }

    fn listed(&self, topic: &str) -> bool {
        let found = self.consumer(&[]).fetch_metadata(None, PATIENCE).expect("metadata");
        found.topics().iter().any(|known| known.name() == topic)
    }

    fn topics(&self, admin: &AdminClient<DefaultClientContext>) -> Value {
        let topic = format!("{}-new", self.name);
        let new = NewTopic::new(&topic, 3, TopicReplication::Fixed(1)).set("retention.ms", "100000");
        block_on(admin.create_topics(&[new], &AdminOptions::new())).expect("created")[0].as_ref().expect("a topic");
        let listed = until(SOON, || self.listed(&topic));
        let partitions = self.partitions_of(&topic);
        let retention = self.described(admin, &topic, "retention.ms");
        block_on(admin.delete_topics(&[&topic], &AdminOptions::new())).expect("deleted")[0].as_ref().expect("a topic");
        let gone = until(SOON, || !self.listed(&topic));
        json!({"listed": listed, "partitions": partitions, "retention": retention, "gone": gone})
    }

    /// Its alter_configs is Kafka's old request, which states the whole configuration: nothing is a reset.
    fn configs(&self, admin: &AdminClient<DefaultClientContext>) -> Value {
        let setting = "max.message.bytes";
        let before = self.described(admin, &self.name, setting);
        let topic = || AlterConfig::new(ResourceSpecifier::Topic(&self.name));
        block_on(admin.alter_configs(&[topic().set(setting, "77777")], &AdminOptions::new())).expect("altered")[0]
            .as_ref()
            .expect("a topic");
        until(SOON, || self.described(admin, &self.name, setting) == "77777");
        let set = self.described(admin, &self.name, setting);
        block_on(admin.alter_configs(&[topic()], &AdminOptions::new())).expect("altered")[0]
            .as_ref()
            .expect("a topic");
        until(SOON, || self.described(admin, &self.name, setting) != "77777");
        json!({"before": before, "set": set, "after": self.described(admin, &self.name, setting)})
    }

    fn partitions(&self, admin: &AdminClient<DefaultClientContext>) -> Value {
        let wanted = NewPartitions::new(&self.name, 6);
        block_on(admin.create_partitions(&[wanted], &AdminOptions::new())).expect("grown")[0]
            .as_ref()
            .expect("a topic");
        until(SOON, || self.partitions_of(&self.name) == 6);
        json!({"partitions": self.partitions_of(&self.name)})
    }

    fn state(&self) -> Option<String> {
        let found = self.consumer(&[]).fetch_group_list(None, PATIENCE).expect("groups");
        let group = found.groups().iter().find(|group| group.name() == self.name);
        group.map(|group| group.state().to_string())
    }

    fn groups(&self, admin: &AdminClient<DefaultClientContext>) -> Value {
        let state = self.state();
        block_on(admin.delete_groups(&[&self.name], &AdminOptions::new())).expect("deleted")[0]
            .as_ref()
            .expect("a group");
        json!({"listed": state.is_some(), "state": state, "gone": until(SOON, || self.state().is_none())})
    }

    fn offsets(&self) -> Value {
        let (earliest, latest) = self.consumer(&[]).fetch_watermarks(&self.name, 0, PATIENCE).expect("watermarks");
        json!({
            "earliest": earliest,
            "latest": latest,
            "committed": self.committed().get(&0),
            "without": ["altering offsets", "deleting offsets"],
        })
    }

    fn records(&self, admin: &AdminClient<DefaultClientContext>) -> Value {
        let mut before = TopicPartitionList::new();
        before.add_partition_offset(&self.name, 0, Offset::Offset(10)).expect("an offset");
        block_on(admin.delete_records(&before, &AdminOptions::new())).expect("deleted");
        let (earliest, _) = self.consumer(&[]).fetch_watermarks(&self.name, 0, PATIENCE).expect("watermarks");
        json!({"earliest": earliest})
    }
}
