package config

import (
	"cmp"
	"os"
	"strings"
	"sync"
)

// EnvironmentClusterDomain names the DNS domain of the cluster. Default: the domain
// that the pod's own /etc/resolv.conf searches, or else cluster.local.
const EnvironmentClusterDomain = "CLUSTER_DOMAIN"

const (
	resolvConf           = "/etc/resolv.conf"
	defaultClusterDomain = "cluster.local"
)

// clusterDomain is read once, because it cannot change.
var clusterDomain = sync.OnceValue(func() string {
	content, _ := os.ReadFile(resolvConf) // the default is right where nothing is searched
	return cmp.Or(os.Getenv(EnvironmentClusterDomain), searchedDomain(string(content)), defaultClusterDomain)
})

// searchedDomain is the domain of the cluster in a resolv.conf: a pod's has
// "search <namespace>.svc.<domain> svc.<domain> <domain>". "" for none.
func searchedDomain(resolvConf string) string {
	for line := range strings.Lines(resolvConf) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "search" {
			continue
		}
		for _, entry := range fields[1:] {
			// In a namespace called svc, the first entry begins with svc.svc.
			if domain, ok := strings.CutPrefix(entry, "svc."); ok && !strings.HasPrefix(domain, "svc.") {
				return strings.TrimSuffix(domain, ".")
			}
		}
	}
	return ""
}

// ServiceHost is the full host name of a Service.
func ServiceHost(namespace, name string) string { return completeHost(name + "." + namespace + ".svc") }

// completeHost adds the cluster's domain to the host name of a Service,
// <name>.<namespace>.svc. Otherwise the search list of a pod completes the name, and
// begins elsewhere: the owner of a namespace called svc can give the name
// mariadb.openstack.svc.svc.cluster.local to a pod.
func completeHost(host string) string {
	if strings.HasSuffix(strings.ToLower(host), ".svc") && strings.Count(host, ".") > 1 {
		return host + "." + clusterDomain()
	}
	return host
}
