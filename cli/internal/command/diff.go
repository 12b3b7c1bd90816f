package command

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"asterism.dev/lib/common/config"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/internal/apigroup"
)

// preview runs in a pod, with the pod's own merge-config, so that only the pod sees secrets.
//
//go:embed preview.py
var preview string

// parts is the folder of the files that a service reads.
const parts = "/etc/nova/nova.conf.d"

// change is an option whose values a snippet would change, in the output of config diff.
type change struct {
	Section string   `json:"section"`
	Name    string   `json:"name"`
	Before  []option `json:"before,omitempty"`
	After   []option `json:"after,omitempty"`
}

func newConfigDiff(env *environment) *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use:   "diff POD | KIND/NAME",
		Short: "Show the options that a snippet would change in a running service.",
		Long: `Show which options of a running pod would have another value or file with a snippet: of
--snippet FILE, or else with the present customServiceConfig of the service. Nothing is
changed. The pod computes the values with its own program, and masks secrets: a secret
that only gets another value is not shown. A warning names an option that Nova in the
image of the pod does not have, and would ignore.`,
		Example: `  kubectl asterism config diff novascheduler/demo-scheduler -n openstack --snippet new.conf
  kubectl asterism config diff demo-scheduler-0 -n openstack`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVarP(&file, "snippet", "f", "", "File with the snippet; - for the standard input. Default: customServiceConfig of the service")
	output := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, arguments []string) error {
		printer, err := output.printer()
		if err != nil {
			return err
		}
		changes, err := env.configurationChanges(cmd.Context(), arguments[0], file)
		if err != nil {
			return err
		}
		if printer != nil {
			return printDocument(env.Out, printer, "OptionChangeList", changes)
		}
		return env.writeChanges(changes)
	}
	return cmd
}

func (env *environment) configurationChanges(ctx context.Context, word, file string) ([]change, error) {
	access, err := env.connect()
	if err != nil {
		return nil, err
	}
	pod, err := podOf(ctx, access, word)
	if err != nil {
		return nil, err
	}
	snippet, err := env.snippet(ctx, access, pod, file)
	if err != nil {
		return nil, err
	}
	if err := config.CheckSnippet(snippet); err != nil {
		return nil, fmt.Errorf("the snippet: %w", err)
	}
	before, err := env.inPod(ctx, access, pod, nil, "cat", effective)
	if err != nil {
		return nil, err
	}
	after, err := env.inPod(ctx, access, pod, strings.NewReader(snippet),
		"python3", "-c", preview, path.Join(config.ScriptsDir, config.MergeConfig), parts, config.CustomPart)
	if err != nil {
		return nil, err
	}
	env.hintRefused(optionsOf(after))
	env.hintUnknown(after)
	return changesOf(optionsOf(before), optionsOf(after)), nil
}

// snippet returns the text of a file, or else of the service whose pod it is.
func (env *environment) snippet(ctx context.Context, access *cluster.Cluster, pod *corev1.Pod, file string) (string, error) {
	if file == "" {
		service, err := serviceOf(ctx, access, pod)
		if err != nil {
			return "", err
		}
		env.hint("Snippet: spec.customServiceConfig of %s %s", service.GetKind(), service.GetName())
		text, _, err := unstructured.NestedString(service.Object, "spec", "customServiceConfig")
		return text, err
	}
	content, err := env.read(file)
	return string(content), err
}

// serviceOf returns the object of Asterism's kinds that a pod belongs to.
func serviceOf(ctx context.Context, access *cluster.Cluster, pod *corev1.Pod) (*unstructured.Unstructured, error) {
	for owner := metav1.GetControllerOf(pod); owner != nil; {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
		if err := access.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, o); err != nil {
			return nil, fmt.Errorf("%s %s: %w", owner.Kind, owner.Name, err)
		}
		if apigroup.IsOwn(o.GroupVersionKind().Group) {
			return o, nil
		}
		owner = metav1.GetControllerOf(o)
	}
	return nil, errors.New("pod " + pod.Name + " belongs to no service of Nova: name the snippet with --snippet")
}

// hintRefused names the options of the snippet that the operator sets itself. Its condition
// ConfigReady would refuse the snippet.
func (env *environment) hintRefused(all []option) {
	for _, o := range all {
		isOwned := func(other option) bool {
			return other.Section == o.Section && other.Name == o.Name && other.File == config.ConnectionsPart
		}
		if o.File == config.CustomPart && slices.ContainsFunc(all, isOwned) {
			env.hint("warning: the operator refuses the snippet, because [%s] %s is set by the operator: remove the option", o.Section, o.Name)
		}
	}
}

// hintUnknown passes the warnings of preview.py on: Nova ignores an option that it does not know.
func (env *environment) hintUnknown(view string) {
	for line := range strings.Lines(view) {
		if warning, ok := strings.CutPrefix(line, "# warning: "); ok {
			env.hint("warning: %s", strings.TrimSpace(warning))
		}
	}
}

// changesOf compares the values that count, by option.
func changesOf(before, after []option) []change {
	type name struct{ section, name string }
	var order []name
	all := map[name]*change{}
	collect := func(options []option, add func(*change, option)) {
		for _, o := range options {
			key := name{o.Section, o.Name}
			if all[key] == nil {
				order = append(order, key)
				all[key] = &change{Section: o.Section, Name: o.Name}
			}
			if !o.Overridden {
				add(all[key], o)
			}
		}
	}
	collect(before, func(c *change, o option) { c.Before = append(c.Before, o) })
	collect(after, func(c *change, o option) { c.After = append(c.After, o) })
	slices.SortStableFunc(order, func(a, b name) int { // as the view does
		if (a.section == "DEFAULT") != (b.section == "DEFAULT") {
			if a.section == "DEFAULT" {
				return -1
			}
			return 1
		}
		return strings.Compare(a.section+"\n"+a.name, b.section+"\n"+b.name)
	})
	var changes []change
	for _, key := range order {
		if c := all[key]; !slices.Equal(c.Before, c.After) {
			changes = append(changes, *c)
		}
	}
	return changes
}

func (env *environment) writeChanges(changes []change) error {
	if len(changes) == 0 {
		env.hint("No option changes.")
	}
	var text strings.Builder
	section := ""
	for _, c := range changes {
		if c.Section != section {
			if section != "" {
				text.WriteString("\n")
			}
			section = c.Section
			fmt.Fprintf(&text, "[%s]\n", section)
		}
		for _, o := range c.Before {
			text.WriteString("- " + o.String() + "\n")
		}
		for _, o := range c.After {
			text.WriteString("+ " + o.String() + "\n")
		}
	}
	_, err := io.WriteString(env.Out, text.String())
	return err
}
