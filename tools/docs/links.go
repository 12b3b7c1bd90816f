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
// Addresses on the network are not asked.
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

// deadLink says why a link leads nowhere; "" for a link that does not.
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
		return "leads out of the repository"
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
		return target + " is no page, and has no headings"
	}
	if !slices.ContainsFunc(page.headings, func(h heading) bool { return h.anchor == address.Fragment }) {
		return target + " has no heading of that anchor"
	}
	return ""
}
