package workload

import (
	"slices"
	"testing"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
)

func TestServeTLS(t *testing.T) {
	files := make([]commonv1.ExtraFile, 0, 8) // with room, in which the files of two services could meet
	describe := func(name, secret string) Service {
		service := Service{Name: name, Project: Project{Name: "thing"}, Port: &Port{}, WSGI: &WSGI{}, Spec: commonv1.ServiceSpec{}}
		service.Spec.ExtraFiles = files
		service.ServeTLS(&commonv1.SecretReference{Name: secret}, "wsgi", "cert", "key")
		return service
	}
	api, other := describe("thing-api", "api-tls"), describe("other", "other-tls")
	for _, c := range []struct {
		service          Service
		secret, crt, key string
	}{
		{api, "api-tls", "api.crt", "api.key"},
		{other, "other-tls", "other.crt", "other.key"},
	} {
		if !c.service.Port.TLS() || c.service.Port.TLSSecret != c.secret {
			t.Errorf("the port of %s has the Secret %q", c.service.Name, c.service.Port.TLSSecret)
		}
		for i, want := range []struct{ option, file, key string }{{"cert", c.crt, "tls.crt"}, {"key", c.key, "tls.key"}} {
			if file := c.service.Spec.ExtraFiles[i]; file.Name != want.file || *file.SecretKeyRef != (commonv1.KeyReference{Name: c.secret, Key: want.key}) {
				t.Errorf("%s has the file %s from %v", c.service.Name, file.Name, file.SecretKeyRef)
			}
			if path := c.service.Owned.Get("wsgi", want.option); path != "/etc/thing/"+want.file {
				t.Errorf("%s reads its %s in %q", c.service.Name, want.option, path)
			}
		}
	}
}

func TestPodsWithoutTLSHaveTheirScripts(t *testing.T) {
	service := Service{Name: "thing-api", Project: Project{Name: "thing"}, Port: &Port{Number: 80}, WSGI: &WSGI{}}
	service.ServeTLS(nil, "wsgi", "cert", "key")
	plain, err := service.scripts()
	if err != nil {
		t.Fatal(err)
	}
	if _, has := plain[startWSGITLSName]; has || service.Port.TLS() || len(service.Owned) > 0 || len(service.Spec.ExtraFiles) > 0 {
		t.Errorf("without a Secret, the service has %v, %v, %v", service.Port, service.Owned, service.Spec.ExtraFiles)
	}
	service.ServeTLS(&commonv1.SecretReference{Name: "tls"}, "wsgi", "cert", "key")
	if scripts, err := service.scripts(); err != nil || scripts[startWSGITLSName] == "" {
		t.Errorf("with a Secret, start-wsgi-tls is missing, error %v", err)
	}
	want := []string{"/usr/local/bin/container-scripts/start-wsgi-tls", "--certificate", "/etc/thing/api.crt", "--key", "/etc/thing/api.key", "--workers"}
	if command := service.serve(); !slices.Equal(command[:len(want)], want) {
		t.Errorf("the service starts with %v", command)
	}
}

func TestFilesOfTheCertificateAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"policy.yaml": "",
		"api.crt":     "spec.extraFiles: with tlsSecretRef, the operator itself adds the file api.crt: give yours another name",
		"api.key":     "spec.extraFiles: with tlsSecretRef, the operator itself adds the file api.key: give yours another name",
	} {
		service := Service{Name: "thing-api", Project: Project{Name: "thing"}, Port: &Port{}, WSGI: &WSGI{}}
		service.Spec.ExtraFiles = []commonv1.ExtraFile{{Name: name, Content: new("mine")}}
		if err := service.checkFiles(); err != nil {
			t.Errorf("without TLS, %s is refused: %v", name, err)
		}
		service.ServeTLS(&commonv1.SecretReference{Name: "tls"}, "wsgi", "cert", "key")
		err := service.checkFiles()
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want || engine.Reason(err) != engine.ReasonInvalid) {
			t.Errorf("with TLS, the error about %s is %v, want %q", name, err, want)
		}
	}
}
