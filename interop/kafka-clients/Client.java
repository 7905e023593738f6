import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Producing and consuming, with calls that kafka-clients has had since 2.0. */
class Client {
    static final long PATIENCE = 60_000;
    static final long FIRST_TIME = 1_600_000_000_000L;

    final String bootstrap;
    final String name;

    Client(String bootstrap, String name) {
        this.bootstrap = bootstrap;
        this.name = name;
    }

    Map<String, Object> settings(Map<String, String> more) {
        Map<String, Object> all = new HashMap<>();
        all.put("bootstrap.servers", bootstrap);
        all.putAll(more);
        return all;
    }

    KafkaProducer<String, String> producer(Map<String, String> more) {
        Map<String, Object> all = settings(Map.of("linger.ms", "5"));
        all.putAll(more);
        return new KafkaProducer<>(all, new StringSerializer(), new StringSerializer());
    }

    KafkaConsumer<String, String> consumer(Map<String, String> more) {
        Map<String, Object> all = settings(Map.of(
            "group.id", name, "enable.auto.commit", "false", "auto.offset.reset", "earliest"));
        all.putAll(more);
        return new KafkaConsumer<>(all, new StringDeserializer(), new StringDeserializer());
    }

    static Map<String, Object> record(ConsumerRecord<String, String> record) {
        Map<String, Object> found = new LinkedHashMap<>();
        List<Object> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            byte[] value = header.value();
            headers.add(Arrays.asList(
                header.key(), value == null ? null : new String(value, StandardCharsets.UTF_8)));
        }
        found.put("p", record.partition());
        found.put("o", record.offset());
        found.put("k", record.key());
        found.put("v", record.value());
        found.put("h", headers);
        found.put("t", record.timestamp());
        return found;
    }

    void send(KafkaProducer<String, String> producer, List<ProducerRecord<String, String>> records)
            throws Exception {
        List<Future<?>> sent = new ArrayList<>();
        for (ProducerRecord<String, String> record : records) {
            sent.add(producer.send(record));
        }
        producer.flush();
        for (Future<?> future : sent) {
            future.get();
        }
    }

    List<ProducerRecord<String, String>> numbered(String suffix) {
        List<ProducerRecord<String, String>> records = new ArrayList<>();
        for (int n = 0; n < 100; n++) {
            records.add(new ProducerRecord<>(name, n % 4, "key-" + n, "value-" + n + suffix));
        }
        return records;
    }

    List<Map<String, Object>> read(int count, String topic, Map<String, String> more) {
        List<Map<String, Object>> found = new ArrayList<>();
        List<TopicPartition> partitions = new ArrayList<>();
        for (int partition = 0; partition < 4; partition++) {
            partitions.add(new TopicPartition(topic, partition));
        }
        try (KafkaConsumer<String, String> consumer = consumer(more)) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long deadline = System.currentTimeMillis() + PATIENCE;
            while (found.size() < count && System.currentTimeMillis() < deadline) {
                poll(consumer, 100, found);
            }
            long more_until = System.currentTimeMillis() + 500;
            while (System.currentTimeMillis() < more_until) {
                poll(consumer, 100, found);
            }
        }
        return found;
    }

    void poll(KafkaConsumer<String, String> consumer, long milliseconds, List<Map<String, Object>> found) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(milliseconds))) {
            found.add(record(record));
        }
    }

    Map<String, Object> produce(Map<String, String> more) throws Exception {
        try (KafkaProducer<String, String> producer = producer(more)) {
            send(producer, numbered(""));
        }
        return report("records", read(100, name, Map.of()));
    }

    Map<String, Object> codec(String codec) throws Exception {
        try (KafkaProducer<String, String> producer = producer(Map.of("compression.type", codec))) {
            send(producer, numbered(String.join("", Collections.nCopies(20, " compressible"))));
        }
        return report("records", read(100, name, Map.of()));
    }

    Map<String, Object> headers() throws Exception {
        List<Header> headers = List.of(
            header("a", "1"), header("a", "2"), header("empty", ""), header("n\u00e4me", "w\u00e9rt"),
            new RecordHeader("null", (byte[]) null));
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            send(producer, List.of(
                new ProducerRecord<>(name, 0, "key", "with", headers),
                new ProducerRecord<>(name, 0, "key", "out")));
        }
        return report("records", read(2, name, Map.of()));
    }

    static Header header(String key, String value) {
        return new RecordHeader(key, value.getBytes(StandardCharsets.UTF_8));
    }

    Map<String, Object> keys() throws Exception {
        List<ProducerRecord<String, String>> records = new ArrayList<>();
        for (int n = 0; n < 50; n++) {
            records.add(new ProducerRecord<>(name, "key-" + n, n == 49 ? null : "value-" + n));
        }
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            send(producer, records);
        }
        return report("records", read(50, name, Map.of()));
    }

    Map<String, Object> timestamps() throws Exception {
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            for (String topic : List.of(name, name + "-append")) {
                List<ProducerRecord<String, String>> records = new ArrayList<>();
                for (int n = 0; n < 10; n++) {
                    records.add(new ProducerRecord<>(topic, 0, FIRST_TIME + 1000L * n, null, "" + n));
                }
                send(producer, records);
            }
        }
        Map<String, Object> report = report("records", read(10, name, Map.of()));
        report.put("appended", read(10, name + "-append", Map.of()));
        TopicPartition first = new TopicPartition(name, 0);
        try (KafkaConsumer<String, String> consumer = consumer(Map.of())) {
            report.put("offset", consumer.offsetsForTimes(Map.of(first, FIRST_TIME + 4500)).get(first).offset());
        }
        return report;
    }

    @SuppressWarnings("deprecation")
    Map<String, Object> transactions() throws Exception {
        try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", name))) {
            producer.initTransactions();
            for (String word : List.of("first", "second", "third")) {
                producer.beginTransaction();
                List<ProducerRecord<String, String>> records = new ArrayList<>();
                for (int n = 0; n < 4; n++) {
                    records.add(new ProducerRecord<>(name, n, null, word + "-" + n));
                }
                send(producer, records);
                if (word.equals("third")) {
                    sendOffsets(producer, Map.of(new TopicPartition(name, 0), new OffsetAndMetadata(7)));
                }
                if (word.equals("second")) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        Map<String, Object> report = readCommitted(12);
        report.put("committed", committed().get(0));
        return report;
    }

    /** With the group's metadata where the release takes it, by the group's name before. */
    void sendOffsets(KafkaProducer<String, String> producer, Map<TopicPartition, OffsetAndMetadata> offsets)
            throws Exception {
        try {
            Class<?> kind = Class.forName("org.apache.kafka.clients.consumer.ConsumerGroupMetadata");
            Object group = kind.getConstructor(String.class).newInstance(name);
            KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, kind)
                .invoke(producer, offsets, group);
        } catch (ClassNotFoundException | NoSuchMethodException early) {
            KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, String.class)
                .invoke(producer, offsets, name);
        }
    }

    Map<String, Object> readCommitted(int everything) {
        Map<String, Object> report =
            report("records", read(8, name, Map.of("isolation.level", "read_committed")));
        report.put("all", read(everything, name, Map.of("isolation.level", "read_uncommitted")));
        return report;
    }

    /** A member of the group that polls in a thread of its own. */
    class Member extends Thread implements ConsumerRebalanceListener {
        final KafkaConsumer<String, String> consumer;
        final List<Map<String, Object>> found = Collections.synchronizedList(new ArrayList<>());
        final TreeSet<Integer> partitions = new TreeSet<>();
        volatile boolean running = true;
        volatile int changes = 0;

        Member(Map<String, String> more) {
            consumer = consumer(more);
            consumer.subscribe(List.of(name), this);
            setDaemon(true);
            start();
        }

        public synchronized void onPartitionsRevoked(Collection<TopicPartition> revoked) {
            if (!revoked.isEmpty()) {
                changes++;
            }
            revoked.forEach(partition -> partitions.remove(partition.partition()));
        }

        public synchronized void onPartitionsAssigned(Collection<TopicPartition> assigned) {
            if (!assigned.isEmpty()) {
                changes++;
            }
            assigned.forEach(partition -> partitions.add(partition.partition()));
        }

        synchronized List<Integer> assigned() {
            return new ArrayList<>(partitions);
        }

        /** Offsets up to which the partitions it has now were read. */
        Map<TopicPartition, OffsetAndMetadata> ends() {
            Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
            List<Integer> own = assigned();
            synchronized (found) {
                for (Map<String, Object> record : found) {
                    if (own.contains(record.get("p"))) {
                        ends.put(new TopicPartition(name, (Integer) record.get("p")),
                            new OffsetAndMetadata((Long) record.get("o") + 1));
                    }
                }
            }
            return ends;
        }

        @Override
        public void run() {
            while (running) {
                poll(consumer, 100, found);
            }
        }

        void finish(boolean commit) throws Exception {
            running = false;
            join();
            if (commit) {
                consumer.commitSync(ends());
            }
        }
    }

    interface Question {
        boolean holds() throws Exception;
    }

    static boolean until(Question question, long milliseconds) throws Exception {
        long deadline = System.currentTimeMillis() + milliseconds;
        while (!question.holds() && System.currentTimeMillis() < deadline) {
            Thread.sleep(50);
        }
        return question.holds();
    }

    Map<String, Object> group(Map<String, String> more) throws Exception {
        List<Member> members = List.of(new Member(more), new Member(more));
        until(() -> {
            int done = 0;
            for (Member member : members) {
                if (member.assigned().size() != 2) {
                    return false;
                }
                for (OffsetAndMetadata end : member.ends().values()) {
                    done += end.offset() == 25 ? 1 : 0;
                }
            }
            return done == 4;
        }, PATIENCE);
        List<Object> assigned = new ArrayList<>();
        List<Object> found = new ArrayList<>();
        for (Member member : members) {
            assigned.add(member.assigned());
            member.finish(true);
            found.addAll(member.found);
        }
        for (Member member : members) {
            member.consumer.close();
        }
        Map<String, Object> report = report("assigned", assigned);
        report.put("records", found);
        report.put("committed", committed());
        return report;
    }

    Map<Integer, Long> committed() throws Exception {
        Map<Integer, Long> found = new TreeMap<>();
        try (Admin admin = new Admin(settings(Map.of()))) {
            admin.offsets(name).forEach((partition, offset) -> found.put(partition.partition(), offset.offset()));
        }
        return found;
    }

    Map<String, Object> staticMembers() throws Exception {
        Map<String, String> first = Map.of("group.instance.id", name + "-a", "session.timeout.ms", "30000");
        Map<String, String> second = Map.of("group.instance.id", name + "-b", "session.timeout.ms", "30000");
        Member a = new Member(first);
        Member b = new Member(second);
        until(() -> a.assigned().size() == 2 && b.assigned().size() == 2, PATIENCE);
        Map<String, Object> report = report("before", a.assigned());
        report.put("other", b.assigned());
        a.finish(false);
        a.consumer.close();
        b.changes = 0;
        Member again = new Member(first);
        until(() -> again.assigned().size() == 2, PATIENCE);
        Thread.sleep(500);
        report.put("after", again.assigned());
        report.put("rebalances", b.changes);
        again.finish(false);
        b.finish(false);
        again.consumer.close();
        b.consumer.close();
        return report;
    }

    Map<String, Object> old() throws Exception {
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            send(producer, numbered(""));
        }
        Member member = new Member(Map.of());
        until(() -> member.found.size() >= 100, PATIENCE);
        member.finish(true);
        member.consumer.close();
        Map<String, Object> report = report("records", new ArrayList<>(member.found));
        report.put("committed", committed().get(0));
        return report;
    }

    static Map<String, Object> report(String key, Object value) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put(key, value);
        return report;
    }
}
