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

// Singleton makes the SharedVolumeDriver when the operator starts, if there is
// none.
type Singleton struct{}

// Kind is none: nothing is reconciled.
func (Singleton) Kind() client.Object { return nil }

// tryAgain is how long after a failure.
const tryAgain = 5 * time.Second

// SetupWithManager adds it to what the leader runs.
func (Singleton) SetupWithManager(mgr ctrl.Manager) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		_ = wait.PollUntilContextCancel(ctx, tryAgain, true, func(ctx context.Context) (bool, error) {
			cluster := &storagev1.SharedVolumeDriver{ObjectMeta: metav1.ObjectMeta{Name: storagev1.SharedVolumeDriverName}}
			err := mgr.GetClient().Create(ctx, cluster)
			if err == nil || errors.IsAlreadyExists(err) {
				return true, nil
			}
			log.FromContext(ctx).Error(err, fmt.Sprintf("making SharedVolumeDriver %s, next try in %s", cluster.Name, tryAgain))
			return false, nil
		})
		return nil // only the end of the operator ends it before
	}))
}
