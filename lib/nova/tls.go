package nova

import "asterism.dev/lib/common/workload"

// ServeTLS has an API serve TLS with the certificate in its settings, if they name one. The options
// are those of the program nova-api; it knows the API by this name (nova: cmd/api.py, wsgi.py).
func ServeTLS(service *workload.Service, api string) {
	secret := service.WSGI.Settings.TLSSecretRef
	service.ServeTLS(secret, "wsgi", "ssl_cert_file", "ssl_key_file")
	if secret != nil {
		service.Owned.Set("DEFAULT", "enabled_ssl_apis", api)
	}
}
