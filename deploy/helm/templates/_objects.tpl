{{- /* Every object of a file of deploy/kubernetes, with what the values change in it. */ -}}
{{- define "isolet.objects" -}}
{{- $top := .top -}}
{{- range splitList "\n---\n" ($top.Files.Get (printf "files/%s.yaml" .file)) }}
{{- $object := fromYaml . }}
{{- $metadata := $object.metadata }}
{{- $_ := unset $metadata "namespace" }}
{{- $labels := include "isolet.labels" $top | fromYaml }}
{{- $_ := set $metadata "labels" (merge (default dict $metadata.labels) $labels) }}
{{- if eq $object.kind "StatefulSet" }}{{ include "isolet.nodes" (dict "object" $object "top" $top) }}{{ end }}
{{- if eq $object.kind "Deployment" }}{{ include "isolet.router" (dict "object" $object "top" $top) }}{{ end }}
{{- if eq $object.kind "HorizontalPodAutoscaler" }}
{{- $_ := set $object.spec "minReplicas" $top.Values.autoscaling.minReplicas }}
{{- $_ := set $object.spec "maxReplicas" $top.Values.autoscaling.maxReplicas }}
{{- end }}
{{- if or $top.Values.autoscaling.enabled (ne $object.kind "HorizontalPodAutoscaler") }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}

{{- define "isolet.labels" -}}
app.kubernetes.io/name: isolet
app.kubernetes.io/part-of: isolet
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- define "isolet.nodes" -}}
{{- $values := .top.Values }}
{{- $pod := .object.spec.template.spec }}
{{- $container := first $pod.containers }}
{{- $tag := default .top.Chart.AppVersion $values.image.tag }}
{{- $absent := "set image.repository to the image that your cluster pulls: deploy/container/README.md builds it" }}
{{- $repository := required $absent $values.image.repository }}
{{- $_ := set $container "image" (printf "%s:%s" $repository $tag) }}
{{- $_ := set $container "imagePullPolicy" $values.image.pullPolicy }}
{{- $_ := set $container "resources" $values.node.resources }}
{{- $args := list }}
{{- range $container.args }}
{{- if not (hasPrefix "--require=" .) }}{{ $args = append $args . }}{{ end }}
{{- end }}
{{- if $values.require }}{{ $args = append $args (printf "--require=%s" (join "," $values.require)) }}{{ end }}
{{- $_ := set $container "args" $args }}
{{- $_ := set $pod.securityContext "seccompProfile" $values.node.seccompProfile }}
{{- range $pod.volumes }}
{{- if .secret }}{{ $_ := set .secret "secretName" (default "isolet-node" $values.existingSecret) }}{{ end }}
{{- end }}
{{- with $values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end }}
{{- with $values.node.nodeSelector }}{{ $_ := set $pod "nodeSelector" . }}{{ end }}
{{- with $values.node.tolerations }}{{ $_ := set $pod "tolerations" . }}{{ end }}
{{- if not $values.autoscaling.enabled }}{{ $_ := set .object.spec "replicas" $values.node.replicas }}{{ end }}
{{- end }}

{{- define "isolet.router" -}}
{{- $values := .top.Values }}
{{- $container := first .object.spec.template.spec.containers }}
{{- $_ := set $container "image" $values.router.image }}
{{- $_ := set $container "resources" $values.router.resources }}
{{- $_ := set .object.spec "replicas" $values.router.replicas }}
{{- with $values.imagePullSecrets }}{{ $_ := set $.object.spec.template.spec "imagePullSecrets" . }}{{ end }}
{{- end }}
