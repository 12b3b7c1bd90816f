// Package provenance writes the origin of an image as an in-toto statement with the SLSA
// predicate, version 1.
package provenance

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// MediaType of a statement.
	MediaType     = "application/vnd.in-toto+json"
	predicateType = "https://slsa.dev/provenance/v1"
)

// Build describes how an image was built. It has no times, so that the same source gives
// the same statement.
type Build struct {
	// Repository is the image's address without tag and digest.
	Repository string
	// Digests of the index and of its images, as sha256:HEX.
	Digests []string
	// Project is the URI of the project's source.
	Project string
	// Revision is the commit of the source, empty if files differ from every commit.
	Revision string
	// External are the parameters of the command, Internal the constants of the build.
	External, Internal map[string]any
	// Programs are the programs in the image.
	Programs []*debug.BuildInfo
}

// Statement returns the statement as JSON.
func Statement(build Build) ([]byte, error) {
	external, err := structpb.NewStruct(build.External)
	if err != nil {
		return nil, err
	}
	internal, err := structpb.NewStruct(build.Internal)
	if err != nil {
		return nil, err
	}
	predicate := &slsa.Provenance{
		BuildDefinition: &slsa.BuildDefinition{
			BuildType:            build.Project + "/tools/images/release/v1",
			ExternalParameters:   external,
			InternalParameters:   internal,
			ResolvedDependencies: dependencies(build),
		},
		RunDetails: &slsa.RunDetails{Builder: &slsa.Builder{Id: build.Project + "/tools/images"}},
	}
	if err := predicate.Validate(); err != nil {
		return nil, fmt.Errorf("provenance of %s: %w", build.Repository, err)
	}
	content, err := predicateOf(predicate)
	if err != nil {
		return nil, err
	}
	statement := &intoto.Statement{
		Type: intoto.StatementTypeUri, PredicateType: predicateType, Predicate: content, Subject: subjects(build),
	}
	if err := statement.Validate(); err != nil {
		return nil, fmt.Errorf("provenance of %s: %w", build.Repository, err)
	}
	return encode(statement)
}

func subjects(build Build) []*intoto.ResourceDescriptor {
	var all []*intoto.ResourceDescriptor
	for _, digest := range build.Digests {
		algorithm, sum, _ := strings.Cut(digest, ":")
		all = append(all, &intoto.ResourceDescriptor{Name: build.Repository, Digest: map[string]string{algorithm: sum}})
	}
	return all
}

// dependencies are the source, the Go toolchain and every module that is linked.
func dependencies(build Build) []*intoto.ResourceDescriptor {
	source := &intoto.ResourceDescriptor{Uri: "git+" + build.Project}
	if build.Revision != "" {
		source.Digest = map[string]string{"gitCommit": build.Revision}
	}
	all := []*intoto.ResourceDescriptor{source}
	sums := map[string]string{}
	for _, program := range build.Programs {
		sums["pkg:golang/toolchain@"+program.GoVersion] = ""
		for _, module := range program.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			if module.Sum != "" {
				sums["pkg:golang/"+module.Path+"@"+module.Version] = module.Sum
			}
		}
	}
	for uri, sum := range sums {
		dependency := &intoto.ResourceDescriptor{Uri: uri}
		if decoded, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && sum != "" {
			dependency.Digest = map[string]string{"dirHash": hex.EncodeToString(decoded)}
		}
		all = append(all, dependency)
	}
	slices.SortFunc(all[1:], func(a, b *intoto.ResourceDescriptor) int { return strings.Compare(a.GetUri(), b.GetUri()) })
	return all
}

func predicateOf(predicate *slsa.Provenance) (*structpb.Struct, error) {
	content, err := protojson.Marshal(predicate)
	if err != nil {
		return nil, err
	}
	generic := &structpb.Struct{}
	return generic, protojson.Unmarshal(content, generic)
}

// encode writes sorted keys, because protojson varies its white space on purpose.
func encode(statement *intoto.Statement) ([]byte, error) {
	content, err := protojson.Marshal(statement)
	if err != nil {
		return nil, err
	}
	var generic any
	if err := json.Unmarshal(content, &generic); err != nil {
		return nil, err
	}
	return json.MarshalIndent(generic, "", " ")
}
