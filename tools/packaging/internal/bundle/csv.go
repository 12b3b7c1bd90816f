// Package bundle makes the OLM bundle of an operator: the ClusterServiceVersion, the
// manifests beside it, and the metadata.
package bundle

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"asterism.dev/tools/packaging/internal/source"
)

// Name is the name of an operator's ClusterServiceVersion, for example
// nova-api-operator.v0.1.0.
func Name(project *source.Project, operator *source.Operator) string {
	return operator.Package() + ".v" + project.Version
}

// clusterServiceVersion describes an operator for OLM.
func clusterServiceVersion(project *source.Project, operator *source.Operator, images Images, icon []byte) (*v1alpha1.ClusterServiceVersion, error) {
	number, err := semver.Parse(project.Version)
	if err != nil {
		return nil, fmt.Errorf("%s: version: %w", source.ProjectFile, err)
	}
	annotations, err := annotations(project, operator, images)
	if err != nil {
		return nil, err
	}
	csv := &v1alpha1.ClusterServiceVersion{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind},
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(project, operator), Annotations: annotations,
			Labels: map[string]string{
				"operatorframework.io/arch.amd64": "supported",
				"operatorframework.io/arch.arm64": "supported",
				"operatorframework.io/os.linux":   "supported",
			},
		},
		Spec: v1alpha1.ClusterServiceVersionSpec{
			DisplayName: operator.DisplayName, Description: operator.Description,
			Version: version.OperatorVersion{Version: number}, Maturity: "alpha", MinKubeVersion: project.MinKubeVersion,
			Keywords: project.Keywords, Provider: v1alpha1.AppLink{Name: project.Provider},
			Icon:                      []v1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(icon), MediaType: "image/svg+xml"}},
			InstallModes:              installModes(operator),
			InstallStrategy:           strategy(operator, images),
			CustomResourceDefinitions: definitions(project, operator),
		},
	}
	for _, maintainer := range project.Maintainers {
		csv.Spec.Maintainers = append(csv.Spec.Maintainers, v1alpha1.Maintainer(maintainer))
	}
	for _, link := range project.Links {
		csv.Spec.Links = append(csv.Spec.Links, v1alpha1.AppLink{Name: link.Name, URL: link.URL})
	}
	for _, image := range images.Of(operator) {
		csv.Spec.RelatedImages = append(csv.Spec.RelatedImages, v1alpha1.RelatedImage{Name: image.Name, Image: image.Reference})
	}
	return csv, nil
}

// features are properties that OpenShift's console shows. All images can be mirrored; an
// operator reads neither a proxy nor the TLS profile of the cluster, and has no account at
// a cloud.
var features = []string{
	"disconnected", "fips-compliant", "proxy-aware", "tls-profiles", "token-auth-aws", "token-auth-azure", "token-auth-gcp",
	"cnf", "cni", "csi",
}

// annotations are read by OpenShift's console, by the catalogs' pipelines and by
// certification.
func annotations(project *source.Project, operator *source.Operator, images Images) (map[string]string, error) {
	examples, err := samples(operator)
	if err != nil {
		return nil, err
	}
	created, err := time.Parse(time.RFC3339, project.Created)
	if err != nil {
		return nil, fmt.Errorf("%s: created: %w", source.ProjectFile, err)
	}
	all := map[string]string{
		"alm-examples":   examples,
		"capabilities":   "Basic Install",
		"categories":     strings.Join(operator.Categories, ","),
		"containerImage": images.Operator(operator),
		"createdAt":      created.Format(time.RFC3339),
		"description":    operator.Summary,
		"repository":     project.Repository,
		"support":        project.Support,

		"operatorframework.io/suggested-namespace": operator.Namespace,
	}
	if all["operatorframework.io/suggested-namespace-template"], err = namespaceTemplate(operator); err != nil {
		return nil, err
	}
	for _, feature := range features {
		all["features.operators.openshift.io/"+feature] = fmt.Sprint(feature == "disconnected" || feature == "csi" && operator.CSI)
	}
	if !operator.Standalone {
		all["operators.operatorframework.io/operator-type"] = "non-standalone"
	}
	if operator.InitialResource {
		initial, err := json.Marshal(operator.Samples[operator.CRDs[0].Spec.Names.Kind])
		if err != nil {
			return nil, err
		}
		all["operatorframework.io/initialization-resource"] = string(initial)
	}
	return all, nil
}

// namespaceTemplate is the namespace that the console offers to create.
func namespaceTemplate(operator *source.Operator) (string, error) {
	content, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{
			"name":   operator.Namespace,
			"labels": map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		},
	})
	return string(content), err
}

// samples are the examples of the kinds, one for each, in JSON.
func samples(operator *source.Operator) (string, error) {
	var all []any
	for _, crd := range operator.CRDs {
		all = append(all, operator.Samples[crd.Spec.Names.Kind].Object)
	}
	content, err := json.MarshalIndent(all, "", "  ")
	return string(content), err
}

func installModes(operator *source.Operator) []v1alpha1.InstallMode {
	named := !operator.ClusterWide
	return []v1alpha1.InstallMode{
		{Type: v1alpha1.InstallModeTypeOwnNamespace, Supported: named},
		{Type: v1alpha1.InstallModeTypeSingleNamespace, Supported: named},
		{Type: v1alpha1.InstallModeTypeMultiNamespace, Supported: named},
		{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true},
	}
}

// strategy is the Deployment with its rights. OLM writes the namespaces of the
// OperatorGroup to an annotation of the pods.
func strategy(operator *source.Operator, images Images) v1alpha1.NamedInstallStrategy {
	deployment := operator.Deployment.DeepCopy()
	SetImages(deployment, operator, images)
	container := source.Container(deployment)
	watched := corev1.EnvVar{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['olm.targetNamespaces']"},
	}}
	container.Env = append(slices.DeleteFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == watched.Name }), watched)
	details := v1alpha1.StrategyDetailsDeployment{
		DeploymentSpecs: []v1alpha1.StrategyDeploymentSpec{{Name: deployment.Name, Label: deployment.Labels, Spec: deployment.Spec}},
		Permissions:     []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: operator.Account, Rules: operator.NamespaceRules}},
	}
	if len(operator.ClusterRules) > 0 {
		details.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: operator.Account, Rules: operator.ClusterRules}}
	}
	return v1alpha1.NamedInstallStrategy{StrategyName: v1alpha1.InstallStrategyNameDeployment, StrategySpec: details}
}

// SetImages gives an operator's Deployment the images of a version.
func SetImages(deployment *appsv1.Deployment, operator *source.Operator, images Images) {
	container := source.Container(deployment)
	container.Image = images.Operator(operator)
	for _, image := range operator.Images {
		container.Env = append(container.Env, corev1.EnvVar{Name: image.Variable, Value: images.Operand(image)})
	}
}

// definitions are the operator's kinds, and the kinds of the operators that it requires.
func definitions(project *source.Project, operator *source.Operator) v1alpha1.CustomResourceDefinitions {
	var kinds v1alpha1.CustomResourceDefinitions
	for _, crd := range operator.CRDs {
		kind := described(crd)
		kind.Resources = resources(operator)
		kinds.Owned = append(kinds.Owned, kind)
	}
	for _, required := range operator.Requires {
		for _, crd := range project.Operator(required).CRDs {
			kind := described(crd)
			kind.SpecDescriptors, kind.StatusDescriptors = nil, nil
			kinds.Required = append(kinds.Required, kind)
		}
	}
	return kinds
}

// resources are the kinds that an operator may create in a namespace: the console lists
// objects of these kinds with their owner.
func resources(operator *source.Operator) []v1alpha1.APIResourceReference {
	var all []v1alpha1.APIResourceReference
	for _, rule := range append(slices.Clone(operator.NamespaceRules), operator.ClusterRules...) {
		if !slices.Contains(rule.Verbs, "create") {
			continue
		}
		for _, name := range rule.Resources {
			if kind, known := createdKinds[name]; known && !slices.Contains(all, kind) {
				all = append(all, kind)
			}
		}
	}
	return all
}

// createdKinds are the kinds that the operators create, by resource.
var createdKinds = map[string]v1alpha1.APIResourceReference{
	"configmaps":             core("ConfigMap"),
	"secrets":                core("Secret"),
	"services":               core("Service"),
	"persistentvolumeclaims": core("PersistentVolumeClaim"),
	"persistentvolumes":      core("PersistentVolume"),
	"deployments":            core("Deployment"),
	"statefulsets":           core("StatefulSet"),
	"daemonsets":             core("DaemonSet"),
	"jobs":                   core("Job"),
	"routes":                 core("Route"),
	"novas":                  own("Nova"),
	"novacells":              own("NovaCell"),
	"novaapis":               own("NovaAPI"),
	"novaconductors":         own("NovaConductor"),
	"novametadata":           own("NovaMetadata"),
	"novaschedulers":         own("NovaScheduler"),
	"sharedvolumes":          own("SharedVolume"),
}

func core(kind string) v1alpha1.APIResourceReference {
	return v1alpha1.APIResourceReference{Kind: kind, Version: "v1"}
}

func own(kind string) v1alpha1.APIResourceReference {
	return v1alpha1.APIResourceReference{Kind: kind, Version: "v1alpha1"}
}
