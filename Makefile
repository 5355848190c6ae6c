# Everything a contributor runs. `make` alone lists it.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DELETE_ON_ERROR:

BIN := $(CURDIR)/.bin

# Tools are pinned here and built into .bin; a tools module would raise the versions of all nine modules.
BUF           := github.com/bufbuild/buf/cmd/buf@v1.75.0
PROTOC_GO     := google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
PROTOC_GRPC   := google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
GOTESTSUM     := gotest.tools/gotestsum@v1.13.0
GRPCURL       := github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3
GOLANGCI      := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# The release of the rules that buf.build/go/protovalidate v1.4.0 was built with.
PROTOVALIDATE := github.com/bufbuild/protovalidate@v1.2.2

stamp = $(BIN)/.$(notdir $(1))
define tool
$(call stamp,$(1)):
	@mkdir -p $(BIN)
	@echo "building $(notdir $(1)) (once)"
	@flock $(BIN)/.tools.lock env GOBIN=$(BIN) go install $(1)
	@touch $$@
endef
$(foreach t,$(BUF) $(PROTOC_GO) $(PROTOC_GRPC) $(GOTESTSUM) $(GRPCURL) $(GOLANGCI),$(eval $(call tool,$(t))))

$(call stamp,$(PROTOVALIDATE)):
	@mkdir -p $(BIN)/protovalidate/buf/validate
	@dir=$$(go mod download -json $(PROTOVALIDATE) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') && \
		install -m 644 "$$dir/proto/protovalidate/buf/validate/validate.proto" $(BIN)/protovalidate/buf/validate/
	@touch $@

proto_tools := $(foreach t,$(BUF) $(PROTOC_GO) $(PROTOC_GRPC) $(PROTOVALIDATE),$(call stamp,$(t)))

# No version stamp: a clone owned by another user makes git refuse to tell it, and go build fail.
FENCELINE = go build -buildvcs=false -o $(BIN)/fenceline ./deploy/cmd/fenceline
# What make test and make bench run, and with which further arguments of go test.
PKG  ?= work
ARGS ?=

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Review a small repository from webhook to comment [REPO=path BASE=main HEAD=branch JSON=file]
	@scripts/needs postgresql redis git
	@$(FENCELINE)
	@$(BIN)/fenceline demo $(if $(REPO),--repo '$(REPO)') $(if $(BASE),--base '$(BASE)') $(if $(HEAD),--head '$(HEAD)') $(if $(JSON),--json '$(JSON)')

.PHONY: up
up: $(call stamp,$(GRPCURL)) ## Run the whole stack until Ctrl-C
	@scripts/needs postgresql redis git
	@$(FENCELINE)
	@exec $(BIN)/fenceline up

.PHONY: test
test: $(call stamp,$(GOTESTSUM)) ## Run every test against real PostgreSQL and Redis [PKG=./pkg/... ARGS='-run X']
	@scripts/needs
	@$(FENCELINE)
	@$(BIN)/fenceline with-services -- $(BIN)/gotestsum --format pkgname --format-icons text --format-hide-empty-pkg -- \
		-race -shuffle=on -count=1 -timeout 20m $(ARGS) $(PKG)

.PHONY: bench
bench: ## Run the benchmarks on a cluster that syncs to disk, ending in a table [PKG=… ARGS='-bench X']
	@scripts/needs
	@$(FENCELINE)
	@PKG='$(filter-out work,$(PKG))' scripts/bench $(ARGS)

.PHONY: lint
lint: $(call stamp,$(GOLANGCI)) ## Run the linters over the nine modules
	@$(BIN)/golangci-lint run $$(go list -m -f '{{.Dir}}/...')

.PHONY: fmt
fmt: $(call stamp,$(GOLANGCI)) ## Format the Go code
	@$(BIN)/golangci-lint fmt $$(go list -m -f '{{.Dir}}')

.PHONY: generate
generate: $(proto_tools) ## Regenerate proto/gen from the .proto files
	@scripts/generate

.PHONY: baseline
baseline: $(proto_tools) ## Accept the protos as they are as what must not break from now on
	@$(BIN)/buf build proto --exclude-source-info --output proto/baseline.binpb

.PHONY: verify
verify: $(proto_tools) ## Check generated code, contracts, modules and SQL rules
	@scripts/verify

.PHONY: tidy
tidy: ## Tidy the nine modules and bring their versions together
	@tidy() { for dir in $$(go list -m -f '{{.Dir}}'); do (cd "$$dir" && GOWORK=off go mod tidy); done; }; \
		tidy && go work sync && tidy

.PHONY: setup
setup: $(proto_tools) $(call stamp,$(GOTESTSUM)) $(call stamp,$(GRPCURL)) $(call stamp,$(GOLANGCI)) ## Build the pinned tools into .bin

.PHONY: clean
clean: ## Remove the tools and what the local stack left
	@rm -rf $(BIN) .fenceline
