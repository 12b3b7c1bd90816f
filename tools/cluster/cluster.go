package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"text/template"
	"time"
)

const (
	// startTimeout bounds how long a started component may take to be healthy.
	startTimeout = 90 * time.Second
	// healTimeout bounds how long a running one may, before it is restarted:
	// an earlier run may have been killed while it was starting.
	healTimeout  = 15 * time.Second
	pollInterval = 50 * time.Millisecond
)

// cluster is one Kubernetes with its state in a folder.
type cluster struct {
	dir      string
	state    *state
	folders  []string // of the binaries
	progress *progress
	client   *http.Client
}

// openCluster names the folder; nothing is read yet.
func openCluster(dir string) (*cluster, error) {
	if dir == "" {
		root, err := repositoryRoot()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(root, ".cluster")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	// One folder has one name, as processes are recognised by it.
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	} else if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = filepath.Join(parent, filepath.Base(dir))
	}
	return &cluster{dir: dir, progress: newProgress(os.Stdout)}, nil
}

// binary is the path of a built binary.
func (c *cluster) binary(name string) string {
	for _, folder := range c.folders {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return name
}

func (c *cluster) lock() (unlock func(), err error) {
	return lock(filepath.Join(c.dir, lockFile), func() {
		c.progress.say("waiting for another command on %s", c.dir)
	})
}

// up starts what does not run, and restarts what runs otherwise than it should.
func (c *cluster) up(ctx context.Context, controlPlaneOnly bool) error {
	if err := c.checkDirectory(); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	defer c.leaveNothing()
	if err := c.loadState(ctx, controlPlaneOnly); err != nil {
		return err
	}
	if c.state.Mode == full {
		if err := c.checkMachine(ctx); err != nil {
			return err
		}
	}
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	if c.folders, err = buildBinaries(ctx, c.progress, root, c.state.Mode); err != nil {
		return err
	}
	changed, err := c.startAll(ctx)
	if err != nil {
		return err
	}
	if err := c.writeEnv(); err != nil {
		return err
	}
	if changed {
		c.progress.say("up: %s", c.apiURL())
	} else {
		c.progress.say("already up: %s", c.apiURL())
	}
	fmt.Fprintf(c.progress.out, "         . %s\n", c.envFile())
	return nil
}

// leaveNothing removes a folder in which nothing was begun, as after a refusal.
func (c *cluster) leaveNothing() {
	if !exists(filepath.Join(c.dir, stateFile)) {
		_ = os.Remove(filepath.Join(c.dir, lockFile))
		_ = os.Remove(c.dir) // only if it is empty
	}
}

// loadState reads the state or begins one. A full cluster stays full: it can do
// all that a control plane alone can.
func (c *cluster) loadState(ctx context.Context, controlPlaneOnly bool) error {
	var err error
	c.state, err = readState(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		c.state = &state{Mode: controlPlane}
		err = c.cleanUp(ctx) // of a cluster whose folder was removed by hand
	}
	if err != nil {
		return err
	}
	if !controlPlaneOnly {
		c.state.Mode = full
	}
	return nil
}

// startAll gives true if anything had to be started.
func (c *cluster) startAll(ctx context.Context) (changed bool, err error) {
	if err := c.settlePorts(ctx); err != nil {
		return false, err
	}
	if c.state.Mode == full {
		if err := c.prepareMachine(ctx); err != nil {
			return false, err
		}
	}
	if err := c.writeFiles(); err != nil {
		return false, err
	}
	running, err := processes(c.dir)
	if err != nil {
		return false, err
	}
	for _, next := range c.components() {
		started, err := c.ensure(ctx, running, next)
		if err != nil {
			return changed, err
		}
		changed = changed || started
	}
	return changed, c.settle(ctx)
}

// writeFiles writes everything that the components read.
func (c *cluster) writeFiles() error {
	if err := c.writeCredentials(); err != nil {
		return err
	}
	if err := writeFile(c.pki("audit-policy.yaml"), auditPolicy, 0o644); err != nil {
		return err
	}
	// The folder ignores itself, wherever in a work tree it is.
	if err := writeFile(filepath.Join(c.dir, ".gitignore"), []byte("*\n"), 0o644); err != nil {
		return err
	}
	if c.state.Mode == full {
		return c.writeNodeFiles()
	}
	return nil
}

// components lists the mode's components in the order in which they start.
func (c *cluster) components() []component {
	list := []component{c.etcd(), c.kubeAPIServer(), c.kubeControllerManager()}
	if c.state.Mode == full {
		list = append(list, c.containerd(), c.kubeScheduler(), c.kubelet(), c.kubeProxy(), c.coreDNS())
	}
	return list
}

// settlePorts chooses ports at the first start. If somebody else took one while
// its component was down, all are chosen anew, which takes stopping the rest.
func (c *cluster) settlePorts(ctx context.Context) error {
	running, err := processes(c.dir)
	if err != nil {
		return err
	}
	name := ""
	if c.state.Ports != nil {
		name = takenPort(c.state.Ports, running, portFreed)
	}
	if name != "" {
		c.progress.say("port %d of %s was taken by another program: choosing new ports", c.state.Ports[name], name)
		for _, p := range running {
			if err := p.stop(ctx, c.dir); err != nil {
				return err
			}
		}
		c.state.Ports = nil
	}
	if c.state.Ports == nil {
		if c.state.Ports, err = choosePorts(portNames, portFree); err != nil {
			return err
		}
	}
	return c.state.write(c.dir)
}

// takenPort names a port whose component is down while somebody listens on it.
func takenPort(ports map[string]int, running []process, free func(port int) bool) string {
	for _, name := range portNames {
		owner := strings.TrimSuffix(strings.TrimSuffix(name, "-peer"), "-metrics")
		if find(running, owner) == nil && !free(ports[name]) {
			return name
		}
	}
	return ""
}

// ensure has the component running with the wanted arguments and healthy.
func (c *cluster) ensure(ctx context.Context, running []process, wanted component) (started bool, err error) {
	if p := find(running, wanted.name); p != nil {
		reason := outdated(p, wanted)
		if reason == "" {
			err := c.healthy(ctx, wanted, healTimeout, nil)
			if err == nil {
				return false, nil
			}
			reason = err.Error()
		}
		c.progress.say("restarting %s (pid %d): %s", wanted.name, p.pid, reason)
		if err := p.stop(ctx, c.dir); err != nil {
			return false, err
		}
	}
	if wanted.before != nil {
		if err := wanted.before(ctx); err != nil {
			return false, err
		}
	}
	c.progress.say("starting %s", wanted.name)
	ended, err := start(c.dir, wanted.name, wanted.args)
	if err != nil {
		return false, err
	}
	if err := c.healthy(ctx, wanted, startTimeout, ended); err != nil {
		return true, fmt.Errorf("%s does not come up: %w\n%s", wanted.name, err, c.logTail(wanted.name))
	}
	return true, nil
}

// outdated says why a process is not what it would be if started now; "" if it is.
func outdated(p *process, wanted component) string {
	if !slices.Equal(p.args, wanted.args) {
		return "its arguments changed"
	}
	for _, file := range wanted.files {
		// A process's start is known to some hundredths of a second.
		if info, err := os.Stat(file); err == nil && info.ModTime().After(p.started.Add(time.Second)) {
			return file + " changed"
		}
	}
	return ""
}

// healthy waits until the component is, or has ended, or the time is over.
func (c *cluster) healthy(ctx context.Context, wanted component, limit time.Duration, ended <-chan error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not healthy after %s", limit))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		select {
		case err := <-ended:
			fail(fmt.Errorf("it ended: %s", exitReason(err)))
		case <-ctx.Done():
		}
	}()
	if err := poll(ctx, pollInterval, func() error { return wanted.healthy(ctx) }); err != nil {
		return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	return nil
}

func exitReason(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

func (c *cluster) logTail(component string) string {
	content, err := os.ReadFile(logFile(c.dir, component))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("last lines of %s:\n%s", logFile(c.dir, component), lastLines(string(content), 12))
}

// lastLines cuts long lines too: one of a kube-apiserver may fill a screen.
func lastLines(text string, count int) string {
	const width = 300
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lines = lines[max(0, len(lines)-count):]
	for i, line := range lines {
		if len(line) > width {
			lines[i] = line[:width] + "…"
		}
	}
	return strings.Join(lines, "\n")
}

// settle waits for what the first objects of a user need.
func (c *cluster) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	check := c.get(c.apiURL() + "/api/v1/namespaces/default/serviceaccounts/default")
	if err := poll(ctx, pollInterval, func() error { return check(ctx) }); err != nil {
		return fmt.Errorf("no default service account appears: %w\n%s", err, c.logTail("kube-controller-manager"))
	}
	if c.state.Mode == full {
		return c.settleNode(ctx)
	}
	return nil
}

// get checks that a URL of a component answers the administrator with 200.
func (c *cluster) get(url string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		return c.read(ctx, url, nil)
	}
}

// read asks a component as the administrator and decodes the answer's JSON if `into` is given.
func (c *cluster) read(ctx context.Context, url string, into any) error {
	client, err := c.httpClient()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, response.Status, lastLines(string(body), 3))
	}
	if into != nil {
		return json.Unmarshal(body, into)
	}
	return nil
}

// httpClient offers the certificate that a server asks for: etcd trusts an authority of its own.
func (c *cluster) httpClient() (*http.Client, error) {
	if c.client != nil {
		return c.client, nil
	}
	roots := x509.NewCertPool()
	var pairs []tls.Certificate
	for _, names := range [][2]string{{"ca.crt", "admin"}, {"etcd/ca.crt", "etcd/etcd"}} {
		authority, err := os.ReadFile(c.pki(names[0]))
		if err != nil {
			return nil, err
		}
		roots.AppendCertsFromPEM(authority)
		pair, err := tls.LoadX509KeyPair(c.pki(names[1]+".crt"), c.pki(names[1]+".key"))
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair)
	}
	c.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: pairs, MinVersion: tls.VersionTLS12},
	}}
	return c.client, nil
}

// down ends every process of the cluster and removes all that it made. It works
// from what it finds, so also after a killed run or a removed folder.
func (c *cluster) down(ctx context.Context) error {
	if err := c.checkDirectory(); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	c.progress.say("removing the cluster in %s", c.dir)
	if err := c.cleanUp(ctx); err != nil {
		return err
	}
	if err := removeCluster(c.dir); err != nil {
		return err
	}
	c.progress.say("down")
	return nil
}

// cleanUp leaves nothing of the cluster but its folder.
func (c *cluster) cleanUp(ctx context.Context) error {
	machine, err := readMachine()
	if err != nil {
		return err
	}
	ours := machine != nil && machine.Dir == c.dir
	if ours && os.Geteuid() != 0 {
		return fmt.Errorf("the cluster in %s has a node, which only root can remove: run this with sudo", c.dir)
	}
	if err := c.killAll(ctx, ours); err != nil || !ours {
		return err
	}
	return machine.undo(ctx)
}

// removeCluster removes the state last: until then, another `down` knows the folder for a cluster's.
func removeCluster(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == stateFile || entry.Name() == lockFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// killAll ends the processes by force, since their data goes too, until none is found any more.
func (c *cluster) killAll(ctx context.Context, pods bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return poll(ctx, pollInterval, func() error {
		running, err := processes(c.dir)
		if err != nil {
			return err
		}
		for _, p := range running {
			if err := p.signal(c.dir, syscall.SIGKILL); err != nil {
				return err
			}
		}
		count := len(running)
		if pods {
			killed, err := killPods()
			if err != nil {
				return err
			}
			count += killed
		}
		if count > 0 {
			return fmt.Errorf("%d processes of the cluster still run", count)
		}
		return nil
	})
}

// checkDirectory makes sure that the folder is the caller's to use. Something
// that runs from it proves that, even where its state was removed by hand.
func (c *cluster) checkDirectory() error {
	if err := c.checkOwner(); err != nil {
		return err
	}
	running, err := processes(c.dir)
	if err != nil {
		return err
	}
	machine, err := readMachine()
	if err != nil {
		return err
	}
	if len(running) > 0 || (machine != nil && machine.Dir == c.dir) {
		return nil
	}
	return checkContent(c.dir)
}

// checkOwner tells a user who looks at somebody else's cluster so, instead of finding nothing.
func (c *cluster) checkOwner() error {
	info, err := os.Stat(c.dir)
	if err != nil {
		return nil //nolint:nilerr // nothing there yet
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if int(owner) != os.Geteuid() && os.Geteuid() != 0 {
		return fmt.Errorf("%s belongs to uid %d, and you are uid %d: run this as its owner or root, or choose another --dir",
			c.dir, owner, os.Geteuid())
	}
	return nil
}

// status prints each component, and fails unless all are healthy.
func (c *cluster) status(ctx context.Context, out io.Writer) error {
	if err := c.checkOwner(); err != nil {
		return err
	}
	var err error
	c.state, err = readState(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no cluster in %s: start one with up", c.dir)
	}
	if err != nil {
		return err
	}
	running, err := processes(c.dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s (%s) %s\n", c.dir, c.state.Mode, c.apiURL())
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tPID\tSINCE\tHEALTH")
	unhealthy := 0
	for _, wanted := range c.components() {
		pid, since, health := "-", "-", "not running: see "+logFile(c.dir, wanted.name)
		if p := find(running, wanted.name); p != nil {
			pid, since, health = fmt.Sprint(p.pid), p.started.Format(time.DateTime), "healthy"
			if err := wanted.healthy(ctx); err != nil {
				health = err.Error()
			}
		}
		if health != "healthy" {
			unhealthy++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", wanted.name, pid, since, health)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if unhealthy > 0 {
		return fmt.Errorf("%d components are not healthy; up repairs them", unhealthy)
	}
	return nil
}

func (c *cluster) envFile() string { return filepath.Join(c.dir, "env") }

var envTemplate = template.Must(template.New("env").Funcs(template.FuncMap{"quote": shellQuote}).Parse(
	`# To be sourced by a shell: . {{ quote .File }}
export KUBECONFIG={{ quote .Kubeconfig }}
case ":$PATH:" in
*:{{ quote .Folders }}:*) ;;
*) export PATH={{ quote .Folders }}:"$PATH" ;;
esac
{{- if .Containerd }}
export CONTAINERD_ADDRESS={{ quote .Containerd }} CONTAINERD_NAMESPACE=k8s.io
export NO_PROXY="${NO_PROXY:+$NO_PROXY,}{{ .Direct }}"
export no_proxy="$NO_PROXY"
{{- end }}
`))

func (c *cluster) writeEnv() error {
	values := map[string]string{
		"File":       c.envFile(),
		"Kubeconfig": filepath.Join(c.dir, "kubeconfig"),
		"Folders":    strings.Join(c.folders, ":"),
	}
	if c.state.Mode == full {
		values["Containerd"] = containerdSocket
		values["Direct"] = strings.Join([]string{podCIDR, serviceCIDR, domain}, ",")
	}
	content, err := render(envTemplate, values)
	if err != nil {
		return err
	}
	return writeFile(c.envFile(), []byte(content), 0o644)
}

// shellQuote makes one word of a text, whatever it holds.
func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func render(t *template.Template, values any) (string, error) {
	var text strings.Builder
	if err := t.Execute(&text, values); err != nil {
		return "", fmt.Errorf("%s: %w", t.Name(), err)
	}
	return text.String(), nil
}
