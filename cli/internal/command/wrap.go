package command

import "strings"

// width is the length of a line of text, in characters.
const width = 88

// wrap breaks the long lines of a text between words. Lines that begin with a space stay as
// they are.
func wrap(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, " ") {
			out.WriteString(line + "\n")
			continue
		}
		length := 0
		for _, word := range strings.Fields(line) {
			size := len([]rune(word))
			switch {
			case length == 0:
			case length+1+size > width:
				out.WriteString("\n")
				length = 0
			default:
				out.WriteString(" ")
				length++
			}
			out.WriteString(word)
			length += size
		}
		out.WriteString("\n")
	}
	return out.String()
}
