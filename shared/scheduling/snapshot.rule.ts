/**
 * The cluster as one pass of the scheduler sees it. A pass adds its own bindings: each pod is decided on the state
 * that the pods before it leave.
 *
 * Counts of matching pods are kept per term and updated with each pod. Equal pods share them.
 */

import type { HostPort } from '../kinds/pods/pod-needs.ts';
import { type Amounts, NO_AMOUNTS, plus } from './requests.rule.ts';
import { type Labels, type PodTerm, termMatches } from './terms.rule.ts';
import { countsOnNode, isPending, type SchedulableNode, type SchedulablePod } from './world.rule.ts';

/** Kinds of counts that are kept at most. Beyond them all are counted again. */
const COUNTS_MAX = 512;

/** A node and the pods that count on it. */
export interface NodeState {
  readonly node: SchedulableNode;
  /** By `namespace/name`. */
  readonly pods: ReadonlyMap<string, SchedulablePod>;
  readonly used: Amounts;
  readonly scoredCpu: number;
  readonly scoredMemory: number;
  readonly hostPorts: readonly HostPort[];
}

interface MutableNodeState extends NodeState {
  node: SchedulableNode;
  pods: Map<string, SchedulablePod>;
  used: Amounts;
  scoredCpu: number;
  scoredMemory: number;
  hostPorts: readonly HostPort[];
}

/** How many pods match, by node name. Nodes without a matching pod are absent. */
export type CountsByNode = ReadonlyMap<string, number>;

interface Counted {
  readonly matches: (pod: SchedulablePod) => boolean;
  readonly byNode: Map<string, number>;
}

/** A term of pods that count, with the nodes of these pods. */
export interface ExistingTerm {
  readonly term: PodTerm;
  /** For scores: of the preference; 1 for a required affinity, negative for anti-affinity. */
  readonly weight: number;
  readonly byNode: CountsByNode;
}

/** Removes pods from their node while a preemption is evaluated. */
export interface Removals {
  remove(pod: SchedulablePod): void;
  putBack(pod: SchedulablePod): void;
}

/** A pod counts from now on, or no longer. */
type OnCount = (pod: SchedulablePod, change: 1 | -1) => void;

type TermIndex = Map<string, { readonly term: PodTerm; readonly weight: number; readonly byNode: Map<string, number> }>;

/** Weight of a required affinity of an existing pod (hardPodAffinityWeight). */
const REQUIRED_AFFINITY_WEIGHT = 1;

function addCount(byNode: Map<string, number>, nodeName: string, change: 1 | -1): void {
  const count = (byNode.get(nodeName) ?? 0) + change;
  if (count === 0) byNode.delete(nodeName);
  else byNode.set(nodeName, count);
}

function addTerm(index: TermIndex, term: PodTerm, weight: number, nodeName: string, change: 1 | -1): void {
  const key = `${weight}|${term.topologyKey}|${term.text}`;
  let entry = index.get(key);
  if (entry === undefined) {
    entry = { term, weight, byNode: new Map() };
    index.set(key, entry);
  }
  addCount(entry.byNode, nodeName, change);
  if (entry.byNode.size === 0) index.delete(key);
}

export class Snapshot {
  readonly #nodes = new Map<string, MutableNodeState>();
  readonly #pods = new Map<string, SchedulablePod>();
  /** Pods that count, by node name; with pods of names without a Node. */
  readonly #podsByNode = new Map<string, Map<string, SchedulablePod>>();
  readonly #missingNodes = new Set<string>();
  readonly #nominated = new Map<string, Map<string, SchedulablePod>>();
  readonly #counts = new Map<string, Counted>();
  readonly #antiTerms: TermIndex = new Map();
  readonly #scoredTerms: TermIndex = new Map();
  /** Number of nodes that have an image. */
  readonly #nodesWithImage = new Map<string, number>();
  #namespaces: ReadonlyMap<string, Labels> = new Map();
  #order: readonly string[] | undefined;
  #onCount: OnCount | undefined;

  get nodes(): ReadonlyMap<string, NodeState> {
    return this.#nodes;
  }

  get pods(): ReadonlyMap<string, SchedulablePod> {
    return this.#pods;
  }

  get namespaces(): ReadonlyMap<string, Labels> {
    return this.#namespaces;
  }

  /** Required anti-affinity of the pods that count. */
  get antiTerms(): Iterable<ExistingTerm> {
    return this.#antiTerms.values();
  }

  /** All terms of the pods that count, with their weights in scores. */
  get scoredTerms(): Iterable<ExistingTerm> {
    return this.#scoredTerms.values();
  }

  /** Node names, zone by zone in turn and by name in a zone: a part of them covers all zones. */
  get order(): readonly string[] {
    this.#order ??= orderOf(this.#nodes);
    return this.#order;
  }

  /** Names without a Node that pods still have. */
  get missingNodes(): ReadonlySet<string> {
    return this.#missingNodes;
  }

  nodesWithImage(image: string): number {
    return this.#nodesWithImage.get(image) ?? 0;
  }

  setNamespaces(namespaces: ReadonlyMap<string, Labels>): void {
    this.#namespaces = namespaces;
    this.#counts.clear();
  }

  setNode(node: SchedulableNode): void {
    const state = this.#nodes.get(node.name);
    for (const image of node.images.keys()) addCount(this.#nodesWithImage, image, 1);
    if (state !== undefined) {
      for (const image of state.node.images.keys()) addCount(this.#nodesWithImage, image, -1);
      if (state.node.zone !== node.zone) this.#order = undefined;
      state.node = node;
      return;
    }
    this.#order = undefined;
    const created: MutableNodeState = {
      node,
      pods: this.#podsByNode.get(node.name) ?? new Map(),
      used: NO_AMOUNTS,
      scoredCpu: 0,
      scoredMemory: 0,
      hostPorts: [],
    };
    this.#podsByNode.set(node.name, created.pods);
    this.#nodes.set(node.name, created);
    this.#missingNodes.delete(node.name);
    for (const pod of created.pods.values()) addUse(created, pod, 1);
  }

  removeNode(name: string): void {
    const state = this.#nodes.get(name);
    if (state === undefined) return;
    for (const image of state.node.images.keys()) addCount(this.#nodesWithImage, image, -1);
    this.#nodes.delete(name);
    if (state.pods.size > 0) this.#missingNodes.add(name);
    else this.#podsByNode.delete(name);
    this.#order = undefined;
  }

  /** Adds a pod, or replaces it. */
  setPod(pod: SchedulablePod): void {
    this.removePod(pod.key);
    this.#pods.set(pod.key, pod);
    if (countsOnNode(pod)) this.#count(pod, 1);
    else if (isPending(pod) && pod.nominatedNodeName !== '') {
      const nominated = this.#nominated.get(pod.nominatedNodeName) ?? new Map<string, SchedulablePod>();
      nominated.set(pod.key, pod);
      this.#nominated.set(pod.nominatedNodeName, nominated);
    }
  }

  removePod(key: string): void {
    const pod = this.#pods.get(key);
    if (pod === undefined) return;
    this.#pods.delete(key);
    if (countsOnNode(pod)) this.#count(pod, -1);
    this.#nominated.get(pod.nominatedNodeName)?.delete(key);
  }

  /** Pods that wait for the end of a preemption on this node. */
  nominatedTo(nodeName: string): Iterable<SchedulablePod> {
    return this.#nominated.get(nodeName)?.values() ?? [];
  }

  get hasNominations(): boolean {
    for (const pods of this.#nominated.values()) if (pods.size > 0) return true;
    return false;
  }

  /**
   * Counts by node of the pods that match. Equal texts must match the same pods.
   */
  counts(text: string, matches: (pod: SchedulablePod) => boolean): CountsByNode {
    const known = this.#counts.get(text);
    if (known !== undefined) return known.byNode;
    if (this.#counts.size >= COUNTS_MAX) this.#counts.clear();
    const byNode = new Map<string, number>();
    for (const [nodeName, pods] of this.#podsByNode) {
      for (const pod of pods.values()) if (matches(pod)) addCount(byNode, nodeName, 1);
    }
    this.#counts.set(text, { matches, byNode });
    return byNode;
  }

  countsOfTerm(term: PodTerm): CountsByNode {
    return this.counts(`term|${term.text}`, (pod) => termMatches(term, pod, this.#namespaces));
  }

  /** Runs `work`, and calls `onCount` for each pod that `work` adds or removes. */
  watched<T>(onCount: OnCount, work: () => T): T {
    this.#onCount = onCount;
    try {
      return work();
    } finally {
      this.#onCount = undefined;
    }
  }

  /** Runs `work` as if these pods counted too. */
  withAdded<T>(pods: readonly SchedulablePod[], work: () => T): T {
    for (const pod of pods) this.#count(pod, 1);
    try {
      return work();
    } finally {
      for (const pod of pods) this.#count(pod, -1);
    }
  }

  /**
   * Runs `work` as if pods no longer counted: it calls `remove` and `putBack` for each. The pods count again
   * afterwards.
   */
  withRemovals<T>(work: (removals: Removals) => T): T {
    const removed = new Map<string, SchedulablePod>();
    const putBack = (pod: SchedulablePod): void => {
      if (removed.delete(pod.key)) this.#count(pod, 1);
    };
    const remove = (pod: SchedulablePod): void => {
      removed.set(pod.key, pod);
      this.#count(pod, -1);
    };
    try {
      return work({ remove, putBack });
    } finally {
      for (const pod of [...removed.values()]) putBack(pod);
    }
  }

  #count(pod: SchedulablePod, change: 1 | -1): void {
    const { nodeName, key } = pod;
    const pods = this.#podsByNode.get(nodeName) ?? new Map<string, SchedulablePod>();
    this.#podsByNode.set(nodeName, pods);
    if (change === 1) pods.set(key, pod);
    else pods.delete(key);
    const state = this.#nodes.get(nodeName);
    if (state !== undefined) addUse(state, pod, change);
    else if (pods.size > 0) this.#missingNodes.add(nodeName);
    else {
      this.#podsByNode.delete(nodeName);
      this.#missingNodes.delete(nodeName);
    }
    this.#onCount?.(pod, change);
    for (const counted of this.#counts.values()) if (counted.matches(pod)) addCount(counted.byNode, nodeName, change);
    for (const term of pod.antiAffinity) addTerm(this.#antiTerms, term, 0, nodeName, change);
    const scored = this.#scoredTerms;
    for (const term of pod.affinity) addTerm(scored, term, REQUIRED_AFFINITY_WEIGHT, nodeName, change);
    for (const { term, weight } of pod.preferredAffinity) addTerm(scored, term, weight, nodeName, change);
    for (const { term, weight } of pod.preferredAntiAffinity) addTerm(scored, term, -weight, nodeName, change);
  }
}

/** A pod that names its node may request 9E: its sum is rounded, and what the other pods use would be lost with it. */
function addUse(state: MutableNodeState, pod: SchedulablePod, change: 1 | -1): void {
  if (isExact(state)) addAmounts(state, pod, change);
  else {
    Object.assign(state, UNUSED);
    for (const each of state.pods.values()) addAmounts(state, each, 1);
  }
  if (pod.hostPorts.length > 0) state.hostPorts = [...state.pods.values()].flatMap(({ hostPorts }) => hostPorts);
}

const UNUSED = { used: NO_AMOUNTS, scoredCpu: 0, scoredMemory: 0 };

function isExact({ used, scoredCpu, scoredMemory }: NodeState): boolean {
  for (const name in used.scalars) if (!Number.isSafeInteger(used.scalars[name])) return false;
  const { isSafeInteger } = Number;
  return (
    isSafeInteger(used.cpu) &&
    isSafeInteger(used.memory) &&
    isSafeInteger(used.ephemeralStorage) &&
    isSafeInteger(scoredCpu) &&
    isSafeInteger(scoredMemory)
  );
}

function addAmounts(state: MutableNodeState, pod: SchedulablePod, change: 1 | -1): void {
  state.used = plus(state.used, pod.requests, change);
  state.scoredCpu += change * pod.scored.cpu;
  state.scoredMemory += change * pod.scored.memory;
}

function orderOf(nodes: ReadonlyMap<string, NodeState>): readonly string[] {
  const zones = new Map<string, string[]>();
  for (const name of [...nodes.keys()].sort()) {
    const { zone } = nodes.get(name)!.node;
    const names = zones.get(zone);
    if (names === undefined) zones.set(zone, [name]);
    else names.push(name);
  }
  const lists = [...zones.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, names]) => names);
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  const order: string[] = [];
  for (let index = 0; index < longest; index += 1) {
    for (const names of lists) if (index < names.length) order.push(names[index]!);
  }
  return order;
}
