/**
 * What the controllers decided, with what they decided it on, so that the rule can be run again.
 *
 * A record is plain JSON and speaks for itself: the inputs hold the part of the policy that the rule read, as it was, and
 * `outcome` what the rule said. `replay` runs the rule of today over them: a difference means that the record was changed,
 * or that the rule was.
 *
 * Kept for thirty days, under the object it is about (docs/explain.md).
 */

import type { ConditionStatus, NodeCondition, Taint } from '../../domain/kubernetes.ts';
import type { NodeHealth } from '../../domain/nodes/node-health.ts';
import { carriedNoExecute, decideNoExecute } from '../../domain/nodes/node-taints.ts';
import type { NoExecuteTaint } from '../../domain/nodes/taint-times.ts';
import { defaultPolicy, type Policy } from '../../domain/policy.ts';
import { shortHash } from '../../domain/text-hash.ts';
import { disruptionVerdict, NO_DISRUPTION } from '../../domain/zones/disruption.ts';
import {
  decideGate,
  type GateReason,
  type GateRecord,
  type GateVerdict,
  type Probe,
  UNTRIED_GATE,
} from '../../domain/zones/gate.ts';
import type { Limiter } from '../../domain/zones/limiter.ts';
import { type ZoneState, zoneRatePerSecond, zoneStateOf } from '../../domain/zones/zone-state.ts';
import { type CloudQuestion, decideAutomaticOutOfService, decideCloud } from '../cloud-node/rule.ts';
import { decideEvictions, evictionHold } from '../evictor/rule.ts';
import { decideMonitor } from '../node-monitor/rule.ts';
import { reconciledTaints } from '../node-reconciler/rule.ts';
import { decidePodEvictions, type EvictablePod, type EvictionTimer } from '../pod-evictor/rule.ts';
import { type CollectableNode, type CollectablePod, podRemovals } from '../pod-gc/rule.ts';
import { type AttachedVolume, decideVolumeDetach, type VolumeNode } from '../volume-detacher/rule.ts';

export const DECISION_ACTS = [
  'MarkUnknown',
  'GateClosed',
  'GateOpened',
  'TotalDisruptionEntered',
  'TotalDisruptionLeft',
  'ZoneStateSet',
  'ZoneRateSet',
  'EvictionHeld',
  'Tainted',
  'TaintSwapped',
  'TaintLifted',
  'PodEvictionSet',
  'PodEvictionMoved',
  'PodEvictionHeld',
  'PodEvictionCancelled',
  'PodDeleted',
  'PodCollected',
  'NodeDeleted',
  'NodeKept',
  'ShutdownTaintAdded',
  'ShutdownTaintRemoved',
  'OutOfServiceAdded',
  'OutOfServiceRemoved',
  'VolumeDetached',
  'VolumeKept',
] as const;
export type DecisionAct = (typeof DECISION_ACTS)[number];

export interface DecisionAbout {
  readonly kind: 'Node' | 'Pod' | 'Zone' | 'Fleet';
  /** Of pods. */
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
}

/** About everything at once: gate and total disruption. */
export const FLEET: DecisionAbout = Object.freeze({ kind: 'Fleet', name: 'fleet' });

/** Of a node's digest what rules read. */
export type RecordedHealth = Omit<NodeHealth, 'nodeName' | 'uid' | 'suspect' | 'podsToMark'>;
type RecordedPolicy = Partial<Policy>;

/** What a rule was given. Absent is undefined: the form is JSON. */
export interface RuleInputs {
  /** decideMonitor for one node. */
  readonly silence: {
    readonly health: RecordedHealth;
    readonly freshSinceMs: number;
    /** Not read by the rule: the zone after this tick's marks. */
    readonly zoneCount?: { readonly size: number; readonly notReady: number } | undefined;
    readonly policy: RecordedPolicy;
  };
  /** decideGate. */
  readonly gate: {
    readonly before: GateRecord;
    readonly probes: readonly Probe[];
    /** Not read by the rule: nodes that would have been marked. */
    readonly withheldMarks: number;
    readonly policy: RecordedPolicy;
  };
  /** disruptionVerdict. */
  readonly disruption: {
    readonly total: boolean;
    /** Zones that count a node, by state. */
    readonly zones: Readonly<Partial<Record<ZoneState, number>>>;
  };
  /** zoneStateOf and zoneRatePerSecond. */
  readonly zone: {
    readonly ready: number;
    readonly notReady: number;
    readonly totalDisruption: boolean;
    readonly policy: RecordedPolicy;
  };
  /** evictionHold. */
  readonly hold: {
    readonly limiter: Limiter;
    readonly gate: readonly GateReason[];
    readonly totalDisruption: boolean;
    /** Not read by the rule: who waits, of them the first. */
    readonly waiting: number;
    readonly first: readonly string[];
  };
  /** decideEvictions for one node. */
  readonly eviction: {
    readonly item: { readonly addedAtMs: number };
    readonly health: RecordedHealth;
    readonly limiter: Limiter;
    readonly freshSinceMs: number;
    /** Not read by the rule. */
    readonly waiting: number;
    readonly policy: RecordedPolicy;
  };
  /** decideNoExecute; or, in total disruption, all that is carried. */
  readonly noExecute: {
    readonly ready?: ConditionStatus | undefined;
    readonly noExecute: NodeHealth['noExecute'];
    readonly totalDisruption: boolean;
  };
  /** reconciledTaints. */
  readonly taints: {
    readonly taints: readonly Readonly<Taint>[];
    readonly conditions: readonly Pick<NodeCondition, 'type' | 'status' | 'reason'>[];
    readonly unschedulable: boolean;
  };
  /** decidePodEvictions for one pod. */
  readonly podEviction: {
    readonly nodeName: string;
    /** Absent: the Node does not exist. */
    readonly taints?: readonly NoExecuteTaint[] | undefined;
    /** Absent: it is gone. */
    readonly pod?: EvictablePod | undefined;
    readonly timer?: EvictionTimer | undefined;
    readonly gate: readonly GateReason[];
    readonly freshSinceMs: number;
    readonly policy: RecordedPolicy;
  };
  /** podRemovals for one pod. */
  readonly podGc: {
    readonly pod: CollectablePod;
    /** Absent: of no weight. */
    readonly node?: CollectableNode | 'missing' | undefined;
    /** Pods that had ended, besides this one. */
    readonly othersEnded: number;
    readonly policy: RecordedPolicy;
  };
  /** decideCloud. */
  readonly cloud: { readonly question: Omit<CloudQuestion, 'nodeName'>; readonly policy: RecordedPolicy };
  /** decideAutomaticOutOfService. */
  readonly outOfService: {
    readonly question: Parameters<typeof decideAutomaticOutOfService>[0];
    readonly policy: RecordedPolicy;
  };
  /** decideVolumeDetach. */
  readonly volume: {
    readonly volume: AttachedVolume;
    readonly node: VolumeNode;
    readonly doubt?: string | undefined;
    readonly policy: RecordedPolicy;
  };
  /** No rule: the reason is a fact that was found. */
  readonly fact: Readonly<Record<string, unknown>>;
}

export type RuleName = keyof RuleInputs;
export type Outcome = Readonly<Record<string, unknown>>;

interface Decision<R extends RuleName> {
  readonly act: DecisionAct;
  readonly about: DecisionAbout;
  /** Server time, by which the rule judged. Epoch milliseconds. */
  readonly atMs: number;
  /** For people. */
  readonly reason: string;
  readonly rule: R;
  readonly inputs: RuleInputs[R];
  /** What the rule said; `replay` compares it. */
  readonly outcome: Outcome;
}

export type DecisionDraft = { readonly [R in RuleName]: Decision<R> }[RuleName];

export type DecisionRecord = DecisionDraft & {
  readonly v: 1;
  /** Tells policies apart: a hash of the whole. */
  readonly policy: string;
  /** The tick that decided; absent where a change did. */
  readonly slot?: number;
  /** Of node-monitor's claim. */
  readonly fence?: number;
  /** Hash of all the rest: tells a record that was changed from one whose rule was. */
  readonly sum: string;
};

export function sealed(record: Omit<DecisionRecord, 'sum'>): DecisionRecord {
  return { ...record, sum: sumOf(record) } as DecisionRecord;
}

function sumOf(record: object): string {
  const { sum: _, ...rest } = record as { readonly sum?: string };
  return shortHash(canonical(rest));
}

const full = (policy: RecordedPolicy): Policy => ({ ...defaultPolicy, ...policy });

const healthOf = (about: DecisionAbout, health: RecordedHealth): NodeHealth => ({
  ...health,
  nodeName: about.name,
  uid: about.uid ?? '',
  suspect: true,
});

const gateOf = (reasons: readonly GateReason[]): GateVerdict =>
  reasons.length === 0 ? { kind: 'open' } : { kind: 'holding', reasons, sinceMs: 0 };

type Rules = { readonly [R in RuleName]: (inputs: RuleInputs[R], of: DecisionRecord) => Outcome };

/** Each rule over recorded inputs; answers what would stand in `outcome`. */
const RULES: Rules = {
  silence({ health, freshSinceMs, policy }, { about, atMs }) {
    const { decisions } = decideMonitor(
      {
        nodes: [healthOf(about, health)],
        zones: [],
        queue: [],
        disruption: NO_DISRUPTION,
        gate: { ...UNTRIED_GATE, freshSinceMs },
      },
      { nowMs: atMs, policy: full(policy) },
    );
    const mark = decisions.find((decision) => decision.kind === 'markUnknown');
    return mark === undefined
      ? NOTHING
      : { mark: true, silentSeconds: mark.silentSeconds, graceSeconds: mark.graceSeconds };
  },
  gate({ before, probes, policy }, { atMs }) {
    const { reasons, sinceMs, freshSinceMs } = decideGate(before, { nowMs: atMs, probes, policy: full(policy) });
    return { reasons, sinceMs, freshSinceMs };
  },
  disruption({ total, zones }) {
    const states = (Object.keys(zones) as ZoneState[]).filter((state) => (zones[state] ?? 0) > 0);
    const verdict = disruptionVerdict(total, states);
    return { total: verdict === 'enter' || (verdict === 'unchanged' && total) };
  },
  zone({ ready, notReady, totalDisruption, policy }) {
    const state = ready + notReady === 0 ? undefined : zoneStateOf({ ready, notReady }, full(policy));
    const ratePerSecond = totalDisruption ? 0 : zoneRatePerSecond(state ?? 'Initial', ready + notReady, full(policy));
    return { ...(state === undefined ? {} : { state }), ratePerSecond };
  },
  hold({ limiter, gate, totalDisruption }, { atMs }) {
    return { ...(evictionHold(limiterOf(limiter), { nowMs: atMs, gate: gateOf(gate), totalDisruption }) ?? NOTHING) };
  },
  eviction({ item, health, limiter, freshSinceMs, policy }, { about, atMs }) {
    const { name: nodeName, uid = '' } = about;
    const { decisions } = decideEvictions(
      {
        items: [{ ...item, nodeName, uid, zone: health.zone }],
        nodes: new Map([[nodeName, healthOf(about, health)]]),
        limiter: limiterOf(limiter),
      },
      { nowMs: atMs, gate: { kind: 'open' }, totalDisruption: false, policy: full(policy), freshSinceMs },
    );
    const decided = decisions[0];
    return decided?.kind === 'taint'
      ? { taint: decided.taint, waitedSeconds: decided.waitedSeconds, ratePerSecond: decided.ratePerSecond }
      : { ...(decided === undefined ? NOTHING : { kind: decided.kind }) };
  },
  noExecute({ ready, noExecute, totalDisruption }) {
    if (totalDisruption) return { lift: carriedNoExecute(noExecute) };
    const decision = decideNoExecute(ready, noExecute);
    if (decision.kind === 'lift') return { lift: decision.taints };
    return decision.kind === 'swap' ? { from: decision.from, to: decision.to } : NOTHING;
  },
  taints({ taints, conditions, unschedulable }) {
    return taintChange(taints, reconciledTaints({ taints, conditions: [...conditions], unschedulable }) ?? taints);
  },
  podEviction({ nodeName, taints, pod, timer, gate, freshSinceMs, policy }, { about, atMs }) {
    const decisions = decidePodEvictions(
      {
        nodeName,
        taints: taints?.map((taint) => ({ ...taint, addedAtMs: taint.addedAtMs })),
        pods: pod === undefined ? [] : [{ ...pod, nodeName: pod.nodeName, boundAtMs: pod.boundAtMs }],
        timers: timer === undefined ? [] : [timer],
        gate: gateOf(gate),
        freshSinceMs,
      },
      atMs,
      full(policy),
    );
    const decided = decisions.find(({ podUid }) => podUid === about.uid);
    if (decided === undefined) return NOTHING;
    return { kind: decided.kind, why: decided.reason, ...('atMs' in decided ? { atMs: decided.atMs } : {}) };
  },
  podGc({ pod, node, othersEnded, policy }) {
    const other = (index: number): CollectablePod => ({
      namespace: pod.namespace,
      name: pod.name,
      uid: `other-${index}`,
      nodeName: undefined,
      phase: 'Succeeded',
      reason: undefined,
      createdAtMs: Number.MAX_SAFE_INTEGER,
      terminating: false,
    });
    const removal = podRemovals(
      {
        pods: [recordedPod(pod), ...Array.from({ length: othersEnded }, (_, index) => other(index))],
        nodes: node === undefined || node === 'missing' ? [] : [{ ...node, ready: node.ready }],
        missing: new Set(node === 'missing' ? [pod.nodeName ?? ''] : []),
      },
      full(policy),
    ).find(({ podUid }) => podUid === pod.uid);
    return removal === undefined ? NOTHING : { remove: removal.reason, steps: removal.steps.map(({ kind }) => kind) };
  },
  cloud({ question, policy }, { about, atMs }) {
    const asked = { ...question, nodeName: about.name, ready: question.ready };
    const { decision } = decideCloud(asked, atMs, full(policy));
    return { kind: decision.kind, why: decision.reason };
  },
  outOfService({ question, policy }, { atMs }) {
    return { change: decideAutomaticOutOfService(question, atMs, full(policy)) };
  },
  volume({ volume, node, doubt, policy }, { atMs }) {
    return { ...decideVolumeDetach({ volume, node, doubt }, atMs, full(policy)) };
  },
  fact: (_inputs, { outcome }) => outcome,
};

const NOTHING: Outcome = Object.freeze({ kind: 'nothing' });

const limiterOf = ({ tatMs, ratePerSecond }: Limiter): Limiter => ({ tatMs, ratePerSecond });
const recordedPod = (pod: CollectablePod): CollectablePod => ({ ...pod, nodeName: pod.nodeName, phase: pod.phase });

/** Which taints came and went, as `key:Effect`. */
export function taintChange(
  before: readonly Readonly<Taint>[],
  after: readonly Readonly<Taint>[],
): { readonly added: readonly string[]; readonly removed: readonly string[] } {
  const textOf = ({ key, effect }: Readonly<Taint>): string => `${key}:${effect}`;
  const had = new Set(before.map(textOf));
  const has = new Set(after.map(textOf));
  return { added: [...has].filter((each) => !had.has(each)), removed: [...had].filter((each) => !has.has(each)) };
}

export interface Replay {
  readonly same: boolean;
  /** Whether there was a rule to run: a fact has none. */
  readonly checked: boolean;
  /** As recorded. */
  readonly expected: Outcome;
  /** As the rule says now. */
  readonly got: Outcome;
}

/** Runs the rule again over the recorded inputs. Inputs that the rule cannot read are a difference, not an error. */
export function replay(record: DecisionRecord): Replay {
  const { rule, inputs, outcome: expected } = record;
  const checked = (rule as string) !== 'fact';
  const differs = (why: string): Replay => ({ same: false, checked, expected, got: { kind: 'unreadable', why } });
  if (record.sum !== sumOf(record)) return differs('the record is not as it was written');
  if (record.v !== 1) return differs(`version ${String(record.v)} is not known`);
  if (!Object.hasOwn(RULES, rule)) return differs(`rule ${String(rule)} is not known`);
  try {
    const run = RULES[rule] as (inputs: unknown, of: DecisionRecord) => Outcome;
    const got = run(inputs, record);
    return { same: canonical(got) === canonical(expected), checked, expected, got };
  } catch (fault) {
    return differs(fault instanceof Error ? fault.message : String(fault));
  }
}

/** JSON with sorted keys, absent where undefined. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const fields = Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, each]) => `${JSON.stringify(key)}:${canonical(each)}`);
  return `{${fields.join(',')}}`;
}
