// Package install installs, upgrades and removes the operators as the pages of docs describe:
// with OLM through the API server, with Helm and kubectl through these programs.
package install

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"asterism.dev/cli/cluster"
)

// Ways to install.
const (
	OLM     = "olm"
	Helm    = "helm"
	Kubectl = "kubectl"
)

// Ways are the values of --with.
var Ways = []string{OLM, Helm, Kubectl}

// Namespaces of the operators.
const (
	systemNamespace  = "asterism-system"
	storageNamespace = "asterism-storage"
)

// Options of a plan.
type Options struct {
	With         string
	From         string   // folder of a release, of a checkout, or of a kustomization
	Namespaces   []string // of ControlPlanes
	SharedVolume bool     // also install the operator of shared volumes
	// CatalogNamespace is the namespace of the CatalogSource, and Catalog its image, empty for
	// the image of the release. Channel is that of the Subscriptions.
	CatalogNamespace, Catalog, Channel string
	// Registry is the host and path of the images that Helm installs; empty for that of the
	// charts.
	Registry string
	// TakeOwnership lets Helm take objects over that kubectl has installed.
	TakeOwnership bool
	DeleteCRDs    bool
	Timeout       time.Duration // of each wait
	// Run runs a program; Kubectl and Helm are options that select the cluster.
	Run           func(context.Context, Command) error
	Kubectl, Helm []string
}

// Plan is a list of steps.
type Plan struct {
	Steps []Step
	// Programs are the names of the programs that the steps run.
	Programs []string
}

// Step is one action of a plan.
type Step struct {
	Title string
	Text  string // a command line, or objects
	do    func(ctx context.Context, say func(string)) error
}

// planner makes plans.
type planner struct {
	Options
	cluster  *cluster.Cluster
	found    map[string]installed // by namespace of the operators
	steps    []Step
	programs []string // that the steps run
}

func (p *planner) add(title, text string, do func(context.Context, func(string)) error) {
	p.steps = append(p.steps, Step{Title: title, Text: text, do: do})
}

// Install returns the plan of an installation.
func Install(ctx context.Context, c *cluster.Cluster, options Options) (Plan, error) {
	return plan(ctx, c, options, (*planner).refuseInstalled, map[string]func(*planner, context.Context) error{
		OLM: (*planner).installOLM, Helm: (*planner).installHelm, Kubectl: (*planner).installKubectl,
	})
}

// Upgrade returns the plan of an upgrade to the release of the folder. It includes the
// operator of shared volumes if the cluster has it.
func Upgrade(ctx context.Context, c *cluster.Cluster, options Options) (Plan, error) {
	return plan(ctx, c, options, (*planner).refuseOnlyOtherWays, map[string]func(*planner, context.Context) error{
		OLM: (*planner).upgradeOLM, Helm: (*planner).upgradeHelm, Kubectl: (*planner).upgradeKubectl,
	})
}

// Uninstall returns the plan of a removal, with the operator of shared volumes if the cluster
// has it.
func Uninstall(ctx context.Context, c *cluster.Cluster, options Options) (Plan, error) {
	return plan(ctx, c, options, (*planner).refuseOnlyOtherWays, map[string]func(*planner, context.Context) error{
		OLM: (*planner).uninstallOLM, Helm: (*planner).uninstallHelm, Kubectl: (*planner).uninstallKubectl,
	})
}

func plan(ctx context.Context, c *cluster.Cluster, options Options, refuse func(*planner) error, ways map[string]func(*planner, context.Context) error) (Plan, error) {
	add, known := ways[options.With]
	if !known {
		return Plan{}, fmt.Errorf("--with %q is not known: use one of %s", options.With, strings.Join(Ways, ", "))
	}
	p := &planner{Options: options, cluster: c}
	if err := p.look(ctx); err != nil {
		return Plan{}, err
	}
	if err := refuse(p); err != nil {
		return Plan{}, err
	}
	err := add(p, ctx)
	return Plan{Steps: p.steps, Programs: p.programs}, err
}

// Write writes the steps with their commands and objects.
func (p Plan) Write(out io.Writer) error {
	for i, step := range p.Steps {
		text := fmt.Sprintf("# %d. %s\n", i+1, step.Title)
		if step.Text != "" {
			text += strings.TrimRight(step.Text, "\n") + "\n"
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	return nil
}

// Run runs the steps. It reports each step, each new state of a wait and, at least every
// quarter of a minute, the time since the start of the step.
func (p Plan) Run(ctx context.Context, out io.Writer, now func() time.Time) error {
	for i, step := range p.Steps {
		_, _ = fmt.Fprintf(out, "[%d/%d] %s\n", i+1, len(p.Steps), step.Title)
		r := &reporter{out: out, now: now, started: now(), state: "running"}
		stop := r.repeat()
		err := step.do(ctx, r.say)
		stop()
		if err != nil {
			return fmt.Errorf("step %d of %d: %w", i+1, len(p.Steps), err)
		}
		if r.elapsed() >= time.Second {
			r.line("done")
		}
	}
	return nil
}

// reporter writes lines about one step.
type reporter struct {
	sync.Mutex
	out     io.Writer
	now     func() time.Time
	started time.Time
	state   string
}

const repeatAfter = 15 * time.Second

func (r *reporter) elapsed() time.Duration { return r.now().Sub(r.started).Round(time.Second) }

func (r *reporter) line(state string) {
	_, _ = fmt.Fprintf(r.out, "%10s  %s\n", r.elapsed(), state)
}

// say writes a state that is new.
func (r *reporter) say(state string) {
	r.Lock()
	defer r.Unlock()
	if state != r.state {
		r.state = state
		r.line(state)
	}
}

// repeat writes the last state again and again, until stop is called.
func (r *reporter) repeat() (stop func()) {
	ticker, done := time.NewTicker(repeatAfter), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				r.Lock()
				r.line(r.state)
				r.Unlock()
			}
		}
	})
	return func() {
		ticker.Stop()
		close(done)
		group.Wait()
	}
}
