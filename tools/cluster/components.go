package main

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
)

// Addresses of the full mode. The host has nodeIP, the gateway of every pod.
const (
	nodeIP      = "10.244.0.1"
	nodeCIDR    = nodeIP + "/32"
	podCIDR     = "10.244.0.0/24"
	serviceCIDR = "10.96.0.0/16"
	// serviceIP is the first of serviceCIDR: the Service default/kubernetes.
	serviceIP = "10.96.0.1"
	loopback  = "127.0.0.1"
	nodeName  = "asterism"
	domain    = "cluster.local"
)

// Names of the components, and so of their binaries, ports, kubeconfigs and logs.
const (
	etcdName              = "etcd"
	apiServerName         = "kube-apiserver"
	controllerManagerName = "kube-controller-manager"
	schedulerName         = "kube-scheduler"
	containerdName        = "containerd"
	kubeletName           = "kubelet"
	proxyName             = "kube-proxy"
	coreDNSName           = "coredns"
)

// adminName is the user of the cluster's own kubeconfig.
const adminName = "admin"

// component is a process of the cluster.
type component struct {
	name  string
	args  []string // the binary's path is the first
	files []string // a change of one of them restarts the component
	// before, if set, runs before each start of the component.
	before  func(ctx context.Context) error
	healthy func(ctx context.Context) error
}

//go:embed manifests/audit-policy.yaml
var auditPolicy []byte

// auditBodies are further rules of the full mode. Suites without a node measure the API
// server, and logging bodies would slow it down.
//
//go:embed manifests/audit-bodies.yaml
var auditBodies []byte

// portNames lists the users of a port. They are the same in both modes, so that a
// control plane can become a full cluster.
var portNames = []string{
	etcdName, "etcd-peer", apiServerName, controllerManagerName, schedulerName,
	kubeletName, proxyName, "kube-proxy-metrics", coreDNSName,
}

func (c *cluster) pki(file string) string { return filepath.Join(c.dir, "pki", file) }

func (c *cluster) url(port string) string {
	return fmt.Sprintf("https://%s:%d", loopback, c.state.Ports[port])
}

// apiHost is the API server's address, in the full mode one that pods can reach.
func (c *cluster) apiHost() string {
	if c.state.Mode == full {
		return nodeIP
	}
	return loopback
}

func (c *cluster) apiURL() string {
	return fmt.Sprintf("https://%s:%d", c.apiHost(), c.state.Ports[apiServerName])
}

// writeCredentials creates the missing keys, certificates and kubeconfigs.
func (c *cluster) writeCredentials() error {
	etcdAuthority, err := openAuthority(c.pki(etcdName), "ca")
	if err != nil {
		return err
	}
	frontProxy, err := openAuthority(c.pki("front-proxy"), "ca")
	if err != nil {
		return err
	}
	kubernetes, err := openAuthority(c.pki(""), "ca")
	if err != nil {
		return err
	}
	servers := []string{
		"localhost", loopback, nodeIP, serviceIP, nodeName,
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + domain,
	}
	for _, issue := range []struct {
		by *authority
		certificate
	}{
		{etcdAuthority, certificate{name: etcdName, user: etcdName, hosts: []string{loopback}}},
		{frontProxy, certificate{name: "client", user: "front-proxy-client"}},
		{kubernetes, certificate{name: "server", user: "kubernetes", hosts: servers}},
		{kubernetes, certificate{name: "kubelet-client", user: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}}},
	} {
		if err := issue.by.issue(issue.certificate); err != nil {
			return err
		}
	}
	if err := writeServiceAccountKey(c.pki("service-account.key")); err != nil {
		return err
	}
	return c.writeKubeconfigs(kubernetes)
}

// logins are the client certificates that are used through a kubeconfig.
var logins = []certificate{
	{name: adminName, user: adminName, groups: []string{"system:masters"}},
	{name: controllerManagerName, user: "system:kube-controller-manager"},
	{name: schedulerName, user: "system:kube-scheduler"},
	{name: proxyName, user: "system:kube-proxy"},
	{name: kubeletName, user: "system:node:" + nodeName, groups: []string{"system:nodes"}},
	{name: coreDNSName, user: "system:coredns"},
}

func (c *cluster) writeKubeconfigs(authority *authority) error {
	for _, login := range logins {
		if err := authority.issue(login); err != nil {
			return err
		}
		content, err := authority.kubeconfig(c.apiURL(), login.name)
		if err != nil {
			return err
		}
		path := c.pki(login.name + ".kubeconfig")
		if login.name == adminName {
			path = filepath.Join(c.dir, "kubeconfig")
		}
		if err := writeFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) etcd() component {
	client, peer := c.url(etcdName), c.url("etcd-peer")
	cert, key, ca := c.pki("etcd/etcd.crt"), c.pki("etcd/etcd.key"), c.pki("etcd/ca.crt")
	return component{name: etcdName, healthy: c.get(client + "/readyz"), args: []string{
		c.binary(etcdName),
		"--name=asterism",
		"--data-dir=" + filepath.Join(c.dir, etcdName),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=asterism=" + peer,
		"--client-cert-auth", "--trusted-ca-file=" + ca, "--cert-file=" + cert, "--key-file=" + key,
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + ca, "--peer-cert-file=" + cert, "--peer-key-file=" + key,
		"--unsafe-no-fsync", // a power cut may lose the data, which are disposable
		"--log-level=warn",
	}}
}

func (c *cluster) kubeAPIServer() component {
	args := []string{
		c.binary(apiServerName),
		"--etcd-servers=" + c.url(etcdName),
		"--etcd-cafile=" + c.pki("etcd/ca.crt"),
		"--etcd-certfile=" + c.pki("etcd/etcd.crt"), "--etcd-keyfile=" + c.pki("etcd/etcd.key"),
		"--bind-address=" + c.apiHost(),
		fmt.Sprintf("--secure-port=%d", c.state.Ports[apiServerName]),
		"--tls-cert-file=" + c.pki("server.crt"), "--tls-private-key-file=" + c.pki("server.key"),
		"--client-ca-file=" + c.pki("ca.crt"),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--service-account-issuer=https://kubernetes.default.svc." + domain,
		"--service-account-key-file=" + c.pki("service-account.key"),
		"--service-account-signing-key-file=" + c.pki("service-account.key"),
		"--proxy-client-cert-file=" + c.pki("front-proxy/client.crt"),
		"--proxy-client-key-file=" + c.pki("front-proxy/client.key"),
		"--requestheader-client-ca-file=" + c.pki("front-proxy/ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--enable-aggregator-routing=true", // reaches webhooks at their pods' addresses
		"--audit-policy-file=" + c.pki("audit-policy.yaml"),
		"--audit-log-path=" + filepath.Join(c.dir, "audit.log"),
		"--audit-log-maxsize=4096", // MB: not rotated in practice, as tests read the whole log
	}
	if c.state.Mode == full {
		args = append(
			args,
			"--advertise-address="+nodeIP,
			"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
			"--kubelet-preferred-address-types=InternalIP",
			"--kubelet-certificate-authority="+c.pki("ca.crt"),
			"--kubelet-client-certificate="+c.pki("kubelet-client.crt"),
			"--kubelet-client-key="+c.pki("kubelet-client.key"),
		)
	} else {
		args = append(
			args,
			// The API server refuses to advertise loopback. This address, reserved for
			// documentation, is not published.
			"--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
			"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		)
	}
	files := []string{c.pki("audit-policy.yaml")}
	return component{name: apiServerName, args: args, files: files, healthy: c.get(c.apiURL() + "/readyz")}
}

func (c *cluster) kubeControllerManager() component {
	// Without a kubelet, tests write the status of pods and nodes: no controller may change it.
	controllers := "--controllers=*,-node-ipam-controller,-node-lifecycle-controller,-taint-eviction-controller," +
		"-pod-garbage-collector-controller"
	if c.state.Mode == full {
		controllers = "--controllers=*,-node-ipam-controller"
	}
	files, healthy := []string{c.pki("kube-controller-manager.kubeconfig")}, c.get(c.url(controllerManagerName)+"/healthz")
	return component{name: controllerManagerName, files: files, healthy: healthy, args: []string{
		c.binary(controllerManagerName),
		"--kubeconfig=" + c.pki("kube-controller-manager.kubeconfig"),
		"--bind-address=" + loopback, fmt.Sprintf("--secure-port=%d", c.state.Ports[controllerManagerName]),
		"--tls-cert-file=" + c.pki("server.crt"), "--tls-private-key-file=" + c.pki("server.key"),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.pki("service-account.key"),
		"--root-ca-file=" + c.pki("ca.crt"),
		"--cluster-signing-cert-file=" + c.pki("ca.crt"), "--cluster-signing-key-file=" + c.pki("ca.key"),
		"--kube-api-qps=1000", "--kube-api-burst=2000", // the default of 20 a second would limit scale tests
		controllers,
	}}
}
