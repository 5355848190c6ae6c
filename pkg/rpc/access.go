package rpc

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/fenceline-dev/fenceline/pkg/certs"
)

// Caller is an entry of the table: a service by its name, Operator, or Client.
type Caller string

// Callers that are no services.
const (
	Operator Caller = "operator" // any operator, for any tenant
	Client   Caller = "client"   // any client, for its own tenant
)

// Access is a service's table of who may call what: by full method name, the callers of each method. What
// isn't in it is nobody's. Health checks are for everybody with a certificate, reflection for operators.
type Access map[string][]Caller

// tenantField is the field of a request that names its tenant.
const tenantField = "tenant"

// Check reports entries that name no method of a linked contract, methods that have no entry though their
// service has, methods that are given to nobody, and those given to clients without a tenant to hold them to.
func (a Access) Check() error {
	var errs []error
	services := map[protoreflect.FullName]protoreflect.ServiceDescriptor{}
	for _, full := range slices.Sorted(maps.Keys(a)) {
		service, method, err := describe(full)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		services[service.FullName()] = service
		callers := a[full]
		if len(callers) == 0 {
			errs = append(errs, fmt.Errorf("%s is given to nobody", full))
		}
		field := method.Input().Fields().ByName(tenantField)
		if slices.Contains(callers, Client) && (field == nil || field.Kind() != protoreflect.StringKind || field.IsList()) {
			errs = append(errs, fmt.Errorf("%s is given to clients, and its request has no field %s", full, tenantField))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		methods := services[name].Methods()
		for i := range methods.Len() {
			full := fmt.Sprintf("/%s/%s", name, methods.Get(i).Name())
			if _, ok := a[full]; !ok {
				errs = append(errs, fmt.Errorf("%s has no entry", full))
			}
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("the table of callers: %w", errors.Join(errs...))
	}
	return nil
}

func describe(full string) (protoreflect.ServiceDescriptor, protoreflect.MethodDescriptor, error) {
	name, method, ok := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	service, is := found.(protoreflect.ServiceDescriptor)
	if !ok || err != nil || !is || !strings.HasPrefix(full, "/") {
		return nil, nil, fmt.Errorf("%q names no service", full)
	}
	m := service.Methods().ByName(protoreflect.Name(method))
	if m == nil {
		return nil, nil, fmt.Errorf("%q names no method", full)
	}
	return service, m, nil
}

// covers reports whether the table speaks of a service.
func (a Access) covers(service string) bool {
	for full := range a {
		if strings.HasPrefix(full, "/"+service+"/") {
			return true
		}
	}
	return false
}

// Allows reports whether the table gives a method to an identity. A client is held to its own tenant
// besides, which the request says.
func (a Access) Allows(id certs.Identity, method string) bool {
	switch {
	case strings.HasPrefix(method, "/grpc.health."):
		return true
	case strings.HasPrefix(method, "/grpc.reflection."):
		return id.Kind == certs.KindOperator
	}
	caller := Caller(id.Kind)
	if id.Kind == certs.KindService {
		caller = Caller(id.Name)
		if caller == Operator || caller == Client { // a service of that name is none
			return false
		}
	}
	return slices.Contains(a[method], caller)
}
