{{- define "muster.name" -}}
{{- ternary .Release.Name (printf "%s-muster" .Release.Name) (contains "muster" .Release.Name) | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "muster.selector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "muster.labels" -}}
{{ include "muster.selector" . }}
app.kubernetes.io/component: operator
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "muster.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "muster.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- /* What the operator does to namespaced objects, and nothing else. */}}
{{- define "muster.rules" -}}
- apiGroups: [muster.dev]
  resources: [trainingjobs]
  verbs: [get, list, watch, delete]  # delete: ttlSecondsAfterFinished
- apiGroups: [muster.dev]
  resources: [trainingjobs/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [configmaps]  # profile reports
  verbs: [get, list, create]
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}
