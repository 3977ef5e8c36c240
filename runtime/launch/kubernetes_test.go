package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

var fleet = Kubernetes{Name: "digits", Image: "registry.example:5000/brood:1", Pods: 3, Port: 4433,
	Secret: strings.Repeat("s", MinSecret),
	Args:   []string{"--rounds=12", "--set=eta=cosine:0.1..0.001@200", `--set=odd="'{{}} # : |`, "mnist-parle"}}

// objects parses a manifest as the API server does: an unknown field is an error.
func objects(t *testing.T, k Kubernetes) (o decoded, err error) {
	t.Helper()
	text, err := k.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

// decoded has the objects of a manifest.
type decoded struct {
	secret     corev1.Secret
	service    corev1.Service
	disruption policyv1.PodDisruptionBudget
	job        batchv1.Job
}

func (o *decoded) pod() corev1.PodSpec { return o.job.Spec.Template.Spec }

func decode(t *testing.T, text string) (o decoded, err error) {
	t.Helper()
	parts := strings.Split(text, "\n---\n")
	if len(parts) != 4 {
		t.Fatalf("%d documents:\n%s", len(parts), text)
	}
	for i, into := range []any{&o.secret, &o.service, &o.disruption, &o.job} {
		plain, e := yaml.YAMLToJSONStrict([]byte(parts[i]))
		if e != nil {
			t.Fatal(e)
		}
		unknown, e := json.UnmarshalStrict(plain, into)
		err = errors.Join(err, e, errors.Join(unknown...))
	}
	return o, err
}

// TestManifestWithDevices: each pod requests one device if Device is set, and none otherwise.
func TestManifestWithDevices(t *testing.T) {
	with := fleet
	with.Device = "amd.com/gpu"
	o, err := objects(t, with)
	if err != nil {
		t.Fatal(err)
	}
	if n := o.pod().Containers[0].Resources.Limits["amd.com/gpu"]; n.String() != "1" {
		t.Errorf("%v", o.pod().Containers[0].Resources)
	}
	if o, err := objects(t, fleet); err != nil || len(o.pod().Containers[0].Resources.Limits) > 0 {
		t.Errorf("%v, %v", o.pod().Containers[0].Resources, err)
	}
	with.Device = "gpu"
	if _, err := with.Manifest(); err == nil || !strings.HasPrefix(err.Error(), `"gpu" is not a resource of Kubernetes`) {
		t.Error(err)
	}
}

func TestManifest(t *testing.T) {
	o, err := objects(t, fleet)
	if err != nil {
		t.Fatal(err)
	}
	secret, service, job := o.secret, o.service, o.job
	check := func(ok bool, what string, got any) {
		if !ok {
			t.Errorf("%s: %v", what, got)
		}
	}
	check(secret.Kind == "Secret" && secret.APIVersion == "v1" && service.Kind == "Service" && job.Kind == "Job" &&
		job.APIVersion == "batch/v1", "kinds", job.TypeMeta)
	check(secret.StringData["secret"] == fleet.Secret, "secret", secret)
	pod := o.pod()
	check(*job.Spec.CompletionMode == batchv1.IndexedCompletion && *job.Spec.Completions == 3 &&
		*job.Spec.Parallelism == 3, "an Indexed Job of 3", job.Spec)
	check(pod.RestartPolicy == corev1.RestartPolicyOnFailure, "a Job's pods may not restart always", pod.RestartPolicy)
	// A pod of an Indexed Job has the name JOB-INDEX. DNS resolves it in its subdomain, a headless Service.
	check(service.Spec.ClusterIP == corev1.ClusterIPNone && pod.Subdomain == service.Name &&
		service.Spec.PublishNotReadyAddresses, "headless Service", service.Spec)
	check(len(service.Spec.Selector) == 1 && service.Spec.Selector[batchv1.JobNameLabel] == job.Name, "selector",
		service.Spec.Selector)
	c := pod.Containers[0]
	env := map[string]corev1.EnvVar{}
	for _, e := range c.Env {
		env[e.Name] = e
	}
	check(env["MASTER_ADDR"].Value == job.Name+"-0."+service.Name && env["WORLD_SIZE"].Value == "3",
		"where rank 0 is", c.Env)
	check(env["RANK"].ValueFrom.FieldRef.FieldPath == "metadata.annotations['"+batchv1.JobCompletionIndexAnnotation+"']",
		"rank", env["RANK"])
	ref := env["BROOD_SECRET"].ValueFrom.SecretKeyRef
	check(ref.Name == secret.Name && secret.StringData[ref.Key] != "", "secret", ref)
	ports := service.Spec.Ports
	check(len(ports) == 3 && ports[0].Port == 4433 && ports[1].Port == 4433 && ports[0].Protocol != ports[1].Protocol,
		"ports", ports)
	check(c.Image == fleet.Image, "image", c.Image)
	want := append([]string{"brood", "fleet", "launch", "--torchrun", "--enrol=11", "--metrics=0.0.0.0:9464",
		"--health=0.0.0.0:9465"}, fleet.Args...)
	check(strings.Join(c.Command, "\n") == strings.Join(want, "\n"), "command", c.Command)
	for i, v := range pod.Volumes {
		check(v.EmptyDir != nil && v.Name == []string{"tmp", "brood"}[i], "volume", v)
	}
	for _, e := range c.Env {
		check(!strings.Contains(e.Value, fleet.Secret), "the secret is in the pod's description", e)
	}

	k := fleet
	k.Claim, k.Args, k.Pods = "shared", nil, 1
	o, err = objects(t, k)
	check(err == nil && o.pod().Volumes[1].PersistentVolumeClaim.ClaimName == "shared", "claim", o.pod().Volumes)
}

// TestManifestRestrictsPods: pods satisfy the Pod Security Standard "restricted", and can write to their volumes only.
func TestManifestRestrictsPods(t *testing.T) {
	o, err := objects(t, fleet)
	if err != nil {
		t.Fatal(err)
	}
	pod, c := o.pod(), o.pod().Containers[0]
	of, in := pod.SecurityContext, c.SecurityContext
	// An image that names no user would run as root, which runAsNonRoot alone rejects.
	if !*of.RunAsNonRoot || *of.RunAsUser == 0 || *of.FSGroup != *of.RunAsGroup ||
		of.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod has %+v", of)
	}
	if *of.FSGroupChangePolicy != corev1.FSGroupChangeOnRootMismatch {
		t.Error("a restart would make the keys of a session readable by its group")
	}
	if *in.AllowPrivilegeEscalation || !*in.ReadOnlyRootFilesystem || len(in.Capabilities.Drop) != 1 ||
		in.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the container has %+v", in)
	}
	for i, path := range []string{"/brood", "/tmp"} {
		writable := func(e corev1.EnvVar) bool { return strings.HasPrefix(e.Value, path) }
		if c.VolumeMounts[i].MountPath != path || !slices.ContainsFunc(c.Env, writable) {
			t.Errorf("%s is no volume, or no variable names it: %v", path, c.VolumeMounts)
		}
	}
}

// TestManifestSurvivesDrains: a pod has time for the 30 seconds of a hand-over, a drain takes one pod at a time, and
// the probe asks a port that every pod listens at.
func TestManifestSurvivesDrains(t *testing.T) {
	o, err := objects(t, fleet)
	if err != nil {
		t.Fatal(err)
	}
	if *o.pod().TerminationGracePeriodSeconds <= 30 {
		t.Error(*o.pod().TerminationGracePeriodSeconds)
	}
	d := o.disruption.Spec
	if d.MinAvailable.IntValue() != 2 || d.MaxUnavailable != nil ||
		d.Selector.MatchLabels[batchv1.JobNameLabel] != o.job.Name {
		t.Errorf("%+v", d)
	}
	c := o.pod().Containers[0]
	probe, health := c.LivenessProbe.HTTPGet, int32(0)
	for _, p := range c.Ports {
		if p.Name == probe.Port.StrVal {
			health = p.ContainerPort
		}
	}
	if probe.Path != "/healthz" || !slices.Contains(c.Command, fmt.Sprintf("--health=0.0.0.0:%d", health)) {
		t.Errorf("%+v asks port %d of %v", probe, health, c.Command)
	}
	if n := c.Resources.Requests; n.Cpu().IsZero() || n.Memory().IsZero() {
		t.Errorf("%v", n)
	}
}

// TestManifestCheckCanFail: decode refuses what the API server refuses.
func TestManifestCheckCanFail(t *testing.T) {
	text, err := fleet.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"completionMode:", "completionmode:"}, {"completions: 3", "completions: three"},
		{"clusterIP: None", "clusterIPs: None"}, {"restartPolicy:", "restart:"}, {"protocol: UDP", "proto: UDP"},
		{"minAvailable:", "minimum:"}} {
		broken := strings.Replace(text, c[0], c[1], 1)
		if _, err := decode(t, broken); err == nil || broken == text {
			t.Errorf("%s is accepted", c[1])
		}
	}
}

func TestManifestRefuses(t *testing.T) {
	longest := fleet
	longest.Name, longest.Claim = strings.Repeat("a", maxLabel), strings.Repeat("a", maxClaim)
	if _, err := longest.Manifest(); err != nil {
		t.Errorf("names of the greatest length are refused: %v", err)
	}
	for want, edit := range map[string]func(*Kubernetes){
		`the name "Digits" is not a DNS label`: func(k *Kubernetes) { k.Name = "Digits" },
		`the name "a.b"`:                       func(k *Kubernetes) { k.Name = "a.b" },
		`the name "`:                           func(k *Kubernetes) { k.Name = strings.Repeat("a", maxLabel+1) },
		`"" is not a container image`:          func(k *Kubernetes) { k.Image = "" },
		`is not a container image: name`:       func(k *Kubernetes) { k.Image = "a\nb" },
		"0 pods":                               func(k *Kubernetes) { k.Pods = 0 },
		"port 9465: pods use 9464 and 9465":    func(k *Kubernetes) { k.Port = 9465 },
		"port 0":                               func(k *Kubernetes) { k.Port = 0 },
		"is not a name of a PersistentVolume":  func(k *Kubernetes) { k.Claim = "a b" },
		`a" is not a name of a Persistent`:     func(k *Kubernetes) { k.Claim = strings.Repeat("a", maxClaim+1) },
		`a" is not a resource of Kubernetes`:   func(k *Kubernetes) { k.Device = "a.b/" + strings.Repeat("a", maxResource) },
		"the shared secret has 1 characters":   func(k *Kubernetes) { k.Secret = "s" },
	} {
		k := fleet
		edit(&k)
		if _, err := k.Manifest(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
