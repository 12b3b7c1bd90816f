package operator

import (
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Times of the leader election. With those that OpenShift asks of its operators (CONVENTIONS.md
// in openshift/enhancements), leadership outlasts an API server that is away for more than a
// minute, for example during the update of a single node.
const (
	leaseDuration = 137 * time.Second
	renewDeadline = 107 * time.Second
	// retryPeriod is the time between two writes of the lease. OpenShift's 26 s are too long
	// for an upgrade: a new pod looks for the lease of the pod that it replaces once in 1 to
	// 2.2 of these periods.
	retryPeriod = 10 * time.Second
	// requestTimeout is that of one request. The last attempt, and the two requests that release
	// the lease after it, end before the lease does:
	// retryPeriod + renewDeadline + 2 * requestTimeout < leaseDuration.
	requestTimeout = 5 * time.Second
)

// elect sets the leader election. A pod's lease is its own even after its container has ended
// without a release, for example for memory: the next container leads at once, because the
// kubelet starts it after the end of the former one. Outside of a pod, controller-runtime's
// identity is random, and a lease that is not released expires.
func elect(config *rest.Config, options *ctrl.Options) error {
	options.LeaderElectionReleaseOnCancel = true
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = new(leaseDuration), new(renewDeadline), new(retryPeriod)
	namespace, pod := os.Getenv(podNamespace), os.Getenv(podName)
	if !options.LeaderElection || namespace == "" || pod == "" {
		return nil
	}
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = requestTimeout
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return err
	}
	options.LeaderElectionResourceLockInterface = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: options.LeaderElectionID},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: pod},
	}
	return nil
}
