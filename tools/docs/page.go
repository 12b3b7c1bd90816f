package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// page is a Markdown file.
type page struct {
	path     string // from the root of the repository, with slashes
	headings []heading
	links    []string
	blocks   []block
}

type heading struct {
	level  int
	text   string
	anchor string
}

// block is a block of code.
type block struct {
	language string
	text     string
}

// pages are pages by path.
type pages map[string]*page

// sorted returns the pages by path, so that problems are always listed in the same order.
func (p pages) sorted() []*page {
	return slices.SortedFunc(maps.Values(p), func(a, b *page) int { return strings.Compare(a.path, b.path) })
}

// readPages reads every Markdown file, except in testdata and in folders that begin with a dot.
func readPages(root string) (pages, error) {
	all := pages{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		made := parsePage(filepath.ToSlash(relative), source)
		all[made.path] = made
		return nil
	})
	return all, err
}

func parsePage(path string, source []byte) *page {
	made := &page{path: path}
	anchors := map[string]int{}
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) { // fails only if the function does
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Heading:
			title := textOf(node, source)
			made.headings = append(made.headings, heading{level: node.Level, text: title, anchor: anchorOf(title, anchors)})
		case *ast.Link:
			made.links = append(made.links, string(node.Destination))
		case *ast.Image:
			made.links = append(made.links, string(node.Destination))
		case *ast.FencedCodeBlock:
			language, _, _ := strings.Cut(string(node.Language(source)), " ")
			made.blocks = append(made.blocks, block{language: language, text: string(node.Lines().Value(source))})
		case *ast.CodeBlock:
			made.blocks = append(made.blocks, block{text: string(node.Lines().Value(source))})
		}
		return ast.WalkContinue, nil
	})
	return made
}

// textOf returns the text of a heading without its markup.
func textOf(node ast.Node, source []byte) string {
	var all strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		if leaf, ok := child.(*ast.Text); ok {
			all.Write(leaf.Segment.Value(source))
			continue
		}
		all.WriteString(textOf(child, source))
	}
	return all.String()
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchorOf returns the anchor of a heading in GitHub's form. A repeated heading gets a number.
func anchorOf(title string, seen map[string]int) string {
	anchor := strings.Map(unicode.ToLower, strings.ReplaceAll(notInAnchor.ReplaceAllString(title, ""), " ", "-"))
	count := seen[anchor]
	seen[anchor]++
	if count > 0 {
		return fmt.Sprintf("%s-%d", anchor, count)
	}
	return anchor
}
