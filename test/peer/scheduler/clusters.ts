/**
 * Random clusters for the comparison with upstream's kube-scheduler. The same seed yields the same cluster.
 *
 * They contain only what Kubernetes 1.20 has too: no sidecars, no match label keys, no namespace selectors, no
 * `minDomains`, no policies of spread constraints. docs/scheduler.md lists these.
 */

import { defined } from '../../../shared/defined.ts';
import type {
  Container,
  KubeNode,
  KubeObject,
  KubePod,
  KubePodDisruptionBudget,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinityTerm,
  PodSpec,
  TopologySpreadConstraint,
} from '../../../shared/kinds/types.ts';
import type { Toleration } from '../../../shared/kubernetes/kubernetes.ts';
import { seededFraction } from '../../../simulation/seeded-random.ts';

/** What the program that runs upstream's plugins reads. */
export interface PeerCluster {
  readonly nodes: readonly KubeNode[];
  /** Pods on nodes. */
  readonly bound: readonly KubePod[];
  /** Pending pods with a nominated node. */
  readonly nominated: readonly KubePod[];
  /** Each is evaluated alone. */
  readonly pending: readonly KubePod[];
  readonly replicaSets: readonly KubeObject[];
  readonly budgets: readonly KubePodDisruptionBudget[];
}

const PENDING = 4;
const NODES_MAX = 24;
const CROWDED_NODES_MAX = 6;
const ZONE = 'topology.kubernetes.io/zone';
const HOSTNAME = 'kubernetes.io/hostname';
const APPS = ['a', 'b', 'c', 'd'];
const NAMESPACES = ['default', 'team'];
const PRIORITIES = [0, 0, 0, 10, 100, 100, -5];
const IMAGES = ['registry.example/small', 'registry.example/large:1', 'registry.example/team/huge:2', 'base:3'];
const MEBIBYTE = 1_024 * 1_024;
const START_MS = Date.parse('2026-01-01T00:00:00Z');

interface ClusterTraits {
  readonly everyNodeHasZone: boolean;
  /** Few nodes without free cpu: a pod of high priority preempts others. */
  readonly isCrowded: boolean;
}

class Generator {
  readonly #fraction: () => number;
  #pods = 0;

  constructor(seed: number) {
    this.#fraction = seededFraction(seed);
  }

  chance(share: number): boolean {
    return this.#fraction() < share;
  }

  /** From `least` to `most`, both included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.#fraction() * (most - least + 1));
  }

  one<T>(values: readonly T[]): T {
    return values[this.whole(0, values.length - 1)]!;
  }

  /** Undefined with the probability 1 − `share`. */
  maybe<T>(share: number, value: () => T): T | undefined {
    return this.chance(share) ? value() : undefined;
  }

  list<T>(least: number, most: number, value: (index: number) => T): T[] {
    return Array.from({ length: this.whole(least, most) }, (_, index) => value(index));
  }

  node(index: number, { everyNodeHasZone, isCrowded }: ClusterTraits): KubeNode {
    const name = `node-${index}`;
    const effects = ['NoSchedule', 'NoExecute', 'PreferNoSchedule', 'PreferNoSchedule'];
    const images = IMAGES.filter(() => this.chance(0.4)).map((image, place) => ({
      names: [image.includes(':') ? image : `${image}:latest`, `${image}-${place}@sha256:0`],
      sizeBytes: this.one([10, 40, 300, 900, 4_000]) * MEBIBYTE + this.whole(0, 1_000),
    }));
    const taints = this.list(0, 2, () => ({
      key: this.one(['dedicated', 'maintenance']),
      value: this.one(['', 'x', 'y']),
      effect: this.one(effects),
    }));
    return {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name,
        uid: `node-uid-${index}`,
        labels: {
          [HOSTNAME]: name,
          ...defined({
            [ZONE]: this.maybe(everyNodeHasZone ? 1 : 0.8, () => this.one(['zone-a', 'zone-b', 'zone-c'])),
            disk: this.maybe(0.7, () => this.one(['ssd', 'hdd'])),
            size: this.maybe(0.7, () => this.one(['1', '5', '007', '20', 'large'])),
            rack: this.maybe(0.6, () => this.one(['r1', 'r2', 'r3', 'r4'])),
          }),
        },
      },
      spec: defined({
        unschedulable: this.maybe(0.08, () => true),
        taints: this.chance(0.35) ? taints : undefined,
      }),
      status: {
        allocatable: {
          cpu: this.one(isCrowded ? ['1', '1500m'] : ['1', '2', '3500m', '4', '8']),
          memory: this.one(['2Gi', '4096Mi', '7500000Ki', '16G']),
          'ephemeral-storage': this.one(['10Gi', '100Gi']),
          pods: this.one(['3', '5', '8', '110', '110']),
          ...defined({
            'example.com/gpu': this.maybe(0.3, () => this.one(['1', '4'])),
            'hugepages-2Mi': this.maybe(0.2, () => '64Mi'),
          }),
        },
        conditions: [{ type: 'Ready', status: 'True' }],
        images,
      },
    } as KubeNode;
  }

  /** Rarely more than any node offers. */
  amount(usual: readonly string[], tooMuch: string): string {
    return this.chance(0.02) ? tooMuch : this.one(usual);
  }

  container(name: string): Container {
    const requests = defined({
      cpu: this.maybe(0.7, () => this.amount(['0', '50m', '100m', '100m', '250m', '250m', '900m', '1500m'], '9')),
      memory: this.maybe(0.7, () => this.amount(['0', '64Mi', '64Mi', '128Mi', '500M', '500M', '1Gi', '2Gi'], '20Gi')),
      'ephemeral-storage': this.maybe(0.1, () => this.amount(['1Gi', '2Gi'], '20Gi')),
      'example.com/gpu': this.maybe(0.03, () => this.one(['1', '2'])),
      'hugepages-2Mi': this.maybe(0.015, () => '32Mi'),
    });
    const ports = this.list(1, 2, () => ({
      containerPort: 80,
      ...defined({
        hostPort: this.maybe(0.8, () => this.one([80, 443, 8080])),
        hostIP: this.maybe(0.3, () => this.one(['0.0.0.0', '10.0.0.1', '::'])),
        protocol: this.maybe(0.3, () => this.one(['TCP', 'UDP'])),
      }),
    }));
    return {
      name,
      image: this.one(IMAGES),
      resources: { requests },
      ...defined({ ports: this.chance(0.12) ? ports : undefined }),
    } as Container;
  }

  requirement(): NodeSelectorRequirement {
    const operator = this.one(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'] as const);
    if (operator === 'Gt' || operator === 'Lt') return { key: 'size', operator, values: [this.one(['1', '5', '10'])] };
    const key = this.one(['disk', 'rack', ZONE, 'absent']);
    if (operator === 'Exists' || operator === 'DoesNotExist') return { key, operator };
    return { key, operator, values: this.list(1, 2, () => this.one(['ssd', 'hdd', 'r1', 'r2', 'zone-a', 'zone-b'])) };
  }

  nodeTerm(): NodeSelectorTerm {
    return defined({
      matchExpressions: this.maybe(0.9, () => this.list(1, 2, () => this.requirement())),
      matchFields: this.maybe(0.12, () => [
        {
          key: 'metadata.name',
          operator: this.one(['In', 'NotIn'] as const),
          values: [`node-${this.whole(0, NODES_MAX)}`],
        },
      ]),
    }) as NodeSelectorTerm;
  }

  /** Never empty: an empty selector counts no pod in newer releases. */
  selector() {
    const expression = {
      key: this.one(['app', 'tier']),
      operator: this.one(['In', 'NotIn', 'Exists', 'DoesNotExist']),
    };
    const values = expression.operator.endsWith('In') ? { values: [this.one([...APPS, 'web'])] } : {};
    return this.chance(0.75)
      ? { matchLabels: { app: this.one(APPS) } }
      : { matchExpressions: [{ ...expression, ...values }] };
  }

  podTerm(): PodAffinityTerm {
    return {
      topologyKey: this.one([HOSTNAME, ZONE, ZONE, 'rack']),
      ...defined({
        labelSelector: this.maybe(0.95, () => this.selector()),
        namespaces: this.maybe(0.2, () => this.list(1, 2, () => this.one(NAMESPACES))),
      }),
    } as PodAffinityTerm;
  }

  podAffinity(share: number): PodSpec['affinity'] {
    const required = () => this.list(1, 2, () => this.podTerm());
    const preferred = () => this.list(1, 2, () => ({ weight: this.whole(1, 100), podAffinityTerm: this.podTerm() }));
    const either = (shareRequired: number, sharePreferred: number) =>
      defined({
        requiredDuringSchedulingIgnoredDuringExecution: this.maybe(shareRequired, required),
        preferredDuringSchedulingIgnoredDuringExecution: this.maybe(sharePreferred, preferred),
      });
    return { podAffinity: either(share, share * 2), podAntiAffinity: either(share, share * 2) };
  }

  pod(kind: 'bound' | 'pending', replicaSets: readonly KubeObject[], traits: ClusterTraits): KubePod {
    const index = this.#pods;
    this.#pods += 1;
    const owner = this.maybe(0.4, () => this.one(replicaSets));
    const namespace = owner?.metadata.namespace ?? this.one(NAMESPACES);
    const isPending = kind === 'pending';
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: `${kind}-${index}`,
        namespace,
        uid: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
        creationTimestamp: new Date(START_MS + index * 1_000).toISOString().replace('.000', ''),
        labels: defined({
          app: this.maybe(0.9, () => this.one(APPS)),
          tier: this.maybe(0.4, () => 'web'),
          set: owner?.metadata.name,
        }),
        ...defined({
          ownerReferences: owner && [
            {
              apiVersion: 'apps/v1',
              kind: 'ReplicaSet',
              name: owner.metadata.name ?? '',
              uid: owner.metadata.uid ?? '',
              controller: true,
            },
          ],
          deletionTimestamp: isPending ? undefined : this.maybe(0.07, () => '2026-01-02T00:00:00Z'),
        }),
      },
      spec: isPending ? this.pendingSpec(traits) : { ...this.commonSpec(), affinity: this.podAffinity(0.04) },
      status: isPending
        ? { phase: 'Pending' }
        : {
            phase: 'Running',
            startTime: new Date(START_MS + this.whole(0, 500) * 60_000).toISOString().replace('.000', ''),
          },
    } as KubePod;
  }

  commonSpec(): PodSpec {
    return {
      schedulerName: 'default-scheduler',
      priority: this.one(PRIORITIES),
      containers: this.list(1, 2, (index) => this.container(`main-${index}`)),
      ...defined({
        initContainers: this.maybe(0.15, () => [this.container('init')]),
        overhead: this.maybe(0.05, () => ({ cpu: '120m', memory: '32Mi' })),
      }),
    } as PodSpec;
  }

  /** A third of the pods has few constraints, a third has many. */
  pendingSpec({ isCrowded }: ClusterTraits): PodSpec {
    const density = isCrowded ? 0.15 : this.one([0.25, 0.6, 1.2]);
    const nodeAffinity = defined({
      requiredDuringSchedulingIgnoredDuringExecution: this.maybe(0.25 * density, () => ({
        nodeSelectorTerms: this.list(1, 2, () => this.nodeTerm()),
      })),
      preferredDuringSchedulingIgnoredDuringExecution: this.maybe(0.4, () =>
        this.list(1, 3, () => ({ weight: this.whole(1, 100), preference: { matchExpressions: [this.requirement()] } })),
      ),
    });
    return {
      ...this.commonSpec(),
      ...(isCrowded && { priority: 100 }),
      affinity: { nodeAffinity, ...this.podAffinity(0.1 * density) },
      ...defined({
        nodeSelector: this.maybe(0.15 * density, () => ({ disk: this.one(['ssd', 'hdd']) })),
        tolerations: this.maybe(0.6, () => this.list(1, 2, () => this.toleration())),
        topologySpreadConstraints: this.maybe(0.4 * density, () => this.spreadConstraints()),
      }),
    } as PodSpec;
  }

  toleration(): Toleration {
    if (this.chance(0.4)) return { key: 'dedicated', operator: 'Equal', value: this.one(['x', 'y']) };
    return {
      operator: 'Exists',
      ...defined({
        key: this.maybe(0.7, () => this.one(['dedicated', 'maintenance', 'node.kubernetes.io/unschedulable'])),
        effect: this.maybe(0.5, () => this.one(['NoSchedule', 'NoExecute', 'PreferNoSchedule'] as const)),
      }),
    };
  }

  /** A topology key is at most once hard and once soft, as the API requires. */
  spreadConstraints(): TopologySpreadConstraint[] {
    const constraints = this.list(1, 2, () => ({
      maxSkew: this.whole(1, 3),
      topologyKey: this.one([HOSTNAME, ZONE, ZONE, 'rack']),
      whenUnsatisfiable: this.one(['DoNotSchedule', 'ScheduleAnyway'] as const),
      labelSelector: this.selector(),
    }));
    const [first, second] = constraints;
    const isTwice =
      first?.topologyKey === second?.topologyKey && first?.whenUnsatisfiable === second?.whenUnsatisfiable;
    return isTwice ? [first!] : constraints;
  }

  replicaSet(index: number): KubeObject {
    const name = `set-${index}`;
    const labels = { set: name };
    return {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name, namespace: NAMESPACES[index % NAMESPACES.length]!, uid: `set-uid-${index}` },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels } } },
    } as KubeObject;
  }

  budget(index: number, bound: readonly KubePod[]): KubePodDisruptionBudget {
    const disrupted = this.maybe(0.3, () => this.one(bound))?.metadata.name;
    return {
      apiVersion: 'policy/v1beta1',
      kind: 'PodDisruptionBudget',
      metadata: { name: `budget-${index}`, namespace: this.one(NAMESPACES) },
      spec: { selector: { matchLabels: { app: this.one(APPS) } } },
      status: {
        disruptionsAllowed: this.whole(0, 2),
        ...(disrupted !== undefined && { disruptedPods: { [disrupted]: '2026-01-01T00:00:00Z' } }),
      },
    } as KubePodDisruptionBudget;
  }
}

const onNode = (pod: KubePod, nodeName: string): KubePod => ({ ...pod, spec: { ...pod.spec, nodeName } }) as KubePod;

/**
 * No port number is used twice on a node. Upstream keeps the ports of a node as a set: when one of two pods with the
 * same port leaves, the port counts as free.
 */
function withDistinctPorts(pods: readonly KubePod[]): KubePod[] {
  const used = new Set<number>();
  return pods.map((pod) => {
    const containers = (pod.spec?.containers ?? []).map((container) => {
      const ports = container.ports?.filter(({ hostPort = 0 }) => !used.has(hostPort));
      for (const { hostPort = 0 } of ports ?? []) if (hostPort > 0) used.add(hostPort);
      return { ...container, ...defined({ ports }) };
    });
    return { ...pod, spec: { ...pod.spec, containers } };
  });
}

export function randomCluster(seed: number): PeerCluster {
  const generator = new Generator(seed);
  const isCrowded = generator.chance(0.3);
  const traits = { isCrowded, everyNodeHasZone: generator.chance(0.8) };
  const count = generator.whole(1, isCrowded ? CROWDED_NODES_MAX : NODES_MAX);
  const nodes = Array.from({ length: count }, (_, index) => generator.node(index, traits));
  const replicaSets = Array.from({ length: 4 }, (_, index) => generator.replicaSet(index));
  const podsPerNode = isCrowded ? 8 : generator.whole(0, 5);
  const bound = nodes.flatMap(({ metadata }) =>
    withDistinctPorts(
      generator
        .list(0, podsPerNode, () => generator.pod('bound', replicaSets, traits))
        .map((pod) => onNode(pod, metadata.name ?? '')),
    ),
  );
  const nominated = generator.chance(0.3)
    ? generator.list(1, 3, () => {
        const pod = generator.pod('pending', replicaSets, traits);
        const nominatedNodeName = `node-${generator.whole(0, count - 1)}`;
        return { ...pod, status: { ...pod.status, nominatedNodeName } } as KubePod;
      })
    : [];
  const pending = Array.from({ length: PENDING }, () => generator.pod('pending', replicaSets, traits));
  const budgets = bound.length === 0 ? [] : generator.list(0, 3, (index) => generator.budget(index, bound));
  return { nodes, bound, nominated, pending, replicaSets, budgets };
}
