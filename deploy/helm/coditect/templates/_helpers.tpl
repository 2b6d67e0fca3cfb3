{{- define "coditect.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "coditect.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "coditect.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "coditect.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "coditect.orchestrators" -}}{{ include "coditect.fullname" . }}-orchestrator{{- end -}}

{{/* The labels by which Services, budgets and policies find pods: they never change. */}}
{{- define "coditect.selector" -}}
app.kubernetes.io/name: {{ include "coditect.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The labels of an object, with more of its own. No label stands twice: those by which
objects are found win, and then those of the object. */}}
{{- define "coditect.labelsWith" -}}
{{- $fixed := include "coditect.selector" .root | fromYaml -}}
{{- $_ := set $fixed "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $fixed "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $fixed "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version) -}}
{{- $given := mergeOverwrite (deepCopy .root.Values.commonLabels) (deepCopy (.more | default dict)) -}}
{{- $given = omit $given "app.kubernetes.io/component" "coditect.dev/pool" "coditect.dev/metrics" -}}
{{- toYaml (mergeOverwrite $given $fixed) -}}
{{- end -}}
{{- define "coditect.labels" -}}{{ include "coditect.labelsWith" (dict "root" .) }}{{- end -}}

{{- define "coditect.embedded" -}}{{ if eq .Values.store.type "embedded" }}yes{{ end }}{{- end -}}
{{- define "coditect.secure" -}}{{ if not .Values.security.insecure }}yes{{ end }}{{- end -}}
{{- define "coditect.certManager" -}}{{ if and (include "coditect.secure" .) (eq .Values.security.tls.source "certManager") }}yes{{ end }}{{- end -}}

{{/* The address of the orchestrators within the cluster. */}}
{{- define "coditect.host" -}}{{ include "coditect.orchestrators" . }}.{{ .Release.Namespace }}.svc{{- end -}}

{{- define "coditect.clusterFileMap" -}}
{{- .Values.store.foundationdb.existingConfigMap | default (printf "%s-fdb" (include "coditect.fullname" .)) -}}
{{- end -}}
{{- define "coditect.policyMap" -}}
{{- if .Values.security.existingPolicyConfigMap -}}{{ .Values.security.existingPolicyConfigMap }}
{{- else if include "coditect.secure" . -}}{{ include "coditect.fullname" . }}-policy
{{- end -}}
{{- end -}}

{{/* The secrets of certificates: of the server, of workers, of clients, of the autoscaler. */}}
{{- define "coditect.serverSecret" -}}{{ .Values.security.tls.existingSecret | default (printf "%s-server-tls" (include "coditect.fullname" .)) }}{{- end -}}
{{- define "coditect.workerSecret" -}}{{ .Values.security.tls.workerSecret | default (printf "%s-worker-tls" (include "coditect.fullname" .)) }}{{- end -}}
{{- define "coditect.clientSecret" -}}{{ .Values.security.tls.clientSecret | default (printf "%s-client-tls" (include "coditect.fullname" .)) }}{{- end -}}
{{- define "coditect.scalerSecret" -}}{{ .Values.security.tls.scalerSecret | default (printf "%s-scaler-tls" (include "coditect.fullname" .)) }}{{- end -}}

{{- define "coditect.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "coditect.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "coditect.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Variables of the environment out of a map. */}}
{{- define "coditect.env" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{/* The variables of a container: of telemetry and its own, which count more. None stands
twice, nor beside those that are taken by others. */}}
{{- define "coditect.environment" -}}
{{- $all := dict "OTEL_RESOURCE_ATTRIBUTES" .attributes -}}
{{- with .root.Values.telemetry.otlpEndpoint -}}{{- $_ := set $all "OTEL_EXPORTER_OTLP_ENDPOINT" . -}}{{- end -}}
{{- $all = mergeOverwrite $all (deepCopy .root.Values.telemetry.env) (deepCopy (.own | default dict)) -}}
{{- range .taken -}}{{- $all = omit $all . -}}{{- end -}}
{{- include "coditect.env" (omit $all "POD_NAME") -}}
{{- end -}}

{{/* A pool: the defaults with what the pool says. A list of the pool replaces that of the defaults. */}}
{{- define "coditect.pool" -}}
{{- mergeOverwrite (deepCopy .root.Values.workerDefaults) (deepCopy (.pool | default dict)) | toJson -}}
{{- end -}}

{{/* What the TLS of a peer is told: flags, and where its certificate is. */}}
{{- define "coditect.peerTLSArgs" -}}
- --tls-ca=/etc/coditect/tls/ca.crt
- --tls-cert=/etc/coditect/tls/tls.crt
- --tls-key=/etc/coditect/tls/tls.key
{{- end -}}

{{- define "coditect.replicas" -}}
{{- if include "coditect.embedded" . }}1{{ else if kindIs "invalid" .Values.orchestrator.replicas }}2{{ else }}{{ int .Values.orchestrator.replicas }}{{ end -}}
{{- end -}}
