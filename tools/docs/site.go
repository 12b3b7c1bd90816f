package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	sourceOfPage = regexp.MustCompile(`<meta name="source" content="([^"]+)"`)
	navigation   = regexp.MustCompile(`(?s)<aside.*?</aside>`)
)

// checkSite finds pages that the rendered site lacks, or to which its navigation has no link.
func checkSite(site string, all pages) ([]string, error) {
	home, err := os.ReadFile(filepath.Join(site, "index.html"))
	if err != nil {
		return nil, err
	}
	links := string(navigation.Find(home))
	addresses := map[string]string{} // by source
	err = filepath.WalkDir(site, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "index.html" {
			return err
		}
		content, err := os.ReadFile(file)
		if found := sourceOfPage.FindSubmatch(content); found != nil {
			folder, _ := filepath.Rel(site, filepath.Dir(file))
			addresses[string(found[1])] = path.Join("/", filepath.ToSlash(folder)) + "/"
		}
		return err
	})
	var problems []string
	for _, page := range all.sorted() {
		switch address := addresses[page.path]; {
		case address == "":
			problems = append(problems, page.path+": not on the site: add it to tools/docs/site/hugo.toml")
		case address != "//" && !strings.Contains(links, `href="`+address+`"`):
			problems = append(problems, page.path+": no link in the navigation of the site")
		}
	}
	return problems, err
}
