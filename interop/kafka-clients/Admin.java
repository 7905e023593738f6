import java.util.Map;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Closes the client of Kafka's, and asks the one question that every feature shares. */
class Admin implements AutoCloseable {
    final AdminClient client;

    Admin(Map<String, Object> settings) {
        client = AdminClient.create(settings);
    }

    Map<TopicPartition, OffsetAndMetadata> offsets(String group) throws Exception {
        return client.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
    }

    @Override
    public void close() {
        client.close();
    }
}
