/** Conformance cases by area, from the results of the tests that carry their ids. */
import type { Deviation, LeftOut } from './deviations.ts';

export interface TestOutcome {
  /** Begins with the id of its case; other tests are no cases. */
  readonly title: string;
  /** `passed`, or anything else. */
  readonly status: string;
  /** Cases under test/conformance/agent: the agent's areas have codes of their own, some of them equal to others. */
  readonly ofAgent?: boolean;
}

export interface Area {
  /** Two letters; those of the agent behind `agent/`. */
  readonly code: string;
  readonly name: string;
  /** Cases that hold as upstream. */
  readonly passed: number;
  /** Cases with an intended outcome of ours that holds. */
  readonly deviating: number;
  /** Cases about what we do not have. */
  readonly leftOut: number;
  readonly total: number;
  /** Ids of cases that failed, were skipped or have no test, and of those that are left out and have one. */
  readonly wrong: readonly string[];
}

const AREAS: Readonly<Record<string, string>> = {
  HB: 'heartbeat and node health',
  PN: 'pods not ready',
  ZS: 'zone states',
  LM: 'limiter, total disruption',
  RQ: 'rate-limited queue',
  NX: 'NoExecute taints',
  NS: 'NoSchedule taints',
  LE: 'labels and node events',
  TE: 'taint eviction',
  TW: 'eviction timers',
  CL: 'cloud: deletion, shutdown',
  CN: 'cloud: initialisation',
  CS: 'CIDR sets',
  RA: 'CIDR allocation',
  GC: 'pod garbage collection',
  FD: 'forced detaching',
  NR: 'node restriction',
  DT: 'default tolerations',
  VN: 'names and validation',
  RZ: 'pod resize',
  LG: 'legacy eviction',
  SF: 'scheduler: resources',
  SA: 'scheduler: node affinity',
  ST: 'scheduler: taints',
  SP: 'scheduler: host ports',
  SD: 'scheduler: declared features',
  SS: 'scheduler: topology spread',
  SI: 'scheduler: pod affinity',
  SC: 'scheduler: scores',
  SQ: 'scheduler: queue',
  PR: 'scheduler: preemption',
  SM: 'scheduler: messages',
  SX: 'scheduler: concurrency',
  WR: 'ReplicaSet',
  WD: 'Deployment',
  WS: 'DaemonSet',
  WT: 'StatefulSet',
  WJ: 'Job',
  WC: 'CronJob',
  WG: 'garbage collection by owner',
  'agent/LI': 'lease: interval',
  'agent/LB': 'lease: waits',
  'agent/LO': 'lease: object',
  'agent/LR': 'lease: rounds',
  'agent/RA': 'registration: attempt',
  'agent/RB': 'registration: waits',
  'agent/RL': 'registration: reconcile',
  'agent/RI': 'registration: initial node',
  'agent/RN': 'node labels',
  'agent/RP': 'node IP argument',
  'agent/RV': 'node IP on the host',
  'agent/RD': 'node addresses',
  'agent/SR': 'Ready condition',
  'agent/SP': 'pressure conditions',
  'agent/SC': 'capacity and allocatable',
  'agent/SE': 'reserved resources',
  'agent/SG': 'status: when written',
  'agent/SD': 'status: what changed',
  'agent/SF': 'status: timers',
  'agent/ST': 'status: retries',
  'agent/GM': 'shutdown: buckets',
  'agent/GV': 'shutdown: settings',
  'agent/GG': 'shutdown: groups',
  'agent/GP': 'shutdown: grace',
  'agent/GI': 'shutdown: logind delay',
  'agent/GS': 'shutdown: pod status',
  'agent/GT': 'shutdown: order',
  'agent/GE': 'shutdown: events',
  'agent/GF': 'shutdown: state file',
  'agent/GW': 'shutdown: Windows',
  'agent/TM': 'topology: merge',
  'agent/TN': 'topology: none',
  'agent/TX': 'topology: closest',
  'agent/TC': 'topology: comparison',
  'agent/TB': 'topology: target count',
  'agent/TA': 'topology: distance',
  'agent/TD': 'topology: closer mask',
  'agent/TO': 'topology: options',
  'agent/TS': 'topology: scopes',
  'agent/WL': 'swap: limit',
  'agent/WB': 'swap: behaviour',
  'agent/WS': 'swap: start',
  'agent/QC': 'QoS class',
  'agent/CC': 'critical pods',
  'agent/CK': 'kill requests',
  'agent/CS': 'static pods at shutdown',
};

const ID = /^([A-Z]{2})-\d{2}\b/;

/** One line an area, areas without any case included: none is forgotten in silence. */
export function areasOf(
  outcomes: readonly TestOutcome[],
  deviations: readonly Deviation[],
  leftOut: readonly LeftOut[],
): Area[] {
  const holds = new Map<string, boolean>();
  for (const { title, status, ofAgent } of outcomes) {
    const written = ID.exec(title)?.[0];
    const id = ofAgent && written !== undefined ? `agent/${written}` : written;
    // A case may have several tests: all of them count.
    if (id !== undefined) holds.set(id, (holds.get(id) ?? true) && status === 'passed');
  }
  const deviating = new Set(deviations.map(({ id }) => id));
  for (const id of deviating) if (!holds.has(id)) holds.set(id, false);
  const untested = new Set(leftOut.map(({ id }) => id).filter((id) => !holds.has(id)));
  const contradicted = new Set(leftOut.map(({ id }) => id).filter((id) => holds.has(id)));
  return Object.entries(AREAS).map(([code, name]) => {
    const ids = [...holds.keys()].filter((id) => id.startsWith(`${code}-`)).sort();
    const holding = ids.filter((id) => holds.get(id) && !contradicted.has(id));
    const without = [...untested].filter((id) => id.startsWith(`${code}-`)).length;
    return {
      code,
      name,
      passed: holding.filter((id) => !deviating.has(id)).length,
      deviating: holding.filter((id) => deviating.has(id)).length,
      leftOut: without,
      total: ids.length + without,
      wrong: ids.filter((id) => !holding.includes(id)),
    };
  });
}

export const totalOf = (areas: readonly Area[]): Pick<Area, 'passed' | 'deviating' | 'leftOut' | 'total'> => ({
  passed: areas.reduce((sum, { passed }) => sum + passed, 0),
  deviating: areas.reduce((sum, { deviating }) => sum + deviating, 0),
  leftOut: areas.reduce((sum, { leftOut }) => sum + leftOut, 0),
  total: areas.reduce((sum, { total }) => sum + total, 0),
});
