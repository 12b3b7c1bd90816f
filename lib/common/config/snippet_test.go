package config

import (
	"strings"
	"testing"
)

// ownedInTests are the options that the operator of a service with two databases owns.
func ownedInTests(t *testing.T) []Option {
	t.Helper()
	database, err := ParseDatabase(with(), "d")
	if err != nil {
		t.Fatal(err)
	}
	bus, err := ParseMessageBus(with("ca.crt", certificate))
	if err != nil {
		t.Fatal(err)
	}
	identity, err := ParseIdentity(secret("authURL", "http://k/v3", "user", "u", "password", "p"))
	if err != nil {
		t.Fatal(err)
	}
	c := NewConnections("/etc/project")
	c.Database("database", database)
	c.Database("api_database", database)
	c.MessageBus(bus)
	c.AuthToken(identity, "compute")
	c.Adapter("inventory", identity)
	c.Sections.Set("pci", "device_spec", "x")
	return append(OwnedBy(c.Sections, testOptions...), Option{Section: "DEFAULT", Name: "host"})
}

func TestOptionsOfTheOperatorAreRefusedUnderAnyName(t *testing.T) {
	const remove = "; remove this line"
	owned := ownedInTests(t)
	for text, want := range map[string]string{
		"[database]\nconnection = x":                   "line 2: [database] connection is set by the operator" + remove,
		"# a\n\n[DataBase]\n\nconnection: x":           "line 5: [DataBase] connection is set by the operator" + remove,
		"[DEFAULT]\nsql_connection = x":                "line 2: [DEFAULT] sql_connection is a former name of [database] connection, which is set by the operator" + remove,
		"[DATABASE]\nsql_connection = x":               "line 2: [DATABASE] sql_connection is a former name of [database] connection, which is set by the operator" + remove,
		"[SQL]\nconnection = x":                        "line 2: [SQL] connection is a former name of [database] connection, which is set by the operator" + remove,
		"[api_database]\nconnection = x":               "line 2: [api_database] connection is set by the operator" + remove,
		"[DEFAULT]\nhost = a\ntransport_url = x":       "line 2: [DEFAULT] host is set by the operator" + remove + "; line 3: [DEFAULT] transport_url is set by the operator" + remove,
		"[oslo_messaging_rabbit]\nkombu_ssl_ca_certs=": "line 2: [oslo_messaging_rabbit] kombu_ssl_ca_certs is a former name of [oslo_messaging_rabbit] ssl_ca_file, which is set by the operator" + remove,
		"[keystone_authtoken]\nauth_uri = x":           "line 2: [keystone_authtoken] auth_uri is a former name of [keystone_authtoken] www_authenticate_uri, which is set by the operator" + remove,
		"[inventory]\nuser-name = x":                   "line 2: [inventory] user-name is a former name of [inventory] username, which is set by the operator" + remove,
		"[inventory]\ntenant_name = x":                 "line 2: [inventory] tenant_name is a former name of [inventory] project_name, which is set by the operator" + remove,
		"[inventory]\nauth_section = mine":             "line 2: [inventory] auth_section is set by the operator" + remove,
		"[inventory]\ntenant-id = x":                   "line 2: [inventory] tenant-id is a former name of [inventory] project_id, which is set by the operator" + remove,
		"[DEFAULT]\npci_passthrough_whitelist = x":     "line 2: [DEFAULT] pci_passthrough_whitelist is a former name of [pci] device_spec, which is set by the operator" + remove,
		"[DEFAULT]\r\nhost\t=\ta\r\n\tb":               "line 2: [DEFAULT] host is set by the operator" + remove,
	} {
		if err := CheckSnippet(text, owned...); err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestOptionsOfTheAdministratorAreAccepted(t *testing.T) {
	owned := ownedInTests(t)
	for _, text := range []string{
		"", "# nothing\n", "[DEFAULT]\n",
		"[oslo_messaging_notifications]\ntransport_url = rabbit://u:p@h//\ndriver = messagingv2",
		"[DEFAULT]\nnotification_transport_url = rabbit://u:p@h//",
		"[database]\nmax_pool_size = 5\nslave_connection = x",
		"[default]\ntransport_url = another section",
		"[ database]\nconnection = another section",
		"[DEFAULT]\nHost = another option",
		"[filter_scheduler]\nhost_subset_size = 2\n[database]\n[workarounds]\nx = 1\n connection = 2",
		"[inventory]\nauth-url = oslo.config does not read this",
		"[oslo_messaging_rabbit]\nheartbeat_in_pthread = true",
	} {
		if err := CheckSnippet(text, owned...); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWhatIsNoINIIsRefusedByLine(t *testing.T) {
	for text, want := range map[string]string{
		"[DEFAULT]\nworkers 2":                     `line 2: "workers" is neither a [section] nor option = value`,
		"workers = 2\n[DEFAULT]":                   `line 1: "workers" stands before the first [section]`,
		"[DEFAULT]\n\n  workers = 2":               `line 3: "workers" is indented, but there is no option above it to continue`,
		"[DEFAULT]\nworkers = 2\n\n  3":            "line 4: is indented, but there is no option above it to continue",
		"[DEFAULT\nworkers = 2":                    `line 1: "[DEFAULT" begins like a section, but does not end with ]`,
		"[DEFAULT] # mine":                         `line 1: "[DEFAULT]" begins like a section, but does not end with ]`,
		"[]":                                       "line 1: is a section without a name",
		"[DEFAULT]\n= 2":                           "line 2: has no option name before the = or :",
		"\ufeff[DEFAULT]":                          "line 1: begins with a byte order mark; save the text as UTF-8 without one",
		"[a]\r\nx = 1\r\ny":                        `line 3: "y" is neither a [section] nor option = value`,
		"[a]\rx = 1\ry":                            `line 3: "y" is neither a [section] nor option = value`,
		"[a]\nx = \xff":                            "the text is not UTF-8",
		"[a]\nx = 1; y\n{\"json\": \n1}":           "line 4: is neither a [section] nor option = value",
		"[a]\nssl_private_key = -----BEGIN\nMIIEv": "line 3: is neither a [section] nor option = value",
	} {
		if err := CheckSnippet(text); err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestErrorsOfASnippetShowNoValue(t *testing.T) {
	owned := ownedInTests(t)
	for _, text := range []string{
		"[inventory]\npassword = hunter2",
		"[inventory]\npassword hunter2",
		"password = hunter2",
		"[inventory]\npassword = hunter1\nhunter2",
		"[inventory]\npassword = hunter1\n\n  hunter2",
		"[inventory\npassword = hunter2",
		"[inventory] password = hunter2",
		"= hunter2",
	} {
		if err := CheckSnippet(text, owned...); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestManyProblemsAreCounted(t *testing.T) {
	text := "[DEFAULT]\n" + strings.Repeat("host = x\n", 7)
	err := CheckSnippet(text, Option{Section: "DEFAULT", Name: "host"})
	if err == nil || !strings.HasSuffix(err.Error(), "line 6: [DEFAULT] host is set by the operator; remove this line; and 2 more") {
		t.Errorf("got %v", err)
	}
}
