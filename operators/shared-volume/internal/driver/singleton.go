package driver

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// Singleton creates the SharedVolumeDriver when the operator starts, if none exists.
type Singleton struct{}

// Kind returns nil, because Singleton reconciles no kind.
func (Singleton) Kind() client.Object { return nil }

// retryAfter is the pause after a failed creation.
const retryAfter = 5 * time.Second

// SetupWithManager adds Singleton to the runnables of the leader.
func (Singleton) SetupWithManager(mgr ctrl.Manager) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		_ = wait.PollUntilContextCancel(ctx, retryAfter, true, func(ctx context.Context) (bool, error) {
			cluster := &storagev1.SharedVolumeDriver{ObjectMeta: metav1.ObjectMeta{Name: storagev1.SharedVolumeDriverName}}
			err := mgr.GetClient().Create(ctx, cluster)
			if err == nil || errors.IsAlreadyExists(err) {
				return true, nil
			}
			log.FromContext(ctx).Error(err, fmt.Sprintf("creating SharedVolumeDriver %s failed, next attempt in %s", cluster.Name, retryAfter))
			return false, nil
		})
		return nil // the poll ends early only when the operator stops
	}))
}
