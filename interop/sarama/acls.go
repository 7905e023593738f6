package main

import (
	"time"

	"github.com/IBM/sarama"
)

func shown(on sarama.Resource, acl sarama.Acl) []any {
	return []any{
		int(on.ResourceType), on.ResourceName, int(on.ResourcePatternType),
		acl.Principal, acl.Host, int(acl.Operation), int(acl.PermissionType),
	}
}

func rulesOf(wanted sarama.AclFilter) [][]any {
	resources, err := admin().ListAcls(wanted)
	check(err)
	found := [][]any{}
	for _, on := range resources {
		for _, acl := range on.Acls {
			found = append(found, shown(on.Resource, *acl))
		}
	}
	return found
}

func acls() report {
	topic, user, host := name+"-new", "User:"+name, "10.1.2.3"
	on := func(kind sarama.AclResourceType, name string, pattern sarama.AclResourcePatternType) sarama.Resource {
		return sarama.Resource{ResourceType: kind, ResourceName: name, ResourcePatternType: pattern}
	}
	may := func(host string, what sarama.AclOperation, permission sarama.AclPermissionType) *sarama.Acl {
		return &sarama.Acl{Principal: user, Host: host, Operation: what, PermissionType: permission}
	}
	check(admin().CreateACLs([]*sarama.ResourceAcls{
		{
			Resource: on(sarama.AclResourceTopic, topic, sarama.AclPatternLiteral),
			Acls: []*sarama.Acl{
				may("*", sarama.AclOperationRead, sarama.AclPermissionAllow),
				may(host, sarama.AclOperationWrite, sarama.AclPermissionDeny),
			},
		},
		{
			Resource: on(sarama.AclResourceTopic, name, sarama.AclPatternPrefixed),
			Acls:     []*sarama.Acl{may("*", sarama.AclOperationDescribe, sarama.AclPermissionAllow)},
		},
		{
			Resource: on(sarama.AclResourceGroup, name, sarama.AclPatternLiteral),
			Acls:     []*sarama.Acl{may("*", sarama.AclOperationRead, sarama.AclPermissionAllow)},
		},
		{
			Resource: on(sarama.AclResourceTransactionalID, name, sarama.AclPatternLiteral),
			Acls:     []*sarama.Acl{may(host, sarama.AclOperationAll, sarama.AclPermissionAllow)},
		},
	}))
	mine := sarama.AclFilter{
		ResourceType:              sarama.AclResourceAny,
		ResourcePatternTypeFilter: sarama.AclPatternAny,
		Principal:                 &user,
		Operation:                 sarama.AclOperationAny,
		PermissionType:            sarama.AclPermissionAny,
	}
	until(func() bool { return len(rulesOf(mine)) == 5 }, 10*time.Second)
	result := report{"listed": rulesOf(mine)}
	matching := sarama.AclFilter{
		ResourceType:              sarama.AclResourceTopic,
		ResourceName:              &topic,
		ResourcePatternTypeFilter: sarama.AclPatternMatch,
		Operation:                 sarama.AclOperationAny,
		PermissionType:            sarama.AclPermissionAny,
	}
	result["matching"] = rulesOf(matching)
	denying, ofGroup := matching, matching
	denying.PermissionType = sarama.AclPermissionDeny
	ofGroup.ResourceType, ofGroup.ResourceName = sarama.AclResourceGroup, &name
	ofGroup.ResourcePatternTypeFilter = sarama.AclPatternLiteral
	deleted := [][]any{}
	for _, wanted := range []sarama.AclFilter{denying, ofGroup} {
		found, err := admin().DeleteACL(wanted, false)
		check(err)
		for _, acl := range found {
			deleted = append(deleted, shown(acl.Resource, acl.Acl))
		}
	}
	result["deleted"] = deleted
	until(func() bool { return len(rulesOf(mine)) == 3 }, 10*time.Second)
	result["left"] = rulesOf(mine)
	return result
}
