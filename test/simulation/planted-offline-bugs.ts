/** Bugs in both halves of offline stop: of the cluster in what it reads and writes, of machines in their rules. */
import { type RelayRouteOptions, withRelay } from '../../agent/app/relay-route.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../../agent/ports/kube-api.ts';
import type { ClockReading } from '../../agent/rules/offline-stop.ts';
import { nodeHealthOf } from '../../shared/fleet/nodes/health.ts';
import { OFFLINE_STOP_AFTER } from '../../shared/kinds/pods/offline-stop.ts';
import type { Item, TransactWrite } from '../../shared/store/item-store.ts';
import type { SimOptions } from '../../simulation/sim-options.ts';
import type { Plant, PlantedBug } from './find-bug.ts';
import { onlyFor, seenThrough, textOf, unconditional } from './planted-bugs.ts';

const HEALTH_PARTITION = /^s\d\d$/;
/** How old the row of a silent node is that the removal rests on. Milliseconds. */
const STALE_MS = 900_000;

/** The signs of life of a silent node are read as they might have been before, and the removal has no condition. */
function staleRemoval(): Plant {
  const older = (atMs: Item[string] | undefined) => (typeof atMs === 'number' ? { atMs: atMs - STALE_MS } : undefined);
  const read = (row: Item): Item => {
    if (!HEALTH_PARTITION.test(String(row['pk'])) || nodeHealthOf(row)?.ready !== 'Unknown') return row;
    const [renewed, posted] = [older(row['r']), older(row['l'])];
    return { ...row, ...(renewed && { r: renewed.atMs }), ...(posted && { l: posted.atMs }) };
  };
  const write = (each: TransactWrite): TransactWrite => (each.key.table === 'health' ? unconditional(each) : each);
  const { items: through } = seenThrough({ read, transact: (writes) => writes.map(write) });
  const evicting = new Set(['evictor', 'object-stream']);
  return { items: (items, process) => (evicting.has(process.name) ? through!(items, process) : items) };
}

/** Workload controllers do not see the annotation of pods. */
const replacesTerminating: Plant = onlyFor(
  'workloads',
  seenThrough({
    read: (item) =>
      String(item['pk']).startsWith('o#pods#') && item['o'] !== undefined
        ? { ...item, o: textOf(item).replaceAll(OFFLINE_STOP_AFTER, 'sim.nodekeeper.dev/other') }
        : item,
  }),
);

const before = ({ uptimeMs, wallMs }: ClockReading, earlierMs: number): ClockReading => ({
  uptimeMs: uptimeMs - earlierMs,
  wallMs: wallMs - earlierMs,
});

/** While the cluster itself does not answer, the relay acknowledges heartbeats that it does not pass on. */
function lyingRoute({ relay, direct, ...options }: RelayRouteOptions): KubeApi {
  let isCut = false;
  const send = async (request: KubeRequest): Promise<KubeAnswer> => {
    const answer = await direct.send(request);
    isCut = answer.kind === 'failed' || answer.status >= 500;
    return answer;
  };
  const lie = async (request: KubeRequest): Promise<KubeAnswer> => {
    if (!isCut) return relay.send(request);
    const answer = await send(request);
    return isCut ? { kind: 'answered', status: 200, body: request.body } : answer;
  };
  return withRelay({ ...options, direct: { ...direct, send }, relay: { ...relay, send: lie } });
}

/** Right rules of machines do not believe it. */
export const LYING_RELAYS = { parts: ['offlineStop', 'relays'], plant: { relayRoute: lyingRoute } } as const;

const OPTIONS: Partial<SimOptions> = { parts: ['offlineStop'], faults: [], nodes: 8, hours: 1 };

const PLANTED: readonly PlantedBug[] = [
  {
    bug: 'a removal without a condition on heartbeats',
    laws: ['S2'],
    plant: staleRemoval(),
    seed: 8,
  },
  { bug: 'a ReplicaSet that replaces pods before they stop', laws: ['S2'], plant: replacesTerminating },
  {
    bug: 'a machine that starts what it remembers, and counts from its boot',
    laws: ['S2'],
    plant: { offlineRules: { startsRemembered: true } },
    seed: 2,
  },
  {
    bug: 'a machine that counts from the answer of a heartbeat',
    laws: ['S2'],
    plant: { offlineRules: { counted: ({ received, isRelayed }) => (isRelayed ? undefined : received) } },
    seed: 6,
    options: { troubles: ['lateAnswers'] },
  },
  {
    bug: 'a machine that stops pods before their time',
    laws: ['S1'],
    plant: { offlineRules: { counted: ({ sent, isRelayed }) => (isRelayed ? undefined : before(sent, 300_000)) } },
    seed: 14,
    options: { troubles: ['cut'] },
  },
  {
    bug: 'a machine that believes its relay',
    laws: ['S2'],
    plant: { ...LYING_RELAYS.plant, offlineRules: { counted: ({ sent }) => sent } },
    seed: 8,
    options: { parts: LYING_RELAYS.parts, troubles: ['cut'] },
  },
  {
    bug: 'a machine that starts pods of a list from before its heartbeat',
    laws: ['S2'],
    plant: { offlineRules: { listedAfter: (_, beforeAnswer) => beforeAnswer } },
    seed: 12,
    options: { troubles: ['cutAtBoot'] },
  },
];

export const PLANTED_IN_OFFLINE_STOP = PLANTED.map(
  (planted): PlantedBug => ({ ...planted, options: { ...OPTIONS, ...planted.options } }),
);
