package usage

import "strings"

// maxField is the number of bytes that are read from a header field, whose lines are combined. The
// members after that are ignored, and so is one that is cut off there.
const maxField = 8 << 10

// combine returns the lines of a header field as one list. It returns at most maxField bytes, and
// whether there are more.
func combine(lines []string) (list string, cut bool) {
	if len(lines) == 1 && len(lines[0]) <= maxField {
		return lines[0], false
	}
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(line[:min(len(line), maxField)])
		if b.Len() > maxField || len(line) > maxField {
			return b.String()[:maxField], true
		}
	}
	return b.String(), false
}

// completeMembers returns the members of a list that are followed by a comma. A comma in a quoted
// string is part of a member.
func completeMembers(list string) string {
	end := 0
	quoted := false
	for i := 0; i < len(list); i++ {
		switch {
		case list[i] == '\\' && quoted:
			i++
		case list[i] == '"':
			quoted = !quoted
		case list[i] == ',' && !quoted:
			end = i
		}
	}
	return list[:end]
}
