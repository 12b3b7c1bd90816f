package bundle_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	schema "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"

	"asterism.dev/tools/internal/source"
)

const root = "../../../.."

var readProject = sync.OnceValues(func() (*source.Project, error) { return source.Read(root) })

// operators calls test for the committed bundle of each operator.
func operators(t *testing.T, test func(t *testing.T, operator *source.Operator, bundle *manifests.Bundle)) {
	t.Helper()
	project, err := readProject()
	if err != nil {
		t.Fatal(err)
	}
	if len(project.Operators) == 0 {
		t.Fatal("the project has no operators")
	}
	for _, operator := range project.Operators {
		t.Run(operator.Name, func(t *testing.T) {
			bundle, err := manifests.GetBundleFromDir(filepath.Join(root, "operators", operator.Name, "bundle"))
			if err != nil {
				t.Fatal(err)
			}
			test(t, operator, bundle)
		})
	}
}

// validators are all validators of operator-framework/api, except OperatorHubValidator,
// which is deprecated, and MultipleArchitecturesValidator, which pulls the images.
var validators = map[string]validator.Validator{
	"PackageManifest":       validation.PackageManifestValidator,
	"ClusterServiceVersion": validation.ClusterServiceVersionValidator,
	"CRD":                   validation.CustomResourceDefinitionValidator,
	"Bundle":                validation.BundleValidator,
	"OperatorHubV2":         validation.OperatorHubV2Validator,
	"StandardCategories":    validation.StandardCategoriesValidator,
	"StandardCapabilities":  validation.StandardCapabilitiesValidator,
	"Object":                validation.ObjectValidator,
	"OperatorGroup":         validation.OperatorGroupValidator,
	"Community":             validation.CommunityOperatorValidator,
	"AlphaDeprecatedAPIs":   validation.AlphaDeprecatedAPIsValidator,
	"GoodPractices":         validation.GoodPracticesValidator,
}

func TestValidatorsAcceptBundles(t *testing.T) {
	operators(t, func(t *testing.T, _ *source.Operator, bundle *manifests.Bundle) {
		for name, validator := range validators {
			objects := append(bundle.ObjectsToValidate(), map[string]string{"k8s-version": "1.37"})
			for _, object := range bundle.Objects {
				objects = append(objects, object)
			}
			for _, result := range validator.Validate(objects...) {
				for _, problem := range append(result.Errors, result.Warnings...) {
					t.Errorf("%s: %s", name, problem.Error())
				}
			}
		}
	})
}

// TestKindsAreSupported: OLM installs CRDs and ClusterRoles of a bundle, which have the label
// of the project. It refuses
// ValidatingAdmissionPolicies, and OpenShift's pipelines refuse NetworkPolicies.
func TestKindsAreSupported(t *testing.T) {
	operators(t, func(t *testing.T, _ *source.Operator, bundle *manifests.Bundle) {
		for _, object := range bundle.Objects {
			if kind := object.GetKind(); !slices.Contains([]string{"ClusterServiceVersion", "CustomResourceDefinition", "ClusterRole"}, kind) {
				t.Errorf("%s %s", kind, object.GetName())
			} else if kind != "ClusterServiceVersion" && object.GetLabels()["app.kubernetes.io/part-of"] != "asterism" {
				t.Errorf("%s %s lacks the label of the project", kind, object.GetName())
			}
		}
	})
}

// TestExamples: the checks of operator-sdk's scorecard.
func TestExamples(t *testing.T) {
	operators(t, func(t *testing.T, operator *source.Operator, bundle *manifests.Bundle) {
		var examples []map[string]any
		if err := json.Unmarshal([]byte(bundle.CSV.Annotations["alm-examples"]), &examples); err != nil {
			t.Fatal(err)
		}
		if len(examples) != len(operator.CRDs) {
			t.Errorf("%d examples for %d kinds", len(examples), len(operator.CRDs))
		}
		for i, crd := range operator.CRDs {
			if kind := examples[i]["kind"]; kind != crd.Spec.Names.Kind {
				t.Errorf("example of %v at the place of %s", kind, crd.Spec.Names.Kind)
			}
			checkSchema(t, crd, examples[i])
			checkDescriptors(t, bundle.CSV, crd, examples[i])
		}
	})
}

func checkSchema(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, example map[string]any) {
	t.Helper()
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := schema.NewSchemaValidator(&internal)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range schema.ValidateCustomResource(nil, example, validator) {
		t.Errorf("the example of %s: %v", crd.Spec.Names.Kind, err)
	}
}

func checkDescriptors(t *testing.T, csv *v1alpha1.ClusterServiceVersion, crd *apiextensionsv1.CustomResourceDefinition, example map[string]any) {
	t.Helper()
	owned := csv.Spec.CustomResourceDefinitions.Owned
	i := slices.IndexFunc(owned, func(d v1alpha1.CRDDescription) bool { return d.Name == crd.Name })
	if i < 0 {
		t.Fatalf("%s is not owned", crd.Name)
	}
	if len(owned[i].Resources) == 0 && !slices.Contains([]string{"SharedVolumePolicy", "SharedFileSystem"}, crd.Spec.Names.Kind) { // the kinds without children
		t.Errorf("%s has no resources", crd.Name)
	}
	spec, _ := example["spec"].(map[string]any)
	for field := range spec {
		if !slices.ContainsFunc(owned[i].SpecDescriptors, func(d v1alpha1.SpecDescriptor) bool {
			first, _, _ := strings.Cut(d.Path, ".")
			return first == field
		}) {
			t.Errorf("spec.%s of %s has no descriptor", field, crd.Name)
		}
	}
	if !slices.ContainsFunc(owned[i].StatusDescriptors, func(d v1alpha1.StatusDescriptor) bool { return d.Path == "conditions" }) {
		t.Errorf("%s has no descriptor of its conditions", crd.Name)
	}
}

// TestCertification: checks that certification makes without a cluster.
func TestCertification(t *testing.T) {
	operators(t, func(t *testing.T, _ *source.Operator, bundle *manifests.Bundle) {
		for _, feature := range []string{"disconnected", "fips-compliant", "proxy-aware", "tls-profiles", "token-auth-aws", "token-auth-azure", "token-auth-gcp"} {
			if value := bundle.CSV.Annotations["features.operators.openshift.io/"+feature]; value != "true" && value != "false" {
				t.Errorf("feature %s is %q", feature, value)
			}
		}
		related := map[string]bool{}
		for _, image := range bundle.CSV.Spec.RelatedImages {
			related[image.Image] = true
		}
		if len(images(bundle.CSV)) == 0 {
			t.Error("the Deployments have no images")
		}
		for _, image := range images(bundle.CSV) {
			if !related[image] {
				t.Errorf("relatedImages lacks %s", image)
			}
		}
	})
}

// images returns the images of the containers, and of variables RELATED_IMAGE.
func images(csv *v1alpha1.ClusterServiceVersion) (all []string) {
	for _, deployment := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			all = append(all, container.Image)
			for _, variable := range container.Env {
				if strings.HasPrefix(variable.Name, "RELATED_IMAGE_") {
					all = append(all, variable.Value)
				}
			}
		}
	}
	return all
}

// TestBundlesGiveNoRightsOnOLM: OLM itself gives an operator the rights on its own
// OperatorCondition. A right in a bundle would be one on all OperatorConditions.
func TestBundlesGiveNoRightsOnOLM(t *testing.T) {
	operators(t, func(t *testing.T, _ *source.Operator, bundle *manifests.Bundle) {
		strategy := bundle.CSV.Spec.InstallStrategy.StrategySpec
		for _, permission := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
			for _, rule := range permission.Rules {
				if slices.Contains(rule.APIGroups, "operators.coreos.com") || slices.Contains(rule.APIGroups, "*") {
					t.Errorf("%v", rule)
				}
			}
		}
	})
}

// TestDeploymentIsThatOfConfig: the bundle's Deployment differs from config only in the
// variable WATCH_NAMESPACE, images, and what OLM adds.
func TestDeploymentIsThatOfConfig(t *testing.T) {
	operators(t, func(t *testing.T, operator *source.Operator, bundle *manifests.Bundle) {
		packaged := bundle.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
		if packaged.Name != operator.Deployment.Name {
			t.Errorf("Deployment %s instead of %s", packaged.Name, operator.Deployment.Name)
		}
		want := operator.Deployment.DeepCopy().Spec
		want.Template.Spec.Containers[0].Image = packaged.Spec.Template.Spec.Containers[0].Image
		without := func(env []corev1.EnvVar) []corev1.EnvVar {
			return slices.DeleteFunc(env, func(v corev1.EnvVar) bool {
				return v.Name == "WATCH_NAMESPACE" || strings.HasPrefix(v.Name, "RELATED_IMAGE_")
			})
		}
		for _, spec := range []*corev1.PodSpec{&want.Template.Spec, &packaged.Spec.Template.Spec} {
			spec.Containers[0].Env = without(spec.Containers[0].Env)
		}
		if difference := cmp.Diff(want, packaged.Spec); difference != "" {
			t.Error(difference)
		}
	})
}
