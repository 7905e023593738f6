package main

import (
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// As JSON these types would be words.
func shown(a kadm.DescribedACL) []any {
	return []any{
		int(a.Type), a.Name, int(a.Pattern), a.Principal, a.Host, int(a.Operation), int(a.Permission),
	}
}

// A builder makes every combination of what it is given, so each rule here has one of its own.
func acls() report {
	topic, user, host := name+"-new", "User:"+name, "10.1.2.3"
	prefixed := kadm.NewACLs().ResourcePatternType(kadm.ACLPatternPrefixed)
	for _, rule := range []*kadm.ACLBuilder{
		kadm.NewACLs().Topics(topic).Operations(kadm.OpRead).Allow(user),
		kadm.NewACLs().Topics(topic).Operations(kadm.OpWrite).Deny(user).DenyHosts(host),
		prefixed.Topics(name).Operations(kadm.OpDescribe).Allow(user),
		kadm.NewACLs().Groups(name).Operations(kadm.OpRead).Allow(user),
		kadm.NewACLs().TransactionalIDs(name).Operations(kadm.OpAll).Allow(user).AllowHosts(host),
	} {
		created, err := admin().CreateACLs(limit(), rule)
		check(err)
		check(created[0].Err)
	}
	described := func(wanted *kadm.ACLBuilder) [][]any {
		results, err := admin().DescribeACLs(limit(), wanted)
		check(err)
		found := [][]any{}
		for _, result := range results {
			check(result.Err)
			for _, a := range result.Described {
				found = append(found, shown(a))
			}
		}
		return found
	}
	mine := kadm.NewACLs().AnyResource().ResourcePatternType(kadm.ACLPatternAny).Operations()
	mine = mine.Allow(user).AllowHosts().Deny(user).DenyHosts()
	until(func() bool { return len(described(mine)) == 5 }, 10*time.Second)
	result := report{"listed": described(mine)}
	anybody := func(wanted *kadm.ACLBuilder) *kadm.ACLBuilder {
		return wanted.Operations().Allow().AllowHosts().Deny().DenyHosts()
	}
	matching := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternMatch)
	result["matching"] = described(anybody(matching))
	deleted := [][]any{}
	for _, wanted := range []*kadm.ACLBuilder{
		kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternMatch).Operations().Deny().DenyHosts(),
		anybody(kadm.NewACLs().Groups(name)),
	} {
		results, err := admin().DeleteACLs(limit(), wanted)
		check(err)
		for _, result := range results {
			check(result.Err)
			for _, a := range result.Deleted {
				check(a.Err)
				deleted = append(deleted, shown(kadm.DescribedACL{
					Type: a.Type, Name: a.Name, Pattern: a.Pattern,
					Principal: a.Principal, Host: a.Host, Operation: a.Operation, Permission: a.Permission,
				}))
			}
		}
	}
	result["deleted"] = deleted
	until(func() bool { return len(described(mine)) == 3 }, 10*time.Second)
	result["left"] = described(mine)
	return result
}
