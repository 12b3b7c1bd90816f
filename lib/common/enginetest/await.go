package enginetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
)

// patience is the timeout of all waits, which only bounds a failure: the machine may be slow. The
// garbage collector discovers new kinds every 30 s, deletes no objects of these kinds before, and
// pauses while other suites install kinds.
const patience = 4 * time.Minute

// Eventually calls check until it returns nil. After the timeout, the last error fails the
// test. It pauses for an eighth of the time that it has waited, at least 20 and at most 300 ms:
// each call of many tests at once is a request to one API server.
func Eventually(t testing.TB, goal string, check func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return
		}
		waited := time.Since(began)
		if waited > patience {
			t.Fatalf("%s: still not after %s: %v", goal, patience, err)
		}
		<-time.After(min(max(waited/8, 20*time.Millisecond), 300*time.Millisecond))
	}
}

// Await reads obj until its condition has the status for its newest generation.
func Await(t testing.TB, c client.Client, obj engine.Object, condition string, status metav1.ConditionStatus) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%T %s: %s is %s", obj, obj.GetName(), condition, status), func() error {
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		common := obj.Common()
		if common.ObservedGeneration != obj.GetGeneration() {
			return fmt.Errorf("observedGeneration is %d, generation %d", common.ObservedGeneration, obj.GetGeneration())
		}
		found := meta.FindStatusCondition(common.Conditions, condition)
		if found == nil || found.Status != status {
			return fmt.Errorf("its conditions are: %s", Conditions(obj))
		}
		return nil
	})
}

// AwaitReady reads the objects until each is Ready.
func AwaitReady(t testing.TB, c client.Client, objs ...engine.Object) {
	t.Helper()
	for _, obj := range objs {
		Await(t, c, obj, commonv1.ConditionReady, metav1.ConditionTrue)
	}
}

// AwaitGone reads until none of the objects exists.
func AwaitGone(t testing.TB, c client.Client, objs ...client.Object) {
	t.Helper()
	for _, obj := range objs {
		Eventually(t, fmt.Sprintf("%T %s is gone", obj, obj.GetName()), func() error {
			err := c.Get(context.Background(), client.ObjectKeyFromObject(obj), obj)
			switch {
			case errors.IsNotFound(err):
				return nil
			case err != nil:
				return err
			}
			return fmt.Errorf("it exists, deleted at %v, with finalizers %v", obj.GetDeletionTimestamp(), obj.GetFinalizers())
		})
	}
}

// Conditions returns the conditions of an object in one line, for messages of tests.
func Conditions(obj engine.Object) string {
	var text string
	for _, c := range obj.Common().Conditions {
		text += fmt.Sprintf("%s=%s (%s) %s; ", c.Type, c.Status, c.Reason, c.Message)
	}
	return text
}

// AwaitReason reads obj until its condition is False with the reason, for its newest
// generation, and with a message that contains all parts.
func AwaitReason(t testing.TB, c client.Client, obj engine.Object, condition, reason string, parts ...string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%T %s: %s is False because of %s %q", obj, obj.GetName(), condition, reason, parts), func() error {
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		found := meta.FindStatusCondition(obj.Common().Conditions, condition)
		if found == nil || found.Status != metav1.ConditionFalse || found.Reason != reason || obj.Common().ObservedGeneration != obj.GetGeneration() {
			return fmt.Errorf("generation %d, observed %d, its conditions are: %s", obj.GetGeneration(), obj.Common().ObservedGeneration, Conditions(obj))
		}
		for _, part := range parts {
			if !strings.Contains(found.Message, part) {
				return fmt.Errorf("its message is: %s", found.Message)
			}
		}
		return nil
	})
}
