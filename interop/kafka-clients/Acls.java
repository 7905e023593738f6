import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;

/** Access rules, with calls that kafka-clients has had since 2.0. */
class Acls {
    final Client client;
    final String name;
    final String user;

    Acls(Client client) {
        this.client = client;
        this.name = client.name;
        this.user = "User:" + client.name;
    }

    AclBinding rule(ResourcePattern on, String host, AclOperation operation, AclPermissionType permission) {
        return new AclBinding(on, new AccessControlEntry(user, host, operation, permission));
    }

    static AclBindingFilter filter(
            ResourceType type, String name, PatternType pattern, String user, AclPermissionType permission) {
        return new AclBindingFilter(
            new ResourcePatternFilter(type, name, pattern),
            new AccessControlEntryFilter(user, null, AclOperation.ANY, permission));
    }

    static List<Object> shown(Collection<AclBinding> rules) {
        List<Object> found = new ArrayList<>();
        for (AclBinding rule : rules) {
            ResourcePattern on = rule.pattern();
            AccessControlEntry entry = rule.entry();
            found.add(Arrays.asList(
                on.resourceType().code(), on.name(), on.patternType().code(), entry.principal(), entry.host(),
                entry.operation().code(), entry.permissionType().code()));
        }
        return found;
    }

    static List<Object> described(AdminClient admin, AclBindingFilter wanted) throws Exception {
        return shown(admin.describeAcls(wanted).values().get());
    }

    Map<String, Object> run() throws Exception {
        String newTopic = name + "-new";
        ResourcePattern topic = new ResourcePattern(ResourceType.TOPIC, newTopic, PatternType.LITERAL);
        ResourcePattern topics = new ResourcePattern(ResourceType.TOPIC, name, PatternType.PREFIXED);
        ResourcePattern group = new ResourcePattern(ResourceType.GROUP, name, PatternType.LITERAL);
        ResourcePattern transactions =
            new ResourcePattern(ResourceType.TRANSACTIONAL_ID, name, PatternType.LITERAL);
        try (Admin owner = new Admin(client.settings(Map.of()))) {
            AdminClient admin = owner.client;
            admin.createAcls(List.of(
                rule(topic, "*", AclOperation.READ, AclPermissionType.ALLOW),
                rule(topic, "10.1.2.3", AclOperation.WRITE, AclPermissionType.DENY),
                rule(topics, "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW),
                rule(group, "*", AclOperation.READ, AclPermissionType.ALLOW),
                rule(transactions, "10.1.2.3", AclOperation.ALL, AclPermissionType.ALLOW))).all().get();
            AclBindingFilter mine = filter(ResourceType.ANY, null, PatternType.ANY, user, AclPermissionType.ANY);
            Client.until(() -> described(admin, mine).size() == 5, 10_000);
            Map<String, Object> report = Client.report("listed", described(admin, mine));
            report.put("matching", described(admin, filter(
                ResourceType.TOPIC, newTopic, PatternType.MATCH, null, AclPermissionType.ANY)));
            report.put("deleted", shown(admin.deleteAcls(List.of(
                filter(ResourceType.TOPIC, newTopic, PatternType.MATCH, null, AclPermissionType.DENY),
                filter(ResourceType.GROUP, name, PatternType.LITERAL, null, AclPermissionType.ANY))).all().get()));
            Client.until(() -> described(admin, mine).size() == 3, 10_000);
            report.put("left", described(admin, mine));
            return report;
        }
    }
}
