package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Releases of Helm.
const (
	release        = "asterism"
	storageRelease = "shared-volume"
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
		if err := p.createNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	args := append([]string{helm, "install", release, chart, "--namespace", systemNamespace}, p.installArguments()...)
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
	args := []string{helm, "install", storageRelease, chart, "--namespace", storageNamespace}
	p.run("Install the operator of shared volumes", append(args, p.installArguments()...)...)
	p.awaitOperators(storageNamespace)
	return nil
}

func (p *planner) installArguments() (args []string) {
	if p.TakeOwnership {
		args = append(args, "--take-ownership", "--force-conflicts")
	}
	if p.Registry != "" {
		args = append(args, "--set", "global.asterism.registry="+p.Registry)
	}
	return args
}

func (p *planner) dependencies(chart string) {
	p.run("Copy the operators' charts into the chart "+chart, helm, "dependency", "build", chart)
}

func (p *planner) upgradeHelm(ctx context.Context) error {
	chart, err := p.chart("asterism")
	if err != nil {
		return err
	}
	p.dependencies(chart)
	p.run("Upgrade the operators of the control plane", helm, "upgrade", release, chart, "--namespace", systemNamespace, "--reset-then-reuse-values")
	p.awaitOperators(systemNamespace)
	storage, err := p.hasSharedVolume(ctx)
	if err != nil || !storage {
		return err
	}
	if chart, err = p.chart("shared-volume-operator"); err != nil {
		return err
	}
	p.run("Upgrade the operator of shared volumes", helm, "upgrade", storageRelease, chart, "--namespace", storageNamespace, "--reset-then-reuse-values")
	p.awaitOperators(storageNamespace)
	return nil
}

func (p *planner) uninstallHelm(ctx context.Context) error {
	if err := p.refuseInUse(ctx); err != nil {
		return err
	}
	storage, err := p.hasSharedVolume(ctx)
	if err != nil {
		return err
	}
	p.run("Uninstall the operators of the control plane", helm, "uninstall", release, "--namespace", systemNamespace)
	if storage {
		p.run("Uninstall the operator of shared volumes", helm, "uninstall", storageRelease, "--namespace", storageNamespace)
	}
	return p.deleteDefinitions(ctx)
}
