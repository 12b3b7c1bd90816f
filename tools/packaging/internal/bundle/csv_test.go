package bundle_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"asterism.dev/tools/internal/source"
	"asterism.dev/tools/packaging/internal/bundle"
	"asterism.dev/tools/packaging/internal/install"
)

// kinds returns the descriptions of all kinds by kind, and the required kinds by operator.
func kinds(t *testing.T) (owned map[string]v1alpha1.CRDDescription, required map[string][]string) {
	t.Helper()
	owned, required = map[string]v1alpha1.CRDDescription{}, map[string][]string{}
	operators(t, func(_ *testing.T, operator *source.Operator, bundle *manifests.Bundle) {
		for _, kind := range bundle.CSV.Spec.CustomResourceDefinitions.Owned {
			owned[kind.Kind] = kind
		}
		for _, kind := range bundle.CSV.Spec.CustomResourceDefinitions.Required {
			required[operator.Name] = append(required[operator.Name], kind.Kind)
		}
	})
	return owned, required
}

func TestKindsListWhatTheyCreate(t *testing.T) {
	owned, _ := kinds(t)
	exposed := "Deployment v1 , Job v1 , HTTPRoute v1 httproutes.gateway.networking.k8s.io, Ingress v1 , NetworkPolicy v1 , PodDisruptionBudget v1 , " +
		"Route v1 routes.route.openshift.io, ConfigMap v1 , Secret v1 , Service v1 "
	for kind, want := range map[string]string{
		"SharedVolume":       "PersistentVolume v1 , PersistentVolumeClaim v1 ",
		"SharedVolumePolicy": "",
		"NovaCell": "Job v1 , NovaCompute v1alpha1 novacomputes.nova.asterism.dev, NovaConductor v1alpha1 novaconductors.nova.asterism.dev, " +
			"NovaMetadata v1alpha1 novametadata.nova.asterism.dev, NovaNoVNCProxy v1alpha1 novanovncproxies.nova.asterism.dev, ConfigMap v1 , Secret v1 ",
		"NovaAPI": exposed, "NovaMetadata": exposed,
	} {
		var got []string
		for _, resource := range owned[kind].Resources {
			got = append(got, fmt.Sprintf("%s %s %s", resource.Kind, resource.Version, resource.Name))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: got %s\nwant %s", kind, text, want)
		}
	}
}

func TestPackagesRequireTheKindsThatTheyCreate(t *testing.T) {
	_, required := kinds(t)
	want := map[string][]string{"meta": {"Nova"}, "nova": {"NovaAPI", "NovaCompute", "NovaConductor", "NovaMetadata", "NovaNoVNCProxy", "NovaScheduler"}}
	if difference := cmp.Diff(want, required); difference != "" {
		t.Error(difference)
	}
}

func TestDescriptors(t *testing.T) {
	const ui, kubernetes = "urn:alm:descriptor:com.tectonic.ui:", "urn:alm:descriptor:io.kubernetes"
	owned, _ := kinds(t)
	types := map[string]string{}
	for kind, description := range owned {
		for _, descriptor := range description.SpecDescriptors {
			types[kind+" spec."+descriptor.Path] = strings.Join(descriptor.XDescriptors, " ")
		}
		for _, descriptor := range description.StatusDescriptors {
			types[kind+" status."+descriptor.Path] = strings.Join(descriptor.XDescriptors, " ")
		}
	}
	for path, want := range map[string]string{
		"ControlPlane spec.database.adminSecretRef.name":      kubernetes + ":Secret",
		"ControlPlane spec.database.serviceRef.name":          kubernetes + ":Service",
		"ControlPlane spec.messageBus.queueType":              ui + "select:Quorum " + ui + "select:AllQuorum " + ui + "select:Classic",
		"ControlPlane spec.metadataSecretRef.name":            kubernetes + ":Secret",
		"Nova spec.scheduler.replicas":                        ui + "podCount",
		"NovaAPI spec.containerImage":                         ui + "text",
		"NovaAPI spec.customServiceConfig":                    "",
		"NovaAPI spec.exposure.parentRef.name":                kubernetes + ":gateway.networking.k8s.io:v1:Gateway",
		"NovaCell spec.novaRef.name":                          kubernetes + ":nova.asterism.dev:v1alpha1:Nova",
		"NovaCell status.computeConfigSecretRef.name":         kubernetes + ":Secret",
		"NovaCell status.conditions":                          kubernetes + ".conditions",
		"SharedVolume status.claimRef.name":                   kubernetes + ":PersistentVolumeClaim",
		"SharedVolumePolicy spec.namespaces.selector":         "",
		"NovaCompute spec.ironic.secretRef.name":              kubernetes + ":Secret",
		"NovaConductor spec.schema":                           "",
		"NovaConductor status.readyReplicas":                  "",
		"NovaConductor spec.resources":                        ui + "resourceRequirements",
		"NovaConductor spec.identitySecretRef.name":           kubernetes + ":Secret",
		"SharedVolumeDriver spec.managementState":             ui + "select:Managed " + ui + "select:Unmanaged " + ui + "select:Removed",
		"NovaCell spec.superconductorRef.name":                kubernetes + ":nova.asterism.dev:v1alpha1:NovaConductor",
		"ControlPlane spec.identity.connectionSecretRef.name": kubernetes + ":Secret",
	} {
		if got, found := types[path]; !found || got != want {
			t.Errorf("%s: got %q (%t), want %q", path, got, found, want)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(types)) {
		kind, _, _ := strings.Cut(path, " ")
		for _, internal := range []string{"completed", "configHash", "selector"} {
			if path == kind+" status."+internal {
				t.Errorf("%s is shown", path)
			}
		}
	}
}

func TestOnlyReleasesAreForDisconnectedClusters(t *testing.T) {
	project, err := readProject()
	if err != nil {
		t.Fatal(err)
	}
	operator := project.Operator("shared-volume")
	all, some := source.ImagesOf(project), source.ImagesOf(project)
	all.Digests, some.Digests = map[string]string{}, map[string]string{}
	for i, image := range source.ImagesOf(project).Of(operator) {
		all.Digests[image.Reference] = "sha256:" + strings.Repeat("0", 64)
		if i > 0 {
			some.Digests[image.Reference] = all.Digests[image.Reference]
		}
	}
	for about, c := range map[string]struct {
		images source.Images
		want   string
	}{"tags": {source.ImagesOf(project), "false"}, "digests": {all, "true"}, "one tag": {some, "false"}} {
		files, err := bundle.Files(project, operator, c.images, []byte("<svg/>"))
		if err != nil {
			t.Fatal(err)
		}
		csv := &v1alpha1.ClusterServiceVersion{}
		if err := yaml.Unmarshal(files["manifests/shared-volume-operator.clusterserviceversion.yaml"], csv); err != nil {
			t.Fatal(err)
		}
		if got := csv.Annotations["features.operators.openshift.io/disconnected"]; got != c.want {
			t.Errorf("%s: disconnected is %q, want %q", about, got, c.want)
		}
	}
}

func TestTextsForAdministrators(t *testing.T) {
	project, err := readProject()
	if err != nil {
		t.Fatal(err)
	}
	dist, err := install.Files(project, source.ImagesOf(project))
	if err != nil {
		t.Fatal(err)
	}
	operators(t, func(t *testing.T, operator *source.Operator, bundle *manifests.Bundle) {
		message := bundle.CSV.Annotations["operator.openshift.io/uninstall-message"]
		for _, kind := range operator.Kinds {
			if command := "kubectl delete " + operator.CRD(kind.Name).Spec.Names.Singular + " NAME"; len(kind.Creates) > 0 != strings.Contains(message, command) {
				t.Errorf("the message before the removal: %s", message)
			}
		}
		if !strings.Contains(bundle.CSV.Spec.Description, "`dist/policies.yaml`") {
			t.Errorf("the description does not name the missing policies: %s", bundle.CSV.Spec.Description)
		}
		if !strings.Contains(string(dist["policies.yaml"]), "name: "+operator.Account) {
			t.Errorf("dist/policies.yaml has no policy of %s", operator.Account)
		}
	})
}

// TestRightsAreThoseOfConfig: a bundle gives an operator the rights that config gives, except
// the right to the RoleBindings that hand namespaces over.
func TestRightsAreThoseOfConfig(t *testing.T) {
	operators(t, func(t *testing.T, operator *source.Operator, bundle *manifests.Bundle) {
		want, got := map[string]bool{}, map[string]bool{}
		for _, object := range operator.Objects {
			kind, name := object.GetKind(), object.GetName()
			isUsers := strings.HasSuffix(name, "-editor") || strings.HasSuffix(name, "-viewer")
			if kind != "Role" && kind != "ClusterRole" || isUsers || strings.HasSuffix(name, "-namespaces") {
				continue
			}
			role := &rbacv1.ClusterRole{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
				t.Fatal(err)
			}
			add(want, role.Rules)
		}
		strategy := bundle.CSV.Spec.InstallStrategy.StrategySpec
		for _, permissions := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
			if permissions.ServiceAccountName != operator.Account {
				t.Errorf("rights of the account %s", permissions.ServiceAccountName)
			}
			add(got, permissions.Rules)
		}
		if difference := cmp.Diff(want, got); difference != "" || len(want) == 0 {
			t.Errorf("%d rights: %s", len(want), difference)
		}
	})
}

// add adds one entry for each group, resource, name and verb of rules.
func add(rights map[string]bool, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{"*"}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						rights[strings.Join([]string{group, resource, name, verb}, " ")] = true
					}
				}
			}
		}
	}
}
