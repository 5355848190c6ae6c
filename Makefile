# Everything a contributor runs. `make` alone lists it.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DELETE_ON_ERROR:

BIN := $(CURDIR)/.bin
export GOTOOLCHAIN ?= local

# Tools are pinned here and built into .bin; a tools module would raise the versions of all nine modules.
BUF           := github.com/bufbuild/buf/cmd/buf@v1.75.0
PROTOC_GO     := google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
PROTOC_GRPC   := google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
GOTESTSUM     := gotest.tools/gotestsum@v1.13.0
GOLANGCI      := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# The release of the rules that buf.build/go/protovalidate v1.4.0 was built with.
PROTOVALIDATE := github.com/bufbuild/protovalidate@v1.2.2

stamp = $(BIN)/.$(notdir $(1))
define tool
$(call stamp,$(1)):
	@mkdir -p $(BIN)
	@echo "building $(notdir $(1)) (once)"
	@flock $(BIN)/.$(firstword $(subst @, ,$(notdir $(1)))).lock env GOBIN=$(BIN) go install $(1)
	@touch $$@
endef
$(foreach t,$(BUF) $(PROTOC_GO) $(PROTOC_GRPC) $(GOTESTSUM) $(GOLANGCI),$(eval $(call tool,$(t))))

$(call stamp,$(PROTOVALIDATE)):
	@mkdir -p $(BIN)/protovalidate/buf/validate
	@dir=$$(go mod download -json $(PROTOVALIDATE) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') && \
		install -m 644 "$$dir/proto/protovalidate/buf/validate/validate.proto" $(BIN)/protovalidate/buf/validate/
	@touch $@

proto_tools := $(foreach t,$(BUF) $(PROTOC_GO) $(PROTOC_GRPC) $(PROTOVALIDATE),$(call stamp,$(t)))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(proto_tools) $(call stamp,$(GOTESTSUM)) $(call stamp,$(GOLANGCI)) ## Build the pinned tools into .bin

.PHONY: generate
generate: $(proto_tools) ## Regenerate proto/gen from the .proto files
	@scripts/generate
