/**
 * A cluster with the scheduler: requests go to the API, streams to object-stream, and its wake-ups start passes. Nodes
 * have 4 cpu, 8Gi, 20Gi of ephemeral storage and 110 pods, are Ready and have the label of their host name.
 */
import type { KubeDecision, KubeEvent, KubeNode, KubePod, PodSpec } from '../../shared/kinds/types.ts';
import { MERGE, NODES, podsIn } from './api-in-memory.ts';
import type { FleetOptions } from './controlled-fleet.ts';
import { type ServedFleet, servedFleet } from './served-fleet.ts';

export interface NodeParts {
  readonly labels?: Record<string, string>;
  readonly zone?: string;
  readonly taints?: { key: string; value?: string; effect: string }[];
  readonly unschedulable?: boolean;
  readonly allocatable?: Record<string, string>;
  readonly images?: { names: string[]; sizeBytes: number }[];
  readonly ready?: string;
}

export interface PodParts {
  readonly namespace?: string;
  readonly labels?: Record<string, string>;
  readonly requests?: Record<string, string>;
  readonly spec?: Partial<PodSpec>;
  /** Requests, by the name of a PriorityClass that is made for it. */
  readonly priority?: number;
  readonly owner?: string;
  readonly status?: KubePod['status'];
}

const ROUNDS_MAX = 200;

export class ScheduledCluster {
  readonly served: ServedFleet;
  readonly woken: string[] = [];
  readonly #classes = new Set<number>();

  constructor(options: FleetOptions = {}) {
    this.served = servedFleet([], {
      ...options,
      // No node-monitor runs, so the gate would be closed.
      policy: { schedulerGate: 'off', ...options.policy },
      waker: {
        wake: async (names) => {
          this.woken.push(...names);
          return [];
        },
      },
    });
  }

  get fleet(): ServedFleet['fleet'] {
    return this.served.fleet;
  }

  send(...request: Parameters<ServedFleet['send']>): ReturnType<ServedFleet['send']> {
    return this.served.send(...request);
  }

  async node(name: string, parts: NodeParts = {}): Promise<void> {
    await this.createNode(name, parts);
    await this.fleet.streams();
  }

  /** Without the streams. */
  async createNode(name: string, parts: NodeParts = {}): Promise<void> {
    const zone = parts.zone === undefined ? {} : { 'topology.kubernetes.io/zone': parts.zone };
    const amounts = { cpu: '4', memory: '8Gi', 'ephemeral-storage': '20Gi', pods: '110', ...parts.allocatable };
    await this.send('POST', NODES, {
      body: {
        metadata: { name, labels: { 'kubernetes.io/hostname': name, ...zone, ...parts.labels } },
        spec: {
          ...(parts.taints === undefined ? {} : { taints: parts.taints }),
          ...(parts.unschedulable === undefined ? {} : { unschedulable: parts.unschedulable }),
        },
        status: {
          capacity: amounts,
          allocatable: amounts,
          conditions: [{ type: 'Ready', status: parts.ready ?? 'True' }],
          ...(parts.images === undefined ? {} : { images: parts.images }),
        },
      },
    });
  }

  /** Changes the Node. */
  async patchNode(name: string, patch: object, subresource = ''): Promise<void> {
    await this.send('PATCH', `${NODES}/${name}${subresource}`, { body: patch, contentType: MERGE });
  }

  async pod(name: string, parts: PodParts = {}): Promise<KubePod> {
    const { namespace = 'default', requests, spec, priority } = parts;
    if (priority !== undefined) await this.#priorityClass(priority);
    const container = {
      name: 'main',
      image: `registry.example/${name}:1`,
      ...(requests && { resources: { requests } }),
    };
    const body = {
      metadata: {
        name,
        ...(parts.labels && { labels: parts.labels }),
        ...(parts.owner && {
          ownerReferences: [
            { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: parts.owner, uid: parts.owner, controller: true },
          ],
        }),
      },
      spec: {
        containers: [container],
        ...(priority !== undefined && { priorityClassName: `priority-${priority + 10_000}` }),
        ...spec,
      },
    };
    const created = await this.send('POST', podsIn(namespace), { body });
    if (parts.status === undefined) return created as KubePod;
    return this.status(name, parts.status, namespace);
  }

  /** A pod on a node, as its kubelet reports it. */
  async running(name: string, nodeName: string, parts: PodParts = {}): Promise<KubePod> {
    const status = { phase: 'Running', ...parts.status } as const;
    return this.pod(name, { ...parts, spec: { ...parts.spec, nodeName }, status });
  }

  async status(name: string, status: object, namespace = 'default'): Promise<KubePod> {
    return this.send('PATCH', `${podsIn(namespace)}/${name}/status`, { body: { status }, contentType: MERGE });
  }

  async #priorityClass(value: number): Promise<void> {
    if (this.#classes.has(value)) return;
    this.#classes.add(value);
    const path = '/apis/scheduling.k8s.io/v1/priorityclasses';
    await this.send('POST', path, { body: { metadata: { name: `priority-${value + 10_000}` }, value } });
  }

  /** The object is removed, as its kubelet confirms. */
  async remove(name: string, namespace = 'default'): Promise<void> {
    await this.send('DELETE', `${podsIn(namespace)}/${name}?gracePeriodSeconds=0`);
  }

  async namespace(name: string, labels: Record<string, string> = {}): Promise<void> {
    await this.send('POST', '/api/v1/namespaces', { body: { metadata: { name, labels } } });
  }

  /** One pass. */
  tick() {
    return this.fleet.controllers.tickScheduler(this.fleet.slot());
  }

  /** Streams, and the passes that they ask for, until both rest. */
  async settle(): Promise<void> {
    for (let rounds = 0; rounds < ROUNDS_MAX; rounds += 1) {
      await this.fleet.streams();
      if (this.woken.splice(0).length === 0) return;
      await this.tick();
    }
    throw new Error('the scheduler does not come to rest');
  }

  /** Later; then what node-monitor would wake at this time. Seconds from the start. */
  async at(seconds: number): Promise<void> {
    this.fleet.at(seconds);
    await this.tick();
    await this.settle();
  }

  async get(name: string, namespace = 'default'): Promise<KubePod> {
    return this.send('GET', `${podsIn(namespace)}/${name}`);
  }

  async nodeOf(name: string, namespace = 'default'): Promise<string> {
    return (await this.get(name, namespace)).spec?.nodeName ?? '';
  }

  async scheduled(name: string, namespace = 'default') {
    return (await this.get(name, namespace)).status?.conditions?.find(({ type }) => type === 'PodScheduled');
  }

  /** The message between `0/N nodes are available: ` and ` preemption: `. */
  async reasons(name: string, namespace = 'default'): Promise<string> {
    const { status, reason, message = '' } = (await this.scheduled(name, namespace)) ?? {};
    if (status !== 'False' || reason !== 'Unschedulable') throw new Error(`${name} is ${status} ${reason}`);
    return message.split(' preemption: ')[0]!.replace(/^0\/\d+ nodes are available: /, '');
  }

  async preemptionText(name: string): Promise<string> {
    return (await this.scheduled(name))?.message?.split(' preemption: ')[1] ?? '';
  }

  async events(reason: string): Promise<readonly KubeEvent[]> {
    return (await this.fleet.events(reason)) as readonly KubeEvent[];
  }

  async storedNode(name: string): Promise<KubeNode> {
    return this.send('GET', `${NODES}/${name}`);
  }

  /** The nodes on which such a pod is bound while every other node is cordoned. */
  async feasible(parts: PodParts = {}): Promise<string[]> {
    const { items } = (await this.send('GET', NODES)) as unknown as { items: KubeNode[] };
    const names = items.map(({ metadata }) => metadata.name!);
    const cordoned = new Map(items.map(({ metadata, spec }) => [metadata.name!, spec?.unschedulable === true]));
    const found: string[] = [];
    for (const wanted of names) {
      for (const name of names) {
        await this.patchNode(name, { spec: { unschedulable: name !== wanted || cordoned.get(name) === true } });
      }
      await this.settle();
      const name = `probe-${wanted}`;
      await this.pod(name, parts);
      await this.settle();
      if ((await this.nodeOf(name, parts.namespace)) === wanted) found.push(wanted);
      await this.remove(name, parts.namespace);
      await this.settle();
    }
    for (const name of names) await this.patchNode(name, { spec: { unschedulable: cordoned.get(name) === true } });
    await this.settle();
    return found;
  }

  /** How many nodes were rejected for each reason, in the record of the last binding or rejection of a pod. */
  async rejected(name: string): Promise<Record<string, number>> {
    const path = `/apis/nodekeeper.dev/v1alpha1/decisions?limit=500`;
    const { items } = (await this.send('GET', path)) as unknown as { items: KubeDecision[] };
    const record = items.findLast(
      ({ spec }) => spec?.about?.name === name && ['PodScheduled', 'PodUnschedulable'].includes(spec.act ?? ''),
    );
    return (record?.spec?.['inputs'] as { readonly rejected: Record<string, number> } | undefined)?.rejected ?? {};
  }
}
