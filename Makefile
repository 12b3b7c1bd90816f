# `make help` lists the targets. Every list of modules is a glob: a new operator needs
# a directory and a line in go.work, and `make generate` writes what else lists the operators.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CACHE := $(or $(ASTERISM_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/asterism)
export PATH := $(CACHE)/bin:$(PATH)

# The same flags for every build, so that programs, images, tools and tests share one
# compilation of what they have in common. The race detector alone needs cgo.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(shell go env GOFLAGS) -trimpath)

# With a larger heap, the compiler needs a fifth less CPU. What it builds runs without it.
go-build := GOGC=400 go build
go-run := GOGC=400 go run -exec "env -u GOGC"
go-test := GOGC=400 go test -exec "env -u GOGC"

operators := $(patsubst operators/%/go.mod,%,$(wildcard operators/*/go.mod))
libraries := $(patsubst %/go.mod,%,$(wildcard lib/*/go.mod))
modules := $(libraries) $(addprefix operators/,$(operators))
outside := cli test tools $(patsubst %/go.mod,%,$(wildcard tools/*/go.mod)) # of the workspace
testserver := $(CURDIR)/.testserver
cluster = cd tools && GOWORK=off $(go-run) ./cluster --dir $(testserver)

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##### Generated files

generate-operators := $(addprefix generate-,$(operators))
tidy-modules := $(addprefix tidy-,$(modules) $(outside))

.PHONY: generate
generate: generate-common $(generate-operators) generate-lists generate-packages generate-cli ## Regenerate deep copies, CRDs, RBAC, lists of operators, packages, and texts of the CLI.

.PHONY: generate-common
generate-common: generators
	for library in $(libraries); do (cd $$library && controller-gen object paths=./api/... && go generate ./...); done

.PHONY: generate-cli
generate-cli:
	cd cli && GOWORK=off go generate ./...

.PHONY: $(generate-operators)
$(generate-operators): generate-%: generators
	cd operators/$* && controller-gen object paths=./api/...
	rm -f operators/$*/config/crd/*_*.yaml
	cd operators/$* && controller-gen crd paths=./api/... output:crd:dir=config/crd
	cd operators/$* && controller-gen rbac:roleName=operator paths=./... output:rbac:dir=config/rbac
	descriptions operators/$*/config/crd/*_*.yaml

# The kustomizations, modules and sources that list the operators.
.PHONY: generate-lists
generate-lists: $(generate-operators)
	$(write-lists)

# Bundles, the catalog and charts are made from the manifests.
.PHONY: generate-packages
generate-packages: $(generate-operators) generate-lists
	$(write-packages)

write-lists := cd tools && GOWORK=off $(go-run) ./operator lists
write-packages := cd tools && GOWORK=off $(go-run) ./packaging

.PHONY: operator
operator: ## Write the skeleton of a new operator, NAME=nova-example.
	cd tools && GOWORK=off $(go-run) ./operator new -name '$(NAME)'
	$(MAKE) --no-print-directory generate-$(NAME)
	$(write-lists)
	$(write-packages)
	$(MAKE) --no-print-directory generate-cli
	cd operators/$(NAME) && go test ./internal/... -run /Golden -skip TestSuite -update
	@echo 'operators/$(NAME) is a copy of the operator of the scheduler. Next:'; \
	echo '1. Write its kind (api), stages (internal), texts (README.md, packaging.yaml) and samples; then "make generate tidy", and golden files by -update.'; \
	echo '2. Add it to the tables of README.md, SECURITY.md and docs/helm.md: "cd tools && GOWORK=off go run ./docs" names what is missing.'; \
	echo '3. Run "make test lint verify".'

.PHONY: generators
generators:
	cd tools/generators && GOWORK=off $(go-build) -o $(CACHE)/bin/ sigs.k8s.io/controller-tools/cmd/controller-gen ./descriptions

.PHONY: verify
verify: generate $(tidy-modules) ## Regenerate everything; fail if the tree is not clean afterwards.
	@changed=$$(git status --porcelain); [[ -z $$changed ]] || { \
	  printf 'The tree is not clean after "make generate": commit these changes:\n%s\n' "$$changed" >&2; exit 1; }

.PHONY: $(tidy-modules)
$(tidy-modules): tidy-%:
	cd $* && GOWORK=off go mod tidy -diff

.PHONY: tidy
tidy: ## Tidy every module after a change of any go.mod.
	@for module in $(modules) $(outside); do echo "$$module"; (cd $$module && GOWORK=off go mod tidy); done

##### Tests

build-modules := $(addprefix build-,$(modules))
tool-tests := test-cli test-tools test-tools/efs-driver test-test
test-modules := $(addprefix test-,$(modules))
benches := $(patsubst operators/%/internal/bench,bench-%,$(wildcard operators/*/internal/bench))

.PHONY: test
test: test-requirements $(build-modules) test-server ## Run every test that needs no root.
	@trap '$(MAKE) --no-print-directory test-server-down' EXIT; \
	$(MAKE) --no-print-directory --keep-going --jobs=2 without-race=true \
	    test-race test-operators/nova \
	    $(filter-out $(addprefix test-,$(libraries) operators/nova operators/shared-volume),$(test-modules)) $(tool-tests) && \
	  $(MAKE) --no-print-directory --keep-going --jobs=2 $(benches) BENCH_ARGS='$(few)'

# Suites wait most of their time, and so two modules, and two benches, are tested at once, those
# with the longest suites first.
# The benches check counts, which hold for few objects as well. They do not check times.
few := -count-of 100 -runs 1 -both=false

# The tests compare with the real oslo.config, register at a real MariaDB, serve with the real
# uWSGI and filter packets with the real nftables. Go's race detector needs a C compiler.
test-packages := gcc iproute2 iptables libc6-dev mariadb-client-core mariadb-server-core nftables prometheus python3-oslo.config uwsgi-core uwsgi-plugin-python3

.PHONY: test-requirements
test-requirements: ## Install the Debian packages that the tests need (as root).
	@command -v dpkg-query >/dev/null || exit 0; missing=(); for package in $(test-packages); do \
	  dpkg-query --show --showformat='$${db:Status-Status}' "$$package" 2>/dev/null | grep -qx installed || missing+=("$$package"); \
	done; \
	(($${#missing[@]})) || exit 0; \
	install="apt-get install -y --no-install-recommends $${missing[*]}"; \
	[[ $$EUID == 0 ]] || { echo "The tests need packages that are not installed. As root, run: apt-get update && $$install" >&2; exit 1; }; \
	echo "Installing $${missing[*]} …"; apt-get -qq update; DEBIAN_FRONTEND=noninteractive $${install/install/-qq install}; \
	[[ " $${missing[*]} " != *' prometheus '* ]] || systemctl --quiet disable --now prometheus 2>/dev/null || true # the tests need only promtool

# -count 1: a cached result may be of another API server, or of other CRDs. The linter has
# vetted the packages. Without debug information the test programs are linked faster.
test-flags := -count 1 -timeout 45m -vet=off -ldflags=-w

# The race detector makes a suite slower, and compiles its packages and all that they import
# again. It watches the packages whose goroutines share data.
race := $(patsubst %,./%/...,$(libraries)) ./operators/shared-volume/...

# These tests of the demo mostly render manifests, in one goroutine.
rendering := ^Test(Publish|OperatorOfAKindIsFound|DriverHasImagesOfTheDemo|ExistingClusterGetsNoDriver)$$

.PHONY: test-race
test-race: export KUBECONFIG := $(testserver)/kubeconfig
test-race:
	CGO_ENABLED=1 $(go-test) -race $(test-flags) $(race)
	cd tools && CGO_ENABLED=1 GOWORK=off $(go-test) -race $(test-flags) -skip '$(rendering)' ./cluster ./demo ./internal/...
	cd tools && GOWORK=off $(go-test) $(test-flags) -run '$(rendering)' ./demo
	cd test && CGO_ENABLED=1 GOWORK=off $(go-test) -race $(test-flags) ./cloud

.PHONY: $(test-modules)
$(test-modules): export KUBECONFIG := $(testserver)/kubeconfig
$(test-modules): test-%:
	cd $* && $(go-test) $(test-flags) $$(go list ./... $(if $(without-race),| grep -vxFf <(cd $(CURDIR) && go list $(race))))

# Tools are not in the workspace. Of these, the tests of the charts and of the demo use the API server.
test-tools: export KUBECONFIG := $(testserver)/kubeconfig
.PHONY: $(tool-tests)
$(filter-out test-cli,$(tool-tests)): test-%:
	cd $* && GOWORK=off $(go-test) $(test-flags) $$(GOWORK=off go list ./... | grep -vxE 'asterism.dev/test/(e2e|packages)$(if $(without-race),|asterism.dev/(test/cloud|tools/(cluster|demo|internal/.*)))')

# The CLI refuses to remove operators while any object of their kinds exists in the cluster,
# so its tests have an API server without the objects of other suites.
test-cli: testserver := $(CURDIR)/.testserver/cli
test-cli: export KUBECONFIG := $(CURDIR)/.testserver/cli/kubeconfig
test-cli: export PATH := $(CACHE)/packages:$(PATH)
test-cli: helm # the commands that install run it
	@trap '($(cluster) down)' EXIT; ($(cluster) up --control-plane-only); \
	(cd cli && GOWORK=off $(go-test) $(test-flags) ./...)

# A module must also build outside the workspace, as its users build it.
.PHONY: $(build-modules)
$(build-modules): build-%:
	cd $* && GOWORK=off $(go-build) ./...

.PHONY: test-server
test-server: ## Start the API server that the test suites use.
	$(cluster) up --control-plane-only

.PHONY: test-server-down
test-server-down: ## Stop this API server and remove its files.
	$(cluster) down

##### Figures

.PHONY: bench
bench: test-server ## Compare with bare clients; BENCH_ARGS are arguments of the benches.
	@trap '$(MAKE) --no-print-directory test-server-down' EXIT; \
	for target in $(benches); do $(MAKE) --no-print-directory $$target; done

.PHONY: $(benches)
$(benches): export KUBECONFIG := $(testserver)/kubeconfig
$(benches): bench-%:
	cd operators/$* && go test -tags bench -timeout 2h -count 1 -v ./internal/bench -args $(BENCH_ARGS)

.PHONY: bench-trees
bench-trees: export KUBECONFIG := $(testserver)/kubeconfig
bench-trees: test-server ## Run the Nova operators with 1,000 control planes; BENCH_ARGS are arguments.
	@trap '($(cluster) down)' EXIT; \
	cd test && GOWORK=off go test -tags bench -timeout 6h -count 1 -v ./bench/trees -args $(BENCH_ARGS)

##### Demo

# CLUSTER, OPERATORS, IMAGE_REGISTRY, RELEASE and LIBVIRT are set in the environment or on the command line.
demo := cd tools && CLUSTER='$(CLUSTER)' OPERATORS='$(OPERATORS)' IMAGE_REGISTRY='$(IMAGE_REGISTRY)' RELEASE='$(RELEASE)' LIBVIRT='$(LIBVIRT)' GOWORK=off $(go-run) ./demo

.PHONY: demo
demo: ## Boot a cluster, deploy Nova on it, start a server (as root).
	@echo 'Building tools/demo, the first time in 2 to 4 minutes …'; $(demo) up

# Ginkgo writes the time of each spec to a file in this folder.
reports := $(CACHE)/reports

# The tests also register accounts at the demo's servers.
.PHONY: e2e
e2e: demo ## Run every test that needs a node, on the cluster of the demo (as root).
	cd test/e2e && . $(CURDIR)/.cluster/env && \
	  RELEASE='$(RELEASE)' GOWORK=off GOGC=400 go tool ginkgo --procs=3 --timeout=50m --poll-progress-after=300s --show-node-events=false --output-dir=$(reports) --json-report=e2e.json .

.PHONY: e2e-upgrade
e2e-upgrade: UPGRADE := trixie forky
e2e-upgrade: demo ## Upgrade Nova from each of the releases of Debian in UPGRADE to the next, under load (as root).
	cd test/e2e && . $(CURDIR)/.cluster/env && UPGRADE='$(UPGRADE)' GOWORK=off GOGC=400 go tool ginkgo \
	  --timeout=60m --poll-progress-after=300s --show-node-events=false --output-dir=$(reports) --json-report=e2e-upgrade.json --focus 'An upgrade' .

.PHONY: e2e-ha
e2e-ha: demo ## Kill each member of clusters of MariaDB and RabbitMQ while Nova is under load (as root).
	cd test/e2e && . $(CURDIR)/.cluster/env && HA=1 GOWORK=off GOGC=400 go tool ginkgo \
	  --timeout=90m --poll-progress-after=300s --show-node-events=false --output-dir=$(reports) --json-report=e2e-ha.json --focus 'A cloud on clusters' .

# The release of OLM has no images that every machine can pull, so OLM is built from its
# modules, like Helm.
programs := $(CACHE)/packages
olm-tags := containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper,json1
olm := github.com/operator-framework/operator-lifecycle-manager
olm-module = $$(cd $(CURDIR)/tools/olm && GOWORK=off go mod download $(olm) && GOWORK=off go list -m -f '{{.Dir}}' $(olm))
test-packages-suite = cd tools && GOWORK=off $(go-run) ./cluster up && . $(CURDIR)/.cluster/env && cd $(CURDIR)/test/packages && \
  PROGRAMS=$(programs) OLM_MODULE=$(olm-module) \
  GOWORK=off GOGC=400 go tool ginkgo --timeout=40m --show-node-events=false --output-dir=$(reports) --json-report=packages.json --label-filter='$(1)' .

.PHONY: packages-e2e
packages-e2e: helm ## Install, upgrade and remove a release with kubectl, Helm and OLM, one after the other (as root).
	$(call test-packages-suite,install || helm || olm)

.PHONY: install-e2e
install-e2e: ## The part of packages-e2e with kubectl (as root).
	$(call test-packages-suite,install)

.PHONY: helm-e2e
helm-e2e: helm ## The part of packages-e2e with the real Helm (as root).
	$(call test-packages-suite,helm)

.PHONY: olm-e2e
olm-e2e: ## The part of packages-e2e with the real OLM (as root).
	$(call test-packages-suite,olm)

.PHONY: program-olm
program-olm: # the suite builds it while other installations wait
	mkdir -p $(programs)
	cd tools/olm && GOWORK=off $(go-build) -ldflags '-s -w' -tags $(olm-tags) -o $(programs)/ tool ./cp

.PHONY: helm
helm:
	mkdir -p $(programs)
	cd tools/helm && GOWORK=off $(go-build) -ldflags '-s -w' -o $(programs)/ tool

.PHONY: demo-down
demo-down: ## Remove everything that the demo has created.
	@$(demo) down

##### Installation

.PHONY: push
push: ## Push the operators' images to IMAGE_REGISTRY=HOST/PATH, and print the commands of the installation.
	@$(demo) push

##### Release

release := $(CURDIR)/.release

.PHONY: release
release: ## Push a release to IMAGE_REGISTRY=HOST/PATH: operators for two platforms, bundles, catalogs; build the CLI.
	@[[ -n '$(IMAGE_REGISTRY)' ]] || { \
	  echo 'release needs IMAGE_REGISTRY=HOST/PATH: a registry that you may push to' >&2; exit 1; }
	cd tools && GOWORK=off $(go-run) ./images release --root $(CURDIR) --output $(release) --push \
	  --registry '$(IMAGE_REGISTRY)' --version '$(VERSION)' --mirror '$(OPERAND_MIRROR)' --signing-key '$(abspath $(SIGNING_KEY))'
	cd tools && GOWORK=off $(go-run) ./images plugin --root $(CURDIR) --output $(release)/cli --version '$(VERSION)'
	@echo; echo 'Next, install the operators in one of these ways. The page has the steps after the first one:'; \
	echo '  OLM, OpenShift  docs/guides/openshift.md   kubectl apply -n openshift-marketplace -f .release/catalogsource.yaml'; \
	echo '  Helm            docs/helm.md               kubectl apply -f config/operator-namespaces.yaml'; \
	echo '  kubectl         docs/guides/kubernetes.md  kubectl apply --server-side -f .release/dist/install.yaml'; \
	echo '"kubectl asterism install --with olm|helm|kubectl" does all steps; "make cli" builds this program. OLM v1'; \
	echo 'reads .release/clustercatalog.yaml. If the nodes cannot reach the registry, read docs/guides/disconnected.md.'

.PHONY: operand-digests
operand-digests: ## Print the images of other projects with the digests of their tags, to pin them in packaging.yaml.
	@cd tools && GOWORK=off $(go-run) ./images operands --root $(CURDIR) --mirror '$(OPERAND_MIRROR)'

BIN := $(HOME)/.local/bin

.PHONY: cli
cli: ## Build kubectl asterism and install it in BIN (default: ~/.local/bin).
	cd cli && GOWORK=off $(go-build) -o '$(BIN)/kubectl-asterism' \
	  -ldflags '-s -w -X asterism.dev/cli/internal/command.release=$(shell git describe --always --dirty 2>/dev/null)' .
	install -m 755 cli/kubectl_complete-asterism '$(BIN)/'
	@[[ ":$$PATH:" == *':$(BIN):'* ]] || echo 'kubectl finds the program only in PATH: type  export PATH="$$PATH:$(BIN)"'

##### Documentation

site := $(CURDIR)/.site

.PHONY: docs
docs: ## Check the Markdown pages, and render them as a static site in .site.
	rm -rf $(site)
	cd tools/docs/site && export HUGO_MODULE_PROXY="$$(go env GOPROXY)" && GOWORK=off go tool hugo --logLevel error \
	  --source $(CURDIR) --config tools/docs/site/hugo.toml --destination $(site) --noBuildLock
	cd tools && GOWORK=off $(go-run) ./docs .. $(site)
	@echo 'The site is in $(site): python3 -m http.server --bind 127.0.0.1 --directory $(site)'

##### Style

# One run loads the packages that modules have in common once. Beside the tests, whose waits
# have deadlines, the linter takes what they leave of the processors.
.PHONY: lint
lint: linter ## Run the linters of .golangci.yml.
	GOWORK=$(CURDIR)/tools/lint/go.work GOGC=400 nice golangci-lint run --allow-parallel-runners $(patsubst %,./%/...,$(modules) cli test tools tools/generators)
	for module in tools/efs-driver tools/olm; do \
	  (cd $$module && GOWORK=off nice golangci-lint run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...) || exit; \
	done

# .ci/run leaves this target out, because govulncheck sends requests to vuln.go.dev.
.PHONY: vulncheck
vulncheck: ## Find known vulnerabilities in called code (sends requests to vuln.go.dev).
	cd tools/lint && GOWORK=off $(go-build) -o $(CACHE)/bin/ golang.org/x/vuln/cmd/govulncheck
	@failed=; for module in $(modules) cli test tools tools/efs-driver tools/olm tools/generators; do \
	  echo "$$module"; (cd $$module && GOWORK=off govulncheck ./...) || failed+=" $$module"; \
	done; \
	[[ -z $$failed ]] || { echo "failed:$$failed" >&2; exit 1; }

.PHONY: fmt
fmt: linter ## Format every Go file.
	golangci-lint fmt --config .golangci.yml cli lib operators tools test

.PHONY: linter
linter:
	cd tools/lint && GOWORK=off $(go-build) -o $(CACHE)/bin/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
