package main

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// checkLinks finds relative links to files, folders and headings that do not exist.
// It does not check URLs.
func checkLinks(root string, all pages) ([]string, error) {
	var problems []string
	for _, from := range all.sorted() {
		for _, link := range from.links {
			if problem := deadLink(root, all, from, link); problem != "" {
				problems = append(problems, fmt.Sprintf("%s: link %s: %s", from.path, link, problem))
			}
		}
	}
	return problems, nil
}

// deadLink says why a link is dead; "" for a link whose target exists.
func deadLink(root string, all pages, from *page, link string) string {
	address, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	if address.Scheme != "" || address.Host != "" {
		return ""
	}
	target := from.path
	if address.Path != "" {
		target = path.Join(path.Dir(from.path), address.Path)
	}
	if strings.HasPrefix(target, "../") {
		return "its target is outside the repository"
	}
	info, err := os.Stat(filepath.Join(root, filepath.FromSlash(target)))
	if os.IsNotExist(err) {
		return target + " does not exist"
	}
	if err != nil {
		return err.Error()
	}
	if address.Fragment == "" {
		return ""
	}
	if info.IsDir() {
		target = path.Join(target, "README.md")
	}
	page, ok := all[target]
	if !ok {
		return target + " is not a page and has no headings"
	}
	if !slices.ContainsFunc(page.headings, func(h heading) bool { return h.anchor == address.Fragment }) {
		return target + " has no heading of that anchor"
	}
	return ""
}
