package config

import (
	"cmp"
	"os"
	"strings"
	"sync"
)

// EnvironmentClusterDomain is the variable with the DNS domain of the cluster. Default: the
// search domain in the pod's /etc/resolv.conf, otherwise cluster.local.
const EnvironmentClusterDomain = "CLUSTER_DOMAIN"

const (
	resolvConf           = "/etc/resolv.conf"
	defaultClusterDomain = "cluster.local"
)

// clusterDomain is read once, because it cannot change.
var clusterDomain = sync.OnceValue(func() string {
	content, _ := os.ReadFile(resolvConf) // without search domains, the default is right
	return cmp.Or(os.Getenv(EnvironmentClusterDomain), searchedDomain(string(content)), defaultClusterDomain)
})

// searchedDomain returns the domain of the cluster from the resolv.conf of a pod, which has
// "search <namespace>.svc.<domain> svc.<domain> <domain>"; "" for none.
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

// ServiceHost returns the complete host name of a Service.
func ServiceHost(namespace, name string) string { return completeHost(name + "." + namespace + ".svc") }

// completeHost adds the cluster's domain to the host name of a Service,
// <name>.<namespace>.svc. Otherwise the search list of a pod would complete the name, in
// another order: the owner of a namespace called svc could give the name
// mariadb.openstack.svc.svc.cluster.local to a pod.
func completeHost(host string) string {
	if strings.HasSuffix(strings.ToLower(host), ".svc") && strings.Count(host, ".") > 1 {
		return host + "." + clusterDomain()
	}
	return host
}
