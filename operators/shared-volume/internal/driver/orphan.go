package driver

import (
	"cmp"
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
	// lookEvery is how late an orphan may be found.
	lookEvery = 10 * time.Minute
	// youngFor is how long a volume that was never bound may look like an orphan: the
	// volume may be seen before its SharedVolume.
	youngFor     = time.Hour
	shownOrphans = 10
)

func volumesAndOwners(*storagev1.SharedVolumeDriver) []engine.Need {
	return []engine.Need{engine.Sampled(&corev1.PersistentVolume{}, lookEvery), engine.Sampled(&storagev1.SharedVolume{}, lookEvery)}
}

// orphans are volumes whose SharedVolume is gone, by name. Their SharedVolume would have
// deleted them, but somebody has taken its finalizer away.
func orphans(in engine.Inputs) []*corev1.PersistentVolume {
	owners := map[types.UID]bool{}
	for _, cr := range engine.Listed[*storagev1.SharedVolume](in) {
		owners[cr.UID] = true
	}
	all := slices.DeleteFunc(engine.Listed[*corev1.PersistentVolume](in), func(found *corev1.PersistentVolume) bool {
		young := time.Since(found.CreationTimestamp.Time) < youngFor
		neverBound := found.Status.Phase != corev1.VolumeBound && found.Status.Phase != corev1.VolumeReleased
		return !volume.IsOfSharedVolume(found) || owners[engine.OwnerUID(found)] || young && neverBound
	})
	slices.SortFunc(all, func(a, b *corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// withoutOrphans deletes the orphans that no claim uses. Nobody loses a file: the
// volumes are Retain, and point to a file system that stays.
func withoutOrphans(_ *storagev1.SharedVolumeDriver, in engine.Inputs) ([]engine.Child, error) {
	var unused []engine.Child
	all := orphans(in)
	for _, orphan := range all {
		if orphan.Status.Phase != corev1.VolumeBound {
			unused = append(unused, engine.LeftBy(engine.OwnerUID(orphan), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: orphan.Name}}))
		}
	}
	if len(unused) == 0 && len(all) > 0 {
		return nil, engine.WaitAs(storagev1.ReasonOrphaned, "the SharedVolumes of %d bound volumes are gone: see status.orphanedVolumes, and delete the claims of these volumes", len(all))
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
