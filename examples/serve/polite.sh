#!/bin/sh
# Fetches pages when collyrobots serve allows it: polite.sh URL...
service=${COLLYROBOTS:-http://127.0.0.1:8094}
agent="ExampleBot/1.0 (+https://example.com/bot)"
headers=$(mktemp) && trap 'rm -f "$headers"' EXIT

# ask sends a JSON object to the service. If the service is away or answers 429 or 503, curl says so, and
# tries up to five times more.
ask() { curl --no-progress-meter --noproxy '*' --retry 5 --retry-connrefused --fail-with-body -d "$2" "$service$1"; }

for url; do
	grant=$(ask /v1/turns "{\"url\": \"$url\", \"agent\": \"$agent\", \"wait\": 240}") || {
		echo "$url $grant"
		continue
	}
	turn=$(expr "$grant" : '.*"turn":"\([^"]*\)"')
	if status=$(curl -sS -m 30 -A "$agent" -D "$headers" -o /dev/null -w '%{http_code}' "$url"); then
		after=$(sed -n 's/^[Rr]etry-[Aa]fter: *\([^"\\]*\)\r$/\1/p' "$headers")
		ask "/v1/turns/$turn" "{\"status\": $status, \"headers\": {\"Retry-After\": \"$after\"}}" >/dev/null
		echo "$status $url"
	else
		ask "/v1/turns/$turn" "{\"error\": \"curl: exit status $?\"}" >/dev/null
		echo "$url failed"
	fi
done
