// Package compute builds the objects of a NovaCompute.
package compute

import (
	_ "embed"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"
	"asterism.dev/lib/nova"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"

	novav1 "asterism.dev/operators/nova-compute/api/v1alpha1"
)

// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novacomputes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novacomputes/status,verbs=patch
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novacomputes/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=statefulsets;daemonsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=k8s.cni.cncf.io,resources=network-attachment-definitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

var service = workload.Described[*novav1.NovaCompute](describe)

// Service lists the stages of a NovaCompute.
var Service = engine.Service[*novav1.NovaCompute]{
	Name: "nova-compute",
	Stages: []engine.Stage[*novav1.NovaCompute]{
		{Condition: novav1.ConditionInputsReady, Needs: service.Inputs},
		{Condition: novav1.ConditionConfigReady, Build: service.Configuration},
		{Condition: novav1.ConditionWorkloadReady, Needs: hostNeeds, Build: run, Judge: judge, Report: reportHosts},
	},
	Teardown: []engine.Stage[*novav1.NovaCompute]{
		{Condition: "Emptied", Needs: removalNeeds, Build: empty},
		{Condition: "Stopped", Build: stop},
		{Condition: "Unregistered", Needs: removalNeeds, Build: unregister},
	},
	Report: service.Report,
	Owns: []client.Object{
		&corev1.ConfigMap{}, &corev1.Secret{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &networkingv1.NetworkPolicy{}, &batchv1.Job{},
	},
}

// graceSeconds is more than the 60 seconds in which the service finishes its work
// (oslo.service: graceful_shutdown_timeout).
const graceSeconds = 90

// start runs nova-compute also in an image without the program: packages with the program
// require libvirt and QEMU, which the driver does not use.
const start = `command -v nova-compute > /dev/null && exec nova-compute
exec python3 -c 'import sys; sys.argv[0] = "nova-compute"; from nova.cmd.compute import main; main()'`

// startFake runs nova-compute with the fake driver whose node has the UUID of identityFile. The
// node of FakeDriver gets another UUID at each start from release 27 on, and Nova then refuses
// the second start of a host. Earlier releases have only FakeDriver.
const startFake = `import sys; sys.argv[0] = "nova-compute"
from nova.cmd.compute import main
from nova.virt import driver, fake
load = driver.load_compute_driver
if hasattr(fake, "FakeDriverWithoutFakeNodes"):
    driver.load_compute_driver = lambda api, _=None: load(api, "fake.FakeDriverWithoutFakeNodes")
main()`

// run builds a DaemonSet for the nodes of libvirt, and otherwise a StatefulSet: it never runs
// two pods of one name, and so no two computes of one host.
func run(cr *novav1.NovaCompute, in engine.Inputs) ([]engine.Child, error) {
	s := describe(cr)
	if s.Node != nil {
		return s.PerNode(in)
	}
	return s.Stateful(in)
}

func judge(cr *novav1.NovaCompute, in engine.Inputs) (string, error) {
	s := describe(cr)
	if s.Node != nil {
		return s.JudgeNodes(in)
	}
	return s.JudgeNetworks(in)
}

// describe returns the process and its connections, which the compute Secret of the cell
// has in rendered form.
func describe(cr *novav1.NovaCompute) workload.Service {
	s := workload.Service{
		Name:     "nova-compute",
		Instance: cr.Name,
		Project:  nova.Project(),
		Spec: commonv1.ServiceSpec{
			ContainerImage:  cr.Spec.ContainerImage,
			ServiceSettings: *cr.Spec.ServiceSettings.DeepCopy(),
		},
		Rendered:     cr.Spec.ComputeConfigSecretRef.Name,
		Command:      workload.Start("sh", "-c", start),
		GraceSeconds: graceSeconds,
	}
	s.Defaults.Set("upgrade_levels", "compute", "auto")
	s.Defaults.Set("vnc", "enabled", "false")
	nova.EndWithin(&s.Defaults, 20) // most builds end within
	switch {
	case cr.Spec.Driver == sharedv1.ComputeFake:
		fake(&s)
	case cr.Spec.Ironic != nil:
		ironic(&s, *cr.Spec.Ironic)
	case cr.Spec.Libvirt != nil:
		libvirt(&s, *cr.Spec.Libvirt)
	}
	return s
}

// identityFile has the UUID of the host. Nova writes it from release 27 on, and refuses to
// start a known host without it; the pod keeps no file that Nova writes.
const identityFile = "compute_id"

func fake(s *workload.Service) {
	s.Command = workload.Start("python3", "-c", startFake)
	s.Owned.Set("DEFAULT", "host", s.Instance)
	s.Owned.Set("DEFAULT", "compute_driver", "fake.FakeDriver")
	// Notifications contain the URL of Glance, and nothing calls it: a cloud without Glance, in
	// which the catalog has no URL, can run servers of this driver.
	s.Defaults.Set("glance", "endpoint_override", "http://127.0.0.1:9")
	isIdentity := func(file commonv1.ExtraFile) bool { return file.Name == identityFile }
	if !slices.ContainsFunc(s.Spec.ExtraFiles, isIdentity) {
		id := uuid.NewSHA1(uuid.NameSpaceDNS, []byte(s.Instance)).String()
		s.Spec.ExtraFiles = append(s.Spec.ExtraFiles, commonv1.ExtraFile{Name: identityFile, Content: &id})
	}
}

// ironic limits the compute to its nodes. Before release 28 of Nova, conductor_group was called
// partition_key; the group is ignored without peer_list. A shard has one compute, and needs no
// peer_list (nova: conf/ironic.py, virt/ironic/driver.py).
func ironic(s *workload.Service, settings sharedv1.IronicSettings) {
	const section = "ironic"
	s.Owned.Set("DEFAULT", "host", s.Instance)
	s.Owned.Set("DEFAULT", "compute_driver", "ironic.IronicDriver")
	s.Accounts = []workload.Account{{Section: section, Secret: settings.SecretRef.Name}}
	s.Defaults.Set(section, "valid_interfaces", "internal")
	if settings.Shard != "" {
		s.Owned.Set(section, "shard", settings.Shard)
	}
	if settings.ConductorGroup != "" {
		s.Owned.Set(section, "conductor_group", settings.ConductorGroup)
		s.Owned.Set(section, "partition_key", settings.ConductorGroup)
		s.Owned.Set(section, "peer_list", s.Instance)
	}
}

const startLibvirtName = "start-libvirt"

// reservedPort keeps the computes of two DaemonSets from one node, on which both would be the
// same host. libvirt and Nova do not use this port.
const reservedPort = 16520

// startLibvirt checks the node before it starts nova-compute.
//
//go:embed start-libvirt
var startLibvirt string

// nodeMemory is the memory, in MiB, that Nova leaves to the processes and pods of the node: its
// own default is 512, and with a full node the kernel then ends instances. TripleO reserves as
// much on hosts without Kubernetes. No CPU is reserved: CPUs can be shared, and Nova does not
// start with reserved_host_cpus beside cpu_shared_set or cpu_dedicated_set (nova:
// virt/libvirt/driver.py).
const nodeMemory = "4096"

// libvirt runs a compute on each of its nodes. Nova knows the node by its name, as Neutron's
// agents do. os-brick needs the devices, udev's database and the initiator of the node;
// libvirt opens disks and sockets by their paths on the node.
func libvirt(s *workload.Service, settings sharedv1.LibvirtSettings) {
	s.Owned.Set("DEFAULT", "compute_driver", "libvirt.LibvirtDriver")
	s.Defaults.Set("DEFAULT", "reserved_host_memory_mb", nodeMemory)
	s.Owned.Set("libvirt", "virt_type", strings.ToLower(string(settings.VirtType)))
	s.Command = workload.Start(path.Join(config.ScriptsDir, startLibvirtName), string(settings.VirtType))
	s.Scripts = map[string]string{startLibvirtName: startLibvirt}
	s.FromImage = []string{"rootwrap.conf", "rootwrap.d/"} // root runs what they allow
	s.RunOnHost = settings.HostStorage == sharedv1.HostStorageRunOnHost
	s.Node = &workload.Node{
		Selector:    settings.NodeSelector,
		Directories: []string{"/dev", "/etc/iscsi", "/lib/modules", "/run", "/var/lib/libvirt", "/var/lib/nova"},
		Options: map[string]string{
			"host": "spec.nodeName", "my_ip": "status.hostIP",
			"vnc/server_listen": "status.hostIP", "vnc/server_proxyclient_address": "status.hostIP",
		},
		Reserved: reservedPort,
	}
}
