package driver

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/volume"
)

const (
	// samplePeriod is the longest time until an orphan is found.
	samplePeriod = 10 * time.Minute
	// minOrphanAge of a volume that was never bound. The operator may see a new volume
	// before its SharedVolume.
	minOrphanAge = time.Hour
	shownOrphans = 10
)

var (
	allVolumes = engine.Sampled[*corev1.PersistentVolume](samplePeriod)
	owners     = engine.Sampled[*storagev1.SharedVolume](samplePeriod)
)

func volumesAndOwners(*storagev1.SharedVolumeDriver) []engine.Need {
	return []engine.Need{allVolumes.Need, owners.Need}
}

// orphans returns the volumes whose SharedVolume is gone, sorted by name. They remain when
// the finalizer of a SharedVolume is removed manually.
func orphans(in engine.Inputs) []*corev1.PersistentVolume {
	exists := map[types.UID]bool{}
	for _, cr := range owners.In(in) {
		exists[cr.UID] = true
	}
	return slices.DeleteFunc(allVolumes.In(in), func(found *corev1.PersistentVolume) bool {
		young := in.Now().Sub(found.CreationTimestamp.Time) < minOrphanAge
		neverBound := found.Status.Phase != corev1.VolumeBound && found.Status.Phase != corev1.VolumeReleased
		return !volume.IsOfSharedVolume(found) || exists[engine.OwnerUID(found)] || young && neverBound
	})
}

// withoutOrphans deletes the orphans that no claim uses. No file is lost, because the
// reclaim policy of the volumes is Retain.
func withoutOrphans(_ *storagev1.SharedVolumeDriver, in engine.Inputs) ([]engine.Child, error) {
	var unused []engine.Child
	all := orphans(in)
	for _, orphan := range all {
		if orphan.Status.Phase != corev1.VolumeBound {
			unused = append(unused, engine.LeftBy(engine.OwnerUID(orphan), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: orphan.Name}}))
		}
	}
	if len(unused) == 0 && len(all) > 0 {
		return nil, engine.WaitAs(storagev1.ReasonOrphaned, "the SharedVolumes of %d bound volumes are gone: delete the claims of the volumes in status.orphanedVolumes", len(all))
	}
	return unused, nil
}

func reportOrphans(cr *storagev1.SharedVolumeDriver, in engine.Inputs) {
	cr.Status.OrphanedVolumes = nil
	all := orphans(in)
	if len(all) == 0 {
		return
	}
	cr.Status.OrphanedVolumes = &storagev1.OrphanedVolumes{Count: int32(min(len(all), maxUsers))} //nolint:gosec // bounded
	for _, orphan := range all[:min(len(all), shownOrphans)] {
		cr.Status.OrphanedVolumes.Names = append(cr.Status.OrphanedVolumes.Names, orphan.Name)
	}
}
