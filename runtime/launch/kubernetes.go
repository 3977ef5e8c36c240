package launch

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"text/template"
)

// Kubernetes describes a fleet as an Indexed Job of several pods of one image. The pod with index 0 runs the
// coordinator and is also a worker.
type Kubernetes struct {
	Name   string // of the Job, its Service and its Secret: a DNS label
	Image  string // container image with brood in its PATH
	Pods   int    // 1 to MaxSize
	Port   int    // UDP for QUIC; TCP to request the join URL
	Secret string // shared by the pods
	// PersistentVolumeClaim for sessions and data, mounted by every pod; "": each pod has a temporary folder
	Claim string
	// name of the session, which pod 0 continues after a restart; "": the arguments name it, or it ends with the pod
	Session string
	Device  string   // resource of which each pod requests one, such as nvidia.com/gpu; "": none
	Args    []string // for brood serve: flags and the preset
}

// TCP ports of each pod in addition to Port. Only pod 0 answers at MetricsPort.
const (
	MetricsPort = 9464
	healthPort  = 9465
)

// Names of Kubernetes. Their lengths are checked separately, since a pattern that counts takes milliseconds to compile.
const (
	label    = `^[a-z]([-a-z0-9]*[a-z0-9])?$`
	claim    = `^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	resource = `^[a-z0-9][-a-z0-9.]*/[A-Za-z0-9][-A-Za-z0-9_.]*$`
)

// match compiles a pattern at its use, since few commands need one.
func match(pattern, name string) bool { return regexp.MustCompile(pattern).MatchString(name) }

const (
	maxLabel    = 48 // 63 characters minus those that the Job appends for a pod
	maxClaim    = 253
	maxResource = 253 + 1 + 63
)

// Manifest returns the input of `kubectl apply -f -`: a Secret, a headless Service for the names of the pods, a
// PodDisruptionBudget, and the Job. The pods have the environment variables of torchrun, and run as a user without
// privileges that can write to /brood and /tmp only.
//
// Sources: "Job with Pod-to-Pod Communication" and "Specifying a Disruption Budget" of the Kubernetes documentation,
// whose Pod Security Standard "restricted" the pods satisfy; batch/v1, policy/v1 and v1 of k8s.io/api.
func (k Kubernetes) Manifest() (string, error) {
	switch {
	case len(k.Name) > maxLabel || !match(label, k.Name):
		return "", fmt.Errorf("the name %q is not a DNS label: give up to 48 of a-z, 0-9 and '-', with a letter first",
			k.Name)
	case k.Claim != "" && (len(k.Claim) > maxClaim || !match(claim, k.Claim)):
		return "", fmt.Errorf("%q is not a name of a PersistentVolumeClaim", k.Claim)
	case k.Device != "" && (len(k.Device) > maxResource || !match(resource, k.Device)):
		return "", fmt.Errorf("%q is not a resource of Kubernetes: give one such as nvidia.com/gpu", k.Device)
	case k.Image == "" || strings.ContainsAny(k.Image, " \t\n\"'"):
		return "", fmt.Errorf("%q is not a container image: name one that has brood in its PATH", k.Image)
	case k.Pods < 1 || k.Pods > MaxSize:
		return "", fmt.Errorf("%d pods: give 1 to %d", k.Pods, MaxSize)
	case k.Port < 1 || k.Port > 65535:
		return "", fmt.Errorf("port %d: give 1 to 65535, since the manifest must contain it", k.Port)
	case k.Port == MetricsPort || k.Port == healthPort:
		return "", fmt.Errorf("port %d: pods use %d and %d for metrics and probes: give another", k.Port, MetricsPort,
			healthPort)
	}
	if _, err := newCipher(k.Secret); err != nil {
		return "", err
	}
	var out strings.Builder
	err := template.Must(template.New("manifest").Funcs(template.FuncMap{"text": text}).Parse(manifest)).Execute(&out, k)
	return out.String(), err
}

// Restarts is the backoffLimit of the Job: Kubernetes ends the Job after more restarts of pods.
func (k Kubernetes) Restarts() int { return 3 * k.Pods }

// Enrol is the number of keys to admit: one for each worker, and one for each restart of a pod, which has a new key.
func (k Kubernetes) Enrol() int { return max(1, k.Pods-1+k.Restarts()) }

// Stay is the number of pods that a drain of nodes leaves running: it moves one pod at a time.
func (k Kubernetes) Stay() int { return k.Pods - 1 }

// MetricsPort and HealthPort are the ports for the template.
func (Kubernetes) MetricsPort() int { return MetricsPort }
func (Kubernetes) HealthPort() int  { return healthPort }

// text returns a YAML string. A JSON string is always one.
func text(s string) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// manifest is the template of a manifest, for a Kubernetes.
const manifest = `# {{.Pods}} pods train one run; pod 0 coordinates. Apply with kubectl apply -f -, then: kubectl logs -f job/{{.Name}}
apiVersion: v1
kind: Secret
metadata:
  name: {{.Name}}
type: Opaque
stringData:
  secret: {{text .Secret}} # with it any process can join the run
---
apiVersion: v1
kind: Service
metadata:
  name: {{.Name}}
spec:
  clusterIP: None # for names only: pods exchange tensors directly
  publishNotReadyAddresses: true
  selector:
    batch.kubernetes.io/job-name: {{.Name}}
  ports:
  - {name: quic, protocol: UDP, port: {{.Port}}}
  - {name: join, protocol: TCP, port: {{.Port}}}
  - {name: metrics, protocol: TCP, port: {{.MetricsPort}}} # of pod 0
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{.Name}}
spec:
  minAvailable: {{.Stay}} # of a Job only this may be given: nodes are drained of one pod at a time
  selector:
    matchLabels: {batch.kubernetes.io/job-name: {{.Name}}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{.Name}}
spec:
  completionMode: Indexed
  completions: {{.Pods}}
  parallelism: {{.Pods}}
  backoffLimit: {{.Restarts}}
  template:
    spec:
      subdomain: {{.Name}}
      restartPolicy: OnFailure
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 60 # members move to other pods first, within 30 seconds
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        fsGroupChangePolicy: OnRootMismatch # Always would let the group read keys, which brood then rejects
        seccompProfile: {type: RuntimeDefault}
      containers:
      - name: brood
        image: {{text .Image}}
        command:
        - brood
        - fleet
        - launch
        - --torchrun
        - --enrol={{.Enrol}}
        - --metrics=0.0.0.0:{{.MetricsPort}}
        - --health=0.0.0.0:{{.HealthPort}}
{{- if .Session}}
        - --session=/brood/sessions/{{.Session}}
        - --continue
{{- end}}
{{- range .Args}}
        - {{text .}}
{{- end}}
        env:
        - name: RANK
          valueFrom: {fieldRef: {fieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
        - {name: WORLD_SIZE, value: "{{.Pods}}"}
        - {name: MASTER_ADDR, value: "{{.Name}}-0.{{.Name}}"}
        - name: BROOD_SECRET
          valueFrom: {secretKeyRef: {name: {{.Name}}, key: secret}}
        - {name: BROOD_SESSIONS, value: /brood/sessions}
        - {name: BROOD_DATA, value: /brood/data}
        - {name: HOME, value: /tmp} # for caches
        resources:
          requests: {cpu: "1", memory: 1Gi} # raise them to what the model needs; brood uses all cores that it gets
{{- if .Device}}
          limits: {{"{"}}{{text .Device}}: 1{{"}"}} # a device for each pod
{{- end}}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
        livenessProbe: # the process responds, also while it waits for others: restarted after two minutes without
          httpGet: {path: /healthz, port: health}
          periodSeconds: 20
          timeoutSeconds: 10
          failureThreshold: 6
        ports:
        - {name: quic, protocol: UDP, containerPort: {{.Port}}}
        - {name: join, protocol: TCP, containerPort: {{.Port}}}
        - {name: metrics, protocol: TCP, containerPort: {{.MetricsPort}}}
        - {name: health, protocol: TCP, containerPort: {{.HealthPort}}}
        volumeMounts:
        - {name: brood, mountPath: /brood}
        - {name: tmp, mountPath: /tmp}
      volumes:
      - {name: tmp, emptyDir: {}}
      - name: brood
{{- if .Claim}}
        persistentVolumeClaim: {claimName: {{text .Claim}}}
{{- else}}
        emptyDir: {} # Kubernetes deletes the session with pod 0: name a claim to keep it
{{- end}}
`
