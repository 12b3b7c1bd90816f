package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"asterism.dev/tools/internal/process"
)

// outerNetwork is the variable with which TestNeighborsReachNoPods starts itself in a network
// of its own. Its value is the namespace of the machine's network.
const outerNetwork = "ASTERISM_TEST_OUTER_NETWORK"

// Addresses of the test's network: a pod that serves, a pod that asks, a Service of the first,
// and a machine on the LAN.
const (
	servingPod = "10.244.0.2"
	askingPod  = "10.244.0.3"
	service    = "10.96.0.10"
	lanAddress = "192.0.2.1" // of this machine
	neighbor   = "192.0.2.2"
	port       = "8080"
)

// TestNeighborsReachNoPods runs as any user: it starts itself in namespaces in which it is root,
// and changes nothing outside them.
func TestNeighborsReachNoPods(t *testing.T) {
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	outer, inside := os.LookupEnv(outerNetwork)
	if !inside {
		runInNamespaces(t, outerNetwork+"="+network)
		return
	}
	if network == outer {
		t.Fatal("the test must not run in the network of the machine")
	}
	n := newNetwork(t)
	n.run("nft", imitatedProxy)

	t.Run("without the rules, a neighbor reaches everything", func(t *testing.T) {
		n.in(t).reaches("neighbor", servingPod, service, nodeIP)
	})
	n.firewall()
	t.Run("where everything is accepted by default", n.check)

	if err := removeFirewall(t.Context()); err != nil {
		t.Fatal(err)
	}
	// As a firewall does, and as an earlier version of this tool did.
	n.run("iptables", "-A", "INPUT", "-i", "lo", "-j", "ACCEPT")
	n.run("iptables", "-A", "INPUT", "-m", "conntrack", "--ctstate", "ESTABLISHED", "-j", "ACCEPT")
	n.run("iptables", "-P", "INPUT", "DROP")
	n.run("iptables", "-P", "FORWARD", "DROP")
	before := n.rules()
	for _, rule := range formerRules {
		n.run("iptables", append([]string{"-I"}, rule...)...)
	}
	n.firewall()
	t.Run("where a firewall drops by default", n.check)
	t.Run("a second time, nothing changes", func(t *testing.T) {
		first := n.rules()
		n.firewall()
		if again := n.rules(); again != first {
			t.Errorf("first:\n%s\nagain:\n%s", first, again)
		}
	})
	t.Run("each set of rules is sufficient where a firewall drops by default", func(t *testing.T) {
		n.run("nft", "delete", "table", "ip", firewallTable)
		n.in(t).reachesNone("neighbor", servingPod, service, nodeIP)
		n.firewall()
	})
	t.Run("down removes all rules", func(t *testing.T) {
		for _, rule := range formerRules {
			n.run("iptables", append([]string{"-I"}, rule...)...)
		}
		if err := removeNetwork(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := n.rules(); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	})
}

// TestCommandsOfTheFirewall replaces nft and iptables by programs that only record their arguments.
func TestCommandsOfTheFirewall(t *testing.T) {
	drop := []string{
		"iptables -S FORWARD",
		"iptables -C FORWARD -s 10.244.0.0/24 -i veth+ -m comment --comment asterism -j ACCEPT",
		"iptables -I FORWARD -s 10.244.0.0/24 -i veth+ -m comment --comment asterism -j ACCEPT",
		"iptables -S FORWARD",
		"iptables -C FORWARD -d 10.244.0.0/24 -m conntrack --ctstate RELATED,ESTABLISHED -m comment --comment asterism -j ACCEPT",
		"iptables -I FORWARD -d 10.244.0.0/24 -m conntrack --ctstate RELATED,ESTABLISHED -m comment --comment asterism -j ACCEPT",
		"iptables -S INPUT",
		"iptables -C INPUT -s 10.244.0.0/24 -i veth+ -m comment --comment asterism -j ACCEPT",
		"iptables -I INPUT -s 10.244.0.0/24 -i veth+ -m comment --comment asterism -j ACCEPT",
	}
	none := []string{"iptables -S FORWARD", "iptables -S FORWARD", "iptables -S INPUT"}
	for name, test := range map[string]struct {
		list string // the shell command that answers iptables -S
		want []string
	}{
		"a firewall that drops":     {`echo "-P $2 DROP"`, drop},
		"a firewall that accepts":   {`echo "-P $2 ACCEPT"`, none},
		"iptables without a filter": {`echo "can't initialize iptables table: Table does not exist" >&2; exit 3`, none},
	} {
		t.Run(name, func(t *testing.T) {
			log := recordPrograms(t, map[string]string{"nft": "exit 0", "iptables": `case $1 in -S) ` + test.list + `;; -I) ;; *) exit 1;; esac`})
			if err := setFirewall(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := []string{"nft " + guardRules}
			want = append(want, test.want...)
			for _, rule := range formerRules {
				want = append(want, "iptables -D "+strings.Join(rule, " "))
			}
			if got := log(); got != strings.Join(want, "\n")+"\n" {
				t.Errorf("commands:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
			}
		})
	}
}

// recordPrograms puts shell scripts in front of the programs of the machine. The result returns
// the commands so far.
func recordPrograms(t *testing.T, scripts map[string]string) (log func() string) {
	t.Helper()
	folder := t.TempDir()
	record := filepath.Join(folder, "commands")
	for name, script := range scripts {
		script = "#!/bin/sh\necho \"" + name + " $*\" >>'" + record + "'\n" + script + "\n"
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	return func() string {
		content, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
}

// runInNamespaces runs the calling test in new namespaces, as their root.
func runInNamespaces(t *testing.T, variable string) {
	t.Helper()
	for _, program := range []string{"ip", "nft", "iptables"} {
		if !exists(commandPath(program)) {
			t.Fatalf("the machine lacks %s: as root, run \"make test-requirements\"", program)
		}
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), variable)
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	output, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", needsNamespaces, err)
	}
	if err != nil {
		t.Fatal(string(output))
	}
	t.Log(string(output))
}

const needsNamespaces = "this test needs network namespaces: run it as root, or allow user namespaces to other users (user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)"

// testNetwork has a machine with two pods, and a neighbor of the machine, as network namespaces.
type testNetwork struct{ *testing.T }

func newNetwork(t *testing.T) *testNetwork {
	t.Helper()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatalf("%s: %v", needsNamespaces, err)
	}
	if err := unix.Mount("run", "/run", "tmpfs", 0, ""); err != nil {
		t.Fatalf("%s: %v", needsNamespaces, err)
	}
	n := &testNetwork{T: t}
	n.run("ip", "link", "set", "lo", "up")
	if err := setSysctl("net/ipv4/ip_forward", "1"); err != nil {
		t.Fatal(err)
	}
	n.attach("neighbor", "lan0", lanAddress+"/24", neighbor+"/24")
	n.run("ip", "-n", "neighbor", "route", "add", "default", "via", lanAddress)
	n.run("ip", "route", "add", "default", "via", neighbor)
	for i, pod := range []string{servingPod, askingPod} {
		name, device := fmt.Sprintf("pod%d", i), fmt.Sprintf("%s%d", podDevices, i)
		n.attach(name, device, nodeCIDR, pod+"/32")
		n.run("ip", "route", "add", pod, "dev", device)
		n.run("ip", "-n", name, "route", "add", nodeIP, "dev", "eth0")
		n.run("ip", "-n", name, "route", "add", "default", "via", nodeIP)
	}
	for namespace, address := range map[string]string{"": nodeIP, "pod0": servingPod, "neighbor": neighbor} {
		n.serve(namespace, address)
	}
	return n
}

// imitatedProxy does what kube-proxy does for a Service with one pod.
const imitatedProxy = `table ip ` + proxyName + ` {
  chain prerouting { type nat hook prerouting priority dstnat; ip daddr ` + service + ` dnat to ` + servingPod + `; }
  chain output { type nat hook output priority -100; ip daddr ` + service + ` dnat to ` + servingPod + `; }
}`

// attach connects a new namespace with the machine.
func (n *testNetwork) attach(namespace, device, address, peer string) {
	n.Helper()
	n.run("ip", "netns", "add", namespace)
	n.run("ip", "link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", namespace)
	n.run("ip", "address", "add", address, "dev", device)
	n.run("ip", "link", "set", device, "up")
	n.run("ip", "-n", namespace, "address", "add", peer, "dev", "eth0")
	n.run("ip", "-n", namespace, "link", "set", "eth0", "up")
}

// check checks who reaches whom with the rules.
func (n *testNetwork) check(t *testing.T) {
	t.Helper()
	n.in(t).reachesNone("neighbor", servingPod, service, nodeIP)
	n.in(t).reaches("pod1", servingPod, service, nodeIP, neighbor)
	n.in(t).reaches("", servingPod, service, nodeIP)
}

// in returns the network for a subtest.
func (n *testNetwork) in(t *testing.T) *testNetwork { return &testNetwork{T: t} }

func (n *testNetwork) reaches(namespace string, addresses ...string) {
	n.Helper()
	for _, address := range addresses {
		ctx, cancel := context.WithTimeout(n.Context(), 20*time.Second)
		defer cancel()
		try := func() error { return dial(n.Context(), namespace, address, 5*time.Second) }
		if err := process.Poll(ctx, pollInterval, try); err != nil {
			n.Errorf("%q does not reach %s: %v", namespace, address, err)
		}
	}
}

func (n *testNetwork) reachesNone(namespace string, addresses ...string) {
	n.Helper()
	for _, address := range addresses {
		if dial(n.Context(), namespace, address, 300*time.Millisecond) == nil {
			n.Errorf("%q reaches %s", namespace, address)
		}
	}
}

func dial(ctx context.Context, namespace, address string, limit time.Duration) error {
	return within(namespace, func() error {
		connection, err := (&net.Dialer{Timeout: limit}).DialContext(ctx, "tcp", net.JoinHostPort(address, port))
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// serve listens in a namespace. The kernel accepts the connections.
func (n *testNetwork) serve(namespace, address string) {
	n.Helper()
	err := within(namespace, func() error {
		listener, err := (&net.ListenConfig{}).Listen(n.Context(), "tcp", net.JoinHostPort(address, port))
		if err == nil {
			n.Cleanup(func() { _ = listener.Close() })
		}
		return err
	})
	if err != nil {
		n.Fatal(err)
	}
}

// within calls a function in a network namespace, "" for that of the process. A socket stays in
// the namespace in which it was opened.
func within(namespace string, call func() error) error {
	if namespace == "" {
		return call()
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock it: the thread ends with the goroutine
		file, err := os.Open("/run/netns/" + namespace)
		if err == nil {
			err = errors.Join(unix.Setns(int(file.Fd()), unix.CLONE_NEWNET), file.Close())
		}
		if err == nil {
			err = call()
		}
		result <- err
	}()
	return <-result
}

func (n *testNetwork) firewall() {
	n.Helper()
	if err := setFirewall(n.Context()); err != nil {
		n.Fatal(err)
	}
}

// rules returns the rules of iptables, and the table of nftables.
func (n *testNetwork) rules() string {
	n.Helper()
	filter, err := exec.CommandContext(n.Context(), commandPath("iptables"), "-S").CombinedOutput()
	if err != nil {
		n.Fatal(err)
	}
	tables, err := exec.CommandContext(n.Context(), commandPath("nft"), "list", "tables").CombinedOutput()
	if err != nil {
		n.Fatal(err)
	}
	return string(filter) + strings.ReplaceAll(string(tables), "table ip "+proxyName+"\n", "")
}

func (n *testNetwork) run(program string, args ...string) {
	n.Helper()
	if err := runCommand(n.Context(), program, args...); err != nil {
		n.Fatal(err)
	}
}
