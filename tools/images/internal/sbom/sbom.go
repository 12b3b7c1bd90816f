// Package sbom writes the bill of materials of an image as SPDX 2.3: its variants, their
// files, and the Go modules of their programs.
package sbom

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // SPDX requires SHA-1 of every file, beside SHA-256
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"asterism.dev/tools/images/internal/ociimage"
	"asterism.dev/tools/internal/archive"
)

// MediaType of a document.
const MediaType = "application/spdx+json"

// Image is an image with its variants.
type Image struct {
	// Name is the name of the image, without registry.
	Name string
	// Repository is the image's address without tag and digest.
	Repository string
	// Version of the image, and of the modules without a version of their own.
	Version string
	// Digest of the index, as sha256:HEX.
	Digest string
	// Supplier is the organization that publishes the image.
	Supplier string
	// License is the SPDX identifier of the project's license.
	License string
	// Namespace is the beginning of the document's URI.
	Namespace string
	Created   time.Time
	Variants  []Variant
}

// Variant is the image for one architecture.
type Variant struct {
	ociimage.Variant
	// Digest of the manifest, as sha256:HEX.
	Digest string
	// Program has the modules of the variant's program, nil for an image without program.
	Program *debug.BuildInfo
}

// noAssertion is the value of a field that the document makes no statement about.
const noAssertion = "NOASSERTION"

// document collects the elements, each once.
type document struct {
	spdx.Document
	image Image
	known map[common.ElementID]bool
}

// Document returns the document as JSON. The same image gives the same document.
func Document(image Image) ([]byte, error) {
	d := &document{image: image, known: map[common.ElementID]bool{}}
	d.SPDXVersion, d.DataLicense, d.SPDXIdentifier = spdx.Version, spdx.DataLicense, "DOCUMENT"
	d.DocumentName = image.Name + "-" + image.Version
	d.DocumentNamespace = image.Namespace + "/" + image.Name + "@" + image.Digest
	d.CreationInfo = &spdx.CreationInfo{
		Creators: []common.Creator{{CreatorType: "Organization", Creator: image.Supplier}, {CreatorType: "Tool", Creator: "images-" + image.Version}},
		Created:  image.Created.UTC().Format(time.RFC3339),
	}
	index := d.container("index", image.Digest)
	d.relate(d.SPDXIdentifier, common.TypeRelationshipDescribe, index)
	for _, variant := range image.Variants {
		manifest := d.container(variant.Architecture, variant.Digest)
		d.relate(manifest, common.TypeRelationshipVariantOf, index)
		for _, file := range variant.Files {
			d.relate(manifest, common.TypeRelationshipContains, d.file(variant.Architecture, file))
		}
		if variant.Program != nil {
			d.program(manifest, variant.Program)
		}
	}
	var content bytes.Buffer
	if err := spdxjson.Write(&d.Document, &content, spdxjson.Indent(" ")); err != nil {
		return nil, fmt.Errorf("SBOM of %s: %w", image.Name, err)
	}
	return content.Bytes(), nil
}

// container adds the index, or the image of one architecture.
func (d *document) container(part, digest string) common.ElementID {
	algorithm, sum, _ := bytes.Cut([]byte(digest), []byte(":"))
	locator := fmt.Sprintf("pkg:oci/%s@%s%%3A%s?repository_url=%s", d.image.Name, algorithm, sum, d.image.Repository)
	if part != "index" {
		locator += "&arch=" + part
	}
	return d.add(&spdx.Package{
		PackageName: d.image.Name, PackageSPDXIdentifier: id("Image", part), PackageVersion: d.image.Version,
		PackageSupplier:           &common.Supplier{SupplierType: "Organization", Supplier: d.image.Supplier},
		PackageDownloadLocation:   d.image.Repository + "@" + digest,
		PackageChecksums:          []common.Checksum{{Algorithm: common.SHA256, Value: string(sum)}},
		PackageLicenseDeclared:    d.image.License,
		PackageExternalReferences: purl(locator),
		PrimaryPackagePurpose:     "CONTAINER",
	})
}

func (d *document) file(architecture string, file archive.File) common.ElementID {
	one, two := sha1.Sum(file.Content), sha256.Sum256(file.Content) //nolint:gosec // see the import
	element := &spdx.File{
		FileName: "/" + file.Path, FileSPDXIdentifier: id("File", architecture, file.Path),
		Checksums: []common.Checksum{
			{Algorithm: common.SHA1, Value: hex.EncodeToString(one[:])},
			{Algorithm: common.SHA256, Value: hex.EncodeToString(two[:])},
		},
		LicenseConcluded: noAssertion, LicenseInfoInFiles: []string{noAssertion}, FileCopyrightText: noAssertion,
	}
	d.Files = append(d.Files, element)
	return element.FileSPDXIdentifier
}

// program adds the modules that are linked into a program. Most are the same for every
// architecture.
func (d *document) program(container common.ElementID, program *debug.BuildInfo) {
	main := d.module(program.Main)
	d.relate(container, common.TypeRelationshipContains, main)
	library := debug.Module{Path: "stdlib", Version: strings.TrimPrefix(program.GoVersion, "go")}
	d.relate(main, common.TypeRelationshipDependsOn, d.module(library))
	for _, dependency := range program.Deps {
		d.relate(main, common.TypeRelationshipDependsOn, d.module(*dependency))
	}
}

// module adds a module of the program. The project's own modules have no version and no
// sum, because they are folders of the repository.
func (d *document) module(module debug.Module) common.ElementID {
	if module.Replace != nil && module.Replace.Sum != "" {
		module = *module.Replace
	}
	own := module.Sum == "" && module.Path != "stdlib"
	element := &spdx.Package{
		PackageName: module.Path, PackageVersion: module.Version,
		PackageDownloadLocation: noAssertion, PrimaryPackagePurpose: "LIBRARY",
	}
	if own {
		element.PackageVersion, element.PackageLicenseDeclared = "v"+d.image.Version, d.image.License
		element.PackageSupplier = &common.Supplier{SupplierType: "Organization", Supplier: d.image.Supplier}
	}
	if module.Sum != "" {
		element.PackageSourceInfo = "sum in go.sum: " + module.Sum
	}
	element.PackageExternalReferences = purl("pkg:golang/" + module.Path + "@" + element.PackageVersion)
	element.PackageSPDXIdentifier = id("Module", module.Path, element.PackageVersion)
	return d.add(element)
}

func (d *document) add(element *spdx.Package) common.ElementID {
	if name := element.PackageSPDXIdentifier; !d.known[name] {
		d.known[name] = true
		d.Packages = append(d.Packages, element)
	}
	return element.PackageSPDXIdentifier
}

// relate adds a relationship, unless the variant of another architecture has added it.
func (d *document) relate(from common.ElementID, how string, to common.ElementID) {
	if key := common.ElementID(fmt.Sprint(from, how, to)); !d.known[key] {
		d.known[key] = true
		d.Relationships = append(d.Relationships, &spdx.Relationship{
			RefA: common.DocElementID{ElementRefID: from}, Relationship: how, RefB: common.DocElementID{ElementRefID: to},
		})
	}
}

func purl(locator string) []*spdx.PackageExternalReference {
	return []*spdx.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: locator}}
}

var notInID = regexp.MustCompile(`[^a-zA-Z0-9.-]`)

// id returns an identifier, which may have letters, digits, dots and hyphens.
func id(parts ...string) common.ElementID {
	return common.ElementID(notInID.ReplaceAllString(strings.Join(parts, "-"), "-"))
}
