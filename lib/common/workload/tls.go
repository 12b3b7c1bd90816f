package workload

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
)

// ServeTLS has the service serve TLS on its Port with the certificate in a Secret, which has the
// keys tls.crt and tls.key; nil: it serves HTTP. certificate and key are the options of the
// service's own server for the paths of both, in a section of the configuration.
//
// The files are copied next to the configuration, so that a new certificate restarts the pods.
func (s *Service) ServeTLS(secret *commonv1.SecretReference, section, certificate, key string) {
	if secret == nil {
		return
	}
	s.Port.TLSSecret = secret.Name
	for _, file := range []struct{ option, path, key string }{
		{certificate, s.certificateFile(), corev1.TLSCertKey},
		{key, s.keyFile(), corev1.TLSPrivateKeyKey},
	} {
		s.Owned.Set(section, file.option, file.path)
		s.Spec.ExtraFiles = append(slices.Clip(s.Spec.ExtraFiles), commonv1.ExtraFile{
			Name: path.Base(file.path), SecretKeyRef: &commonv1.KeyReference{Name: secret.Name, Key: file.key},
		})
	}
}

// checkFiles refuses a file of the user with the name of a file of ServeTLS. Names in the spec are
// unique. The API server would refuse two files with one path as well, but without the name of the
// field.
func (s Service) checkFiles() error {
	names := map[string]bool{}
	for _, file := range s.Spec.ExtraFiles {
		if names[file.Name] {
			return engine.Stop(engine.ReasonInvalid, "spec.extraFiles: with tlsSecretRef, the operator itself adds the file %s: give yours another name", file.Name)
		}
		names[file.Name] = true
	}
	return nil
}

func (s Service) certificateFile() string { return s.tlsFile(".crt") }
func (s Service) keyFile() string         { return s.tlsFile(".key") }

// tlsFile returns the path of a file of ServeTLS: /etc/shop/web.crt for shop-web.
func (s Service) tlsFile(extension string) string {
	return path.Join(s.etc(), strings.TrimPrefix(s.Name, s.Project.Name+"-")+extension)
}

// servesTLS tells whether start-wsgi-tls serves the application, and not start-wsgi.
func (s Service) servesTLS() bool { return s.WSGI != nil && s.Port != nil && s.Port.TLS() }

// startWSGI returns the script that serves the application, and its first arguments.
func (s Service) startWSGI() (script string, arguments []string) {
	if s.servesTLS() {
		return startWSGITLSName, []string{"--certificate", s.certificateFile(), "--key", s.keyFile()}
	}
	return startWSGIName, nil
}
