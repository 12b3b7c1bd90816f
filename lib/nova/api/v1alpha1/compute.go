package v1alpha1

import commonv1 "asterism.dev/lib/common/api/v1alpha1"

// ComputeDriver is the virtualization driver of a compute.
// +kubebuilder:validation:Enum=Fake;Ironic;Libvirt
type ComputeDriver string

const (
	// ComputeFake is Nova's own driver for tests, whose servers exist only in memory.
	ComputeFake ComputeDriver = "Fake"
	// ComputeIronic is the driver for the nodes of an Ironic.
	ComputeIronic ComputeDriver = "Ironic"
	// ComputeLibvirt is the driver for virtual machines on nodes of the cluster.
	ComputeLibvirt ComputeDriver = "Libvirt"
)

// ComputeSettings are the fields of a compute that decide which servers it runs.
//
// +kubebuilder:validation:XValidation:rule="(self.driver == 'Ironic') == has(self.ironic)",message="must have ironic for driver Ironic and for no other driver"
// +kubebuilder:validation:XValidation:rule="(self.driver == 'Libvirt') == has(self.libvirt)",message="must have libvirt for driver Libvirt and for no other driver"
type ComputeSettings struct {
	// driver of the compute: Fake (servers exist only in memory, for tests), Ironic (servers
	// are nodes of an Ironic) or Libvirt (servers are virtual machines on nodes of the
	// cluster). It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: another driver does not know the servers of the compute; add another compute instead"
	Driver ComputeDriver `json:"driver"`

	// ironic selects the nodes of a compute with driver Ironic.
	// +optional
	Ironic *IronicSettings `json:"ironic,omitempty"`

	// libvirt selects the nodes of a compute with driver Libvirt.
	// +optional
	Libvirt *LibvirtSettings `json:"libvirt,omitempty"`
}

// HostStorage is the origin of the programs that attach volumes.
// +kubebuilder:validation:Enum=RunOnHost
type HostStorage string

// HostStorageRunOnHost runs the programs of the node.
const HostStorageRunOnHost HostStorage = "RunOnHost"

// VirtType is the kind of virtual machines of libvirt.
// +kubebuilder:validation:Enum=KVM;QEMU
type VirtType string

// LibvirtSettings select the nodes of the cluster on which a compute runs servers. Each node
// is one host of Nova, with the name of the node. libvirt and QEMU run on the node.
type LibvirtSettings struct {
	// nodeSelector has the labels of the nodes, and replaces nodeSelector of pod. It cannot
	// be changed.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: the servers on the nodes belong to this compute; add another compute instead"
	NodeSelector map[string]string `json:"nodeSelector"`

	// hostStorage is the origin of iscsiadm, multipath, multipathd and scsi_id. RunOnHost:
	// the programs of the node. The pods are privileged: an administrator must allow them in
	// the namespace, see docs/guides/host-storage.md.
	// +optional
	// +kubebuilder:default=RunOnHost
	HostStorage HostStorage `json:"hostStorage,omitempty"`

	// virtType of the servers: KVM, or QEMU for nodes without /dev/kvm.
	// +optional
	// +kubebuilder:default=KVM
	VirtType VirtType `json:"virtType,omitempty"`
}

// IronicSettings select the nodes of an Ironic that one compute manages.
//
// +kubebuilder:validation:XValidation:rule="(has(self.shard) ? self.shard : '-') == (has(oldSelf.shard) ? oldSelf.shard : '-') && (has(self.conductorGroup) ? self.conductorGroup : '-') == (has(oldSelf.conductorGroup) ? oldSelf.conductorGroup : '-')",message="must not change shard or conductorGroup: the servers on the nodes belong to this compute; add another compute instead"
type IronicSettings struct {
	// secretRef names the Secret with an account for Ironic at Keystone. Required keys:
	// authURL, user, password, or authURL, applicationCredentialID,
	// applicationCredentialSecret. Optional keys: endpoint (the URL of Ironic's API; default:
	// the endpoint in the catalog), project (default service), userDomain and projectDomain
	// (default Default), region (default RegionOne), ca.crt.
	// +required
	SecretRef commonv1.SecretReference `json:"secretRef"`

	// shard of the nodes, as in Ironic's field shard. Without a value, the compute manages
	// nodes of every shard. Nova reads it from release 28 on; older releases ignore it. It
	// cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[-_.a-zA-Z0-9]+$`
	Shard string `json:"shard,omitempty"`

	// conductorGroup of the nodes, as in Ironic's field conductor_group. Without a value,
	// the compute manages nodes of every group. It cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[-_.a-zA-Z0-9]+$`
	ConductorGroup string `json:"conductorGroup,omitempty"`
}
