package multus

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAttached(t *testing.T) {
	for name, test := range map[string]struct {
		status    string
		addresses []string
		attached  bool
	}{
		"no annotation":        {status: ``},
		"not JSON":             {status: `oops`},
		"only the pod network": {status: `[{"name": "cbr0", "ips": ["10.244.1.73"], "default": true}]`},
		"another namespace":    {status: `[{"name": "other/internalapi", "ips": ["172.17.0.10"]}]`},
		"attached":             {status: `[{"name": "cbr0"}, {"name": "openstack/internalapi", "interface": "net1", "ips": ["172.17.0.10", "fd00::a"]}]`, addresses: []string{"172.17.0.10", "fd00::a"}, attached: true},
		"without a namespace":  {status: `[{"name": "internalapi", "ips": ["172.17.0.10"]}]`, addresses: []string{"172.17.0.10"}, attached: true},
		"layer 2":              {status: `[{"name": "openstack/internalapi"}]`, attached: true},
		"no address":           {status: `[{"name": "openstack/internalapi", "ips": ["<b>", "172.17.0.10"]}]`, addresses: []string{"172.17.0.10"}, attached: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			pod.Namespace, pod.Annotations = "openstack", map[string]string{AnnotationStatus: test.status}
			addresses, attached := Attached(pod, "internalapi")
			if attached != test.attached || !slices.Equal(addresses, test.addresses) {
				t.Errorf("%v, %v; expected %v, %v", addresses, attached, test.addresses, test.attached)
			}
		})
	}
}
