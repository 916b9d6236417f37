/**
 * The topology manager of a running agent: it applies the rules, and keeps which resources it assigned to which pod.
 * After a restart it starts empty, and the running pods are admitted again.
 */
import type { KubePod } from '../../shared/kinds/types.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { CpuPlacement } from '../ports/pod-runtime.ts';
import type { AgentTime } from '../ports/time.ts';
import type { Admission } from '../rules/pod-admission.ts';
import { admitTopology, type TopologyAdmission } from '../rules/topology/admission.ts';
import { EMPTY_LEDGER, type Ledger, type NumaNode, placementIn, podUidOf, released } from '../rules/topology/ledger.ts';
import { bitCount } from '../rules/topology/mask.ts';
import type { TopologySettings } from '../rules/topology/policy.ts';
import { cpuProvider, memoryProvider } from '../rules/topology/providers.ts';

export interface TopologyDependencies {
  /** Result of startTopology; undefined under the policy `none`, which admits every pod and assigns nothing. */
  readonly settings: TopologySettings | undefined;
  readonly nodes: readonly NumaNode[];
  readonly meter: AgentMeter;
  readonly time: AgentTime;
}

export interface TopologyManager {
  /** Decides again for a pod that was admitted before, without its earlier assignment. */
  admit(pod: KubePod): Admission;
  /** False under the policy `none`. */
  readonly assignsProcessors: boolean;
  /** Releases the resources of a removed pod. Does nothing for an unknown pod. */
  release(podUid: string): void;
  /** Where a container may run now. */
  placementOf(podUid: string, container: string): CpuPlacement;
  /** Called when the placement of any container may have changed. */
  onChange(listener: () => void): void;
}

export function topologyManager({ settings, nodes, meter, time }: TopologyDependencies): TopologyManager {
  const providers = settings === undefined ? [] : [cpuProvider(nodes), memoryProvider(nodes)];
  let ledger = EMPTY_LEDGER;
  const listeners: (() => void)[] = [];
  /** Without a policy nothing is assigned. */
  const notify = (): void => {
    if (settings !== undefined) for (const listener of listeners) listener();
  };

  function countAlignment(outcome: TopologyAdmission<Ledger>): void {
    if (settings?.policy !== 'single-numa-node') return;
    const labels = { scope: settings.scope, boundary: 'numa_node' };
    if (outcome.kind === 'refused') {
      if (outcome.hint !== undefined) meter.count('kubelet_container_aligned_compute_resources_failure_count', labels);
      return;
    }
    for (const { mask } of outcome.hints.values()) {
      if (mask !== undefined && bitCount(mask) === 1) {
        meter.count('kubelet_container_aligned_compute_resources_count', labels);
      }
    }
  }

  return {
    assignsProcessors: settings !== undefined,
    admit(pod) {
      const startedAtMs = time.monotonicMs();
      if (settings !== undefined) meter.count('kubelet_topology_manager_admission_requests_total');
      const outcome = admitTopology(settings, providers, released(ledger, podUidOf(pod)), pod);
      countAlignment(outcome);
      if (settings !== undefined) {
        meter.observe('kubelet_topology_manager_admission_duration_ms', time.monotonicMs() - startedAtMs);
      }
      if (outcome.kind === 'refused') {
        meter.count('kubelet_topology_manager_admission_errors_total');
        return { kind: 'refused', reason: outcome.reason, message: outcome.message };
      }
      ledger = outcome.state;
      notify();
      return { kind: 'admitted' };
    },
    release(podUid) {
      ledger = released(ledger, podUid);
      notify();
    },
    placementOf: (podUid, container) => placementIn(nodes, ledger, podUid, container),
    onChange(listener) {
      listeners.push(listener);
    },
  };
}
