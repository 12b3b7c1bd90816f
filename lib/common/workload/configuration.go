package workload

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
)

// Inputs returns Needs for the Secrets and ConfigMaps of the service, with their required
// keys, and for its networks; with RunOnHost also for the label of the namespace that admits
// privileged pods.
func (s Service) Inputs() []engine.Need {
	var needs []engine.Need
	if s.RunOnHost {
		needs = append(needs, engine.OwnNamespace(admitPrivileged))
	}
	for _, database := range s.Databases {
		needs = append(needs, engine.Secret(database.Secret, config.KeyHostname, config.KeyUser, config.KeyPassword))
	}
	for _, authority := range s.Authorities {
		needs = append(needs, engine.Secret(authority.Secret))
	}
	if s.Rendered != "" {
		needs = append(needs, engine.Secret(s.Rendered, config.ConnectionsPart))
	} else {
		needs = append(needs, engine.Secret(s.MessageBus, config.KeyHostname, config.KeyUser, config.KeyPassword))
	}
	for _, account := range s.Accounts {
		needs = append(needs, engine.SecretWithAny(account.Secret, config.IdentityKeys()...))
	}
	if s.Identity.Secret != "" {
		needs = append(needs, engine.SecretWithAny(s.Identity.Secret, config.IdentityKeys()...))
	}
	for _, shared := range s.Shared {
		needs = append(needs, engine.Secret(shared.Secret, config.KeySharedSecret))
	}
	if s.SharedConnections != nil {
		needs = append(needs, s.SharedConnections.Needs()...)
	}
	for _, file := range s.Spec.CAFileRefs {
		needs = append(needs, engine.ConfigMap(file.Name, file.Key))
	}
	for _, secret := range s.Spec.CustomServiceConfigSecretRefs {
		needs = append(needs, engine.Secret(secret.Name))
	}
	for _, file := range s.extraFiles() {
		switch {
		case file.ConfigMapKeyRef != nil:
			needs = append(needs, engine.ConfigMap(file.ConfigMapKeyRef.Name, file.ConfigMapKeyRef.Key))
		case file.SecretKeyRef != nil:
			needs = append(needs, engine.Secret(file.SecretKeyRef.Name, file.SecretKeyRef.Key))
		}
	}
	return append(needs, s.networkNeeds()...)
}

// Configuration builds the revision of the pods, and the two ConfigMaps that show it.
func (s Service) Configuration(in engine.Inputs) ([]engine.Child, error) {
	r, err := s.revision(in)
	if err != nil {
		return nil, err
	}
	return append(s.current(r), r.children()...), nil
}

// owned returns the options that no snippet may set.
func (s Service) owned(connections *config.Connections) []config.Option {
	sections := slices.Clone(connections.Sections)
	if s.Node != nil {
		var ofNode config.Sections
		for _, option := range slices.Sorted(maps.Keys(s.Node.Options)) {
			section, name := nodeOption(option)
			ofNode.Set(section, name, "")
		}
		sections = append(sections, ofNode...)
	}
	return config.OwnedBy(sections, slices.Concat(config.OsloOptions(), s.options())...)
}

func (s Service) parts() (map[string]string, error) {
	defaults, err := s.defaults().Render()
	if err != nil {
		return nil, fmt.Errorf("rendering the defaults: %w", err)
	}
	parts := map[string]string{config.DefaultsPart: defaults, config.CustomPart: s.Spec.CustomServiceConfig}
	for _, file := range s.extraFiles() {
		if file.Content != nil {
			parts[file.Name] = *file.Content
		}
	}
	return parts, nil
}

// options returns the renamed and the multi-valued options in the service's sections, and of
// its project.
func (s Service) options() []config.Option {
	var sections []string
	for _, database := range s.Databases {
		if database.Section != "database" { // in config.OsloOptions
			sections = append(sections, database.Section)
		}
	}
	return append(config.DatabaseOptions(sections...), s.Project.Options...)
}

// defaults returns the defaults of every service, and then the defaults of this service. A
// service waits for its database without limit, as it does for the message bus: its pod is
// not ready, instead of in a crash loop. A service that is stopped has less time than its pod,
// which is killed otherwise: the default differs between releases.
func (s Service) defaults() config.Sections {
	var sections config.Sections
	sections.Set("DEFAULT", "state_path", s.state())
	if s.GraceSeconds > 0 { // 0: only Jobs
		sections.Set("DEFAULT", "graceful_shutdown_timeout", fmt.Sprint(s.GraceSeconds))
	}
	sections.Set("oslo_concurrency", "lock_path", path.Join(s.state(), "tmp"))
	for _, database := range s.Databases {
		databaseDefaults(&sections, database.Section)
	}
	if s.SharedConnections != nil {
		sections.SetAll(s.SharedConnections.Defaults(s.Identity.Secret))
	}
	sections.SetAll(s.Defaults)
	return sections
}

// databaseDefaults sets the pool of connections. A load balancer between service and database
// may drop an idle connection without telling either side, and a query on it then hangs for
// minutes. The shortest usual limit is that of Azure, 240 seconds; AWS has 350 and Google 600. A
// connection that is replaced earlier is never idle for so long.
//
// A service answers 64 messages at a time (oslo.messaging: executor_thread_pool_size), each with
// one connection to a database at most. With fewer connections, the others wait up to 30 seconds
// for one (SQLAlchemy: pool_timeout) and then fail. The pool keeps 5 of them open (oslo.db:
// max_pool_size), because idle ones count in the server's max_connections.
func databaseDefaults(sections *config.Sections, section string) {
	sections.Set(section, "max_retries", "-1")
	sections.Set(section, "retry_interval", "5")
	sections.Set(section, "connection_recycle_time", "180")
	sections.Set(section, "max_overflow", "64")
}

// connections renders the options that the operator owns, and the snippets from Secrets. For a
// Secret with an error, it returns a Wait: a change of the Secret starts the next pass.
func (s Service) connections(in engine.Inputs) (*config.Connections, error) {
	c := config.NewConnections(s.etc())
	c.Store(s.CAPrefix)
	for _, database := range s.Databases {
		parsed, err := config.ParseDatabase(in.Secret(database.Secret), database.Default)
		if err != nil {
			return nil, engine.Wait("Secret %s: %s", database.Secret, err)
		}
		parsed.CAName = database.CAName
		c.Database(database.Section, parsed)
	}
	for _, authority := range s.Authorities {
		ca, err := config.ParseAuthority(in.Secret(authority.Secret))
		if err != nil {
			return nil, engine.Wait("Secret %s: %s", authority.Secret, err)
		}
		c.AddDatabaseCAFile(authority.File, ca)
	}
	for _, add := range []func(*config.Connections, engine.Inputs) error{s.messageBus, s.identity, s.accounts} {
		if err := add(c, in); err != nil {
			return nil, err
		}
	}
	if s.SharedConnections != nil {
		if err := s.SharedConnections.Connect(c, in, s.Identity.Secret); err != nil {
			return nil, err
		}
	}
	for _, file := range s.Spec.CAFileRefs {
		c.AddCAFile(file.Key, in.ConfigMap(file.Name)[file.Key])
	}
	for _, shared := range s.Shared {
		value, err := config.ParseSharedSecret(in.Secret(shared.Secret))
		if err != nil {
			return nil, engine.Wait("Secret %s: %s", shared.Secret, err)
		}
		c.Sections.Set(shared.Section, shared.Option, string(value))
	}
	c.Sections.SetAll(s.Owned)
	for i, secret := range s.Spec.CustomServiceConfigSecretRefs {
		text, err := config.SecretSnippet(in.Secret(secret.Name), s.owned(c)...)
		if err != nil {
			return nil, engine.Wait("Secret %s in spec.customServiceConfigSecretRefs: %s", secret.Name, err)
		}
		c.SecretSnippet(i, secret.Name, text)
	}
	return c, nil
}

func (s Service) messageBus(c *config.Connections, in engine.Inputs) error {
	if s.Rendered != "" {
		if err := c.Include(in.Secret(s.Rendered)); err != nil {
			return engine.Wait("Secret %s: %s", s.Rendered, err)
		}
		return nil
	}
	bus, err := config.ParseMessageBus(in.Secret(s.MessageBus))
	if err != nil {
		return engine.Wait("Secret %s: %s", s.MessageBus, err)
	}
	c.MessageBus(bus)
	return nil
}

func (s Service) accounts(c *config.Connections, in engine.Inputs) error {
	for _, account := range s.Accounts {
		identity, err := config.ParseIdentity(in.Secret(account.Secret))
		if err != nil {
			return engine.Wait("Secret %s: %s", account.Secret, err)
		}
		c.Sections.Remove(account.Section) // the rendered section may have another account
		c.Adapter(account.Section, identity)
		endpoint := string(in.Secret(account.Secret)[config.KeyEndpoint])
		if endpoint == "" {
			continue
		}
		address, err := config.ParseWebAddress(endpoint)
		if err != nil {
			return engine.Wait("Secret %s: key %s %s", account.Secret, config.KeyEndpoint, err)
		}
		c.Sections.Set(account.Section, "endpoint_override", address.String())
	}
	return nil
}

func (s Service) identity(c *config.Connections, in engine.Inputs) error {
	if s.Identity.Secret == "" {
		return nil
	}
	identity, err := config.ParseIdentity(in.Secret(s.Identity.Secret))
	if err != nil {
		return engine.Wait("Secret %s: %s", s.Identity.Secret, err)
	}
	if s.Identity.AuthToken != "" {
		c.AuthToken(identity, s.Identity.AuthToken)
	}
	c.ServiceUser(identity)
	return nil
}

// configHash returns the hash of all files that the pods read when they start, and of the
// restart triggers.
func (s Service) configHash(in engine.Inputs, r revision) string {
	extra := map[string][]byte{}
	for _, file := range s.extraFiles() {
		switch {
		case file.ConfigMapKeyRef != nil:
			extra[file.Name] = in.ConfigMap(file.ConfigMapKeyRef.Name)[file.ConfigMapKeyRef.Key]
		case file.SecretKeyRef != nil:
			extra[file.Name] = in.Secret(file.SecretKeyRef.Name)[file.SecretKeyRef.Key]
		}
	}
	return in.Hash(r.connections.Data, r.parts.Data, r.scripts.Data, extra, s.Spec.RestartTriggers)
}

// trustedCA is the file with the authorities that every process of the pods trusts. No extra
// file can have this name.
const trustedCA = "trusted-ca.crt"

// extraFiles returns the extra files of the spec, and the trusted authorities.
func (s Service) extraFiles() []commonv1.ExtraFile {
	files := s.Spec.ExtraFiles
	if ref := s.Spec.Pod.TrustedCARef; ref != nil {
		files = append(slices.Clone(files), commonv1.ExtraFile{Name: trustedCA, ConfigMapKeyRef: ref})
	}
	return files
}

// DatabaseHash returns the hash of the database Secrets, which locate the schemas.
func (s Service) DatabaseHash(in engine.Inputs) string {
	contents := map[string]map[string][]byte{}
	for _, database := range s.Databases {
		contents[database.Section] = in.Secret(database.Secret)
	}
	return in.Hash(contents)
}

// StoredHash returns the hash of the URLs of databases and message bus, which name a CA file: not
// its content.
func (s Service) StoredHash(in engine.Inputs) string {
	located := func(secret string) map[string][]byte {
		content := maps.Clone(in.Secret(secret))
		if len(content[config.KeyCA]) > 0 {
			content[config.KeyCA] = nil
		}
		return content
	}
	databases := map[string]map[string][]byte{}
	for _, database := range s.Databases {
		databases[database.Section] = located(database.Secret)
	}
	return in.Hash(in.Hash(databases), located(s.MessageBus))
}

// probePorts returns the arguments of the script probe: the port of the database to which the
// service reports every few seconds, and the ports of the message bus, of which one suffices.
// A server may close the connections to other databases, which are idle for long.
func (s Service) probePorts(in engine.Inputs) ([]string, error) {
	var ports []string
	for _, database := range s.Databases {
		if database.Section != "database" {
			continue
		}
		parsed, err := config.ParseDatabase(in.Secret(database.Secret), database.Default)
		if err != nil {
			return nil, engine.Wait("Secret %s: %s", database.Secret, err)
		}
		ports = append(ports, fmt.Sprint(parsed.Port))
	}
	connections, err := s.connections(in)
	if err != nil {
		return nil, err
	}
	bus, err := config.TransportPorts(connections.Sections.Get("DEFAULT", "transport_url"))
	if err != nil {
		return nil, engine.Wait("Secret %s: %s", cmp.Or(s.Rendered, s.MessageBus), err)
	}
	anyOf := ""
	for i, port := range bus {
		if i > 0 {
			anyOf += ","
		}
		anyOf += fmt.Sprint(port)
	}
	return append(ports, anyOf), nil
}
