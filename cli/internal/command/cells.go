package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	registrationv1 "asterism.dev/lib/registration/api/v1alpha1"

	"asterism.dev/cli/tree"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// cell is a cell in the output of the command cells.
type cell struct {
	Namespace string                 `json:"namespace"`
	Nova      string                 `json:"nova"`
	Name      string                 `json:"name"`
	UUID      string                 `json:"uuid,omitempty"`
	Conductor *pods                  `json:"conductor,omitempty"`
	Hosts     *novav1.CellHosts      `json:"hosts,omitempty"`
	Database  string                 `json:"database"`
	Bus       string                 `json:"messageBus"`
	Ready     metav1.ConditionStatus `json:"ready"`
	Reason    string                 `json:"reason,omitempty"`
	Message   string                 `json:"message,omitempty"`
	Created   metav1.Time            `json:"created"`
}

// pods counts the pods of a service.
type pods struct {
	Ready   int32 `json:"ready"`
	Desired int32 `json:"desired"`
}

func newCells(env *environment) *cobra.Command {
	allNamespaces := false
	cmd := &cobra.Command{
		Use:   "cells",
		Short: "List the cells with their conductors, hosts, databases and message buses.",
		Long: `List the cells of the namespace. cell0 has no NovaCell and is not listed. HOSTS is
the number of mapped compute hosts and, after a +, of hosts that discovery has not
mapped. DATABASE and MESSAGE BUS are the addresses in the spec: a Service, a host, or
the Secret that contains the address.

The command ends with 0 if every cell is ready, with 1 if a cell is not ready, and
with 2 if there is no cell or after an error.`,
		Example: `  kubectl asterism cells -n openstack
  kubectl asterism cells -n openstack -o wide
  kubectl asterism cells -n openstack -o jsonpath='{.items[*].uuid}'`,
		Args: cobra.NoArgs,
	}
	output := addOutput(cmd, "wide")
	cmd.Flags().BoolVarP(&allNamespaces, "all-namespaces", "A", false, "List the cells of all namespaces")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		printer, err := output.printer()
		if err != nil {
			return err
		}
		cells, err := env.cells(cmd.Context(), allNamespaces)
		if err != nil {
			return err
		}
		return env.printCells(cells, printer, *output.OutputFormat == "wide", allNamespaces)
	}
	return cmd
}

func (env *environment) cells(ctx context.Context, allNamespaces bool) ([]cell, error) {
	access, err := env.connect()
	if err != nil {
		return nil, err
	}
	namespace := access.Namespace
	if allNamespaces {
		namespace = ""
	}
	var found novav1.NovaCellList
	err = access.WithWatch.List(ctx, &found, client.InNamespace(namespace))
	switch {
	case meta.IsNoMatchError(err):
		return nil, errors.New("the API server does not serve NovaCells: install the operator nova (package nova-operator)")
	case err != nil:
		return nil, fmt.Errorf("NovaCells cannot be listed: %w", err)
	case len(found.Items) == 0 && allNamespaces:
		return nil, errors.New("the cluster has no NovaCell")
	case len(found.Items) == 0:
		return nil, fmt.Errorf("namespace %s has no NovaCell: name another namespace with -n, or use -A", namespace)
	}
	var conductors conductorv1.NovaConductorList
	if err := access.WithWatch.List(ctx, &conductors, client.InNamespace(namespace)); err != nil {
		env.hint("warning: NovaConductors cannot be listed, so CONDUCTOR is empty: %v", err)
	}
	var cells []cell
	for _, c := range found.Items {
		cells = append(cells, cellOf(c, conductors.Items))
	}
	slices.SortFunc(cells, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Nova, b.Nova), cmp.Compare(a.Name, b.Name))
	})
	return cells, nil
}

func cellOf(c novav1.NovaCell, conductors []conductorv1.NovaConductor) cell {
	shown := cell{
		Namespace: c.Namespace, Nova: c.Spec.NovaRef.Name, Name: string(c.Spec.CellName),
		UUID: c.Status.UUID, Hosts: c.Status.Hosts, Created: c.CreationTimestamp,
		Database: address(c.Spec.Database.Connection), Bus: address(c.Spec.MessageBus.Connection),
		Ready: metav1.ConditionUnknown,
	}
	ready := meta.FindStatusCondition(c.Status.Conditions, commonv1.ConditionReady)
	switch {
	case ready == nil:
		shown.Message = tree.WithoutStatus(&c)
	case c.Status.ObservedGeneration < c.Generation:
		shown.Message = fmt.Sprintf("its operator has not seen generation %d", c.Generation)
	case ready.Status == metav1.ConditionTrue:
		shown.Ready = ready.Status
	default:
		shown.Ready, shown.Reason, shown.Message = ready.Status, ready.Reason, ready.Message
	}
	for _, conductor := range conductors {
		if metav1.IsControlledBy(&conductor, &c) {
			shown.Conductor = &pods{Ready: conductor.Status.ReadyReplicas, Desired: 1}
			if conductor.Spec.Replicas != nil {
				shown.Conductor.Desired = *conductor.Spec.Replicas
			}
		}
	}
	return shown
}

// address returns the address of a server, or the Secret that has the address.
func address(c registrationv1.Connection) string {
	switch {
	case c.ServiceRef != nil:
		return "service/" + c.ServiceRef.Name
	case c.ConnectionSecretRef != nil:
		return "secret/" + c.ConnectionSecretRef.Name
	case c.Port != nil:
		return c.Host + ":" + strconv.Itoa(int(*c.Port))
	}
	return c.Host
}

func (env *environment) printCells(cells []cell, printer printers.ResourcePrinter, wide, namespaces bool) error {
	var err error
	if printer != nil {
		err = printDocument(env.Out, printer, "CellList", cells)
	} else {
		err = env.table(cellRows(cells, wide, namespaces, env.now()))
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(cells, func(c cell) bool { return c.Ready != metav1.ConditionTrue }) {
		return errNotReady
	}
	return nil
}

func cellRows(cells []cell, wide, namespaces bool, now time.Time) [][]string {
	row := func(namespace, nova, name, uuid, conductor, hosts, database, bus, ready, age, message string) []string {
		cells := []string{nova, name, conductor, hosts, database, bus, ready, age, message}
		if wide {
			cells = []string{nova, name, uuid, conductor, hosts, database, bus, ready, age, message}
		}
		if namespaces {
			return append([]string{namespace}, cells...)
		}
		return cells
	}
	rows := [][]string{row("NAMESPACE", "NOVA", "CELL", "UUID", "CONDUCTOR", "HOSTS", "DATABASE", "MESSAGE BUS", "READY", "AGE", "MESSAGE")}
	for _, c := range cells {
		age := duration.HumanDuration(now.Sub(c.Created.Time))
		rows = append(rows, row(c.Namespace, c.Nova, c.Name, cmp.Or(c.UUID, "-"), c.Conductor.String(), hostsText(c.Hosts),
			c.Database, c.Bus, string(c.Ready), age, strings.Join(strings.Fields(c.Message), " ")))
	}
	return rows
}

// String returns ready/desired.
func (p *pods) String() string {
	if p == nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d", p.Ready, p.Desired)
}

func hostsText(hosts *novav1.CellHosts) string {
	switch {
	case hosts == nil:
		return "-"
	case hosts.Unmapped > 0:
		return fmt.Sprintf("%d+%d", hosts.Mapped, hosts.Unmapped)
	}
	return strconv.Itoa(int(hosts.Mapped))
}
