package launch

import (
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

var fleet = Kubernetes{Name: "digits", Image: "registry.example:5000/brood:1", Pods: 3, Port: 4433, Secret: strings.Repeat("s", MinSecret),
	Args: []string{"--rounds=12", "--set=eta=cosine:0.1..0.001@200", `--set=odd="'{{}} # : |`, "mnist-parle"}}

// objects parses a manifest as the API server does: an unknown field is an error.
func objects(t *testing.T, k Kubernetes) (secret corev1.Secret, service corev1.Service, job batchv1.Job, err error) {
	t.Helper()
	text, err := k.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

func decode(t *testing.T, text string) (secret corev1.Secret, service corev1.Service, job batchv1.Job, err error) {
	t.Helper()
	parts := strings.Split(text, "\n---\n")
	if len(parts) != 3 {
		t.Fatalf("%d documents:\n%s", len(parts), text)
	}
	for i, into := range []any{&secret, &service, &job} {
		plain, e := yaml.YAMLToJSONStrict([]byte(parts[i]))
		if e != nil {
			t.Fatal(e)
		}
		unknown, e := json.UnmarshalStrict(plain, into)
		err = errors.Join(err, e, errors.Join(unknown...))
	}
	return secret, service, job, err
}

// TestManifestWithDevices: each pod requests one device if Device is set, and none otherwise.
func TestManifestWithDevices(t *testing.T) {
	with := fleet
	with.Device = "amd.com/gpu"
	_, _, job, err := objects(t, with)
	if err != nil {
		t.Fatal(err)
	}
	if n := job.Spec.Template.Spec.Containers[0].Resources.Limits["amd.com/gpu"]; n.String() != "1" {
		t.Errorf("%v", job.Spec.Template.Spec.Containers[0].Resources)
	}
	if _, _, job, err := objects(t, fleet); err != nil || len(job.Spec.Template.Spec.Containers[0].Resources.Limits) > 0 {
		t.Errorf("%v, %v", job.Spec.Template.Spec.Containers[0].Resources, err)
	}
	with.Device = "gpu"
	if _, err := with.Manifest(); err == nil || !strings.HasPrefix(err.Error(), `"gpu" is not a resource of Kubernetes`) {
		t.Error(err)
	}
}

func TestManifest(t *testing.T) {
	secret, service, job, err := objects(t, fleet)
	if err != nil {
		t.Fatal(err)
	}
	check := func(ok bool, what string, got any) {
		if !ok {
			t.Errorf("%s: %v", what, got)
		}
	}
	check(secret.Kind == "Secret" && secret.APIVersion == "v1" && service.Kind == "Service" && job.Kind == "Job" && job.APIVersion == "batch/v1", "kinds", job.TypeMeta)
	check(secret.StringData["secret"] == fleet.Secret, "secret", secret)
	pod := job.Spec.Template.Spec
	check(*job.Spec.CompletionMode == batchv1.IndexedCompletion && *job.Spec.Completions == 3 && *job.Spec.Parallelism == 3, "an Indexed Job of 3", job.Spec)
	check(pod.RestartPolicy == corev1.RestartPolicyOnFailure, "a Job's pods may not restart always", pod.RestartPolicy)
	// A pod of an Indexed Job has the name JOB-INDEX. DNS resolves it in its subdomain, a headless Service.
	check(service.Spec.ClusterIP == corev1.ClusterIPNone && pod.Subdomain == service.Name && service.Spec.PublishNotReadyAddresses, "headless Service", service.Spec)
	check(len(service.Spec.Selector) == 1 && service.Spec.Selector[batchv1.JobNameLabel] == job.Name, "selector", service.Spec.Selector)
	c := pod.Containers[0]
	env := map[string]corev1.EnvVar{}
	for _, e := range c.Env {
		env[e.Name] = e
	}
	check(env["MASTER_ADDR"].Value == job.Name+"-0."+service.Name && env["WORLD_SIZE"].Value == "3", "where rank 0 is", c.Env)
	check(env["RANK"].ValueFrom.FieldRef.FieldPath == "metadata.annotations['"+batchv1.JobCompletionIndexAnnotation+"']", "rank", env["RANK"])
	ref := env["BROOD_SECRET"].ValueFrom.SecretKeyRef
	check(ref.Name == secret.Name && secret.StringData[ref.Key] != "", "secret", ref)
	for _, p := range service.Spec.Ports {
		check(p.Port == 4433, "port", p)
	}
	check(len(service.Spec.Ports) == 2 && service.Spec.Ports[0].Protocol != service.Spec.Ports[1].Protocol, "ports", service.Spec.Ports)
	check(c.Image == fleet.Image, "image", c.Image)
	want := append([]string{"brood", "fleet", "launch", "--torchrun", "--enrol=11"}, fleet.Args...)
	check(strings.Join(c.Command, "\n") == strings.Join(want, "\n"), "command", c.Command)
	check(pod.Volumes[0].EmptyDir != nil && pod.Volumes[0].Name == c.VolumeMounts[0].Name, "volume", pod.Volumes)
	for _, e := range c.Env {
		check(!strings.Contains(e.Value, fleet.Secret), "the secret is in the pod's description", e)
	}

	k := fleet
	k.Claim, k.Args, k.Pods = "shared", nil, 1
	_, _, job, err = objects(t, k)
	check(err == nil && job.Spec.Template.Spec.Volumes[0].PersistentVolumeClaim.ClaimName == "shared", "claim", job.Spec)
}

// TestManifestCheckCanFail: decode refuses what the API server refuses.
func TestManifestCheckCanFail(t *testing.T) {
	text, err := fleet.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"completionMode:", "completionmode:"}, {"completions: 3", "completions: three"}, {"clusterIP: None", "clusterIPs: None"}, {"restartPolicy:", "restart:"}, {"protocol: UDP", "proto: UDP"}} {
		broken := strings.Replace(text, c[0], c[1], 1)
		if _, _, _, err := decode(t, broken); err == nil || broken == text {
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
