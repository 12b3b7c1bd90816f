package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// podDevices is the beginning of the names that CNI's plugin ptp gives to the pods' devices on
// the node. Devices of other programs have such names too, so rules also check the address.
const podDevices = "veth"

// firewallTable is the table of nftables with guardRules.
const firewallTable = "asterism"

// guardRules replace firewallTable in one transaction. Forwarding makes the machine a router:
// its neighbors could send packets to pods, Services and the node's address, which belongs to
// the machine on every device. The rules come after the connection tracking, which recognizes
// replies to pods, and before kube-proxy turns a Service's address into a pod's. They are rules
// of nftables, which kube-proxy needs too: iptables may be missing, or lack a table.
var guardRules = fmt.Sprintf(`add table ip %[1]s
delete table ip %[1]s
table ip %[1]s {
  chain prerouting {
    type filter hook prerouting priority mangle; policy accept;
    iifname "lo" accept
    iifname "%[2]s*" ip saddr %[3]s accept
    ct state established,related accept
    ip daddr { %[3]s, %[4]s } drop
  }
}`, firewallTable, podDevices, podCIDR, serviceCIDR)

// acceptRules accept pods' packets, and the replies to pods, in chains of iptables whose policy
// is DROP, as Docker and ufw set it.
var acceptRules = [][]string{
	accept("FORWARD", "-s", podCIDR, "-i", podDevices+"+"),
	accept("FORWARD", "-d", podCIDR, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED"),
	accept("INPUT", "-s", podCIDR, "-i", podDevices+"+"),
}

// formerRules accepted packets from every device. A cluster that an earlier version of this tool
// has started has them.
var formerRules = [][]string{
	accept("FORWARD", "-s", podCIDR),
	accept("FORWARD", "-d", podCIDR),
	accept("INPUT", "-s", podCIDR),
}

// accept returns the arguments of a rule, the chain first.
func accept(chain string, match ...string) []string {
	return slices.Concat([]string{chain}, match, []string{"-m", "comment", "--comment", "asterism", "-j", "ACCEPT"})
}

// setFirewall closes the machine's network devices to the cluster, and opens the machine's
// firewall to the pods. Repeated, it changes nothing.
func setFirewall(ctx context.Context) error {
	if err := runCommand(ctx, "nft", guardRules); err != nil {
		return err
	}
	for _, rule := range acceptRules {
		if !dropsByDefault(ctx, rule[0]) || runCommand(ctx, "iptables", append([]string{"-C"}, rule...)...) == nil {
			continue
		}
		if err := runCommand(ctx, "iptables", append([]string{"-I"}, rule...)...); err != nil {
			return err
		}
	}
	deleteRules(ctx, formerRules)
	return nil
}

// dropsByDefault is false for a chain that accepts by default, and without iptables or its table
// filter: there, no rule is needed.
func dropsByDefault(ctx context.Context, chain string) bool {
	policy, err := exec.CommandContext(ctx, commandPath("iptables"), "-S", chain).Output()
	return err == nil && strings.HasPrefix(string(policy), "-P "+chain+" DROP")
}

// removeFirewall removes every rule that setFirewall of this or an earlier version has added.
func removeFirewall(ctx context.Context) error {
	deleteRules(ctx, acceptRules)
	deleteRules(ctx, formerRules)
	return deleteTable(ctx, "ip", firewallTable)
}

// deleteRules deletes every copy of the rules: a chain may contain a rule twice.
func deleteRules(ctx context.Context, rules [][]string) {
	for _, rule := range rules {
		for runCommand(ctx, "iptables", append([]string{"-D"}, rule...)...) == nil {
			continue
		}
	}
}

// deleteTable deletes a table of nftables, if it exists.
func deleteTable(ctx context.Context, family, name string) error {
	if runCommand(ctx, "nft", "list", "table", family, name) == nil {
		return runCommand(ctx, "nft", "delete", "table", family, name)
	}
	return nil
}
