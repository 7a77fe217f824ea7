package match

import "strings"

// matchWild reports whether the pieces of a text, with wildcards between them, occur in s one after
// the other. The last piece must be at the end of s if toEnd is set. Each piece is matched at its
// first occurrence, which leaves as much of s as possible to the later pieces. Therefore there is
// no backtracking, and the time is linear in the length of s.
func matchWild(text, s string, toEnd bool) bool {
	for {
		i := strings.IndexByte(text, '*')
		if i < 0 {
			if toEnd {
				return strings.HasSuffix(s, text)
			}
			return strings.Contains(s, text)
		}
		at := strings.Index(s, text[:i])
		if at < 0 {
			return false
		}
		s = s[at+i:]
		text = text[i+1:]
	}
}

// matchTwoForms reports whether a text with two forms matches s. The first wildcard of both forms
// is at the offset star, and s begins with the bytes before it. Each piece is matched at the first
// occurrence of its first form, or of its second form in the query, whichever ends first.
func matchTwoForms(text, s string, star int, toEnd bool) bool {
	first, second, _ := strings.Cut(text, "\n")
	first = first[star+1:]
	second = second[star+1:]
	query := strings.IndexByte(s, '?') + 1
	if query == 0 {
		return matchWild(first, s[star:], toEnd)
	}
	pos := star
	for more := true; more; {
		var p, q string
		p, first, more = strings.Cut(first, "*")
		q, second, _ = strings.Cut(second, "*")
		if !more && toEnd {
			return strings.HasSuffix(s[pos:], p) || strings.HasSuffix(s[max(pos, query):], q)
		}
		pos = endOfPiece(s, p, q, pos, query)
		if pos < 0 {
			return false
		}
	}
	return true
}

// endOfPiece returns the end of the first occurrence of p in s[pos:] or of q in the part of s[pos:]
// that is in the query, whichever ends first. The query begins at the given offset. endOfPiece
// returns -1 if there is no occurrence.
func endOfPiece(s, p, q string, pos, query int) int {
	end := -1
	if at := strings.Index(s[pos:], p); at >= 0 {
		end = pos + at + len(p)
	}
	query = max(pos, query)
	if at := strings.Index(s[query:], q); at >= 0 && (end < 0 || query+at+len(q) < end) {
		end = query + at + len(q)
	}
	return end
}
