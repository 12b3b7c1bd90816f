package command

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/internal/apigroup"
	"asterism.dev/cli/internal/mask"
	"asterism.dev/cli/internal/meaning"
	"asterism.dev/cli/tree"
)

// explanation is the command explain.
type explanation struct {
	*environment
	book    meaning.Book
	masker  *mask.Masker
	cluster *cluster.Cluster
	// unmasked is why the masker does not know the Secrets.
	unmasked error
}

func newExplain(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [KIND/NAME] [CONDITION | REASON]",
		Short: "Explain a condition or a reason, and its state in an object.",
		Long: `Explain what a condition or a reason means. With KIND/NAME, also show the condition of
this object, the meaning of its reason, the cause, the events of the object and of the
child that the message names, and the end of the log of a container that is not ready.
Without a condition, the first condition of the object that is not True is explained.
Without arguments, the conditions of every kind are listed.`,
		Example: `  kubectl asterism explain
  kubectl asterism explain Mapped
  kubectl asterism explain JobFailed
  kubectl asterism explain novacell/demo-cell1 -n openstack
  kubectl asterism explain novacell/demo-cell1 HostsMapped -n openstack`,
		Args: cobra.MaximumNArgs(2),
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, arguments []string, typed string) ([]string, cobra.ShellCompDirective) {
		book, err := meaning.Read()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		if len(arguments) > 0 {
			word, _, _ := strings.Cut(arguments[0], "/")
			kind, _ := cluster.KindOf(word) // no kind has all conditions
			return book.Types(kind.Kind), cobra.ShellCompDirectiveNoFileComp
		}
		objects, directive := env.completeObject(cmd, arguments, typed)
		return append(book.Types(""), objects...), directive
	}
	cmd.RunE = func(cmd *cobra.Command, arguments []string) error {
		book, err := meaning.Read()
		if err != nil {
			return err
		}
		e := &explanation{environment: env, book: book, masker: mask.New()}
		switch {
		case len(arguments) == 0:
			return e.list()
		case strings.Contains(arguments[0], "/"):
			return e.object(cmd.Context(), arguments[0], strings.Join(arguments[1:], ""))
		case len(arguments) == 1:
			return e.word(arguments[0])
		}
		return fmt.Errorf("%q is no object: write KIND/NAME, such as novacell/demo-cell1", arguments[0])
	}
	return cmd
}

// list lists the conditions of all kinds.
func (e *explanation) list() error {
	rows := [][]string{{"KIND", "CONDITIONS, IN THEIR ORDER"}}
	for _, kind := range e.book.Kinds() {
		var types []string
		for _, c := range e.book.Stages[kind] {
			types = append(types, c.Type)
		}
		rows = append(rows, []string{kind, strings.Join(types, " ")})
	}
	var common []string
	for _, c := range e.book.Common {
		common = append(common, c.Type)
	}
	return e.table(append(rows, []string{"(all kinds)", strings.Join(common, " ")}))
}

// word explains a condition of any kind, or a reason.
func (e *explanation) word(word string) error {
	condition, texts := e.book.Of("", word)
	reason, text := e.book.Reason(word)
	if condition == "" && reason == "" {
		return fmt.Errorf("%q is neither a condition nor a reason: \"kubectl asterism explain\" lists the conditions", word)
	}
	for _, t := range texts {
		e.meaning(condition, t)
	}
	if reason != "" {
		e.section("Reason "+reason, text)
	}
	return nil
}

func (e *explanation) meaning(condition string, t meaning.Text) {
	title := "Condition " + condition
	if len(t.Kinds) > 0 {
		title += " of " + strings.Join(t.Kinds, ", ")
	}
	e.section(title, t.Text)
}

func (e *explanation) section(title, text string) {
	_, _ = fmt.Fprintf(e.Out, "%s\n", title)
	for line := range strings.Lines(wrap(text)) {
		_, _ = fmt.Fprintln(e.Out, strings.TrimRight("  "+line, " \n"))
	}
	_, _ = fmt.Fprintln(e.Out)
}

// object explains a condition of an object; the first that is not True, if it is empty.
func (e *explanation) object(ctx context.Context, reference, condition string) (err error) {
	word, name, _ := strings.Cut(reference, "/")
	kind, err := cluster.KindOf(word)
	if err != nil {
		return err
	}
	if !apigroup.IsOwn(kind.Group) {
		return fmt.Errorf("%s is not a kind of Asterism: use kubectl describe", kind.Kind)
	}
	if e.cluster, err = e.connect(); err != nil {
		return err
	}
	namespace := e.cluster.Namespace
	if slices.Contains(cluster.OwnClusterScoped(), kind) {
		namespace = ""
	}
	all := kinds()
	if !slices.Contains(all, kind) {
		all = append(all, kind)
	}
	objects, unread, err := e.cluster.Objects(ctx, namespace, all...)
	if err != nil {
		return err
	}
	e.hintUnread(unread)
	if namespace != "" { // a cause or an event may quote what a program has written
		e.unmasked = learnSecrets(ctx, e.cluster, e.masker, namespace)
	}
	forest := tree.New(objects)
	found := forest.Find(kind.Kind, name)
	if len(found) == 0 {
		return fmt.Errorf("namespace %s has no %s %s: check the name and -n", e.cluster.Namespace, kind.Kind, name)
	}
	return e.state(ctx, forest, found[0], condition)
}

func (e *explanation) state(ctx context.Context, forest *tree.Forest, o *unstructured.Unstructured, wanted string) error {
	name := tree.First(o).Type
	if wanted != "" {
		if name, _ = e.book.Of(o.GetKind(), wanted); name == "" {
			return fmt.Errorf("%s has no condition %q: its conditions are %s", o.GetKind(), wanted, strings.Join(e.book.Types(o.GetKind()), ", "))
		}
	}
	_, texts := e.book.Of(o.GetKind(), name)
	for _, t := range texts {
		e.meaning(name, t)
	}
	now := tree.Condition(o, name)
	e.section(o.GetKind()+"/"+o.GetName(), e.stateText(o, name))
	if _, text := e.book.Reason(now.Reason); text != "" {
		e.section("Reason "+now.Reason, text)
	}
	if cause := forest.CauseOf(o); cause != nil && (cause.Kind != o.GetKind() || cause.Name != o.GetName()) {
		e.section("Cause", e.masker.Text(cause.String()))
	}
	if path := forest.Path(o); len(path) > 0 {
		e.log(ctx, path[len(path)-1])
	}
	about := []*unstructured.Unstructured{o}
	if child := forest.Named(o, now.Message); child != nil {
		about = append(about, child)
	}
	return e.events(ctx, about)
}

// stateText is preformatted: each line begins with a space.
func (e *explanation) stateText(o *unstructured.Unstructured, name string) string {
	c := tree.Condition(o, name)
	if c.Type == "" {
		return strings.TrimSpace("the object has no condition " + cmp.Or(name, "yet") + ". " + tree.StateOf(o).Message)
	}
	lines := []string{
		fmt.Sprintf(" status   %s, since %s (%s)", c.Status, c.LastTransitionTime.UTC().Format(time.RFC3339), duration.HumanDuration(e.now().Sub(c.LastTransitionTime.Time))),
		" reason   " + c.Reason,
	}
	if c.Message != "" {
		lines = append(lines, " message  "+e.masker.Text(strings.Join(strings.Fields(c.Message), " ")))
	}
	if c.ObservedGeneration < o.GetGeneration() {
		lines = append(lines, fmt.Sprintf(" note     the condition is of generation %d, and the object has generation %d: the operator has not seen the newest spec", c.ObservedGeneration, o.GetGeneration()))
	}
	return strings.Join(lines, "\n")
}

// Bounds of the end of a log in an explanation.
const (
	maxLogLines = 10
	maxLogSize  = 256 << 10 // bytes
)

// log shows the end of the log of a pod's container that is not ready.
func (e *explanation) log(ctx context.Context, pod *unstructured.Unstructured) {
	trouble := tree.TroubleOf(pod)
	if pod.GetKind() != cluster.Pod.Kind || !trouble.Logged {
		return
	}
	options := &corev1.PodLogOptions{Container: trouble.Container, Previous: trouble.Previous, TailLines: new(int64(maxLogLines)), LimitBytes: new(int64(maxLogSize))}
	content, err := e.cluster.Log(ctx, client.ObjectKeyFromObject(pod), options)
	if err != nil {
		e.hint("warning: the log of Pod %s cannot be read: %v", pod.GetName(), err)
		return
	}
	if len(content) >= maxLogSize {
		content = content[:bytes.LastIndexByte(content, '\n')+1] // a part of a secret would not be recognized
	}
	if e.unmasked != nil {
		e.hint("warning: %v", e.unmasked)
	}
	title := fmt.Sprintf("Log of Pod/%s, container %s", pod.GetName(), trouble.Container)
	if trouble.Previous {
		title += ", its last run"
	}
	text := strings.TrimSpace(e.masker.Text(string(content)))
	e.section(title, " "+strings.ReplaceAll(text, "\n", "\n ")) // preformatted
}

// maxEvents bounds the events of one object. The newest are shown.
const maxEvents = 10

// events shows the newest events of each object.
func (e *explanation) events(ctx context.Context, about []*unstructured.Unstructured) error {
	var list corev1.EventList
	if err := e.cluster.WithWatch.List(ctx, &list, client.InNamespace(about[0].GetNamespace())); err != nil {
		e.hint("warning: events cannot be listed: %v", err)
		return nil
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return lastSeen(a).Compare(lastSeen(b)) })
	for _, o := range about {
		var lines []string
		for _, event := range list.Items {
			if event.InvolvedObject.UID == o.GetUID() {
				age := duration.HumanDuration(e.now().Sub(lastSeen(event)))
				lines = append(lines, fmt.Sprintf(" %-5s %-8s %s: %s", age, event.Type, event.Reason, e.masker.Text(strings.Join(strings.Fields(event.Message), " "))))
			}
		}
		if len(lines) == 0 {
			lines = []string{"none"}
		}
		e.section("Events of "+o.GetKind()+"/"+o.GetName(), strings.Join(lines[max(0, len(lines)-maxEvents):], "\n"))
	}
	return nil
}

func lastSeen(event corev1.Event) time.Time {
	series := ptr.Deref(event.Series, corev1.EventSeries{}) // of events.k8s.io
	for _, at := range []time.Time{series.LastObservedTime.Time, event.LastTimestamp.Time, event.EventTime.Time} {
		if !at.IsZero() {
			return at
		}
	}
	return event.CreationTimestamp.Time
}
