/**
 * Computes the current Node from the Node that was read: all setters in their order
 * (pkg/kubelet/nodestatus/setters.go). Nothing is written here. Events are returned, to be recorded after the write.
 */

import { defined } from '../../shared/defined.ts';
import { AGENT_VERSION_ANNOTATION } from '../../shared/fleet/nodes/agent-version.ts';
import type { NodeUsage } from '../../shared/fleet/nodes/node-usage.ts';
import { SERVICES_ANNOTATION } from '../../shared/fleet/nodes/service-readers.ts';
import { SITE_HUB } from '../../shared/kinds/pods/site-permit.ts';
import type { KubeNode, NodeStatus } from '../../shared/kinds/types.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { AgentConfig } from '../config.ts';
import type { Machine, MachineFacts, MachineUse } from '../ports/machine.ts';
import { type ReadyErrors, statusEvent } from '../rules/node-conditions.ts';
import type { NodeEvent } from '../rules/node-event.ts';
import { nodeInfoOf, wasRebooted } from '../rules/node-info.ts';
import { nodeResources } from '../rules/node-resources.ts';
import { withPressures, withReady } from '../rules/reported-conditions.ts';
import { labelsToSet } from '../rules/status-report.ts';
import { type UsageReading, usageSince } from '../rules/usage-window.ts';
import type { NodePressure } from './node-pressure.ts';

export interface ComputedNode {
  readonly node: KubeNode;
  readonly events: readonly NodeEvent[];
}

/**
 * One step of the computation. Does not modify its argument. If it rejects, the Node stays as it was before the step.
 */
export type NodeSetter = (node: KubeNode) => Promise<ComputedNode>;

export interface NodeStatusSettings
  extends Pick<
    AgentConfig,
    | 'nodeName'
    | 'maxPods'
    | 'podsPerCore'
    | 'systemReserved'
    | 'kubeReserved'
    | 'evictionHard'
    | 'localStorageCapacityIsolation'
  > {}

export interface NodeStatusSources {
  readonly settings: NodeStatusSettings;
  readonly machine: Pick<Machine, 'facts' | 'use'>;
  /** Wall clock, for the times in conditions. */
  readonly nowMs: () => number;
  /** Monotonic clock, for the time since a pressure was last measured. */
  readonly monotonicMs: () => number;
  readonly log: Log;
  readonly pressure: NodePressure;
  /** For status.nodeInfo.kubeletVersion. */
  readonly agentVersion: string;
  /** Sets status.addresses and the annotation of the node IP. */
  readonly setAddresses: NodeSetter;
  /** Version of an agent that updates itself, as an annotation. Undefined: the Node has no such annotation. */
  readonly updatingVersion?: string | undefined;
  /** Whether this machine routes Services, as an annotation. */
  readonly routesServices?: boolean | undefined;
  /** The hub that this machine obeys; undefined: not known yet. Absent: there is none. */
  readonly siteHub?: (() => string | undefined) | undefined;
  readonly readyErrors: () => ReadyErrors;
  readonly readyWarning?: () => string | undefined;
  /** `<type>://<version>`; undefined while the runtime does not answer. */
  readonly runtimeVersion: () => string | undefined;
  readonly declaredFeatures: readonly string[];
  readonly volumesInUse: () => readonly string[];
}

interface Readings {
  readonly nowMs: number;
  readonly monotonicMs: number;
  readonly facts: MachineFacts | undefined;
  readonly use: MachineUse | undefined;
}

const withStatus = (node: KubeNode, status: Partial<NodeStatus>): KubeNode => ({
  ...node,
  status: { ...node.status, ...status },
});

const unchanged = (node: KubeNode): ComputedNode => ({ node, events: [] });

/** Keeps the last value of `unschedulable` and the start of the current minute. One instance per process. */
export class NodeStatusComputation {
  readonly #sources: NodeStatusSources;
  #unschedulable: boolean | undefined;
  #windowStart: UsageReading | undefined;
  #usage: NodeUsage | undefined;

  constructor(sources: NodeStatusSources) {
    this.#sources = sources;
  }

  /** The usage of the last whole minute. Undefined in the first one. */
  usage(): NodeUsage | undefined {
    return this.#usage;
  }

  /** One machine reading serves all setters. A setter that fails is logged, and the rest still run. */
  async compute(read: KubeNode): Promise<ComputedNode> {
    const readings = await this.#read();
    const steps: Readonly<Record<string, NodeSetter>> = {
      labels: async (node) => this.#labels(node, readings),
      addresses: this.#sources.setAddresses,
      annotations: async (node) => this.#announced(node),
      machine: async (node) => this.#machine(node, readings),
      versions: async (node) => this.#versions(node, readings),
      images: async (node) => this.#images(node),
      features: async (node) => this.#features(node),
      pressures: async (node) => this.#pressures(node, readings),
      ready: async (node) => this.#ready(node, readings),
      'volumes in use': async (node) => this.#volumesInUse(node),
      schedulable: async (node) => this.#schedulable(node),
    };
    let node = read;
    const events: NodeEvent[] = [];
    for (const [setter, step] of Object.entries(steps)) {
      try {
        const computed = await step(node);
        node = computed.node;
        events.push(...computed.events);
      } catch (cause) {
        this.#sources.log.error('a part of the node status could not be set', { setter, cause });
      }
    }
    return { node, events };
  }

  async #read(): Promise<Readings> {
    const { machine, log, nowMs, monotonicMs } = this.#sources;
    const [facts, use] = await Promise.allSettled([machine.facts(), machine.use()]);
    // An unreadable machine is reported without capacity: the status shows the fault instead of becoming stale.
    if (facts.status === 'rejected') log.error('the machine could not be read', { cause: facts.reason });
    if (use.status === 'rejected') log.error('the use of the machine could not be read', { cause: use.reason });
    const readings = {
      nowMs: nowMs(),
      monotonicMs: monotonicMs(),
      facts: facts.status === 'fulfilled' ? facts.value : undefined,
      use: use.status === 'fulfilled' ? use.value : undefined,
    };
    this.#measure(readings);
    return readings;
  }

  #measure({ nowMs, monotonicMs, facts, use }: Readings): void {
    if (facts === undefined || use === undefined) return;
    const memoryBytes = facts.memoryBytes - use.memoryAvailableBytes;
    const reading = { monotonicMs, cpuBusySeconds: use.cpuBusySeconds, memoryBytes };
    const usage = this.#windowStart === undefined ? undefined : usageSince(this.#windowStart, reading, nowMs);
    if (this.#windowStart === undefined || usage !== undefined) this.#windowStart = reading;
    this.#usage = usage ?? this.#usage;
  }

  #labels(node: KubeNode, { facts }: Readings): ComputedNode {
    const missing = facts === undefined ? {} : labelsToSet(node.metadata.labels, facts);
    if (Object.keys(missing).length === 0) return unchanged(node);
    const metadata = { ...node.metadata, labels: { ...node.metadata.labels, ...missing } };
    return unchanged({ ...node, metadata });
  }

  /** A release waits only for nodes with the first annotation, and only those with the second one learn of Services. */
  #announced(node: KubeNode): ComputedNode {
    const { updatingVersion, routesServices, siteHub } = this.#sources;
    const known = node.metadata.annotations ?? {};
    const announced = {
      [AGENT_VERSION_ANNOTATION]: updatingVersion,
      [SERVICES_ANNOTATION]: routesServices === true ? 'nftables' : undefined,
      [SITE_HUB]: siteHub && (siteHub() ?? known[SITE_HUB]),
    };
    if (Object.entries(announced).every(([name, value]) => known[name] === value)) return unchanged(node);
    const annotations = defined({ ...known, ...announced });
    return unchanged({ ...node, metadata: { ...node.metadata, annotations } });
  }

  #machine(node: KubeNode, { facts, use }: Readings): ComputedNode {
    const { settings } = this.#sources;
    const resources = nodeResources(node.status, {
      systemReserved: settings.systemReserved,
      kubeReserved: settings.kubeReserved,
      evictionHard: settings.evictionHard,
      maxPods: settings.maxPods,
      podsPerCore: settings.podsPerCore,
      machine: facts,
      rootFsBytes: use?.nodeFs.capacityBytes,
    });
    const bootId = facts?.bootId ?? '';
    const rebooted = bootId !== '' && wasRebooted(node.status?.nodeInfo?.['bootID'], bootId);
    const reboot: NodeEvent = {
      type: 'Warning',
      reason: 'NodeRebooted',
      message: `Node ${settings.nodeName} has been rebooted, boot id: ${bootId}`,
    };
    return { node: withStatus(node, resources), events: rebooted ? [reboot] : [] };
  }

  #versions(node: KubeNode, { facts }: Readings): ComputedNode {
    const { agentVersion, runtimeVersion } = this.#sources;
    const nodeInfo = nodeInfoOf(node.status?.nodeInfo, { facts, agentVersion, runtimeVersion: runtimeVersion() });
    // KubeNode declares strings only; the `swap` of newer releases is an object.
    return unchanged(withStatus(node, { nodeInfo: nodeInfo as Record<string, string> }));
  }

  /** Our runtimes do not report images: the list of a previous agent or kubelet is removed. */
  #images(node: KubeNode): ComputedNode {
    return node.status?.['images'] === undefined ? unchanged(node) : unchanged(withStatus(node, { images: [] }));
  }

  #features(node: KubeNode): ComputedNode {
    const declaredFeatures = [...this.#sources.declaredFeatures];
    if (declaredFeatures.length === 0 && node.status?.declaredFeatures === undefined) return unchanged(node);
    return unchanged(withStatus(node, { declaredFeatures }));
  }

  #pressures(node: KubeNode, { nowMs, monotonicMs, facts, use }: Readings): ComputedNode {
    const { settings, pressure } = this.#sources;
    if (use !== undefined && facts !== undefined) pressure.measure(use, facts.memoryBytes, monotonicMs);
    const { conditions, events } = withPressures(node.status?.conditions, {
      isUnderPressure: (type) => pressure.isUnder(type, monotonicMs),
      nodeName: settings.nodeName,
      nowMs,
    });
    return { node: withStatus(node, { conditions }), events };
  }

  #ready(node: KubeNode, { nowMs }: Readings): ComputedNode {
    const { settings, readyErrors, readyWarning } = this.#sources;
    const { conditions, events } = withReady(node.status?.conditions, {
      errors: readyErrors(),
      warning: readyWarning?.(),
      capacity: node.status?.capacity,
      localStorageCapacityIsolation: settings.localStorageCapacityIsolation ?? true,
      nodeName: settings.nodeName,
      nowMs,
    });
    return { node: withStatus(node, { conditions }), events };
  }

  #volumesInUse(node: KubeNode): ComputedNode {
    const volumesInUse = [...this.#sources.volumesInUse()].sort();
    if (volumesInUse.length === 0 && node.status?.['volumesInUse'] === undefined) return unchanged(node);
    return unchanged(withStatus(node, { volumesInUse }));
  }

  /** Returns an event when `unschedulable` changed since the previous computation. */
  #schedulable(node: KubeNode): ComputedNode {
    const unschedulable = node.spec?.unschedulable === true;
    const before = this.#unschedulable;
    this.#unschedulable = unschedulable;
    if (before === undefined || before === unschedulable) return unchanged(node);
    const reason = unschedulable ? 'NodeNotSchedulable' : 'NodeSchedulable';
    return { node, events: [statusEvent(this.#sources.settings.nodeName, reason)] };
  }
}
