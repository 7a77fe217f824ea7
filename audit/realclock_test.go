package audit_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var realClock = flag.Bool("realclock", false, "TestClockIsSetBack: build the standard library again, with a clock that is set back")

// TestClockIsSetBack runs a spider in a process whose clock is set back by an hour after two
// seconds. The monotonic clock goes on, as when a system sets its clock. A test cannot set the clock
// of the machine, so the spider is built with another time.Now.
func TestClockIsSetBack(t *testing.T) {
	if !*realClock {
		t.Skip("builds the standard library again; use -realclock")
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src/time/time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const reading = "mono -= startNano\n"
	changed := strings.Replace(string(text), reading, reading+"\tif mono > 2e9 {\n\t\tsec -= 3600\n\t}\n", 1)
	if changed == string(text) {
		t.Fatal("time.Now does not read the clock as this test expects")
	}
	folder := t.TempDir()
	mustWrite(t, filepath.Join(folder, "time.go"), changed)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: filepath.Join(folder, "time.go")}})
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(folder, "overlay.json"), string(overlay))
	spider := filepath.Join(folder, "spider")
	out, err := exec.Command("go", "test", "-c", "-overlay", filepath.Join(folder, "overlay.json"), "-o", spider, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	site := newAccessLog(t)
	dir := filepath.Join(folder, "log")
	order, err := json.Marshal(spiderOrder{Dir: dir, Site: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(spider)
	cmd.Env = append(os.Environ(), spiderVariable+"="+string(order))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * time.Second)
	cmd.Process.Kill()
	cmd.Wait()
	r, faults := verify(t, dir)
	all := strings.Join(faults, "\n")
	bySystem := strings.Count(all, "complete: the clock was set back: the log shows -59m59.")
	byServer := strings.Count(all, "complete: the clock of the log and those of the servers differ by ")
	if len(faults) != 2 || bySystem != 1 || byServer != 1 {
		t.Errorf("%+v, faults\n%s", r.Logs[0], all)
	}
	t.Logf("%d requests, faults:\n%s", r.Logs[0].Starts, all)
}
