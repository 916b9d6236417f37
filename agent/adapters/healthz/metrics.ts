/** The metrics of the agent. Names are upstream's where there is one; help texts are ours. */
import type { MetricDefinition } from './registry.ts';

const counter = (name: string, help: string): MetricDefinition => ({ name, kind: 'counter', help });
const gauge = (name: string, help: string): MetricDefinition => ({ name, kind: 'gauge', help });

/** Milliseconds; each is twice the previous one, as in upstream's histogram with this name. */
const ADMISSION_BUCKETS_MS = Array.from({ length: 15 }, (_, index) => 0.05 * 2 ** index);

export const AGENT_METRICS: readonly MetricDefinition[] = [
  gauge('kubelet_node_name', 'Name of the node, as a label; the value is 1.'),
  gauge('kubelet_running_pods', 'Pods with a running container.'),
  gauge('kubelet_running_containers', 'Containers by container_state.'),
  counter('kubelet_started_pods_total', 'Pods started.'),
  counter('kubelet_started_pods_errors_total', 'Pods that could not be started.'),
  counter('kubelet_admission_rejections_total', 'Pods refused on this node, by reason.'),
  gauge('kubelet_graceful_shutdown_start_time_seconds', 'When the last graceful shutdown began, since the epoch.'),
  gauge('kubelet_graceful_shutdown_end_time_seconds', 'When the last graceful shutdown ended, since the epoch.'),
  counter('kubelet_topology_manager_admission_requests_total', 'Pods the topology manager was asked about.'),
  counter('kubelet_topology_manager_admission_errors_total', 'Pods refused for want of aligned resources.'),
  {
    name: 'kubelet_topology_manager_admission_duration_ms',
    kind: 'histogram',
    help: 'How long the topology manager took for a pod, in milliseconds.',
    buckets: ADMISSION_BUCKETS_MS,
  },
  counter('kubelet_container_aligned_compute_resources_count', 'Containers or pods aligned, by scope and boundary.'),
  counter(
    'kubelet_container_aligned_compute_resources_failure_count',
    'Alignments that failed, by scope and boundary.',
  ),
  counter('kubelet_evictions', 'Pods evicted by this node, by eviction_signal.'),
  gauge('process_start_time_seconds', 'When the process started, since the epoch.'),
  counter('nodekeeper_agent_status_passes_total', 'Passes of the node status by outcome.'),
  counter('nodekeeper_agent_events_dropped_total', 'Events that were dropped.'),
  counter(
    'nodekeeper_agent_metric_values_dropped_total',
    'Values dropped because a metric had too many sets of labels.',
  ),
  counter('nodekeeper_agent_lease_renewals_total', 'Renewals of the Lease that were acknowledged.'),
  gauge('nodekeeper_agent_lease_renewed_time_seconds', 'When the Lease was last renewed, since the epoch.'),
  counter('nodekeeper_agent_key_rotations_total', 'Keys of this machine that were replaced by another.'),
  counter(
    'nodekeeper_agent_requests_total',
    'Requests to the API by method and code; code 0 when there was no answer.',
  ),
  gauge('nodekeeper_agent_relay_listening', 'Whether the relay listens: 1, or 0.'),
  gauge(
    'nodekeeper_agent_relay_certificate_expires_time_seconds',
    'When the certificate of the relay expires, since the epoch.',
  ),
  counter('nodekeeper_agent_relay_batches_total', 'Batches of heartbeats that were relayed, by outcome.'),
  counter('nodekeeper_agent_relayed_heartbeats_total', 'Heartbeats that were relayed, by code of the answer.'),
  gauge('nodekeeper_agent_site_machines', 'Machines of the site that this relay watches.'),
  gauge('nodekeeper_agent_site_silent', 'Machines that this relay reports as silent on the network of the site.'),
  gauge('nodekeeper_agent_site_joined', 'Whether this machine has a connection for the site to its relay: 1, or 0.'),
  counter('nodekeeper_agent_site_probes_total', 'Probes of other machines of the site, by outcome.'),
  gauge('nodekeeper_agent_services', 'Services of the cluster that this machine knows.'),
  gauge('nodekeeper_agent_service_ports', 'Ports of Services that this machine routes.'),
  counter('nodekeeper_agent_service_passes_total', 'Passes over the Services by outcome: done, failed.'),
  counter('nodekeeper_agent_service_rule_updates_total', 'Updates of the packet filter for Services.'),
  counter(
    'nodekeeper_agent_service_questions_total',
    'Questions for names by outcome: cluster, forwarded, failed, dropped.',
  ),
  counter('nodekeeper_agent_sent_bytes_total', 'Bytes sent to the API.'),
  counter('nodekeeper_agent_received_bytes_total', 'Bytes received from the API.'),
];
