import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Share groups, which kafka-clients has since 4.1. */
class Share {
    final Client client;

    Share(Client client) {
        this.client = client;
    }

    KafkaShareConsumer<String, String> member() {
        Map<String, Object> settings = client.settings(Map.of(
            "group.id", client.name, "share.acknowledgement.mode", "explicit"));
        KafkaShareConsumer<String, String> consumer =
            new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(client.name));
        return consumer;
    }

    Map<String, Object> group() {
        List<Object> accepted = new ArrayList<>();
        String released = null;
        int deliveries = 0;
        long deadline = System.currentTimeMillis() + Client.PATIENCE;
        try (KafkaShareConsumer<String, String> one = member(); KafkaShareConsumer<String, String> two = member()) {
            while (accepted.size() < 100 && System.currentTimeMillis() < deadline) {
                for (KafkaShareConsumer<String, String> consumer : List.of(one, two)) {
                    for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                        String place = record.partition() + "-" + record.offset();
                        released = released == null ? place : released;
                        deliveries += place.equals(released) ? 1 : 0;
                        if (place.equals(released) && deliveries == 1) {
                            consumer.acknowledge(record, AcknowledgeType.RELEASE);
                        } else {
                            consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                            accepted.add(Client.record(record));
                        }
                    }
                    consumer.commitSync();
                }
            }
        }
        Map<String, Object> report = Client.report("records", accepted);
        report.put("deliveries", deliveries);
        return report;
    }
}
