package workload

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
)

func TestWorkersFollowTheLimit(t *testing.T) {
	for limit, want := range map[string]int32{"": 2, "100m": 1, "1": 1, "1001m": 2, "4": 4, "64": 8} {
		service := Service{WSGI: &WSGI{}}
		if limit != "" {
			service.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limit)}
		}
		if workers := service.Workers(); workers != want {
			t.Errorf("with the limit %q: %d workers, want %d", limit, workers, want)
		}
		service.WSGI.Settings = commonv1.WSGISettings{Workers: new(int32(3))}
		if workers := service.Workers(); workers != 3 {
			t.Errorf("with the limit %q and 3 workers: %d workers", limit, workers)
		}
	}
}

// image is a folder of programs, which are the only programs on PATH beside Python's.
type image struct {
	t   *testing.T
	dir string
}

func newImage(t *testing.T, programs map[string]string) image {
	t.Helper()
	i := image{t: t, dir: t.TempDir()}
	scripts := config.Scripts()
	scripts[startWSGIName], scripts[startWSGITLSName], scripts[probeTLSName] = startWSGI, startWSGITLS, probeTLS
	for name, content := range scripts {
		i.write(name, content)
	}
	for name, content := range programs {
		i.write(name, "#!/bin/sh\n"+content+"\n")
	}
	return i
}

func (i image) write(name, content string) {
	i.t.Helper()
	if err := os.WriteFile(filepath.Join(i.dir, name), []byte(content), 0o755); err != nil { //nolint:gosec // programs
		i.t.Fatal(err)
	}
}

// start runs start-wsgi with the programs of the image, and returns its output and the
// content of the termination log.
func (i image) start(arguments ...string) (output, termination string, err error) {
	i.t.Helper()
	return i.run(startWSGIName, arguments...)
}

// startTLS is start with start-wsgi-tls.
func (i image) startTLS(arguments ...string) (output, termination string, err error) {
	i.t.Helper()
	return i.run(startWSGITLSName, append([]string{"--certificate", "/etc/thing/api.crt", "--key", "/etc/thing/api.key"}, arguments...)...)
}

func (i image) run(script string, arguments ...string) (output, termination string, err error) {
	i.t.Helper()
	log := filepath.Join(i.dir, "termination-log")
	command := exec.CommandContext(i.t.Context(), "/usr/bin/python3", append([]string{filepath.Join(i.dir, script), "--termination-log", log}, arguments...)...)
	command.Env = []string{"PATH=" + i.dir}
	if directory, replaced := os.LookupEnv("PROBE_NET_DIR"); replaced {
		command.Env = append(command.Env, "PROBE_NET_DIR="+directory)
	}
	combined, err := command.CombinedOutput()
	content, _ := os.ReadFile(log) // absent without --check
	return string(combined), string(content), err
}

const (
	uwsgi   = `[ "$*" = --help ] && echo "    --wsgi-file  load .wsgi file" || echo "uwsgi $*"`
	plugin  = `case "$*" in "--plugin python3 --help") echo --wsgi-file ;; --help) ;; *) echo "uwsgi $*" ;; esac`
	program = `echo "$0 $*"`
)

func TestStartWSGIPrefersUWSGI(t *testing.T) {
	for name, c := range map[string]struct {
		programs map[string]string
		want     []string
	}{
		"a program with Python": {
			map[string]string{"uwsgi_python3": uwsgi, "thing-api-wsgi": program, "thing-api": program},
			[]string{"uwsgi --master --processes 3", "/thing-api-wsgi", "--threads 2", "unix_signal:15 gracefully_kill_them_all", "--worker-reload-mercy 45", "--harakiri 90", "--need-app", "--skip-atexit-teardown", "[::]:8774"},
		},
		"a plugin in a file": {
			map[string]string{"uwsgi": plugin, "thing-api-wsgi": program},
			[]string{"uwsgi --plugin python3 --master", "--wsgi-file"},
		},
		"a module": {
			map[string]string{"uwsgi": uwsgi},
			[]string{"uwsgi --master", "--module json:application"},
		},
		"without a WSGI server": {
			map[string]string{"uwsgi": "exit 1", "thing-api-wsgi": program, "thing-api": program},
			[]string{"/thing-api"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			output, _, err := newImage(t, c.programs).start("--workers", "3", "--threads", "2", "--grace", "45", "--longest", "90", "8774", "thing-api-wsgi", "json", "thing-api")
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			for _, want := range c.want {
				if !strings.Contains(output, want) {
					t.Errorf("started without %q: %s", want, output)
				}
			}
		})
	}
}

func TestStartWSGIServesOnANodeWithoutIPv6(t *testing.T) {
	for file, want := range map[string]string{"if_inet6": "--http-socket [::]:80\n", "tcp": "--http-socket 0.0.0.0:80\n"} {
		i := newImage(t, map[string]string{"uwsgi": uwsgi, "app": program})
		i.write(file, "")
		t.Setenv("PROBE_NET_DIR", i.dir)
		if output, _, err := i.start("80", "app", "no.module"); err != nil || !strings.HasSuffix(output, want) {
			t.Errorf("with %s, the server starts with %v and %s, want %s", file, err, output, want)
		}
	}
}

func TestStartWSGINamesWhatTheImageLacks(t *testing.T) {
	for name, c := range map[string]struct {
		programs  map[string]string
		arguments []string
		want      string
	}{
		"nothing":             {map[string]string{"uwsgi": uwsgi, "app": program}, []string{"--import", "json", "80", "app", "no.module", "old"}, ""},
		"only its own server": {map[string]string{"app": program, "old": program}, []string{"80", "app", "no.module", "old"}, "served by old, a server for development: install uWSGI with Python, or Apache with mod_wsgi"},
		"a server":            {map[string]string{"app": program}, []string{"80", "app", "no.module", "old"}, "lacks a WSGI server (uWSGI with Python, or Apache with mod_wsgi)"},
		"uWSGI's plugin":      {map[string]string{"uwsgi": "exit 0", "app": program}, []string{"80", "app", "no.module"}, "lacks a WSGI server (uWSGI with Python, or Apache with mod_wsgi)"},
		"the application":     {map[string]string{"uwsgi": uwsgi}, []string{"80", "app", "json.no.module"}, "lacks the application (app on PATH, or the Python module json.no.module)"},
		"a module and a file": {
			map[string]string{"uwsgi": uwsgi, "app": program},
			[]string{"--import", "no_module", "--file", "/nowhere/a.ini,/not/there/a.ini", "80", "app", "json"},
			"lacks the Python module no_module, a readable file a.ini (looked for /nowhere/a.ini, /not/there/a.ini)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			output, termination, err := newImage(t, c.programs).start(append([]string{"--check"}, c.arguments...)...)
			if err != nil || output != "" {
				t.Errorf("the check ends with %v and prints %q", err, output)
			}
			if termination != c.want {
				t.Errorf("the termination log has %q, want %q", termination, c.want)
			}
		})
	}
}

// uwsgiTLS has OpenSSL, uwsgi has not.
const uwsgiTLS = `[ "$*" = --help ] && echo "    --wsgi-file  load .wsgi file
    --https-socket  bind to the specified socket" || echo "uwsgi $*"`

func TestStartWSGITLSServesTheCertificate(t *testing.T) {
	for name, c := range map[string]struct {
		programs map[string]string
		want     string
		not      string
	}{
		"uWSGI": {
			map[string]string{"uwsgi": uwsgiTLS, "thing-api-wsgi": program, "thing-api": program},
			"--https-socket [::]:8774,/etc/thing/api.crt,/etc/thing/api.key\n", "--http-socket",
		},
		"uWSGI without OpenSSL": {
			map[string]string{"uwsgi": uwsgi, "thing-api-wsgi": program, "thing-api": program},
			"/thing-api \n", "uwsgi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newImage(t, c.programs)
			i.write("if_inet6", "")
			t.Setenv("PROBE_NET_DIR", i.dir)
			output, _, err := i.startTLS("--workers", "3", "--grace", "45", "8774", "thing-api-wsgi", "no.module", "thing-api")
			if err != nil || !strings.HasSuffix(output, c.want) || strings.Contains(output, c.not) {
				t.Errorf("started with %v and %s, want %s", err, output, c.want)
			}
		})
	}
}

func TestStartWSGITLSNamesAServerWithoutTLS(t *testing.T) {
	const (
		servers = "uWSGI with Python and OpenSSL, or Apache with mod_wsgi and mod_ssl"
		server  = "lacks a WSGI server (" + servers + ")"
	)
	for name, c := range map[string]struct {
		programs map[string]string
		want     string
	}{
		"nothing":          {map[string]string{"uwsgi": uwsgiTLS, "app": program}, ""},
		"OpenSSL":          {map[string]string{"uwsgi": uwsgi, "app": program}, server},
		"a server for all": {map[string]string{"uwsgi": uwsgi, "app": program, "old": program}, "served by old, a server for development: install " + servers},
		"the application":  {map[string]string{"uwsgi": uwsgiTLS}, "lacks the application (app on PATH, or the Python module no.module)"},
		"everything":       {nil, server + ", the application (app on PATH, or the Python module no.module)"},
	} {
		t.Run(name, func(t *testing.T) {
			output, termination, err := newImage(t, c.programs).startTLS("--check", "--import", "json", "80", "app", "no.module", "old")
			if err != nil || output != "" || termination != c.want {
				t.Errorf("the check ends with %v, prints %q and writes %q, want %q", err, output, termination, c.want)
			}
		})
	}
}

// apacheTLS prints Apache's configuration with a certificate, or that Apache has no mod_ssl. Its
// arguments are the script, Apache's program, and its directory of modules.
const apacheTLS = `
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.SourceFileLoader("tls", sys.argv[1])
tls = importlib.util.module_from_spec(importlib.util.spec_from_loader("tls", loader))
loader.exec_module(tls)
wsgi = tls.load("start-wsgi")
wsgi.find_apache = lambda: (sys.argv[2], sys.argv[3], "mod_wsgi.so")
tls.TLS(wsgi, "/etc/thing/api.crt", "/etc/thing/api.key")
apache = wsgi.find_apache()
print(wsgi.apache_configuration(wsgi.arguments(["80", "app", "no.module"]), "/tmp", *apache) if apache else "no mod_ssl")
`

func TestStartWSGITLSConfiguresApache(t *testing.T) {
	const loads = "LoadModule ssl_module "
	for name, c := range map[string]struct {
		builtIn string
		files   []string
		want    []string
		not     string
	}{
		"a module":          {"core.c", []string{"mod_ssl.so"}, []string{loads, "SSLEngine On\n", "SSLCertificateFile /etc/thing/api.crt\n", "SSLCertificateKeyFile /etc/thing/api.key\n"}, "no mod_ssl"},
		"a built-in module": {"mod_ssl.c", nil, []string{"SSLEngine On\n"}, loads},
		"no module":         {"core.c", nil, []string{"no mod_ssl\n"}, "SSLEngine"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newImage(t, map[string]string{"apache2": "echo " + c.builtIn, "app": program, "cat": program})
			for _, file := range c.files {
				i.write(file, "")
			}
			command := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", apacheTLS, filepath.Join(i.dir, startWSGITLSName), filepath.Join(i.dir, "apache2"), i.dir)
			command.Env = []string{"PATH=" + i.dir}
			output, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			for _, want := range c.want {
				if !strings.Contains(string(output), want) {
					t.Errorf("the configuration lacks %q: %s", want, output)
				}
			}
			if strings.Contains(string(output), c.not) {
				t.Errorf("the configuration has %q: %s", c.not, output)
			}
		})
	}
}

func TestStartWSGIEndsWithoutAServer(t *testing.T) {
	output, _, err := newImage(t, nil).start("80", "app", "no.module", "old")
	if err == nil || !strings.Contains(output, "the image lacks a WSGI server") {
		t.Errorf("%v: %s", err, output)
	}
}
