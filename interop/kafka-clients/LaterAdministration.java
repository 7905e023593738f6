import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** Administration with calls of 2.3 to 2.5. */
class LaterAdministration {
    final Client client;
    final String name;

    LaterAdministration(Client client) {
        this.client = client;
        this.name = client.name;
    }

    void alter(AdminClient admin, String value, AlterConfigOp.OpType operation) throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, name);
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry("max.message.bytes", value), operation);
        admin.incrementalAlterConfigs(Map.of(topic, List.of(change))).all().get();
    }

    Map<String, Object> configs() throws Exception {
        String setting = "max.message.bytes";
        try (Admin owner = new Admin(client.settings(Map.of()))) {
            AdminClient admin = owner.client;
            Map<String, Object> report =
                Client.report("before", Administration.described(admin, name, setting));
            alter(admin, "77777", AlterConfigOp.OpType.SET);
            Client.until(() -> Administration.described(admin, name, setting).equals("77777"), 10_000);
            report.put("set", Administration.described(admin, name, setting));
            alter(admin, "", AlterConfigOp.OpType.DELETE);
            Client.until(() -> !Administration.described(admin, name, setting).equals("77777"), 10_000);
            report.put("after", Administration.described(admin, name, setting));
            return report;
        }
    }

    Map<String, Object> offsets() throws Exception {
        TopicPartition first = new TopicPartition(name, 0);
        try (Admin owner = new Admin(client.settings(Map.of()))) {
            AdminClient admin = owner.client;
            Map<String, Object> report = Client.report(
                "earliest",
                admin.listOffsets(Map.of(first, OffsetSpec.earliest())).partitionResult(first).get().offset());
            report.put(
                "latest", admin.listOffsets(Map.of(first, OffsetSpec.latest())).partitionResult(first).get().offset());
            report.put("committed", owner.offsets(name).get(first).offset());
            admin.alterConsumerGroupOffsets(name, Map.of(first, new OffsetAndMetadata(10))).all().get();
            report.put("altered", owner.offsets(name).get(first).offset());
            admin.deleteConsumerGroupOffsets(name, Set.of(first)).all().get();
            report.put("deleted", owner.offsets(name).get(first) == null);
            return report;
        }
    }
}
