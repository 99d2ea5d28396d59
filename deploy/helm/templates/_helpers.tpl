{{- define "gnomon.name" -}}
{{- if contains "gnomon" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-gnomon" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "gnomon.selector" -}}
app.kubernetes.io/name: gnomon
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gnomon.labels" -}}
{{ include "gnomon.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "gnomon.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end }}

{{- define "gnomon.secret" -}}
{{ .Values.tokens.secretName | default (printf "%s-tokens" (include "gnomon.name" .)) }}
{{- end }}

{{- define "gnomon.pool" -}}
{{ if .Values.inferencePool.create }}{{ include "gnomon.name" . }}{{ else }}{{ .Values.engines.pool }}{{ end }}
{{- end }}

{{/* Engines' pods are found by the API server, unless they are listed. */}}
{{- define "gnomon.discovers" -}}
{{ if not .Values.engines.urls }}true{{ end }}
{{- end }}

{{/* The gateway's configuration: what the values stand for, under what .Values.config sets. */}}
{{- define "gnomon.config" -}}
{{- $picker := eq .Values.mode "picker" }}
{{- $config := dict "listen" (dict "host" "0.0.0.0" "port" 8080 "drainNoticeMillis" 5000 "drainMillis" 60000) "limits" (dict "bodyBytesInFlightMax" 268435456) }}
{{- if .Values.engines.urls }}
{{- $endpoints := list }}
{{- range .Values.engines.urls }}{{ $endpoints = append $endpoints (dict "url" .) }}{{ end }}
{{- $_ := set $config "endpoints" $endpoints }}
{{- else }}
{{- $discovery := dict "kind" "kubernetes" "namespace" (.Values.engines.namespace | default .Release.Namespace) }}
{{- if or .Values.engines.pool .Values.inferencePool.create }}{{ $_ := set $discovery "pool" (include "gnomon.pool" .) }}
{{- else if .Values.engines.selector }}{{ $_ := set $discovery "selector" .Values.engines.selector }}
{{- else }}{{ $_ := set $discovery "service" .Values.engines.service }}{{ end }}
{{- if and .Values.engines.port (not (or .Values.engines.pool .Values.inferencePool.create)) }}{{ $_ := set $discovery "port" (int .Values.engines.port) }}{{ end }}
{{- $_ := set $config "discovery" $discovery }}
{{- end }}
{{- if .Values.profile }}{{ $_ := set $config "routing" (dict "profile" .Values.profile) }}{{ end }}
{{- if $picker }}
{{- $keys := dict "port" 9002 "healthPort" 9003 }}
{{- if .Values.tls.secretName }}{{ $_ := set $keys "certFile" "/etc/gnomon-tls/tls.crt" }}{{ $_ := set $keys "keyFile" "/etc/gnomon-tls/tls.key" }}{{ end }}
{{- $_ := set $config "picker" $keys }}
{{- $_ := set $config "clients" (dict "tenantHeaders" (list "x-gnomon-tenant" "x-llm-d-inference-fairness-id" "x-gateway-inference-fairness-id")) }}
{{- else if .Values.tls.secretName }}
{{- $_ := set $config.listen "tls" (dict "certFile" "/etc/gnomon-tls/tls.crt" "keyFile" "/etc/gnomon-tls/tls.key") }}
{{- end }}
{{- if .Values.redis.enabled }}{{ $_ := set $config "share" (dict "url" (.Values.redis.url | default (printf "redis://%s-redis:6379" (include "gnomon.name" .)))) }}{{ end }}
{{- if .Values.traces.enabled }}{{ $_ := set $config "record" (dict "directory" "/var/lib/gnomon/trace") }}{{ end }}
{{- $_ := set $config "admin" (dict "tokenEnv" "ADMIN_TOKEN") }}
{{- $_ := set $config "prefix" (dict "secretEnv" "HASH_KEY") }}
{{- if .Values.tokens.clientKeys }}{{ $_ := set $config "clients" (merge (dict "keysEnv" "CLIENT_KEYS") ($config.clients | default dict)) }}{{ end }}
{{- toYaml (mergeOverwrite $config (deepCopy .Values.config)) }}
{{- end }}
