package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/tree"
)

// Releases of Helm.
const (
	release        = "asterism"
	storageRelease = "shared-volume"
	removalSuffix  = "-removal" // of the Jobs that look for objects before a removal
)

func (p *planner) chart(name string) (string, error) {
	chart := filepath.Join(p.From, "charts", name)
	if _, err := os.Stat(filepath.Join(chart, "Chart.yaml")); err != nil {
		return "", fmt.Errorf("there is no chart %s: name the folder of a release or of a checkout with --from", chart)
	}
	return chart, nil
}

func (p *planner) installHelm(ctx context.Context) error {
	chart, err := p.chart("asterism")
	if err != nil {
		return err
	}
	if err := p.applyOperatorNamespaces(); err != nil {
		return err
	}
	for _, namespace := range p.Namespaces {
		if err := p.applyNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	args := append([]string{helm, "install", release, chart, namespaceFlag, systemNamespace}, p.installArguments()...)
	args = append(args, "--set", "global.asterism.watchNamespaces={"+strings.Join(p.Namespaces, ",")+"}")
	p.dependencies(chart)
	p.run("Install the operators of the control plane", args...)
	p.awaitOperators(systemNamespace)
	if !p.SharedVolume {
		return nil
	}
	return p.installSharedVolumeChart()
}

func (p *planner) installSharedVolumeChart() error {
	chart, err := p.chart("shared-volume-operator")
	if err != nil {
		return err
	}
	args := []string{helm, "install", storageRelease, chart, namespaceFlag, storageNamespace}
	p.run("Install the operator of shared volumes", append(args, p.installArguments()...)...)
	p.awaitOperators(storageNamespace)
	return nil
}

func (p *planner) installArguments() []string {
	args := p.limit()
	if p.TakeOwnership {
		args = append(args, "--take-ownership", "--force-conflicts")
	}
	if p.Registry != "" {
		args = append(args, "--set", "global.asterism.registry="+p.Registry)
	}
	return args
}

// limit is the time that Helm waits for its hooks. This program waits for the operators, and
// names the pod that does not start.
func (p *planner) limit() []string { return []string{"--timeout", p.Timeout.String()} }

func (p *planner) dependencies(chart string) {
	p.run("Copy the operators' charts into the chart "+chart, helm, "dependency", "build", chart)
}

func (p *planner) upgradeHelm(context.Context) error {
	if err := p.refuseNothing(); err != nil {
		return err
	}
	if p.has(systemNamespace) {
		chart, err := p.chart("asterism")
		if err != nil {
			return err
		}
		p.dependencies(chart)
		p.upgradeRelease("Upgrade the operators of the control plane", release, chart, systemNamespace)
		p.awaitOperators(systemNamespace)
	}
	if p.has(storageNamespace) {
		chart, err := p.chart("shared-volume-operator")
		if err != nil {
			return err
		}
		p.upgradeRelease("Upgrade the operator of shared volumes", storageRelease, chart, storageNamespace)
		p.awaitOperators(storageNamespace)
	}
	return nil
}

func (p *planner) upgradeRelease(title, release, chart, namespace string) {
	p.run(title, append([]string{helm, "upgrade", release, chart, namespaceFlag, namespace, "--reset-then-reuse-values"}, p.limit()...)...)
}

func (p *planner) uninstallHelm(ctx context.Context) error {
	if err := p.refuseInUse(ctx); err != nil {
		return err
	}
	if p.has(systemNamespace) {
		p.uninstallRelease("Uninstall the operators of the control plane", release, systemNamespace)
	}
	if p.has(storageNamespace) {
		p.uninstallRelease("Uninstall the operator of shared volumes", storageRelease, storageNamespace)
	}
	return p.deleteDefinitions(ctx)
}

// uninstallRelease adds a step that uninstalls a release. Helm first runs Jobs of the charts
// that look for objects, and does not tell why a Job does not start.
func (p *planner) uninstallRelease(title, release, namespace string) {
	args := []string{helm, "uninstall", release, namespaceFlag, namespace}
	c := p.command(append(args, p.limit()...)...)
	p.programs = append(p.programs, helm)
	p.add(title, c.String(), func(ctx context.Context, say func(string)) error {
		cause := p.watchRemoval(ctx, namespace, say)
		err := p.Run(ctx, c)
		state := cause()
		if err == nil || state == "" {
			return err
		}
		without := p.command(append(args, "--no-hooks")...)
		jobs := p.command(kubectl, deleteVerb, "jobs", namespaceFlag, namespace, "--selector", "app.kubernetes.io/part-of=asterism")
		return fmt.Errorf("%w. The check before the removal has not run: %s. Without this check, type\n  %s\n  %s", err, state, without, jobs)
	})
}

// watchRemoval says which pod of the check does not start, until the returned function is
// called, which returns the last such line; "" if the check has run. A Job ends after two
// minutes, and its pod is deleted then.
func (p *planner) watchRemoval(ctx context.Context, namespace string, say func(string)) func() string {
	watched, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	last := ""
	look := func() {
		if state, exists := p.removalState(ctx, namespace); exists {
			last = state
		}
	}
	group.Go(func() {
		for {
			select {
			case <-watched.Done():
				return
			case <-time.After(interval):
			}
			if look(); last != "" {
				say(last)
			}
		}
	})
	return func() string {
		cancel()
		group.Wait()
		look()
		return last
	}
}

// removalState explains a pod of the check that does not start, "" if all have started, and
// tells whether there is such a pod. An error of the API server may pass.
func (p *planner) removalState(ctx context.Context, namespace string) (state string, exists bool) {
	pods, err := p.list(ctx, cluster.Pod, namespace)
	if err != nil {
		return "", false
	}
	forest := tree.New(pods)
	for _, pod := range pods {
		if !strings.HasSuffix(pod.GetLabels()["batch.kubernetes.io/job-name"], removalSuffix) {
			continue
		}
		exists = true
		if cause := forest.CauseOf(pod); cause != nil && field(pod, "status", "phase") == "Pending" {
			state = cause.String()
		}
	}
	return state, exists
}
