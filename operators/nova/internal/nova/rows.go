package nova

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// computeService is a row of `openstack compute service list`. Host is the name of the pod.
type computeService struct {
	ID     string `json:"id"`
	Binary string `json:"binary"`
	Host   string `json:"host"`
	State  string `json:"state"` // up or down
}

// listServices returns the services of one binary, such as nova-conductor. In a large cloud, the
// list of all services exceeds the limit of an answer.
func (c apiClient) listServices(ctx context.Context, binary string) ([]computeService, error) {
	var answer struct {
		Services []computeService `json:"services"`
	}
	err := c.get(ctx, "/os-services?binary="+binary, &answer)
	return answer.Services, err
}

// scaled is the input of removeScaledAway: the number of pods of a service.
func scaled(obj client.Object) any {
	if service, ok := obj.(scalable); ok {
		return podsOf(service)
	}
	return nil
}

// scalable is a kind whose pods are numbered.
type scalable interface {
	client.Object
	ServiceStatus() *commonv1.ServiceStatus
}

// podsOf returns the number of pods that exist or are wanted.
func podsOf(service scalable) int {
	wanted := int32(1)
	switch service := service.(type) {
	case *conductorv1.NovaConductor:
		if service.Spec.Replicas != nil {
			wanted = *service.Spec.Replicas
		}
	case *schedulerv1.NovaScheduler:
		if service.Spec.Replicas != nil {
			wanted = *service.Spec.Replicas
		}
	}
	return int(max(wanted, service.ServiceStatus().Replicas))
}

// removeScaledAway deletes the rows of the pods of conductors and schedulers that a scale-down
// has deleted: only rows that are down, and whose host is the name of such a pod. The rows of
// other hosts, of pods that restart, and of a paused service, whose pods nobody counts, stay. A failure is logged and repeated with the next
// request.
func removeScaledAway(ctx context.Context, cr *novav1.Nova, in engine.Inputs, conductors []computeService, api apiClient) {
	schedulers, err := api.listServices(ctx, "nova-scheduler")
	if err != nil {
		log.FromContext(ctx).Error(err, "listing schedulers, whose rows may have to be deleted")
	}
	pods := map[string]int{} // of a service, by <binary>/<instance>
	if child, ok := engine.Get[*schedulerv1.NovaScheduler](in, schedulerName(cr)); ok && !child.IsPaused() {
		pods["nova-scheduler/"+child.Name] = podsOf(child)
	}
	names := []string{superconductorName(cr)}
	for _, cell := range cr.Spec.Cells {
		names = append(names, cellConductorNamed(cr, cell).Name)
	}
	for _, name := range names {
		if child, ok := engine.Get[*conductorv1.NovaConductor](in, name); ok && !child.IsPaused() {
			pods["nova-conductor/"+name] = podsOf(child)
		}
	}
	for _, service := range slices.Concat(conductors, schedulers) {
		at := strings.LastIndex(service.Host, "-")
		if at < 0 || service.State != "down" {
			continue
		}
		number, err := strconv.Atoi(service.Host[at+1:])
		running, isKnown := pods[service.Binary+"/"+service.Host[:at]]
		if err != nil || !isKnown || number < running {
			continue
		}
		if err := api.send(ctx, http.MethodDelete, "/os-services/"+url.PathEscape(service.ID), nil); err != nil {
			log.FromContext(ctx).Error(err, "deleting the row of a service that was scaled down", "host", service.Host)
			continue
		}
		log.FromContext(ctx).Info("the row of a service that was scaled down is deleted", "binary", service.Binary, "host", service.Host)
	}
}
