package cli

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"brood/runtime/testutil"
)

// launchBackground NAME ARGUMENTS... starts brood fleet launch.
func launchBackground(ts *testscript.TestScript, neg bool, args []string) {
	startProcess(ts, args[0], append([]string{"fleet", "launch"}, args[1:]...)...)
}

// freePort NAME sets a variable to a free port of UDP and TCP.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	defer l.Close()
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

// unseen N waits until at least N processes run the script's brood as a worker, or ssh for one, and checks that none
// shows a join URL. WORK in the environment of a process identifies those of this script. The command line of a process
// that is exiting may be truncated and then look like another one, so a URL counts only if it is still there a second
// later.
func unseen(ts *testscript.TestScript, neg bool, args []string) {
	n := 0
	var shown []string
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	ts.Check(err)
	for _, path := range found {
		line, own := workerOf(ts, path)
		if !own {
			continue
		}
		n++
		if bytes.Contains(line, []byte("brood://")) {
			shown = append(shown, path)
		}
	}
	if want, _ := strconv.Atoi(args[0]); n < want {
		ts.Fatalf("%d processes of workers, want %d", n, want)
	}
	if len(shown) == 0 {
		return
	}
	time.Sleep(time.Second)
	for _, path := range shown {
		if line, own := workerOf(ts, path); own {
			ts.Fatalf("a process list shows %q", bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
		}
	}
}

// workerOf returns the command line of a process, and whether this script started it as a worker, or as ssh for one.
func workerOf(ts *testscript.TestScript, path string) (line []byte, own bool) {
	line, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(line, []byte(ts.Getenv("BROOD"))) || !bytes.Contains(line, []byte("worker")) {
		return nil, false
	}
	env, err := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
	if err != nil || len(env) == 0 {
		return nil, false // it has ended since: what is over has no environment
	}
	env = append([]byte{0}, env...)
	return line, bytes.Contains(env, []byte("\x00WORK="+ts.Getenv("WORK")+"\x00"))
}

// daemon runs a server in the foreground until the end of the script. Its output goes to NAME.log.
func daemon(ts *testscript.TestScript, name string, argv ...string) {
	path, err := exec.LookPath(argv[0])
	ts.Check(err)
	log, err := os.Create(ts.MkAbs(name + ".log"))
	ts.Check(err)
	defer log.Close()
	cmd := exec.Command(path, argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Signal(os.Interrupt) // a slurmd ends what it has started
		_ = cmd.Wait()
	})
}

// until waits for a server. A failure prints NAME.log.
func until(ts *testscript.TestScript, name string, ready func() bool) {
	for late := time.Now().Add(testutil.Timeout); !ready(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(late) {
			ts.Fatalf("%s is not there: %s", name, ts.ReadFile(name+".log"))
		}
	}
}

// sshd starts an ssh server on this machine with new keys. $SSH and $ELSE reach it as HOST 127.0.0.1:$PORT, with a key
// that it accepts and with one that it rejects; $BROOD is the path of brood.
func sshServer(ts *testscript.TestScript, neg bool, args []string) {
	if os.Geteuid() == 0 {
		ts.Check(os.MkdirAll("/run/sshd", 0o755)) // where sshd of root locks itself in; the system makes it at its start
	}
	freePort(ts, false, []string{"PORT"})
	port, me := ts.Getenv("PORT"), func() string { u, err := user.Current(); ts.Check(err); return u.Username }()
	for _, key := range []string{"host", "mine", "other"} {
		ts.Check(ts.Exec("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key))
	}
	write := func(name, format string, a ...any) {
		ts.Check(os.WriteFile(ts.MkAbs(name), fmt.Appendf(nil, format, a...), 0o600))
	}
	write("authorized", "%s", ts.ReadFile("mine.pub"))
	write("known", "[127.0.0.1]:%s %s", port, ts.ReadFile("host.pub"))
	write("sshd.conf", "Port %s\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\n"+
		"PermitRootLogin yes\nPasswordAuthentication no\nPidFile none\nSetEnv WORK=%s\n",
		port, ts.MkAbs("host"), ts.MkAbs("authorized"), ts.Getenv("WORK"))
	for name, key := range map[string]string{"SSH": "mine", "ELSE": "other"} {
		write(key+".conf", "Host *\nUser %s\nIdentityFile %s\nIdentitiesOnly yes\nIdentityAgent none\n"+
			"UserKnownHostsFile %s\nGlobalKnownHostsFile none\nStrictHostKeyChecking yes\n",
			me, ts.MkAbs(key), ts.MkAbs("known"))
		ts.Setenv(name, "ssh -F "+ts.MkAbs(key+".conf"))
	}
	sshd, err := exec.LookPath("sshd") // it wants to be called by its whole path
	ts.Check(err)
	daemon(ts, "sshd", sshd, "-D", "-e", "-f", ts.MkAbs("sshd.conf"))
	until(ts, "sshd", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	ts.Setenv("BROOD", broodPath(ts))
}

// broodPath returns the brood in the script's PATH.
func broodPath(ts *testscript.TestScript) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if found, err := exec.LookPath(filepath.Join(dir, "brood")); err == nil {
			return found
		}
	}
	ts.Fatalf("no brood in PATH")
	return ""
}

// slurmCluster starts a Slurm cluster of three nodes on this machine, as root. $SLURM_CONF is the configuration for its
// programs.
func slurmCluster(ts *testscript.TestScript, neg bool, args []string) {
	host, err := os.Hostname()
	ts.Check(err)
	at := ts.MkAbs("slurm")
	for _, dir := range []string{"state", "n1", "n2", "n3"} {
		ts.Check(os.MkdirAll(filepath.Join(at, dir), 0o755))
	}
	in := func(name string) string { return filepath.Join(at, name) }
	// the cluster is reachable from this machine only
	ts.Check(os.WriteFile(in("key"), bytes.Repeat([]byte(filepath.Base(ts.Getenv("WORK"))+"."), 32), 0o600))
	daemon(ts, "munged", "munged", "--foreground", "--force", "--key-file="+in("key"), "--socket="+in("munge"),
		"--log-file="+in("munge.log"), "--pid-file="+in("munge.pid"), "--seed-file="+in("seed"))
	until(ts, "munged", func() bool { _, err := os.Stat(in("munge")); return err == nil })
	var conf strings.Builder
	freePort(ts, false, []string{"PORT"})
	fmt.Fprintf(&conf, `ClusterName=brood
SlurmctldHost=%s(127.0.0.1)
SlurmctldPort=%s
AuthType=auth/munge
AuthInfo=socket=%s
CredType=cred/munge
SlurmUser=root
StateSaveLocation=%s
SlurmdSpoolDir=%s/%%n
SlurmctldPidFile=%s/ctld.pid
SlurmdPidFile=%s/%%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/linear
PartitionName=all Nodes=n[1-3] Default=YES State=UP
`, host, ts.Getenv("PORT"), in("munge"), in("state"), at, at, at)
	for _, n := range []string{"n1", "n2", "n3"} {
		freePort(ts, false, []string{"PORT"})
		fmt.Fprintf(&conf, "NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%s CPUs=1\n", n, host, ts.Getenv("PORT"))
	}
	ts.Check(os.WriteFile(in("slurm.conf"), []byte(conf.String()), 0o644))
	ts.Setenv("SLURM_CONF", in("slurm.conf"))
	daemon(ts, "slurmctld", "slurmctld", "-D", "-f", in("slurm.conf"))
	for _, n := range []string{"n1", "n2", "n3"} {
		daemon(ts, n, "slurmd", "-D", "-N", n, "-f", in("slurm.conf"))
	}
	until(ts, "slurmctld", func() bool {
		out, _ := exec.Command("env", "SLURM_CONF="+in("slurm.conf"), "sinfo", "-h", "-N", "-o", "%T").Output()
		return string(out) == "idle\nidle\nidle\n"
	})
}
