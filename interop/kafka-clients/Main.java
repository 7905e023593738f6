import java.util.LinkedHashMap;
import java.util.Map;

/** kafka-clients of several releases. See ../README.md for what each feature asks. */
public class Main {
    interface Feature {
        Map<String, Object> run() throws Exception;
    }

    public static void main(String[] words) throws Exception {
        Client client = new Client(words[0], words[2]);
        String feature = words[1];
        Map<String, Feature> features = new LinkedHashMap<>();
        features.put("produce", () -> client.produce(Map.of()));
        for (String codec : new String[] {"gzip", "snappy", "lz4", "zstd"}) {
            features.put(codec, () -> client.codec(codec));
        }
        features.put("headers", client::headers);
        features.put("keys", client::keys);
        features.put("timestamps", client::timestamps);
        features.put("idempotence", () -> client.produce(Map.of("enable.idempotence", "true")));
        features.put("transactions", client::transactions);
        features.put("read-committed", () -> client.readCommitted(16));
        features.put("group-classic", () -> client.group(Map.of()));
        features.put("group-consumer", () -> client.group(Map.of("group.protocol", "consumer")));
        features.put("static", client::staticMembers);
        features.put("old-versions", client::old);
        features.put("admin-topics", () -> new Administration(client).topics());
        features.put("admin-partitions", () -> new Administration(client).partitions());
        features.put("admin-groups", () -> new Administration(client).groups());
        features.put("admin-records", () -> new Administration(client).records());
        features.put("admin-acls", () -> new Acls(client).run());
        // Calls that came later are in classes that an old release cannot compile.
        features.put("admin-configs", () -> later("LaterAdministration", client, "configs"));
        features.put("admin-offsets", () -> later("LaterAdministration", client, "offsets"));
        features.put("group-share", () -> later("Share", client, "group"));
        System.out.println(Json.of(features.get(feature).run()));
        System.out.flush();
        System.exit(0);
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> later(String name, Client client, String method) throws Exception {
        Object object = Class.forName(name).getDeclaredConstructor(Client.class).newInstance(client);
        return (Map<String, Object>) object.getClass().getDeclaredMethod(method).invoke(object);
    }
}
