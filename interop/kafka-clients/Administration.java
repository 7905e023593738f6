import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** Administration, with calls that kafka-clients has had since 2.0. */
class Administration {
    final Client client;
    final String name;

    Administration(Client client) {
        this.client = client;
        this.name = client.name;
    }

    static String described(AdminClient admin, String topic, String setting) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).get(setting).value();
    }

    /** `values` has had another name since 3.1, and its old name is gone since 4.0. */
    @SuppressWarnings("unchecked")
    static int partitions(AdminClient admin, String topic) throws Exception {
        Object result = admin.describeTopics(List.of(topic));
        java.lang.reflect.Method method;
        try {
            method = result.getClass().getMethod("topicNameValues");
        } catch (NoSuchMethodException early) {
            method = result.getClass().getMethod("values");
        }
        Map<String, org.apache.kafka.common.KafkaFuture<org.apache.kafka.clients.admin.TopicDescription>> found =
            (Map<String, org.apache.kafka.common.KafkaFuture<org.apache.kafka.clients.admin.TopicDescription>>)
                method.invoke(result);
        return found.get(topic).get().partitions().size();
    }

    Map<String, Object> topics() throws Exception {
        String topic = name + "-new";
        try (Admin owner = new Admin(client.settings(Map.of()))) {
            AdminClient admin = owner.client;
            NewTopic wanted = new NewTopic(topic, 3, (short) 1).configs(Map.of("retention.ms", "100000"));
            admin.createTopics(List.of(wanted)).all().get();
            Map<String, Object> report = Client.report(
                "listed", Client.until(() -> admin.listTopics().names().get().contains(topic), 10_000));
            report.put("partitions", partitions(admin, topic));
            report.put("retention", described(admin, topic, "retention.ms"));
            admin.deleteTopics(List.of(topic)).all().get();
            report.put("gone", Client.until(() -> !admin.listTopics().names().get().contains(topic), 10_000));
            return report;
        }
    }

    Map<String, Object> partitions() throws Exception {
        try (Admin owner = new Admin(client.settings(Map.of()))) {
            AdminClient admin = owner.client;
            admin.createPartitions(Map.of(name, NewPartitions.increaseTo(6))).all().get();
            Client.until(() -> partitions(admin, name) == 6, 10_000);
            return Client.report("partitions", partitions(admin, name));
        }
    }

    boolean listed(AdminClient admin) throws Exception {
        return admin.listConsumerGroups().all().get().stream().anyMatch(group -> group.groupId().equals(name));
    }

    Map<String, Object> groups() throws Exception {
        try (Admin owner = new Admin(client.settings(Map.of()))) {
            AdminClient admin = owner.client;
            Map<String, Object> report = Client.report("listed", listed(admin));
            Object group = admin.describeConsumerGroups(List.of(name)).all().get().get(name);
            String method = List.of(group.getClass().getMethods()).stream()
                .anyMatch(known -> known.getName().equals("groupState")) ? "groupState" : "state";
            report.put("state", group.getClass().getMethod(method).invoke(group).toString());
            admin.deleteConsumerGroups(List.of(name)).all().get();
            report.put("gone", Client.until(() -> !listed(admin), 10_000));
            return report;
        }
    }

    Map<String, Object> records() throws Exception {
        TopicPartition first = new TopicPartition(name, 0);
        try (Admin owner = new Admin(client.settings(Map.of()))) {
            owner.client.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(10))).all().get();
        }
        try (KafkaConsumer<String, String> consumer = client.consumer(Map.of())) {
            return Client.report("earliest", consumer.beginningOffsets(List.of(first)).get(first));
        }
    }
}
