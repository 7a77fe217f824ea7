package browsertest

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestPlayground builds the playground once, and uses it in a browser and with Node.
func TestPlayground(t *testing.T) {
	p := playground{dir: t.TempDir(), program: filepath.Join(t.TempDir(), "playground.exe")}
	for _, args := range [][]string{{"go", "build", "-o", p.program, "./playground"}, {p.program, "-out", p.dir}} {
		if out, err := p.command(t, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	server := httptest.NewServer(http.FileServer(http.Dir(p.dir)))
	defer server.Close()
	p.url = server.URL + "/"
	t.Run("Serve", p.testServe)
	t.Run("Size", p.testSize)
	t.Run("Node", p.testNode)
	t.Run("Hosts", p.testHosts)
	for name, test := range map[string]func(*tab){
		"Typing": p.testTyping, "Examples": p.testExamples, "Keyboard": p.testKeyboard, "Link": p.testLink,
		"Widths": p.testWidths, "BadInput": p.testBadInput, "KeyPress": p.testKeyPress,
	} {
		t.Run(name, func(t *testing.T) {
			b := p.open(t)
			test(b)
			b.quiet(p.url)
		})
	}
	t.Run("Policy", p.testPolicy)
	t.Run("Loading", p.testLoading)
}

// testLoading checks that the page says that the code is loading, and that it cannot be loaded.
func (p playground) testLoading(t *testing.T) {
	var lost atomic.Bool
	release := make(chan struct{})
	files := http.FileServer(http.Dir(p.dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if !strings.HasSuffix(r.URL.Path, ".wasm.gz") {
			files.ServeHTTP(w, r)
			return
		}
		if lost.Load() {
			http.NotFound(w, r)
			return
		}
		<-release
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	b := open(t)
	b.run(chromedp.Navigate(server.URL))
	shown := `document.body.innerText`
	b.within(soon, has(shown, "5 URLs")+` && `+has(shown, "The code that reads the file is loading.")+` && `+has(shown, "not checked yet"))
	if eval[bool](b, has(shown, "…")+` || `+has(shown, "decided")) {
		t.Errorf("the page shows %q", eval[string](b, shown))
	}
	close(release)
	b.within(soon, decided+`.length === 35 && !`+has(shown, "is loading"))
	b.within(soon, linted)

	lost.Store(true)
	b.run(chromedp.Navigate("about:blank"), chromedp.Navigate(server.URL))
	b.within(soon, has(shown, "The code that reads the file cannot be loaded: collyrobots.wasm.gz: status 404. Reload the page."))
}

// A playground has the files of the page in a folder, and serves them.
type playground struct {
	program string // the command playground
	dir     string
	url     string
}

// command returns a command that runs in the root of the repository.
func (p playground) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = filepath.Join("..", "..", "..")
	return cmd
}

// testServe checks that the command serves the page until it is interrupted.
func (p playground) testServe(t *testing.T) {
	cmd := p.command(t, p.program, "-addr", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var page string
	for lines := bufio.NewScanner(stderr); page == "" && lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "serving "); ok {
			page, _, _ = strings.Cut(rest, " ")
		}
	}
	resp, err := http.Get(page + "collyrobots.wasm.gz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
	err = errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait())
	if err != nil {
		t.Error(err)
	}
}

// open opens the page in a browser and waits until it shows verdicts.
func (p playground) open(t *testing.T) *tab {
	t.Helper()
	b := open(t)
	b.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(p.url))
	b.within(soon, decided+`.length > 0`)
	return b
}

// decided is an expression for the cells of the matrix with a verdict, as texts. It is empty while a
// worker has not answered.
const decided = `(document.querySelector("#matrix .waiting, #matrix .stale") ? [] : [...document.querySelectorAll("#matrix-rows td")].map(cell => cell.innerText.replace(/\s+/g, " ").trim()))`

// linted is an expression for whether the findings are those of the file.
const linted = `(document.querySelector("#findings-count").textContent !== "not checked yet" && !document.querySelector("#findings.stale"))`

// put types texts into the fields of the page.
func (b *tab) put(text, name, urls string) {
	b.Helper()
	for id, value := range map[string]string{"#text": text, "#name": name, "#urls": urls} {
		b.clear(id)
		b.run(chromedp.SendKeys(chromedp.CSS(id), value))
	}
}

// clear empties a field of the page.
func (b *tab) clear(id string) {
	b.Helper()
	b.run(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector(%q).value = ""`, id)))
}

// fill sets the fields of the page without typing, for long texts. The expressions are evaluated in
// the page.
func (b *tab) fill(text, urls string) {
	b.Helper()
	b.run(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`for (const [id, value] of [["text", %s], ["urls", %s]]) {
		document.getElementById(id).value = value;
		document.getElementById(id).dispatchEvent(new Event("input"));
	}`, text, urls)))
}

// testSize checks the size of the WebAssembly, compressed and not compressed.
func (p playground) testSize(t *testing.T) {
	file, err := os.Open(filepath.Join(p.dir, "collyrobots.wasm.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	size, err := io.Copy(io.Discard, unpacked)
	if err != nil {
		t.Fatal(err)
	}
	const limit, packedLimit = 5_000_000, 1_500_000
	t.Logf("%d bytes, %d bytes compressed", size, info.Size())
	if size >= limit || info.Size() >= packedLimit {
		t.Errorf("the WebAssembly has %d bytes and %d bytes compressed, want less than %d and %d", size, info.Size(), limit, packedLimit)
	}
}

// testHosts runs the tests of package dialect about hosts with Node, because a program for JavaScript
// does not use package idna for them.
func (p playground) testHosts(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("needs Node: apt-get install nodejs")
	}
	goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(strings.TrimSpace(string(goroot)), "lib", "wasm", "go_js_wasm_exec")
	cmd := p.command(t, "go", "test", "-count=1", "-exec="+run, "-run=Authority|Locate|LongHosts", "-v", "./dialect")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestLocate ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// testNode runs the example of the guide.
func (p playground) testNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs Node: apt-get install nodejs")
	}
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "tools", "playground.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(guide), "```js\n")
	example, rest, _ := strings.Cut(example, "```\n")
	_, want, _ := strings.Cut(rest, "```text\n")
	want, _, _ = strings.Cut(want, "```\n")
	if err := os.WriteFile(filepath.Join(p.dir, "example.mjs"), []byte(example), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "example.mjs")
	cmd.Dir = p.dir
	got, err := cmd.CombinedOutput()
	if err != nil || string(got) != want || want == "" {
		t.Errorf("%v\n%s, want\n%s", err, got, want)
	}
}

// press clicks on an element of a list that the page may draw again at any time. If the element has gone
// between the search for it and the click, press tries again.
func (b *tab) press(selector string) {
	b.Helper()
	for end := time.Now().Add(soon); ; {
		err := chromedp.Do(b.ctx, chromedp.Click(selector))
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "Could not find node") || time.Now().After(end) {
			b.Fatal(err)
		}
	}
}

func (p playground) testTyping(b *tab) {
	b.put("User-agent: *\nDisallow: /cart\nAllow: /cart/help\nCrawl-delay: 4\n", "ExampleBot", "/cart\n/cart/help\nhttps://a.test/\ncart")
	b.within(soon, decided+`.join("; ") === "✕ 2; ✕ 2; ✕ 2; ✕ 2; ✕ 2; ✕ 2; ✕; ✓ 3; ✓ 3; ✓ 3; ✓ 3; ✓ 3; ✕ 2; ✓; ✓; ✓; ✓; ✓; ✓; ✓; ✓; neither a URL with http or https nor a path that begins with a slash"`)
	row := func(n int) string {
		return fmt.Sprintf(`document.querySelectorAll("#readings-rows tr")[%d].innerText.replace(/\s+/g, " ").trim()`, n)
	}
	b.press(`//*[@id="matrix-rows"]//button[text()="/cart/help"]`)
	b.within(soon, `document.querySelector("#verdict").textContent === "The dialects do not agree: 6 allow this URL, 1 denies it."`)
	b.within(soon, row(0)+` === "RFC 9309 ✓ allowed line 3 Allow: /cart/help * 4 s line 4"`)
	b.within(soon, row(5)+` === "Standard of 1994 ✕ denied line 2 Disallow: /cart * –"`)
	b.within(soon, `[...document.querySelectorAll(".tag .long")].map(tag => tag.textContent).join("; ") === "1994; RFC 9309, Google, Coc Coc, Yandex, Seznam; RFC 9309, Coc Coc"`)

	b.put("User-agent: Googlebot\nDisallow: /\n", "Googlebot", "/cart/help")
	b.within(soon, `document.querySelector("#verdict").textContent === "All dialects deny this URL."`)
	b.within(soon, `document.querySelector("#findings-count").textContent === "none"`)
	b.put("User-agent: ExampleBot\nDisallow: /\n", "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://example.com/bot)", "/")
	b.within(soon, has(`document.querySelector("#token").textContent`, "look for ExampleBot"))
	b.within(soon, `document.querySelector("#verdict").textContent === "The dialects do not agree: 1 allows this URL, 6 deny it."`)
	b.run(chromedp.SendKeys(chromedp.CSS("#text"), "Dissallow: /a\n"))
	b.within(soon, has(`document.querySelector("#findings").innerText`, "misspelt-key"))
	b.press("#findings .to-line")
	b.within(soon, `getSelection().toString() === "Dissallow: /a"`)
}

func (p playground) testExamples(b *tab) {
	choose := func(title string) {
		b.run(chromedp.Click(fmt.Sprintf(`//*[@id="examples"]/button[text()=%q]`, title)))
	}
	choose("A newspaper")
	usage := `document.querySelector("#usage").innerText.replace(/\s+/g, " ")`
	b.within(soon, has(usage, "Training of AI models ✕ not allowed line 7"))
	b.within(soon, has(usage, "https://news.example/license.xml line 2"))

	choose("A file with faults")
	b.within(soon, `document.querySelectorAll("#findings .error .to-line").length >= 5`)

	choose("Seven disagreements")
	b.within(soon, decided+`.length === 49`)
	rows := eval[[]string](b, `[...document.querySelectorAll("#matrix-rows tr")].map(row => [...row.querySelectorAll("b")].map(mark => mark.textContent).join(""))`)
	seen := make(map[string]bool)
	for _, row := range rows {
		if strings.Count(row, "✓")*strings.Count(row, "✕") == 0 {
			b.Errorf("the dialects agree: %s", row)
		}
		seen[row] = true
	}
	if len(seen) != 7 {
		b.Errorf("%d kinds of disagreement: %q", len(seen), rows)
	}

	choose("A tdmrep.json")
	b.within(soon, `document.querySelector("#matrix").hidden`)
	b.within(soon, has(usage, "Training of AI models ✓ allowed"))
	b.run(chromedp.Click("#urls"), chromedp.KeyEvent(kb.End, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	b.within(soon, has(usage, "Training of AI models ✕ not allowed"))
	b.within(soon, has(usage, "https://news.example/policies/tdm.json"))
}

// testKeyboard uses the page without a mouse.
func (p playground) testKeyboard(b *tab) {
	reach := func(what, focused string) {
		b.Helper()
		for range 60 {
			b.run(chromedp.KeyEvent(kb.Tab))
			if eval[bool](b, focused) {
				return
			}
		}
		b.Fatalf("Tab does not reach %s", what)
	}
	reach("the link to the file", `document.activeElement.className === "skip"`)
	reach("an example", `document.activeElement.textContent === "A file with faults"`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.within(soon, has(`document.querySelector("#text").value`, "Dissallow"))
	reach("the file", `document.activeElement.id === "text"`)
	b.run(chromedp.KeyEvent("# x"))
	b.within(soon, has(`document.querySelector("#text").value`, "# x"))
	b.within(soon, `document.querySelectorAll("#findings .to-line").length >= 5 && `+linted)
	reach("a finding", `document.activeElement.matches("#findings .to-line")`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.within(soon, `document.activeElement.id === "text" && getSelection().toString() !== ""`)
	reach("the URLs", `document.activeElement.id === "urls"`)
	b.run(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	b.within(soon, `document.querySelector("#selected").textContent === "/tmp"`)
	reach("a URL of the table", `document.activeElement.matches(".pick") && document.activeElement.textContent === "/blog"`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.within(soon, `document.querySelector("#selected").textContent === "/blog"`)
	b.within(soon, `document.activeElement.textContent === "/blog"`)
	reach("a deciding line", `document.activeElement.matches("#readings .to-line")`)
}

// testLink checks that a link brings back the input, also if it is not UTF-8.
func (p playground) testLink(b *tab) {
	b.put("User-agent: *\nDisallow: /ä\n", "Ünbot", "/%c3%a4\n/b")
	b.within(soon, decided+`.length === 14`)
	want := eval[string](b, decided+`.join()`)
	b.run(chromedp.Click("#link"))
	b.within(soon, `location.hash.startsWith("#1")`)
	link := eval[string](b, `location.href`)
	b.run(chromedp.Navigate("about:blank"), chromedp.Navigate(link))
	b.within(soon, fmt.Sprintf(`document.querySelector("#text").value === "User-agent: *\nDisallow: /ä\n" && document.querySelector("#name").value === "Ünbot" && %s.join() === %q`, decided, want))
	b.run(chromedp.SendKeys("#text", "#"))
	b.within(soon, `location.hash === ""`)

	var text []byte
	for _, unit := range utf16.Encode([]rune("\uFEFFUser-agent: *\r\nDisallow: /\r\n")) {
		text = binary.LittleEndian.AppendUint16(text, unit)
	}
	file := filepath.Join(b.TempDir(), "robots.txt")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		b.Fatal(err)
	}
	inUTF16 := `document.querySelector("#findings").innerText.includes("utf16")`
	b.run(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
	b.within(soon, inUTF16)
	b.run(chromedp.Click("#link"))
	b.within(soon, `location.hash.startsWith("#1")`)
	link = eval[string](b, `location.href`)
	b.run(chromedp.Navigate("about:blank"), chromedp.Navigate(link))
	b.within(soon, inUTF16)

	b.run(chromedp.Navigate("about:blank"), chromedp.Navigate(link[:len(link)-9]))
	b.within(soon, `document.querySelector("#status").textContent === "The link is damaged or incomplete."`)
}

// testPolicy checks that neither the page nor a worker of it can send a request to another server.
func (p playground) testPolicy(t *testing.T) {
	var requests atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		requests.Add(1)
	}))
	defer other.Close()
	b := p.open(t)
	send := fmt.Sprintf(`fetch(%q).then(() => "sent", () => "blocked")`, other.URL)
	worker := fmt.Sprintf("(%s).then(result => postMessage(result))", send)
	b.run(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`window.results = [];
		%s.then(result => results.push(result));
		new Worker(URL.createObjectURL(new Blob([%q], { type: "text/javascript" }))).onmessage = event => results.push(event.data);
		const image = new Image();
		image.onerror = () => results.push("blocked");
		image.onload = () => results.push("sent");
		image.src = %q;
		0`, send, worker, other.URL+"/image.png")))
	b.within(soon, `results.join() === "blocked,blocked,blocked"`)
	if n := requests.Load(); n != 0 {
		t.Errorf("the other server has received %d requests", n)
	}
}

// testWidths checks that every text is legible in light and dark mode at every width, and that the
// page does not scroll sideways.
func (p playground) testWidths(b *tab) {
	for _, example := range []string{"A shop", "A file with faults", "Seven disagreements", "A newspaper", "A tdmrep.json"} {
		b.run(chromedp.Click(fmt.Sprintf(`//*[@id="examples"]/button[text()=%q]`, example)))
		b.within(soon, `!document.querySelector("#matrix .waiting, #matrix .stale") && `+linted)
		for _, scheme := range []string{"light", "dark"} {
			b.run(media(scheme))
			for _, width := range []int64{375, 800, 1280} {
				b.run(chromedp.EmulateViewport(width, 800), chromedp.Sleep(100*time.Millisecond))
				if over := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
					b.Errorf("%s, %s, %d px wide: %d px too wide", example, scheme, width, over)
				}
				least := eval[[]any](b, contrast)
				if ratio, _ := least[0].(float64); ratio < 4.5 || ratio > 21 {
					b.Errorf("%s, %s, %d px wide: contrast %.2f of %q", example, scheme, width, ratio, least[1])
				}
				b.picture(fmt.Sprintf("%s-%s-%d.png", strings.ReplaceAll(example, " ", "-"), scheme, width))
			}
		}
	}
}

// testBadInput checks that the page answers after any input.
func (p playground) testBadInput(b *tab) {
	for _, test := range []struct{ what, text, urls string }{
		{"NUL bytes", `"User-agent: *\0\nDisallow: /a\0b\n\0".repeat(1000)`, `"/a\0b\n\0"`},
		{"control characters and directions", `"User-agent: \u202e*\nDisallow: /\u2066<script>\n"`, `"/\u202e\n/<img src=x onerror=alert(1)>\n\ud800"`},
		{"500 KiB of rules", `"User-agent: *\n" + Array.from({ length: 20000 }, (_, i) => "Disallow: /folder/" + i + "\n").join("")`, `"/folder/7\n/x"`},
		{"500 KiB of wildcards", `"User-agent: *\n" + "Disallow: /*a*b*c*d*e$\n".repeat(23000)`, `"/abcdabcdabcd\n/abcde"`},
		{"one line of 500 KiB", `"Disallow: /" + "a".repeat(512000)`, `"/" + "a".repeat(3000)`},
		{"500,000 empty lines", `"\n".repeat(500000)`, `"/"`},
		{"10,000 URLs", `"User-agent: *\nDisallow: /*7$\n"`, `Array.from({ length: 10000 }, (_, i) => "https://a.test/" + i).join("\n")`},
	} {
		b.fill(test.text, test.urls)
		b.within(time.Minute, decided+`.length > 0 && `+linted)
		if over := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			b.Errorf("%s: %d px too wide", test.what, over)
		}
		if eval[bool](b, `/[\u0000-\u0008\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText)`) {
			b.Errorf("%s: the page shows control characters unescaped", test.what)
		}
	}
	b.within(time.Minute, `document.querySelector("#urls-count").textContent === "10,000 URLs, the dialects differ about 1,000"`)
	b.run(chromedp.Click("#more-urls"))
	b.within(soon, `document.querySelectorAll("#matrix-rows tr").length === 250`)
	b.fill(`""`, `"/"`)
	b.within(soon, decided+`.join("") === "✓✓✓✓✓✓✓"`)
}

// testKeyPress checks that the worker does not read a file of 500 KiB again for the decision about
// another URL: the median of 20 decisions takes at most a tenth of the time of the first one, which
// reads the file. Both times are from the question of the page to the answer of the worker.
func (p playground) testKeyPress(b *tab) {
	b.run(chromedp.Evaluate[chromedp.Void](`(async () => {
		const { compile, Reader } = await import("./reader.js");
		const text = new TextEncoder().encode("User-agent: *\n" + Array.from({ length: 19600 }, (_, i) => "Disallow: /folder/" + i + "/*x\n").join("").slice(0, 511900));
		let answered;
		const reader = new Reader(["rfc9309", "google", "coccoc", "original1994", "yandex", "seznam"], false, () => answered());
		reader.start(await compile());
		let path = "/folder/7/";
		const press = async () => {
			path += "y";
			const answer = new Promise(resolve => { answered = resolve; });
			const begin = performance.now();
			reader.ask({ text, name: "ExampleBot", urls: [path], version: 1 });
			await answer;
			return performance.now() - begin;
		};
		const file = await press();
		const decisions = [];
		for (let i = 0; i < 20; i++) decisions.push(await press());
		decisions.sort((a, b) => a - b);
		window.result = { file, decision: decisions[10] };
	})(); 0`))
	b.within(time.Minute, `window.result !== undefined`)
	result := eval[struct{ File, Decision float64 }](b, `result`) // in milliseconds
	b.Logf("the file: %.0f ms; a decision: %.1f ms", result.File, result.Decision)
	if result.Decision > result.File/10 {
		b.Errorf("a decision takes %.1f ms, and the first one with the reading of the file %.1f ms", result.Decision, result.File)
	}
}
