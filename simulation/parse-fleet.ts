/** The fleet of a scenario: groups of machines, and single ones that join later. */
import { REGION_LABEL, ZONE_LABEL } from '../shared/fleet/nodes/node-digest.ts';
import { readDurationMs, readTaints } from './read-values.ts';
import type { MachineSpec } from './scenario.ts';
import {
  type Faults,
  type Fields,
  readBoolean,
  readList,
  readMap,
  readNumber,
  readText,
  readTextMap,
  type Source,
  saidOf,
} from './yaml-source.ts';

const COUNT_MAX = 100_000;
const PODS_MAX = 1_000;
/** A DNS subdomain, as node names are. */
const NODE_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

export interface MachineDefaults {
  readonly beatEveryMs: number;
}

/** What a group and a single machine may say alike. */
const TRAITS = ['zone', 'region', 'labels', 'taints', 'podsPerNode', 'providerID', 'clockOffset', 'beatEvery'] as const;

function readTraits(
  fields: Fields | undefined,
  defaults: MachineDefaults,
  faults: Faults,
): Omit<MachineSpec, 'name' | 'beating' | 'ageMs' | 'phaseMs'> {
  const zone = readText(fields?.get('zone'), faults);
  const region = readText(fields?.get('region'), faults);
  return {
    labels: {
      ...(zone === undefined ? {} : { [ZONE_LABEL]: zone }),
      ...(region === undefined ? {} : { [REGION_LABEL]: region }),
      ...readTextMap(fields?.get('labels'), faults),
    },
    taints: readTaints(fields?.get('taints'), faults) ?? [],
    podCount:
      readNumber(fields?.get('podsPerNode'), faults, {
        least: 0,
        most: PODS_MAX,
        whole: true,
        what: `a whole number of pods, 0 to ${PODS_MAX}`,
      }) ?? 0,
    hasInstance: readBoolean(fields?.get('providerID'), faults) ?? false,
    clockOffsetMs: readDurationMs(fields?.get('clockOffset'), faults, Number.NEGATIVE_INFINITY) ?? 0,
    beatEveryMs: readDurationMs(fields?.get('beatEvery'), faults, 1) ?? defaults.beatEveryMs,
  };
}

/** A machine that registers in a `beat` step. */
export function readMachine(source: Source, defaults: MachineDefaults, faults: Faults): MachineSpec | undefined {
  const fields = readMap(source, ['name', ...TRAITS], faults);
  const named = fields?.get('name');
  const name = readText(named, faults);
  if (name === undefined || !NODE_NAME.test(name)) {
    faults.add(named ?? source, 'expected the name of a node', named === undefined ? undefined : saidOf(named));
    return undefined;
  }
  return { name, ...readTraits(fields, defaults, faults), beating: true, ageMs: 0, phaseMs: 0 };
}

function readGroup(source: Source, defaults: MachineDefaults, faults: Faults): MachineSpec[] {
  const fields = readMap(source, ['prefix', 'count', 'beating', 'age', 'phase', ...TRAITS], faults);
  if (fields === undefined) return [];
  const prefix = readText(fields.get('prefix'), faults);
  if (prefix === undefined || !NODE_NAME.test(`${prefix}-0`)) {
    const said = fields.get('prefix');
    faults.add(said ?? source, 'expected a prefix of node names', said === undefined ? undefined : saidOf(said));
  }
  const count = fields.has('count')
    ? readNumber(fields.get('count'), faults, {
        least: 0,
        most: COUNT_MAX,
        whole: true,
        what: `a whole number of nodes, 0 to ${COUNT_MAX}`,
      })
    : 1;
  const traits = readTraits(fields, defaults, faults);
  const beating = readBoolean(fields.get('beating'), faults) ?? true;
  const ageMs = readDurationMs(fields.get('age'), faults) ?? 0;
  const phaseMs = readDurationMs(fields.get('phase'), faults) ?? 0;
  return Array.from({ length: count ?? 0 }, (_, index) => ({
    name: `${prefix}-${index}`,
    ...traits,
    beating,
    ageMs,
    phaseMs,
  }));
}

export function readFleet(source: Source | undefined, defaults: MachineDefaults, faults: Faults): MachineSpec[] {
  const machines: MachineSpec[] = [];
  const names = new Set<string>();
  for (const item of readList(source, faults) ?? []) {
    const group = readGroup(item, defaults, faults);
    const twice = group.find(({ name }) => names.has(name));
    if (twice !== undefined) faults.add(item, 'expected names that no other group has', JSON.stringify(twice.name));
    for (const machine of group) names.add(machine.name);
    machines.push(...group);
  }
  return machines;
}
