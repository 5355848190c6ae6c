module github.com/fenceline-dev/fenceline/deploy

go 1.26.0

require (
	buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go v1.36.12-20260825204119-511051f7f437.1
	buf.build/go/protovalidate v1.4.0
	github.com/Shopify/toxiproxy/v2 v2.5.0
	github.com/alecthomas/kong v1.17.0
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/bluekeyes/go-gitdiff v0.9.0
	github.com/bradleyfalzon/ghinstallation/v2 v2.12.0
	github.com/caarlos0/env/v11 v11.4.2
	github.com/fenceline-dev/fenceline/migrations v0.0.0
	github.com/fenceline-dev/fenceline/pkg v0.0.0
	github.com/fenceline-dev/fenceline/proto v0.0.0
	github.com/fenceline-dev/fenceline/services/ingest v0.0.0
	github.com/fenceline-dev/fenceline/services/ledger v0.0.0
	github.com/fenceline-dev/fenceline/services/publisher v0.0.0
	github.com/fenceline-dev/fenceline/services/reviewer v0.0.0
	github.com/fenceline-dev/fenceline/services/scheduler v0.0.0
	github.com/google/go-cmp v0.7.0
	github.com/google/go-github/v66 v66.0.0
	github.com/google/uuid v1.6.0
	github.com/grpc-ecosystem/go-grpc-middleware/v2 v2.3.4
	github.com/jackc/pgx/v5 v5.13.0
	github.com/pressly/goose/v3 v3.30.1
	github.com/prometheus/client_golang v1.25.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/rhysd/actionlint v1.7.7
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	github.com/yuin/goldmark v1.8.7
	go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc v0.72.0
	go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp v0.72.0
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/exporters/otlp/otlptrace v1.47.0
	go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc v1.47.0
	go.opentelemetry.io/otel/exporters/prometheus v0.69.0
	go.opentelemetry.io/otel/log v1.47.0
	go.opentelemetry.io/otel/metric v1.47.0
	go.opentelemetry.io/otel/sdk v1.47.0
	go.opentelemetry.io/otel/sdk/metric v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
	go.opentelemetry.io/proto/otlp v1.11.1
	go.uber.org/goleak v1.3.0
	golang.org/x/sync v0.25.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261110000943-09e21b237f2c
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
	pgregory.net/rapid v1.3.0
)

require golang.org/x/sys v0.50.0 // indirect

replace (
	github.com/fenceline-dev/fenceline/migrations => ../migrations
	github.com/fenceline-dev/fenceline/pkg => ../pkg
	github.com/fenceline-dev/fenceline/proto => ../proto
	github.com/fenceline-dev/fenceline/services/ingest => ../services/ingest
	github.com/fenceline-dev/fenceline/services/ledger => ../services/ledger
	github.com/fenceline-dev/fenceline/services/publisher => ../services/publisher
	github.com/fenceline-dev/fenceline/services/reviewer => ../services/reviewer
	github.com/fenceline-dev/fenceline/services/scheduler => ../services/scheduler
)
