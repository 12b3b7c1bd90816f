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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"asterism.dev/tools/internal/source"
)

// Name is the name of an operator's ClusterServiceVersion, for example
// nova-api-operator.v0.1.0.
func Name(project *source.Project, operator *source.Operator) string {
	return operator.Package() + ".v" + project.Version
}

// clusterServiceVersion describes an operator for OLM.
func clusterServiceVersion(project *source.Project, operator *source.Operator, images source.Images, icon []byte) (*v1alpha1.ClusterServiceVersion, error) {
	number, err := semver.Parse(project.Version)
	if err != nil {
		return nil, fmt.Errorf("%s: version: %w", source.ProjectFile, err)
	}
	annotations, err := annotations(project, operator, images)
	if err != nil {
		return nil, err
	}
	kinds, err := definitions(project, operator)
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
			DisplayName: operator.DisplayName, Description: Description(operator),
			Version: version.OperatorVersion{Version: number}, Maturity: "alpha", MinKubeVersion: project.MinKubeVersion,
			Keywords: project.Keywords, Provider: v1alpha1.AppLink{Name: project.Provider},
			Icon:                      []v1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(icon), MediaType: "image/svg+xml"}},
			InstallModes:              installModes(operator),
			InstallStrategy:           strategy(operator, images),
			CustomResourceDefinitions: kinds,
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

// Capabilities is the level of the operators in catalogs: OLM and Helm upgrade an operator, and
// a new image in the resource upgrades what the operator runs.
const Capabilities = "Seamless Upgrades"

// missingPolicies is the end of every description.
const missingPolicies = "\nA bundle cannot contain NetworkPolicies and ValidatingAdmissionPolicies: before the installation,\n" +
	"apply `dist/policies.yaml`, whose policies limit what a stolen token of the operator can do.\n"

// Description is the description of an operator's package, in Markdown.
func Description(operator *source.Operator) string { return operator.Description + missingPolicies }

// features are properties that OpenShift's console shows. A mirror can replace images by
// digest alone; an operator reads neither a proxy nor the TLS profile of the cluster, and has
// no account at a cloud.
var features = []string{
	"disconnected", "fips-compliant", "proxy-aware", "tls-profiles", "token-auth-aws", "token-auth-azure", "token-auth-gcp",
	"cnf", "cni", "csi",
}

// annotations are read by OpenShift's console, by the catalogs' pipelines and by
// certification.
func annotations(project *source.Project, operator *source.Operator, images source.Images) (map[string]string, error) {
	examples, err := samples(operator)
	if err != nil {
		return nil, err
	}
	all := map[string]string{
		"alm-examples":   examples,
		"capabilities":   Capabilities,
		"categories":     strings.Join(operator.Categories, ","),
		"containerImage": images.Operator(operator),
		"createdAt":      project.Created.Format(time.RFC3339),
		"description":    operator.Summary,
		"repository":     project.Repository,
		"support":        project.Support,

		"operatorframework.io/suggested-namespace": operator.Namespace,
		"operator.openshift.io/uninstall-message":  uninstallMessage(operator),
	}
	if all["operatorframework.io/suggested-namespace-template"], err = namespaceTemplate(operator); err != nil {
		return nil, err
	}
	for _, feature := range features {
		has := feature == "disconnected" && images.AllPinned(operator) || feature == "csi" && operator.CSI
		all["features.operators.openshift.io/"+feature] = fmt.Sprint(has)
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

// uninstallMessage is what the console shows before the removal of an operator.
func uninstallMessage(operator *source.Operator) string {
	var names, commands []string
	for _, kind := range operator.Kinds {
		crd := operator.CRD(kind.Name)
		if len(kind.Creates) == 0 {
			continue // the operator deletes nothing for this kind
		}
		command := "kubectl delete " + crd.Spec.Names.Singular + " NAME"
		if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
			command += " --namespace NAMESPACE"
		}
		names, commands = append(names, crd.Spec.Names.Plural), append(commands, "`"+command+"`")
	}
	message := "Delete the objects of the operator's kinds before the operator: without the operator, their deletion does not end. " +
		"List the objects: `kubectl get " + strings.Join(names, ",") + " --all-namespaces`. Delete each object: " + strings.Join(commands, ", then ") + "."
	if !operator.Standalone {
		message += " An object that a ControlPlane has created is deleted with the ControlPlane."
	}
	return message
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
func strategy(operator *source.Operator, images source.Images) v1alpha1.NamedInstallStrategy {
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
func SetImages(deployment *appsv1.Deployment, operator *source.Operator, images source.Images) {
	container := source.Container(deployment)
	container.Image = images.Operator(operator)
	for _, image := range operator.Images {
		container.Env = append(container.Env, corev1.EnvVar{Name: image.Variable, Value: images.Operand(image)})
	}
}

// definitions are the operator's kinds, and the kinds of the required operators that the
// operator creates.
func definitions(project *source.Project, operator *source.Operator) (kinds v1alpha1.CustomResourceDefinitions, err error) {
	children, err := resources(operator)
	if err != nil {
		return kinds, err
	}
	for _, crd := range operator.CRDs {
		kind, err := described(crd)
		if err != nil {
			return kinds, err
		}
		kind.Resources = children[crd.Spec.Names.Kind]
		kinds.Owned = append(kinds.Owned, kind)
	}
	rights := created(operator)
	for _, required := range operator.Requires {
		for _, crd := range project.Operator(required).CRDs {
			if !rights[schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}] {
				continue
			}
			kind, err := described(crd)
			if err != nil {
				return kinds, err
			}
			kind.SpecDescriptors, kind.StatusDescriptors = nil, nil
			kinds.Required = append(kinds.Required, kind)
		}
	}
	return kinds, nil
}
