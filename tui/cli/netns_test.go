//go:build linux

package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"brood/models/longtest"
	"brood/runtime/testutil"
)

// network simulates machines on one switch: network namespaces, joined by veth pairs to a bridge in another namespace.
type network struct {
	t    *testing.T
	name string
}

func newNetwork(t *testing.T, hosts int) *network {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		t.Skip("network namespaces need root and the command ip (iproute2)")
	}
	n := &network{t, fmt.Sprintf("brood%d", os.Getpid())}
	if out, err := exec.Command("ip", "netns", "add", n.ns(0)).CombinedOutput(); err != nil {
		t.Skipf("no network namespaces here: %s", out)
	}
	t.Cleanup(func() {
		for i := range hosts + 1 {
			_ = exec.Command("ip", "netns", "del", n.ns(i)).Run()
		}
	})
	n.ip(0, "link", "add", "sw", "type", "bridge")
	n.ip(0, "link", "set", "sw", "up")
	for i := 1; i <= hosts; i++ {
		n.run("ip", "netns", "add", n.ns(i))
		n.run("ip", "-n", n.ns(0), "link", "add", n.port(i), "type", "veth", "peer", "name", "eth0", "netns", n.ns(i))
		n.ip(0, "link", "set", n.port(i), "master", "sw", "up")
		n.ip(i, "addr", "add", n.address(i)+"/24", "dev", "eth0")
		n.ip(i, "link", "set", "eth0", "up")
		n.ip(i, "link", "set", "lo", "up")
	}
	return n
}

func (n *network) ns(i int) string      { return fmt.Sprintf("%s-%d", n.name, i) } // 0 is the switch
func (n *network) port(i int) string    { return fmt.Sprintf("port%d", i) }
func (n *network) address(i int) string { return fmt.Sprintf("10.99.0.%d", i) }
func (n *network) in(i int) []string    { return []string{"ip", "netns", "exec", n.ns(i)} }

func (n *network) ip(i int, args ...string) {
	n.t.Helper()
	n.run("ip", append([]string{"-n", n.ns(i)}, args...)...)
}

func (n *network) run(name string, args ...string) {
	n.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		n.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

// TestNamespaces serves a run to workers on two other machines over a slow switch, with viewers by SSH and by URL on a
// fourth, and partitions the network: the coordinator continues, and the worker that was cut off rejoins.
func TestNamespaces(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "trains on a network of its own for ten seconds")
	n := newNetwork(t, 4)
	dir := t.TempDir()
	tr := &servedRun{t: t, dir: filepath.Join(dir, "run"), onLoss: "reseed", draw: rand.New(rand.NewPCG(1, 1))}
	tr.env = append(os.Environ(), "BROOD_SESSIONS="+filepath.Join(dir, "s"), "HOME="+dir)
	key := filepath.Join(dir, "id")
	ssh := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).Run() == nil
	args := []string{"serve", "quickstart", "--plain", "--session", tr.dir, "--listen", n.address(1) + ":4433", "--wait",
		"2", "--for", "1h", "--set", "ell=4", "--set", "batch=16"}
	if ssh {
		args = append(args, "--ssh", n.address(1)+":2222", "--authorized", key+".pub")
	}
	tr.serve = tr.begin(tr.brood(n.in(1), args...))
	tr.url = tr.invite("worker")
	for i := 2; i <= 3; i++ {
		tr.workers = append(tr.workers, tr.begin(tr.brood(n.in(i), "worker", tr.url, "--threads", "1", "--retry", "10m")))
	}
	tr.trains(2, 0)

	// From the fourth machine: by URL, and with the client of OpenSSH.
	if out, err := tr.brood(n.in(4), "set", tr.inviteMore("operator"), "eta=0.05").CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "from round") {
		t.Errorf("set from afar: %v: %s", err, out)
	}
	if ssh {
		seen, err := os.Create(filepath.Join(dir, "seen"))
		if err != nil {
			t.Fatal(err)
		}
		defer seen.Close()
		look := exec.Command("ip", append(n.in(4)[1:], "ssh", "-tt", "-i", key, "-o", "StrictHostKeyChecking=no", "-o",
			"UserKnownHostsFile=/dev/null", "-p", "2222", "viewer@"+n.address(1))...)
		look.Stdout, look.Stderr = seen, seen
		if err := look.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = look.Process.Kill() })
		testutil.Eventually(t, "the run by SSH, in "+seen.Name(), func() bool {
			text, err := os.ReadFile(seen.Name())
			return err == nil && strings.Contains(string(text), "training") && strings.Contains(string(text), "read-only")
		})
		_ = look.Process.Kill()
		_ = look.Wait() // it is cut off
	}
	for i := 2; i <= 3; i++ { // a slow switch
		if out, err := exec.Command("ip", append(n.in(0)[1:], "tc", "qdisc", "add", "dev", n.port(i), "root", "tbf", "rate",
			"100mbit", "burst", "64k", "latency", "50ms")...).CombinedOutput(); err != nil {
			t.Logf("no slow links here: %s", out)
		}
	}
	round := tr.last.To
	tr.until("twenty rounds over slow links", func() bool { return tr.last.To >= round+20 })

	before, cut := tr.last.Epoch, time.Now()
	n.ip(0, "link", "set", n.port(3), "down")
	took := tr.lost(cut, "lost-worker")
	tr.trains(1, before)
	before = tr.last.Epoch
	n.ip(0, "link", "set", n.port(3), "up")
	healed := time.Now()
	tr.trains(2, before)
	t.Logf("the partition was noticed after %s; healed, both train after %s", took, time.Since(healed))
	tr.ends()
}

// inviteMore returns another URL for a run whose log is open.
func (tr *servedRun) inviteMore(role string) string {
	tr.t.Helper()
	url, err := tr.brood(nil, "invite", tr.dir, "--role", role).Output()
	if err != nil {
		tr.t.Fatal(err)
	}
	return strings.TrimSpace(string(url))
}

// TestNoRoute: a machine that cannot reach the address reports it.
func TestNoRoute(t *testing.T) {
	n := newNetwork(t, 1)
	tr := &servedRun{t: t, env: append(os.Environ(), "HOME="+t.TempDir(), "BROOD_SESSIONS="+t.TempDir())}
	const url = "brood://10.1.2.3:4433/aaaaaaaaaaaaaaaaaaaaaaaa#dh3nl2edlfb6kxdbpybdbx4y2lfkkwo46rlhzzzaqw2v22kcamiq"
	for _, args := range [][]string{{"attach", url}, {"worker", url, "--retry", "0s"}} {
		out, err := tr.brood(n.in(1), args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "this machine has no route there: check the address") {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
}

// behind gives host i of the network a machine of its own behind it, in the private network 192.168.7.0/24, and returns
// the machine's namespace. Host i translates its addresses, by the nft statement nat, and drops packets that answer
// none.
func (n *network) behind(i int, nat string) string {
	n.t.Helper()
	inner := n.ns(i) + "-in"
	n.run("ip", "netns", "add", inner)
	n.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", inner).Run() })
	n.ip(i, "link", "add", "eth1", "type", "veth", "peer", "name", "eth0", "netns", inner)
	n.ip(i, "addr", "add", "192.168.7.1/24", "dev", "eth1")
	n.ip(i, "link", "set", "eth1", "up")
	n.run("ip", "-n", inner, "addr", "add", "192.168.7.2/24", "dev", "eth0")
	n.run("ip", "-n", inner, "link", "set", "eth0", "up")
	n.run("ip", "-n", inner, "link", "set", "lo", "up")
	n.run("ip", "-n", inner, "route", "add", "default", "via", "192.168.7.1")
	in := n.in(i)
	n.run(in[0], append(in[1:], "sysctl", "-qw", "net.ipv4.ip_forward=1")...)
	n.run(in[0], append(in[1:], "nft", "add table ip nat; add chain ip nat post { type nat hook postrouting priority "+
		"100; }; add rule ip nat post oifname eth0 "+nat+
		"; add chain ip nat in { type filter hook input priority 0; policy drop; }; "+
		"add rule ip nat in ct state established,related accept")...)
	return inner
}

// TestNAT: two workers in private networks with the same addresses train over a coordinator that both reach. Behind
// routers that keep the port they connect directly; behind routers that choose another port for each destination their
// link goes through the coordinator. The parameters equal those of one process.
func TestNAT(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "trains on a network of its own for some seconds")
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("translated addresses need the command nft (nftables)")
	}
	run := []string{"quickstart", "--plain", "--algorithm", "dp-sgd", "--rounds", "1200", "--members", "2"}
	for _, c := range []struct {
		nat   string
		relay bool
	}{{"masquerade", false}, {"masquerade fully-random", true}} {
		t.Run(c.nat, func(t *testing.T) {
			n := newNetwork(t, 3)
			dir := t.TempDir()
			tr := &servedRun{t: t, dir: filepath.Join(dir, "run")}
			tr.env = append(os.Environ(), "BROOD_SESSIONS="+filepath.Join(dir, "s"), "HOME="+dir)
			alone := filepath.Join(dir, "alone")
			tr.exit(tr.begin(tr.brood(nil, append([]string{"run", "--session", alone}, run...)...)), 0)
			tr.serve = tr.begin(tr.brood(n.in(1),
				append([]string{"serve", "--session", tr.dir, "--listen", n.address(1) + ":4433",
					"--wait", "2"}, run...)...))
			tr.url = tr.invite("worker")
			for i := 2; i <= 3; i++ {
				inner := []string{"ip", "netns", "exec", n.behind(i, c.nat)}
				tr.workers = append(tr.workers, tr.begin(tr.brood(inner, "worker", tr.url, "--threads", "1")))
			}
			tr.trains(2, 0)
			measured, relayed := false, false
			for running := true; running; {
				select {
				case <-tr.serve.done:
					running = false
				case <-time.After(200 * time.Millisecond):
				}
				if out, err := tr.brood(nil, "fleet", "status", "--json", tr.dir).Output(); err == nil {
					measured = measured || strings.Contains(string(out), `"sent_per_second":`)
					relayed = relayed || strings.Contains(string(out), `"relayed":[[0,1]]`)
				}
			}
			if !measured || relayed != c.relay {
				t.Errorf("measured %v, relayed %v, want %v", measured, relayed, c.relay)
			}
			tr.exit(tr.serve, 0)
			tr.readLog()
			out, err := tr.brood(nil, "verify", alone).CombinedOutput()
			if err != nil || !strings.Contains(string(out), tr.last.Hash) {
				t.Errorf("%s %s, of one process: %v: %s", c.nat, tr.last.Hash, err, out)
			}
		})
	}
}
